"""What findings say: numbers found and wanted, names of axes, the repair; a few of them, on purpose."""

from __future__ import annotations

from pathlib import Path

import pytest

from dtir.ir.collectives import AllToAll
from dtir.ir.ranks import all_ranks
from dtir.ir.tasks import Collective
from dtir.schema.diagnostics import Diagnostic
from dtir.verify import verify
from tests.helpers.authoring import codes, judged, read_cases, sketch
from tests.helpers.programs import mesh_of, program, task, value_id

FOLDER = Path(__file__).parent / "cases"


def findings(family: str, name: str) -> list[Diagnostic]:
    (case,) = [case for case in read_cases(FOLDER / f"{family}.txt") if case.name == name]
    return list(judged(case.text))


def only(family: str, name: str) -> Diagnostic:
    (item,) = findings(family, name)
    return item


def test_a_dropped_reduction_names_value_axes_and_repair() -> None:
    item = only("partial", "a weight gradient over two batch axes is declared replicated")
    assert item.message == "t leaves w pending sum over dp (2), cp (3), declared replicated"
    assert item.hint == "insert all_reduce(sum) over dp, cp after t, or declare w pending there"
    assert item.path == ("tasks", "0", "outputs")
    assert item.subject[-2:] == ("dp", "cp")
    assert [related.path for related in item.related] == [("values", "2")]


def test_a_mismatch_names_the_collective_that_converts() -> None:
    item = only("sharding", "a split value is declared replicated")
    assert item.message == "t makes y split on dim 1 along tp (3), declared replicated"
    assert item.hint == "insert all_gather over tp on dim 1 after t, or declare y split on dim 1"


def test_an_unknown_operator_is_said_once_with_its_number_of_tasks() -> None:
    text = "mesh [tp, 2]\nvalues\n  x [4]\n  a [4]\n  b [4]\ntasks\n  t: mine x -> a\n  u: mine x -> b\nin x\nout a, b"
    (item,) = judged(sketch(text))
    assert item.message.startswith("operator core.mine has no rule (2 tasks)")


def test_a_replicated_reduction_names_the_axis_that_makes_the_factor() -> None:
    replicated, factor = findings("collective", "a gradient norm over the replica axis")
    assert "n is replicated along rep (3), so that its reduction is 3 times the value" in replicated.message
    assert factor.message == "y is 3 times the specification = rep (3), brought in by r"
    assert factor.path == ("outputs", "0")


def test_one_factor_is_one_finding_with_the_other_output_beside_it() -> None:
    item = only("scale", "two outputs that owe one factor")
    assert item.message == "a is 1/3 times the specification = 1 / dp (3), brought in by r"
    assert item.hint == "reduce with sum instead of avg in r, or multiply by 3 once in r"
    assert [related.label for related in item.related] == ["factor comes from r", "also output b"]


def test_a_factor_is_named_by_the_axes_of_the_task_that_brings_it_in() -> None:
    item = only("scale", "an average over one of two axes of a size")
    assert "1 / cp (2)" in item.message


def test_a_missing_shard_is_named_by_its_coordinates() -> None:
    item = findings("ownership", "a shard that nobody holds")[0]
    assert item.message == "1 of the shards of x have no owner, the first at tp=1"
    assert item.path == ("values", "0", "owners")


def test_an_absent_reader_is_named_with_the_owners() -> None:
    item = only("ownership", "a stage reads what the stage before holds")
    assert item.message == "t runs on ranks 2, 3, which do not hold a: its owners are 0, 1"
    assert item.path == ("tasks", "0", "inputs")


def test_a_circle_says_who_waits_for_whom() -> None:
    item = only("transfers", "a ring of blocking sends")
    assert item.message == (
        "rank 0 waits in h0 for rank 1; rank 1 waits in h1 for rank 2; rank 2 waits in h2 for rank 0"
    )
    assert len([word for word in item.subject if word.startswith("node:")]) == 3


def test_a_saving_is_counted() -> None:
    item = only("resources", "a reduction of which each of four ranks keeps a block")
    assert item.hint == "replace both by reduce_scatter(sum) over tp on dim 0, saving 24 bytes a rank"


def test_a_lost_microbatch_is_named() -> None:
    item = only("schedules", "a microbatch that never comes back")
    assert item.message == "F(stage 0, microbatch 1) has no backward"
    assert item.path == ("tasks", "1", "pipeline")


# -- strictness ----------------------------------------------------------------------------------------------------------

ASYNC = """
mesh [tp, 2]
issue: {0: [a, b, w], 1: [b, a, w]}
values
  x [4] partial: {tp: sum}
  X [4]
  u [4] partial: {tp: sum}
  U [4]
tasks
  a: ar x -> X, axes: [tp], reduction: sum
  b: ar u -> U, axes: [tp], reduction: sum
  w: control -> , completes: [a, b]
in x, u
out X, U
"""

SENDS = """
mesh [pp, 2]
issue: {0: [u, d], 1: [d, u]}
values
  a [4] at: {pp: 0}
  b [4] at: {pp: 1}
  c [4] at: {pp: 1}
  e [4] at: {pp: 0}
tasks
  u: p2p a -> b, src: 0, dst: 1, channel: fwd
  d: p2p c -> e, src: 1, dst: 0, channel: bwd
in a, c
"""


def test_asynchronous_collectives_in_two_orders_are_legal_for_mpi_alone() -> None:
    assert codes(sketch(ASYNC), strictness="mpi") == ()
    assert codes(sketch(ASYNC), strictness="nccl") == ("order.mismatch",)


def test_a_send_on_a_gpu_waits_for_its_receiver() -> None:
    assert codes(sketch(SENDS), strictness="mpi") == ("deadlock.buffer_dependent",)
    assert codes(sketch(SENDS), strictness="gpu-p2p") == ("deadlock.cycle",)


# -- arguments and modes ---------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"judges": ("guess",)}, "judges='guess' (str) is none of structure, static, value"),
        ({"mode": "maybe"}, "mode='maybe' (str) is none of check, infer"),
        ({"strictness": "strict"}, "strictness='strict' (str) is none of mpi, nccl, gpu-p2p"),
    ],
)
def test_an_unknown_argument_is_named_with_the_known_ones(options: dict[str, object], message: str) -> None:
    with pytest.raises(ValueError) as error:  # noqa: PT011 - the text is compared whole
        judged(sketch(SENDS), **options)  # type: ignore[arg-type]
    assert str(error.value) == message


def test_a_value_that_a_task_takes_twice_is_at_fault_once() -> None:
    mesh = mesh_of(tp=1)
    body = Collective(AllToAll(all_ranks(1), 0, ("tp",)))
    twice = task("t", mesh, body, ("x",), ("h", "y"), operands=(0, 0))
    made = program(mesh, tasks=(twice,), outputs=(value_id("h"), value_id("y")))
    found = [item for item in verify(made) if item.code == "redundant.collective"]
    assert [item.message for item in found] == ["t (all_to_all): its groups have one member"]
