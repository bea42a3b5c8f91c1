"""Colours stay apart for eyes that lack a cone, and text can be read, in both themes.

**Source**: Machado, Oliveira, Fernandes, "A physiologically-based model for simulation of color vision deficiency", IEEE TVCG 15(6), 2009,
table for severity 1.0, applied to linear RGB; differences are CIE 1976 (L*a*b*, D65); contrast as in WCAG 2.2.
"""

from __future__ import annotations

from itertools import combinations

import numpy as np
import pytest
from dtir_app.kinds import FAMILY_OF_KIND, KINDS, Family
from dtir_app.theme import (
    AXIS_FILLS,
    AXIS_TEXTS,
    DARK,
    FAMILY_FILLS,
    FAMILY_TEXTS,
    LIGHT,
    SEVERITY_FILLS,
    SEVERITY_MARKERS,
    Tokens,
    family_fills,
    family_texts,
)

Colour = np.ndarray

EYES: dict[str, Colour] = {
    "normal": np.eye(3),
    "protanopia": np.array(
        [[0.152286, 1.052583, -0.204868], [0.114503, 0.786281, 0.099216], [-0.003882, -0.048116, 1.051998]]
    ),
    "deuteranopia": np.array(
        [[0.367322, 0.860646, -0.227968], [0.280085, 0.672501, 0.047413], [-0.011820, 0.042940, 0.968881]]
    ),
    "tritanopia": np.array(
        [[1.255528, -0.076749, -0.178779], [-0.078411, 0.930809, 0.147602], [0.004733, 0.691367, 0.303900]]
    ),
}
_XYZ = np.array(
    [[0.4124564, 0.3575761, 0.1804375], [0.2126729, 0.7151522, 0.0721750], [0.0193339, 0.1191920, 0.9503041]]
)
_WHITE = np.array([0.95047, 1.0, 1.08883])
THEMES = pytest.mark.parametrize("theme", [LIGHT, DARK], ids=["light", "dark"])
SIGHT = pytest.mark.parametrize("sight", list(EYES))


def linear(text: str) -> Colour:
    values = np.array([int(text[at : at + 2], 16) for at in (1, 3, 5)]) / 255
    return np.where(values <= 0.04045, values / 12.92, ((values + 0.055) / 1.055) ** 2.4)


def lab(text: str, sight: str) -> Colour:
    ratio = _XYZ @ np.clip(EYES[sight] @ linear(text), 0, 1) / _WHITE
    root = np.where(ratio > (6 / 29) ** 3, np.cbrt(ratio), ratio / (3 * (6 / 29) ** 2) + 4 / 29)
    return np.array([116 * root[1] - 16, 500 * (root[0] - root[1]), 200 * (root[1] - root[2])])


def difference(one: str, other: str, sight: str) -> float:
    return float(np.linalg.norm(lab(one, sight) - lab(other, sight)))


def worst(colours: list[str], sight: str) -> float:
    return min(difference(one, other, sight) for one, other in combinations(colours, 2))


def contrast(one: str, other: str) -> float:
    light, dark = sorted((float(linear(colour) @ _XYZ[1]) for colour in (one, other)), reverse=True)
    return (light + 0.05) / (dark + 0.05)


def test_the_simulation_does_what_is_known_of_it() -> None:
    assert difference("#FF0000", "#00FF00", "normal") > 150
    assert difference("#D7191C", "#1A9641", "deuteranopia") < difference("#D7191C", "#1A9641", "normal") / 2
    assert difference("#777777", "#777777", "tritanopia") == 0
    for sight in EYES:  # greys stay greys
        assert np.allclose(EYES[sight].sum(axis=1), 1, atol=1e-3)
    assert contrast("#FFFFFF", "#000000") == pytest.approx(21)


@SIGHT
def test_families_stay_apart(sight: str) -> None:
    assert worst(list(FAMILY_FILLS.values()), sight) >= 24


@SIGHT
def test_axes_stay_apart(sight: str) -> None:
    """Near ones are told apart by name and hatch besides; the limit is that of the published palette."""
    assert worst(list(AXIS_FILLS), sight) >= 13


@SIGHT
def test_severities_stay_apart(sight: str) -> None:
    assert worst(list(SEVERITY_FILLS.values()), sight) >= 18
    assert len(set(SEVERITY_MARKERS.values())) == len(SEVERITY_FILLS)


@SIGHT
@THEMES
def test_the_selection_is_like_nothing_else(theme: Tokens, sight: str) -> None:
    fills = [*FAMILY_FILLS.values(), theme.block, theme.paper, theme.edge]
    assert min(difference(theme.selected, fill, sight) for fill in fills) >= 15


@pytest.mark.parametrize("dark", [False, True])
def test_text_on_fills_can_be_read(dark: bool) -> None:
    for fill, text in zip(family_fills(dark), family_texts(dark), strict=True):
        assert contrast(fill, text) >= 4.5
    for fill, text in zip(AXIS_FILLS, AXIS_TEXTS, strict=True):
        assert contrast(fill, text) >= 4.5


@THEMES
def test_text_of_the_page_can_be_read(theme: Tokens) -> None:
    for text in (theme.text, theme.muted, theme.accent, theme.error, theme.warning, theme.info, theme.ok):
        for ground in (theme.page, theme.paper, theme.raised):
            assert contrast(text, ground) >= 4.5
    assert contrast(theme.on_accent, theme.accent) >= 4.5
    assert contrast(theme.text, theme.soft_accent) >= 4.5
    assert contrast(theme.text, theme.soft_warning) >= 4.5
    assert contrast(theme.text, theme.soft_error) >= 4.5


@THEMES
def test_outlines_can_be_seen(theme: Tokens) -> None:
    assert contrast(theme.strong_line, theme.paper) >= 3
    assert contrast(theme.edge, theme.paper) >= 3
    assert contrast(theme.selected, theme.paper) >= 3


def test_no_kind_is_told_by_colour_alone() -> None:
    codes = [kind.code for kind in KINDS if kind.code]
    assert len(set(codes)) == len(codes)
    assert {FAMILY_OF_KIND[number] for number in range(len(KINDS))} <= set(Family)
    assert set(FAMILY_TEXTS) == set(FAMILY_FILLS)
