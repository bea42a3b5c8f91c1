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
from dtir.execute.checks import check_outputs
from dtir.execute.compare import CollectiveRow, step_kinds
from dtir.execute.data import Inputs, generate_inputs
from dtir.execute.deviations import elsewhere, findings, is_slower
from dtir.execute.dtypes import numpy_dtype
from dtir.execute.forecast import Forecast, StepForecast
from dtir.execute.oracle import run_undivided, tolerance
from dtir.execute.quantiles import NOTHING, Spread, error_percent
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
    reduction="sum", root=None, executions=1, time=Spread(5, 10.0, 12.0, 9.0, 0.0), in_turn=1, algbw=1.0, busbw=1.5, wrong=None,
    planned=None, planned_bytes=384, measured_bytes=None, wait_us=None,
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
        (5.0, 3.3, True),  # an IQR of 33 %: up to twice the plan is noise
        (5.0, 3.4, False),
        (5.0, None, False),  # one execution: nobody knows how much they vary
        (100.0, 0.0, False),  # faster is no finding
        (0.0, 0.0, False),
    ],
)
def test_times_are_compared_beyond_noise(planned: float | None, noise: float | None, slow: bool) -> None:
    row = replace(ROW, planned=StepForecast(planned, "by hand"), time=replace(ROW.time, iqr_us=noise))
    assert codes(row) == (["run.slower_than_planned"] if slow else [])
    assert is_slower(row.time, planned) is slow


def test_a_slow_collective_is_named_with_both_times_and_the_model() -> None:
    (found,) = findings([replace(ROW, planned=StepForecast(5.0, "measured curve of all_reduce"))], [])
    assert found.message == (
        "ar: 10.0 us measured, 5.0 us planned (measured curve of all_reduce); noise 0 % (IQR of 5 executions)"
    )
    assert found.subject == ("node:1",)


@given(st.lists(st.floats(0.01, 1e6), min_size=1, max_size=50))
def test_a_spread_is_within_its_times(times: list[float]) -> None:
    found = Spread.of(times)
    assert found.samples == len(times)
    assert found.min_us == min(times)
    assert found.p50_us is not None
    assert found.p95_us is not None
    slack = 1e-9 * max(times)
    assert min(times) - slack <= found.p50_us <= found.p95_us + slack <= max(times) + 2 * slack
    assert (found.iqr_us is None) == (len(times) == 1)
    assert found.iqr_us is None or 0 <= found.iqr_us <= max(times) - min(times) + slack
    assert Spread.of([]) == NOTHING


def test_errors_are_relative_to_the_plan() -> None:
    assert error_percent(15.0, 10.0) == 50.0
    assert error_percent(5.0, 10.0) == -50.0
    assert [error_percent(None, 1.0), error_percent(1.0, None), error_percent(1.0, 0.0)] == [None, None, None]


@pytest.mark.parametrize(
    ("library", "said"), [("numpy 2", None), ("numpy 1", "measured with numpy 1"), (None, "no meas")]
)
def test_planned_times_of_another_machine_are_said_to_be(library: str | None, said: str | None) -> None:
    found = elsewhere(Forecast({"id": "p", "library": library}, {}, 1.0), {"name": "numpy", "library": "numpy 2"})
    assert [item.code for item in found] == ([] if said is None else ["run.profile_elsewhere"])
    assert all(said is not None and said in item.message for item in found)


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
