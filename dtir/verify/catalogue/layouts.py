"""Codes of layouts and owners."""

from __future__ import annotations

from dtir.verify.catalogue.entry import WARNING, Entry, Judge, mend

_RANK = """
mesh: {axes: [[tp, 2]]}
values:
- {id: x, shape: [4, 8], dims: [[], [tp], []]}
- {id: y, shape: [4, 8], dims: [[], [tp]]}
tasks:
- {id: t, kind: local, op: relu, in: [x], out: [y]}
inputs: [x]
outputs: [y]
"""

_AXIS = """
mesh: {axes: [[tp, 2]]}
values:
- {id: x, shape: [4, 8], dims: [[ep], []]}
- {id: y, shape: [4, 8], dims: [[tp], []]}
tasks:
- {id: t, kind: local, op: tanh, in: [x], out: [y]}
inputs: [x]
outputs: [y]
"""

_REUSE = """
mesh: {axes: [[dp, 2], [tp, 2]]}
values:
- {id: x, shape: [8, 8], dims: [[tp], [tp]]}
- {id: y, shape: [8, 8], dims: [[dp], [tp]]}
tasks:
- {id: t, kind: local, op: exp, in: [x], out: [y]}
inputs: [x]
outputs: [y]
"""

_UNEVEN = """
mesh: {axes: [[tp, 4]]}
values:
- {id: heads, shape: [10, 16], dims: [[tp], []]}
- {id: out, shape: [10, 16], dims: [[tp], []]}
tasks:
- {id: t, kind: local, op: gelu, in: [heads], out: [out]}
inputs: [heads]
outputs: [out]
"""

_PADDING = """
mesh: {axes: [[sp, 2]]}
values:
- {id: x, shape: [5, 3], dims: [[sp], []], sizes: {0: [3, 3]}}
- {id: m, shape: [3], dims: [[]], partial: {sp: max}}
- {id: y, shape: [3], dims: [[]]}
tasks:
- {id: top, kind: local, op: max, in: [x], out: [m], dims: [0]}
- {id: ar, kind: collective, coll: all_reduce, in: [m], out: [y], axes: [sp], reduction: max}
inputs: [x]
outputs: [y]
"""

_ORDER = """
mesh: {axes: [[dp, 2], [tp, 3]]}
values:
- {id: x, shape: [12, 4], dims: [[tp, dp], []]}
- {id: y, shape: [12, 4], dims: [[], []]}
tasks:
- {id: g, kind: collective, coll: all_gather, in: [x], out: [y], axes: [dp, tp], dim: 0}
inputs: [x]
outputs: [y]
"""

_MISMATCH = """
mesh: {axes: [[tp, 2]]}
values:
- {id: x, shape: [4, 6], dims: [[], []]}
- {id: w, shape: [6, 8], dims: [[], [tp]]}
- {id: y, shape: [4, 8], dims: [[], []]}
tasks:
- {id: mm, kind: local, op: einsum, spec: "ti,io->to", in: [x, w], out: [y]}
inputs: [x, w]
outputs: [y]
"""

_OPERANDS = """
mesh: {axes: [[fsdp, 2], [tp, 2]]}
values:
- {id: x, shape: [4, 8], dims: [[], [tp]]}
- {id: gain, shape: [8], dims: [[fsdp]]}
- {id: y, shape: [4, 8], dims: [[], [tp]]}
tasks:
- {id: norm, kind: local, op: mul, in: [x, gain], out: [y]}
inputs: [x, gain]
outputs: [y]
"""

_RESHAPE = """
mesh: {axes: [[tp, 2]]}
values:
- {id: qkv, shape: [3, 8], dims: [[], [tp]]}
- {id: flat, shape: [24], dims: [[tp]]}
tasks:
- {id: view, kind: local, op: reshape, in: [qkv], out: [flat]}
inputs: [qkv]
outputs: [flat]
"""

_INDEX = """
mesh: {axes: [[sp, 3]]}
values:
- {id: pos, shape: [12], dims: [[sp]]}
- {id: x, shape: [12], dims: [[sp]]}
- {id: y, shape: [12], dims: [[sp]]}
tasks:
- {id: number, kind: local, op: positions, in: [], out: [pos], offset: local}
- {id: use, kind: local, op: mul, in: [x, pos], out: [y]}
inputs: [x]
outputs: [y]
"""

_RANDOM = """
mesh: {axes: [[dp, 2], [tp, 3]]}
values:
- {id: x, shape: [4, 6], dims: [[dp], []]}
- {id: y, shape: [4, 6], dims: [[dp], []]}
tasks:
- {id: drop, kind: local, op: dropout, in: [x], out: [y], key_axes: []}
inputs: [x]
outputs: [y]
"""

