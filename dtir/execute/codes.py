"""The codes of running programs."""

from __future__ import annotations

from dtir.schema.catalogue import CodeEntry
from dtir.schema.diagnostics import Severity

CODES: tuple[CodeEntry, ...] = (
    CodeEntry(
        "run.too_many_ranks",
        "One run holds data of every virtual rank, so that their number is bounded. The program itself may be far larger.",
        "dtir run on a mesh of 1,000,000 ranks",
        "dtir run on the same program with a mesh of 64 ranks",
        "run the program on a smaller mesh",
    ),
    CodeEntry(
        "run.order",
        "Tasks wait for each other: dependencies, data flow and the per-rank issue lists together have a circle, so that "
        "no order exists in which a run could get through.",
        "rank 0 issues a before b, rank 1 issues b before a",
        "both ranks issue a before b",
        "issue the tasks in one order on all ranks",
    ),
    CodeEntry(
        "run.dtype",
        "The executors have no arithmetic for an element type, or the package that brings it is not installed.",
        "a bf16 program without the package ml_dtypes",
        "pip install ml_dtypes",
        "install what the message names, or change the type",
    ),
    CodeEntry(
        "run.placement",
        "It cannot be told what a rank holds of a value, or how a task moves it: a size is a symbol without a value, a "
        "dim does not split evenly and has no sizes, a collective names no dim and several would do.",
        "x[B, 8] split over dp, without a value for B",
        "bind: {B: 16}",
        "give symbols a value, shards their sizes, and collectives their dims",
    ),
    CodeEntry(
        "run.unsupported",
        "The program uses a form that the executors do not do.",
        "a loop with neither a condition nor a trip count",
        "the same loop with a trip count",
        "rewrite that form, or run the communication only",
    ),
    CodeEntry(
        "run.unknown_op",
        "No evaluation is known for an operation, so that nothing that depends on it could be computed.",
        'custom-call(x), custom_call_target="my_kernel"',
        "the same computation in operations that are known",
        "register the operator, or run the communication only (--skip-local)",
    ),
    CodeEntry(
        "run.on_host",
        "The device's array module lacks what a step needs, so that the step ran on the host: its operands were brought there and "
        "its results back. The results are the same; the time is not that of a device.",
        "a random number generator of HLO on a GPU",
        "random numbers that are inputs of the program",
        "give such values as inputs, or run it with --backend numpy",
        Severity.INFO,
    ),
    CodeEntry(
        "run.op_module",
        "A module with operators that was named on the command line is not there, fails while it is loaded, or has none.",
        "dtir run x.yaml --op-module my_ops   where my_ops has no OPS",
        'OPS = (("mine", OpDef("warp", ...)),)',
        "give the module a tuple OPS of (dialect, OpDef)",
    ),
    CodeEntry(
        "run.elided_constant",
        "The text was printed without the values of large constants, which are then lost: any number put in their place "
        "would be an invention.",
        "constant({...})",
        "constant({1, 2, 3})",
        "print the module with large constants, or run the communication only (--skip-local)",
    ),
    CodeEntry(
        "run.memory",
        "What the ranks would hold at a time is more than there is; the run is refused before it starts to swap.",
        "512 ranks with 80 GiB each on one host",
        "the same program with small shapes",
        "spread the ranks over hosts, run a smaller program, or set --memory-limit",
    ),
    CodeEntry(
        "run.backend",
        "There is no such back end, or it cannot run on this machine; the message says what it lacks.",
        "dtir run --backend cupy on a machine without a GPU",
        "dtir run --backend numpy",
        "choose another with --backend, or install what it needs",
    ),
    CodeEntry(
        "run.binding",
        "The binding of ranks to processes and devices does not fit the program, or cannot be read.",
        "dtir run -n 16 on a program of 8 ranks",
        "dtir run -n 8",
        "start at most one process a rank",
    ),
    CodeEntry(
        "run.archive",
        "The file of inputs is no npz archive, is damaged, or holds Python objects, which are never read.",
        "dtir run --inputs notes.txt",
        "dtir run --inputs x.io.npz   with arrays in0, in1, ...",
        "write it with numpy.savez",
    ),
    CodeEntry(
        "run.input_missing",
        "An input of the program has no array in the archive.",
        "a program of two inputs, an archive with in0",
        "an archive with in0 and in1",
        "store every input as in0, in1, ... in the order of the parameters",
    ),
    CodeEntry(
        "run.input_shape",
        "The array of an input has another shape than the program wants.",
        "in0 of [8, 16] for an input of [16, 16]",
        "in0 of [16, 16]: the global array",
        "give the global array; it is split by the layout of the input",
    ),
    CodeEntry(
        "run.input_dtype",
        "The array of an input has another element type than the program wants; it is not converted silently.",
        "in0 in float64 for an f32 input",
        "in0.astype('float32')",
        "convert the array",
    ),
    CodeEntry(
        "run.input_unused",
        "The archive has inputs that the program does not: most likely the two do not belong together.",
        "in3 for a program of three inputs",
        "in0, in1, in2",
        "check that archive and program belong together",
    ),
    CodeEntry(
        "run.input_replicated",
        "An input is data of each rank, and the program does not say how it is split; the one array that was given goes "
        "to all ranks.",
        "in0 alone for an input without a sharding",
        "in0@0, in0@1, ... for every rank",
        "store one array a rank where they differ",
        Severity.INFO,
    ),
    CodeEntry(
        "run.output_layout",
        "A module that was partitioned elsewhere does not say how its outputs belong together. They are not put together "
        "by guess: each rank's part is given on its own.",
        "dtir run x.spmd.hlo --outputs y.npz",
        "dtir run x.spmd.hlo --layouts x.sharded.hlo --outputs y.npz",
        "name the module before partitioning with --layouts",
        Severity.WARNING,
    ),
    CodeEntry(
        "run.output_inferred",
        "A module that was partitioned elsewhere does not say how its outputs belong together. What follows from the layouts "
        "of its inputs fits the shapes and has equal copies; it is an inference all the same.",
        "dtir run x.spmd.hlo --outputs y.npz",
        "dtir run x.spmd.hlo --layouts x.sharded.hlo --outputs y.npz",
        "name the module before partitioning with --layouts",
        Severity.INFO,
    ),
    CodeEntry(
        "run.layouts",
        "A module was named as the source of output layouts that does not belong to the program: another number of ranks, "
        "inputs or outputs, or other shapes.",
        "dtir run a.spmd.hlo --layouts b.sharded.hlo",
        "dtir run a.spmd.hlo --layouts a.sharded.hlo",
        "name the module that the program was made from",
    ),
    CodeEntry(
        "run.output_holes",
        "Elements of an output are held by no rank, so that the undivided output is not complete.",
        "a permute that leaves one rank out",
        "a closed ring",
        "let every owner receive its part",
    ),
    CodeEntry(
        "run.values_differ",
        "An output is not what it should be, by more than rounding explains.",
        "a gradient that was reduced twice",
        "the same with one all-reduce",
        "dtir verify --judge value finds the first value that is wrong",
    ),
    CodeEntry(
        "run.bytes_differ",
        "More or fewer bytes crossed the wire than the plan says for the algorithm.",
        "an all-reduce over 3 ranks, for which the library copies the whole vector to one of them first",
        "the same with --algorithm ordered",
        "look at the library's choice of algorithm",
        Severity.WARNING,
    ),
    CodeEntry(
        "run.slower_than_planned",
        "A step took longer than the machine profile says, by more than 20 % and three times the noise of this run.",
        "a rank that arrives late, a link that is shared",
        "the same run on a quiet machine, with a profile of it",
        "look for the last rank to arrive, or calibrate",
        Severity.WARNING,
    ),
    CodeEntry(
        "run.profile_elsewhere",
        "The machine profile was not measured with the library that ran the program: its times are those of another machine, "
        "and how far the run is from them says little about the run.",
        "dtir run x.hlo --profile h100-nvlink-ib on a laptop",
        "dtir calibrate -o here.json && dtir run x.hlo --profile here.json",
        "calibrate this machine, with the back end that runs",
        Severity.INFO,
    ),
    CodeEntry(
        "run.record",
        "The file is no run record, or a damaged one: it names steps, ranks or columns that are not there.",
        "dtir export notes.json -o x.trace.json",
        "dtir run x.hlo -o run.json && dtir export run.json -o x.trace.json",
        "write the record again with dtir run -o",
    ),
    CodeEntry(
        "run.deadlock",
        "Ranks wait in a collective for others that never come to it: those took another branch, or left a loop earlier.",
        "a collective in one branch of a condition that differs from rank to rank",
        "the collective outside of the branch",
        "let all members of a group reach the collective",
    ),
    CodeEntry(
        "run.failed",
        "A task could not be computed: its operands do not fit its operation.",
        "a gather whose group has one rank and whose result is declared twice as large",
        "the same gather in a group of two",
        "look at the task's operands and attributes",
    ),
)
