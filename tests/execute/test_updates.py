"""Collectives that write into an operand, by offsets that the program computes: against plain loops over ranks."""

from __future__ import annotations

import gzip
import json

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dtir.execute import ExecutionError, Slab, load_backend
from dtir.execute.binding import spread
from dtir.execute.kernels.host import host_compiler
from dtir.execute.values import rows
from dtir.importers.hlo.importer import import_hlo
from dtir.schema.diagnostics import DiagnosticError
from tests.helpers.devices import played_runtime, run_played
from tests.helpers.running import hlo_program, plan_of, run_hlo, run_slabs
from tests.helpers.shared import shared_params

RAGGED = """HloModule m, replica_count=%d
ENTRY e {
 data = f32[%d,2] parameter(0)
 before = f32[%d,2] parameter(1)
 starts = s32[%d] parameter(2)
 sizes = s32[%d] parameter(3)
 targets = s32[%d] parameter(4)
 expected = s32[%d] parameter(5)
 ROOT r = f32[%d,2] ragged-all-to-all(data, before, starts, sizes, targets, expected), replica_groups={%s} }"""


def ragged_text(ranks: int, given: int, held: int, groups: list[list[int]]) -> str:
    count = len(groups[0])
    listed = ",".join("{" + ",".join(map(str, group)) + "}" for group in groups)
    return RAGGED % (ranks, given, held, count, count, count, count, held, listed)


@settings(max_examples=40)
@given(st.data(), st.sampled_from([[[0, 1]], [[1, 0]], [[0, 1, 2]], [[0, 2], [3, 1]], [[0], [1]]]))
def test_ragged_all_to_all(data: st.DataObject, groups: list[list[int]]) -> None:
    ranks, members = sum(map(len, groups)), len(groups[0])
    sizes = np.asarray([[data.draw(st.integers(0, 3)) for _ in range(members)] for _ in range(ranks)], np.int32)
    # Rows are taken anywhere; they arrive one behind the other, in the order of the senders.
    given = 6
    starts = np.asarray([[data.draw(st.integers(0, given - int(size))) for size in row] for row in sizes], np.int32)
    targets, expected = np.zeros_like(sizes), np.zeros_like(sizes)
    for group in groups:
        for j, target in enumerate(group):
            place = 1
            for i, source in enumerate(group):
                targets[source, j], expected[target, i] = place, sizes[source, j]
                place += int(sizes[source, j])
    held = 1 + 3 * members
    rows_of = np.arange(ranks * given * 2, dtype=np.float32).reshape(ranks, given, 2)
    before = -np.ones((ranks, held, 2), np.float32)
    wanted = before.copy()
    for group in groups:
        for source in group:
            for j, target in enumerate(group):
                size, start, stop = sizes[source, j], starts[source, j], targets[source, j]
                wanted[target, stop : stop + size] = rows_of[source, start : start + size]
    plan = plan_of(hlo_program(ragged_text(ranks, given, held, groups)))
    everybody = tuple(range(ranks))
    inputs = [Slab(everybody, array) for array in (rows_of, before, starts, sizes, targets, expected)]
    (found,) = run_slabs(plan, inputs)
    assert np.array_equal(np.stack(list(rows(found))), wanted)
    if host_compiler() is not None:
        (found,) = run_played(plan, inputs, played_runtime(2))
        assert np.array_equal(np.stack(list(rows(found))), wanted)


@pytest.mark.parametrize(
    ("sizes", "targets", "expected", "message"),
    [
        ([[0, 7], [0, 0]], [[0, 0], [0, 0]], [[0, 0], [7, 0]], "rows 0 to 7 of 4 on rank 0"),
        ([[0, 2], [0, 0]], [[0, 4], [0, 0]], [[0, 0], [2, 0]], "go to rows 4 to 6 of 5 on rank 1"),
        ([[0, 2], [0, 0]], [[0, 0], [0, 0]], [[0, 0], [1, 0]], "rank 0 sends 2 rows to rank 1, which expects 1"),
    ],
)
def test_what_does_not_fit_is_an_error(
    sizes: list[list[int]], targets: list[list[int]], expected: list[list[int]], message: str
) -> None:
    text = ragged_text(2, 4, 5, [[0, 1]])
    zeros = [[0, 0], [0, 0]]
    arrays = [np.zeros((2, 4, 2)), np.zeros((2, 5, 2)), zeros, sizes, targets, expected]
    with pytest.raises(ExecutionError, match=message):
        run_hlo(text, *arrays)


