"""Outlines of the kind families, in levels and lanes: told apart without colour."""

from __future__ import annotations

import math

from dtir_app.kinds import Family

HALF_WIDTH = 0.43
HALF_HEIGHT = 0.33

_TIP = 0.09
_PILL_STEPS = 6


def _unit(family: Family) -> list[tuple[float, float]]:
    """The outline around the origin."""
    width, height = HALF_WIDTH, HALF_HEIGHT
    match family:
        case Family.LOCAL:
            return [(-width, -height), (width, -height), (width, height), (-width, height)]
        case Family.COLLECTIVE:  # hexagon
            inner = width - _TIP
            return [(-width, 0), (-inner, -height), (inner, -height), (width, 0), (inner, height), (-inner, height)]
        case Family.POINT_TO_POINT:  # chevron
            inner = width - _TIP
            return [(-width, -height), (inner, -height), (width, 0), (inner, height), (-width, height), (-inner, 0)]
        case Family.RESHARD:  # diamond
            return [(-width, 0), (0, -height * 1.25), (width, 0), (0, height * 1.25)]
        case Family.CONTROL:  # pill
            inner = width - _TIP * 1.4
            right = [_arc(inner, -math.pi / 2 + math.pi * step / _PILL_STEPS, 1) for step in range(_PILL_STEPS + 1)]
            left = [_arc(-inner, math.pi / 2 + math.pi * step / _PILL_STEPS, 1) for step in range(_PILL_STEPS + 1)]
            return right + left
        case Family.BLOCK:  # cut corners
            cut_x, cut_y = 0.06, 0.13
            return [
                (-width + cut_x, -height),
                (width - cut_x, -height),
                (width, -height + cut_y),
                (width, height - cut_y),
                (width - cut_x, height),
                (-width + cut_x, height),
                (-width, height - cut_y),
                (-width, -height + cut_y),
            ]


def _arc(centre: float, angle: float, side: int) -> tuple[float, float]:
    return (centre + side * _TIP * 1.4 * math.cos(angle), HALF_HEIGHT * math.sin(angle))


UNITS: dict[Family, list[tuple[float, float]]] = {family: _unit(family) for family in Family}


def outline(family: Family, x: float, y: float) -> tuple[list[float], list[float]]:
    """The corners of an item at a place."""
    unit = UNITS[family]
    return [x + dx for dx, _ in unit], [y + dy for _, dy in unit]
