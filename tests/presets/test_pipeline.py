"""Pipeline programs: valid for every judge, run to the right values, orders as the schedules say."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dtir.analysis.schedules import most_inflight, warmup
from dtir.presets.pipeline import PipelineKind, Slot, pipeline_program, slot_order
from dtir.verify import verify

GPIPE, ONE, INTERLEAVED = PipelineKind.GPIPE, PipelineKind.ONE_F_ONE_B, PipelineKind.INTERLEAVED


@st.composite
def plans(draw: st.DrawFn) -> tuple[PipelineKind, int, int, int]:
    kind = draw(st.sampled_from(PipelineKind))
    stages = draw(st.integers(1, 6))
    if kind is INTERLEAVED:
        return kind, stages, stages * draw(st.integers(1, 3)), draw(st.integers(1, 3))
    return kind, stages, draw(st.integers(1, 9)), 1


@given(plans(), st.data())
def test_every_rank_runs_every_slot_once_and_forwards_first(
    plan: tuple[PipelineKind, int, int, int], data: st.DataObject
) -> None:
    kind, stages, microbatches, chunks = plan
    rank = data.draw(st.integers(0, stages - 1))
    order = slot_order(kind, stages=stages, microbatches=microbatches, rank=rank, chunks=chunks)
    assert sorted((slot.forward, slot.chunk, slot.microbatch) for slot in order) == sorted(
        (forward, chunk, number)
        for forward in (False, True)
        for chunk in range(chunks)
        for number in range(microbatches)
    )
    for chunk in range(chunks):
        for number in range(microbatches):
            assert order.index(Slot(True, number, chunk)) < order.index(Slot(False, number, chunk))


@given(plans(), st.data())
def test_warm_up_and_live_microbatches_are_those_of_the_formulas(
    plan: tuple[PipelineKind, int, int, int], data: st.DataObject
) -> None:
    kind, stages, microbatches, chunks = plan
    rank = data.draw(st.integers(0, stages - 1))
    order = slot_order(kind, stages=stages, microbatches=microbatches, rank=rank, chunks=chunks)
    live = most = 0
    for slot in order:
        live += 1 if slot.forward else -1
        most = max(most, live)
    if kind is GPIPE:
        assert most == microbatches
        return
    shape = {"stages": stages, "microbatches": microbatches, "stage": rank, "chunks": chunks}
    assert most == most_inflight(**shape)
    first_backward = next(place for place, slot in enumerate(order) if not slot.forward)
    assert first_backward == min(warmup(**shape) + 1, microbatches * chunks)


@pytest.mark.parametrize("kind", PipelineKind)
@pytest.mark.parametrize(("stages", "groups"), [(1, 2), (2, 1), (3, 2), (4, 2)])
def test_programs_are_right_for_every_static_rule(kind: PipelineKind, stages: int, groups: int) -> None:
    chunks = 2 if kind is INTERLEAVED else 1
    program = pipeline_program(kind, stages=stages, microbatches=stages * groups, chunks=chunks)
    assert [item.render() for item in verify(program)] == []
    slots = [task.pipeline for task in program.tasks if task.pipeline is not None]
    assert len(slots) == 2 * stages * chunks * stages * groups


def test_a_transfer_carries_what_the_neighbour_reads() -> None:
    program = pipeline_program(ONE, stages=3, microbatches=2, batch=2, width=4, dtype="bf16")
    sends = [task for task in program.tasks if task.name.startswith("send")]
    assert len(sends) == 2 * 2 * 2
    assert {task.body.spec.message_bytes for task in sends} == {2 * 4 * 2}  # type: ignore[union-attr]


@pytest.mark.parametrize(
    ("kind", "numbers", "said"),
    [
        (GPIPE, {"stages": 0, "microbatches": 1}, "stages=0"),
        (GPIPE, {"stages": 2, "microbatches": 0}, "microbatches=0"),
        (GPIPE, {"stages": 2, "microbatches": 2, "chunks": 2}, "chunks=2"),
        (INTERLEAVED, {"stages": 2, "microbatches": 3, "chunks": 2}, "multiple of stages=2"),
    ],
)
def test_numbers_that_make_no_schedule_are_refused(kind: PipelineKind, numbers: dict[str, int], said: str) -> None:
    with pytest.raises(ValueError, match=said):
        pipeline_program(kind, **numbers)


def test_a_type_of_unknown_width_is_refused() -> None:
    with pytest.raises(ValueError, match="its width"):
        pipeline_program(GPIPE, stages=2, microbatches=2, dtype="strange")
