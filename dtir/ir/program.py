"""`DistributedTaskIR`: one distributed tensor program over virtual ranks.

The program names no device, stream, kernel, time or bandwidth. It is immutable; `dtir.ir.builder.ProgramBuilder` makes
one step by step.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import field
from typing import TYPE_CHECKING, Any, ClassVar, TypeAlias, TypeVar

from dtir.ir.header import IRHeader, SchemaVersion, make_header
from dtir.ir.ids import ValueId
from dtir.ir.mesh import LogicalMesh
from dtir.ir.schedule import IssueList, Limit
from dtir.ir.semantics import EMPTY_SEMANTIC, ProgramSemantic
from dtir.ir.tasks import DistributedTask, Region
from dtir.ir.values import DistributedValue
from dtir.schema.authoring import extension, record
from dtir.schema.diagnostics import VerificationReport
from dtir.schema.display import Displayed
from dtir.schema.errors import SerializationError
from dtir.schema.frozen import EMPTY_MAP, FrozenDict
from dtir.schema.result import Checked, Err, Ok, checked

if TYPE_CHECKING:
    from dtir.schema.migration import SchemaMigrationRegistry

T = TypeVar("T")

NATIVE_SCHEMA = "dtir.distributed-task"
NATIVE_VERSION = SchemaVersion(1, 0, 0)
UPSTREAM_SCHEMA = "blueprinting.distributed-task"
UPSTREAM_VERSION = SchemaVersion(0, 0, 0)


def _default_header() -> IRHeader:
    return make_header(NATIVE_SCHEMA, NATIVE_VERSION)


class _Remembered(Displayed):
    """Room for facts that are computed once for an immutable program (never part of its content)."""

    __slots__ = ("__weakref__", "_remembered")

    def remember(self, key: str, compute: Any) -> Any:
        """The value of ``compute()``, computed at most once for this object."""
        try:
            memo = object.__getattribute__(self, "_remembered")
        except AttributeError:
            memo = dict[str, Any]()
            object.__setattr__(self, "_remembered", memo)
        if key not in memo:
            memo[key] = compute()
        return memo[key]


Scope: TypeAlias = "DistributedTaskIR | Region"


@record("blueprinting.ir.distributed-task")
class DistributedTaskIR(_Remembered):
    """A program: mesh, values, tasks, interface, and provenance.

    **Constraints** (checked by `diagnostics`, not by the constructor): see `dtir.ir.structure`. The fields from
    `regions` on are dtir's own: nested task lists of control flow, per-rank issue order, claimed limits, facts to
    assume about symbols (``"B % 4 == 0"``), values of symbols, an explicit undivided program, and whether task order
    is meant strictly.
    """

    SCHEMA_NAME: ClassVar[str] = NATIVE_SCHEMA
    SCHEMA_VERSION: ClassVar[SchemaVersion] = NATIVE_VERSION

    name: str
    source_model_digest: str
    mesh: LogicalMesh
    values: tuple[DistributedValue, ...]
    tasks: tuple[DistributedTask, ...]
    inputs: tuple[ValueId, ...]
    outputs: tuple[ValueId, ...]
    semantic: ProgramSemantic = EMPTY_SEMANTIC
    attributes: FrozenDict[Any] = EMPTY_MAP
    header: IRHeader = field(default_factory=_default_header)
    regions: tuple[Region, ...] = extension(default=())
    issue: tuple[IssueList, ...] = extension(default=())
    limits: tuple[Limit, ...] = extension(default=())
    assume: tuple[str, ...] = extension(default=())
    bindings: FrozenDict[int | float] = extension(default=EMPTY_MAP)
    oracle: Region | None = extension(default=None)
    strict_order: bool = extension(default=False)

    @classmethod
    def upstream_defaults(cls) -> dict[str, Any]:
        """Defaults that differ in the upstream format: its header names its own schema."""
        return {"header": make_header(UPSTREAM_SCHEMA, UPSTREAM_VERSION)}

    # -- judging -----------------------------------------------------------------------------------------------

    def diagnostics(self) -> VerificationReport:
        """Every structural finding, in a stable order (see `dtir.ir.structure`)."""
        from dtir.ir.structure import verify_structure

        return self.remember("structure", lambda: verify_structure(self))

    def verify(self) -> Checked[DistributedTaskIR]:
        """The program with its warnings, or its structural errors."""
        return checked(self, self.diagnostics())

    def require_valid(self) -> None:
        """Raise unless the program is structurally valid.

        Raises:
            IRVerificationError: with every finding.
        """
        self.diagnostics().require_ok(type(self).__name__)

    # -- reading and writing -----------------------------------------------------------------------------------

    @property
    def digest(self) -> str:
        """Content digest (40 hex digits) of the native form.

        Raises:
            SerializationError: the program holds something that has no canonical form.
        """
        from dtir.ir.native import native_digest

        return self.remember("digest", lambda: native_digest(self))

    @property
    def upstream_digest(self) -> str:
        """Content digest of the upstream form.

        Raises:
            SerializationError: the program uses something that the upstream form cannot hold.
        """
        from dtir.ir.upstream import upstream_digest

        return self.remember("upstream_digest", lambda: upstream_digest(self))

    def to_json(self) -> str:
        """The native snapshot (schema ``dtir.distributed-task`` 1.0.0), canonical text.

        Raises:
            IRVerificationError: the program is not structurally valid.
        """
        from dtir.ir.native import write_native

        self.require_valid()
        return write_native(self)

    def to_upstream_json(self) -> str:
        """The upstream snapshot (``blueprinting.distributed-task`` 0.0.0), canonical text.

        Raises:
            IRVerificationError: the program is not valid, or uses something that the upstream form cannot hold (code
                ``serialization.upstream``, one finding a thing).
        """
        from dtir.ir.upstream import write_upstream

        self.require_valid()
        return write_upstream(self)

    @classmethod
    def from_json(cls, text: str) -> Checked[DistributedTaskIR]:
        """Read and verify a snapshot, native or upstream; whatever is wrong is in the `Err`."""
        from dtir.ir.snapshot import read_snapshot

        return read_snapshot(text)

    @classmethod
    def require_from_json(cls, text: str) -> DistributedTaskIR:
        """Read and verify a snapshot.

        Raises:
            SerializationError: with every finding, joined by ``"; "``.
        """
        match cls.from_json(text):
            case Ok(program):
                return program
            case Err(error):
                raise SerializationError("; ".join(item.render() for item in error))

    @classmethod
    def load_migrated(cls, text: str, registry: SchemaMigrationRegistry | None = None) -> Checked[DistributedTaskIR]:
        """Read a snapshot of any registered schema and version, migrated to the native one.

        Stricter than `from_json`: the digest of a foreign snapshot is checked over its raw payload.
        """
        from dtir.ir.snapshot import load_migrated

        return load_migrated(text, registry)

    # -- walking -----------------------------------------------------------------------------------------------

    def scopes(self) -> Iterator[tuple[tuple[str, ...], Scope]]:
        """The program and its regions, each with the path that leads to it."""
        yield (), self
        for index, region in enumerate(self.regions):
            yield ("regions", str(index)), region

    def all_tasks(self) -> Iterator[DistributedTask]:
        """Tasks of the program, then of its regions in order; every task once, however often it runs."""
        for _, scope in self.scopes():
            yield from scope.tasks

    def all_values(self) -> Iterator[DistributedValue]:
        """Values of the program, then of its regions in order."""
        for _, scope in self.scopes():
            yield from scope.values
