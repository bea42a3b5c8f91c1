"""Colours and type: one set of tokens a theme, used by the page (as CSS variables) and by the figures.

Fills of kind families and mesh axes are the same in both themes; they were chosen to stay apart under deuteranopia, protanopia and
tritanopia. Text contrast is at least 4.5:1, outlines at least 3:1 (checked in the tests).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, fields

from dtir_app.kinds import Family

FONT = 'Inter, "Segoe UI", Roboto, "Helvetica Neue", "Noto Sans", "DejaVu Sans", Arial, sans-serif'
MONO = '"JetBrains Mono", "SF Mono", Menlo, Consolas, "DejaVu Sans Mono", "Liberation Mono", monospace'

FAMILY_FILLS: dict[Family, str] = {
    Family.LOCAL: "#0072B2",
    Family.COLLECTIVE: "#E69F00",
    Family.POINT_TO_POINT: "#56B4E9",
    Family.RESHARD: "#882255",
    Family.CONTROL: "#BBBBBB",
}
FAMILY_TEXTS: dict[Family, str] = {
    Family.LOCAL: "#FFFFFF",
    Family.COLLECTIVE: "#000000",
    Family.POINT_TO_POINT: "#000000",
    Family.RESHARD: "#FFFFFF",
    Family.CONTROL: "#000000",
}
AXIS_FILLS = ("#4477AA", "#66CCEE", "#EE6677", "#228833", "#CCBB44", "#AA3377")
AXIS_TEXTS = ("#FFFFFF", "#000000", "#000000", "#FFFFFF", "#000000", "#FFFFFF")
SEVERITY_FILLS = {"error": "#D55E00", "warning": "#E69F00", "info": "#56B4E9"}
SEVERITY_MARKERS = {"error": "hex", "warning": "triangle", "info": "circle"}


@dataclass(frozen=True, slots=True)
class Tokens:
    """The colours of one theme."""

    page: str
    paper: str
    raised: str
    text: str
    muted: str
    line: str
    strong_line: str
    accent: str
    on_accent: str
    soft_accent: str
    selected: str
    edge: str
    grid: str
    block: str
    block_text: str
    error: str
    warning: str
    info: str
    ok: str
    soft_error: str
    soft_warning: str


LIGHT = Tokens(
    page="#F4F6F8",
    paper="#FFFFFF",
    raised="#F8FAFC",
    text="#171B21",
    muted="#56606D",
    line="#DCE1E8",
    strong_line="#7B8694",
    accent="#0B5CAD",
    on_accent="#FFFFFF",
    soft_accent="#E3EEFA",
    selected="#7B2CBF",
    edge="#8A94A3",
    grid="#E9ECF1",
    block="#E6EBF2",
    block_text="#171B21",
    error="#A83F00",
    warning="#7A5200",
    info="#0B5CAD",
    ok="#1E6B34",
    soft_error="#FCEBE2",
    soft_warning="#FFF4DC",
)
DARK = Tokens(
    page="#111418",
    paper="#181C22",
    raised="#1F242B",
    text="#E8ECF1",
    muted="#A3AEBB",
    line="#2E353F",
    strong_line="#8391A1",
    accent="#6FB3F2",
    on_accent="#0B1119",
    soft_accent="#1D3247",
    selected="#B266FF",
    edge="#7D8895",
    grid="#262C34",
    block="#2C343F",
    block_text="#E8ECF1",
    error="#FF9A5C",
    warning="#F2B632",
    info="#7FC4F5",
    ok="#7BD192",
    soft_error="#3A2317",
    soft_warning="#352A12",
)


def tokens(dark: bool) -> Tokens:
    """The tokens of a theme."""
    return DARK if dark else LIGHT


def family_fills(dark: bool) -> list[str]:
    """Fill of every family in the order of `Family`."""
    made = FAMILY_FILLS | {Family.BLOCK: tokens(dark).block}
    return [made[family] for family in Family]


def family_texts(dark: bool) -> list[str]:
    """Text colour on the fill of every family."""
    made = FAMILY_TEXTS | {Family.BLOCK: tokens(dark).block_text}
    return [made[family] for family in Family]


def _shared() -> dict[str, str]:
    """What both themes have in common."""
    shared = {f"family-{int(family)}": FAMILY_FILLS[family] for family in FAMILY_FILLS}
    shared |= {f"family-{int(family)}-text": FAMILY_TEXTS[family] for family in FAMILY_TEXTS}
    shared |= {f"axis-{number}": fill for number, fill in enumerate(AXIS_FILLS)}
    shared |= {f"axis-{number}-text": fill for number, fill in enumerate(AXIS_TEXTS)}
    return shared | {"font": FONT, "mono": MONO}


def css_variables() -> str:
    """The tokens of both themes as custom properties, light unless ``data-theme`` says dark."""
    light = _shared() | _variables(LIGHT)
    return f":root{{color-scheme:light;{_declared(light)}}}\n:root[data-theme=dark]{{color-scheme:dark;{_declared(_variables(DARK))}}}\n"


def css_block(dark: bool, selector: str) -> str:
    """The tokens of one theme as custom properties of what a selector names: where the page is not ours."""
    variables = _shared() | _variables(tokens(dark))
    scheme = "dark" if dark else "light"
    return f"{selector}{{color-scheme:{scheme};{_declared(variables)}}}"


def _variables(theme: Tokens) -> dict[str, str]:
    made = {field.name.replace("_", "-"): getattr(theme, field.name) for field in fields(theme)}
    return made | {"family-5": theme.block, "family-5-text": theme.block_text}


def _declared(variables: Mapping[str, str]) -> str:
    return "".join(f"--{name}:{value};" for name, value in variables.items())
