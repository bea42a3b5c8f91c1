"""The keys of the authoring form, in one place.

Source: the header of the corpus of faulty programs (``dtir-bug-corpus/1``). Keys marked *own* are additions that an
upstream document needs to survive the round trip.
"""

from __future__ import annotations

PROGRAM_SCHEMA = "dtir-program/1"
CORPUS_SCHEMA = "dtir-bug-corpus/1"

PROGRAM_KEYS = frozenset(
    {"schema", "name", "mesh", "values", "tasks", "inputs", "outputs", "oracle", "issue", "limits", "assume", "bind",
     "strict_order", "note", "symbols", "source_digest", "regions", "semantic", "header", "attributes"}
)  # fmt: skip
"""`symbols` (own): symbols with more than a workload name. `source_digest` (own): of the model that the program was made from;
without it, of the document. `regions` (own): bodies of calls, loops and branches. `semantic`, `header` (own): records, as their
canonical text. `attributes` (own): open data of the program."""

CORPUS_KEYS = frozenset(
    {
        "id",
        "class",
        "detect",
        "source",
        "expected_codes",
        "also_ok",
        "expected_dynamic",
        "first_bad_value",
        "fixed_variant",
    }
)
"""Keys of a corpus entry that say what is expected of it; kept as attributes, read by no judge."""

VALUE_KEYS = frozenset(
    {"id", "shape", "dtype", "dims", "partial", "varying", "at", "owners", "sizes", "halo", "corners", "scale", "valid_on",
     "local_shapes", "role", "grad_of", "replicated", "layout", "name", "note", "uid", "lineage",
     "source_value", "type_attributes", "attributes"}
)  # fmt: skip
"""`replicated` (own): the replicated axes, where not every other axis is. `layout` (own): dims of the local array, minor to
major. `name` (own): where it is not the id. `uid`, `lineage` (own): of a program that was not written in this form."""

COMMON_TASK_KEYS = frozenset(
    {"id", "kind", "in", "out", "ranks", "deps", "effects", "pp", "sync", "intro", "note", "completes", "name", "uid", "lineage",
     "operation", "semantic", "attributes"}
)  # fmt: skip
"""`operation` (own): ``dialect.name`` where that is not ``core`` and the kind's own word."""

KIND_KEYS: dict[str, frozenset[str]] = {
    "local": frozenset({"op"}),
    "collective": frozenset(
        {"coll", "axes", "groups", "reduction", "dim", "split", "concat", "root", "root_space", "roots", "bytes", "participants",
         "pairs", "channel", "route", "send_splits", "recv_splits", "trim", "vector", "unpermute"}
    ),
    "p2p": frozenset({"src", "dst", "pairs", "participants", "channel", "bytes"}),
    "reshard": frozenset({"op", "regions", "reduce"}),
    "control": frozenset({"op"}),
    "call": frozenset({"region"}),
    "loop": frozenset({"body", "condition", "trip_count"}),
    "branch": frozenset({"regions", "operand_counts"}),
}  # fmt: skip
"""`roots` (own): the global rank of every group's root. `participants` (own): where they are not the task's ranks in order."""

COLLECTIVES = (
    "all_reduce", "reduce_scatter", "all_gather", "all_to_all", "broadcast", "collective_permute", "moe_dispatch",
    "moe_combine",
)  # fmt: skip

EXCHANGES = frozenset({"moe_dispatch", "moe_combine"})
"""Collectives that exchange rows by a route: an all_to_all in the IR, told apart by the operation's name."""
