"""Codes of pipelines, accumulation and expert routing."""

from __future__ import annotations

from dtir.verify.catalogue.entry import Entry, Judge, mend

_PIPE = """
mesh: {axes: [[pp, 2]]}
attributes: {schedule: 1f1b}
values:
- {id: x, shape: [2], dims: [[]], at: {pp: 0}}
tasks:
- {id: F00, kind: control, in: [], out: [], ranks: [0], pp: {stage: 0, mb: 0, phase: F}}
- {id: F01, kind: control, in: [], out: [], ranks: [0], pp: {stage: 0, mb: 1, phase: F}}
- {id: F02, kind: control, in: [], out: [], ranks: [0], pp: {stage: 0, mb: 2, phase: F}}
- {id: F10, kind: control, in: [], out: [], ranks: [1], deps: [F00], pp: {stage: 1, mb: 0, phase: F}}
- {id: F11, kind: control, in: [], out: [], ranks: [1], deps: [F01], pp: {stage: 1, mb: 1, phase: F}}
- {id: F12, kind: control, in: [], out: [], ranks: [1], deps: [F02], pp: {stage: 1, mb: 2, phase: F}}
- {id: B10, kind: control, in: [], out: [], ranks: [1], deps: [F10], pp: {stage: 1, mb: 0, phase: B}}
- {id: B11, kind: control, in: [], out: [], ranks: [1], deps: [F11], pp: {stage: 1, mb: 1, phase: B}}
- {id: B12, kind: control, in: [], out: [], ranks: [1], deps: [F12], pp: {stage: 1, mb: 2, phase: B}}
- {id: B00, kind: control, in: [], out: [], ranks: [0], deps: [F00, B10], pp: {stage: 0, mb: 0, phase: B}}
- {id: B01, kind: control, in: [], out: [], ranks: [0], deps: [F01, B11], pp: {stage: 0, mb: 1, phase: B}}
- {id: B02, kind: control, in: [], out: [], ranks: [0], deps: [F02, B12], pp: {stage: 0, mb: 2, phase: B}}
inputs: [x]
outputs: []
issue: {0: [F00, F01, B00, F02, B01, B02], 1: [F10, B10, F11, B11, F12, B12]}
"""

_SYNC = """
mesh: {axes: [[dp, 2]]}
values:
- {id: x0, shape: [4, 3], dims: [[dp], []]}
- {id: x1, shape: [4, 3], dims: [[dp], []]}
- {id: g0, shape: [3], dims: [[]], partial: {dp: sum}}
- {id: g1, shape: [3], dims: [[]], partial: {dp: sum}}
- {id: a, shape: [3], dims: [[]], partial: {dp: sum}}
- {id: y, shape: [3], dims: [[]]}
tasks:
- {id: B0, kind: local, op: sum, in: [x0], out: [g0], dims: [0], pp: {stage: 0, mb: 0, phase: B}}
- {id: B1, kind: local, op: sum, in: [x1], out: [g1], dims: [0], pp: {stage: 0, mb: 1, phase: B}}
- {id: acc, kind: local, op: add, in: [g0, g1], out: [a]}
- {id: ar, kind: collective, coll: all_reduce, in: [a], out: [y], axes: [dp], reduction: sum, sync: true}
inputs: [x0, x1]
outputs: [y]
"""

_LOST = """
mesh: {axes: [[dp, 2]]}
values:
- {id: g0, shape: [4], dims: [[]], role: grad}
- {id: g1, shape: [4], dims: [[]], role: grad}
- {id: a, shape: [4], dims: [[]]}
tasks:
- {id: acc, kind: local, op: identity, in: [g1], out: [a]}
inputs: [g0, g1]
outputs: [a]
"""

_MOE = """
mesh: {axes: [[ep, 2]]}
values:
- {id: x, shape: [8, 3], dims: [[ep], []]}
- {id: w, shape: [2], dims: [[ep]]}
- {id: d, shape: [8, 3], dims: [[], []], varying: [ep]}
- {id: h, shape: [8, 3], dims: [[], []], varying: [ep]}
- {id: y, shape: [8, 3], dims: [[ep], []]}
tasks:
- {id: out, kind: collective, coll: moe_dispatch, in: [x], out: [d], axes: [ep], route: [0, 1, 1, 1, 0, 1, 0, 0], send_splits: [[1, 3], [3, 1]], recv_splits: [[1, 3], [3, 1]]}
- {id: ffn, kind: local, op: moe_expert, in: [d, w], out: [h], route: [0, 1, 1, 1, 0, 1, 0, 0]}
- {id: back, kind: collective, coll: moe_combine, in: [h], out: [y], axes: [ep], send_splits: [[1, 3], [3, 1]], recv_splits: [[1, 3], [3, 1]]}
inputs: [x, w]
outputs: [y]
"""

