"""The codes of the check of one program against another."""

from __future__ import annotations

from dtir.schema.catalogue import CodeEntry

CODES: tuple[CodeEntry, ...] = (
    CodeEntry(
        "check.different",
        "Two forms of one program give different outputs for the same inputs: a translation between them is wrong, or they "
        "are not forms of one program.",
        "the dump after a pass that moved a dynamic-slice whose start is clamped",
        "the dump before that pass",
        "look at the first value that differs: both instructions are named with the source line they come from",
    ),
    CodeEntry(
        "check.interface",
        "The programs do not take the same inputs or do not give the same outputs, so that they cannot be compared.",
        "dtir check train.sharded.hlo eval.spmd.hlo",
        "dtir check train.sharded.hlo train.spmd.hlo",
        "name dumps of one program",
    ),
    CodeEntry(
        "check.not_run",
        "A program could not be executed, so that nothing can be said of its values.",
        "an operation that no evaluator knows; a step that failed",
        "a dump before the backend replaced operations by library calls",
        "compare an earlier dump of the program",
    ),
    CodeEntry(
        "check.layout",
        "It is not known how the parts that the ranks hold of an output belong together, so that it cannot be compared.",
        "two partitioned dumps with outputs of different shapes, and none that states layouts",
        "the dump just before partitioning as the first program",
        "name the dump just before partitioning first: it states the layout of every output",
    ),
    CodeEntry(
        "check.random",
        "A program draws random numbers that depend on the back end; two runs of it differ by right.",
        "a program with rng",
        "a program that takes its random bits as an input, or makes them with rng-bit-generator",
        "make random numbers from a key that is an input",
    ),
)
