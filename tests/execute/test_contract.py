"""What every back end must do alike: each collective, element type, number of ranks and kind of groups.

The expected arrays are made here with plain loops over ranks; nothing of the executors is used for them.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace

import numpy as np
import pytest

from dtir.execute import BACKENDS, ExecutionError, Pieces, Slab, load_backend
from dtir.execute.dtypes import accumulator, numpy_dtype
from dtir.execute.values import rows
from dtir.ir import (
    AllGather,
    AllReduce,
    AllToAll,
    Broadcast,
    CollectivePermute,
    CollectiveSpecVariant,
    LocalShape,
    ReduceScatter,
    ReductionKind,
    ShardingSpec,
    ShardSizes,
    ValueRole,
)
from dtir.schema.diagnostics import DiagnosticError
from dtir.schema.frozen import FrozenDict
from tests.helpers.devices import PLAYED, require_played
from tests.helpers.running import chain, collective_task, per_rank_value, plan_of, rank_mesh, run_backend

DTYPES = ("f32", "f64", "s32", "bf16", "f16")
RANKS = (1, 2, 3, 4, 8)
KINDS = ("all_reduce", "reduce_scatter", "all_gather", "all_to_all", "broadcast", "permute")
GROUPINGS = ("world", "split", "reversed")
Groups = tuple[tuple[int, ...], ...]


MARKS = {"mpi": [pytest.mark.mpi], "cupy": [pytest.mark.gpu]}


@pytest.fixture(params=[pytest.param(name, marks=MARKS.get(name, [])) for name in (*sorted(BACKENDS), *PLAYED)])
def backend(request: pytest.FixtureRequest) -> str:
    """The name of a back end that can run here; the probe's reason is the reason to skip."""
    name: str = request.param
    if name in PLAYED:
        require_played()
        return name
    probe = load_backend(name).probe()
    if not probe.ok:
        pytest.skip(f"{name}: {probe.reason}")
    return name


