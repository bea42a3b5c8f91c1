"""A layout in one line, axis by axis, in the field's words.

``[dp, ·, tp]`` lists the axes that split each dim (a dot: undivided); behind it stands what other axes do.
"""

from __future__ import annotations

from dtir.ir.mesh import LogicalMesh
from dtir.ir.sharding import ShardingSpec
from dtir.ir.values import DistributedValue


def axis_states(spec: ShardingSpec, mesh: LogicalMesh) -> dict[str, str]:
    """What each axis of the mesh does to a value.

    Returns:
        ``split 0``, ``replicated``, ``partial sum``, ``per rank``, ``at 1`` or ``unsaid`` for every axis, in mesh order.
    """
    states = dict.fromkeys(mesh.axis_names, "unsaid")
    for name in spec.replicated_axes:
        states[name] = "replicated"
    for name in spec.varying:
        states[name] = "per rank"
    for item in spec.at:
        states[item.axis] = f"at {item.coordinate}"
    if spec.partial is not None:
        for name in spec.partial.axes:
            states[name] = f"partial {spec.partial.op.value}"
    for dim, axes in enumerate(spec.dimension_axes):
        for name in axes:
            states[name] = f"split {dim}"
    return states


def split_text(spec: ShardingSpec) -> str:
    """Which axes split which dim: ``[dp, ·, tp]``."""
    return f"[{', '.join('+'.join(axes) or '·' for axes in spec.dimension_axes)}]"


def layout_text(value: DistributedValue, mesh: LogicalMesh) -> str:
    """The layout of a value in one line.

    >>> # [dp, ·] tp: partial sum
    """
    spec = value.sharding
    parts: list[str] = []
    if any(spec.dimension_axes):
        parts.append(split_text(spec))
    elif set(spec.replicated_axes) >= {axis.name for axis in mesh.axes if axis.size > 1}:
        return "replicated"
    by_state: dict[str, list[str]] = {}
    for name, state in axis_states(spec, mesh).items():
        if not state.startswith("split"):
            by_state.setdefault(state, []).append(name)
    for state, names in by_state.items():
        if state == "unsaid":
            continue
        parts.append(f"{'×'.join(names)}: {state}")
    if spec.halo is not None:
        parts.append("halo")
    if spec.sizes:
        parts.append("uneven")
    return " ".join(parts) or "not said"
