"""How the native form writes what is special to the IR: identifiers, rank sets and scalar expressions.

* An identifier is its 32 hex digits where the field says its kind, ``prefix:hex`` where any kind may stand.
* A rank set is an array of ranks and runs; a run is ``[start, stop]`` or ``[start, stop, step]``: ``[[0, 8]]`` is 0 to 7.
* A scalar is a number, or an object with ``kind``: ``symbol`` or the operation.
"""

from __future__ import annotations

import types
from typing import Any, Union, cast, get_args, get_origin

from dtir.ir.expr import ScalarExpr, Symbol
from dtir.ir.ids import StableId
from dtir.ir.native_session import ReadSession
from dtir.ir.ranks import EXPANDED_RANKS_LIMIT, RankRange
from dtir.schema.authoring import adt_manifest, record_classes, record_spec
from dtir.schema.codec import unsupported
from dtir.schema.jsontext import literal_text, too_deep
from dtir.schema.opendata import MAX_PART_DEPTH, Path, PlainError, build_plain
from dtir.schema.plain import PlainCodecs
from dtir.schema.plain_codecs import Codec, TextCodec, expected, shown
from dtir.schema.version import SchemaVersion

_SHORTEST_RUN = 4


def special_codec(annotation: Any, codecs: PlainCodecs) -> Codec | None:
    """The codec of an annotation that the native form writes in a way of its own, else None."""
    members = _union_members(annotation)
    if RankRange in members:
        return RankSetCodec()
    if annotation is ScalarExpr or any(_is_expression(item) for item in members):
        return ScalarCodec(codecs)
    if annotation is StableId:
        return AnyIdCodec()
    if isinstance(annotation, type) and issubclass(annotation, StableId):
        return IdCodec(annotation)
    if annotation is SchemaVersion:
        return TextCodec(SchemaVersion, str, SchemaVersion.parse)
    return None


def _union_members(annotation: Any) -> tuple[Any, ...]:
    return get_args(annotation) if get_origin(annotation) in (Union, types.UnionType) else ()


def _is_expression(member: Any) -> bool:
    return isinstance(member, type) and issubclass(member, ScalarExpr)


# -- identifiers -------------------------------------------------------------------------------------------------


class IdCodec:
    """Identifiers of one kind as their digits."""

    kinds = frozenset({str})

    def __init__(self, cls: type[Any]) -> None:
        self._cls = cls

    def accepts(self, value: Any) -> bool:
        return type(value) is self._cls

    def write(self, value: Any, session: Any) -> str:
        return f'"{value.value}"'

    def read(self, node: Any, session: ReadSession, path: Path) -> Any:
        if type(node) is not str:
            raise expected(self.kinds, node, path)
        known = session.ids.get((self._cls, node))
        if known is None:
            known = session.ids[self._cls, node] = build_plain(self._cls, {"value": node}, path)
        return known


class AnyIdCodec:
    """Identifiers of any kind as ``prefix:digits``."""

    kinds = frozenset({str})

    def accepts(self, value: Any) -> bool:
        return isinstance(value, StableId)

    def write(self, value: Any, session: Any) -> str:
        return f'"{value}"'

    def read(self, node: Any, session: ReadSession, path: Path) -> Any:
        if type(node) is not str:
            raise expected(self.kinds, node, path)
        prefix, _, digits = node.partition(":")
        for cls in record_classes(StableId):
            if prefix == cast("Any", cls).PREFIX:
                return IdCodec(cls).read(digits, session, path)
        raise PlainError(path, f"expected an identifier such as node:..., got {shown(node)}")


# -- rank sets ---------------------------------------------------------------------------------------------------


