"""Codes of races, waste and buffers."""

from __future__ import annotations

from dtir.verify.catalogue.entry import WARNING, Entry, Judge, mend

_BUCKET = """
mesh: {axes: [[dp, 2]]}
values:
- {id: g1, shape: [4], dims: [[]], partial: {dp: sum}}
- {id: r1, shape: [4], dims: [[]]}
tasks:
- {id: ar, kind: collective, coll: all_reduce, in: [g1], out: [r1], axes: [dp], reduction: sum, effects: [{kind: read, resource: bucket}]}
- {id: refill, kind: control, in: [], out: [], effects: [{kind: write, resource: bucket}]}
inputs: [g1]
outputs: [r1]
"""

_MAX = """
mesh: {axes: [[tp, 2]]}
values:
- {id: x, shape: [4], dims: [[]]}
- {id: y, shape: [4], dims: [[]]}
- {id: z, shape: [4], dims: [[]]}
tasks:
- {id: top, kind: collective, coll: all_reduce, in: [x], out: [y], axes: [tp], reduction: max}
- {id: act, kind: local, op: relu, in: [y], out: [z]}
inputs: [x]
outputs: [z]
"""

_FUSE = """
mesh: {axes: [[tp, 2]]}
values:
- {id: p, shape: [4, 6], dims: [[], []], partial: {tp: sum}}
- {id: f, shape: [4, 6], dims: [[], []]}
- {id: y, shape: [4, 6], dims: [[], [tp]]}
tasks:
- {id: ar, kind: collective, coll: all_reduce, in: [p], out: [f], axes: [tp], reduction: sum}
- {id: own, kind: local, op: shard, in: [f], out: [y], axis: tp, dim: 1}
inputs: [p]
outputs: [y]
"""

_ROUND = """
mesh: {axes: [[tp, 2]]}
values:
- {id: x, shape: [4, 6], dims: [[tp], []]}
- {id: f, shape: [4, 6], dims: [[], []]}
- {id: y, shape: [4, 6], dims: [[tp], []]}
tasks:
- {id: ag, kind: collective, coll: all_gather, in: [x], out: [f], axes: [tp], dim: 0}
- {id: own, kind: local, op: shard, in: [f], out: [y], axis: tp, dim: 0}
inputs: [x]
outputs: [y]
"""

_HOIST = """
mesh: {axes: [[dp, 2]]}
values:
- {id: g0, shape: [4], dims: [[]], partial: {dp: sum}}
- {id: r0, shape: [4], dims: [[]]}
- {id: g1, shape: [4], dims: [[]], partial: {dp: sum}}
- {id: r1, shape: [4], dims: [[]]}
- {id: a, shape: [4], dims: [[]]}
tasks:
- {id: c0, kind: collective, coll: all_reduce, in: [g0], out: [r0], axes: [dp], reduction: sum}
- {id: c1, kind: collective, coll: all_reduce, in: [g1], out: [r1], axes: [dp], reduction: sum}
- {id: add, kind: local, op: add, in: [r0, r1], out: [a]}
inputs: [g0, g1]
outputs: [a]
"""

_HOISTED = """
mesh: {axes: [[dp, 2]]}
values:
- {id: g0, shape: [4], dims: [[]], partial: {dp: sum}}
- {id: g1, shape: [4], dims: [[]], partial: {dp: sum}}
- {id: s, shape: [4], dims: [[]], partial: {dp: sum}}
- {id: a, shape: [4], dims: [[]]}
tasks:
- {id: add, kind: local, op: add, in: [g0, g1], out: [s]}
- {id: c, kind: collective, coll: all_reduce, in: [s], out: [a], axes: [dp], reduction: sum}
inputs: [g0, g1]
outputs: [a]
"""

