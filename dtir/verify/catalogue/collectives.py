"""Codes of collectives."""

from __future__ import annotations

from dtir.verify.catalogue.entry import Entry, Judge, mend

_PARTIAL_SUM = """
mesh: {axes: [[dp, 2], [tp, 2]]}
values:
- {id: p, shape: [4, 6], dims: [[dp], []], partial: {tp: sum}}
- {id: y, shape: [4, 6], dims: [[dp], []]}
tasks:
- {id: ar, kind: collective, coll: all_reduce, in: [p], out: [y], axes: [tp], reduction: sum}
inputs: [p]
outputs: [y]
"""

_SCATTER = """
mesh: {axes: [[tp, 2]]}
values:
- {id: p, shape: [4, 6], dims: [[], []], partial: {tp: sum}}
- {id: y, shape: [4, 6], dims: [[tp], []]}
tasks:
- {id: rs, kind: collective, coll: reduce_scatter, in: [p], out: [y], axes: [tp], dim: 0, reduction: sum}
inputs: [p]
outputs: [y]
"""

_GATHER = """
mesh: {axes: [[tp, 2]]}
values:
- {id: x, shape: [4, 6], dims: [[tp], []]}
- {id: y, shape: [4, 6], dims: [[], []]}
tasks:
- {id: ag, kind: collective, coll: all_gather, in: [x], out: [y], axes: [tp], dim: 0}
inputs: [x]
outputs: [y]
"""

_EXCHANGE = """
mesh: {axes: [[sp, 2]]}
values:
- {id: q, shape: [8, 4, 2], dims: [[sp], [], []]}
- {id: h, shape: [8, 4, 2], dims: [[], [sp], []]}
tasks:
- {id: a2a, kind: collective, coll: all_to_all, in: [q], out: [h], axes: [sp], split: 1, concat: 0}
inputs: [q]
outputs: [h]
"""

_BROADCAST = """
mesh: {axes: [[cp, 2], [tp, 2]]}
values:
- {id: s, shape: [3], dims: [[]], valid_on: [2, 3]}
- {id: y, shape: [3], dims: [[]]}
tasks:
- {id: bc, kind: collective, coll: broadcast, in: [s], out: [y], axes: [cp], root: 1}
inputs: [s]
outputs: [y]
"""

_VARYING = """
mesh: {axes: [[ep, 2]]}
values:
- {id: x, shape: [4], dims: [[]], varying: [ep]}
- {id: y, shape: [4], dims: [[]]}
tasks:
- {id: ar, kind: collective, coll: all_reduce, in: [x], out: [y], axes: [ep], reduction: sum}
inputs: [x]
outputs: [y]
"""

_UNEVEN_GATHER = """
mesh: {axes: [[dp, 2]]}
values:
- {id: x, shape: [5, 2], dims: [[dp], []], sizes: {0: [3, 2]}}
- {id: y, shape: [5, 2], dims: [[], []]}
tasks:
- {id: ag, kind: collective, coll: all_gather, in: [x], out: [y], axes: [dp], dim: 0}
inputs: [x]
outputs: [y]
"""

_REPLICATED = """
mesh: {axes: [[rep, 2], [tp, 3]]}
values:
- {id: p, shape: [4], dims: [[]], partial: {tp: sum}}
- {id: y, shape: [4], dims: [[]]}
tasks:
- {id: ar, kind: collective, coll: all_reduce, in: [p], out: [y], axes: [rep, tp], reduction: sum}
inputs: [p]
outputs: [y]
"""

