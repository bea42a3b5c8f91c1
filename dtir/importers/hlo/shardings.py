"""HLO shardings: how a global array is laid out over devices.

V1 `{devices=[2,4]0,1,...}`, V2 `{devices=[4,1,2]<=[2,4]T(1,0) last_tile_dim_replicate}` and V3, named,
`{mesh['x'=2,'y'=4], [{'x'}, {'y':(2)2}], replicated={..}, unreduced=max{..}}`, tuples of these, and the short forms
`{replicated}`, `{manual}`, `{unknown}`, `{unreduced}`, `{maximal device=3}`.
Source: the public XLA parser, `xla/hlo/ir/hlo_sharding.h` and `named_sharding.h` (openxla/xla).
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from enum import Enum
from math import prod
from typing import TypeAlias

from dtir.importers.hlo.lexing import HloSyntaxError, balanced_end, skip_space, split_top_level, strip_comments
from dtir.importers.hlo.meshes import (
    MAX_RANKS,
    AxisRef,
    Iota,
    Mesh,
    parse_ints,
    refine,
    scan_axis_refs,
    scan_iota,
    scan_mesh,
    shorten,
)

MAX_NESTING = 10
"""Deepest nesting of tuple shardings that is read (the printer writes them flat)."""


class Subgroup(Enum):
    """What the devices of one trailing tile dim have in common."""

    REPLICATED = "replicated"
    MANUAL = "manual"
    UNREDUCED = "unreduced"
    UNKNOWN = "unknown"


@dataclass(frozen=True, slots=True)
class Uniform:
    """One state on all devices: replicated, manual, unreduced or unknown."""

    state: Subgroup
    text: str


@dataclass(frozen=True, slots=True)
class Maximal:
    """The whole value on one device."""

    device: int
    text: str


@dataclass(frozen=True, slots=True)
class Tiled:
    """Tiles over devices: `tile_dims` are the shard counts per dim, then one size per entry of `subgroups`.

    Tile number t, row-major over `tile_dims`, is on device `devices()[t]`.
    """

    tile_dims: tuple[int, ...]
    assignment: Iota | tuple[int, ...]
    subgroups: tuple[Subgroup, ...]
    text: str

    @property
    def data_dims(self) -> tuple[int, ...]:
        """Shard counts of the tensor's own dims."""
        return self.tile_dims[: len(self.tile_dims) - len(self.subgroups)]

    def devices(self) -> tuple[int, ...]:
        """Device of every tile; raises `HloSyntaxError` above `MAX_RANKS`."""
        if not isinstance(self.assignment, Iota):
            return self.assignment
        if self.assignment.count > MAX_RANKS:
            message = f"a sharding over {self.assignment.count} devices is more than the {MAX_RANKS} that are expanded"
            raise HloSyntaxError(message, 0, "hlo.too_many_ranks")
        return self.assignment.expand()


@dataclass(frozen=True, slots=True)
class Named:
    """Mesh axes per dim, major to minor. An axis that is named nowhere is replicated; `open_dims` may still grow."""

    mesh: Mesh
    dim_axes: tuple[tuple[AxisRef, ...], ...]
    open_dims: tuple[bool, ...]
    replicated: tuple[AxisRef, ...]
    manual: tuple[AxisRef, ...]
    unreduced: tuple[AxisRef, ...]
    reduction: str | None
    text: str


@dataclass(frozen=True, slots=True)
class TupleSharding:
    """One sharding per leaf of a tuple shape."""

    elements: tuple[Sharding, ...]
    text: str


ArraySharding: TypeAlias = Uniform | Maximal | Tiled | Named
Sharding: TypeAlias = ArraySharding | TupleSharding

_UNIFORM = {state.value: state for state in Subgroup}
_MAXIMAL = re.compile(r"maximal\s+device=(-?\d{1,18})", re.ASCII)
_MAXIMAL_MESH = re.compile(r"maximal_mesh\[\s*device_id=(\d{1,18})\s*\]", re.ASCII)
_DEVICES = re.compile(r"devices=\[([\d,\s]*)\]\s*", re.ASCII)
_EXPLICIT_IDS = re.compile(r"-?\d{1,18}(?:\s*,\s*-?\d{1,18})*+", re.ASCII)
_TAIL_WORD = re.compile(
    r"\s*,?\s*(?:(last_tile_dim_replicate)\b|last_tile_dims=\{([^{}]*)\}|(shard_as|shard_like)\s+\d+|(metadata)=(?=\{))"
)


def parse_sharding(text: str) -> Sharding:
    """Any sharding text, braces included; raises `HloSyntaxError`.

    >>> parse_sharding("{devices=[2,1,2]<=[4] last_tile_dim_replicate}").data_dims
    (2, 1)
    """
    return _parse(strip_comments(text).strip(), text, 0)


