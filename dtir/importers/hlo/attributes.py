"""Attribute values of HLO instructions: what each known name holds, and the parsers.

An attribute that is not in the table keeps its text (`Raw`), so nothing is lost. Attribute names and forms: the
public HLO parser and printer (openxla/xla, xla/hlo/parser/hlo_parser.cc).
"""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass
from typing import TypeAlias

from dtir.importers.hlo.groups import ReplicaGroups, parse_groups, parse_id_lists, parse_pairs
from dtir.importers.hlo.lexing import (
    IDENTIFIER,
    STRING,
    HloSyntaxError,
    balanced_end,
    split_top_level,
    strip_comments,
    unescape,
)
from dtir.importers.hlo.meshes import parse_ints, shorten
from dtir.importers.hlo.shardings import Sharding, parse_sharding


@dataclass(frozen=True, slots=True)
class Raw:
    """Text of an attribute that is kept as it stands."""

    text: str


@dataclass(frozen=True, slots=True)
class Names:
    """Names of computations or instructions."""

    names: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Slices:
    """Per dim `[start:limit:stride]`."""

    starts: tuple[int, ...]
    limits: tuple[int, ...]
    strides: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class Padding:
    """Per dim `low_high_interior` (negative edges crop)."""

    low: tuple[int, ...]
    high: tuple[int, ...]
    interior: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class Window:
    """Per window dim; `pad` is (low, high)."""

    size: tuple[int, ...]
    stride: tuple[int, ...]
    pad: tuple[tuple[int, int], ...]
    lhs_dilate: tuple[int, ...]
    rhs_dilate: tuple[int, ...]
    reversed: tuple[bool, ...]


@dataclass(frozen=True, slots=True)
class Pairs:
    """Source and target ids."""

    pairs: tuple[tuple[int, int], ...]


@dataclass(frozen=True, slots=True)
class IdLists:
    """Lists of integers, as in `slice_sizes={{128,32}}`."""

    lists: tuple[tuple[int, ...], ...]


@dataclass(frozen=True, slots=True)
class Frontend:
    """`frontend_attributes`: key to text; strings are unescaped, nested braces kept as text."""

    entries: tuple[tuple[str, str], ...]

    def get(self, key: str) -> str | None:
        """Text of a key, None when absent."""
        return next((text for name, text in self.entries if name == key), None)


AttributeValue: TypeAlias = (
    bool
    | int
    | float
    | str
    | tuple[int, ...]
    | Raw
    | Names
    | Slices
    | Padding
    | Window
    | Pairs
    | IdLists
    | Frontend
    | ReplicaGroups
    | Sharding
)

_INT = re.compile(r"-?\d{1,19}")
_WORD = re.compile(r"[\w.?\->+]+", re.ASCII)
_SLICE = re.compile(r"\s*\[\s*(-?\d{1,18})\s*:\s*(-?\d{1,18})\s*(?::\s*(-?\d{1,18})\s*)?\]\s*", re.ASCII)
_PAD = re.compile(r"(-?\d{1,18})_(-?\d{1,18})(?:_(-?\d{1,18}))?", re.ASCII)
_WINDOW_FIELD = re.compile(r"\s*(size|stride|pad|lhs_dilate|rhs_dilate|rhs_reversal)=([-\dx_]+)\s*,?", re.ASCII)
_FRONTEND_KEY = re.compile(rf"\s*(?:({IDENTIFIER})|(\"(?:[^\"\\]|\\.)*+\"))\s*=\s*", re.DOTALL)
_REFERENCE = re.compile(rf"\s*%?({IDENTIFIER})\s*", re.ASCII)
_DIM_LABELS = re.compile(r"[\dbf?]+_[\dio?]+->[\dbf?]+", re.ASCII)


def _int(text: str) -> int:
    if _INT.fullmatch(text) is None:
        raise HloSyntaxError(f"expected an integer, found '{shorten(text)}'", 0)
    return int(text)


def _bool(text: str) -> bool:
    if text not in ("true", "false"):
        raise HloSyntaxError(f"expected true or false, found '{shorten(text)}'", 0)
    return text == "true"


def _float(text: str) -> float:
    try:
        return float(text)
    except ValueError:
        raise HloSyntaxError(f"expected a number, found '{shorten(text)}'", 0) from None


def _word(text: str) -> str:
    if _WORD.fullmatch(text) is None:
        raise HloSyntaxError(f"expected a word, found '{shorten(text)}'", 0)
    return text


def _string(text: str) -> str:
    if STRING.fullmatch(text) is None:
        raise HloSyntaxError(f"expected a string in quotes, found '{shorten(text)}'", 0)
    return unescape(text)


def _in_braces(text: str) -> str:
    if not text.startswith("{") or balanced_end(text, 0) != len(text):
        raise HloSyntaxError(f"expected {{...}}, found '{shorten(text)}'", 0)
    return strip_comments(text[1:-1])


def _ints(text: str) -> tuple[int, ...]:
    return parse_ints(_in_braces(text), 1)


def _sizes(text: str) -> tuple[int, ...] | IdLists:
    body = strip_comments(text)
    return IdLists(parse_id_lists(body)) if "{" in body[1:] else _ints(text)


def _name(text: str) -> Names:
    return Names((_reference(text, 0),))


def _names(text: str) -> Names:
    if not text.startswith("{"):
        return _name(text)
    inside = _in_braces(text)
    if not inside.strip():
        return Names(())
    return Names(tuple(_reference(part, offset + 1) for part, offset in split_top_level(inside)))


def _reference(text: str, offset: int) -> str:
    match = _REFERENCE.fullmatch(text)
    if match is None:
        raise HloSyntaxError(f"expected a name, found '{shorten(text)}'", offset)
    return match.group(1)