_EARLY = mend(_SYNC, ("in: [g0, g1], out: [a]}", "in: [g0, g0], out: [a]}"))

ENTRIES = (
    Entry(
        "pipeline.order",
        Judge.ISSUE,
        "backward before forward",
        "A stage runs a backward before the forward it needs: it waits for ever, or uses what an earlier step left.",
        mend(_PIPE, ("B00, F02, B01, B02]", "B00, B02, B01, F02]")),
        _PIPE,
        "follow F(s, m), F(s+1, m), B(s+1, m), B(s, m)",
        "pipeline",
    ),
    Entry(
        "pipeline.inflight",
        Judge.ISSUE,
        "more live microbatches than planned",
        "A stage holds the activations of more microbatches than its schedule allows, and runs out of memory.",
        mend(_PIPE, ("F01, B00, F02, B01, B02]", "F01, F02, B00, B01, B02]")),
        _PIPE,
        "start the backward earlier",
        "pipeline",
    ),
    Entry(
        "pipeline.microbatch_lost",
        Judge.STATIC,
        "microbatch without backward",
        "A microbatch goes forward and never comes back, so that its gradient is missing and its activations stay.",
        mend(
            _PIPE,
            (
                "- {id: B02, kind: control, in: [], out: [], ranks: [0], deps: [F02, B12], pp: {stage: 0, mb: 2, phase: B}}\n",
                "",
            ),
            ("B01, B02]", "B01]"),
        ),
        _PIPE,
        "add the backward tasks",
        "pipeline",
    ),
    Entry(
        "pipeline.stage_map",
        Judge.STATIC,
        "stage map not a function",
        "A stage runs on different ranks for different microbatches, or a layer belongs to two stages: weights are where they are not used.",
        mend(
            _PIPE,
            (
                "ranks: [1], deps: [F12], pp: {stage: 1, mb: 2, phase: B}",
                "ranks: [0], deps: [F12], pp: {stage: 1, mb: 2, phase: B}",
            ),
            ("F12, B12]}", "F12]}"),
            ("B01, B02]", "B01, B12, B02]"),
        ),
        _PIPE,
        "one stage for every layer, one set of ranks for every stage",
        "pipeline",
    ),
    Entry(
        "pipeline.warmup",
        Judge.ISSUE,
        "warm-up length wrong",
        "With too few forwards first the later stages idle, with too many memory grows, and with fewer microbatches than stages a rank waits for ever.",
        mend(_PIPE, ("[F00, F01, B00, F02, B01, B02]", "[F00, B00, F01, B01, F02, B02]")),
        _PIPE,
        "warm up with min(m, p - r - 1) forwards",
        "pipeline",
    ),
    Entry(
        "accumulate.lost",
        Judge.BOTH,
        "a contribution reaches no output",
        "A gradient is computed and dropped: training goes on with part of the batch.",
        _LOST,
        mend(_LOST, ("op: identity, in: [g1]", "op: add, in: [g0, g1]")),
        "accumulate: acc = acc + g",
        "pending",
    ),
    Entry(
        "accumulate.early_reduce",
        Judge.BOTH,
        "reduced before the last microbatch",
        "The reduction runs before all microbatches have added their share; what comes later is never reduced.",
        _EARLY,
        _SYNC,
        "make the reduction depend on all backward tasks of the stage",
        "pipeline",
    ),
    Entry(
        "moe.token_loss",
        Judge.BOTH,
        "tokens not sent",
        "The splits do not follow the route: tokens of a busy expert are cut off, and nobody declared that they may be.",
        mend(
            _MOE,
            (
                "send_splits: [[1, 3], [3, 1]], recv_splits: [[1, 3], [3, 1]]}\n- {id: ffn",
                "send_splits: [[1, 2], [2, 1]], recv_splits: [[1, 2], [2, 1]]}\n- {id: ffn",
            ),
        ),
        _MOE,
        "take the splits from the route; declare a capacity and what it drops",
        "flow",
    ),
    Entry(
        "moe.split_mismatch",
        Judge.BOTH,
        "send and receive splits disagree",
        "One side sends another number of rows than the other expects: the exchange hangs, or rows are read as others.",
        mend(_MOE, ("recv_splits: [[1, 3], [3, 1]]}\n- {id: ffn", "recv_splits: [[1, 3], [2, 1]]}\n- {id: ffn")),
        _MOE,
        "exchange the counts, or derive both from one route",
        "flow",
    ),
    Entry(
        "moe.combine_order",
        Judge.BOTH,
        "tokens return in another order",
        "Rows come back sorted by expert, and are taken for rows in the order of tokens.",
        mend(
            _MOE, ("recv_splits: [[1, 3], [3, 1]]}\ninputs", "recv_splits: [[1, 3], [3, 1]], unpermute: false}\ninputs")
        ),
        _MOE,
        "apply the inverse of the dispatch's permutation",
        "flow",
    ),
)
