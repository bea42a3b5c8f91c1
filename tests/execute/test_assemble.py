"""Outputs as undivided arrays: layouts that are stated, inferred, found by shape, or honestly not known."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import pytest

from dtir.execute import Slab
from dtir.execute.assemble import Output, Source, assemble, tiling
from dtir.execute.inferred import infer_layouts, merge
from dtir.execute.placement import Placement
from dtir.execute.values import stack
from dtir.ir import LogicalMesh, MeshAxis, ShardingSpec
from tests.helpers.running import hlo_program, plan_of

SHARDED = "sharding={devices=[2,2]<=[4]}"
ROWS = "sharding={devices=[2,1,2]<=[4] last_tile_dim_replicate}"


def module(body: str, ranks: int = 4, extra: str = "") -> str:
    return f"HloModule m, num_partitions={ranks}\n{extra}ENTRY e {{ {body} }}"


def outputs(
    text: str,
    parts: Sequence[Any],
    *,
    shape: tuple[int, ...] | None = None,
    stated: Placement | None = None,
    infer: bool = True,
) -> Output:
    """The first output of a module when the ranks hold `parts` of it."""
    plan = plan_of(hlo_program(text))
    held = stack(tuple(range(plan.ranks)), [np.asarray(part, np.float32) for part in parts])
    shapes: Mapping[int, tuple[int, ...]] = {} if shape is None else {0: shape}
    inferred = [infer_layouts(plan, plan.main.outputs)] if infer else []
    (found,) = assemble(plan, plan.main.outputs, [held], {} if stated is None else {0: stated}, shapes, *inferred)
    return found


def blocks(array: np.ndarray, counts: tuple[int, ...], order: Sequence[int]) -> list[np.ndarray]:
    """An array cut into tiles; rank r holds tile order[r]."""
    tiles = [array]
    for dim, count in enumerate(counts):
        tiles = [piece for tile in tiles for piece in np.split(tile, count, axis=dim)]
    return [tiles[number] for number in order]


WHOLE = np.arange(24, dtype=np.float32).reshape(4, 6)
UNKNOWN = module('a = f32[2,3] parameter(0)\n ROOT r = f32[2,3] custom-call(a), custom_call_target="nobody"')


# -- by shape -------------------------------------------------------------------------------------------------------------------


def test_equal_parts_without_a_layout_are_one_array() -> None:
    found = outputs(UNKNOWN, [WHOLE[:2, :3]] * 4)
    assert found.source is Source.EQUAL
    assert np.array_equal(found.array, WHOLE[:2, :3])  # type: ignore[arg-type]


def test_different_parts_without_a_layout_stay_apart() -> None:
    parts = blocks(WHOLE, (2, 2), range(4))
    found = outputs(UNKNOWN, parts)
    assert (found.source, found.array) == (Source.UNKNOWN, None)
    assert all(np.array_equal(found.parts[rank], part) for rank, part in enumerate(parts))


@pytest.mark.parametrize("counts", [(2, 2), (4, 1), (1, 4)])
def test_a_shape_that_leaves_one_way_only(counts: tuple[int, int]) -> None:
    array = np.random.default_rng(0).standard_normal((8, 8)).astype(np.float32)
    local = (8 // counts[0], 8 // counts[1])
    text = module(f"a = f32[{local[0]},{local[1]}] parameter(0)\n ROOT r = f32[{local[0]},{local[1]}] negate(a)")
    parts = blocks(array, counts, range(4))
    found = outputs(text, parts, shape=(8, 8), infer=False)
    if counts == (2, 2):
        # Row by row or column by column: nothing tells which.
        assert (found.source, found.array) == (Source.UNKNOWN, None)
    else:
        assert found.source is Source.SHAPE
        assert np.array_equal(found.array, array)  # type: ignore[arg-type]


@pytest.mark.parametrize("order", [(0, 0, 1, 1), (0, 1, 0, 1)])
def test_copies_are_found_by_value(order: tuple[int, ...]) -> None:
    found = outputs(UNKNOWN, blocks(WHOLE[:, :3], (2, 1), order), shape=(4, 3), infer=False)
    assert found.source is Source.SHAPE
    assert np.array_equal(found.array, WHOLE[:, :3])  # type: ignore[arg-type]


def test_equal_tiles_fit_in_two_ways_that_give_the_same() -> None:
    """All zeros: which rank holds which tile makes no difference."""
    found = outputs(UNKNOWN, [np.zeros((2, 3))] * 4, shape=(4, 6), infer=False)
    assert found.source is Source.SHAPE
    assert found.array is not None
    assert found.array.shape == (4, 6)


def test_an_uneven_extent_has_a_padded_tail() -> None:
    array = np.arange(10, dtype=np.float32)
    parts = [array[:3], array[3:6], array[6:9], np.asarray([9, -1, -1])]
    text = module("a = f32[3] parameter(0)\n ROOT r = f32[3] negate(a)")
    found = outputs(text, parts, shape=(10,), infer=False)
    assert np.array_equal(found.array, array)  # type: ignore[arg-type]


def test_a_shard_may_be_empty() -> None:
    """ceil(5 / 4) = 2: three shards hold everything, the fourth nothing."""
    parts = [[0, 1], [2, 3], [4, -1], [-1, -1]]
    text = module("a = f32[2] parameter(0)\n ROOT r = f32[2] negate(a)")
    found = outputs(text, parts, shape=(5,), infer=False)
    assert np.array_equal(found.array, np.arange(5))  # type: ignore[arg-type]


@pytest.mark.parametrize("shape", [(1, 3), (4,), (3, 3), (4, 6, 1), (9, 9)])
def test_shapes_that_the_parts_do_not_make(shape: tuple[int, ...]) -> None:
    slab = Slab((0, 1, 2, 3), np.arange(24, dtype=np.float32).reshape(4, 2, 3))
    assert tiling(slab, (2, 3), shape) is None


# -- by what the inputs say --------------------------------------------------------------------------------------------------------

ADD = "add { x = f32[] parameter(0)\n y = f32[] parameter(1)\n ROOT z = f32[] add(x, y) }\n"


@pytest.mark.parametrize(
    ("body", "layout"),
    [
        ("ROOT r = f32[2,3] negate(a)", (0, 1)),
        ("ROOT r = f32[3,2] transpose(a), dimensions={1,0}", (1, 0)),
        ("s = f32[2,3] slice(a), slice={[0:2], [0:3]}\n ROOT r = f32[2,3] add(s, a)", (0, 1)),
        ("b = f32[4,2,3] broadcast(a), dimensions={1,2}\n ROOT r = f32[4,2,3] sine(b)", (None, 0, 1)),
        ("ROOT r = f32[6] reshape(a)", None),
        ("c = f32[] constant(0)\n ROOT r = f32[2] reduce(a, c), dimensions={1}, to_apply=add", (0,)),
        (
            "ROOT r = f32[2,6] all-gather(a), dimensions={1}, channel_id=1, use_global_device_ids=true, "
            "replica_groups={{0,1},{2,3}}",
            (0, None),
        ),
        ("ROOT r = f32[4,3] concatenate(a, a), dimensions={0}", (None, 1)),
        ("c = f32[] constant(0)\n ROOT r = f32[2,5] pad(a, c), padding=0_0x1_1", (0, None)),
        ("ROOT r = f32[2,2] dot(a, a), lhs_contracting_dims={1}, rhs_contracting_dims={1}", None),
    ],
)
def test_layouts_follow_the_operations(body: str, layout: tuple[int | None, ...] | None) -> None:
    plan = plan_of(hlo_program(module(f"a = f32[2,3] parameter(0), {SHARDED}\n {body}", extra=ADD)))
    found = infer_layouts(plan, plan.main.outputs).layouts.get(0)
    if layout is None:
        # Axes merged into one dim or used twice: nothing that could be said of the result.
        assert found is None or sum(map(len, found.sharding.dimension_axes)) < 2
        return
    assert found is not None
    (first, second) = plan.main.slots[plan.main.inputs[0]].placement.sharding.dimension_axes
    wanted = tuple(() if item is None else (first, second)[item] for item in layout)
    assert found.sharding.dimension_axes == wanted


def test_an_inferred_layout_needs_equal_copies() -> None:
    text = module(f"a = f32[2,3] parameter(0), {ROWS}\n ROOT r = f32[2,3] negate(a)")
    right = outputs(text, blocks(WHOLE[:, :3], (2, 1), (0, 0, 1, 1)))
    assert right.source is Source.INFERRED
    assert np.array_equal(right.array, WHOLE[:, :3])  # type: ignore[arg-type]
    wrong = outputs(text, blocks(WHOLE, (2, 2), range(4)))
    assert wrong.source is Source.UNKNOWN


def test_a_loop_keeps_the_layout_of_its_state() -> None:
    extra = """body { p = (s32[], f32[2,3]) parameter(0)
 i = s32[] get-tuple-element(p), index=0
 x = f32[2,3] get-tuple-element(p), index=1
 y = f32[2,3] sine(x)
 one = s32[] constant(1)
 j = s32[] add(i, one)
 ROOT t = (s32[], f32[2,3]) tuple(j, y) }
