"""Shardy's meshes and shardings.

`<["dp"=2, "tp"=4], device_ids=[...]>` is a mesh, `<@mesh, [{"dp"}, {"tp":(1)2, ?}p1], replicated={"x"}, unreduced={"y"}>` a
sharding: axes per dim, major to minor; ``?`` marks a dim that may be sharded further, ``p1`` a priority, ``"tp":(1)2`` the part
of size 2 that follows a part of size 1.
Source: Shardy's documentation and dialect (openxla/shardy, docs/sharding_representation.md, dialect/sdy/ir/attrs.td).

>>> sharding = parse_sharding('#sdy.sharding<@mesh, [{"a", ?}, {"b":(2)4}p3], unreduced={"c"}>')
>>> sharding.dims[1].axes[0].size, sharding.dims[0].is_open, sharding.dims[1].priority, sharding.unreduced[0].name
(4, True, 3, 'c')
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass

from dtir.importers.hlo.lexing import HloSyntaxError, unescape
from dtir.importers.hlo.meshes import AxisRef, Mesh, refine, shorten
from dtir.importers.hlo.shardings import Maximal, Named, Sharding, Subgroup, Uniform
from dtir.importers.stablehlo.lists import closing, split

_AXIS = re.compile(r'("(?:[^"\\\n]|\\.)*")\s*=\s*(-?\d{1,18})')
_REF = re.compile(r'("(?:[^"\\\n]|\\.)*")\s*(?::\s*\((-?\d{1,18})\)\s*(-?\d{1,18}))?')
_IDS = re.compile(r"device_ids\s*=\s*\[([^\]]*)\]")
_PRIORITY = re.compile(r"\}\s*p(\d{1,9})\s*$")
_OPTION = re.compile(r"(replicated|unreduced)\s*=\s*(\w*)\s*\{")
_SYMBOL = re.compile(r'@([\w.$\-]+|"(?:[^"\\\n]|\\.)*")')


@dataclass(frozen=True, slots=True)
class SdyMesh:
    """Axes with sizes, major to minor, and the devices in another order than 0, 1, 2, ... where one is stated."""

    axes: tuple[tuple[str, int], ...]
    device_ids: tuple[int, ...] = ()

    @property
    def is_maximal(self) -> bool:
        """One device and no axes: what is sharded over it is on that device alone."""
        return not self.axes and len(self.device_ids) == 1

    @property
    def mesh(self) -> Mesh:
        """As the HLO importer has meshes."""
        return Mesh(self.axes, self.device_ids or None)

    def size_of(self, ref: AxisRef) -> int:
        """Size of an axis or part of one; 1 for an axis that is not there."""
        if ref.size is not None:
            return ref.size
        return next((size for name, size in self.axes if name == ref.name), 1)

    def text(self) -> str:
        """As Shardy prints it: ``["a"=2, "b"=4]``, with device ids where there are any."""
        axes = ", ".join(f'"{name}"={size}' for name, size in self.axes)
        ids = f", device_ids=[{', '.join(map(str, self.device_ids))}]" if self.device_ids else ""
        return f"[{axes}]{ids}"


@dataclass(frozen=True, slots=True)
class DimSharding:
    """How one dim is sharded."""

    axes: tuple[AxisRef, ...]
    is_open: bool = False
    priority: int | None = None


@dataclass(frozen=True, slots=True)
class SdySharding:
    """One sharding; `mesh` is the name of a mesh, or None where `inline` is the mesh itself."""

    mesh: str | None
    inline: SdyMesh | None
    dims: tuple[DimSharding, ...]
    replicated: tuple[AxisRef, ...] = ()
    unreduced: tuple[AxisRef, ...] = ()
    reduction: str | None = None
    text: str = ""

    def used(self) -> tuple[AxisRef, ...]:
        """Every axis that is named: those of the dims, then replicated and unreduced ones."""
        return (*(ref for dim in self.dims for ref in dim.axes), *self.replicated, *self.unreduced)

    def mesh_text(self) -> str:
        """How the mesh is named in messages."""
        return f"@{self.mesh}" if self.mesh is not None else f"mesh<{self.inline.text() if self.inline else ''}>"


def parse_mesh(text: str) -> SdyMesh:
    """A mesh from ``<["a"=2], device_ids=[..]>``; raises `HloSyntaxError`.

    >>> parse_mesh('<["x"=2, "y"=3], device_ids=[5,4,3,2,1,0]>').axes
    (('x', 2), ('y', 3))
    """
    start = text.find("[")
    if start < 0:
        raise HloSyntaxError(f"expected a mesh such as <[\"x\"=2]>, found '{shorten(text)}'", 0, "mlir.mesh")
    end = closing(text, start)
    axes: list[tuple[str, int]] = []
    for part in split(text[start + 1 : end - 1]):
        match = _AXIS.fullmatch(part)
        if match is None:
            raise HloSyntaxError(f"expected an axis such as \"x\"=2, found '{shorten(part)}'", 0, "mlir.mesh")
        axes.append((unescape(match.group(1)), int(match.group(2))))
    ids = _IDS.search(text, end)
    device_ids = tuple(int(number) for number in re.findall(r"-?\d{1,18}", ids.group(1))) if ids is not None else ()
    return SdyMesh(tuple(axes), device_ids)


def parse_refs(text: str) -> tuple[tuple[AxisRef, ...], bool]:
    """The axes in ``"a", "b":(1)2, ?`` and whether the question mark is among them; raises `HloSyntaxError`."""
    refs: list[AxisRef] = []
    is_open = False
    for part in split(text):
        if part == "?":
            is_open = True
            continue
        match = _REF.fullmatch(part)
        if match is None:
            raise HloSyntaxError(
                f'expected an axis such as "x" or "x":(1)2, found \'{shorten(part)}\'', 0, "mlir.sharding"
            )
        name, pre, size = match.groups()
        refs.append(AxisRef(unescape(name)) if pre is None else AxisRef(unescape(name), int(pre), int(size)))
    return tuple(refs), is_open


def parse_dims(text: str) -> tuple[DimSharding, ...]:
    """The dims in ``{"a"}, {?}p0, {}``; raises `HloSyntaxError`."""
    dims: list[DimSharding] = []
    for part in split(text):
        if not part.startswith("{"):
            raise HloSyntaxError(f"expected the axes of a dim in braces, found '{shorten(part)}'", 0, "mlir.sharding")
        end = closing(part, 0)
        refs, is_open = parse_refs(part[1 : end - 1])
        priority = _PRIORITY.search(part, end - 1)
        dims.append(DimSharding(refs, is_open, int(priority.group(1)) if priority is not None else None))
    return tuple(dims)


def parse_sharding(text: str) -> SdySharding:
    """A sharding from ``#sdy.sharding<...>`` or ``<...>``; raises `HloSyntaxError`."""
    start = text.find("<")
    if start < 0 or closing(text, start) != len(text.rstrip()):
        raise HloSyntaxError(f"expected a sharding such as <@mesh, [...]>, found '{shorten(text)}'", 0, "mlir.sharding")
    parts = split(text.rstrip()[start + 1 : -1])
    if len(parts) < 2 or not parts[1].startswith("["):
        raise HloSyntaxError(f"expected a mesh and a list of dims, found '{shorten(text)}'", 0, "mlir.sharding")
    symbol = _SYMBOL.fullmatch(parts[0])
    mesh = inline = None
    if symbol is not None:
        mesh = symbol.group(1).strip('"')
    else:
        inline = parse_mesh(parts[0])
    dims = parse_dims(parts[1][1:-1])
    groups: dict[str, tuple[AxisRef, ...]] = {}
    reduction: str | None = None
    for part in parts[2:]:
        option = _OPTION.match(part)
        if option is None:
            raise HloSyntaxError(f"'{shorten(part)}' is not part of a sharding", 0, "mlir.sharding")
        body = part[option.end() : closing(part, option.end() - 1) - 1]
        groups[option.group(1)], _ = parse_refs(body)
        if option.group(1) == "unreduced":
            reduction = option.group(2) or None
    return SdySharding(
        mesh, inline, dims, groups.get("replicated", ()), groups.get("unreduced", ()), reduction, text.strip()
    )


