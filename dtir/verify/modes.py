"""Which mode a program wants: does its form say which reductions are pending?"""

from __future__ import annotations

from typing import Literal

from dtir.ir.program import DistributedTaskIR
from dtir.ir.values import UNSCALED, DistributedValue

AUTHORED = "yaml"
"""Lineage of values that were written by hand in a form with all states."""

IMPORTED = ".import"
"""End of the lineage of values that were read from a compiler's text, which states shapes and some shardings."""


def mode_of(program: DistributedTaskIR) -> Literal["check", "infer"]:
    """``check`` when the program declares a pending axis, or was written in a form that could; else ``infer``.

    Documents of the upstream format, compiler dumps, and programs of which only per-rank shapes are known (all values per
    rank along every axis) cannot declare what is pending.
    """
    plain = True
    loose = True
    axes = sum(axis.size > 1 for axis in program.mesh.axes)
    for value in program.all_values():
        if value.lineage.transform.endswith(IMPORTED):
            return "infer"
        if value.sharding.partial is not None or value.lineage.transform == AUTHORED:
            return "check"
        plain = plain and _upstream(value)
        loose = loose and len(value.sharding.varying) >= axes
    return "infer" if plain or loose else "check"


def _upstream(value: DistributedValue) -> bool:
    """True when the value uses nothing that the upstream format lacks."""
    sharding = value.sharding
    return not (
        sharding.varying
        or sharding.at
        or sharding.sizes
        or sharding.halo is not None
        or value.valid_on is not None
        or value.local_shapes
        or value.grad_of is not None
        or value.scale != UNSCALED
    )
