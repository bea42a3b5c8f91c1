"""What is compared and what is found: the undivided program, expected arrays, bytes, and times beyond noise."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from dtir.execute import ExecPlan
from dtir.execute.assemble import Output, Source
from dtir.execute.compare import CollectiveRow, check_outputs, findings, step_kinds
from dtir.execute.data import Inputs, generate_inputs
from dtir.execute.dtypes import numpy_dtype
from dtir.execute.oracle import run_undivided, tolerance
from dtir.execute.record import ValueCheck
from dtir.importers import load_path
from tests.helpers.running import hlo_program, per_rank_value, plan_of, rank_mesh

MODULE = """HloModule m, num_partitions=2
ENTRY e { a = %s[4] parameter(0), sharding={replicated}
 ROOT r = %s[4] negate(a) }"""


def plan(dtype: str = "f32") -> ExecPlan:
    return plan_of(hlo_program(MODULE % (dtype, dtype)))


def check(found: Any, expected: Any, dtype: str = "f32") -> ValueCheck:
    kind = numpy_dtype(dtype)
    output = Output(0, "r", Source.STATED, np.asarray(found, kind))
    inputs = Inputs({}, {}, {0: np.asarray(expected, kind)})
    (row,) = check_outputs(plan(dtype), [output], inputs, None)
    return row


# -- values ----------------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("found", "expected", "wrong"),
    [
        ([1, 2, 3, 4], [1, 2, 3, 4], 0),
        ([1, 2, 3, 4 + 4e-5], [1, 2, 3, 4], 0),  # 2e-5 of the greatest element
        ([1, 2, 3, 4 + 2e-4], [1, 2, 3, 4], 1),
        ([1, 2, 3, 5], [1, 2, 4, 4], 2),
        ([np.nan, 1, 2, 3], [np.nan, 1, 2, 3], 0),
        ([np.nan, 1, 2, 3], [0, 1, 2, 3], 1),
        ([np.inf, -np.inf, 2, 3], [np.inf, -np.inf, 2, 3], 0),
        ([np.inf, 1, 2, 3], [-np.inf, 1, 2, 3], 1),
        ([1e30, 1, 2, 3], [np.inf, 1, 2, 3], 1),
        ([0, 0, 0, 0], [0, 0, 0, 1e-30], 1),
    ],
)
def test_floats_are_near(found: list[float], expected: list[float], wrong: int) -> None:
    assert check(found, expected).wrong == wrong


@pytest.mark.parametrize("dtype", ["s32", "u8", "s64", "u64"])
def test_integers_are_equal(dtype: str) -> None:
    assert check([1, 2, 3, 4], [1, 2, 3, 4], dtype).wrong == 0
    row = check([1, 2, 3, 5], [1, 2, 3, 4], dtype)
    assert (row.wrong, row.bound) == (1, 0.0)
    assert check([True, False, True, True], [True, True, True, True], "pred").wrong == 1


def test_long_integers_are_compared_exactly() -> None:
    """As doubles these would be the same number."""
    assert check([2**60, 0, 0, 0], [2**60 + 1, 0, 0, 0], "s64").wrong == 1


def test_narrow_floats_have_a_wider_bound() -> None:
    assert check([1, 2, 3, 4.0], [1, 2, 3, 4.015625], "bf16").wrong == 0
    assert check([1, 2, 3, 4.0], [1, 2, 3, 4.5], "bf16").wrong == 1


def test_copies_that_differ_are_wrong() -> None:
    inputs = Inputs({}, {}, {})
    (row,) = check_outputs(
        plan(), [Output(0, "r", Source.STATED, np.zeros(4, np.float32), difference=0.25)], inputs, None
    )
    assert (row.source, row.wrong, row.max_error) == ("copies", 1, 0.25)
    (row,) = check_outputs(plan(), [Output(0, "r", Source.STATED, np.zeros(4, np.float32))], inputs, None)
    assert row.wrong == 0


# -- the undivided program --------------------------------------------------------------------------------------------------------

PROGRAM = """schema: dtir-program/1
name: small
mesh: {axes: [[tp, 2]]}
values:
- {id: x, shape: [4, 8], dims: [[], [tp]]}
- {id: w, shape: [8, 2], dims: [[tp], []]}
- {id: r, shape: [4, 2], dims: [[], []], partial: {tp: sum}}
- {id: y, shape: [4, 2], dims: [[], []]}
- {id: z, shape: [4, 2], dims: [[], []]}
tasks:
- {id: t1, kind: local, op: matmul, in: [x, w], out: [r]}
- {id: t2, kind: collective, coll: all_reduce, in: [r], out: [y], axes: [tp], reduction: sum}
- {id: t3, kind: local, op: relu, in: [y], out: [z]}
inputs: [x, w]
outputs: [z]
"""


def yaml_plan(tmp_path: Path, text: str) -> ExecPlan:
    path = tmp_path / "p.dtir.yaml"
    path.write_text(text, encoding="utf-8")
    program = load_path(path).program
    assert program is not None
    return plan_of(program)


def test_communication_moves_and_does_not_change(tmp_path: Path) -> None:
    found = yaml_plan(tmp_path, PROGRAM)
    inputs = generate_inputs(found, 0)
    undivided = run_undivided(found, inputs.whole, 0)
    assert undivided.reason == ""
    x, w = inputs.whole[0], inputs.whole[1]
    names = {value.id: value.name for value in found.program.values}
    by_name = {names[item]: array for item, array in undivided.values.items()}
    assert np.allclose(by_name["y"], x @ w, rtol=1e-6)
    assert np.array_equal(by_name["z"], np.maximum(by_name["y"], 0))
    depth = {names[item]: number for item, number in undivided.steps.items()}
    assert (depth["x"], depth["y"], depth["z"]) == (0, 1, 2)


def test_what_depends_on_an_unknown_input_is_not_known(tmp_path: Path) -> None:
    found = yaml_plan(tmp_path, PROGRAM)
    inputs = generate_inputs(found, 0)
    undivided = run_undivided(found, {0: inputs.whole[0]}, 0)
    assert found.program.outputs[0] not in undivided.values


@given(st.integers(1, 1000), st.integers(1, 10**6))
def test_the_tolerance_grows_with_work_and_size(steps: int, terms: int) -> None:
    value = per_rank_value("x", rank_mesh(2), (4,), "f32")
    small = tolerance(value, steps, terms, np.ones(4, np.float32))
    assert 0 < small <= tolerance(value, steps + 1, terms, np.ones(4, np.float32))
    assert tolerance(value, steps, terms, np.full(4, 2, np.float32)) == pytest.approx(2 * small)
    assert small < 0.1
    exact = per_rank_value("x", rank_mesh(2), (4,), "s32")
    assert tolerance(exact, steps, terms, np.ones(4, np.int32)) == 0


# -- findings ------------------------------------------------------------------------------------------------------------------------

ROW = CollectiveRow(
    id="node:1", name="ar", kind="all_reduce", region="", group_size=4, group_count=1, size_bytes=64, elements=16, dtype="f32",
    reduction="sum", root=None, executions=1, time_us=10.0, least_us=9.0, noise_us=0.0, algbw=1.0, busbw=1.5, wrong=None,
    planned_us=None, planned_bytes=384, measured_bytes=None, wait_us=None,
)  # fmt: skip


def codes(row: CollectiveRow) -> list[str]:
    return [item.code for item in findings([row], [])]


@pytest.mark.parametrize(
    ("measured", "found"), [(None, []), (384, []), (385, ["run.bytes_differ"]), (0, ["run.bytes_differ"])]
)
def test_bytes_are_compared_exactly(measured: int | None, found: list[str]) -> None:
    assert codes(replace(ROW, measured_bytes=measured)) == found


@pytest.mark.parametrize(
    ("planned", "noise", "slow"),
    [
        (None, 0.0, False),
        (10.0, 0.0, False),
        (8.4, 0.0, False),  # within 20 %
        (8.3, 0.0, True),
        (5.0, 1.0, True),
        (5.0, 2.0, False),  # within three times the noise
        (5.0, None, True),
        (100.0, 0.0, False),  # faster is no finding
    ],
)
def test_times_are_compared_beyond_noise(planned: float | None, noise: float | None, slow: bool) -> None:
    assert codes(replace(ROW, planned_us=planned, noise_us=noise)) == (["run.slower_than_planned"] if slow else [])


def test_a_finding_says_what_was_found_and_wanted() -> None:
    (found,) = findings([], [check([1, 2, 3, 5], [1, 2, 3, 4])])
    assert found.code == "run.values_differ"
    assert (
        "1 of 4 elements differ from the expected array of the input file, by up to 1 where 8e-05 is allowed"
        in found.message
    )
    assert found.hint


def test_steps_are_counted_by_kind() -> None:
    assert step_kinds(plan()) == {"local": 1}
