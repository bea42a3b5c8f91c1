"""Hypothesis strategies: open data, scalars, meshes and whole programs."""

from __future__ import annotations

from functools import cache
from typing import Any

from hypothesis import strategies as st

from dtir.ir import (
    RESERVED_ATTRIBUTES,
    Add,
    AllGather,
    AllReduce,
    AllToAll,
    AxisCoordinate,
    BindingAxis,
    Broadcast,
    CeilDivide,
    Collective,
    CollectivePermute,
    Control,
    DistributedTaskIR,
    Divide,
    Effect,
    EffectKind,
    Halo,
    HaloDim,
    Lineage,
    LineageKind,
    LocalCompute,
    LogicalMesh,
    Maximum,
    MeshAxis,
    Minimum,
    Multiply,
    NodeId,
    Partial,
    PeerTransfer,
    PipelineSlot,
    PointToPoint,
    ProgramBuilder,
    RankRange,
    ReduceScatter,
    ReductionKind,
    Reshard,
    ReshardKind,
    Scale,
    ShardingSpec,
    ShardSizes,
    Subtract,
    Symbol,
    TensorType,
    ValueId,
    ValueRole,
    all_ranks,
)
from dtir.schema import FrozenDict

# Surrogates have no canonical form; what else is no character is left to the tests that want it.
texts = st.text(st.characters(exclude_categories=["Cs"]), max_size=6)
names = st.text("abcxyz_é", min_size=1, max_size=5)
# Hypothesis also draws texts that it finds in the source, and the reserved names are among them.
_keys = texts.filter(lambda key: key.lower() not in RESERVED_ATTRIBUTES) | st.sampled_from(["$map", "$set", "$bytes"])


@cache
def json_like() -> st.SearchStrategy[Any]:
    """Lists, dicts and JSON literals."""
    leaves = st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | texts
    return st.recursive(
        leaves, lambda inner: st.lists(inner, max_size=3) | st.dictionaries(texts, inner, max_size=3), max_leaves=8
    )


@cache
def frozen_values() -> st.SearchStrategy[Any]:
    """Everything that may stand in attributes."""
    leaves = (
        st.none()
        | st.booleans()
        | st.integers()
        | st.floats(allow_nan=False, allow_infinity=False)
        | texts
        | st.binary(max_size=4)
        | st.sampled_from(
            [ReductionKind.SUM, ValueRole.INPUT, ValueId.derive("a"), NodeId.derive("a"), TensorType((2,), "f32")]
        )
    )
    return st.recursive(
        leaves,
        lambda inner: (
            st.lists(inner, max_size=3).map(tuple)
            | st.frozensets(inner, max_size=3)
            | st.dictionaries(_keys, inner, max_size=3).map(FrozenDict)
        ),
        max_leaves=8,
    )


@cache
def attributes() -> st.SearchStrategy[FrozenDict[Any]]:
    """Open data as a map; no reserved names."""
    return st.dictionaries(names, frozen_values(), max_size=2).map(FrozenDict)


# -- scalars -----------------------------------------------------------------------------------------------------

symbols = st.builds(
    Symbol,
    st.sampled_from(["b", "s", "_1", "é"]),
    st.sampled_from(BindingAxis),
    st.booleans(),
    st.booleans(),
)


@cache
def scalars(*, positive: bool = False) -> st.SearchStrategy[Any]:
    """Numbers, symbols and unfolded expressions."""
    least = 1 if positive else 0
    numbers = st.integers(least, 2**70) | st.floats(1e-3 if positive else 0.0, 1e12)

    def grow(inner: st.SearchStrategy[Any]) -> st.SearchStrategy[Any]:
        many = st.lists(inner, min_size=2, max_size=3).map(tuple)
        pair = st.tuples(inner, inner)
        return st.one_of(
            *(many.map(kind) for kind in (Add, Multiply, Maximum, Minimum)),
            *(pair.map(lambda both, kind=kind: kind(*both)) for kind in (Subtract, Divide, CeilDivide)),
        )

    return st.recursive(numbers | symbols, grow, max_leaves=6)


# -- meshes ------------------------------------------------------------------------------------------------------


def meshes(max_axes: int = 3, max_size: int = 4) -> st.SearchStrategy[LogicalMesh]:
    sizes = st.lists(st.integers(1, max_size), min_size=1, max_size=max_axes)
    return sizes.map(
        lambda found: LogicalMesh("mesh", tuple(MeshAxis(f"axis{index}", size) for index, size in enumerate(found)))
    )


# -- programs ----------------------------------------------------------------------------------------------------


@st.composite
def shardings(draw: st.DrawFn, mesh: LogicalMesh, rank: int, *, extended: bool) -> ShardingSpec:
    """A layout that uses every axis of the mesh once."""
    dims: list[list[str]] = [[] for _ in range(rank)]
    states: dict[str, list[str]] = {"replicated": [], "partial": [], "varying": [], "at": []}
    for name in mesh.axis_names:
        places = [*range(rank), "replicated", *(("partial", "varying", "at") if extended else ())]
        place = draw(st.sampled_from(places))
        (dims[place] if isinstance(place, int) else states[place]).append(name)
    return ShardingSpec(
        tuple(map(tuple, dims)),
        tuple(states["replicated"]),
        partial=Partial(tuple(states["partial"]), draw(st.sampled_from(ReductionKind))) if states["partial"] else None,
        varying=tuple(states["varying"]),
        at=tuple(AxisCoordinate(name, 0) for name in states["at"]),
        sizes=(ShardSizes(0, (1, 2)),) if extended and rank and draw(st.booleans()) else (),
        halo=Halo((HaloDim(0, 1, 0),), draw(st.booleans())) if extended and rank and draw(st.booleans()) else None,
    )


