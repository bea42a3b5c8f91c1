"""What happens to one input or output of a custom operation across ranks.

| transform | on | what |
|---|---|---|
| `gather_inputs` | input | ghosts are refreshed: the operation reads neighbours' rows |
| `gather_inputs_full` | input | every rank gets all rows |
| `slice_owned` | input | the rows that the rank owns, without ghosts |
| `scatter_outputs` | output | what was added to ghosts goes back to the owners, ghosts are refreshed |
| `all_reduce_sum` | output | the sum over all ranks, on every rank |
| `slice_outputs_owned` | output | the rows that the rank owns, out of all rows |

>>> arg_transform({"type": "slice_owned"}, "arg_transforms.0")
<ArgTransform.SLICE_OWNED: 'slice_owned'>
"""

from __future__ import annotations

from collections.abc import Mapping
from enum import Enum
from typing import Any

from dtir.spec.errors import SpecError


class ArgTransform(Enum):
    """What happens to an input before the operation."""

    GATHER_INPUTS = "gather_inputs"
    GATHER_INPUTS_FULL = "gather_inputs_full"
    SLICE_OWNED = "slice_owned"


class OutputTransform(Enum):
    """What happens to an output after the operation."""

    SCATTER_OUTPUTS = "scatter_outputs"
    ALL_REDUCE_SUM = "all_reduce_sum"
    SLICE_OUTPUTS_OWNED = "slice_outputs_owned"


def arg_transform(given: object, field: str) -> ArgTransform:
    """Read ``{"type": ...}``.

    Raises:
        SpecError: another form, or an unknown type.
    """
    return ArgTransform(_type(given, field, [item.value for item in ArgTransform], "ArgTransform"))


def output_transform(given: object, field: str) -> OutputTransform:
    """Read ``{"type": ...}``.

    Raises:
        SpecError: another form, or an unknown type.
    """
    return OutputTransform(_type(given, field, [item.value for item in OutputTransform], "OutputTransform"))


def _type(given: object, field: str, known: list[str], what: str) -> str:
    found = given.get("type") if isinstance(given, Mapping) else None  # pyright: ignore[reportUnknownMemberType, reportUnknownVariableType]
    if not isinstance(found, str) or found not in known:
        raise SpecError(field, f"unknown {what} type {found!r}; expected one of {', '.join(known)}", "spec.adapter")
    extra = [key for key in _keys(given) if key != "type"]
    if extra:
        raise SpecError(field, f"a transform has only a type, not {extra[0]!r}", "spec.adapter")
    return found


def _keys(given: Any) -> list[str]:
    return [str(key) for key in given]
