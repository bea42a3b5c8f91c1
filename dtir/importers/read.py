"""Bytes in: a file, standard input or bytes in memory, unpacked and bounded, read piece by piece.

What cannot be an input of ours is refused after the first piece: binary data, JSON that nests without end, text in
another encoding, a folder, a stream that never stops.
"""

from __future__ import annotations

import gzip
import io
import zlib
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import TypeAlias

from dtir.importers.base import Limits
from dtir.importers.depth import JsonDepth
from dtir.schema.diagnostics import Diagnostic, DiagnosticSet
from dtir.schema.result import Err, Ok, Result

GZIP_MAGIC = b"\x1f\x8b"
PIECE_BYTES = 1 << 20

_JSON_SPACE = b" \t\r\n"


Refuse: TypeAlias = Callable[[bytes], DiagnosticSet | None]
"""Looks at the first piece and says why the input cannot be one of ours, or None."""


@dataclass(frozen=True, slots=True)
class Unpacked:
    """The bytes of one input.

    Args:
        data: all bytes, decompressed.
        json_open: brackets still open at the end of JSON-like text; 0 for other text.
        in_string: whether JSON-like text ends inside a string.
    """

    data: bytes = field(repr=False)
    json_open: int = 0
    in_string: bool = False


def problem(code: str, message: str, *path: str, hint: str) -> DiagnosticSet:
    """One finding about an input, as a set."""
    return DiagnosticSet.of(Diagnostic(code, message, path, hint=hint))


def read_path(path: Path, limits: Limits, refuse: Refuse) -> Result[Unpacked, DiagnosticSet]:
    """The unpacked bytes of a file.

    Returns:
        `Err` with ``input.not_found``, ``input.directory``, ``input.unreadable`` or what `read_stream` finds.
    """
    try:
        if path.is_dir():
            return Err(
                problem("input.directory", f"{path} is a folder, not a file", hint="name a file in it"),
            )
        with path.open("rb") as stream:
            return read_stream(stream, limits, refuse)
    except FileNotFoundError:
        return Err(problem("input.not_found", f"there is no file {path}", hint=_similar(path)))
    except (OSError, ValueError) as error:  # ValueError: a NUL character in the path
        reason = error.strerror if isinstance(error, OSError) and error.strerror else str(error)
        return Err(
            problem("input.unreadable", f"{path} cannot be read: {reason}", hint="check the path and its permissions"),
        )


def _similar(path: Path) -> str:
    # difflib is loaded only for a mistyped name.
    from difflib import get_close_matches

    try:
        names = [entry.name for entry in path.parent.iterdir()]
    except OSError:
        return f"the folder {path.parent} does not exist either"
    close = get_close_matches(path.name, names, n=1)
    return f"did you mean {path.parent / close[0]}?" if close else "check the path"


def read_stream(
    stream: io.BufferedReader | io.RawIOBase | io.BytesIO, limits: Limits, refuse: Refuse
) -> Result[Unpacked, DiagnosticSet]:
    """The unpacked bytes of a stream, within the limits.

    Returns:
        `Err` with ``input.empty``, ``input.too_large``, ``input.too_many_items``, ``input.too_deep``,
        ``input.truncated`` (a cut ``.gz``) or
        ``input.unreadable`` (a damaged one).

    Raises:
        OSError: the stream itself fails.
    """
    # One that looks ahead: the first two bytes say whether the rest is packed.
    buffered = stream if isinstance(stream, io.BufferedReader) else io.BufferedReader(stream)
    packed = buffered.peek(2)[:2] == GZIP_MAGIC
    try:
        return _bounded(_pieces(gzip.GzipFile(fileobj=buffered) if packed else buffered), limits, refuse)
    except EOFError:
        return Err(
            problem("input.truncated", "the gzip data end before their end mark", hint="copy the file again"),
        )
    except (gzip.BadGzipFile, zlib.error) as error:
        return Err(
            problem("input.unreadable", f"the gzip data are damaged: {error}", hint="copy or pack the file again"),
        )


def _pieces(stream: io.BufferedIOBase) -> Iterator[bytes]:
    while piece := stream.read(PIECE_BYTES):
        yield piece


def _bounded(pieces: Iterator[bytes], limits: Limits, refuse: Refuse) -> Result[Unpacked, DiagnosticSet]:
    kept: list[bytes] = []
    size_bytes = 0
    guard: JsonDepth | None = None
    seen_content = False
    items = 0
    for piece in pieces:
        if not kept and (refusal := refuse(piece)):
            return Err(refusal)
        size_bytes += len(piece)
        if size_bytes > limits.size_bytes:
            return Err(
                problem(
                    "input.too_large",
                    f"the input unpacks to more than {limits.size_bytes} bytes, the most that is read",
                    hint="cut the dump to the module in question",
                )
            )
        items += piece.count(b"\n") + piece.count(b",")
        if items > limits.items:
            return Err(
                problem(
                    "input.too_many_items",
                    f"the input has more than {limits.items} lines and commas, the most that is read",
                    hint="cut the dump to the module in question",
                )
            )
        kept.append(piece)
        if not seen_content and (content := piece.lstrip(_JSON_SPACE)):
            seen_content = True
            guard = JsonDepth(limits.json_depth) if content[:1] in (b"{", b"[") else None
        if guard and not guard.feed(piece):
            return Err(
                problem(
                    "input.too_deep",
                    f"the JSON text nests deeper than {limits.json_depth} levels, the most that is read",
                    hint="no program needs that; check what wrote the file",
                )
            )
    if not seen_content:
        what = f"holds nothing but white space ({size_bytes} bytes)" if size_bytes else "is empty"
        return Err(problem("input.empty", f"the input {what}", hint="check what wrote it"))
    return Ok(Unpacked(b"".join(kept), json_open=guard.open if guard else 0, in_string=bool(guard and guard.in_string)))
