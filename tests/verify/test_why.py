"""Why a communication is there: on programs of a real compiler whose answers are known, and on small ones."""

from __future__ import annotations

from pathlib import Path

import pytest

from dtir.importers import load_path
from dtir.importers.yaml import read_programs
from dtir.ir import DistributedTaskIR
from dtir.ir.tasks import Collective, PointToPoint, Reshard
from dtir.verify import Context, mode_of
from dtir.verify.why import Asked, Why, why
from tests.helpers.shared import ROOT

PROGRAMS = ROOT / "assets" / "programs"


def reasons(program: DistributedTaskIR) -> dict[str, Why]:
    """Reasons by the name of the task; the first of several with one name."""
    context = Context(program, mode_of(program), "nccl")
    found: dict[str, Why] = {}
    for number, (_, scope) in enumerate(program.scopes()):
        for index, task in enumerate(scope.tasks):
            reason = why(context, number, index)
            assert (reason is not None) == isinstance(task.body, (Collective, PointToPoint, Reshard))
            if reason is not None:
                found.setdefault(task.name, reason)
    return found


def of_file(path: Path) -> dict[str, Why]:
    program = load_path(path).program
    assert program is not None
    return reasons(program)


def of_text(text: str) -> dict[str, Why]:
    (read,) = read_programs(text)
    assert read.program is not None
    return reasons(read.program)


def test_the_partitioner_sums_after_a_contraction_of_a_split_dim() -> None:
    found = of_file(PROGRAMS / "transformer4l_dp2tp4_train.spmd.hlo.gz")
    reason = found["all-reduce.1"]
    assert reason.sentence == (
        "dot.3 (dot) contracts a dim that is split over axis1 (4): every rank has a share of dot.3, and add.353 needs the sum."
    )
    assert reason.asked is Asked.IMPLICIT
    assert "source name of its operand dot.3 (dot_general)" in reason.because
    assert [(item.axis, item.before, item.after) for item in reason.moved] == [
        ("axis1", "share of a sum", "replicated")
    ]
    assert (reason.message_bytes, reason.sent_bytes) == (1024, 1536)
    assert reason.source == "jit(step)/jvp(bhsk,hkd->bsd)/dot_general (programs.py:634)"
    assert all(item.asked is Asked.IMPLICIT for item in found.values())


def test_a_lookup_in_a_split_table_is_named() -> None:
    found = of_file(PROGRAMS / "transformer4l_dp2tp4_train.spmd.hlo.gz")["all-reduce"]
    assert found.sentence.startswith("select (select) keeps on each rank along axis1 (4) what that rank has of it")


def test_what_a_person_wrote_is_explicit() -> None:
    found = of_file(PROGRAMS / "fsdp8_shardmap_step.spmd.hlo.gz")
    assert {item.asked for item in found.values()} == {Asked.EXPLICIT}
    gather = found["all_gather.12"]
    assert gather.because == "the source says all_gather"
    assert gather.sentence == "param.1 is split on dim 0 over devices (8), and dot_general.16 needs it whole."
    halo = of_file(PROGRAMS / "halo_partial_2d.spmd.hlo.gz")["ppermute.8"]
    assert halo.sentence == (
        "every rank hands its block of slice.16 on (+4 in rank order), and concatenate.4 needs that of its neighbour."
    )


def test_a_reduction_of_which_every_reader_keeps_a_block_is_a_reduce_scatter() -> None:
    found = of_file(PROGRAMS / "transformer8l_dp4fsdp4tp4_train_n64.spmd.hlo.gz")["all-reduce.19"]
    assert found.alternative is not None
    assert found.alternative.rule == "reduce_scatter"
    assert (found.alternative.sent_bytes, found.alternative.instead_bytes) == (6144, 12288)
    assert found.alternative.saved_bytes == 6144


def test_a_sum_that_is_made_axis_by_axis_begins_at_its_contraction() -> None:
    found = of_file(PROGRAMS / "transformer8l_dp4fsdp4tp4_train_n64.spmd.hlo.gz")["all-reduce.20"]
    assert found.sentence.startswith("dot.24 (dot) contracts a dim that is split over axis0 (4)")
    assert found.producers[0].name == "dynamic-slice.107"


@pytest.mark.parametrize(
    ("name", "asked"),
    [("attn_dp2tp4_fwd.spmd.hlo", Asked.IMPLICIT), ("all_to_all_zoo.spmd.hlo", Asked.EXPLICIT)],
)
def test_dumps_say_who_asked(shared_data: Path, name: str, asked: Asked) -> None:
    found = of_file(shared_data / "inputs" / "hlo_jax" / "cpu8" / name)
    assert found
    assert {item.asked for item in found.values()} == {asked}
    assert all(item.source for item in found.values())


def test_a_checked_program_names_states_and_both_sides(shared_data: Path) -> None:
    text = (shared_data / "bug_corpus.yaml").read_text(encoding="utf-8")
    program = next(read.program for read in read_programs(text, fixed=True) if read.name.startswith("C001"))
    assert program is not None
    (reason,) = reasons(program).values()
    assert [(item.axis, item.before, item.after) for item in reason.moved] == [("tp", "pending sum", "replicated")]
    assert reason.sentence.startswith("t1 (sum) reduces over a dim that is split over tp (2)")
    assert [end.name for end in reason.producers] == ["t1"]


NARROW = """
schema: dtir-program/1
name: narrow
mesh: {axes: [[tp, 4]]}
values:
- {id: x, shape: [8, 4], dtype: f32, dims: [[tp], []]}
- {id: w, shape: [8, 4], dtype: f32, dims: [[], []]}
- {id: h, shape: [8, 4], dtype: bf16, dims: [[], []]}
tasks:
- {id: ag, kind: collective, coll: all_gather, in: [x], out: [w], axes: [tp], dim: 0}
- {id: c, kind: local, op: cast, in: [w], out: [h]}
inputs: [x]
outputs: [h]
"""


def test_what_is_narrowed_after_a_gather_is_narrowed_before_it() -> None:
    found = of_text(NARROW)["ag"].alternative
    assert found is not None
    assert found.text == "convert to 16 bits before ag, as c does after it"
    assert (found.sent_bytes, found.instead_bytes) == (48, 96)


def test_reductions_that_are_only_added_are_one(shared_data: Path) -> None:
    text = (shared_data / "bug_corpus.yaml").read_text(encoding="utf-8")
    program = next(read.program for read in read_programs(text) if read.name.startswith("C086"))
    assert program is not None
    found = reasons(program)["c0"].alternative
    assert found is not None
    assert found.rule == "redundant.hoistable"
    assert found.saved_bytes == (found.instead_bytes or 0) / 2


def test_every_communication_of_the_bundled_programs_has_a_reason() -> None:
    for path in sorted(PROGRAMS.glob("*.hlo.gz")):
        for reason in of_file(path).values():
            assert reason.sentence.endswith(".")
            assert reason.because
            assert reason.consumers or "nothing reads" in reason.sentence or "names no values" in reason.sentence
