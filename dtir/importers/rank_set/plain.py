"""Plain data out of JSON text, taken with care: every field may be absent, of another kind, or absurd.

>>> whole_number(True), whole_number("12"), whole_number(3.0), shape_of([2, 8]), shape_of([2, "x"])
(None, 12, 3, (2, 8), None)
"""

from __future__ import annotations

import json
import math
import re
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any, cast

from dtir.schema.diagnostics import Diagnostic
from dtir.schema.result import Err, Ok, Result

LARGEST = 2**63 - 1
"""Numbers beyond this are no counts, sizes or times of any runtime."""

MOST_DIMS = 32

_BETWEEN = re.compile(r"[\s,]*")
_DIGITS = re.compile(r"[+-]?\d{1,20}")
_INTEGERS = re.compile(r"-?\d+")


def parse_json(text: str, what: str) -> Result[Any, Diagnostic]:
    """The value of JSON text.

    Args:
        text: the text.
        what: what it should be, for the message.

    Returns:
        `Err` with ``trace.json`` when it is no JSON, or nests too deep for any trace.
    """
    try:
        return Ok(json.loads(text))
    except RecursionError:
        return Err(Diagnostic("trace.json", f"{what} nests deeper than any tracer writes", hint="check what wrote it"))
    except json.JSONDecodeError as error:
        return Err(
            Diagnostic(
                "trace.json",
                f"{what} is no JSON from here on: {error.msg}",
                ("line", str(error.lineno), "column", str(error.colno)),
                hint="copy or write the file again",
            )
        )
    except ValueError as error:  # a number of thousands of digits
        return Err(Diagnostic("trace.json", f"{what} is no JSON that can be read: {error}", hint="check what wrote it"))


def parse_listed(
    text: str, what: str, key: str
) -> Result[tuple[Mapping[str, Any], tuple[Diagnostic, ...]], Diagnostic]:
    """A JSON object, most of which is a list; of text that is cut or damaged, what stands before that place.

    Tracers write while a job runs, and jobs end as they like.

    Args:
        text: the text; a bare list counts as the object that has it under `key`.
        what: what it should be, for the message.
        key: the list.

    Returns:
        The object and what was wrong with it; `Err` when nothing of the list can be read.
    """
    match parse_json(text, what):
        case Ok(value):
            return Ok(({key: cast("list[Any]", value)} if isinstance(value, list) else mapping(value), ()))
        case Err(error):
            whole = _salvaged(text, key)
    if whole is None:
        return Err(error)
    shown = f"{error.message}; {len(whole[key])} entries of {key} stand before and are shown"
    return Ok((whole, (replace(error, message=shown),)))


def _salvaged(text: str, key: str) -> dict[str, Any] | None:
    """The entries of the list up to the first that is no JSON, with the keys before it; None when there are none."""
    begins = re.match(r"\s*\[", text) or re.search(rf'"{key}"\s*:\s*\[', text)
    if begins is None:
        return None
    try:
        whole = dict(mapping(json.loads(text[: begins.start()] + f'"{key}": []}}')))
    except (ValueError, RecursionError):
        whole = {}
    decoder = json.JSONDecoder()
    found: list[Any] = []
    at = begins.end()
    while True:
        between = _BETWEEN.match(text, at)
        at = between.end() if between is not None else at
        try:
            value, at = decoder.raw_decode(text, at)
        except (ValueError, RecursionError, IndexError):
            break
        found.append(value)
    whole[key] = found
    return whole if found else None


def mapping(value: object) -> Mapping[str, Any]:
    """A JSON object; an empty one for anything else."""
    return cast("Mapping[str, Any]", value) if isinstance(value, dict) else {}


def sequence(value: object) -> Sequence[Any]:
    """A JSON list; an empty one for anything else."""
    return cast("Sequence[Any]", value) if isinstance(value, list) else ()


def text_of(value: object) -> str:
    """A text, or the empty text."""
    return value if isinstance(value, str) else ""


def whole_number(value: object) -> int | None:
    """A whole number, also one written as text or as 3.0; None for anything else and for absurd sizes."""
    if isinstance(value, bool):
        return None
    if isinstance(value, str):
        found = int(value) if _DIGITS.fullmatch(value) else None
    elif isinstance(value, float):
        found = int(value) if value.is_integer() else None
    else:
        found = value if isinstance(value, int) else None
    return found if found is not None and -LARGEST <= found <= LARGEST else None


def nanoseconds(value: object, unit_ns: int = 1) -> int | None:
    """A time or duration in nanoseconds; None when it is no number, or absurd."""
    if isinstance(value, bool) or not isinstance(value, (int, float, str)):
        return None
    if isinstance(value, float):
        if not math.isfinite(value):
            return None
        found = round(value * unit_ns) if abs(value) < 2**53 else int(value) * unit_ns
    else:
        number = whole_number(value)
        if number is None:
            return None
        found = number * unit_ns
    return found if abs(found) <= LARGEST else None


def count_of(value: object) -> int | None:
    """A number that counts something: not negative."""
    found = whole_number(value)
    return found if found is not None and found >= 0 else None


def shape_of(value: object) -> tuple[int, ...] | None:
    """A shape; None when it is none."""
    items = sequence(value)
    if not isinstance(value, list) or len(items) > MOST_DIMS:
        return None
    found = [count_of(item) for item in items]
    known = tuple(item for item in found if item is not None)
    return known if len(known) == len(found) else None


def ranks_of(value: object) -> tuple[int, ...] | None:
    """Rank numbers of a list, or of its text ``"[0, 1]"``; None when it is neither, or was shortened by its writer."""
    if isinstance(value, str):
        if "..." in value or not re.fullmatch(r"\s*\[[\d\s,]*\]\s*", value):
            return None
        items: Sequence[Any] = [int(item) for item in _INTEGERS.findall(value) if len(item) < 20]
    elif isinstance(value, list):
        items = sequence(cast("list[Any]", value))
    else:
        return None
    found = [count_of(item) for item in items]
    known = tuple(dict.fromkeys(item for item in found if item is not None))
    return known if len(known) == len(found) else None
