"""DTensor placements and device meshes, as Python prints them.

>>> [(item.kind, item.dim) for item in placements_of("(Shard(dim=0), Replicate(), _StridedShard(dim=1, sf=8))")]
[('split', 0), ('replicated', None), ('split', 1)]
>>> mesh_of("DeviceMesh((dp=2, tp=4), 'cpu', stride=(4, 1))")
{'dp': 2, 'tp': 4}
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Literal

from dtir.importers.rank_set.plain import MOST_DIMS
from dtir.ir.reductions import ReductionKind

_PLACEMENT = re.compile(
    r"(?P<strided>_StridedShard)\((?:dim=)?(?P<sdim>\d{1,2})[^()]*\)"
    r"|(?:Shard|\bS)\((?:dim=)?(?P<dim>\d{1,2})\)"
    r"|(?:Partial|\bP)\((?P<op>[a-z_]*)\)"
    r"|(?P<replicate>Replicate\(\)|\bR\b)"
)
_AXES = re.compile(r"DeviceMesh\(\(([^()]*)\)")
_AXIS = re.compile(r"(\w+)=(\d{1,9})")
_SHAPE = re.compile(r"torch\.Size\(\[([\d,\s]*)\]\)")


@dataclass(frozen=True, slots=True)
class Placement:
    """What one mesh axis does with a tensor; of a strided split the order of the parts differs from the plain one."""

    kind: Literal["split", "replicated", "partial"]
    dim: int | None = None
    strided: bool = False
    op: ReductionKind | None = None


_OPS = {"sum": ReductionKind.SUM, "avg": ReductionKind.AVERAGE, "max": ReductionKind.MAX, "min": ReductionKind.MIN}


def placements_of(text: str) -> list[Placement] | None:
    """The placements of a tuple, one a mesh axis; None when something in it is no placement."""
    found: list[Placement] = []
    for item in _PLACEMENT.finditer(text):
        dim = item["sdim"] or item["dim"]
        if dim is not None:
            found.append(Placement("split", int(dim), item["strided"] is not None))
        elif item["replicate"]:
            found.append(Placement("replicated"))
        else:
            found.append(Placement("partial", op=_OPS.get(item["op"] or "sum")))
        if len(found) > MOST_DIMS:
            return None
    rest = _PLACEMENT.sub("", text)
    return found if found and not rest.strip("(), []\t\n") else None


def mesh_of(text: str) -> dict[str, int] | None:
    """Axes of a device mesh with their sizes; None for other texts."""
    axes = _AXES.search(text)
    found = {name: int(size) for name, size in _AXIS.findall(axes[1])} if axes else {}
    return found if found and all(found.values()) else None


def shape_of_text(text: str) -> tuple[int, ...] | None:
    """A shape printed as ``torch.Size([2, 8])``; None for other texts."""
    found = _SHAPE.fullmatch(text.strip())
    if found is None:
        return None
    words = [word.strip() for word in found[1].split(",") if word.strip()]
    shape = tuple(int(word) for word in words if word.isdecimal() and len(word) < 19)
    return shape if len(shape) == len(words) <= MOST_DIMS else None
