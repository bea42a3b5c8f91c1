"""A sharding table as a program: a mesh, and one value for each tensor of the table. Nothing is computed in it."""

from __future__ import annotations

from collections import Counter
from typing import Any

from dtir._version import __version__
from dtir.importers.base import Imported, Source, imported, refused
from dtir.importers.rank_set.naming import program_name
from dtir.importers.rank_set.plain import mapping, parse_json
from dtir.importers.sharding_table.rows import NAMED, Row, Table, read_table, short_name
from dtir.ir.header import make_header
from dtir.ir.ids import Lineage, NodeId, ValueId
from dtir.ir.mesh import LogicalMesh, MeshAxis
from dtir.ir.program import NATIVE_SCHEMA, NATIVE_VERSION, DistributedTaskIR
from dtir.ir.ranks import all_ranks
from dtir.ir.sharding import ShardingSpec
from dtir.ir.tasks import Control, DistributedTask
from dtir.ir.types import OperationName, TensorType
from dtir.ir.values import DistributedValue
from dtir.schema.diagnostics import DiagnosticBag, DiagnosticSet
from dtir.schema.frozen import FrozenDict
from dtir.schema.result import Err, Ok

FORMAT = "sharding-table"
DIALECT = "shardings"
UNSTATED = "unstated"
"""The element type of tensors whose table has none: nothing is counted in bytes."""

MOST_RANKS = 1 << 40

_LINEAGE = Lineage.root(f"{DIALECT}.import")


def fact(name: str) -> str:
    """The key of what a table says among attributes."""
    return f"{DIALECT}.{name}"


def read_sharding_table(source: Source) -> Imported:
    """The program of a table, and what was found on the way."""
    match parse_json(source.text or "", "the sharding table"):
        case Err(error):
            return refused(source.label, error, format=FORMAT, digest=source.digest())
        case Ok(value):
            table = read_table(mapping(value))
    bag = DiagnosticBag()
    _note(table, bag)
    if not table.rows:
        bag.error("shardings.empty", "no tensor of the table could be read", hint="check what wrote it")
        return refused(source.label, *bag.report(), format=FORMAT, digest=source.digest())
    sizes = {name: size or 1 for name, size in table.axes.items()} or {"all": 1}
    ranks = 1
    for size in sizes.values():
        ranks *= size
    if ranks > MOST_RANKS:
        bag.error("shardings.mesh", f"the mesh has {ranks} ranks, more than any machine", hint="check its shape")
        return refused(source.label, *bag.report(), format=FORMAT, digest=source.digest())
    program = _program(source, table, sizes, bag)
    return imported(source, FORMAT, program, DiagnosticSet(tuple(bag.report())))


def _note(table: Table, bag: DiagnosticBag) -> None:
    if table.malformed:
        shown = ", ".join(table.malformed[:3]) + (", ..." if len(table.malformed) > 3 else "")
        bag.warning(
            "shardings.malformed",
            f"{len(table.malformed)} entries have no shape, or a partition spec that does not fit it, and are left out: {shown}",
            hint="a spec has at most one entry a dim",
        )
    if table.other_meshes:
        bag.warning(
            "shardings.meshes", f"{table.other_meshes} entries name another mesh than the first; that one is used"
        )
    unknown = [name for name, size in table.axes.items() if size is None]
    if unknown:
        what = "logical axes" if table.kind == "logical" else "mesh axes"
        bag.info(
            "shardings.sizes",
            f"the table has no sizes of {len(unknown)} {what} ({', '.join(unknown[:5])}{', ...' if len(unknown) > 5 else ''}); "
            "each is shown with size 1",
            hint="the table of named shardings has the mesh",
        )
    untyped = sum(row.dtype is None for row in table.rows)
    if untyped:
        bag.info(
            "shardings.dtypes", f"the table has no element types of {untyped} tensors; their bytes are not counted"
        )


def _program(source: Source, table: Table, sizes: dict[str, int], bag: DiagnosticBag) -> DistributedTaskIR:
    name = program_name(source.name)
    mesh = LogicalMesh("mesh", tuple(MeshAxis(axis, size) for axis, size in sizes.items()))
    everyone = all_ranks(mesh.size)
    counts: Counter[str] = Counter()
    repeated: list[str] = []
    layouts: dict[Any, ShardingSpec] = {}
    values: list[DistributedValue] = []
    for row in table.rows:
        label = short_name(row.name)
        counts[label] += 1
        label = label if counts[label] == 1 else f"{label}.{counts[label] - 1}"
        attributes: dict[str, Any] = {fact("name"): row.name, fact("spec"): row.spec}
        if row.logical:
            attributes[fact("logical_axes")] = row.logical
        layout = layouts.setdefault(row.spec, _layout(row, mesh))
        if len(layout.split_axes) < sum(map(len, row.spec)):
            repeated.append(label)
        values.append(
            DistributedValue(
                ValueId.derive(DIALECT, name, label),
                TensorType(row.shape, row.dtype or UNSTATED),
                row.role,
                layout,
                everyone,
                _LINEAGE,
                attributes=FrozenDict(attributes),
                name=label,
            )
        )
    if repeated:
        bag.warning(
            "shardings.axis_twice",
            f"{len(repeated)} tensors name an axis twice ({repeated[0]} first); its first place is kept",
            hint="an axis splits one dim; the attribute keeps what is written",
        )
    ids = tuple(value.id for value in values)
    table_task = DistributedTask(
        NodeId.derive(DIALECT, name, "table"),
        Control(),
        OperationName(DIALECT, "table"),
        everyone,
        ids,
        (),
        (),
        _LINEAGE,
        name="table",
    )
    return DistributedTaskIR(
        name,
        source.digest(),
        mesh,
        tuple(values),
        (table_task,),
        ids,
        (),
        attributes=FrozenDict({fact("kind"): table.kind, fact("stated_mesh"): table.kind == NAMED}),
        header=make_header(
            NATIVE_SCHEMA, NATIVE_VERSION, parent_digests=(source.digest(),), producer_version=__version__
        ),
    )


def _layout(row: Row, mesh: LogicalMesh) -> ShardingSpec:
    """The layout of a row; an axis that stands twice keeps its first place."""
    seen: set[str] = set()
    dims: list[tuple[str, ...]] = []
    for axes in row.spec:
        dims.append(tuple(axis for axis in dict.fromkeys(axes) if axis not in seen))
        seen.update(axes)
    return ShardingSpec(tuple(dims), tuple(axis for axis in mesh.axis_names if axis not in seen))
