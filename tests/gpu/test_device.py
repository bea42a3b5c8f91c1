"""What only a GPU can show: kernels side by side in threads, streams that run on their own, graphs, its clock, NCCL.

The contract of all back ends runs on a GPU as well (`tests/execute/test_contract.py`), and so does
`benchmarks/gpu_collectives.py`, whose record is the evidence.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pytest

from dtir.execute import ExecPlan, Options, Request, Slab, load_backend, run_program, semantics
from dtir.execute.backends.cupy_ import CupyBackend
from dtir.execute.backends.cupy_graph import capture
from dtir.execute.backends.cupy_lane import Lane
from dtir.execute.backends.cupy_session import DeviceSession
from dtir.execute.binding import Binding, Seat
from dtir.execute.data import generate_inputs, output_leaves
from dtir.execute.kernels import ELEMENTS, FOLDS, can_fold, fold
from dtir.execute.steps import Step
from dtir.execute.values import rows
from dtir.ir.reductions import ReductionKind
from dtir.schema.result import Ok
from tests.execute.test_cupy_device import ADD, collective, input_of
from tests.execute.test_cupy_kernels import agrees, numbers, wanted_of
from tests.helpers.kernels import element_dtype
from tests.helpers.running import hlo_program, plan_of, run_slabs
from tests.helpers.shared import ROOT

pytestmark = pytest.mark.gpu


@pytest.fixture(scope="module")
def backend() -> CupyBackend:
    return CupyBackend()


@pytest.mark.parametrize("kind", list(FOLDS))
@pytest.mark.parametrize("element", list(ELEMENTS))
def test_folds_bit_by_bit(backend: CupyBackend, element: str, kind: ReductionKind) -> None:
    if not can_fold(element, kind):
        pytest.skip("there is no such reduction")
    runtime = backend.runtime
    lane = Lane(runtime, 0)
    for members in (2, 3, 8):
        parts = numbers(element, (members, 100_003), seed=members)
        with lane.computing():
            held = runtime.to_device(parts)
            out = runtime.xp.zeros(parts.shape[1], element_dtype(element))
            step = int(held.strides[0])
            addresses = [runtime.address(held) + member * step for member in range(members)]
            runtime.launch(
                fold(addresses, [runtime.address(out)], element, kind, parts.shape[1], lane.geometry), lane.compute
            )
            assert agrees(runtime.to_host(out), wanted_of(parts, kind), kind)


def outputs(session: DeviceSession, plan: ExecPlan) -> list[np.ndarray]:
    return [np.asarray(row) for row in rows(session.read_slot(output_leaves(plan)[0]))]


def test_a_graph_gives_what_its_steps_give(backend: CupyBackend) -> None:
    plan = collective("all_reduce", ((0, 1, 2, 3),), turns=8)
    session = backend.prepare(plan, backend.default_binding(plan), Options())
    assert isinstance(session, DeviceSession)
    held = input_of(plan)
    session.load_slot(plan.main.inputs[0], held)
    captured = capture(session)
    for _ in range(3):
        captured.launch()
    session.sync()
    (wanted,) = run_slabs(plan, [held])
    assert all(np.array_equal(one, other) for one, other in zip(outputs(session, plan), rows(wanted), strict=True))
    session.close()


def test_times_are_those_of_the_device(backend: CupyBackend) -> None:
    seen: list[tuple[int, int]] = []

    def observe(step: Step, ranks: Sequence[int], start_ns: int, end_ns: int, sent: object) -> None:
        seen.append((start_ns, end_ns))

    plan = plan_of(hlo_program(ADD))
    session = backend.prepare(plan, backend.default_binding(plan), Options(), observe)
    session.load_slot(plan.main.inputs[0], input_of(plan))
    for step in plan.main.steps:
        session.execute(step)
    session.close()
    assert len(seen) == len(plan.main.steps)
    assert all(start <= end for start, end in seen)


EXAMPLES = sorted((ROOT / "tests" / "execute" / "files").glob("*.spmd.hlo"))


@pytest.mark.parametrize("path", EXAMPLES, ids=lambda path: path.name)
def test_whole_programs(path: Path) -> None:
    program = hlo_program(path.read_text())
    found = run_program(program, Request(backend="cupy", seed=5))
    wanted = run_program(program, Request(seed=5))
    assert isinstance(found, Ok)
    assert isinstance(wanted, Ok)
    for name, array in wanted.value.arrays().items():
        assert np.allclose(found.value.arrays()[name], array, rtol=1e-4, atol=1e-5)


def test_all_steps_of_the_examples_run_on_the_device(backend: CupyBackend) -> None:
    for path in EXAMPLES:
        plan = plan_of(hlo_program(path.read_text()))
        session = backend.prepare(plan, backend.default_binding(plan), Options())
        assert isinstance(session, DeviceSession)
        for slot, held in generate_inputs(plan, 1).held.items():
            session.load_slot(slot, held)
        for step in plan.main.steps:
            session.execute(step)
        session.sync()
        assert not session.on_host, path.name
        session.close()


@pytest.mark.parametrize("kind", ["all_reduce", "reduce_scatter", "all_gather", "all_to_all", "broadcast", "permute"])
def test_ranks_on_several_devices(backend: CupyBackend, kind: str) -> None:
    count = backend.runtime.count
    if count < 2:
        pytest.skip("there is one GPU")
    ranks = 2 * min(count, 4)
    plan = collective(kind, (tuple(range(ranks)),))
    binding = Binding("cupy", tuple(Seat(0, rank // 2) for rank in range(ranks)))
    session = backend.prepare(plan, binding, Options())
    held = input_of(plan)
    session.load_slot(plan.main.inputs[0], held)
    for step in plan.main.steps:
        session.execute(step)
    session.sync()
    found = rows(session.read_slot(output_leaves(plan)[0]))
    (wanted,) = run_slabs(plan, [held])
    assert all(np.array_equal(one, other) for one, other in zip(found, rows(wanted), strict=True))
    session.close()


def test_more_memory_than_there_is_is_refused() -> None:
    text = "HloModule m\nENTRY e { p = f32[1099511627776]{0} parameter(0)\n ROOT r = f32[1099511627776]{0} add(p, p) }"
    plan = plan_of(hlo_program(text))
    backend = load_backend("cupy")
    assert [item.code for item in backend.obstacles(plan, backend.default_binding(plan))] == ["run.memory"]


def test_the_reference_is_the_reference() -> None:
    """What the kernels are compared with adds in the order of the ranks."""
    parts = np.asarray([[1e8], [1.0], [-1e8]], np.float32)
    assert semantics.all_reduce(np, parts, ReductionKind.SUM).tolist() == [0.0]
    assert Slab((0,), parts).ranks == (0,)