class RankSetCodec:
    """Ranks and runs of ranks, in order.

    A set of more than `EXPANDED_RANKS_LIMIT` ranks is either one run (and read as a `RankRange`) or written rank by rank:
    what a file makes the reader allocate stays in proportion to the file.
    """

    kinds = frozenset({list})

    def accepts(self, value: Any) -> bool:
        return isinstance(value, (tuple, RankRange))

    def write(self, value: Any, session: Any) -> str:
        if isinstance(value, RankRange):
            if len(value) > EXPANDED_RANKS_LIMIT:
                return f"[{_run_text(value[0], value[-1], value.step)}]"
            value = tuple(value)
        ranks = cast("tuple[int, ...]", value)
        if len(ranks) > EXPANDED_RANKS_LIMIT:
            return f"[{','.join(map(_rank_text, ranks))}]"
        parts: list[str] = []
        at = 0
        while at < len(ranks):
            end = _run_end(ranks, at)
            if end - at >= _SHORTEST_RUN:
                parts.append(_run_text(ranks[at], ranks[end - 1], ranks[at + 1] - ranks[at]))
                at = end
            else:
                parts.append(_rank_text(ranks[at]))
                at += 1
        return f"[{','.join(parts)}]"

    def read(self, node: Any, session: ReadSession, path: Path) -> Any:
        if type(node) is not list:
            raise expected(self.kinds, node, path)
        parts = cast("list[Any]", node)
        # Shared sets stay shared: the same text is read once.
        key = str(parts) if len(parts) <= 64 else None
        if key is not None and key in session.rank_sets:
            return session.rank_sets[key]
        ranks = self._read(parts, session, path)
        if key is not None:
            session.rank_sets[key] = ranks
        return ranks

    def _read(self, parts: list[Any], session: ReadSession, path: Path) -> tuple[int, ...] | RankRange:
        runs = [part if type(part) is int else _read_run(part, (path, index)) for index, part in enumerate(parts)]
        if len(runs) == 1 and isinstance(runs[0], RankRange) and len(runs[0]) > EXPANDED_RANKS_LIMIT:
            return runs[0]
        total = sum(len(run) for run in runs if isinstance(run, RankRange))
        if total > EXPANDED_RANKS_LIMIT:
            raise PlainError(path, f"runs beside others stand for {total} ranks, more than {EXPANDED_RANKS_LIMIT}")
        session.expand(total, path)
        ranks: list[int] = []
        for run in runs:
            if isinstance(run, RankRange):
                ranks.extend(run.as_range)
            else:
                ranks.append(run)
        return tuple(ranks)


def _rank_text(rank: int) -> str:
    return cast("str", literal_text(rank))


def _run_text(first: int, last: int, step: int) -> str:
    return f"[{first},{last + 1}]" if step == 1 else f"[{first},{last + 1},{step}]"


def _run_end(ranks: tuple[int, ...], start: int) -> int:
    """Where the longest rising run of equal steps that begins at `start` ends."""
    if start + 1 >= len(ranks):
        return start + 1
    step = ranks[start + 1] - ranks[start]
    if step <= 0:
        return start + 1
    end = start + 2
    while end < len(ranks) and ranks[end] - ranks[end - 1] == step:
        end += 1
    return end


def _read_run(part: Any, path: Path) -> RankRange:
    numbers = cast("list[Any]", part) if type(part) is list else []
    if len(numbers) not in (2, 3) or any(type(item) is not int for item in numbers):
        raise PlainError(path, f"expected a rank, [start, stop] or [start, stop, step], got {shown(part)}")
    run = build_plain(RankRange, dict(zip(("start", "stop", "step"), numbers, strict=False)), path)
    if not len(run):
        raise PlainError(path, f"the run {shown(part)} holds no rank")
    return run


# -- scalars -----------------------------------------------------------------------------------------------------


