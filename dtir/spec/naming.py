"""Checks of names, modes and stand-ins that adapters share."""

from __future__ import annotations

import sys
from collections.abc import Callable, Mapping
from typing import Any, TypeAlias

from dtir.spec.callables import Callables, callable_name, is_name, split_name
from dtir.spec.errors import SpecError

Replacement: TypeAlias = Callable[..., Any] | str | None
"""A callable, ``module:qualname`` of one (as a file says it), or None: declared only, the model swaps it itself."""


def call_site() -> str:
    """``file:line`` of the code that makes an adapter, outside of this package and of generated constructors."""
    frame = sys._getframe(1)  # pyright: ignore[reportPrivateUsage]
    while frame is not None:
        name = frame.f_code.co_filename
        if name != "<string>" and "dtir/spec/" not in name.replace("\\", "/"):
            return f"{name}:{frame.f_lineno}"
        frame = frame.f_back
    return ""


def check_names(**names: object) -> None:
    """Raise unless each is a dotted name."""
    for name, value in names.items():
        if not is_name(value):
            raise SpecError(name, f"{name} is {value!r}, which is no name", "spec.adapter")


def check_replacement(replacement: object) -> None:
    """Raise unless it is a callable, the name of one or None."""
    if isinstance(replacement, str):
        split_name(replacement, "replacement")
    elif replacement is not None and not callable(replacement):
        raise TypeError(f"replacement is {type(replacement).__name__}, not a callable, a name or None")


def check_mode(mode: object, known: tuple[str, ...]) -> None:
    """Raise unless it is one of the known words."""
    if mode not in known:
        raise SpecError("mode", f"mode is {mode!r}; it is one of {', '.join(known)}", "spec.adapter")


def live_replacement(replacement: Replacement, callables: Callables) -> Callable[..., Any] | None:
    """The callable: a name is resolved among what was registered or allowed."""
    return callables.resolve(replacement) if isinstance(replacement, str) else replacement


def replacement_name(replacement: Replacement) -> str | None:
    """What a file says: ``module:qualname``, None for a callable without a name of its own."""
    return replacement if isinstance(replacement, str) or replacement is None else callable_name(replacement)


def check_fields(given: object, needed: tuple[str, ...], more: tuple[str, ...], where: str) -> None:
    """Raise unless a JSON object has the needed fields and none that nobody knows.

    Raises:
        SpecError: with the field's name.
    """
    if not isinstance(given, Mapping):
        raise SpecError(where, f"{where} holds {type(given).__name__}, not an object", "spec.adapter")
    keys = [str(key) for key in given]  # pyright: ignore[reportUnknownVariableType, reportUnknownArgumentType]
    for name in needed:
        if name not in keys:
            raise SpecError(f"{where}.{name}", f"{where} lacks {name!r}", "spec.field")
    for name in keys:
        if name not in (*needed, *more):
            raise SpecError(f"{where}.{name}", f"{where} has no field {name!r}", "spec.field")
