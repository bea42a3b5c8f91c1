"""A hypothesis strategy of wild programs: structurally valid, made of real operators and keys, consistent in nothing else.

The *tame* ones have well-defined layouts and shapes that often meet, so that rules get past their first questions.
"""

from __future__ import annotations

from typing import Any

from hypothesis import strategies as st

from dtir.ir import (
    AllGather,
    AllReduce,
    AllToAll,
    AxisCoordinate,
    BindingAxis,
    Broadcast,
    Collective,
    CollectivePermute,
    Control,
    DistributedTask,
    DistributedTaskIR,
    DistributedValue,
    Effect,
    EffectKind,
    Halo,
    HaloDim,
    IssueList,
    Limit,
    Lineage,
    LocalCompute,
    LocalShape,
    LogicalMesh,
    MeshAxis,
    NodeId,
    OperationName,
    Partial,
    PeerTransfer,
    PipelineSlot,
    PointToPoint,
    RankRange,
    ReduceScatter,
    ReductionKind,
    Reshard,
    ReshardKind,
    ReshardRegion,
    Scale,
    ShardingSpec,
    ShardSizes,
    Span,
    Symbol,
    TensorType,
    ValueId,
    ValueRole,
    make_header,
)
from dtir.ir.program import NATIVE_SCHEMA, NATIVE_VERSION
from dtir.schema.frozen import FrozenDict

ROOT = Lineage.root("wild")
YAML = Lineage.root("yaml")
OPERATORS = (
    "add", "sub", "mul", "div", "einsum", "matmul", "sum", "mean", "max", "min", "prod", "amax", "relu", "exp", "neg", "scale",
    "square", "sqrt", "softmax", "layernorm", "reshape", "transpose", "concat", "split", "select", "gather", "embedding",
    "positions", "rand", "dropout", "constant", "shard", "mask", "stencil", "moe_expert", "cumsum", "slice", "pad", "maximum",
    "attention", "broadcast", "cast", "unheard_of",
)  # fmt: skip
EXTENTS = st.sampled_from(
    [0, 1, 2, 3, 4, 6, 8, 2.5, Symbol("B", BindingAxis.WORKLOAD), Symbol("S", BindingAxis.WORKLOAD)]
)
SMALL = st.integers(-1, 5)
SLOTS = st.builds(
    PipelineSlot, st.integers(0, 3), st.integers(0, 2), st.sampled_from(["F", "B", "W", "?"]), st.integers(0, 1)
)
LIMITS = st.builds(
    Limit,
    st.sampled_from(["inflight", "peak_bytes", "warmup", "buffers", "odd"]),
    st.integers(0, 4),
    st.none() | st.integers(0, 2),
)
FACTS = st.sampled_from(["B % 2 == 0", "S % (a0 * 3) == 0", "B == 8", "B * S % 4 == 0", "odd", ""])
RESOURCES = ("a", "b")


@st.composite
def _mesh(draw: st.DrawFn) -> LogicalMesh:
    sizes = draw(st.lists(st.sampled_from([1, 2, 3, 4]), min_size=1, max_size=3))
    return LogicalMesh("m", tuple(MeshAxis(f"a{index}", size) for index, size in enumerate(sizes)))