cond { p = (s32[], f32[2,3]) parameter(0)
 i = s32[] get-tuple-element(p), index=0
 n = s32[] constant(3)
 ROOT c = pred[] compare(i, n), direction=LT }
"""
    text = module(
        f"""a = f32[2,3] parameter(0), {SHARDED}
 z = s32[] constant(0)
 t = (s32[], f32[2,3]) tuple(z, a)
 w = (s32[], f32[2,3]) while(t), condition=cond, body=body
 ROOT r = f32[2,3] get-tuple-element(w), index=1""",
        extra=extra,
    )
    found = outputs(text, blocks(WHOLE, (2, 2), range(4)))
    assert found.source is Source.INFERRED
    assert np.array_equal(found.array, WHOLE)  # type: ignore[arg-type]


def test_what_aligned_dims_say_together() -> None:
    assert merge(None, ("a",)) == ("a",)
    assert merge((), ("a",)) == ("a",)
    assert merge(("a",), ("a",)) == ("a",)
    assert merge(("a",), ("b",)) is None
    assert merge((), None) == ()


# -- by a stated layout ---------------------------------------------------------------------------------------------------------------

MESH = LogicalMesh("m", (MeshAxis("a", 2), MeshAxis("b", 2)))


def test_a_stated_layout_wins() -> None:
    stated = Placement(MESH, (4, 6), ShardingSpec((("b",), ("a",))))
    found = outputs(UNKNOWN, blocks(WHOLE, (2, 2), (0, 2, 1, 3)), stated=stated)
    assert found.source is Source.STATED
    assert np.array_equal(found.array, WHOLE)  # type: ignore[arg-type]


def test_a_stated_layout_that_does_not_fit_is_not_used() -> None:
    stated = Placement(MESH, (9, 6), ShardingSpec((("b",), ("a",))))
    assert outputs(UNKNOWN, blocks(WHOLE, (2, 2), range(4)), stated=stated).source is Source.UNKNOWN


def test_copies_that_differ_are_told() -> None:
    stated = Placement(MESH, (4, 3), ShardingSpec((("a",), ()), ("b",)))
    parts = blocks(WHOLE[:, :3], (2, 1), (0, 0, 1, 1))
    parts[3] = parts[3] + 0.5
    found = outputs(UNKNOWN, parts, stated=stated)
    assert found.source is Source.STATED
    assert np.array_equal(found.array, WHOLE[:, :3])  # type: ignore[arg-type]
    assert found.difference == 0.5
    parts[1] = np.full((2, 3), np.nan)
    assert outputs(UNKNOWN, parts, stated=stated).difference == np.inf