def _slices(text: str) -> Slices:
    inside = _in_braces(text)
    starts: list[int] = []
    limits: list[int] = []
    strides: list[int] = []
    for part, offset in split_top_level(inside) if inside.strip() else ():
        match = _SLICE.fullmatch(part)
        if match is None:
            raise HloSyntaxError(f"expected [start:limit], found '{shorten(part)}'", offset + 1)
        start, limit, stride = match.groups()
        starts.append(int(start))
        limits.append(int(limit))
        strides.append(1 if stride is None else int(stride))
    return Slices(tuple(starts), tuple(limits), tuple(strides))


def _padding(text: str) -> Padding:
    triples = [_pad(part) for part in text.split("x")] if text else []
    return Padding(tuple(t[0] for t in triples), tuple(t[1] for t in triples), tuple(t[2] for t in triples))


def _pad(text: str) -> tuple[int, int, int]:
    match = _PAD.fullmatch(text)
    if match is None:
        raise HloSyntaxError(f"expected low_high padding, found '{shorten(text)}'", 0)
    low, high, interior = match.groups()
    return int(low), int(high), int(interior or 0)


def _window(text: str) -> Window:
    inside = _in_braces(text)
    fields: dict[str, tuple[str, ...]] = {}
    pos = 0
    while pos < len(inside.rstrip()):
        match = _WINDOW_FIELD.match(inside, pos)
        if match is None:
            raise HloSyntaxError(f"'{shorten(inside[pos:].strip())}' is not part of a window", pos + 1)
        fields[match.group(1)] = tuple(match.group(2).split("x"))
        pos = match.end()
    rank = max((len(parts) for parts in fields.values()), default=0)
    if any(len(parts) != rank for parts in fields.values()):
        raise HloSyntaxError("the parts of a window have different ranks", 0)
    pads = [_pad(part)[:2] for part in fields["pad"]] if "pad" in fields else [(0, 0)] * rank
    reversed_ = tuple(_int(part) != 0 for part in fields.get("rhs_reversal", ("0",) * rank))
    columns = {
        key: tuple(map(_int, fields.get(key, ("1",) * rank))) for key in ("size", "stride", "lhs_dilate", "rhs_dilate")
    }
    return Window(
        columns["size"], columns["stride"], tuple(pads), columns["lhs_dilate"], columns["rhs_dilate"], reversed_
    )


def _dim_labels(text: str) -> str:
    if _DIM_LABELS.fullmatch(text) is None:
        raise HloSyntaxError(f"expected dim labels such as b01f_01io->b01f, found '{shorten(text)}'", 0)
    return text


def _frontend(text: str) -> Frontend:
    if not text.startswith("{") or balanced_end(text, 0) != len(text):
        raise HloSyntaxError(f"expected {{key=value,...}}, found '{shorten(text)}'", 0)
    entries: list[tuple[str, str]] = []
    for part, offset in split_top_level(text[1:-1]):
        match = _FRONTEND_KEY.match(part)
        if match is None:
            if part.strip():
                raise HloSyntaxError(f"expected key=value, found '{shorten(part.strip())}'", offset + 1)
            continue
        key = match.group(1) or unescape(match.group(2))
        value = part[match.end() :].strip()
        entries.append((key, unescape(value) if STRING.fullmatch(value) else value))
    return Frontend(tuple(entries))


def _pairs(text: str) -> Pairs:
    return Pairs(parse_pairs(text))


Parser: TypeAlias = Callable[[str], AttributeValue]


def _table(parser: Parser, names: str) -> dict[str, Parser]:
    return dict.fromkeys(names.split(), parser)


COMPUTATION_ATTRIBUTES = (
    "to_apply",
    "calls",
    "condition",
    "body",
    "true_computation",
    "false_computation",
    "branch_computations",
    "called_computations",
    "select",
    "scatter",
)
"""Attributes that name computations."""

PARSERS: dict[str, Parser] = {
    **_table(
        _ints,
        "dimensions lhs_contracting_dims rhs_contracting_dims lhs_batch_dims rhs_batch_dims lhs_ragged_dims "
        "rhs_group_dims dynamic_slice_sizes offset_dims collapsed_slice_dims operand_batching_dims "
        "start_indices_batching_dims start_index_map update_window_dims inserted_window_dims input_batching_dims "
        "scatter_indices_batching_dims scatter_dims_to_operand_dims fft_length",
    ),
    **_table(_sizes, "slice_sizes"),
    **_table(
        _int,
        "index channel_id iota_dimension index_vector_dim exponent_bits mantissa_bits feature_group_count "
        "batch_group_count cross_program_prefetch_index feature_index delta k replica_count num_partitions num_carries",
    ),
    **_table(
        _bool,
        "use_global_device_ids is_stable indices_are_sorted unique_indices is_host_transfer constrain_layout "
        "custom_call_has_side_effect largest left_side lower unit_diagonal is_scheduled has_dynamic_root",
    ),
    **_table(_float, "epsilon"),
    **_table(_word, "direction kind type fft_type distribution algorithm transpose_a schedule api_version"),
    **_table(_string, "custom_call_target async_execution_thread execution_thread infeed_config outfeed_config"),
    **_table(_names, " ".join(COMPUTATION_ATTRIBUTES)),
    **_table(_names, "control-predecessors"),
    **_table(_slices, "slice"),
    **_table(_padding, "padding"),
    **_table(_window, "window"),
    **_table(_dim_labels, "dim_labels"),
    **_table(_frontend, "frontend_attributes"),
    **_table(_pairs, "source_target_pairs"),
    **_table(parse_groups, "replica_groups"),
    **_table(parse_sharding, "sharding"),
}
"""Parser of every attribute whose value is more than text."""
