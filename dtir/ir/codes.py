"""The codes of the structural verifier: what a program must keep so that every reader can rely on its shape.

Source of the codes and their meaning: the public documentation and code of DeepLink-org/Blueprinting, as facts.
"""

from __future__ import annotations

from dtir.schema.catalogue import CodeEntry

_PROGRAM: tuple[CodeEntry, ...] = (
    CodeEntry(
        "distributed.name",
        "A program without a name cannot be told from another in a list, a report or a comparison.",
        'DistributedTaskIR(name="", ...)',
        'DistributedTaskIR(name="mlp-tp8", ...)',
        "give the program a name",
    ),
    CodeEntry(
        "distributed.empty",
        "The program has no tasks or no values, so there is nothing that could be right or wrong about it.",
        "tasks=(), values=()",
        "at least one task and one value",
        "check that the producer wrote the whole program",
    ),
    CodeEntry(
        "distributed.source_digest",
        "source_model_digest must name the model that the program was made from by its content digest: "
        "40 hexadecimal digits in lower case.",
        'source_model_digest="llama-7b"',
        'source_model_digest="5d48c3b4d4e8bae69e16b02675a0969f9bb81aca"',
        "use the digest that the model's own snapshot states",
    ),
    CodeEntry(
        "distributed.parent_digest",
        "The header does not list the source model among its parents, so the chain from model to program is broken.",
        "header.parent_digests=()",
        "header.parent_digests=(source_model_digest,)",
        "pass parent_digests=(model.digest,) to make_header",
    ),
    CodeEntry(
        "distributed.duplicate_input",
        "A value is listed twice among the program's inputs; the caller could not tell which argument it is.",
        "inputs=(x, x)",
        "inputs=(x,)",
        "list every input once",
    ),
    CodeEntry(
        "distributed.duplicate_output",
        "A value is listed twice among the program's outputs.",
        "outputs=(y, y)",
        "outputs=(y,)",
        "list every output once",
    ),
    CodeEntry(
        "distributed.target_dialect",
        "The operation belongs to a library of one target. The program says what happens, not with what; "
        "a binding outside it chooses the library.",
        'operation=OperationName("nccl", "all_reduce")',
        'operation=OperationName("collective", "all_reduce")',
        "name the operation in a dialect that is independent of the target",
    ),
    CodeEntry(
        "attribute.reserved",
        "An attribute uses a name that has a meaning in a field of the IR, or that this layer must not state at all "
        "(a device, queue, stream, time or route). Two places that say the same thing can contradict each other.",
        'attributes={"queue": 3}',
        'attributes={"note": "was on queue 3"}',
        "use the field for it, keep it in a binding or run record, or choose another key",
    ),
)

_GRAPH: tuple[CodeEntry, ...] = (
    CodeEntry(
        "id.duplicate",
        "Two values or two tasks share an identifier, so a reference to it means two things.",
        'values x and y both with ValueId.derive("ex", "x")',
        'ValueId.derive("ex", "x") and ValueId.derive("ex", "y")',
        "derive every id from what makes the thing unique",
    ),
    CodeEntry(
        "reference.unknown",
        "A task, or the program's interface, names a value or task that the program does not declare.",
        "inputs=(ValueId of a value that is not in values,)",
        "inputs=(x.id,) with x in values",
        "declare the value or task, or correct the id",
    ),
    CodeEntry(
        "dag.duplicate_dependency",
        "A task lists the same dependency twice; the order is not changed by it, so it is a slip of the producer.",
        "dependencies=(a, a)",
        "dependencies=(a,)",
        "list every dependency once",
    ),
    CodeEntry(
        "dag.self_dependency",
        "A task that waits for itself never starts.",
        "task a with dependencies=(a,)",
        "task b with dependencies=(a,)",
        "remove it, or name the task that was meant",
    ),
    CodeEntry(
        "dag.not_topological",
        "A task stands before something it depends on. Canonical programs are stored in topological order, so that one "
        "pass is enough to read them; a circle shows up in the same way.",
        "tasks=(b depends on a, a)",
        "tasks=(a, b depends on a)",
        "store the tasks in topological order",
    ),
    CodeEntry(
        "task.duplicate_input",
        "A task lists a value twice among its inputs. Where an operation takes it twice, its operand positions say so.",
        "inputs=(x, x)",
        "inputs=(x,), operands=(0, 0)",
        "list every input once",
    ),
    CodeEntry(
        "task.duplicate_output",
        "A task lists a value twice among its outputs.",
        "outputs=(y, y)",
        "outputs=(y,)",
        "list every output once",
    ),
    CodeEntry(
        "dataflow.use_before_definition",
        "A task reads a value that no earlier task writes and that is no input of the program: at that point it has no "
        "content. Parameters must be listed among the inputs too.",
        "task 0 reads h, task 1 writes h",
        "task 0 writes h, task 1 reads h",
        "put the producer first, or list the value among the inputs",
    ),
    CodeEntry(
        "dataflow.multiple_definition",
        "A value is written by two tasks, or by a task although it is an input. Values are defined once, "
        "so that a name means one content.",
        "tasks 0 and 1 both write h",
        "task 0 writes h, task 1 writes h2",
        "give the second result a value of its own",
    ),
    CodeEntry(
        "dataflow.undefined_output",
        "The program promises an output that nothing produces.",
        "outputs=(y,) and no task writes y",
        "a task with outputs=(y,)",
        "produce it, or take it from the outputs",
    ),
    CodeEntry(
        "task.body.unknown",
        "The body of a task is none of the closed set of variants, so nothing can say what the task means.",
        "body=object()",
        "body=LocalCompute()",
        "use a task body of dtir.ir.tasks",
    ),
)