# -- permutes of slices ---------------------------------------------------------------------------------------------------

SLICE = """HloModule m, replica_count=4
ENTRY e {
 data = f32[6,2] parameter(0)
 before = f32[5,5] parameter(1)
 zero = s32[] constant(0)
 one = s32[] constant(1)
 two = s32[] constant(2)
 from = (s32[], s32[]) tuple(two, zero)
 to = (s32[], s32[]) tuple(one, %s)
 ROOT r = f32[5,5] collective-permute(data, before, from, to), source_target_pairs={{0,1},{1,2},{2,3}}, slice_sizes={{3,2}} }"""


def test_a_slice_goes_into_the_operand_of_the_destination() -> None:
    plan = plan_of(hlo_program(SLICE % "two"))
    ranks = (0, 1, 2, 3)
    data = np.arange(48, dtype=np.float32).reshape(4, 6, 2)
    before = -np.ones((4, 5, 5), np.float32)
    wanted = before.copy()
    for source in range(3):
        wanted[source + 1, 1:4, 2:4] = data[source, 2:5, 0:2]
    inputs = [Slab(ranks, data), Slab(ranks, before)]
    (found,) = run_slabs(plan, inputs)
    assert np.array_equal(np.stack(list(rows(found))), wanted)
    assert sum(plan.main.steps[-1].planned.sent_bytes.values()) > 0
    if host_compiler() is not None:
        for devices in (1, 2):
            (found,) = run_played(plan, inputs, played_runtime(devices))
            assert np.array_equal(np.stack(list(rows(found))), wanted)


def test_offsets_outside_and_offsets_that_differ_are_errors() -> None:
    outside = SLICE % "four"
    outside = outside.replace(" from =", " four = s32[] constant(4)\n from =")
    arrays = [np.zeros((4, 6, 2)), np.zeros((4, 5, 5))]
    with pytest.raises(ExecutionError, match=r"a slice of \[3, 2\] is written at \[1, 4\] of \[5, 5\]"):
        run_hlo(outside, *arrays)
    differ = (SLICE % "mine").replace(" from =", " q = u32[] replica-id()\n mine = s32[] convert(q)\n from =")
    with pytest.raises(ExecutionError, match="rank 1 expects it at"):
        run_hlo(differ, *arrays)


def test_several_slices_of_an_array_are_refused() -> None:
    text = (SLICE % "two").replace("slice_sizes={{3,2}}", "slice_sizes={{3,2},{1,1}}")
    with pytest.raises(DiagnosticError, match="nothing says which transfer takes which slice"):
        plan_of(hlo_program(text))


def test_several_processes_are_refused_before_the_start() -> None:
    plan = plan_of(hlo_program(SLICE % "two"))
    backend = load_backend("mpi")
    assert not backend.obstacles(plan, spread("mpi", 4, 1))
    (finding,) = backend.obstacles(plan, spread("mpi", 4, 2))
    assert finding.code == "run.unsupported"
    assert "collective-permute" in finding.message


def modules_with(opcode: str) -> list[object]:
    """Modules of XLA's own tests that use an operation; one case that skips where the files are absent."""
    (only,) = shared_params("inputs/hlo_public/xla_test_modules/collective_semantics.jsonl.gz")
    path = only.values[0]  # type: ignore[attr-defined]
    if path is None:
        return [only]
    modules = [json.loads(line) for line in gzip.decompress(path.read_bytes()).splitlines()]
    return [
        pytest.param(module["text"], id=str(number))
        for number, module in enumerate(modules)
        if f" {opcode}(" in module["text"]
    ]


@pytest.mark.parametrize("text", modules_with("ragged-all-to-all"))
def test_modules_of_xlas_own_tests_have_a_plan(text: str) -> None:
    program = import_hlo(text).program
    if program is None:
        pytest.skip("the module is wrong on purpose: no program comes of it")
    plan = plan_of(program)
    assert any(step.exchange is not None and step.exchange.ragged for scope in plan.scopes for step in scope.steps)
