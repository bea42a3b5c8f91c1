"""Codes of the value-level judge, and of the structure that all judges take for granted."""

from __future__ import annotations

from dtir.verify.catalogue.entry import Entry, Judge, mend

_CONSTANT = """
mesh: {axes: [[tp, 2]]}
values:
- {id: x, shape: [4, 4], dims: [[], []]}
- {id: y, shape: [4, 4], dims: [[], []]}
tasks:
- {id: half, kind: local, op: scale, in: [x], out: [y], c: 1/2, c_oracle: 1/4}
inputs: [x]
outputs: [y]
"""

_ONE_RANK = """
mesh: {axes: [[tp, 2]]}
values:
- {id: x, shape: [4, 4], dims: [[], []]}
- {id: y, shape: [4, 4], dims: [[], []]}
tasks:
- {id: half, kind: local, op: scale, in: [x], out: [y], c: 1/2, c_by_rank: {0: 1/4}}
inputs: [x]
outputs: [y]
"""

_OPEN = """
mesh: {axes: [[a, 2]]}
values:
- {id: x, shape: [4], dims: [[a]]}
- {id: y, shape: [2], dims: [[]], varying: [a]}
tasks:
- {id: turn, kind: p2p, pairs: [[0, 1]], in: [x], out: [y]}
inputs: [x]
outputs: [y]
"""

_GATHER = """
mesh: {axes: [[tp, 2]]}
values:
- {id: x, shape: [4, 6], dims: [[tp], []]}
- {id: y, shape: [4, 6], dims: [[], []]}
tasks:
- {id: ag, kind: collective, coll: all_gather, in: [x], out: [y], axes: [tp], dim: 1}
inputs: [x]
outputs: [y]
"""

_CHAIN = """
mesh: {axes: [[tp, 2]]}
values:
- {id: x, shape: [4], dims: [[]]}
- {id: h, shape: [4], dims: [[]]}
- {id: y, shape: [4], dims: [[]]}
tasks:
- {id: t1, kind: local, op: relu, in: [x], out: [h]}
- {id: t2, kind: local, op: exp, in: [h], out: [y]}
inputs: [x]
outputs: [y]
"""

_FIRST = "- {id: t1, kind: local, op: relu, in: [x], out: [h]}\n"
_SECOND = "- {id: t2, kind: local, op: exp, in: [h], out: [y]}\n"

NO_TEXT = frozenset({"task.duplicate_input", "task.body.unknown"})
"""Codes that no document can have, since its reader or the constructor of the record refuses first; their examples show the call."""

ENTRIES = (
    Entry(
        "value.mismatch",
        Judge.VALUE,
        "the value is not the specification",
        "Run on small data, the ranks together hold something else than the undivided program computes.",
        _CONSTANT,
        mend(_CONSTANT, (", c_oracle: 1/4", "")),
        "see which factor, share, block or rank is off, and the repair that was found to work",
        "value",
    ),
    Entry(
        "value.replica_divergence",
        Judge.VALUE,
        "copies differ",
        "Two ranks that should hold equal copies hold different numbers.",
        _ONE_RANK,
        mend(_ONE_RANK, (", c_by_rank: {0: 1/4}", "")),
        "look at the first value, in order of definition, whose copies part",
        "value",
    ),
    Entry(
        "value.undefined",
        Judge.VALUE,
        "element or share missing",
        "Some block or share of a value is held by nobody when the program has run.",
        _OPEN,
        mend(_OPEN, ("[[0, 1]]", "[[0, 1], [1, 0]]")),
        "fill it, or shrink the owners",
        "value",
    ),
    Entry(
        "value.shape",
        Judge.VALUE,
        "local array has the wrong shape",
        "What a rank computed does not have the shape that its layout says.",
        _GATHER,
        mend(_GATHER, ("dim: 1", "dim: 0")),
        "see the static finding at the same task",
        "value",
    ),
    Entry(
        "rank.unknown",
        Judge.STATIC,
        "rank not in the mesh",
        "A rank is named that the mesh does not have.",
        mend(_CHAIN, ("in: [x], out: [h]}", "in: [x], out: [h], ranks: [0, 7]}")),
        _CHAIN,
        "use ranks from 0 to the size of the mesh minus 1",
        "owner",
    ),
    Entry(
        "rank.invalid",
        Judge.STATIC,
        "bad rank list",
        "A task runs on no rank, or names one twice.",
        mend(_CHAIN, ("in: [x], out: [h]}", "in: [x], out: [h], ranks: [0, 0, 1]}")),
        _CHAIN,
        "list every rank once",
        "owner",
    ),
    Entry(
        "dataflow.use_before_definition",
        Judge.STATIC,
        "read before written",
        "A task reads a value that nothing has written yet and that is no input.",
        mend(_CHAIN, (_FIRST + _SECOND, _SECOND + _FIRST)),
        _CHAIN,
        "put the producer first, or list the value among the inputs",
        "owner",
    ),
    Entry(
        "dataflow.multiple_definition",
        Judge.STATIC,
        "written twice",
        "A value has two producers, so that its name means two things.",
        mend(_CHAIN, (_SECOND, _SECOND + "- {id: t3, kind: local, op: tanh, in: [h], out: [y]}\n")),
        _CHAIN,
        "give each result a value of its own",
        "owner",
    ),
    Entry(
        "dataflow.undefined_output",
        Judge.STATIC,
        "output without producer",
        "The program promises an output that nothing makes.",
        mend(_CHAIN, (_SECOND, "")),
        _CHAIN,
        "produce it, or take it from the outputs",
        "owner",
    ),
    Entry(
        "task.duplicate_input",
        Judge.STATIC,
        "value listed twice as input",
        "A task lists a value twice among its inputs. Where an operator takes it twice, the positions of operands say so.",
        "DistributedTask(..., inputs=(x, x))",
        "DistributedTask(..., inputs=(x,), operands=(0, 0))",
        "list the value once, and its positions in operands",
        "owner",
    ),
    Entry(
        "task.duplicate_output",
        Judge.STATIC,
        "value listed twice as output",
        "A task lists a value twice among its results.",
        mend(_CHAIN, ("in: [h], out: [y]", "in: [h], out: [y, y]")),
        _CHAIN,
        "list every result once",
        "owner",
    ),
    Entry(
        "distributed.target_dialect",
        Judge.STATIC,
        "operation of one target's library",
        "The program says what happens, not with what: an operation of one library ties it to a machine.",
        mend(_CHAIN, ("op: relu, in", "op: cuda.relu, in")),
        _CHAIN,
        "name the operation in a dialect that is independent of the target",
        "owner",
    ),
    Entry(
        "task.body.unknown",
        Judge.STATIC,
        "body type not known",
        "The body of a task is none of the closed set of variants, so that nothing can say what it means.",
        "DistributedTask(..., body=object())",
        "DistributedTask(..., body=LocalCompute())",
        "use a task body of dtir.ir.tasks",
        "owner",
    ),
)