def groups_of(ranks: int, grouping: str) -> Groups:
    """The groups of a collective over some ranks."""
    everybody = tuple(range(ranks))
    if grouping == "world":
        return (everybody,)
    if grouping == "reversed":
        return (everybody[::-1],)
    size = next((part for part in (ranks // 2, 1) if part and ranks % part == 0), 1)
    return tuple(everybody[start : start + size] for start in range(0, ranks, size))


def spec_of(kind: str, groups: Groups, reduction: ReductionKind = ReductionKind.SUM) -> CollectiveSpecVariant:
    members = tuple(sorted(rank for group in groups for rank in group))
    match kind:
        case "all_reduce":
            return AllReduce(members, 0, reduction, groups=groups)
        case "reduce_scatter":
            return ReduceScatter(members, 0, reduction, groups=groups, dim=0)
        case "all_gather":
            return AllGather(members, 0, groups=groups, dim=1)
        case "all_to_all":
            return AllToAll(members, 0, groups=groups, split_dim=0, concat_dim=1)
        case "broadcast":
            roots = tuple(group[-1] for group in groups)
            return Broadcast(members, 0, roots[0], groups=groups, roots=roots if len(roots) > 1 else ())
        case _:
            pairs = tuple(
                (group[place], group[(place + 1) % len(group)]) for group in groups for place in range(len(group))
            )
            # One rank of a larger group is left out as a destination: it gets zeros.
            return CollectivePermute(members, 0, pairs[1:] if len(pairs) > 1 else pairs)


def local_shape(kind: str, size: int) -> tuple[int, ...]:
    return (2 * size, 3)


def result_shape(kind: str, shape: tuple[int, ...], size: int) -> tuple[int, ...]:
    match kind:
        case "reduce_scatter":
            return (shape[0] // size, *shape[1:])
        case "all_gather":
            return (shape[0], shape[1] * size)
        case "all_to_all":
            return (shape[0] // size, shape[1] * size)
        case _:
            return shape


def fold(arrays: Sequence[np.ndarray], dtype: str, kind: ReductionKind) -> np.ndarray:
    """From the left, one by one, in the accumulator's type, rounded once."""
    work = accumulator(dtype)
    total = arrays[0].astype(work)
    for array in arrays[1:]:
        other = array.astype(work)
        match kind:
            case ReductionKind.SUM:
                total = total + other
            case ReductionKind.PRODUCT:
                total = total * other
            case ReductionKind.MAX:
                total = np.maximum(total, other)
            case _:
                total = np.minimum(total, other)
    return total.astype(numpy_dtype(dtype))


def expected(
    kind: str,
    groups: Groups,
    arrays: Sequence[np.ndarray],
    dtype: str,
    reduction: ReductionKind,
    spec: CollectiveSpecVariant,
) -> list[np.ndarray]:
    found: dict[int, np.ndarray] = {}
    if isinstance(spec, CollectivePermute):
        sources = {target: source for source, target in spec.pairs}
        return [
            arrays[sources[rank]] if rank in sources else np.zeros_like(arrays[rank]) for rank in range(len(arrays))
        ]
    for group in groups:
        parts = [arrays[rank] for rank in group]
        size = len(group)
        for place, rank in enumerate(group):
            match kind:
                case "all_reduce":
                    found[rank] = fold(parts, dtype, reduction)
                case "reduce_scatter":
                    found[rank] = np.split(fold(parts, dtype, reduction), size, axis=0)[place]
                case "all_gather":
                    found[rank] = np.concatenate(parts, axis=1)
                case "all_to_all":
                    found[rank] = np.concatenate([np.split(part, size, axis=0)[place] for part in parts], axis=1)
                case _:
                    found[rank] = parts[-1]
    return [found[rank] for rank in range(len(arrays))]


def random_arrays(ranks: int, shape: Sequence[int], dtype: str, seed: int = 0) -> list[np.ndarray]:
    """Different on every rank, with values whose sums depend on their order."""
    generator = np.random.default_rng((seed, ranks))
    kind = numpy_dtype(dtype)
    if kind.kind == "i":
        # Sums and products wrap.
        return [generator.integers(-(2**31), 2**31, shape).astype(kind) for _ in range(ranks)]
    return [
        (generator.standard_normal(shape) * 10.0 ** generator.integers(-2, 3, shape)).astype(kind) for _ in range(ranks)
    ]


def run(
    backend: str, kind: str, groups: Groups, arrays: Sequence[np.ndarray], dtype: str, reduction: ReductionKind
) -> tuple[list[np.ndarray], CollectiveSpecVariant]:
    ranks = len(arrays)
    mesh = rank_mesh(ranks)
    spec = spec_of(kind, groups, reduction)
    shape = arrays[0].shape
    size = len(groups[0])
    source = per_rank_value("a", mesh, shape, dtype, ValueRole.INPUT)
    target = per_rank_value("b", mesh, result_shape(kind, shape, size), dtype)
    name = "collective-permute" if kind == "permute" else kind.replace("_", "-")
    program = chain(mesh, (source, target), (collective_task(name, spec, "a", "b"),))
    (held,) = run_backend(backend, plan_of(program), [Slab(tuple(range(ranks)), np.stack(arrays))])
    return [np.asarray(row) for row in rows(held)], spec


def same(found: Sequence[np.ndarray], wanted: Sequence[np.ndarray]) -> bool:
    return all(
        one.shape == two.shape and one.dtype == two.dtype and one.tobytes() == two.tobytes()
        for one, two in zip(found, wanted, strict=True)
    )


@pytest.mark.parametrize("grouping", GROUPINGS)
@pytest.mark.parametrize("ranks", RANKS)
@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("kind", KINDS)
def test_collective(backend: str, kind: str, dtype: str, ranks: int, grouping: str) -> None:
    groups = groups_of(ranks, grouping)
    arrays = random_arrays(ranks, local_shape(kind, len(groups[0])), dtype)
    found, spec = run(backend, kind, groups, arrays, dtype, ReductionKind.SUM)
    assert same(found, expected(kind, groups, arrays, dtype, ReductionKind.SUM, spec))


@pytest.mark.parametrize("kind", ["all_reduce", "reduce_scatter"])
@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("reduction", [ReductionKind.PRODUCT, ReductionKind.MAX, ReductionKind.MIN])
def test_reductions(backend: str, kind: str, dtype: str, reduction: ReductionKind) -> None:
    groups = groups_of(8, "split")
    arrays = random_arrays(8, local_shape(kind, 4), dtype, seed=3)
    with np.errstate(all="ignore"):
        found, spec = run(backend, kind, groups, arrays, dtype, reduction)
        assert same(found, expected(kind, groups, arrays, dtype, reduction, spec))


@pytest.mark.parametrize("reduction", [ReductionKind.AND, ReductionKind.OR, ReductionKind.XOR])
def test_bitwise_reductions(backend: str, reduction: ReductionKind) -> None:
    arrays = random_arrays(3, (4,), "s32", seed=5)
    found, _ = run(backend, "all_reduce", ((0, 1, 2),), arrays, "s32", reduction)
    function = {ReductionKind.AND: np.bitwise_and, ReductionKind.OR: np.bitwise_or, ReductionKind.XOR: np.bitwise_xor}
    assert same(found, [function[reduction].reduce(arrays)] * 3)


def test_average_rounds_once(backend: str) -> None:
    arrays = random_arrays(3, (5,), "f16")
    found, _ = run(backend, "all_reduce", ((0, 1, 2),), arrays, "f16", ReductionKind.AVERAGE)
    total = fold([array.astype(np.float32) for array in arrays], "f32", ReductionKind.SUM)
    assert same(found, [(total / np.float32(3)).astype(np.float16)] * 3)


@pytest.mark.parametrize("ranks", RANKS)
@pytest.mark.parametrize("kind", ["all_reduce", "all_gather", "broadcast", "permute"])
def test_one_element(backend: str, kind: str, ranks: int) -> None:
    groups = groups_of(ranks, "world")
    arrays = random_arrays(ranks, (1, 1), "f32", seed=7)
    found, spec = run(backend, kind, groups, arrays, "f32", ReductionKind.SUM)
    assert same(found, expected(kind, groups, arrays, "f32", ReductionKind.SUM, spec))


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("shape", [(0, 3), (4, 0)])
def test_no_elements(backend: str, kind: str, dtype: str, shape: tuple[int, int]) -> None:
    groups = groups_of(4, "split")
    arrays = [np.zeros(shape, numpy_dtype(dtype)) for _ in range(4)]
    found, spec = run(backend, kind, groups, arrays, dtype, ReductionKind.SUM)
    assert same(found, expected(kind, groups, arrays, dtype, ReductionKind.SUM, spec))


def overlapping() -> Iterator[tuple[str, int, list[Groups]]]:
    yield "pairs in two orders", 4, [((0, 1), (2, 3)), ((1, 2), (0, 3))]
    yield "world between pairs", 4, [((0, 2), (1, 3)), ((0, 1, 2, 3),), ((0, 1), (2, 3))]
    yield (
        "a ring of pairs",
        8,
        [tuple((r, r + 1) for r in range(0, 8, 2)), tuple((r, (r + 1) % 8) for r in range(1, 8, 2))],
    )


@pytest.mark.parametrize(
    ("name", "ranks", "turns"), list(overlapping()), ids=lambda item: item if isinstance(item, str) else ""
)
def test_overlapping_groups(backend: str, name: str, ranks: int, turns: list[Groups]) -> None:
    mesh = rank_mesh(ranks)
    arrays = random_arrays(ranks, (3, 2), "f32", seed=11)
    values = [per_rank_value(f"v{turn}", mesh, (3, 2), "f32", ValueRole.INPUT if turn == 0 else ValueRole.ACTIVATION)
              for turn in range(len(turns) + 1)]  # fmt: skip
    tasks = [
        collective_task(
            f"all-reduce.{turn}", spec_of("all_reduce", groups), f"v{turn}", f"v{turn + 1}",
            [f"all-reduce.{turn - 1}"] if turn else [],
        )
        for turn, groups in enumerate(turns)
    ]  # fmt: skip
    plan = plan_of(chain(mesh, values, tasks))
    (held,) = run_backend(backend, plan, [Slab(tuple(range(ranks)), np.stack(arrays))])
    current = arrays
    for groups in turns:
        current = expected("all_reduce", groups, current, "f32", ReductionKind.SUM, spec_of("all_reduce", groups))
    assert same([np.asarray(row) for row in rows(held)], current)


@pytest.mark.parametrize("ranks", [2, 3, 4, 8])
@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("kind", KINDS)
def test_every_collective_in_overlapping_groups(backend: str, kind: str, dtype: str, ranks: int) -> None:
    """Two in a row whose groups have some members in common and others not (of 2 and 3 ranks: in another order)."""
    everybody = tuple(range(ranks))
    if ranks < 4:
        turns: list[Groups] = [(everybody,), ((*everybody[1:], 0),)]
    else:
        pairs = tuple((rank, rank + 1) for rank in range(0, ranks, 2))
        turns = [pairs, tuple(((rank + 1) % ranks, (rank + 2) % ranks) for rank in range(0, ranks, 2))]
    size = len(turns[0][0])
    mesh = rank_mesh(ranks)
    shapes = [(2 * size * size, 3)]
    for _ in turns:
        shapes.append(result_shape(kind, shapes[-1], size))
    arrays = random_arrays(ranks, shapes[0], dtype, seed=13)
    values = [per_rank_value(f"v{turn}", mesh, shape, dtype, ValueRole.INPUT if turn == 0 else ValueRole.ACTIVATION)
              for turn, shape in enumerate(shapes)]  # fmt: skip
    name = "collective-permute" if kind == "permute" else kind.replace("_", "-")
    specs = [spec_of(kind, groups) for groups in turns]
    tasks = [
        collective_task(f"{name}.{turn}", spec, f"v{turn}", f"v{turn + 1}", [f"{name}.{turn - 1}"] if turn else [])
        for turn, spec in enumerate(specs)
    ]
    (held,) = run_backend(backend, plan_of(chain(mesh, values, tasks)), [Slab(everybody, np.stack(arrays))])
    current: Sequence[np.ndarray] = arrays
    for groups, spec in zip(turns, specs, strict=True):
        current = expected(kind, groups, current, dtype, ReductionKind.SUM, spec)
    assert same([np.asarray(row) for row in rows(held)], current)


@pytest.mark.parametrize("kind", ["reduce_scatter", "all_to_all"])
def test_what_does_not_divide_is_an_error(backend: str, kind: str) -> None:
    arrays = random_arrays(4, (6, 3), "f32")
    with pytest.raises(DiagnosticError, match="6 elements cannot be scattered evenly over 4 ranks"):
        run(backend, kind, ((0, 1, 2, 3),), arrays, "f32", ReductionKind.SUM)


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("ranks", [2, 3, 4, 8])
def test_members_of_unequal_size_are_gathered(backend: str, ranks: int, dtype: str) -> None:
    """Rank r holds r rows, the first none."""
    mesh = rank_mesh(ranks)
    total = sum(range(ranks))
    source = per_rank_value(
        "a", mesh, (ranks, 3), dtype, ValueRole.INPUT, local_shapes=tuple(LocalShape(r, (r, 3)) for r in range(ranks))
    )
    target = per_rank_value("b", mesh, (total, 3), dtype)
    spec = AllGather(tuple(range(ranks)), 0, groups=(tuple(range(ranks)),), dim=0)
    task = replace(collective_task("all-gather", spec, "a", "b"), attributes=FrozenDict({"op.vector": True}))
    arrays = [array[:rank] for rank, array in enumerate(random_arrays(ranks, (ranks, 3), dtype))]
    (held,) = run_backend(
        backend, plan_of(chain(mesh, (source, target), (task,))), [Pieces(tuple(range(ranks)), tuple(arrays))]
    )
    assert same([np.asarray(row) for row in rows(held)], [np.concatenate(arrays)] * ranks)


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("ranks", [2, 3, 4, 8])
def test_blocks_of_unequal_size_are_scattered(backend: str, ranks: int, dtype: str) -> None:
    """Rank r gets r + 1 rows of the sum."""
    mesh = rank_mesh(ranks)
    sizes = [rank + 1 for rank in range(ranks)]
    source = per_rank_value("a", mesh, (sum(sizes), 3), dtype, ValueRole.INPUT)
    target = replace(
        per_rank_value("b", mesh, (sum(sizes), 3), dtype),
        sharding=ShardingSpec((("x",), ()), sizes=(ShardSizes(0, tuple(sizes)),)),
    )
    spec = ReduceScatter(tuple(range(ranks)), 0, ReductionKind.SUM, groups=(tuple(range(ranks)),), dim=0)
    task = collective_task("reduce-scatter", spec, "a", "b")
    arrays = random_arrays(ranks, (sum(sizes), 3), dtype)
    (held,) = run_backend(
        backend, plan_of(chain(mesh, (source, target), (task,))), [Slab(tuple(range(ranks)), np.stack(arrays))]
    )
    wanted = np.split(fold(arrays, dtype, ReductionKind.SUM), np.cumsum(sizes)[:-1])
    assert same([np.asarray(row) for row in rows(held)], wanted)


def test_a_reduction_of_unequal_shapes_is_an_error(backend: str) -> None:
    mesh = rank_mesh(2)
    source = per_rank_value("a", mesh, (3,), "f32", ValueRole.INPUT, local_shapes=(LocalShape(1, (2,)),))
    target = per_rank_value("b", mesh, (3,), "f32")
    program = chain(
        mesh, (source, target), (collective_task("all-reduce", spec_of("all_reduce", ((0, 1),)), "a", "b"),)
    )
    held = Pieces((0, 1), (np.zeros(3, np.float32), np.zeros(2, np.float32)))
    with pytest.raises(ExecutionError, match=r"member 0 has \[3\], member 1 \[2\]"):
        run_backend(backend, plan_of(program), [held])


def test_the_expectation_can_fail(backend: str) -> None:
    """The comparison is bitwise: another order of the sum is seen."""
    arrays = [np.asarray([value], np.float32) for value in (1e8, 1.0, -1e8)]
    found, _ = run(backend, "all_reduce", ((0, 1, 2),), arrays, "f32", ReductionKind.SUM)
    assert same(found, [np.asarray([0.0], np.float32)] * 3)
    assert not same(found, [fold([arrays[0], arrays[2], arrays[1]], "f32", ReductionKind.SUM)] * 3)
