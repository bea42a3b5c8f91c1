"""JSON text as snapshots use it: strict reading, canonical literals, UTF-8 and digests.

Canonical text has sorted keys, no white space, and escapes only what JSON requires. Reading is strict: a repeated key,
NaN, infinity or nesting beyond `MAX_JSON_DEPTH` is an error with one message, whatever the depth of the caller's stack.
"""

from __future__ import annotations

import hashlib
import json
import math
import re
import threading
from collections.abc import Callable
from json.encoder import encode_basestring
from typing import Any, NoReturn, cast

from dtir.schema.errors import SerializationError

MAX_JSON_DEPTH = 984
"""Most brackets that may be open at once: what the upstream reader can open with Python's default recursion limit."""

INVALID_JSON = "invalid canonical JSON"

_NOT_ASCII = re.compile(r"[^ -~]")


# -- writing -----------------------------------------------------------------------------------------------------


def string_text(text: str) -> str:
    """The JSON string of a text, quotes included; only what must be escaped is."""
    return encode_basestring(text)


def literal_text(value: Any) -> str | None:
    """The canonical JSON of a literal, or None when `value` is not one.

    Raises:
        SerializationError: NaN, infinity, or an integer with more digits than Python converts.
    """
    if value is None:
        return "null"
    if value is True:
        return "true"
    if value is False:
        return "false"
    kind = cast("type[Any]", type(value))
    if kind is str:
        return encode_basestring(value)
    if kind is int:
        try:
            return int.__repr__(value)
        except ValueError as error:
            raise SerializationError(f"an integer of {value.bit_length()} bits has too many digits") from error
    if kind is float:
        if not math.isfinite(value):
            raise SerializationError("canonical IR does not permit NaN or infinity")
        return float.__repr__(value)
    return None


def ascii_key(text: str) -> str:
    """Canonical JSON text with everything outside printable ASCII escaped: the sort key of set members.

    >>> sorted(['"v"', '"é"', '"Z"'], key=ascii_key)
    ['"Z"', '"é"', '"v"']
    """
    return text if text.isascii() and "\x7f" not in text else _NOT_ASCII.sub(_escaped, text)


def _escaped(match: re.Match[str]) -> str:
    return json.dumps(match.group())[1:-1]


def too_deep(limit: int = MAX_JSON_DEPTH) -> SerializationError:
    """The error about nesting beyond a limit."""
    return SerializationError(f"canonical IR nests deeper than {limit} levels")


def utf8(text: str) -> bytes:
    """UTF-8 bytes of canonical text.

    Raises:
        SerializationError: the text holds a lone surrogate.
    """
    try:
        return text.encode("utf-8")
    except UnicodeEncodeError as error:
        raise SerializationError(
            f"text with a lone surrogate U+{ord(text[error.start]):04X} cannot be encoded"
        ) from error


def text_digest(domain: str, canonical_text: str) -> str:
    """BLAKE2b-160 (40 hex digits) over ``domain``, a zero byte and the canonical text in UTF-8.

    Raises:
        SerializationError: the text holds a lone surrogate.
    """
    state = hashlib.blake2b(domain.encode("ascii") + b"\0", digest_size=20)
    state.update(utf8(canonical_text))
    return state.hexdigest()


# -- reading -----------------------------------------------------------------------------------------------------


def _refuse_duplicates(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    made = dict(pairs)
    if len(made) != len(pairs):
        seen: set[str] = set()
        for key, _ in pairs:
            if key in seen:
                raise SerializationError(f"duplicate canonical JSON key: {key!r}", hint="give every key once")
            seen.add(key)
    return made


def _refuse_constant(name: str) -> NoReturn:
    raise SerializationError(f"canonical JSON does not permit {name}", hint="only finite numbers can be written")


def _loads(text: str) -> Any:
    try:
        return json.loads(text, object_pairs_hook=_refuse_duplicates, parse_constant=_refuse_constant)
    except json.JSONDecodeError as error:
        raise SerializationError(
            INVALID_JSON, hint=f"{error.msg.removesuffix(' at')} at line {error.lineno}, column {error.colno}"
        ) from error
    except SerializationError:
        raise
    except ValueError as error:
        # int() refuses digit strings beyond sys.get_int_max_str_digits().
        raise SerializationError(INVALID_JSON, hint=str(error)) from error


def parse_json(text: str) -> Any:
    """Parse JSON strictly: no duplicate keys, no NaN or infinity. Depth is bounded by the reader of the tree.

    Raises:
        SerializationError: with one message for whatever is wrong.
    """
    try:
        return _loads(text)
    except RecursionError:
        return _on_fresh_stack(_loads, text)


def raw_json(tree: Any) -> str:
    """Canonical text of a parsed tree, whatever it means: sorted keys, no white space.

    Raises:
        SerializationError: nesting beyond what can be written, or a float that is not finite.
    """
    try:
        return _dumps(tree)
    except RecursionError:
        return _on_fresh_stack(_dumps, tree)


def _dumps(tree: Any) -> str:
    try:
        return json.dumps(tree, ensure_ascii=False, allow_nan=False, sort_keys=True, separators=(",", ":"))
    except ValueError as error:
        raise SerializationError("canonical IR does not permit NaN or infinity") from error


def _on_fresh_stack(work: Callable[[Any], Any], argument: Any) -> Any:
    # Nesting that is legal (MAX_JSON_DEPTH) may not fit above a deep caller: a new thread starts at depth zero.
    outcome: list[Any] = []

    def run() -> None:
        try:
            outcome.append(work(argument))
        except (SerializationError, RecursionError) as error:
            outcome.append(error)

    thread = threading.Thread(target=run, name="dtir-json")
    thread.start()
    thread.join()
    result = outcome[0]
    if isinstance(result, RecursionError):
        raise too_deep()
    if isinstance(result, SerializationError):
        raise result
    return result