ENTRIES = (
    Entry(
        "collective.participants",
        Judge.STATIC,
        "participants ≠ ranks",
        "Some ranks that run the task do not take part in it, or the other way round: somebody waits for partners that never come.",
        mend(_PARTIAL_SUM, ("axes: [tp], reduction", "groups: [[0, 1], [2, 3]], ranks: [0, 1, 2], reduction")),
        _PARTIAL_SUM,
        "list the union of the groups",
        "group",
    ),
    Entry(
        "collective.group_split",
        Judge.BOTH,
        "groups are not fibres",
        "Groups that do not follow the axes of the mesh combine ranks that hold parts of different things, or leave some out.",
        mend(_PARTIAL_SUM, ("axes: [tp]", "groups: [[0], [1], [2], [3]]")),
        mend(_PARTIAL_SUM, ("axes: [tp]", "groups: [[0, 1], [2, 3]]")),
        "derive groups from mesh axes, and write the axes",
        "group",
    ),
    Entry(
        "collective.incomplete_axes",
        Judge.BOTH,
        "reduces only part of what is pending",
        "After the reduction the value still waits for the rest of its sum, and nobody knows: copies differ along the axes left out.",
        mend(
            _PARTIAL_SUM,
            ("dims: [[dp], []], partial: {tp: sum}", "dims: [[], []], partial: {dp: sum, tp: sum}"),
            ("{id: y, shape: [4, 6], dims: [[dp], []]}", "{id: y, shape: [4, 6], dims: [[], []]}"),
        ),
        mend(
            _PARTIAL_SUM,
            ("dims: [[dp], []], partial: {tp: sum}", "dims: [[], []], partial: {dp: sum, tp: sum}"),
            ("{id: y, shape: [4, 6], dims: [[dp], []]}", "{id: y, shape: [4, 6], dims: [[], []]}"),
            ("axes: [tp]", "axes: [dp, tp]"),
        ),
        "add the missing axes, or keep the result pending there",
        "pending",
    ),
    Entry(
        "collective.reduce_replicated",
        Judge.BOTH,
        "sum over equal copies",
        "A sum over copies is the value times the number of copies: gradients and norms grow with the mesh.",
        _REPLICATED,
        mend(_REPLICATED, ("axes: [rep, tp]", "axes: [tp]")),
        "drop the axis, or mask or scale by 1/|a| first",
        "scale",
    ),
    Entry(
        "collective.reduce_sharded",
        Judge.BOTH,
        "sum of different blocks",
        "Blocks of different rows are added element by element, as if they were shares of one value.",
        mend(_GATHER, ("coll: all_gather", "coll: all_reduce"), ("dim: 0", "reduction: sum")),
        _GATHER,
        "gather on the split dim, or sum it locally first",
        "group",
    ),
    Entry(
        "collective.reduce_varying",
        Judge.BOTH,
        "reduce over unrelated data",
        "What ranks hold of their own (other experts, other counts) is no one value, and its sum means nothing.",
        _VARYING,
        mend(_VARYING, ("varying: [ep]", "partial: {ep: sum}")),
        "reduce over an axis along which the data are one value",
        "group",
    ),
    Entry(
        "collective.wrong_reduction",
        Judge.BOTH,
        "operator differs from pending one",
        "Shares of a sum are combined by a maximum, or the other way round: the result is the largest share.",
        mend(_PARTIAL_SUM, ("reduction: sum", "reduction: max")),
        _PARTIAL_SUM,
        "use the operator that is pending",
        "pending",
    ),
    Entry(
        "collective.gather_dim",
        Judge.BOTH,
        "gather on the wrong dimension",
        "Blocks of rows are put side by side as columns: the result has the wrong shape or the wrong order.",
        mend(_GATHER, ("dim: 0", "dim: 1")),
        _GATHER,
        "gather on the dim that the axis splits",
        "slice",
    ),
    Entry(
        "collective.gather_partial",
        Judge.BOTH,
        "gather/exchange of a pending value",
        "Shares of a sum are put side by side instead of added.",
        mend(
            _SCATTER,
            ("coll: reduce_scatter", "coll: all_gather"),
            (", reduction: sum", ""),
            ("{id: y, shape: [4, 6], dims: [[tp], []]}", "{id: y, shape: [4, 6], dims: [[], []]}"),
        ),
        _SCATTER,
        "use all_reduce or reduce_scatter",
        "pending",
    ),
    Entry(
        "collective.scatter_dim",
        Judge.BOTH,
        "scatter dim contradicts result",
        "The task cuts one dim and the result is declared cut along another, so that readers take rows for columns.",
        mend(_SCATTER, ("dim: 0", "dim: 1")),
        _SCATTER,
        "make the dim of the task and the declared layout agree",
        "slice",
    ),
    Entry(
        "collective.all_to_all_dims",
        Judge.BOTH,
        "split/concat swapped or input not split",
        "The exchange joins the dim that is whole and cuts the one that is split already: blocks are shuffled.",
        mend(_EXCHANGE, ("split: 1, concat: 0", "split: 0, concat: 1")),
        _EXCHANGE,
        "concat on the dim that is split now, split the other",
        "slice",
    ),
    Entry(
        "collective.root",
        Judge.BOTH,
        "root outside its group",
        "A position in a group and a rank of the mesh were confused, so that the group waits for a root that is not in it.",
        mend(_BROADCAST, ("root: 1", "root: 1, root_space: global")),
        _BROADCAST,
        "store one root a group, as ranks; convert at one place",
        "group",
    ),
    Entry(
        "collective.stale_root",
        Judge.BOTH,
        "root holds an old copy",
        "The copy that is sent out is older than the one that was updated: the update is undone everywhere.",
        mend(_BROADCAST, ("root: 1", "root: 0")),
        _BROADCAST,
        "broadcast from the rank that wrote last",
        "group",
    ),
    Entry(
        "collective.broadcast_sharded",
        Judge.BOTH,
        "broadcast over a splitting axis",
        "Every rank gets the root's block, and the other blocks are gone.",
        mend(_GATHER, ("coll: all_gather", "coll: broadcast"), ("dim: 0", "root: 0")),
        _GATHER,
        "gather instead, or broadcast over the axes that replicate",
        "slice",
    ),
    Entry(
        "collective.message_bytes",
        Judge.STATIC,
        "byte count inconsistent",
        "The stated size is that of one shard, or of another side: costs and buffers planned from it are off by the size of the group.",
        mend(_GATHER, ("dim: 0", "dim: 0, bytes: 48")),
        mend(_GATHER, ("dim: 0", "dim: 0, bytes: 96")),
        "count the full buffer: of a gather the output, of a scatter the input",
        "bytes",
    ),
    Entry(
        "collective.shape_mismatch",
        Judge.BOTH,
        "participants disagree on local shape",
        "A plain collective moves the same number of elements for every rank. With unequal parts it hangs, truncates, or reads beyond a buffer.",
        _UNEVEN_GATHER,
        mend(_UNEVEN_GATHER, ("dim: 0}", "dim: 0, vector: true}")),
        "pad to the largest and trim, or use the variant for parts of different sizes",
        "bytes",
    ),
    Entry(
        "collective.dtype",
        Judge.STATIC,
        "element type differs",
        "A collective moves elements as they are. A result of another type is read from the wrong bytes.",
        mend(_PARTIAL_SUM, ("{id: p, shape: [4, 6],", "{id: p, shape: [4, 6], dtype: bf16,")),
        _PARTIAL_SUM,
        "cast in a local task",
        "bytes",
    ),
)
