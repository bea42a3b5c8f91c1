"""How ghost layers age: exchanges bring them up to date, stencils use them up, everything else carries them along."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from dtir.analysis.abstract import Abstract, Ghosts, Surroundings
from dtir.analysis.deviations import Deviation, Kind
from dtir.ops import Labels, OpCall, OpDef, Reach


def ghosts_of(
    operator: OpDef,
    call: OpCall,
    operands: Sequence[Abstract],
    rule: Labels,
    axes: Mapping[str, tuple[str, ...]],
    around: Surroundings,
) -> tuple[list[tuple[Ghosts, bool]], list[Deviation]]:
    """Valid ghost layers of every result, whether diagonal ones are valid, and how reads exceed what is there."""
    del around
    reach = operator.reach(call)
    found: list[Deviation] = []
    if reach is not None and operands:
        for at in reach.operands:
            found += _reads(reach, operands[at], at)
    if call.reads_ghosts and not found:
        found += _counted_twice(operands, rule, axes)
    layers = _layers(operands, rule, axes)
    if reach is not None and rule.operands:
        for dim, label in enumerate(rule.operands[0]):
            if label is not None and label in layers and dim < len(reach.radius):
                below, above = layers[label]
                layers[label] = (max(0, below - reach.radius[dim]), max(0, above - reach.radius[dim]))
    corners = all(value.corners for value in operands)
    results: list[tuple[Ghosts, bool]] = []
    for labels in rule.results:
        valid = tuple(layers.get(label, (0, 0)) if label is not None else (0, 0) for label in labels)
        results.append((valid if any(below or above for below, above in valid) else (), corners))
    return results, found


def _layers(
    operands: Sequence[Abstract], rule: Labels, axes: Mapping[str, tuple[str, ...]]
) -> dict[str, tuple[int, int]]:
    """Per split label the layers that all its carriers have up to date."""
    layers: dict[str, tuple[int, int]] = {}
    for value, labels in zip(operands, rule.operands, strict=True):
        for dim, label in enumerate(labels):
            if label is None or not axes.get(label):
                continue
            below, above = value.ghost(dim)
            old = layers.get(label)
            layers[label] = (below, above) if old is None else (min(old[0], below), min(old[1], above))
    return layers


def _reads(reach: Reach, value: Abstract, at: int) -> list[Deviation]:
    """Reads beyond the ghosts that are there."""
    split = [
        dim
        for dim, radius in enumerate(reach.radius)
        if radius > 0 and dim < len(value.state.dims) and value.state.dims[dim]
    ]
    for dim in split:
        below, above = value.ghost(dim)
        radius = reach.radius[dim]
        if min(below, above) < radius:
            axes = value.state.dims[dim]
            return [Deviation(Kind.HALO_THIN, axes, at, None, (dim,), str(min(below, above)), str(radius))]
    if reach.diagonal and len(split) > 1 and not value.corners:
        axes = tuple(axis for dim in split for axis in value.state.dims[dim])
        return [Deviation(Kind.HALO_CORNER, axes, at, None, tuple(split))]
    return []


def _counted_twice(operands: Sequence[Abstract], rule: Labels, axes: Mapping[str, tuple[str, ...]]) -> list[Deviation]:
    """Ghost cells that enter a reduction over a split dim."""
    for index, (value, labels) in enumerate(zip(operands, rule.operands, strict=True)):
        for dim, label in enumerate(labels):
            if label in rule.folds and axes.get(label or "") and any(value.ghost(dim)):
                below, above = value.ghost(dim)
                return [
                    Deviation(
                        Kind.DOUBLE_COUNT, axes[label or ""], index, None, (dim,), str(below + above), rule.folds[label or ""].value
                    )
                ]  # fmt: skip
    return []
