from __future__ import annotations

import math

import pytest
from dtir_app.frames.tensor import TILE_LIMIT, default_dims, sheets_of, tensor_frame
from dtir_app.frames.tensors import known_of, shown_values, tensor_bar, tensor_maps
from dtir_app.gallery import examples
from dtir_app.selection import NOTHING, of_task, of_value
from dtir_app.store import Store
from hypothesis import given
from hypothesis import strategies as st

from dtir.ir.expr import BindingAxis, Symbol
from dtir.ir.ids import Lineage
from dtir.ir.mesh import LogicalMesh
from dtir.ir.ranks import all_ranks
from dtir.ir.reductions import ReductionKind
from dtir.ir.sharding import AxisCoordinate, Partial, ShardingSpec, ShardSizes
from dtir.ir.types import TensorType
from dtir.ir.values import DistributedValue, ValueRole
from tests.app.build import store_of, store_of_example
from tests.helpers.programs import mesh_of, program, value_id


def store_with(
    shape: tuple[object, ...], sharding: ShardingSpec, mesh: LogicalMesh | None = None, **fields: object
) -> Store:
    mesh = mesh or mesh_of(dp=2, tp=4)
    made = DistributedValue(
        id=value_id("v"),
        type=TensorType(shape, "f32"),
        role=ValueRole.INPUT,
        sharding=sharding,
        **{"owners": all_ranks(mesh.size), "lineage": Lineage.root(), "name": "v"} | fields,
    )
    return store_of(program(mesh, values=(made,), tasks=(), inputs=(value_id("v"),), outputs=()))


def area(tiles: dict[str, list[object]]) -> float:
    return sum(
        (right - left) * (bottom - top)
        for left, right, top, bottom in zip(tiles["left"], tiles["right"], tiles["top"], tiles["bottom"], strict=True)
    )


def ranks_of(text: object) -> list[int]:
    found: list[int] = []
    for piece in str(text).split(", "):
        first, _, last = piece.partition("–")
        found += range(int(first), int(last or first) + 1)
    return found


AXES = ("dp", "tp", "pp")


@given(st.permutations(AXES), st.integers(0, 3), st.integers(0, 3), st.integers(1, 3))
def test_tiles_cover_the_tensor_and_ranks_hold_one_each(order: list[str], down: int, across: int, times: int) -> None:
    mesh = mesh_of(dp=2, tp=4, pp=3)
    first, second = tuple(order[:down]), tuple(order[down : down + across])
    rest = tuple(name for name in AXES if name not in first + second)
    extent = [math.prod(mesh.axis_size(name) for name in axes) * times for axes in (first, second)]
    store = store_with(tuple(extent), ShardingSpec((first, second), rest), mesh)
    frame = tensor_frame(store, 0)
    assert area(frame.tiles) == pytest.approx(1.0)
    held = [rank for text in frame.tiles["ranks"] for rank in ranks_of(text)]
    assert sorted(held) == list(range(24))
    assert frame.copies == math.prod(mesh.axis_size(name) for name in rest)
    assert set(frame.tiles["edge"]) == {"even"}