@st.composite
def lineages(draw: st.DrawFn) -> Lineage:
    sources = draw(st.lists(st.sampled_from([NodeId.derive(1), ValueId.derive(1), NodeId.derive(2)]), unique=True))
    kinds = [kind for kind in LineageKind if kind is not LineageKind.ROOT] if sources else list(LineageKind)
    return Lineage(draw(st.sampled_from(kinds)), draw(names), tuple(sources))


@st.composite
def bodies(draw: st.DrawFn, mesh: LogicalMesh, *, extended: bool) -> tuple[Any, Any]:
    """A task body and the ranks that run it."""
    everyone = all_ranks(mesh.size)
    if extended and draw(st.booleans()):
        everyone = RankRange(0, mesh.size)
    size = draw(scalars())
    more: dict[str, Any] = {"axes": (mesh.axis_names[0],)} if extended and draw(st.booleans()) else {}
    if extended and draw(st.booleans()):
        more["groups"] = tuple((rank,) for rank in everyone)
    specs: list[Any] = [
        AllReduce(everyone, size, draw(st.sampled_from([ReductionKind.SUM, ReductionKind.MAX])), **more),
        ReduceScatter(everyone, size, ReductionKind.SUM, **more),
        AllGather(everyone, size, **more, **({"dim": 0} if extended else {})),
        AllToAll(everyone, size, **more),
        Broadcast(everyone, size, 0, **more),
    ]
    choices: list[Any] = [LocalCompute(), Control(), Reshard(), *map(Collective, specs)]
    if extended:
        choices += [Reshard(ReshardKind.HALO), Collective(CollectivePermute(everyone, size, ((0, 0),)))]
    body = draw(st.sampled_from(choices))
    if mesh.size > 1 and draw(st.booleans()):
        return PointToPoint(PeerTransfer(0, 1, size, draw(names))), (1, 0)
    return body, everyone


_shapes = st.lists(st.integers(1, 9) | st.floats(0.5, 9.0) | scalars(positive=True), max_size=2)
_effects = st.lists(st.builds(Effect, st.sampled_from([EffectKind.READ, EffectKind.RANDOM]), names), max_size=1)


@st.composite
def programs(draw: st.DrawFn, *, extended: bool = True) -> DistributedTaskIR:
    """Structurally valid programs; without `extended` they use nothing but what the upstream format holds."""
    mesh = draw(meshes())
    build = ProgramBuilder(
        draw(names), mesh=mesh, attributes=draw(attributes()), features=draw(st.lists(st.sampled_from(["beta", "z.9"])))
    )
    values: list[ValueId] = []
    for index in range(draw(st.integers(1, 4))):
        shape = draw(_shapes)
        values.append(
            build.value(
                f"v{index}" if extended else "",
                shape,
                draw(st.sampled_from(["f32", "bf16"])),
                role=draw(st.sampled_from(ValueRole)),
                sharding=draw(shardings(mesh, len(shape), extended=extended)),
                owners=draw(st.sampled_from([all_ranks(mesh.size), (0,)])),
                lineage=draw(lineages()),
                source_value=draw(st.none() | st.just(ValueId.derive("source"))),
                attributes=draw(attributes()),
                scale=Scale(1, draw(st.integers(1, 3))) if extended else Scale(),
                id=ValueId.derive("value", index),
            )
            if extended
            else _plain_value(draw, build, mesh, index, shape)
        )
    build.inputs.append(values[0])
    pending = values[1:]
    for index in range(draw(st.integers(1, 4))):
        body, ranks = draw(bodies(mesh, extended=extended))
        made = [pending.pop(0)] if pending and draw(st.booleans()) else []
        defined = [value for value in values if value in build.inputs or value in build.producers]
        taken = draw(st.lists(st.sampled_from(defined), max_size=3, unique=not extended))
        build.task(
            "core.op",
            taken,
            made,
            body=body,
            ranks=ranks,
            lineage=draw(lineages()),
            effects=draw(_effects),
            attributes=draw(attributes()),
            name=f"t{index}" if extended else "",
            pipeline=PipelineSlot(0, index, "forward") if extended and draw(st.booleans()) else None,
        )
    if extended:
        build.limit("inflight", 2, draw(st.none() | st.just(0)))
        build.assume("b % 4 == 0")
        build.bind(b=draw(st.integers(1, 9) | st.floats(1.0, 2.0)))
    return build.build(require_valid=True)


def _plain_value(draw: st.DrawFn, build: ProgramBuilder, mesh: LogicalMesh, index: int, shape: list[Any]) -> ValueId:
    from dtir.ir import DistributedValue

    made = DistributedValue(
        ValueId.derive("value", index),
        TensorType(
            tuple(shape), "f32", draw(st.none() | st.just(tuple(reversed(range(len(shape)))))), draw(attributes())
        ),
        draw(st.sampled_from(ValueRole)),
        draw(shardings(mesh, len(shape), extended=False)),
        all_ranks(mesh.size),
        draw(lineages()),
        attributes=draw(attributes()),
    )
    build.values.append(made)
    return made.id