_INCOMPLETE = """
mesh: {axes: [[pp, 2], [tp, 2]]}
values:
- {id: x, shape: [4, 8], dims: [[], [tp]], replicated: []}
- {id: y, shape: [4, 8], dims: [[], [tp]]}
tasks:
- {id: t, kind: local, op: relu, in: [x], out: [y]}
inputs: [x]
outputs: [y]
"""

_OWNERS = """
mesh: {axes: [[tp, 2]]}
values:
- {id: x, shape: [4], dims: [[]], owners: [0, 0, 1]}
- {id: y, shape: [4], dims: [[]]}
tasks:
- {id: t, kind: local, op: relu, in: [x], out: [y]}
inputs: [x]
outputs: [y]
"""

_SHARDS = """
mesh: {axes: [[tp, 4]]}
values:
- {id: x, shape: [8], dims: [[tp]], owners: [0, 1, 2]}
- {id: y, shape: [8], dims: [[tp]], owners: [0, 1, 2]}
tasks:
- {id: t, kind: local, op: relu, in: [x], out: [y]}
inputs: [x]
outputs: [y]
"""

_ABSENT = """
mesh: {axes: [[pp, 2]]}
values:
- {id: act, shape: [4], dims: [[]], at: {pp: 0}}
- {id: got, shape: [4], dims: [[]], at: {pp: 1}}
- {id: y, shape: [4], dims: [[]], at: {pp: 1}}
tasks:
- {id: send, kind: p2p, src: 0, dst: 1, in: [act], out: [got]}
- {id: stage1, kind: local, op: relu, in: [act], out: [y]}
inputs: [act]
outputs: [y]
"""

_DIVERGENCE = """
mesh: {axes: [[dp, 3]]}
values:
- {id: w, shape: [4], dims: [[]], valid_on: [0]}
- {id: x, shape: [6, 4], dims: [[dp], []]}
- {id: y, shape: [6, 4], dims: [[dp], []]}
tasks:
- {id: use, kind: local, op: mul, in: [x, w], out: [y]}
inputs: [w, x]
outputs: [y]
"""