class ScalarCodec:
    """Numbers, symbols and expressions. Expressions may be deep: both directions keep their own stack."""

    kinds = frozenset({int, float, dict})

    def __init__(self, codecs: PlainCodecs) -> None:
        self._symbol = codecs.record(Symbol, "symbol")
        self._classes = {item.local_tag: item.constructor for item in adt_manifest(ScalarExpr)}
        self._tags = {cls: tag for tag, cls in self._classes.items()}
        self._names = {cls: tuple(item.name for item in record_spec(cls).fields) for cls in self._tags}

    def accepts(self, value: Any) -> bool:
        return type(value) in (int, float, Symbol) or type(value) in self._tags

    def write(self, value: Any, session: Any) -> str:
        text = literal_text(value)
        if text is not None:
            return text
        out: list[str] = []
        # A depth below 0 marks text.
        stack: list[tuple[Any, int]] = [(value, 0)]
        while stack:
            item, depth = stack.pop()
            if depth < 0:
                out.append(item)
            elif isinstance(item, Symbol):
                out.append(self._symbol.write(item, session))
            elif type(item) in self._tags:
                if depth + 2 > MAX_PART_DEPTH:
                    raise too_deep(MAX_PART_DEPTH)
                stack.extend(reversed(self._parts(item, depth)))
            else:
                text = literal_text(item)
                if text is None:
                    raise unsupported(item)
                out.append(text)
        return "".join(out)

    def _parts(self, item: Any, depth: int) -> list[tuple[Any, int]]:
        parts: list[tuple[Any, int]] = []
        kind = ("kind", f'"{self._tags[type(item)]}"', True)
        fields = [(name, getattr(item, name), False) for name in self._names[type(item)]]
        for index, (name, operand, is_text) in enumerate(sorted([kind, *fields], key=lambda entry: entry[0])):
            parts.append((f'{"," if index else "{"}"{name}":', -1))
            if is_text:
                parts.append((operand, -1))
            elif isinstance(operand, tuple):
                for position, entry in enumerate(cast("tuple[Any, ...]", operand)):
                    parts += (("," if position else "[", -1), (entry, depth + 2))
                parts.append(("]", -1))
            else:
                parts.append((operand, depth + 1))
        parts.append(("}", -1))
        return parts

    def read(self, node: Any, session: ReadSession, path: Path) -> Any:
        done: list[Any] = []
        # Operations are built when all their operands are: entries are (node, path), or (class, fields, path) to build.
        stack: list[Any] = [(node, path)]
        while stack:
            entry = stack.pop()
            if len(entry) == 3:
                self._build(entry, done)
                continue
            item, where = entry
            if type(item) in (int, float):
                done.append(item)
            elif type(item) is dict:
                self._open(cast("dict[str, Any]", item), session, where, stack, done)
            else:
                raise expected(self.kinds, item, where)
        return done[0]

    def _open(self, node: dict[str, Any], session: ReadSession, path: Path, stack: list[Any], done: list[Any]) -> None:
        kind = node.get("kind")
        if kind == "symbol":
            done.append(self._symbol.read(node, session, path))
            return
        cls = self._classes.get(kind) if isinstance(kind, str) else None
        if cls is None:
            known = ", ".join(sorted(("symbol", *self._classes)))
            raise PlainError((path, "kind"), f"{shown(kind)} is no scalar; known are {known}")
        fields: list[tuple[str, int]] = []
        operands: list[tuple[Any, Path]] = []
        for name in self._names[cls]:
            if name not in node:
                raise PlainError(path, f"field {name!r} of {cls.__name__} is missing")
            operand, where = node[name], (path, name)
            if type(operand) is list:
                items = cast("list[Any]", operand)
                fields.append((name, len(items)))
                operands += [(item, (where, index)) for index, item in enumerate(items)]
            else:
                fields.append((name, -1))
                operands.append((operand, where))
        for name in node:
            if name != "kind" and name not in self._names[cls]:
                raise PlainError(path, f"unknown field {name!r} of {cls.__name__}")
        stack.append((cls, fields, path))
        stack.extend(reversed(operands))

    def _build(self, entry: tuple[type[Any], list[tuple[str, int]], Path], done: list[Any]) -> None:
        cls, fields, path = entry
        arguments: dict[str, Any] = {}
        for name, count in reversed(fields):
            if count < 0:
                arguments[name] = done.pop()
            else:
                arguments[name] = tuple(done[len(done) - count :])
                del done[len(done) - count :]
        done.append(build_plain(cls, arguments, path))
