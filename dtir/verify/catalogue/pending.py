"""Codes of pending reductions and of factors."""

from __future__ import annotations

from dtir.verify.catalogue.entry import Entry, Judge, mend

_DROPPED = """
mesh: {axes: [[dp, 3]]}
values:
- {id: x, shape: [6, 4], dims: [[dp], []]}
- {id: gy, shape: [6, 5], dims: [[dp], []]}
- {id: gw, shape: [4, 5], dims: [[], []]}
tasks:
- {id: wgrad, kind: local, op: einsum, spec: "bi,bo->io", in: [x, gy], out: [gw]}
inputs: [x, gy]
outputs: [gw]
"""

_FABRICATED = """
mesh: {axes: [[tp, 2]]}
values:
- {id: x, shape: [4], dims: [[]]}
- {id: p, shape: [4], dims: [[]], partial: {tp: sum}}
- {id: y, shape: [4], dims: [[]]}
tasks:
- {id: t, kind: local, op: identity, in: [x], out: [p]}
- {id: ar, kind: collective, coll: all_reduce, in: [p], out: [y], axes: [tp], reduction: sum}
inputs: [x]
outputs: [y]
"""

_NONLINEAR = """
mesh: {axes: [[tp, 2]]}
values:
- {id: x, shape: [4, 6], dims: [[], [tp]]}
- {id: w, shape: [6, 5], dims: [[tp], []]}
- {id: p, shape: [4, 5], dims: [[], []], partial: {tp: sum}}
- {id: h, shape: [4, 5], dims: [[], []]}
- {id: y, shape: [4, 5], dims: [[], []]}
tasks:
- {id: mm, kind: local, op: matmul, in: [x, w], out: [p]}
- {id: ar, kind: collective, coll: all_reduce, in: [p], out: [h], axes: [tp], reduction: sum}
- {id: act, kind: local, op: gelu, in: [p], out: [y]}
inputs: [x, w]
outputs: [y]
"""

_PRODUCT = """
mesh: {axes: [[dp, 2]]}
values:
- {id: x, shape: [8, 4], dims: [[dp], []]}
- {id: g, shape: [4], dims: [[]], partial: {dp: sum}}
- {id: n, shape: [4], dims: [[]], partial: {dp: sum}}
- {id: y, shape: [4], dims: [[]]}
tasks:
- {id: s, kind: local, op: sum, in: [x], out: [g], dims: [0]}
- {id: sq, kind: local, op: mul, in: [g, g], out: [n]}
- {id: ar, kind: collective, coll: all_reduce, in: [n], out: [y], axes: [dp], reduction: sum}
inputs: [x]
outputs: [y]
"""

_ADD = """
mesh: {axes: [[tp, 2]]}
values:
- {id: x, shape: [4, 6], dims: [[], [tp]]}
- {id: w, shape: [6, 5], dims: [[tp], []]}
- {id: bias, shape: [5], dims: [[]]}
- {id: p, shape: [4, 5], dims: [[], []], partial: {tp: sum}}
- {id: q, shape: [4, 5], dims: [[], []], partial: {tp: sum}}
- {id: y, shape: [4, 5], dims: [[], []]}
tasks:
- {id: mm, kind: local, op: matmul, in: [x, w], out: [p]}
- {id: b, kind: local, op: add, in: [p, bias], out: [q]}
- {id: ar, kind: collective, coll: all_reduce, in: [q], out: [y], axes: [tp], reduction: sum}
inputs: [x, w, bias]
outputs: [y]
"""

_COMMUTE = """
mesh: {axes: [[sp, 2]]}
values:
- {id: x, shape: [6, 4], dims: [[sp], []]}
- {id: m, shape: [4], dims: [[]], partial: {sp: max}}
- {id: s, shape: [], dims: [], partial: {sp: max}}
- {id: y, shape: [], dims: []}
tasks:
- {id: top, kind: local, op: max, in: [x], out: [m], dims: [0]}
- {id: add, kind: local, op: sum, in: [m], out: [s], dims: [0]}
- {id: ar, kind: collective, coll: all_reduce, in: [s], out: [y], axes: [sp], reduction: max}
inputs: [x]
outputs: [y]
"""

_TWO_KINDS = """
mesh: {axes: [[dp, 2], [tp, 3]]}
values:
- {id: x, shape: [4], dims: [[]], partial: {dp: sum, tp: max}}
- {id: y, shape: [4], dims: [[]], partial: {tp: max}}
tasks:
- {id: ar, kind: collective, coll: all_reduce, in: [x], out: [y], axes: [dp], reduction: sum}
inputs: [x]
outputs: []
"""

_OUTPUT = """
mesh: {axes: [[dp, 2]]}
values:
- {id: x, shape: [8, 4], dims: [[dp], []]}
- {id: g, shape: [4], dims: [[]], partial: {dp: sum}}
tasks:
- {id: s, kind: local, op: sum, in: [x], out: [g], dims: [0]}
inputs: [x]
outputs: [g]
"""

