"""Shapes and element types as PyTorch's observers write them: nested lists beside nested type names.

>>> tensors_of([[8], [4, 2]], "GenericList[Tensor(float),Tensor(long)]")
[Tensor(shape=(8,), dtype='f32'), Tensor(shape=(4, 2), dtype='s64')]
"""

from __future__ import annotations

import math
import re
from collections.abc import Sequence
from typing import Any

from dtir.importers.rank_set.events import Tensor
from dtir.importers.rank_set.plain import sequence, shape_of
from dtir.importers.rank_set.words import dtype_name

_TENSOR = re.compile(r"Tensor\(([^()]*)\)")

MOST_TENSORS = 100_000
"""Tensors of one argument; a list nests by what the file says."""

MOST_LEVELS = 8


def tensors_of(shapes: object, type_text: str) -> list[Tensor]:
    """The tensors of one argument, lists of lists flattened; of an unknown type none."""
    words = _TENSOR.findall(type_text) or ([type_text] if dtype_name(type_text) else [])
    dtypes = [dtype_name(word) or "u8" for word in words]
    found = _leaves(shapes, MOST_LEVELS)
    if not found or not dtypes:
        return []
    if len(dtypes) < len(found):
        dtypes += [dtypes[-1]] * (len(found) - len(dtypes))
    return [Tensor(shape, dtype) for shape, dtype in zip(found, dtypes, strict=False)]


def _leaves(value: object, levels: int) -> list[tuple[int, ...]]:
    items: Sequence[Any] = sequence(value)
    shape = shape_of(value)
    if shape is not None:
        return [shape]
    if not levels:
        return []
    found: list[tuple[int, ...]] = []
    for item in items:
        found += _leaves(item, levels - 1)
        if len(found) > MOST_TENSORS:
            break
    return found


def joined(tensors: Sequence[Tensor]) -> Tensor | None:
    """Several tensors of one call as one: a single one as it is, more of them flat, since they travel together."""
    if len(tensors) < 2:
        return tensors[0] if tensors else None
    if len({tensor.shape for tensor in tensors}) == 1 and len({tensor.dtype for tensor in tensors}) == 1:
        return Tensor((len(tensors), *tensors[0].shape), tensors[0].dtype)
    return Tensor((sum(math.prod(tensor.shape) for tensor in tensors),), tensors[0].dtype)