def _parse(body: str, text: str, depth: int) -> Sharding:
    if depth > MAX_NESTING:
        raise HloSyntaxError(f"sharding is nested deeper than {MAX_NESTING} levels", 0)
    if not body.startswith("{") or balanced_end(body, 0) != len(body):
        raise HloSyntaxError("expected a sharding in braces", 0)
    inside = body[1:-1].strip()
    if not inside:
        return TupleSharding((), text)
    if inside.startswith("{"):
        elements = [_parse(part.strip(), part.strip(), depth + 1) for part, _ in split_top_level(inside)]
        return TupleSharding(tuple(_flatten(elements)), text)
    if inside.startswith("mesh["):
        return _parse_named(inside, text)
    if inside.startswith("devices="):
        return _parse_tiled(inside, text)
    match = _MAXIMAL_MESH.match(inside) or _MAXIMAL.match(inside)
    if match is not None:
        _scan_tail(inside, match.end(), allow_dims=False)
        return Maximal(int(match.group(1)), text)
    word = re.match(r"[a-z_]+", inside)
    if word is None or word.group() not in _UNIFORM:
        raise HloSyntaxError(f"'{shorten(inside)}' is not a sharding", 1, "hlo.sharding")
    _scan_tail(inside, word.end(), allow_dims=False)
    return Uniform(_UNIFORM[word.group()], text)


def _flatten(elements: list[Sharding]) -> list[Sharding]:
    flat: list[Sharding] = []
    for element in elements:
        flat.extend(element.elements if isinstance(element, TupleSharding) and element.elements else (element,))
    return flat


def _parse_tiled(inside: str, text: str) -> Tiled:
    match = _DEVICES.match(inside)
    if match is None:
        raise HloSyntaxError("expected devices=[dims]", 1)
    dims = parse_ints(match.group(1), match.start(1))
    pos = match.end()
    if inside.startswith("<=", pos):
        assignment, pos = scan_iota(inside, skip_space(inside, pos + 2))
        count = assignment.count
    else:
        ids = _EXPLICIT_IDS.match(inside, pos)
        if ids is None:
            raise HloSyntaxError("expected device ids or '<='", pos)
        assignment, pos = parse_ints(ids.group(), pos), ids.end()
        count = len(assignment)
        if len(set(assignment)) < count or min(assignment) < 0:
            raise HloSyntaxError("a device id is negative or occurs twice", match.end(), "hlo.sharding")
    subgroups = _scan_tail(inside, pos, allow_dims=True)
    if not dims or min(dims) < 1 or prod(dims) != count:
        raise HloSyntaxError(f"tile dims {list(dims)} do not match {count} devices", 1, "hlo.sharding")
    if len(subgroups) > len(dims):
        raise HloSyntaxError(f"{len(subgroups)} last tile dims, but only {len(dims)} tile dims", 1, "hlo.sharding")
    return Tiled(dims, assignment, subgroups, text)


def _scan_tail(inside: str, pos: int, allow_dims: bool) -> tuple[Subgroup, ...]:
    """What may follow: last tile dims, shard groups and metadata; gives the subgroup of each last tile dim."""
    subgroups: tuple[Subgroup, ...] = ()
    while skip_space(inside, pos) < len(inside):
        match = _TAIL_WORD.match(inside, pos)
        if match is None:
            raise HloSyntaxError(f"'{shorten(inside[pos:].strip())}' is not part of a sharding", pos, "hlo.sharding")
        last_replicated, last_dims, _shard_group, metadata = match.groups()
        pos = match.end()
        if last_replicated is not None or last_dims is not None:
            if not allow_dims:
                raise HloSyntaxError("last tile dims need devices=[...]", match.start(), "hlo.sharding")
            names = ["replicated"] if last_dims is None else [name.strip() for name in last_dims.split(",")]
            unknown = [name for name in names if name not in _UNIFORM]
            if unknown:
                raise HloSyntaxError(f"'{shorten(unknown[0])}' is not a last tile dim", match.start(), "hlo.sharding")
            subgroups = tuple(_UNIFORM[name] for name in names)
        elif metadata is not None:
            pos = balanced_end(inside, pos)
    return subgroups


def _parse_named(inside: str, text: str) -> Sharding:
    mesh, pos = scan_mesh(inside, 0)
    dim_axes: list[tuple[AxisRef, ...]] = []
    open_dims: list[bool] = []
    groups: dict[str, tuple[AxisRef, ...]] = {}
    reduction: str | None = None
    pos = _skip_comma(inside, pos)
    word = re.compile(r"(replicated|manual|unreduced|unknown)\b(?!\s*=)").match(inside, pos)
    if word is not None:
        _scan_tail(inside, word.end(), allow_dims=False)
        return Uniform(_UNIFORM[word.group(1)], text)
    if not inside.startswith("[", pos):
        raise HloSyntaxError("expected [{axes}, ...] after the mesh", pos, "hlo.sharding")
    pos = skip_space(inside, pos + 1)
    while not inside.startswith("]", pos):
        axes, is_open, pos = scan_axis_refs(inside, pos)
        dim_axes.append(axes)
        open_dims.append(is_open)
        pos = skip_space(inside, pos)
        if inside.startswith(",", pos):
            pos = skip_space(inside, pos + 1)
        elif not inside.startswith("]", pos):
            raise HloSyntaxError("expected ',' or ']' after the axes of a dim", pos)
    pos = _skip_comma(inside, pos + 1)
    option = re.compile(r"(replicated|manual|unreduced)=(\w*)(?=\{)")
    while (match := option.match(inside, pos)) is not None:
        axes, _, pos = scan_axis_refs(inside, match.end())
        groups[match.group(1)] = axes
        if match.group(1) == "unreduced":
            reduction = match.group(2) or None
        pos = _skip_comma(inside, pos)
    _scan_tail(inside, pos, allow_dims=False)
    named = Named(
        mesh,
        tuple(dim_axes),
        tuple(open_dims),
        groups.get("replicated", ()),
        groups.get("manual", ()),
        groups.get("unreduced", ()),
        reduction,
        text,
    )
    refine(mesh, used_axes(named))
    return named