_MEAN = """
mesh: {axes: [[dp, 3]]}
values:
- {id: x, shape: [7, 2], dims: [[dp], []], sizes: {0: [3, 2, 2]}}
- {id: m, shape: [2], dims: [[]], partial: {dp: sum}}
- {id: y, shape: [2], dims: [[]]}
tasks:
- {id: mean, kind: local, op: mean, in: [x], out: [m], dims: [0]}
- {id: ar, kind: collective, coll: all_reduce, in: [m], out: [y], axes: [dp], reduction: avg}
inputs: [x]
outputs: [y]
"""

_FACTOR = """
mesh: {axes: [[dp, 3]]}
values:
- {id: x, shape: [6, 4], dims: [[dp], []]}
- {id: g, shape: [4], dims: [[]], partial: {dp: sum}}
- {id: y, shape: [4], dims: [[]]}
tasks:
- {id: s, kind: local, op: sum, in: [x], out: [g], dims: [0]}
- {id: ar, kind: collective, coll: all_reduce, in: [g], out: [y], axes: [dp], reduction: avg}
inputs: [x]
outputs: [y]
"""

_SCALES = """
mesh: {axes: [[dp, 2]]}
values:
- {id: x, shape: [8, 4], dims: [[dp], []]}
- {id: r, shape: [4], dims: [[]]}
- {id: g, shape: [4], dims: [[]], partial: {dp: sum}}
- {id: a, shape: [4], dims: [[]]}
- {id: y, shape: [4], dims: [[]]}
tasks:
- {id: s, kind: local, op: sum, in: [x], out: [g], dims: [0]}
- {id: ar, kind: collective, coll: all_reduce, in: [g], out: [a], axes: [dp], reduction: avg}
- {id: add, kind: local, op: add, in: [a, r], out: [y]}
inputs: [x, r]
outputs: [y]
"""

_WEIGHT = """
mesh: {axes: [[dp, 2]]}
values:
- {id: loss, shape: [], dims: [], varying: [dp]}
- {id: tokens, shape: [], dims: [], varying: [dp]}
- {id: mean, shape: [], dims: [], varying: [dp]}
- {id: y, shape: [], dims: []}
tasks:
- {id: div, kind: local, op: div, in: [loss, tokens], out: [mean]}
- {id: ar, kind: collective, coll: all_reduce, in: [mean], out: [y], axes: [dp], reduction: avg}
inputs: [loss, tokens]
outputs: [y]
"""

_WEIGHT_GOOD = """
mesh: {axes: [[dp, 2]]}
values:
- {id: loss, shape: [], dims: [], partial: {dp: sum}}
- {id: tokens, shape: [], dims: [], partial: {dp: sum}}
- {id: total, shape: [], dims: []}
- {id: count, shape: [], dims: []}
- {id: y, shape: [], dims: []}
tasks:
- {id: ar1, kind: collective, coll: all_reduce, in: [loss], out: [total], axes: [dp], reduction: sum}
- {id: ar2, kind: collective, coll: all_reduce, in: [tokens], out: [count], axes: [dp], reduction: sum}
- {id: div, kind: local, op: div, in: [total, count], out: [y]}
inputs: [loss, tokens]
outputs: [y]
"""

_SUM_FIRST = (
    "{id: m, shape: [4], dims: [[]], partial: {sp: max}}",
    "{id: m, shape: [4], dims: [[]], partial: {sp: max}}\n- {id: f, shape: [4], dims: [[]]}",
)

