"""Inputs of a run: what an archive must hold, parts of the ranks, and data from a seed."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from dtir.execute import ExecPlan, Slab, write_archive
from dtir.execute.archive import Archive
from dtir.execute.assemble import Source, assemble
from dtir.execute.data import Inputs, generate, generate_inputs, input_labels, read_inputs
from dtir.execute.dtypes import numpy_dtype
from dtir.execute.values import Held, is_shared, rows
from dtir.ir import (
    DistributedTask,
    DistributedTaskIR,
    DistributedValue,
    Lineage,
    LogicalMesh,
    MeshAxis,
    NodeId,
    OperationName,
    Partial,
    ReductionKind,
    ShardingSpec,
    ShardSizes,
    TensorType,
    ValueId,
    ValueRole,
    make_header,
)
from dtir.ir.tasks import LocalCompute
from dtir.schema.result import Err, Ok
from tests.helpers.running import DIGEST, hlo_program, plan_of

MESH = LogicalMesh("m", (MeshAxis("a", 2), MeshAxis("b", 2)))


def program(*values: DistributedValue) -> ExecPlan:
    """A program that negates each of its inputs."""
    results = [
        DistributedValue(
            id=ValueId.derive("data", f"-{value.name}"),
            type=value.type,
            role=value.role,
            sharding=value.sharding,
            owners=value.owners,
            lineage=Lineage.root(),
            name=f"-{value.name}",
        )
        for value in values
    ]
    tasks = [
        DistributedTask(
            id=NodeId.derive("data", f"t-{value.name}"),
            body=LocalCompute(),
            operation=OperationName("core", "neg"),
            ranks=value.owners,
            inputs=(value.id,),
            outputs=(result.id,),
            dependencies=(),
            lineage=Lineage.root(),
        )
        for value, result in zip(values, results, strict=True)
    ]
    return plan_of(
        DistributedTaskIR(
            name="data",
            source_model_digest=DIGEST,
            mesh=MESH,
            values=(*values, *results),
            tasks=tuple(tasks),
            inputs=tuple(value.id for value in values),
            outputs=tuple(result.id for result in results),
            header=make_header("dtir.distributed-task", DistributedTaskIR.SCHEMA_VERSION, parent_digests=(DIGEST,)),
        )
    )


def value(
    name: str, shape: tuple[int, ...], *dims: tuple[str, ...], dtype: str = "f32", **fields: Any
) -> DistributedValue:
    used = {axis for axes in dims for axis in axes}
    partial: Partial | None = fields.get("partial")
    if partial is not None:
        used.update(partial.axes)
    return DistributedValue(
        id=ValueId.derive("data", name),
        type=TensorType(shape, dtype),
        role=ValueRole.ACTIVATION,
        sharding=ShardingSpec(dims, tuple(axis for axis in MESH.axis_names if axis not in used), **fields),
        owners=tuple(range(MESH.size)),
        lineage=Lineage.root(),
        name=name,
    )


def read(plan: ExecPlan, tmp_path: Path, **arrays: Any) -> Inputs | list[str]:
    """The inputs, or the messages of what is wrong with them."""
    path = tmp_path / "x.npz"
    write_archive(path, {name: np.asarray(array) for name, array in arrays.items()})
    match read_inputs(plan, Archive.open(path)):
        case Ok(value=found):
            return found
        case Err(error=wrong):
            return [f"{item.code}: {item.message}" for item in wrong.errors]


def held(plan: ExecPlan, found: Inputs | list[str], number: int = 0) -> Held:
    assert isinstance(found, Inputs), found
    return found.held[plan.main.inputs[number]]


# -- parts of an array -------------------------------------------------------------------------------------------------------


def test_an_array_is_split_by_its_layout(tmp_path: Path) -> None:
    plan = program(value("x", (4, 6), ("b",), ("a",)))
    array = np.arange(24, dtype=np.float32).reshape(4, 6)
    parts = rows(held(plan, read(plan, tmp_path, in0=array)))
    for rank, (a, b) in enumerate([(0, 0), (0, 1), (1, 0), (1, 1)]):
        assert np.array_equal(parts[rank], array[2 * b : 2 * b + 2, 3 * a : 3 * a + 3])


def test_copies_are_held_once(tmp_path: Path) -> None:
    plan = program(value("x", (4,), ()))
    assert is_shared(held(plan, read(plan, tmp_path, in0=np.ones(4, np.float32))))  # type: ignore[arg-type]


def test_uneven_parts(tmp_path: Path) -> None:
    plan = program(value("x", (5,), ("a",), sizes=(ShardSizes(0, (4, 1)),)))
    parts = rows(held(plan, read(plan, tmp_path, in0=np.arange(5, dtype=np.float32))))
    assert [part.tolist() for part in parts] == [[0, 1, 2, 3], [0, 1, 2, 3], [4], [4]]


@pytest.mark.parametrize(
    ("kind", "identity"),
    [(ReductionKind.SUM, 0), (ReductionKind.PRODUCT, 1), (ReductionKind.MAX, -np.inf), (ReductionKind.MIN, np.inf)],
)
def test_pending_inputs_stand_on_the_first_coordinate(tmp_path: Path, kind: ReductionKind, identity: float) -> None:
    plan = program(value("x", (2,), (), partial=Partial(("b",), kind)))
    parts = rows(held(plan, read(plan, tmp_path, in0=np.float32([3, 4]))))
    assert [part.tolist() for part in parts] == [[3, 4], [identity] * 2, [3, 4], [identity] * 2]


LAYOUTS = [
    value("x", (4, 8), ("a",), ("b",)),
    value("x", (4, 8), (), ("b", "a")),
    value("x", (4, 8), ("a", "b"), ()),
    value("x", (4, 7), ("a",), ("b",), sizes=(ShardSizes(1, (5, 2)),)),
    value("x", (4, 7), (), ("b",), sizes=(ShardSizes(1, (4, 4)),)),
    value("x", (4, 8), ("b",), (), partial=Partial(("a",), ReductionKind.SUM)),
    value("x", (4, 8), (), (), partial=Partial(("a", "b"), ReductionKind.MAX)),
    value("x", (), partial=Partial(("b",), ReductionKind.SUM)),
    value("x", (0, 8), (), ("b",)),
]


@pytest.mark.parametrize("layout", LAYOUTS)
@given(seed=st.integers(0, 2**32 - 1))
def test_what_is_split_is_put_together_again(layout: DistributedValue, seed: int) -> None:
    plan = program(layout)
    inputs = generate_inputs(plan, seed)
    (output,) = assemble(plan, plan.main.inputs, [inputs.held[plan.main.inputs[0]]])
    assert output.source is Source.PROGRAM
    assert output.array is not None
    assert np.array_equal(output.array, inputs.whole[0])
    assert (output.difference, output.holes) == (0.0, 0)


# -- what is wrong with an archive ---------------------------------------------------------------------------------------------


def test_everything_wrong_is_said(tmp_path: Path) -> None:
    plan = program(value("x", (4, 2), ("a",), ()), value("y", (2,), ()), value("z", (2,), (), dtype="s32"))
    found = read(plan, tmp_path, in0=np.ones((2, 4)), in2=np.ones(2, np.int64), in3=np.ones(1), other=np.ones(1))
    assert found == [
        "run.input_shape: in0 (x) has shape [2, 4], the program wants [4, 2]",
        "run.input_dtype: in0 (x) is float64, the program wants f32 (float32)",
        "run.input_missing: the archive has no array in1; the program wants f32[2] for y",
        "run.input_dtype: in2 (z) is int64, the program wants s32 (int32)",
        "run.input_unused: the archive has in3, the program has 3 inputs",
    ]
    assert input_labels(plan) == ["in0 (x)", "in1 (y)", "in2 (z)"]


@pytest.mark.parametrize(("dtype", "low", "high"), [("s4", -8, 7), ("u4", 0, 15), ("s2", -2, 1), ("u2", 0, 3)])
def test_numbers_of_narrow_types_are_in_their_range(tmp_path: Path, dtype: str, low: int, high: int) -> None:
    plan = program(value("x", (2,), (), dtype=dtype))
    kind = numpy_dtype(dtype)
    assert rows(held(plan, read(plan, tmp_path, in0=np.asarray([low, high], kind))))[0].tolist() == [low, high]
    found = read(plan, tmp_path, in0=np.asarray([0, high + 1], kind))
    assert found == [f"run.input_dtype: in0 holds 0 to {high + 1}, {dtype} is {low} to {high}"]


@pytest.mark.parametrize("dtype", ["bf16", "f8e4m3fn", "f8e5m2"])
def test_types_that_numpy_stores_as_bytes(tmp_path: Path, dtype: str) -> None:
    plan = program(value("x", (2,), (), dtype=dtype))
    array = np.asarray([1.5, -2], numpy_dtype(dtype))
    path = tmp_path / "x.npz"
    write_archive(path, {"in0": array})
    with np.load(path) as stored:
        assert stored["in0"].view(array.dtype).tolist() == array.tolist()
    found = read_inputs(plan, Archive.open(path)).or_raise()
    back = rows(found.held[plan.main.inputs[0]])[0]
    assert back.dtype == array.dtype
    assert back.astype(np.float32).tolist() == [1.5, -2]


PARTITIONED = """HloModule m, num_partitions=4
ENTRY e { a = f32[3] parameter(0), sharding={devices=[4]<=[4]}
 ROOT r = f32[3] negate(a) }"""


@pytest.mark.parametrize("extent", [0, 1, 8, 9, 10, 11, 12, 13])
def test_a_partitioned_module_knows_padded_shards_only(tmp_path: Path, extent: int) -> None:
    """Shards of 3 elements on 4 ranks are those of ceil(n / 4): 9 to 12 elements, of which 9 leave rank 3 empty."""
    plan = plan_of(hlo_program(PARTITIONED))
    found = read(plan, tmp_path, in0=np.arange(extent, dtype=np.float32))
    if 9 <= extent <= 12:
        parts = np.concatenate(rows(held(plan, found)))
        assert parts.tolist() == [*range(extent), *[0] * (12 - extent)]
    else:
        assert found == [f"run.input_shape: in0 (a) has shape [{extent}], the program wants [12]"]


# -- data from a seed ------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "dtype", ["f32", "f64", "bf16", "f16", "f8e4m3fn", "s32", "s8", "u8", "s4", "u4", "pred", "c64"]
)
def test_generated_numbers_are_small_and_held_exactly(dtype: str) -> None:
    array = generate((50, 3), dtype, (1, 2))
    assert array.dtype == numpy_dtype(dtype)
    assert np.array_equal(array, generate((50, 3), dtype, (1, 2)))
    assert not np.array_equal(array, generate((50, 3), dtype, (1, 3)))
    numbers = array.astype(np.complex128)
    assert np.abs(numbers).max() <= 8
    if dtype in ("f32", "f64", "bf16", "f16", "c64"):
        assert (numbers.real * 64 == np.round(numbers.real * 64)).all()
        assert (numbers != 0).all(), "a part that is lost must show"


def test_per_rank_inputs_differ_and_copies_do_not() -> None:
    text = """HloModule m, num_partitions=3
ENTRY e { a = f32[4] parameter(0)
 b = f32[4] parameter(1), sharding={replicated}
 ROOT r = f32[4] add(a, b) }"""
    plan = plan_of(hlo_program(text))
    inputs = generate_inputs(plan, 0)
    mine = [row.tobytes() for row in rows(inputs.held[plan.main.inputs[0]])]
    assert len(set(mine)) == 3
    common = inputs.held[plan.main.inputs[1]]
    assert isinstance(common, Slab)
    assert is_shared(common)
    assert set(inputs.whole) == {1}