def parse_list(text: str) -> tuple[SdySharding, ...]:
    """The shardings in ``#sdy.sharding_per_value<[<...>, <...>]>`` or ``[<...>, <...>]``; raises `HloSyntaxError`."""
    start = text.find("[")
    if start < 0:
        raise HloSyntaxError(f"expected a list of shardings, found '{shorten(text)}'", 0, "mlir.sharding")
    return tuple(parse_sharding(part) for part in split(text[start + 1 : closing(text, start) - 1]))


def to_hlo(sharding: SdySharding, meshes: Mapping[str, SdyMesh], manual: tuple[str, ...] = ()) -> Sharding | None:
    """The sharding as the HLO importer has shardings; None where its mesh is not known or does not fit.

    Args:
        sharding: what the text says.
        meshes: the meshes of the module by name.
        manual: axes of enclosing manual computations: along them the value is what one rank has.
    """
    mesh = sharding.inline if sharding.mesh is None else meshes.get(sharding.mesh)
    if mesh is None:
        return None
    text = f"{sharding.text} manual={{{', '.join(manual)}}}" if manual else sharding.text
    if mesh.is_maximal:
        return Maximal(mesh.device_ids[0], text) if mesh.device_ids[0] >= 0 else None
    if not mesh.axes:
        return Uniform(Subgroup.REPLICATED, text)
    inner = tuple(AxisRef(name) for name in manual)
    named = Named(
        mesh.mesh,
        tuple(tuple(ref for ref in dim.axes if ref.name not in manual) for dim in sharding.dims),
        tuple(dim.is_open for dim in sharding.dims),
        tuple(ref for ref in sharding.replicated if ref.name not in manual),
        inner,
        tuple(ref for ref in sharding.unreduced if ref.name not in manual),
        sharding.reduction,
        text,
    )
    try:
        refine(
            named.mesh,
            (*(ref for refs in named.dim_axes for ref in refs), *named.replicated, *named.manual, *named.unreduced),
        )
    except HloSyntaxError:
        return None
    return named
