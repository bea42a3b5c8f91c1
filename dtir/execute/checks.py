"""Outputs compared with what is known of them: expected arrays, the undivided program, their own copies."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np

from dtir.execute.assemble import Output
from dtir.execute.data import Inputs, output_leaves
from dtir.execute.dtypes import Array, numpy_dtype, unit_roundoff
from dtir.execute.oracle import Undivided, tolerance
from dtir.execute.record import ValueCheck
from dtir.execute.steps import ExecPlan

EXPECTED_RELATIVE = 2e-5
"""Relative to the greatest element: how far float32 results of two correct programs may be apart (other orders of sums)."""

EXPECTED_RELATIVE_DOUBLE = 2e-11
"""The same for float64."""

NARROW_ROUNDINGS = 4
"""Roundings that results of narrower types may be apart: 1.6 % of the greatest element for bfloat16, 0.2 % for float16."""


def check_outputs(
    plan: ExecPlan, outputs: Sequence[Output], inputs: Inputs, undivided: Undivided | None
) -> list[ValueCheck]:
    """Every output compared with what is known of it: expected arrays, the undivided program, its own copies."""
    checks: list[ValueCheck] = []
    leaves = output_leaves(plan)
    terms = _longest_fold(plan)
    for output in outputs:
        slot = plan.main.slots[leaves[output.number]]
        name = slot.name if plan.attribute("hlo.form") is None else f"out{output.number} ({slot.name})"
        if output.array is None:
            continue
        expected = inputs.expected.get(output.number)
        if expected is not None and expected.shape == output.array.shape:
            bound = _expected_bound(expected, slot.value.type.dtype)
            checks.append(_check(str(slot.value.id), name, "expected", output.array, expected, bound))
        elif undivided is not None and slot.value.id in undivided.values:
            whole = undivided.values[slot.value.id]
            if whole.shape != output.array.shape:
                continue
            scale = slot.value.scale
            if scale.numerator != scale.denominator:
                whole = (whole.astype(np.float64) * scale.numerator / scale.denominator).astype(whole.dtype)
            bound = tolerance(slot.value, undivided.steps[slot.value.id] + len(plan.main.steps), terms, whole)
            checks.append(_check(str(slot.value.id), name, "undivided", output.array, whole, bound))
        elif output.difference or plan.ranks > 1:
            bound = 0.0
            wrong = int(output.difference > bound)
            checks.append(
                ValueCheck(str(slot.value.id), name, "copies", output.difference, bound, wrong, int(output.array.size))
            )
    return checks


def _longest_fold(plan: ExecPlan) -> int:
    """Most elements of any value: no sum of the program has more terms."""
    return max((math.prod(slot.placement.shape) for slot in plan.main.slots), default=1)


def _expected_bound(expected: Array, dtype: str) -> float:
    roundoff = unit_roundoff(numpy_dtype(dtype))
    if roundoff == 0.0:
        return 0.0
    finite = np.abs(np.nan_to_num(np.asarray(expected, np.complex128), nan=0.0, posinf=0.0, neginf=0.0))
    narrowed = EXPECTED_RELATIVE if roundoff >= unit_roundoff(np.dtype(np.float32)) else EXPECTED_RELATIVE_DOUBLE
    return max(narrowed, NARROW_ROUNDINGS * roundoff) * float(finite.max(initial=0.0))


def _check(value: str, name: str, source: str, found: Array, wanted: Array, bound: float) -> ValueCheck:
    a, b = np.asarray(found, np.complex128), np.asarray(wanted, np.complex128)
    if found.dtype.kind in "iu" and found.dtype.itemsize == 8:
        apart = (found != wanted).astype(np.float64)
    else:
        with np.errstate(all="ignore"):
            apart = np.abs(a - b)
        same = (a == b) | (np.isnan(a) & np.isnan(b))
        apart = np.where(same, 0.0, np.where(np.isnan(apart), np.inf, apart))
    return ValueCheck(
        value, name, source, float(apart.max(initial=0.0)), bound, int((apart > bound).sum()), int(found.size)
    )
