"""Codes of reshards, transfers, order and deadlock."""

from __future__ import annotations

from dtir.verify.catalogue.entry import WARNING, Entry, Judge, mend

_RESHARD = """
mesh: {axes: [[o, 2]]}
values:
- {id: w, shape: [8, 3], dims: [[o], []]}
- {id: y, shape: [8, 3], dims: [[o], []]}
tasks:
- {id: load, kind: reshard, in: [w], out: [y], regions: [{box: [[0, 4], [0, 3]]}, {box: [[4, 8], [0, 3]]}]}
inputs: [w]
outputs: [y]
"""

_RESHARD_PENDING = """
mesh: {axes: [[tp, 2]]}
values:
- {id: p, shape: [8, 6], dims: [[], []], partial: {tp: sum}}
- {id: y, shape: [8, 6], dims: [[tp], []]}
tasks:
- {id: move, kind: reshard, in: [p], out: [y]}
inputs: [p]
outputs: [y]
"""

_HOP = """
mesh: {axes: [[pp, 4]]}
values:
- {id: a, shape: [4], dims: [[]], at: {pp: 1}}
- {id: b, shape: [4], dims: [[]], at: {pp: 2}}
- {id: y, shape: [4], dims: [[]], at: {pp: 2}}
tasks:
- {id: hop, kind: p2p, src: 1, dst: 2, in: [a], out: [b], bytes: 16}
- {id: next, kind: local, op: relu, in: [b], out: [y]}
inputs: [a]
outputs: [y]
"""

_RING = """
mesh: {axes: [[cp, 3]]}
values:
- {id: kv, shape: [6], dims: [[cp]]}
- {id: got, shape: [2], dims: [[]], varying: [cp]}
tasks:
- {id: turn, kind: p2p, pairs: [[0, 1], [1, 2], [2, 0]], in: [kv], out: [got]}
inputs: [kv]
outputs: [got]
"""

_PAIR = """
mesh: {axes: [[pp, 2]]}
values:
- {id: u, shape: [4], dims: [[]], at: {pp: 0}}
- {id: ur, shape: [4], dims: [[]], at: {pp: 1}}
- {id: v, shape: [4], dims: [[]], at: {pp: 1}}
- {id: vr, shape: [4], dims: [[]], at: {pp: 0}}
tasks:
- {id: down, kind: p2p, src: 0, dst: 1, in: [u], out: [ur], channel: fwd}
- {id: up, kind: p2p, src: 1, dst: 0, in: [v], out: [vr], channel: bwd}
inputs: [u, v]
outputs: []
issue: {0: [down, up], 1: [down, up]}
"""

_CHANNEL = """
mesh: {axes: [[pp, 2]]}
values:
- {id: u, shape: [4], dims: [[]], at: {pp: 0}}
- {id: ur, shape: [4], dims: [[]], at: {pp: 1}}
- {id: v, shape: [4], dims: [[]], at: {pp: 0}}
- {id: vr, shape: [4], dims: [[]], at: {pp: 1}}
tasks:
- {id: one, kind: p2p, src: 0, dst: 1, in: [u], out: [ur]}
- {id: two, kind: p2p, src: 0, dst: 1, in: [v], out: [vr]}
inputs: [u, v]
outputs: []
"""

_TWO = """
mesh: {axes: [[tp, 2]]}
values:
- {id: x, shape: [4], dims: [[]], partial: {tp: sum}}
- {id: X, shape: [4], dims: [[]]}
- {id: u, shape: [4], dims: [[tp]]}
- {id: U, shape: [4], dims: [[]]}
tasks:
- {id: ar, kind: collective, coll: all_reduce, in: [x], out: [X], axes: [tp], reduction: sum}
- {id: ag, kind: collective, coll: all_gather, in: [u], out: [U], axes: [tp], dim: 0}
inputs: [x, u]
outputs: [X, U]
issue: {0: [ar, ag], 1: [ar, ag]}
"""

_FREE = mend(_TWO, ("issue: {0: [ar, ag], 1: [ar, ag]}", "strict_order: true"))

