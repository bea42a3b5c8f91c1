"""Opcode to evaluator, and the one function that evaluates an operation."""

from __future__ import annotations

import numpy as np

from dtir.execute.dtypes import is_token
from dtir.execute.hlo import algebra, contraction, elementwise, indexing, ragged, random, reduction, shaping, sorting
from dtir.execute.hlo.call import Context, Evaluator, HloCall, HloError, Operands, Results

OPCODES: dict[str, Evaluator] = {
    **algebra.OPCODES,
    **contraction.OPCODES,
    **elementwise.OPCODES,
    **indexing.OPCODES,
    **ragged.OPCODES,
    **random.OPCODES,
    **reduction.OPCODES,
    **shaping.OPCODES,
    **sorting.OPCODES,
}
"""Operations that a rank does on its own."""


def _pass_through(context: Context, call: HloCall, operands: Operands) -> Results:
    if len(operands) != len(call.results):
        raise HloError(f"custom-call {call.attributes.get('custom_call_target')} has {len(operands)} operands "
                       f"and {len(call.results)} results")  # fmt: skip
    return tuple(operands)


def _top_k(context: Context, call: HloCall, operands: Operands) -> Results:
    found = HloCall("topk", call.operands, call.results, {"k": call.results[0].shape[-1]}, call.name)
    return OPCODES["topk"](context, found, operands)


_CUSTOM_CALLS: dict[str, Evaluator] = {
    "Sharding": _pass_through,
    "xla.sdy.FuncResultSharding": _pass_through,
    "xla.sdy.Sharding": _pass_through,
    "annotate_device_placement": _pass_through,
    "LayoutConstraint": _pass_through,
    "TopK": _top_k,
}
"""Targets of custom calls that are known: annotations, which change no element, and what frameworks ask of XLA itself."""


def custom_call_targets() -> tuple[str, ...]:
    """The targets of custom calls that can be evaluated."""
    return tuple(sorted(_CUSTOM_CALLS))


def _find(call: HloCall) -> Evaluator | None:
    if call.opcode == "custom-call":
        return _CUSTOM_CALLS.get(str(call.attributes.get("custom_call_target")))
    return OPCODES.get(call.opcode)


def is_known(call: HloCall) -> bool:
    """Whether an operation can be evaluated."""
    return _find(call) is not None


def evaluate(context: Context, call: HloCall, operands: Operands) -> Results:
    """The results of an operation, each ``(instances, *shape)``.

    Raises:
        HloError: the operation is not known, an attribute is missing, or what comes out has another shape than the
            program declares.
    """
    function = _find(call)
    if function is None:
        raise HloError(f"operation {call.opcode} is not known")
    with np.errstate(all="ignore"):  # infinities and NaN are values here
        results = function(context, call, operands)
    count = len(context.ranks)
    for found, kind in zip(results, call.results, strict=True):
        if is_token(kind.dtype):
            continue
        wanted = (count, *kind.shape)
        if found.shape != wanted:
            raise HloError(f"{call.opcode} gives {found.shape[1:]}, the program declares {kind.shape}")
        if found.dtype != kind.numpy:
            raise HloError(f"{call.opcode} gives {found.dtype}, the program declares {kind.dtype}")
    return tuple(results)