def _skip_comma(text: str, pos: int) -> int:
    pos = skip_space(text, pos)
    return skip_space(text, pos + 1) if text.startswith(",", pos) else pos


def used_axes(named: Named) -> tuple[AxisRef, ...]:
    """Every axis reference of a named sharding: dims in order, then replicated, manual, unreduced."""
    dims = tuple(ref for refs in named.dim_axes for ref in refs)
    return dims + named.replicated + named.manual + named.unreduced


def to_tiled(named: Named) -> Uniform | Tiled:
    """A named sharding as tiles over devices (what V2 prints).

    Unnamed axes form one trailing replicated tile dim, after the manual and unreduced ones.

    >>> sharding = parse_sharding("{mesh['a'=2,'b'=4], [{'a'}, {'b':(2)2}]}")
    >>> to_tiled(sharding).text
    '{devices=[2,2,2]<=[2,2,2]T(0,2,1) last_tile_dim_replicate}'
    """
    refs = used_axes(named)
    refined = refine(named.mesh, refs)
    sizes = [prod(refined.dims[piece] for piece in pieces) for pieces in refined.pieces]
    at = 0
    tile_dims: list[int] = []
    order: list[int] = []
    for axes in named.dim_axes:
        tile_dims.append(prod(sizes[at : at + len(axes)]))
        order += [piece for pieces in refined.pieces[at : at + len(axes)] for piece in pieces]
        at += len(axes)
    subgroups: list[Subgroup] = []
    at += len(named.replicated)
    for axes, state in ((named.manual, Subgroup.MANUAL), (named.unreduced, Subgroup.UNREDUCED)):
        pieces = [piece for group in refined.pieces[at : at + len(axes)] for piece in group]
        at += len(axes)
        if pieces:
            order += pieces
            tile_dims.append(prod(refined.dims[piece] for piece in pieces))
            subgroups.append(state)
    rest = [piece for piece in range(len(refined.dims)) if piece not in set(order)]
    rest_size = prod(refined.dims[piece] for piece in rest)
    if not subgroups and prod(tile_dims) == 1:
        return Uniform(Subgroup.REPLICATED, "{replicated}")
    if rest_size > 1:
        order += rest
        tile_dims.append(rest_size)
        subgroups.append(Subgroup.REPLICATED)
    else:
        order += rest
    iota = _merge(refined.dims, tuple(order))
    devices = named.mesh.device_ids
    if devices is None:
        return tiled(tuple(tile_dims), iota, tuple(subgroups))
    ids = named.mesh.devices()
    return tiled(tuple(tile_dims), tuple(ids[position] for position in iota.expand()), tuple(subgroups))


def _merge(dims: tuple[int, ...], perm: tuple[int, ...]) -> Iota:
    """The shortest iota with this order: dims of size 1 dropped, dims that stay neighbours joined."""
    runs: list[list[int]] = []
    for axis in perm:
        if dims[axis] == 1:
            continue
        if runs and all(dims[between] == 1 for between in range(runs[-1][-1] + 1, axis)) and axis > runs[-1][-1]:
            runs[-1].append(axis)
        else:
            runs.append([axis])
    if not runs:
        return Iota((1,), (0,))
    by_position = sorted(range(len(runs)), key=lambda run: runs[run][0])
    place = {run: position for position, run in enumerate(by_position)}
    reshape = tuple(prod(dims[axis] for axis in runs[run]) for run in by_position)
    return Iota(reshape, tuple(place[run] for run in range(len(runs))))


def tiled(tile_dims: tuple[int, ...], assignment: Iota | tuple[int, ...], subgroups: tuple[Subgroup, ...]) -> Tiled:
    """A `Tiled` with the text HLO prints for it."""
    dims = ",".join(map(str, tile_dims))
    ids = f"<={assignment.text()}" if isinstance(assignment, Iota) else ",".join(map(str, assignment))
    if subgroups == (Subgroup.REPLICATED,):
        tail = " last_tile_dim_replicate"
    elif subgroups:
        tail = f" last_tile_dims={{{', '.join(state.value for state in subgroups)}}}"
    else:
        tail = ""
    return Tiled(tile_dims, assignment, subgroups, f"{{devices=[{dims}]{ids}{tail}}}")
