"""`ProgramBuilder`: a program step by step; the only mutable thing of the IR.

>>> from dtir.ir import AllReduce, Collective, Partial, ReductionKind, ValueRole
>>> build = ProgramBuilder("mlp", axes={"tp": 2})
>>> x = build.input("x", (8, 16), "bf16", split={1: "tp"})
>>> w = build.input("w", (16, 32), "bf16", role=ValueRole.PARAMETER, split={0: "tp"})
>>> part = build.value("part", (8, 32), "bf16", partial=Partial(("tp",), ReductionKind.SUM))
>>> y = build.value("y", (8, 32), "bf16", role=ValueRole.OUTPUT)
>>> matmul = build.task("linalg.matmul", (x, w), (part,))
>>> reduce = build.task(
...     "collective.all_reduce", (part,), (y,), body=Collective(AllReduce((0, 1), 512, ReductionKind.SUM))
... )
>>> build.output(y)
>>> program = build.build(require_valid=True)
>>> program.tasks[1].dependencies == (matmul,)
True

What is not said is derived: identifiers from the names, dependencies from the flow of values, ranks and owners from the
mesh (all of it), replicated axes from the axes that nothing else uses, the header from the source model's digest.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from dtir.ir.header import make_header
from dtir.ir.ids import NodeId, RegionId
from dtir.ir.mesh import LogicalMesh, MeshAxis
from dtir.ir.program import NATIVE_SCHEMA, NATIVE_VERSION, DistributedTaskIR
from dtir.ir.schedule import IssueList, Limit
from dtir.ir.scope_builder import ScopeBuilder
from dtir.ir.semantics import EMPTY_SEMANTIC, ProgramSemantic
from dtir.ir.tasks import Region
from dtir.schema.codec import content_digest
from dtir.schema.frozen import FrozenDict


class RegionBuilder(ScopeBuilder):
    """One region of a program; its `id` is what `Call`, `Loop` and `Branch` name."""

    def __init__(self, mesh: LogicalMesh, key: tuple[str, ...], name: str, attributes: Mapping[str, Any]) -> None:
        super().__init__(mesh, (*key, "region", name))
        self.id = RegionId.derive(*key, "region", name)
        self._name = name
        self._attributes = FrozenDict(attributes)

    def build(self) -> Region:
        """The region as it stands."""
        return Region(
            self.id,
            self._name,
            tuple(self.values),
            tuple(self.tasks),
            tuple(self.inputs),
            tuple(self.outputs),
            self._attributes,
        )


class ProgramBuilder(ScopeBuilder):
    """A program in the making.

    Args:
        name: the program's name; identifiers are derived from it.
        axes: sizes of the mesh axes by name, the first the most significant.
        mesh: the mesh, instead of `axes`.
        source_model_digest: content digest of the model it is derived from. A program written by hand has none: then
            the digest of its name stands there.
        semantic: what the program means as a whole.
        attributes: open data.
        features: features for the header besides the required one.
        producer_version: the version of what builds it, for the header.

    Raises:
        ValueError: neither axes nor mesh, or both.
    """

    def __init__(
        self,
        name: str,
        *,
        axes: Mapping[str, int] | None = None,
        mesh: LogicalMesh | None = None,
        source_model_digest: str | None = None,
        semantic: ProgramSemantic = EMPTY_SEMANTIC,
        attributes: Mapping[str, Any] | None = None,
        features: Iterable[str] = (),
        producer_version: str = "0.0.0",
    ) -> None:
        if (axes is None) == (mesh is None):
            raise ValueError(f"axes={axes!r}, mesh={mesh!r}: give one of the two")
        made = mesh or LogicalMesh("mesh", tuple(MeshAxis(axis, size) for axis, size in (axes or {}).items()))
        super().__init__(made, (name,))
        self.name = name
        self._source = source_model_digest or content_digest(name, "dtir.builder")
        self._semantic = semantic
        self._attributes = FrozenDict(attributes or {})
        self._features = tuple(features)
        self._producer_version = producer_version
        self._regions: list[RegionBuilder] = []
        self._issue: list[IssueList] = []
        self._limits: list[Limit] = []
        self._assume: list[str] = []
        self._bindings: dict[str, int | float] = {}

    def region(self, name: str, attributes: Mapping[str, Any] | None = None) -> RegionBuilder:
        """Begin a region: a nested task list that `Call`, `Loop` or `Branch` tasks enter.

        Raises:
            ValueError: the name is taken.
        """
        self.take("region", name)
        made = RegionBuilder(self.mesh, self._key, name, attributes or {})
        self._regions.append(made)
        return made

    def issue(self, rank: int, steps: Iterable[NodeId | Sequence[NodeId]]) -> None:
        """State in which order a rank issues its tasks; a step of several is one grouped call."""
        self._issue.append(
            IssueList(rank, tuple((step,) if isinstance(step, NodeId) else tuple(step) for step in steps))
        )

    def limit(self, name: str, value: int, rank: int | None = None) -> None:
        """Claim an upper bound; `rank` None means every rank."""
        self._limits.append(Limit(name, value, rank))

    def assume(self, *facts: str) -> None:
        """State facts about symbols, for example ``"B % 4 == 0"``."""
        self._assume += facts

    def bind(self, **numbers: float) -> None:
        """Give symbols their values."""
        self._bindings.update(numbers)

    def build(self, *, require_valid: bool = False, strict_order: bool = False) -> DistributedTaskIR:
        """The program as it stands; more can be added and built again.

        Args:
            require_valid: raise when the structural verifier finds an error.
            strict_order: the order of the tasks is meant strictly.

        Raises:
            IRVerificationError: it is required to be valid and is not.
        """
        program = DistributedTaskIR(
            self.name,
            self._source,
            self.mesh,
            tuple(self.values),
            tuple(self.tasks),
            tuple(self.inputs),
            tuple(self.outputs),
            self._semantic,
            self._attributes,
            make_header(
                NATIVE_SCHEMA,
                NATIVE_VERSION,
                parent_digests=(self._source,),
                features=self._features,
                producer_version=self._producer_version,
            ),
            regions=tuple(region.build() for region in self._regions),
            issue=tuple(self._issue),
            limits=tuple(self._limits),
            assume=tuple(self._assume),
            bindings=FrozenDict(self._bindings),
            strict_order=strict_order,
        )
        if require_valid:
            program.require_valid()
        return program
