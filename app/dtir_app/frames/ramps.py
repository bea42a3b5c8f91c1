"""Colours of numbers: a sequential ramp for amounts, a diverging one for ratios.

The sequential ramp is cividis (Nuñez, Anderton, Renslow 2018, doi 10.1371/journal.pone.0199239), read by people with any colour vision;
the diverging one goes from blue by white to orange, and ratios within the noise are grey.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

CIVIDIS = ("#00224E", "#123570", "#3B496C", "#575D6D", "#707173", "#8A8678", "#A59C74", "#C3B369", "#E1CC55", "#FEE838")
DIVERGING = ("#2166AC", "#67A9CF", "#D1E5F0", "#F7F7F7", "#FDDBC7", "#EF8A62", "#B35806")
WITHIN_NOISE = "#B8BEC6"
DEAD_BAND = 0.10
"""Ratios nearer to 1 than this say nothing, unless the spread of the measurement is known to be larger."""

DOUBLINGS = 3.0
"""The diverging ramp reaches its ends at 8 times and an eighth."""


def mixed(anchors: Sequence[str], part: float) -> str:
    """The colour at a part of a ramp, 0 its begin and 1 its end."""
    place = min(1.0, max(0.0, part)) * (len(anchors) - 1)
    low = min(len(anchors) - 2, int(place))
    share = place - low
    pairs = zip(_channels(anchors[low]), _channels(anchors[low + 1]), strict=True)
    return "#" + "".join(f"{round(a + (b - a) * share):02X}" for a, b in pairs)


def amount_colour(amount: float, largest: float, smallest: float) -> str:
    """The colour of an amount between the smallest and the largest, by its logarithm."""
    if not 0 < smallest < largest:
        return mixed(CIVIDIS, 0.75)
    return mixed(CIVIDIS, math.log(amount / smallest) / math.log(largest / smallest))


def ratio_colour(ratio: float, noise: float = DEAD_BAND) -> str:
    """The colour of measured over planned: grey within the noise, blue below, orange above; symmetric in the logarithm."""
    if not ratio > 0 or math.isinf(ratio):
        return DIVERGING[-1] if ratio > 0 else DIVERGING[0]
    if abs(ratio - 1) <= noise:
        return WITHIN_NOISE
    return mixed(DIVERGING, 0.5 + math.log2(ratio) / (2 * DOUBLINGS))


def text_on(colour: str) -> str:
    """Black or white, whichever can be read on a colour."""
    red, green, blue = (_linear(channel / 255) for channel in _channels(colour))
    luminance = 0.2126 * red + 0.7152 * green + 0.0722 * blue
    return "#000000" if (luminance + 0.05) / 0.05 >= 1.05 / (luminance + 0.05) else "#FFFFFF"


def _channels(colour: str) -> tuple[int, int, int]:
    return int(colour[1:3], 16), int(colour[3:5], 16), int(colour[5:7], 16)


def _linear(channel: float) -> float:
    return channel / 12.92 if channel <= 0.04045 else ((channel + 0.055) / 1.055) ** 2.4
