"""Looks as classes: equal looks are written once, and one drawing serves both themes."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

Look = tuple[tuple[str, str], ...]
"""CSS properties with values, sorted."""


def look_of(properties: Mapping[str, str]) -> Look:
    """A look from its properties."""
    return tuple(sorted(properties.items()))


@dataclass(slots=True)
class Styles:
    """The classes of one document; a look has one in the light and one in the dark theme."""

    prefix: str = "k"
    _names: dict[tuple[Look, Look], str] = field(default_factory=dict[tuple[Look, Look], str])

    def name(self, light: Look, dark: Look | None = None) -> str:
        """The class of a look; where only one theme is drawn, `dark` is left out."""
        key = (light, light if dark is None else dark)
        if key not in self._names:
            self._names[key] = f"{self.prefix}{len(self._names)}"
        return self._names[key]

    def rules(self) -> dict[str, str]:
        """The declarations of every class in the light theme, or the one that is drawn."""
        return {name: _declared(light) for (light, _), name in self._names.items()}

    def css(self) -> str:
        """Rules of all classes; those of the dark theme where ``data-theme`` of the root says dark."""
        rules: list[str] = []
        for (light, dark), name in self._names.items():
            rules.append(f".{name}{{{_declared(light)}}}")
            if dark != light:
                rules.append(f"[data-theme=dark] .{name}{{{_declared(dark)}}}")
        return "\n".join(rules)


def _declared(look: Look) -> str:
    return ";".join(f"{name}:{value}" for name, value in look)
