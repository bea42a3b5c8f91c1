"""Real programs through the cupy back end's own code, on devices that are played on the host.

Their arrays refuse what CuPy's refuse, so that a step that would not run on a GPU does not run here either; and what they
give is what the numpy back end gives.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from dtir.execute import Archive, ExecPlan, Request, Slab, make_plan, run_program
from dtir.execute.data import generate_inputs, output_leaves, read_inputs
from dtir.execute.values import Held, rows
from tests.execute.test_real_files import archive_of, known_modules, module_text, stored, with_arrays
from tests.helpers.devices import played_backend, played_runtime, played_session
from tests.helpers.running import hlo_program, plan_of, run_slabs
from tests.helpers.shared import ROOT

SPMD = with_arrays("inputs/hlo_jax/*/*.spmd.hlo")


def run(plan: ExecPlan, held: Mapping[int, Held], devices: int) -> tuple[list[Held], Mapping[str, str]]:
    runtime = played_runtime(devices)
    plan = make_plan(plan.program, algorithm="ordered").or_raise()
    session = played_session(plan, runtime)
    for slot, part in held.items():
        session.load_slot(slot, part)
    session.start()
    for step in plan.main.steps:
        session.execute(step)
    session.sync()
    found = [session.read_slot(slot) for slot in output_leaves(plan)]
    on_host: Mapping[str, str] = session.on_host  # type: ignore[attr-defined]
    session.close()
    return found, on_host


def require_same(found: Sequence[Held], wanted: Sequence[Held]) -> None:
    """Bit for bit, but for what the order of a sum inside one array changes."""
    for one, other in zip(found, wanted, strict=True):
        for mine, theirs in zip(rows(one), rows(other), strict=True):
            assert isinstance(mine, (np.ndarray, np.generic))
            assert mine.dtype == theirs.dtype
            assert mine.shape == theirs.shape
            if mine.tobytes() != np.asarray(theirs).tobytes():
                assert np.allclose(
                    mine.astype(np.complex128), theirs.astype(np.complex128), rtol=2e-5, atol=1e-6, equal_nan=True
                )


@pytest.mark.parametrize("path", SPMD)
def test_a_partitioned_module(path: Path) -> None:
    plan = plan_of(hlo_program(path.read_text()))
    held = read_inputs(plan, Archive.open(archive_of(path))).or_raise().held
    found, on_host = run(plan, held, 1)
    assert not on_host
    require_same(found, run_slabs(plan, [held[slot] for slot in plan.main.inputs]))


@pytest.mark.parametrize("path", SPMD[::7])
def test_a_partitioned_module_on_three_devices(path: Path) -> None:
    plan = plan_of(hlo_program(path.read_text()))
    held = read_inputs(plan, Archive.open(archive_of(path))).or_raise().held
    found, _ = run(plan, held, 3)
    require_same(found, run_slabs(plan, [held[slot] for slot in plan.main.inputs]))


@pytest.mark.parametrize("module", known_modules())
def test_a_module_of_xlas_own_tests(module: dict[str, Any]) -> None:
    if module["test"] == "CollectiveOpsCseTest.NoCseGlobalDevice" or "constant({...})" in module["text"]:
        pytest.skip("the numpy back end does not run it either: test_real_files says why")
    plan = plan_of(hlo_program(module_text(module)))
    ranks = tuple(range(plan.ranks))
    inputs: list[Held] = [
        Slab(ranks, np.stack([stored(one, plan.main.slots[slot].value.type.dtype) for one in per_rank]))
        for slot, per_rank in zip(plan.main.inputs, module["inputs"], strict=True)
    ]
    held = dict(zip(plan.main.inputs, inputs, strict=True))
    found, on_host = run(plan, held, 1)
    assert not on_host
    require_same(found, run_slabs(plan, inputs))


EXAMPLES = sorted((ROOT / "tests" / "execute" / "files").glob("*.spmd.hlo"))


@pytest.mark.parametrize("devices", [1, 2])
@pytest.mark.parametrize("path", EXAMPLES, ids=lambda path: path.name)
def test_a_module_of_this_repository(path: Path, devices: int) -> None:
    plan = plan_of(hlo_program(path.read_text()))
    held = generate_inputs(plan, 3).held
    found, on_host = run(plan, held, devices)
    assert not on_host
    require_same(found, run_slabs(plan, [held[slot] for slot in plan.main.inputs]))


RANDOM = """HloModule m, num_partitions=2
ENTRY e { lo = f32[] constant(0)
 hi = f32[] constant(1)
 r = f32[8]{0} rng(lo, hi), distribution=rng_uniform
 p = f32[8]{0} parameter(0)
 ROOT s = f32[8]{0} add(r, p) }"""


def test_a_step_that_a_device_cannot_do_runs_on_the_host_and_is_named() -> None:
    plan = plan_of(hlo_program(RANDOM))
    held = Slab((0, 1), np.ones((2, 8), np.float32))
    found, on_host = run(plan, {plan.main.inputs[0]: held}, 1)
    assert list(on_host) == ["r"]
    require_same(found, run_slabs(plan, [held]))


def test_the_report_names_what_ran_on_the_host(monkeypatch: pytest.MonkeyPatch) -> None:
    runtime = played_runtime()
    monkeypatch.setattr("dtir.execute.run.load_backend", lambda name: played_backend(runtime))
    report = run_program(hlo_program(RANDOM), Request(backend="cupy")).or_raise()
    (remark,) = [item for item in report.findings if item.code == "run.on_host"]
    assert "1 steps ran on the host: r;" in remark.message
    assert report.findings.ok


LOOP = """HloModule m, num_partitions=4
add { x = f32[] parameter(0)
 y = f32[] parameter(1)
 ROOT r = f32[] add(x, y) }
body { p = (s32[], f32[3]) parameter(0)
 i = s32[] get-tuple-element(p), index=0
 x = f32[3] get-tuple-element(p), index=1
 one = s32[] constant(1)
 j = s32[] add(i, one)
 y = f32[3] all-reduce(x), replica_groups={{0,1},{2,3}}, channel_id=1, use_global_device_ids=true, to_apply=add
 ROOT t = (s32[], f32[3]) tuple(j, y) }
cond { p = (s32[], f32[3]) parameter(0)
 i = s32[] get-tuple-element(p), index=0
 q = u32[] partition-id()
 s = s32[] convert(q)
 two = s32[] constant(2)
 n = s32[] divide(s, two)
 m = s32[] add(n, two)
 ROOT c = pred[] compare(i, m), direction=LT }
ENTRY e { a = f32[3] parameter(0)
 z = s32[] constant(0)
 t = (s32[], f32[3]) tuple(z, a)
 w = (s32[], f32[3]) while(t), condition=cond, body=body
 ROOT r = f32[3] get-tuple-element(w), index=1 }"""


@pytest.mark.parametrize("devices", [1, 2])
def test_groups_may_leave_a_loop_at_different_times(devices: int) -> None:
    plan = plan_of(hlo_program(LOOP))
    held = Slab(tuple(range(4)), np.arange(12, dtype=np.float32).reshape(4, 3))
    found, _ = run(plan, {plan.main.inputs[0]: held}, devices)
    require_same(found, run_slabs(plan, [held]))