@st.composite
def _layout(draw: st.DrawFn, mesh: LogicalMesh, rank: int, *, tame: bool) -> ShardingSpec:
    """Every axis in at most one place; some in none; sizes and ghosts of dims that need not exist."""
    dims: list[list[str]] = [[] for _ in range(rank)]
    places: dict[str, list[str]] = {"r": [], "p": [], "v": [], "at": [], "none": []}
    others = ["r", "r", "p"] if tame else ["r", "r", "p", "v", "at", "none"]
    for name in draw(st.permutations(mesh.axis_names)):
        place = draw(st.sampled_from([*range(rank), *range(rank), *others]))
        (dims[place] if isinstance(place, int) else places[place]).append(name)
    most = 0 if tame else 2
    sizes = draw(st.dictionaries(st.integers(0, 2), st.lists(st.integers(0, 4), min_size=1, max_size=4), max_size=most))
    ghosts = draw(st.dictionaries(st.integers(0, 2), st.tuples(st.integers(0, 3), st.integers(0, 3)), max_size=2))
    if tame and draw(st.integers(0, 3)):
        ghosts = {}
    op = draw(
        st.sampled_from([ReductionKind.SUM, ReductionKind.SUM, ReductionKind.MAX] if tame else list(ReductionKind))
    )
    coordinates = [AxisCoordinate(name, draw(st.integers(0, mesh.axis_size(name)))) for name in places["at"]]
    return ShardingSpec(
        tuple(tuple(axes) for axes in dims),
        tuple(places["r"]),
        Partial(tuple(places["p"]), op) if places["p"] else None,
        tuple(places["v"]),
        tuple(coordinates),
        tuple(ShardSizes(dim, tuple(items)) for dim, items in sizes.items()),
        Halo(tuple(HaloDim(dim, *widths) for dim, widths in ghosts.items()), draw(st.booleans())) if ghosts else None,
    )


@st.composite
def _ranks(draw: st.DrawFn, mesh: LogicalMesh, *, tame: bool) -> Any:
    everyone = tuple(range(mesh.size))
    if tame:
        return everyone
    some = st.lists(st.sampled_from(everyone), min_size=1, unique=True).map(tuple)
    return draw(st.one_of(st.just(everyone), st.just(RankRange(0, mesh.size)), some))


@st.composite
def _value(draw: st.DrawFn, mesh: LogicalMesh, index: int, *, authored: bool, tame: bool) -> DistributedValue:
    shape = tuple(
        draw(st.sampled_from([(144, 144), (144, 144), (144,), ()]) if tame else st.lists(EXTENTS, max_size=3))
    )
    plain = tame and draw(st.integers(0, 5)) > 0
    ranks = st.lists(st.integers(0, mesh.size - 1), max_size=3, unique=True).map(tuple)
    role = draw(st.sampled_from([None, "grad", "gradient"]))
    return DistributedValue(
        ValueId.derive("v", index),
        TensorType(shape, "f32" if plain else draw(st.sampled_from(["f32", "bf16", "s4", "mystery"]))),
        ValueRole.ACTIVATION,
        draw(_layout(mesh, len(shape), tame=tame)),
        draw(_ranks(mesh, tame=tame)),
        YAML if authored else ROOT,
        attributes=FrozenDict({"role": role} if role else {}),
        name=draw(st.sampled_from(["", f"v{index}"])),
        scale=Scale() if plain else Scale(draw(st.integers(1, 3)), draw(st.integers(1, 3))),
        grad_of=draw(st.sampled_from([None, ValueId.derive("v", 0)])),
        valid_on=None if plain else draw(st.none() | ranks),
        local_shapes=tuple(
            LocalShape(rank, tuple(draw(st.lists(st.integers(0, 4), max_size=3))))
            for rank in (() if plain else draw(st.sampled_from([(), (0,), (0, 1)])))
        ),
    )  # fmt: skip


