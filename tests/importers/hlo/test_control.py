"""Control flow: trip counts, executions, call order; device counts."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dtir.importers.hlo.frontend import AnalysedModule, analyse_text
from dtir.importers.hlo.trips import _count  # pyright: ignore[reportPrivateUsage]


def analysed(text: str) -> AnalysedModule:
    result = analyse_text(text)
    assert result.problems == ()
    assert result.module is not None
    return result.module


def loop(
    *,
    init: str = "constant(0)",
    step: str = "constant(1)",
    test: str = "compare(i, n), direction=LT",
    bound: str = "constant(5)",
    extra: str = "",
) -> str:
    return f"""
cond {{
  s = (s32[], f32[4], s32[]) parameter(0)
  i = s32[] get-tuple-element(s), index=0
  k = s32[] get-tuple-element(s), index=2
  n = s32[] {bound}
  ROOT t = pred[] {test}
}}
body {{
  s = (s32[], f32[4], s32[]) parameter(0)
  i = s32[] get-tuple-element(s), index=0
  x = f32[4] get-tuple-element(s), index=1
  k = s32[] get-tuple-element(s), index=2
  one = s32[] {step}
  j = s32[] add(i, one)
  y = f32[4] collective-permute(x), source_target_pairs={{{{0,1}},{{1,0}}}}
  ROOT u = (s32[], f32[4], s32[]) tuple(j, y, k)
}}
ENTRY main {{
  x = f32[4] parameter(0)
  i = s32[] {init}
  seven = s32[] constant(7)
  t = (s32[], f32[4], s32[]) tuple(i, x, seven)
  ROOT w = (s32[], f32[4], s32[]) while(t), condition=cond, body=body{extra}
}}
"""


@pytest.mark.parametrize(
    ("case", "trips"),
    [
        ({}, 5),
        ({"init": "constant(2)"}, 3),
        ({"step": "constant(2)"}, 3),
        ({"bound": "constant(0)"}, 0),
        ({"test": "compare(i, n), direction=LE"}, 6),
        ({"test": "compare(i, n), direction=NE"}, 5),
        ({"test": "compare(n, i), direction=GT"}, 5),
        ({"test": "compare(i, k), direction=LT"}, 7),
        ({"test": "compare(i, n), direction=GT"}, 0),
        (
            {
                "init": "constant(5)",
                "step": "constant(-1)",
                "bound": "constant(0)",
                "test": "compare(i, n), direction=GT",
            },
            5,
        ),
        (
            {
                "init": "constant(5)",
                "step": "constant(-2)",
                "bound": "constant(0)",
                "test": "compare(i, n), direction=GE",
            },
            3,
        ),
        ({"step": "constant(0)"}, None),
        ({"step": "constant(2)", "test": "compare(i, n), direction=NE"}, None),
        ({"test": "compare(n, k), direction=LT"}, None),
        ({"init": "get-tuple-element(p), index=0"}, None),
        ({"extra": ', backend_config={"known_trip_count":{"n":"9"},"x":{}}'}, 9),
        ({"extra": ', backend_config="{\\"known_trip_count\\":{\\"n\\":\\"9\\"}}"'}, 9),
    ],
)
def test_trip_counts(case: dict[str, str], trips: int | None) -> None:
    text = loop(**case)
    if "index=0" in case.get("init", ""):
        text = text.replace("ENTRY main {", "ENTRY main {\n  p = (s32[]) parameter(1)")
    module = analysed(text)
    assert module.control.trips("main", "w") == trips
    assert module.control.executions["body"] == trips
    assert module.control.executions["cond"] == (None if trips is None else trips + 1)


def test_counter_through_copies_calls_and_fusions() -> None:
    text = """
less { a = s32[] parameter(0)  b = s32[] parameter(1)  ROOT c = pred[] compare(a, b), direction=LT }
next { a = s32[] parameter(0)  one = s32[] constant(3)  ROOT c = s32[] add(one, a) }
step { s = (s32[]) parameter(0)  i = s32[] get-tuple-element(s), index=0
  j = s32[] fusion(i), kind=kLoop, calls=next  ROOT t = (s32[]) tuple(j) }
cond { s = (s32[]) parameter(0)  i = s32[] get-tuple-element(s), index=0  n = s32[] constant(10)
  ROOT c = pred[] fusion(i, n), kind=kLoop, calls=less }
body { s = (s32[]) parameter(0)  ROOT c = (s32[]) call(s), to_apply=step }
ENTRY main { zero = s32[] constant(1)  c = s32[] copy(zero)  t = (s32[]) tuple(c)
  ROOT w = (s32[]) while(t), condition=cond, body=body }
"""
    module = analysed(text)
    assert module.control.trips("main", "w") == 3  # 1, 4, 7
    assert module.control.executions["step"] == 3
    assert module.control.order.index("next") < module.control.order.index("step")


def test_nested_loops_multiply_and_branches_are_unknown() -> None:
    inner = loop(bound="constant(3)").replace("ENTRY main", "inner")
    inner = (
        inner.replace("cond {", "cond1 {")
        .replace("body {", "body1 {")
        .replace("condition=cond, body=body", "condition=cond1, body=body1")
    )
    outer = """