_TWICE = """
mesh: {axes: [[fsdp, 2]]}
values:
- {id: w, shape: [4], dims: [[fsdp]]}
- {id: w1, shape: [4], dims: [[]]}
- {id: w2, shape: [4], dims: [[]]}
- {id: y, shape: [4], dims: [[]]}
tasks:
- {id: one, kind: collective, coll: all_gather, in: [w], out: [w1], axes: [fsdp], dim: 0}
- {id: two, kind: collective, coll: all_gather, in: [w], out: [w2], axes: [fsdp], dim: 0}
- {id: use, kind: local, op: mul, in: [w1, w2], out: [y]}
inputs: [w]
outputs: [y]
"""

_BUFFERS = """
mesh: {axes: [[pp, 2]]}
limits: {inflight: 1}
values:
- {id: x, shape: [4], dims: [[]]}
tasks:
- {id: a0, kind: control, in: [], out: [], effects: [{kind: alloc, resource: b0}]}
- {id: u0, kind: control, in: [], out: [], deps: [a0], effects: [{kind: write, resource: b0}]}
- {id: f0, kind: control, in: [], out: [], deps: [u0], effects: [{kind: free, resource: b0}]}
- {id: a1, kind: control, in: [], out: [], deps: [f0], effects: [{kind: alloc, resource: b1}]}
- {id: f1, kind: control, in: [], out: [], deps: [a1], effects: [{kind: free, resource: b1}]}
inputs: [x]
outputs: []
"""

_PEAK = """
mesh: {axes: [[tp, 2]]}
limits: {peak_bytes: 128}
values:
- {id: x, shape: [4, 4], dims: [[], []]}
- {id: h, shape: [4, 4], dims: [[], []]}
- {id: y, shape: [4, 4], dims: [[], []]}
tasks:
- {id: t1, kind: local, op: relu, in: [x], out: [h]}
- {id: t2, kind: local, op: add, in: [x, h], out: [y]}
inputs: [x]
outputs: [y]
"""