@st.composite
def _parameters(draw: st.DrawFn, mesh: LogicalMesh) -> FrozenDict[Any]:
    """Any of the keys that rules and operators read, with values that need not fit."""
    axis = st.sampled_from([*mesh.axis_names, "nowhere"])
    matrix = st.lists(st.lists(SMALL, min_size=1, max_size=3), min_size=1, max_size=3)
    known: dict[str, st.SearchStrategy[Any]] = {
        "op.axis": axis,
        "op.axes": st.lists(axis, max_size=2),
        "op.dim": SMALL,
        "op.dims": st.lists(SMALL, max_size=3),
        "op.spec": st.sampled_from(["ij,jk->ik", "i,i->", "ij->ji", "ii->i", "bogus", "i->ij", 3]),
        "op.c": st.sampled_from(["1/2", "2", 3, "0", "x", -1, 1.5]),
        "op.c_oracle": st.sampled_from(["1/2", "0", 2]),
        "op.intro": st.booleans(),
        "op.key_axes": st.lists(axis, max_size=2) | st.just("a0") | st.just(7),
        "op.offset": st.sampled_from(["local", "global", 1]),
        "op.radius": SMALL,
        "op.points": st.sampled_from(["box", "star", "?"]),
        "op.perm": st.lists(SMALL, max_size=3),
        "op.include_halo": st.booleans(),
        "op.route": st.lists(SMALL, max_size=5) | matrix,
        "op.send_splits": matrix | st.just("x"),
        "op.recv_splits": matrix,
        "op.drops": SMALL | st.lists(SMALL, max_size=2),
        "op.topk": SMALL,
        "op.unpermute": st.booleans(),
        "op.vector": st.booleans(),
        "op.trim": st.booleans(),
        "op.root": SMALL | st.none(),
        "op.root_space": st.sampled_from(["local", "global"]),
        "op.sync": st.booleans() | SMALL | st.lists(SMALL, max_size=2) | st.dictionaries(st.just("stage"), SMALL),
        "op.bytes": SMALL | st.just("derived"),
        "op.layer": SMALL,
        "op.accumulate_dtype": st.sampled_from(["f16", "f64", "?"]),
        "op.c_by_rank": st.dictionaries(st.sampled_from(["0", "1"]), st.just("2")),
    }
    chosen = draw(st.lists(st.sampled_from(sorted(known)), max_size=6, unique=True))
    return FrozenDict({key: draw(known[key]) for key in chosen})


@st.composite
def _body(draw: st.DrawFn, mesh: LogicalMesh, *, tame: bool) -> tuple[Any, Any]:
    """A body and the ranks that fit it."""
    ranks = draw(_ranks(mesh, tame=tame))
    size = draw(st.sampled_from([0, 4, 16, 64, Symbol("B", BindingAxis.WORKLOAD), 1.5]))
    dim = st.none() | st.integers(0, 3)
    more: dict[str, Any] = {}
    form = draw(st.sampled_from(["axes"] * (9 if tame else 1) + ["groups", "both", "none"]))
    if form in ("axes", "both"):
        more["axes"] = tuple(draw(st.lists(st.sampled_from(mesh.axis_names), min_size=1, unique=True)))
    if form in ("groups", "both"):
        members = draw(st.permutations(tuple(ranks)))
        cut = draw(st.integers(1, len(members)))
        more["groups"] = tuple(tuple(members[start : start + cut]) for start in range(0, len(members), cut))
    everyone = tuple(range(mesh.size))
    pairs = tuple(
        draw(st.lists(st.tuples(st.sampled_from(everyone), st.sampled_from(everyone)), min_size=1, max_size=4))
    )
    box = st.lists(st.tuples(st.integers(0, 4), st.integers(0, 4)), max_size=3).map(
        lambda items: tuple(Span(min(item), max(item)) for item in items)
    )
    regions = st.lists(st.builds(ReshardRegion, box, st.none() | box), max_size=3).map(tuple)
    kind = draw(st.sampled_from(["local"] * 6 + ["ar", "rs", "ag", "a2a", "bc", "cp", "p2p", "reshard", "control"]))
    match kind:
        case "local":
            return LocalCompute(), ranks
        case "control":
            return Control(), ranks
        case "reshard":
            return Reshard(draw(st.sampled_from(ReshardKind)), draw(regions)), ranks
        case "p2p" if mesh.size > 1:
            source, destination = draw(st.permutations(everyone))[:2]
            channel = draw(st.sampled_from(["x", "y"]))
            return PointToPoint(PeerTransfer(source, destination, size, channel)), (source, destination)
        case "cp":
            members = tuple(sorted({rank for pair in pairs for rank in pair}))
            return Collective(CollectivePermute(members, size, pairs)), members
        case "rs":
            spec: Any = ReduceScatter(ranks, size, draw(st.sampled_from(ReductionKind)), **more, dim=draw(dim))
        case "ag":
            spec = AllGather(ranks, size, **more, dim=draw(dim))
        case "a2a":
            spec = AllToAll(ranks, size, **more, split_dim=draw(dim), concat_dim=draw(dim))
        case "bc":
            root = draw(st.sampled_from(tuple(ranks)))
            roots = tuple(draw(st.lists(st.integers(0, mesh.size), max_size=3)))
            spec = Broadcast(ranks, size, root, **more, roots=roots)
        case _:
            spec = AllReduce(ranks, size, draw(st.sampled_from(ReductionKind)), **more)
    return Collective(spec), ranks