ENTRIES = (
    Entry(
        "sharding.rank",
        Judge.STATIC,
        "layout rank differs from tensor rank",
        "A layout says for every dim which axes split it. With another number of lists nobody knows which dim is split.",
        _RANK,
        mend(_RANK, ("[[], [tp], []]", "[[], [tp]]")),
        "give one (possibly empty) axis list per tensor dim",
        "owner",
    ),
    Entry(
        "sharding.unknown_axis",
        Judge.STATIC,
        "axis not in mesh",
        "The layout splits over an axis that the mesh does not have, so that there are no shards to hold.",
        _AXIS,
        mend(_AXIS, ("[[ep], []]", "[[tp], []]")),
        "use an axis of this mesh, or reshard from the mesh that has it",
        "owner",
    ),
    Entry(
        "sharding.axis_reuse",
        Judge.STATIC,
        "one axis used twice",
        "One coordinate of an axis cannot be two things: splitting two dims by it would keep only the blocks on the diagonal.",
        _REUSE,
        mend(_REUSE, ("dims: [[tp], [tp]]", "dims: [[dp], [tp]]")),
        "let an axis split one dim; split the axis into sub-axes when two dims need a part each",
        "owner",
    ),
    Entry(
        "sharding.uneven",
        Judge.STATIC,
        "size not divisible",
        "Shards of unequal size have no common local shape. Two programs that cut such a dim by different rules exchange the wrong rows.",
        _UNEVEN,
        mend(
            _UNEVEN,
            (
                "{id: heads, shape: [10, 16], dims: [[tp], []]",
                "{id: heads, shape: [10, 16], dims: [[tp], []], sizes: {0: [3, 3, 2, 2]}",
            ),
            (
                "{id: out, shape: [10, 16], dims: [[tp], []]",
                "{id: out, shape: [10, 16], dims: [[tp], []], sizes: {0: [3, 3, 2, 2]}",
            ),
        ),
        "state the size of every shard, pad, or choose a divisor",
        "slice",
    ),
    Entry(
        "sharding.padding",
        Judge.BOTH,
        "padding enters the result",
        "Padding is not data. A maximum over zeros that were added to fill a shard is wrong wherever the data are negative.",
        _PADDING,
        mend(_PADDING, ("sizes: {0: [3, 3]}", "sizes: {0: [3, 2]}")),
        "mask the padding with the identity of the reduction, or trim after the gather",
        "slice",
    ),
    Entry(
        "sharding.order",
        Judge.BOTH,
        "major/minor order differs",
        "Two axes that split one dim number its blocks in the order in which they are listed. Read in another order, the blocks are permuted.",
        _ORDER,
        mend(_ORDER, ("axes: [dp, tp]", "axes: [tp, dp]")),
        "list the axes major to minor alike on both sides, or permute the blocks",
        "slice",
    ),
    Entry(
        "sharding.mismatch",
        Judge.BOTH,
        "declared layout is not the inferred one",
        "What the task makes lies otherwise than the result is declared, so that the next reader takes blocks for something else.",
        _MISMATCH,
        mend(_MISMATCH, ("- {id: y, shape: [4, 8], dims: [[], []]}", "- {id: y, shape: [4, 8], dims: [[], [tp]]}")),
        "declare the layout that follows, or insert the collective that converts it",
        "slice",
    ),
    Entry(
        "sharding.operands",
        Judge.BOTH,
        "operands not aligned",
        "A local task combines what a rank holds. Where operands are split differently, it combines elements that do not belong together.",
        _OPERANDS,
        mend(_OPERANDS, ("{id: gain, shape: [8], dims: [[fsdp]]}", "{id: gain, shape: [8], dims: [[tp]]}")),
        "reshard one operand so that every carrier of the dim is split by the same axes",
        "slice",
    ),
    Entry(
        "sharding.reshape",
        Judge.BOTH,
        "view breaks blocks",
        "A reshape keeps row-major order. A block of an inner dim is not a run of the merged one, so that ranks hold interleaved pieces.",
        _RESHAPE,
        mend(_RESHAPE, ("{id: qkv, shape: [3, 8], dims: [[], [tp]]}", "{id: qkv, shape: [6, 4], dims: [[tp], []]}")),
        "gather first, or move the split dim to the front of its group",
        "slice",
    ),
    Entry(
        "sharding.local_index",
        Judge.BOTH,
        "local index used as global",
        "Every rank counts its block from 0, so that all blocks claim the positions of the first.",
        _INDEX,
        mend(_INDEX, ("offset: local", "offset: global")),
        "add the block's offset: shard index times shard size",
        "slice",
    ),
    Entry(
        "sharding.correlated_random",
        Judge.STATIC,
        "same random stream on different shards",
        "All shards draw the same numbers, so that what should be independent is repeated. Every value is legal, the statistics are not.",
        _RANDOM,
        mend(_RANDOM, ("key_axes: []", "key_axes: [dp]")),
        "fold the coordinate on the splitting axes into the key",
        "owner",
        WARNING,
    ),
    Entry(
        "sharding.incomplete",
        Judge.STATIC,
        "layout does not say what an axis means",
        "An axis that a layout does not name could replicate, split or confine. A reader who guesses replicated may sum blocks.",
        _INCOMPLETE,
        mend(_INCOMPLETE, ("replicated: []", "replicated: [pp]")),
        "state every axis once",
        "owner",
    ),
    Entry(
        "ownership.invalid",
        Judge.STATIC,
        "bad owner list",
        "A rank that stands twice among the owners, or none at all, leaves open how many copies there are.",
        _OWNERS,
        mend(_OWNERS, ("owners: [0, 0, 1]", "owners: [0, 1]")),
        "list every rank that holds a part once",
        "owner",
    ),
    Entry(
        "ownership.sharding",
        Judge.STATIC,
        "owners do not hold all shards",
        "Some shard is held by nobody, so that the value is incomplete: a gather or a load of it fails or waits.",
        _SHARDS,
        _SHARDS.replace("owners: [0, 1, 2]", "owners: [0, 1, 2, 3]"),
        "add the missing owner (an empty shard has one too), or change the layout",
        "owner",
    ),
    Entry(
        "ownership.absent",
        Judge.BOTH,
        "reader does not own the operand",
        "The task runs on ranks that never got the value.",
        _ABSENT,
        mend(_ABSENT, ("op: relu, in: [act]", "op: relu, in: [got]")),
        "insert a transfer or reshard, or run the task on the owners",
        "owner",
    ),
    Entry(
        "ownership.replica_divergence",
        Judge.BOTH,
        "replicas are not equal",
        "Copies that are said to be equal are not, so that ranks go apart from there on without an error.",
        _DIVERGENCE,
        mend(
            _DIVERGENCE,
            ("- {id: x,", "- {id: fresh, shape: [4], dims: [[]]}\n- {id: x,"),
            (
                "- {id: use,",
                "- {id: bc, kind: collective, coll: broadcast, in: [w], out: [fresh], axes: [dp], root: 0}\n- {id: use,",
            ),
            ("in: [x, w]", "in: [x, fresh]"),
        ),
        "broadcast from the rank that is right, or make the producer alike on all ranks",
        "owner",
    ),
)