@pytest.mark.parametrize("name", [item.name for item in examples()])
def test_every_tensor_of_a_program_can_be_drawn(name: str) -> None:
    store = store_of_example(name)
    for row in range(0, len(store.values), max(1, len(store.values) // 60)):
        frame = tensor_frame(store, row)
        assert len({len(column) for column in frame.tiles.values()}) == 1
        assert 0 < len(frame.tiles["x"]) <= TILE_LIMIT
        assert "nobody" not in frame.tiles["label"]


def test_major_axes_come_first() -> None:
    frame = tensor_frame(store_with((8,), ShardingSpec((("tp", "dp"),))), 0)
    assert frame.tiles["label"] == ["0", "4", "1", "5", "2", "6", "3", "7"]


def test_copies_pending_and_plain_look_different() -> None:
    plain = tensor_frame(store_with((8, 8), ShardingSpec((("dp",), ("tp",)))), 0)
    assert (set(plain.tiles["hatch"]), set(plain.tiles["badge"])) == ({" "}, {""})
    copies = tensor_frame(store_with((8, 8), ShardingSpec((("dp",), ()), ("tp",))), 0)
    assert (set(copies.tiles["hatch"]), set(copies.tiles["badge"])) == ({"/"}, {"×4"})
    pending = tensor_frame(
        store_with((8, 8), ShardingSpec((("dp",), ()), partial=Partial(("tp",), ReductionKind.SUM))), 0
    )
    assert (set(pending.tiles["hatch"]), set(pending.tiles["badge"])) == ({"."}, {"Σ tp"})
    assert pending.copies == 1


def test_uneven_blocks_are_to_scale_and_marked() -> None:
    store = store_with((14,), ShardingSpec((("tp",),), ("dp",), sizes=(ShardSizes(0, (2, 3, 4, 5)),)))
    frame = tensor_frame(store, 0)
    widths = [round((b - a) * 14, 6) for a, b in zip(frame.tiles["left"], frame.tiles["right"], strict=True)]
    assert widths == [2, 3, 4, 5]
    assert frame.tiles["edge"] == ["odd", "odd", "odd", "even"]


def test_an_extent_that_does_not_divide_is_said() -> None:
    frame = tensor_frame(store_with((10,), ShardingSpec((("tp",),), ("dp",))), 0)
    assert "10 does not divide by 4" in frame.limits
    assert frame.tiles["edge"][-1] == "odd"


def test_per_rank_data_has_a_sheet_for_every_rank() -> None:
    frame = tensor_frame(store_with((2, 8), ShardingSpec(((), ()), varying=("dp", "tp"))), 0)
    assert frame.tiles["label"] == [str(rank) for rank in range(8)]
    assert set(frame.tiles["badge"]) == {"own data"}
    assert "Per-rank data along dp×tp" in frame.note
    assert area(frame.tiles) < 1.0
    assert set(frame.ticks["text"]) == {"tp=0", "tp=1", "tp=2", "tp=3", "dp=0", "dp=1"}


def test_a_confined_value_is_held_at_its_coordinate_only() -> None:
    spec = ShardingSpec(((),), ("dp",), at=(AxisCoordinate("tp", 3),))
    frame = tensor_frame(store_with((4,), spec, owners=(3, 7)), 0)
    assert frame.tiles["ranks"] == ["3, 7"]


def test_a_block_without_an_owner_is_marked() -> None:
    frame = tensor_frame(store_with((8,), ShardingSpec((("tp",),), ("dp",)), owners=(0, 1, 2)), 0)
    assert frame.tiles["label"] == ["0", "1", "2", "nobody"]
    assert frame.tiles["edge"][-1] == "odd"


def test_other_dims_are_cut_at_a_block() -> None:
    mesh = mesh_of(a=2, b=2, c=2)
    store = store_with((4, 4, 4), ShardingSpec((("a",), ("b",), ("c",))), mesh)
    frame = tensor_frame(store, 0, dims=(1, 2), at={0: 1})
    assert sorted(int(str(text)) for text in frame.tiles["label"]) == [4, 5, 6, 7]
    assert frame.sliders == [{"dim": 0, "label": "dim 0: 4 by a", "value": 1, "max": 1}]
    assert tensor_frame(store, 0, dims=(1, 2), at={0: 99}).sliders[0]["value"] == 1
    assert tensor_frame(store, 0, dims=(7, 8)).dims == default_dims(store.value_records[0])


@pytest.mark.parametrize(("shape", "dims"), [((), (-1, -1)), ((4,), (-1, 0)), ((4, 4, 4), (1, 2))])
def test_the_usual_dims(shape: tuple[int, ...], dims: tuple[int, int]) -> None:
    store = store_with(shape, ShardingSpec(tuple(() for _ in shape), ("dp", "tp")))
    assert default_dims(store.value_records[0]) == dims
    assert area(tensor_frame(store, 0).tiles) == pytest.approx(1.0)


def test_a_symbolic_extent_is_drawn_by_blocks() -> None:
    batch = Symbol("b", BindingAxis.WORKLOAD, positive=True)
    frame = tensor_frame(store_with((batch, 8), ShardingSpec((("dp",), ()), ("tp",))), 0)
    assert len(frame.tiles["x"]) == 2
    assert "workload.b" in str(frame.choices[0]["label"])
    assert "dim 0: size not known yet" in frame.limits


def test_an_empty_tensor_can_be_drawn() -> None:
    assert len(tensor_frame(store_with((0, 4), ShardingSpec(((), ()), ("dp", "tp"))), 0).tiles["x"]) == 1


def test_too_many_tiles_are_counted() -> None:
    mesh = mesh_of(a=64, b=64)
    frame = tensor_frame(store_with((64, 64), ShardingSpec((("a",), ("b",))), mesh), 0)
    assert len(frame.tiles["x"]) == TILE_LIMIT
    assert "1,024 of 4,096 blocks drawn" in frame.limits
    huge = mesh_of(a=2_000_000)
    assert (
        "2,000,000 blocks drawn as one"
        in tensor_frame(store_with((2_000_000,), ShardingSpec((("a",),)), huge), 0).limits
    )


def test_sheets_are_limited_and_counted() -> None:
    made, total = sheets_of(("a", "b"), {"a": 1000, "b": 8})
    assert total == 8000
    assert len(made) == 64
    assert all(0 <= sheet.left <= 1 and 0 <= sheet.top <= 1 for sheet in made)


def test_a_collective_says_what_it_makes_of_per_rank_data() -> None:
    store = store_of_example("transformer_train")
    task = next(row for row in range(len(store.tasks)) if store.tasks.name[row] == "all-reduce")
    before, after = tensor_maps(store, of_task(task), picked={}, dims={}, at={})
    assert set(before[3].tiles["badge"]) == {"term of Σ"}
    assert set(after[3].tiles["badge"]) == {"= in group"}
    # One colour a group: axis1 is summed over, so the two coordinates of axis0 differ and nothing else does.
    assert len(set(after[3].tiles["colour"])) == 2
    assert known_of(store, 0, "before").note == ""


def test_a_task_shows_before_and_after_and_a_tensor_itself() -> None:
    store = store_of_example("faults")
    assert [side for side, _, _ in shown_values(store, of_task(3), {})] == ["before", "after"]
    picked = shown_values(store, of_task(3), {"before": 3})
    assert picked[0][1] == 3
    assert shown_values(store, of_task(3), {"before": 99})[0][1] != 99
    assert [side for side, _, _ in shown_values(store, of_value(0), {})] == ["tensor"]
    assert shown_values(store, NOTHING, {}) == []
    assert "message" in tensor_bar(store, [])


def test_what_a_layout_says_is_not_said_again() -> None:
    store = store_of_example("faults")
    task = store.tasks.name.index("sum_tp")
    before, after = tensor_maps(store, of_task(task), picked={}, dims={}, at={})
    assert set(before[3].tiles["badge"]) == {"Σ tp"}
    assert set(after[3].tiles["badge"]) == {"×4"}