ENTRIES = (
    Entry(
        "reshard.coverage",
        Judge.BOTH,
        "elements never written",
        "Some elements of the destination keep whatever was in memory. A load on fewer ranks that still reads one piece each does this.",
        mend(_RESHARD, ("[[0, 4], [0, 3]]", "[[0, 2], [0, 3]]"), ("[[4, 8], [0, 3]]", "[[4, 6], [0, 3]]")),
        _RESHARD,
        "add the missing regions: the intersections of source and destination blocks",
        "cover",
    ),
    Entry(
        "reshard.overlap",
        Judge.BOTH,
        "elements written twice",
        "Two regions write the same elements from different places; the one that comes last wins.",
        mend(
            _RESHARD,
            ("{box: [[0, 4], [0, 3]]}", "{box: [[0, 5], [0, 3]]}"),
            ("{box: [[4, 8], [0, 3]]}", "{box: [[4, 8], [0, 3]], from: [[3, 7], [0, 3]]}"),
        ),
        _RESHARD,
        "make the ranges disjoint, or read both from the same indices",
        "cover",
    ),
    Entry(
        "reshard.partial",
        Judge.BOTH,
        "copy drops a pending sum",
        "A copy moves one share and calls it the value.",
        _RESHARD_PENDING,
        mend(
            _RESHARD_PENDING,
            (
                "kind: reshard, in: [p], out: [y]",
                "kind: collective, coll: reduce_scatter, in: [p], out: [y], axes: [tp], dim: 0, reduction: sum",
            ),
        ),
        "reduce in place of the reshard, or keep the result pending",
        "pending",
    ),
    Entry(
        "reshard.bytes",
        Judge.STATIC,
        "volume not conserved",
        "A region receives another number of elements than it sends, so that the transfer is cut off or runs over.",
        mend(_RESHARD, ("{box: [[4, 8], [0, 3]]}", "{box: [[4, 8], [0, 3]], from: [[4, 6], [0, 3]]}")),
        _RESHARD,
        "recompute the regions from block intersections",
        "bytes",
    ),
    Entry(
        "p2p.unmatched",
        Judge.ISSUE,
        "send without receive",
        "One end issues the transfer and the other never does: it waits for ever.",
        mend(_PAIR, ("0: [down, up]", "0: [down]")),
        _PAIR,
        "issue it on both ranks, or drop it",
        "lane",
    ),
    Entry(
        "p2p.bytes",
        Judge.STATIC,
        "sizes differ",
        "The number of bytes is not that of what the source holds: the receive is too short, or waits for more.",
        mend(_HOP, ("bytes: 16", "bytes: 8")),
        _HOP,
        "derive both sides from one value",
        "bytes",
    ),
    Entry(
        "p2p.channel_ambiguous",
        Judge.STATIC,
        "two unordered transfers on one (src,dst,channel)",
        "Messages of one channel are matched in order. With no order between them, each side may take one for the other.",
        _CHANNEL,
        mend(_CHANNEL, ("in: [v], out: [vr]}", "in: [v], out: [vr], deps: [one]}")),
        "use different channels, or add a dependency",
        "lane",
    ),
    Entry(
        "p2p.wrong_peer",
        Judge.BOTH,
        "destination is not an owner",
        "The data arrive at a rank that does not hold the result, and the one that does gets nothing.",
        mend(_HOP, ("src: 1, dst: 2", "src: 1, dst: 3")),
        _HOP,
        "take the peers from the owners of both sides",
        "lane",
    ),
    Entry(
        "p2p.unfilled",
        Judge.BOTH,
        "owner receives nothing",
        "A permutation that is not closed leaves an owner without data: it reads zeros, or what was there before.",
        mend(_RING, ("[[0, 1], [1, 2], [2, 0]]", "[[0, 1], [1, 2]]")),
        _RING,
        "close the permutation, or shrink the owners",
        "owner",
    ),
    Entry(
        "p2p.pairs",
        Judge.STATIC,
        "pair list not one-to-one",
        "Two pairs with one destination overwrite each other.",
        mend(_RING, ("[2, 0]]", "[2, 0], [0, 2]]")),
        _RING,
        "one pair for every destination, and one for every source",
        "lane",
    ),
    Entry(
        "peer.endpoints",
        Judge.STATIC,
        "endpoints invalid",
        "A transfer has two different ends, which are the ranks of its task.",
        mend(_HOP, ("src: 1, dst: 2", "src: 1, dst: 2, ranks: [1, 2, 3]")),
        _HOP,
        "two different ranks of the mesh, the same as the task's",
        "lane",
    ),
    Entry(
        "order.ambiguous",
        Judge.STATIC,
        "nothing fixes the order",
        "Each rank may run the two in the order it likes. When two ranks choose differently, both wait for ever.",
        _FREE,
        mend(_FREE, ("dim: 0}", "dim: 0, deps: [ar]}")),
        "add a dependency, or attach issue lists",
        "lane",
        WARNING,
    ),
    Entry(
        "order.mismatch",
        Judge.ISSUE,
        "ranks order the same operations differently",
        "Two ranks enter the same two collectives in opposite orders, and wait for each other.",
        mend(_TWO, ("1: [ar, ag]", "1: [ag, ar]")),
        _TWO,
        "sort the list of every rank by one global key",
        "lane",
    ),
    Entry(
        "deadlock.cycle",
        Judge.ISSUE,
        "circular wait",
        "Ranks wait for each other in a circle. No timing and no buffer gets them out.",
        mend(_PAIR, ("0: [down, up], 1: [down, up]", "0: [up, down], 1: [down, up]")),
        _PAIR,
        "reorder one side, group the pair, or alternate even and odd ranks",
        "lane",
    ),
    Entry(
        "deadlock.buffer_dependent",
        Judge.ISSUE,
        "works only with buffering",
        "Every rank sends before it receives. Small messages fit a buffer and pass; larger ones hang.",
        mend(_PAIR, ("0: [down, up], 1: [down, up]", "0: [down, up], 1: [up, down]")),
        mend(_PAIR, ("0: [down, up], 1: [down, up]", "0: [[down, up]], 1: [[up, down]]")),
        "post receives first, group send and receive, or use a combined one",
        "lane",
    ),
    Entry(
        "deadlock.missing_rank",
        Judge.ISSUE,
        "a participant never arrives",
        "A collective needs all its members. One that has no more data, or takes another branch, leaves the others waiting.",
        mend(_TWO, ("1: [ar, ag]", "1: [ar]")),
        _TWO,
        "join with empty data, agree on the count first, or use a smaller group",
        "lane",
    ),
)