left { x = f32[4] parameter(0)  ROOT y = f32[4] negate(x) }
right { x = f32[4] parameter(0)  ROOT y = f32[4] abs(x) }
cond2 { s = (s32[], f32[4]) parameter(0)
  i = s32[] get-tuple-element(s), index=0  n = s32[] constant(4)  ROOT c = pred[] compare(i, n), direction=LT }
body2 { s = (s32[], f32[4]) parameter(0)
  i = s32[] get-tuple-element(s), index=0  one = s32[] constant(1)  j = s32[] add(i, one)
  x = f32[4] get-tuple-element(s), index=1
  r = (s32[], f32[4], s32[]) call(x), to_apply=inner  y = f32[4] get-tuple-element(r), index=1
  z = f32[4] conditional(i, y, y), branch_computations={left, right}
  ROOT t = (s32[], f32[4]) tuple(j, z) }
ENTRY main { x = f32[4] parameter(0)  zero = s32[] constant(0)  t = (s32[], f32[4]) tuple(zero, x)
  ROOT w = (s32[], f32[4]) while(t), condition=cond2, body=body2 }
"""
    text = inner + outer
    executions = analysed(text).control.executions
    assert (executions["body2"], executions["inner"], executions["body1"]) == (4, 4, 12)
    assert executions["left"] is None
    assert executions["right"] is None


def test_calls_add_up_and_what_nothing_enters_runs_never() -> None:
    text = """
f { x = f32[] parameter(0)  ROOT y = f32[] negate(x) }
dead { x = f32[] parameter(0)  ROOT y = f32[] call(x), to_apply=f }
sum { x = f32[] parameter(0)  z = f32[] parameter(1)  ROOT y = f32[] add(x, z) }
ENTRY main { x = f32[] parameter(0)  a = f32[] call(x), to_apply=f  b = f32[] call(a), to_apply=f
  v = f32[4] broadcast(b), dimensions={}  ROOT r = f32[] reduce(v, a), dimensions={0}, to_apply=sum }
"""
    module = analysed(text)
    assert module.control.executions == {"f": 2, "dead": 0, "sum": 0, "main": 1}
    assert module.control.applied == {"sum"}
    assert {c.name for c in module.reachable} == {"f", "sum", "main"}


@pytest.mark.parametrize(
    ("header", "line", "devices", "inferred"),
    [
        ("", "copy(p)", (1, 1), False),
        (", num_partitions=4, replica_count=2", "copy(p)", (2, 4), False),
        (
            ", num_partitions=4",
            "all-gather(p), dimensions={0}, replica_groups={{0,3}}, channel_id=1, use_global_device_ids=true",
            (1, 4),
            False,
        ),
        (
            "",
            "all-gather(p), dimensions={0}, replica_groups=[2,4]<=[8], channel_id=1, use_global_device_ids=true",
            (1, 8),
            True,
        ),
        ("", "all-gather(p), dimensions={0}, replica_groups={{0,1},{2,3}}", (4, 1), True),
        ("", "all-to-all(p), dimensions={0}, replica_groups={{0,1},{2,3}}, channel_id=1", (1, 4), True),
        ("", "collective-permute(p), source_target_pairs={{0,5}}, channel_id=1", (1, 6), True),
        ("", "copy(p), sharding={devices=[4]<=[4]}", (1, 4), True),
        ("", "copy(p), sharding={mesh['x'=2,'y'=3], [{'x'}]}", (1, 6), True),
        ("", "copy(p), sharding={maximal device=2}", (1, 3), True),
        (', frontend_attributes={xla.sdy.meshes={mesh = #sdy.mesh<["dp"=2, "tp"=4]>}}', "copy(p)", (1, 8), False),
        (', frontend_attributes={xla.sdy.meshes="{mesh = #sdy.mesh<[\\"dp\\"=2]>}"}', "copy(p)", (1, 2), False),
    ],
)
def test_device_counts(header: str, line: str, devices: tuple[int, int], inferred: bool) -> None:
    text = f"HloModule m{header}\nENTRY e {{ p = f32[4] parameter(0)  ROOT r = f32[4] {line} }}"
    count = analysed(text).count
    assert (count.devices.replicas, count.devices.partitions) == devices
    assert count.inferred is inferred


@given(
    st.integers(-6, 6), st.integers(-3, 3), st.sampled_from(["LT", "LE", "GT", "GE", "NE", "EQ"]), st.integers(-6, 6)
)
def test_the_count_is_what_running_the_loop_gives(first: int, step: int, direction: str, bound: int) -> None:
    holds = {
        "LT": lambda i: i < bound,
        "LE": lambda i: i <= bound,
        "GT": lambda i: i > bound,
        "GE": lambda i: i >= bound,
        "NE": lambda i: i != bound,
        "EQ": lambda i: i == bound,
    }[direction]
    value, count = first, 0
    while holds(value) and count < 100:
        value, count = value + step, count + 1
    assert _count(first, step, direction, bound) == (count if count < 100 else None)