_RANKS: tuple[CodeEntry, ...] = (
    CodeEntry(
        "rank.invalid",
        "A task runs on no rank, or names one twice.",
        "ranks=()   or   ranks=(0, 0)",
        "ranks=(0, 1)",
        "list every rank that takes part, once",
    ),
    CodeEntry(
        "rank.unknown",
        "A rank is named that the mesh does not have. Ranks are counted from 0 in row-major order of the mesh axes.",
        "mesh tp=4 and ranks=(0, 1, 2, 7)",
        "ranks=(0, 1, 2, 3)",
        "use ranks from 0 to the size of the mesh minus 1, or enlarge the mesh",
    ),
    CodeEntry(
        "ownership.invalid",
        "A value is owned by no rank, or lists an owner twice.",
        "owners=()",
        "owners=(0, 1)",
        "list every rank that holds a part, once",
    ),
    CodeEntry(
        "collective.participants",
        "The ranks that run the task are not the ranks that take part in its collective: some would wait for partners "
        "that never come.",
        "ranks=(0, 1, 2, 3), participants=(0, 1)",
        "ranks=(0, 1), participants=(0, 1)",
        "make the task's ranks and the participants the same set",
    ),
    CodeEntry(
        "collective.root",
        "The root of a broadcast is not among its participants.",
        "Broadcast(participants=(0, 1), root=5, ...)",
        "Broadcast(participants=(0, 1), root=0, ...)",
        "choose a participant as root",
    ),
    CodeEntry(
        "peer.endpoints",
        "The ranks that run a transfer are not its two ends.",
        "ranks=(0, 1, 2) with a transfer 0 -> 1",
        "ranks=(0, 1) with a transfer 0 -> 1",
        "make the task's ranks the source and the destination",
    ),
)

_LAYOUT: tuple[CodeEntry, ...] = (
    CodeEntry(
        "sharding.rank",
        "A layout must say for every dim of the tensor which mesh axes split it, with an empty list where none does.",
        'x[4, 8] with dimension_axes=(("tp",),)',
        'x[4, 8] with dimension_axes=((), ("tp",))',
        "give one (possibly empty) axis list per tensor dim",
    ),
    CodeEntry(
        "sharding.axis_reuse",
        "A mesh axis is used twice in one layout. An axis can split one dim, or replicate, but not two things at once.",
        'x[8, 8] with dimension_axes=(("tp",), ("tp",))',
        'x[8, 8] with dimension_axes=(("dp",), ("tp",))',
        "use every axis once",
    ),
    CodeEntry(
        "sharding.unknown_axis",
        "A layout names an axis that the mesh does not have.",
        'mesh tp; dimension_axes=(("ep",), ())',
        'mesh tp; dimension_axes=(("tp",), ())',
        "use an axis of this mesh, or add the axis to it",
    ),
    CodeEntry(
        "scalar.negative",
        "A number of bytes is negative.",
        "message_bytes=-64",
        "message_bytes=64",
        "state the size of the message; a symbol when it is not known yet",
    ),
    CodeEntry(
        "scalar.invalid",
        "A number of bytes is something else than a number or a scalar expression.",
        'message_bytes="64"',
        "message_bytes=64",
        "use an int, a finite float, a Symbol or an expression over them",
    ),
    CodeEntry(
        "scalar.nonfinite",
        "A number of bytes is NaN or infinite.",
        'message_bytes=float("inf")',
        "message_bytes=64",
        "state the size of the message; a symbol when it is not known yet",
    ),
)

_REGIONS: tuple[CodeEntry, ...] = (
    CodeEntry(
        "region.unknown",
        "A call, loop or branch enters a region that the program does not hold.",
        "Call(region=r) and regions=()",
        "Call(region=r) and regions=(r,)",
        "add the region to the program's regions",
    ),
    CodeEntry(
        "region.arity",
        "A region is entered with more or fewer operands than it takes, or for more or fewer results than it yields.",
        "a region with 2 inputs, called with 1 operand",
        "a region with 2 inputs, called with 2 operands",
        "operands match the region's inputs, results its outputs, one to one",
    ),
    CodeEntry(
        "region.cycle",
        "Regions enter each other in a circle. Repetition is a loop; recursion is not part of the IR, since nothing could say "
        "how often anything runs.",
        "region f calls g, g calls f",
        "a Loop whose body is f",
        "use a Loop",
    ),
)

CODES: tuple[CodeEntry, ...] = (*_PROGRAM, *_GRAPH, *_RANKS, *_LAYOUT, *_REGIONS)
