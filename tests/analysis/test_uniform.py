"""Equal copies that follow in partitioned programs, through calls, loops and branches."""

from __future__ import annotations

from dtir.analysis.exchanges import ExchangeReader
from dtir.analysis.uniform import uniform_axes
from dtir.importers import load_bytes
from dtir.ir.program import DistributedTaskIR

HEAD = """HloModule m, num_partitions=4

%add (x: f32[], y: f32[]) -> f32[] {
  %x = f32[] parameter(0)
  %y = f32[] parameter(1)
  ROOT %s = f32[] add(%x, %y)
}
"""
GROUPS = "channel_id=1, use_global_device_ids=true, replica_groups={{0,1},{2,3}}, to_apply=%add"


def read(body: str) -> DistributedTaskIR:
    found = load_bytes((HEAD + body).encode(), name="m.hlo").program
    assert found is not None
    return found


def equal(program: DistributedTaskIR, name: str) -> list[str]:
    """The axes along which the value of a name is derived to be equal."""
    reader = ExchangeReader(program)
    found = uniform_axes(program, reader)
    assert found is not None
    for (_, scope), known in zip(program.scopes(), found.scopes, strict=True):
        for value in scope.values:
            if value.name == name and value.id in known:
                return [axis for place, axis in enumerate(found.axes) if known[value.id] >> place & 1]
    raise AssertionError(f"{name} is not reached")


def test_a_reduction_makes_copies_along_its_axes_and_operators_keep_them() -> None:
    program = read(f"""
ENTRY %main (p: f32[4]) -> f32[4] {{
  %p = f32[4] parameter(0), sharding={{devices=[4]<=[4]}}
  %c = f32[4] copy(%p)
  %r = f32[4] all-reduce(%c), {GROUPS}
  %e = f32[4] exponential(%r)
  %i = u32[] partition-id()
  %f = f32[] convert(%i)
  %b = f32[4] broadcast(%f), dimensions={{}}
  ROOT %o = f32[4] add(%e, %b)
}}
""")
    assert equal(program, "c") == []
    (axis,) = equal(program, "r")
    assert equal(program, "e") == [axis]
    assert equal(program, "b") == equal(program, "o") == []


def test_a_loop_keeps_what_its_body_keeps() -> None:
    program = read("""
%cond (s: (s32[], f32[4], f32[4])) -> pred[] {
  %s = (s32[], f32[4], f32[4]) parameter(0)
  %n = s32[] get-tuple-element(%s), index=0
  %k = s32[] constant(3)
  ROOT %lt = pred[] compare(%n, %k), direction=LT
}

%body (t: (s32[], f32[4], f32[4])) -> (s32[], f32[4], f32[4]) {
  %t = (s32[], f32[4], f32[4]) parameter(0)
  %m = s32[] get-tuple-element(%t), index=0
  %u = f32[4] get-tuple-element(%t), index=1
  %v = f32[4] get-tuple-element(%t), index=2
  %one = s32[] constant(1)
  %next = s32[] add(%m, %one)
  %w = f32[4] add(%u, %v)
  ROOT %y = (s32[], f32[4], f32[4]) tuple(%next, %w, %v)
}

ENTRY %main (p: f32[4], q: f32[4]) -> f32[4] {
  %p = f32[4] parameter(0), sharding={replicated}
  %q = f32[4] parameter(1), sharding={devices=[4]<=[4]}
  %z = s32[] constant(0)
  %in = (s32[], f32[4], f32[4]) tuple(%z, %p, %q)
  %out = (s32[], f32[4], f32[4]) while(%in), condition=%cond, body=%body
  ROOT %o = f32[4] get-tuple-element(%out), index=1
}
""")
    # The counter is equal everywhere; what the split operand is added to is not, from the second trip on.
    assert equal(program, "next") != []
    assert equal(program, "w") == []