@st.composite
def wild_programs(draw: st.DrawFn, *, tame: bool = False) -> DistributedTaskIR:
    """Programs that pass the structural verifier and little else."""
    mesh = draw(_mesh())
    authored = draw(st.booleans())
    count = draw(st.integers(1, 7))
    values = [draw(_value(mesh, index, authored=authored, tame=tame)) for index in range(count)]
    inputs = draw(st.integers(0, count))
    defined = [value.id for value in values[:inputs]]
    left = [value.id for value in values[inputs:]]
    tasks: list[DistributedTask] = []
    for index in range(draw(st.integers(1, 8))):
        body, ranks = draw(_body(mesh, tame=tame))
        fewest = 1 if tame and defined else 0
        taken = (
            tuple(draw(st.lists(st.sampled_from(defined), min_size=fewest, max_size=3, unique=True))) if defined else ()
        )
        if not isinstance(body, LocalCompute) and tame:
            taken = taken[:1]
        made = tuple(left.pop(0) for _ in range(draw(st.integers(min(fewest, len(left)), min(2 - fewest, len(left))))))
        known = [task.id for task in tasks]
        some = st.lists(st.sampled_from(known), max_size=2, unique=True).map(tuple) if known else st.just(())
        kinds = st.sampled_from([EffectKind.READ, EffectKind.WRITE, EffectKind.ALLOC, EffectKind.FREE, EffectKind.IO])
        effects = tuple(draw(st.lists(st.builds(Effect, kinds, st.sampled_from(RESOURCES)), max_size=2)))
        slot = draw(st.none() | SLOTS)
        operands = tuple(draw(st.lists(st.integers(0, len(taken) - 1), max_size=3))) if taken and not tame else ()
        tasks.append(
            DistributedTask(
                NodeId.derive("t", index), body, OperationName("core", draw(st.sampled_from(OPERATORS))), ranks, taken, made,
                draw(some), ROOT, effects, attributes=draw(_parameters(mesh)), name=draw(st.sampled_from(["", f"t{index}"])),
                operands=operands, completes=draw(some), pipeline=slot,
            )
        )  # fmt: skip
        defined += made
    return DistributedTaskIR(
        "wild", "a" * 40, mesh, tuple(values), tuple(tasks), tuple(value.id for value in values[:inputs]),
        tuple(draw(st.lists(st.sampled_from(defined), max_size=3, unique=True))) if defined else (),
        attributes=FrozenDict(draw(st.sampled_from([{}, {"schedule": "1f1b"}, {"schedule": "interleaved"}, {"schedule": 3}]))),
        header=make_header(NATIVE_SCHEMA, NATIVE_VERSION, parent_digests=("a" * 40,)),
        issue=draw(_issue(mesh, [task.id for task in tasks])),
        limits=tuple(draw(st.lists(LIMITS, max_size=2))), assume=tuple(draw(st.lists(FACTS, max_size=2))),
        bindings=FrozenDict(draw(st.dictionaries(st.sampled_from(["B", "S"]), st.integers(0, 8) | st.just(2.5), max_size=2))),
        strict_order=draw(st.booleans()),
    )  # fmt: skip


@st.composite
def _issue(draw: st.DrawFn, mesh: LogicalMesh, tasks: list[NodeId]) -> tuple[IssueList, ...]:
    step = st.lists(st.sampled_from(tasks), max_size=2).map(tuple)
    ranks = draw(st.lists(st.integers(0, mesh.size - 1), max_size=3))
    return tuple(IssueList(rank, tuple(draw(st.lists(step, max_size=6)))) for rank in ranks)
