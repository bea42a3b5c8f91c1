"""Work of whole tasks: operators on shards, fusions, computations that are applied, and work that is not known."""

from __future__ import annotations

import pytest

from dtir.cost.presets import load_preset
from dtir.cost.schedule import LocalPlan, Options, make_schedule
from dtir.importers.hlo.importer import import_hlo
from dtir.ir import DistributedTaskIR, ProgramBuilder
from dtir.ir.expr import BindingAxis, Symbol
from dtir.ir.sharding import ShardingSpec, ShardSizes

PROFILE = load_preset("openmpi-shm-2core")


def works(program: DistributedTaskIR, **bindings: int) -> dict[str, LocalPlan]:
    """What the local tasks of a program do, by name."""
    made = make_schedule(program, PROFILE, Options(bindings=bindings)).or_raise()
    return {task.name or "": made.locals[number] for number, _, task in made.numbered() if number in made.locals}


def hlo(text: str) -> DistributedTaskIR:
    found = import_hlo(text)
    assert found.program is not None, [item.render() for item in found.diagnostics]
    return found.program


def test_an_operator_counts_what_one_rank_holds() -> None:
    """x [8, 16] split in rows over 4 ranks, w [16, 4] on all: each rank multiplies [2, 16] by [16, 4]."""
    build = ProgramBuilder("matmul", axes={"dp": 4})
    x = build.input("x", (8, 16), "f32", sharding=ShardingSpec((("dp",), ()), ()))
    w = build.input("w", (16, 4), "f32", sharding=ShardingSpec(((), ()), ("dp",)))
    y = build.value("y", (8, 4), "f32", sharding=ShardingSpec((("dp",), ()), ()))
    build.task("core.matmul", (x, w), (y,), name="product")
    build.output(y)
    plan = works(build.build())["product"]
    assert plan.work.matrix_flops == 2 * 2 * 4 * 16
    assert plan.work.vector_flops == 0
    assert plan.work.moved_bytes == 4 * (2 * 16 + 16 * 4 + 2 * 4)
    assert plan.by_class is None, "all ranks hold as much"


FUSED = """HloModule m, num_partitions=2
f { p = f32[100] parameter(0)
 i = s32[] parameter(1)
 s = f32[10] dynamic-slice(p, i), dynamic_slice_sizes={10}
 t = f32[10] add(s, s)
 ROOT m = f32[10] multiply(t, s) }
ENTRY e { a = f32[100] parameter(0)
 i = s32[] parameter(1)
 ROOT r = f32[10] fusion(a, i), kind=kLoop, calls=f }"""


def test_a_fusion_moves_its_operands_and_results_only() -> None:
    """10 additions and 10 multiplications; 10 of the 100 elements are read, the index, and 10 are written."""
    work = works(hlo(FUSED))["r"].work
    assert (work.matrix_flops, work.vector_flops) == (0, 20)
    assert work.moved_bytes == 40 + 4 + 40
    assert work.source == "hlo.fusion"


UNKNOWN = """HloModule m, num_partitions=2
ENTRY e { a = f32[4] parameter(0)
 b = f32[4] custom-call(a), custom_call_target="my_kernel"
 ROOT c = f32[4] negate(b) }"""


def test_what_is_not_known_has_no_time_and_a_reason() -> None:
    found = works(hlo(UNKNOWN))
    assert found["b"].timed.seconds is None
    assert "my_kernel" in found["b"].timed.reason
    assert found["c"].timed.seconds is not None


def test_times_that_are_given_stand_for_the_model() -> None:
    made = make_schedule(hlo(UNKNOWN), PROFILE, Options(given_s={"my_kernel": 0.5})).or_raise()
    (plan,) = (made.locals[number] for number, _, task in made.numbered() if task.name == "b")
    assert (plan.timed.seconds, plan.work.source) == (0.5, "given")


def test_symbols_are_bound_or_said_to_be_missing() -> None:
    rows = Symbol("B", BindingAxis.WORKLOAD)
    build = ProgramBuilder("symbolic", axes={"dp": 2})
    x, y = build.input("x", (rows, 4), "f32"), build.value("y", (rows, 4), "f32")
    build.task("core.relu", (x,), (y,), name="r")
    program = build.build()
    assert "symbolic" in works(program)["r"].work.unknown
    assert works(program, B=10)["r"].work.moved_bytes == 2 * 160


@pytest.mark.parametrize("sizes", [(5, 3)])
def test_ranks_with_more_take_longer(sizes: tuple[int, int]) -> None:
    layout = ShardingSpec((("dp",), ()), (), sizes=(ShardSizes(0, sizes),))
    build = ProgramBuilder("uneven", axes={"dp": 2})
    x, y = (
        make("x" if number == 0 else "y", (8, 1_000_000), "f32", sharding=layout)
        for number, make in enumerate((build.input, build.value))
    )
    build.task("core.relu", (x,), (y,), name="r")
    plan = works(build.build())["r"]
    assert plan.by_class is not None
    start = PROFILE.rates.start_s
    first, second = sorted(item - start for item in plan.by_class)
    assert second / first == pytest.approx(5 / 3)
