"""Parts of a program before partitioning that are written per rank: how values are cut on the way in and joined on the way out."""

from __future__ import annotations

import numpy as np
import pytest

from dtir.execute.manual import parse_shardings
from dtir.execute.placement import PlacementError
from dtir.execute.ready import local_problems
from tests.helpers.running import hlo_program, plan_of, run_hlo

MODULE = """HloModule m, num_partitions=4, frontend_attributes={xla.sdy.meshes={mesh = #sdy.mesh<["a"=2, "b"=2]>}}
add { x = f32[] parameter(0)
 y = f32[] parameter(1)
 ROOT z = f32[] add(x, y) }
body { p = f32[%(part)s] parameter(0)
 ROOT r = f32[%(part)s] %(op)s }
ENTRY e { v = f32[%(whole)s] parameter(0)
 l = f32[%(part)s] custom-call(v), custom_call_target="xla.sdy.GlobalToLocalShape", custom_call_has_side_effect=true, frontend_attributes={xla.sdy.in_shardings="#sdy.sharding_per_value<[<@mesh, %(dims)s>]>",xla.sdy.manual_axes="#sdy<manual_axes{%(manual)s}>"}
 c = f32[%(part)s] call(l), to_apply=body
 ROOT g = f32[%(whole)s] custom-call(c), custom_call_target="xla.sdy.LocalToGlobalShape", custom_call_has_side_effect=true, frontend_attributes={xla.sdy.out_shardings="#sdy.sharding_per_value<[<@mesh, %(dims)s>]>",xla.sdy.manual_axes="#sdy<manual_axes{%(manual)s}>"} }
"""  # noqa: E501 - as XLA prints it
BOTH = r"\"a\", \"b\""


def module(whole: str, part: str, dims: str, op: str = "negate(p)", manual: str = BOTH) -> str:
    return MODULE % {"whole": whole, "part": part, "dims": dims.replace('"', r"\""), "op": op, "manual": manual}


SUM_OVER_B = "all-reduce(p), channel_id=1, use_global_device_ids=true, replica_groups={{0,1},{2,3}}, to_apply=add"


def test_a_part_written_per_rank() -> None:
    whole = np.arange(16, dtype=np.float32).reshape(4, 4)
    found = run_hlo(module("4,4", "2,2", '[{"a"}, {"b"}]'), [whole] * 4)
    assert all(np.array_equal(out[0], -whole) for out in found)


def test_ranks_differ_inside() -> None:
    whole = np.arange(8, dtype=np.float32).reshape(4, 2)
    found = run_hlo(module("4,2", "1,2", '[{"a", "b"}, {}]', SUM_OVER_B), [whole] * 4)
    first, second = whole[0] + whole[1], whole[2] + whole[3]
    assert all(np.array_equal(out[0], np.stack([first, first, second, second])) for out in found)


def test_axes_that_are_not_manual_cut_nothing() -> None:
    whole = np.arange(8, dtype=np.float32).reshape(4, 2)
    found = run_hlo(module("4,2", "2,2", '[{"a", "b"}, {}]', manual=r"\"a\""), [whole] * 4)
    assert all(np.array_equal(out[0], -whole) for out in found)


def test_an_axis_that_the_program_has_in_parts() -> None:
    """Groups of every other rank split the axis of 4: the program's mesh has its halves."""
    op = "all-reduce(p), channel_id=1, use_global_device_ids=true, replica_groups={{0,2},{1,3}}, to_apply=add"
    text = module("4", "1", '[{"x"}]', op, r"\"x\"").replace('["a"=2, "b"=2]', '["x"=4]')
    plan = plan_of(hlo_program(text))
    assert plan.program.mesh.axis_names != ("x",)
    whole = np.float32([1, 2, 30, 40])
    found = run_hlo(text, [whole] * 4)
    assert all(out[0].tolist() == [31, 42, 31, 42] for out in found)


@pytest.mark.parametrize(
    ("dims", "message"),
    [
        ('[{"q"}, {"b"}]', "cuts along axis q, which the mesh of the program does not have"),
        ('[{"a"}]', "a sharding of 1 dims for [4, 4]"),
        ('[{}, {"b"}]', "dim 0 of 4 becomes 2 per rank, but its sharding does not say how"),
        ('[{"a", "b"}, {}]', "dim 0 of 4 becomes 2 per rank, but its sharding does not say how"),
    ],
)
def test_what_says_nothing_is_refused(dims: str, message: str) -> None:
    manual = BOTH if "q" not in dims else BOTH + r", \"q\""
    problems = local_problems(plan_of(hlo_program(module("4,4", "2,2", dims, manual=manual))))
    assert {problem.code for problem in problems} == {"run.unsupported"}
    assert message in problems[0].message


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("[]", ()),
        ("[<@mesh, []>]", ((),)),
        ("[<@mesh, [{}, {}]>]", (((), ()),)),
        ('[<@m.1, [{"a", "b"}, {"c"}]>, <@m.1, [{}]>]', ((("a", "b"), ("c",)), ((),))),
        ('[<@mesh, [{"a", ?}, {?}]>]', ((("a",), ()),)),
        ('[<@mesh, [{"a":(1)2}], replicated={"b"}, unreduced={"c"}>]', ((("a:(1)2",),),)),
        ('[<@mesh, [{"a"}p1, {}]>]', ((("a",), ()),)),
    ],
)
def test_texts_of_shardings(text: str, found: object) -> None:
    assert parse_shardings(f"#sdy.sharding_per_value<{text}>") == found


@pytest.mark.parametrize(
    "text",
    ["", "[<@mesh, []>]", "#sdy.sharding_per_value<[<mesh, []>]>", "#sdy.sharding_per_value<[<@mesh, [{a}]>]>",
     "#sdy.sharding_per_value<[<@mesh, [{}]> junk]>", "#sdy.sharding_per_value<[<@mesh, [{\"a\":2}]>]>"],
)  # fmt: skip
def test_texts_that_are_none(text: str) -> None:
    with pytest.raises(PlacementError, match="was wanted, found"):
        parse_shardings(text)