ENTRIES = (
    Entry(
        "partial.dropped",
        Judge.BOTH,
        "reduction forgotten",
        "Every rank has its own share of a sum and takes it for the sum: copies differ, and all are wrong.",
        _DROPPED,
        mend(
            _DROPPED,
            ("- {id: gw,", "- {id: gp, shape: [4, 5], dims: [[], []], partial: {dp: sum}}\n- {id: gw,"),
            (
                "out: [gw]}",
                "out: [gp]}\n- {id: ar, kind: collective, coll: all_reduce, in: [gp], out: [gw], axes: [dp], reduction: sum}",
            ),
        ),
        "insert an all_reduce (to replicated) or a reduce_scatter (to split)",
        "pending",
    ),
    Entry(
        "partial.fabricated",
        Judge.BOTH,
        "pending state invented",
        "Equal copies are declared to be shares of a sum. The reduction that follows multiplies the value by the number of ranks.",
        _FABRICATED,
        mend(_FABRICATED, ("op: identity, in: [x]", "op: mask, axis: tp, in: [x]")),
        "keep it on coordinate 0 only (mask), or declare it replicated",
        "pending",
    ),
    Entry(
        "partial.nonlinear",
        Judge.BOTH,
        "non-linear op on a pending value",
        "f(a + b) is not f(a) + f(b). Applied to shares, the operator gives something that no later sum can repair.",
        _NONLINEAR,
        mend(_NONLINEAR, ("op: gelu, in: [p]", "op: gelu, in: [h]")),
        "reduce before the operator",
        "pending",
    ),
    Entry(
        "partial.product",
        Judge.BOTH,
        "product of two pending values",
        "The product of two sums is not the sum of the products of their shares: the mixed terms are lost.",
        _PRODUCT,
        mend(
            _PRODUCT,
            ("- {id: n, shape: [4], dims: [[]], partial: {dp: sum}}", "- {id: f, shape: [4], dims: [[]]}"),
            ("in: [g, g], out: [n]", "in: [f, f], out: [y]"),
            (
                "- {id: sq,",
                "- {id: ar, kind: collective, coll: all_reduce, in: [g], out: [f], axes: [dp], reduction: sum}\n- {id: sq,",
            ),
            ("\n- {id: ar, kind: collective, coll: all_reduce, in: [n], out: [y], axes: [dp], reduction: sum}", ""),
        ),
        "reduce one factor first",
        "pending",
    ),
    Entry(
        "partial.add_replicated",
        Judge.BOTH,
        "replicated addend counted n times",
        "Every rank adds the same bias to its share, so that the sum has it once for every rank.",
        _ADD,
        mend(
            _ADD,
            (
                "- {id: q, shape: [4, 5], dims: [[], []], partial: {tp: sum}}",
                "- {id: q, shape: [4, 5], dims: [[], []]}",
            ),
            ("in: [p, bias], out: [q]", "in: [q, bias], out: [y]"),
            ("in: [q], out: [y]", "in: [p], out: [q]"),
            ("- {id: b, kind: local, op: add, in: [q, bias], out: [y]}\n", ""),
            ("inputs: [x", "- {id: b, kind: local, op: add, in: [q, bias], out: [y]}\ninputs: [x"),
        ),
        "add after the reduction, or on coordinate 0 only (mask)",
        "pending",
    ),
    Entry(
        "partial.reduction_commute",
        Judge.BOTH,
        "reductions do not commute",
        "The sum of maxima is not the maximum of sums. Two reductions of different kinds have an order.",
        _COMMUTE,
        mend(
            _COMMUTE,
            _SUM_FIRST,
            ("- {id: s, shape: [], dims: [], partial: {sp: max}}\n", ""),
            ("in: [m], out: [s], dims: [0]", "in: [f], out: [y], dims: [0]"),
            (
                "- {id: add,",
                "- {id: ar, kind: collective, coll: all_reduce, in: [m], out: [f], axes: [sp], reduction: max}\n- {id: add,",
            ),
            ("\n- {id: ar, kind: collective, coll: all_reduce, in: [s], out: [y], axes: [sp], reduction: max}", ""),
        ),
        "finish the pending reduction first",
        "pending",
    ),
    Entry(
        "partial.mixed_ops",
        Judge.STATIC,
        "two reductions pending",
        "A value that waits for a sum along one axis and for a maximum along another has no value: it depends on which comes first.",
        _TWO_KINDS,
        mend(_TWO_KINDS, ("{dp: sum, tp: max}", "{dp: max, tp: max}"), ("reduction: sum", "reduction: max")),
        "finish one before starting the other",
        "pending",
    ),
    Entry(
        "partial.output",
        Judge.STATIC,
        "program output still pending",
        "The caller gets shares. Whoever uses one of them as the value is wrong.",
        _OUTPUT,
        mend(
            _OUTPUT,
            ("tasks:", "- {id: y, shape: [4], dims: [[]]}\ntasks:"),
            (
                "inputs: [x]",
                "- {id: ar, kind: collective, coll: all_reduce, in: [g], out: [y], axes: [dp], reduction: sum}\ninputs: [x]",
            ),
            ("outputs: [g]", "outputs: [y]"),
        ),
        "reduce before returning",
        "pending",
    ),
    Entry(
        "partial.uneven_mean",
        Judge.BOTH,
        "mean of unequal parts",
        "The average of averages weighs small shards as much as large ones.",
        _MEAN,
        mend(
            _MEAN,
            ("shape: [7, 2], dims: [[dp], []], sizes: {0: [3, 2, 2]}", "shape: [6, 2], dims: [[dp], []]"),
            (
                "{id: m, shape: [2], dims: [[]], partial: {dp: sum}}",
                "{id: m, shape: [2], dims: [[]], partial: {dp: sum}, scale: 3}",
            ),
        ),
        "sum and count separately, reduce both, divide once",
        "scale",
    ),
    Entry(
        "scale.factor",
        Judge.BOTH,
        "value is k times the specification",
        "The layout is right and the number is not: an average stands where a sum belongs, or a reduction runs over copies.",
        _FACTOR,
        mend(_FACTOR, ("reduction: avg", "reduction: sum")),
        "the factor is a product of axis sizes: remove or add that division once",
        "scale",
    ),
    Entry(
        "scale.mixed",
        Judge.BOTH,
        "different factors meet",
        "Values with different factors are added, or a factor enters an operator that does not pass it on: no later division repairs both.",
        _SCALES,
        mend(_SCALES, ("reduction: avg", "reduction: sum")),
        "bring both operands to factor 1 first",
        "scale",
    ),
    Entry(
        "scale.token_weight",
        Judge.BOTH,
        "per-rank weights differ",
        "Ranks divide by their own token counts and are averaged alike, so that tokens of short batches weigh more.",
        _WEIGHT,
        _WEIGHT_GOOD,
        "all_reduce numerator and denominator, divide once",
        "scale",
    ),
)
