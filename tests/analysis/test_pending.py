"""The table of pending reductions against numbers: what passes is a homomorphism, for every operator that can be run."""

from __future__ import annotations

import numpy as np
import pytest

from dtir.analysis.deviations import Kind
from dtir.analysis.pending import Broken, Use, keeps, passed
from dtir.analysis.states import EQUAL, Pending
from dtir.ir.reductions import ReductionKind
from dtir.ops import Floats, Labels, OpCall, OpDef, Place, require_op
from dtir.ops.opdef import LabelRule

FOLD = {
    ReductionKind.SUM: lambda items: sum(items),
    ReductionKind.MAX: lambda items: np.maximum.reduce(items),
    ReductionKind.MIN: lambda items: np.minimum.reduce(items),
}
# Operators of one operand, with a call that fits a [4, 6] operand.
CALLS: dict[str, tuple[tuple[int, ...], dict[str, object]]] = {
    **{
        name: ((4, 6), {})
        for name in ("identity", "neg", "square", "relu", "abs", "exp", "tanh", "sigmoid", "gelu", "sqrt")
    },
    "scale": ((4, 6), {"c": "1/2"}),
    "transpose": ((6, 4), {"perm": [1, 0]}),
    "sum": ((4,), {"dims": [1]}),
    "mean": ((4,), {"dims": [1]}),
    "max": ((4,), {"dims": [1]}),
    "min": ((4,), {"dims": [1]}),
    "softmax": ((4, 6), {"dims": [1]}),
    "cumsum": ((4, 6), {"dims": [1]}),
    "leaky_relu": ((4, 6), {}),
}


def use_of(operator: OpDef, call: OpCall) -> Use:
    rule: LabelRule = operator.labels(call)
    folds = frozenset(rule.folds.values()) if isinstance(rule, Labels) else frozenset()
    joins = isinstance(rule, Labels) and (bool(rule.whole) or bool(operator.nonlinear_operands))
    return Use(operator, call, folds, joins, operator.scale(call))


def evaluate(operator: OpDef, call: OpCall, *operands: np.ndarray) -> np.ndarray:
    assert operator.run is not None
    place = Place(offsets=tuple((0,) * len(shape) for shape in call.results))
    return np.asarray(operator.run(Floats(np), operands, call, place)[0])


@pytest.mark.parametrize("op", FOLD, ids=lambda op: op.value)
@pytest.mark.parametrize("name", CALLS)
def test_what_passes_commutes_and_what_does_not_pass_need_not(name: str, op: ReductionKind) -> None:
    result, attributes = CALLS[name]
    operator = require_op(name)
    call = OpCall(((4, 6),), (result,), attributes)
    outcome = passed(use_of(operator, call), [Pending(op)])
    result_op = outcome.op if isinstance(outcome, Pending) else op
    same: list[bool] = []
    # Several ranges: between -3 and 0 gelu falls and rises, where the sums of the first hide it.
    for shift in (0.0,) if name == "sqrt" else (0.0, 1.5, 3.1):
        dice = np.random.default_rng(7)
        shares = [dice.uniform(0.1, 3.0, (4, 6)) - shift for _ in range(3)]
        parts = [evaluate(operator, call, share) for share in shares]
        same.append(np.allclose(FOLD[result_op](parts), evaluate(operator, call, FOLD[op](shares))))
    assert all(same) if isinstance(outcome, Pending) else not all(same)


def test_nothing_pending_passes_as_equal() -> None:
    call = OpCall(((4, 6),), ((4, 6),))
    assert passed(use_of(require_op("exp"), call), [EQUAL]) is EQUAL


def test_two_pending_factors_are_a_product_of_sums() -> None:
    call = OpCall(((4,), (4,)), ((4,),))
    outcome = passed(use_of(require_op("mul"), call), [Pending(ReductionKind.SUM)] * 2)
    assert outcome == Broken(Kind.PRODUCT, 1, 0)


def test_elementwise_extremes_say_which_they_keep() -> None:
    assert keeps(require_op("maximum")) is ReductionKind.MAX
    assert keeps(require_op("minimum")) is ReductionKind.MIN