ENTRIES = (
    Entry(
        "race.write_write",
        Judge.STATIC,
        "unordered writes",
        "Two tasks write one buffer and nothing says which is last.",
        mend(_BUCKET, ("{kind: read, resource: bucket}", "{kind: write, resource: bucket}")),
        mend(
            _BUCKET,
            ("{kind: read, resource: bucket}", "{kind: write, resource: bucket}"),
            ("kind: control, in: [], out: [],", "kind: control, in: [], out: [], deps: [ar],"),
        ),
        "add a dependency, or a second buffer",
        "race",
    ),
    Entry(
        "race.read_write",
        Judge.STATIC,
        "unordered read and write",
        "A buffer is written while somebody may still read it: a collective that has returned here may not have finished on its peers.",
        _BUCKET,
        mend(_BUCKET, ("kind: control, in: [], out: [],", "kind: control, in: [], out: [], deps: [ar],")),
        "order the write after the last read on all ranks",
        "race",
    ),
    Entry(
        "redundant.collective",
        Judge.STATIC,
        "idempotent on equal copies",
        "All ranks have the result already: the message changes nothing.",
        _MAX,
        mend(_MAX, ("{id: x, shape: [4], dims: [[]]}", "{id: x, shape: [4], dims: [[]], partial: {tp: max}}")),
        "delete it",
        "redundant",
        WARNING,
    ),
    Entry(
        "redundant.fusible",
        Judge.STATIC,
        "two collectives are one",
        "A reduction of which each rank keeps one block sends twice what a reduce_scatter would.",
        _FUSE,
        mend(
            _FUSE,
            ("- {id: f, shape: [4, 6], dims: [[], []]}\n", ""),
            (
                "coll: all_reduce, in: [p], out: [f], axes: [tp]",
                "coll: reduce_scatter, in: [p], out: [y], axes: [tp], dim: 1",
            ),
            ("\n- {id: own, kind: local, op: shard, in: [f], out: [y], axis: tp, dim: 1}", ""),
        ),
        "use reduce_scatter: it saves (n-1)/n of the message on every rank",
        "redundant",
        WARNING,
    ),
    Entry(
        "redundant.roundtrip",
        Judge.STATIC,
        "undo",
        "What was gathered is cut again into the same blocks: nothing came of the message.",
        _ROUND,
        mend(
            _ROUND, ("dims: [[tp], []]}\ntasks", "dims: [[], [tp]]}\ntasks"), ("axis: tp, dim: 0", "axis: tp, dim: 1")
        ),
        "delete both",
        "redundant",
        WARNING,
    ),
    Entry(
        "redundant.hoistable",
        Judge.STATIC,
        "linear op could move before the reduction",
        "Reduced values are only added. Added first, one reduction does for all.",
        _HOIST,
        _HOISTED,
        "add first, reduce once",
        "redundant",
        WARNING,
    ),
    Entry(
        "redundant.repeated",
        Judge.STATIC,
        "same collective twice",
        "The same message is sent twice for the same result.",
        _TWICE,
        mend(
            _TWICE,
            ("- {id: w2, shape: [4], dims: [[]]}\n", ""),
            ("- {id: two, kind: collective, coll: all_gather, in: [w], out: [w2], axes: [fsdp], dim: 0}\n", ""),
            ("in: [w1, w2]", "in: [w1, w1]"),
        ),
        "reuse the first result, or say that it is gathered anew to save memory",
        "redundant",
        WARNING,
    ),
    Entry(
        "memory.leak",
        Judge.STATIC,
        "allocated, never freed",
        "The buffer stays until the program ends. One more every step, and memory runs out.",
        mend(
            _BUFFERS,
            ("\n- {id: f1, kind: control, in: [], out: [], deps: [a1], effects: [{kind: free, resource: b1}]}", ""),
        ),
        _BUFFERS,
        "free after the last use",
        "memory",
    ),
    Entry(
        "memory.double_free",
        Judge.STATIC,
        "freed twice",
        "The second free gives back memory that may belong to somebody else by then.",
        mend(
            _BUFFERS,
            (
                "- {id: a1, kind: control, in: [], out: [], deps: [f0],",
                "- {id: again, kind: control, in: [], out: [], deps: [f0], effects: [{kind: free, resource: b0}]}\n- {id: a1, kind: control, in: [], out: [], deps: [again],",
            ),
        ),
        _BUFFERS,
        "free where the users join",
        "memory",
    ),
    Entry(
        "memory.use_after_free",
        Judge.STATIC,
        "used after free",
        "A task uses memory that was given back, or may have been.",
        mend(
            _BUFFERS,
            (
                "- {id: f0, kind: control, in: [], out: [], deps: [u0],",
                "- {id: f0, kind: control, in: [], out: [], deps: [a0],",
            ),
        ),
        _BUFFERS,
        "free after the last use, and say so by a dependency",
        "memory",
    ),
    Entry(
        "memory.inflight",
        Judge.STATIC,
        "too many live buffers",
        "Buffers of transfers that are long done are kept, so that more are alive than the program planned for.",
        mend(
            _BUFFERS,
            ("- {id: f0, kind: control, in: [], out: [], deps: [u0], effects: [{kind: free, resource: b0}]}\n", ""),
            ("deps: [f0], effects", "deps: [u0], effects"),
            (
                "effects: [{kind: free, resource: b1}]}",
                "effects: [{kind: free, resource: b1}]}\n- {id: f0, kind: control, in: [], out: [], deps: [f1], effects: [{kind: free, resource: b0}]}",
            ),
        ),
        _BUFFERS,
        "wait for and free each as it completes",
        "memory",
    ),
    Entry(
        "memory.peak",
        Judge.STATIC,
        "peak bytes over budget",
        "At some task the live values of a rank need more memory than it has.",
        _PEAK,
        mend(_PEAK, ("peak_bytes: 128", "peak_bytes: 192")),
        "reorder, recompute, or split over more ranks",
        "memory",
        WARNING,
    ),
)
