"""Bad text: every fault is reported with its place, reading goes on, and nothing is raised."""

from __future__ import annotations

import pytest

from dtir.importers.hlo.frontend import analyse_text
from dtir.importers.hlo.reader import read_text

REDUCER = "r { a = f32[] parameter(0)  b = f32[] parameter(1)  ROOT c = f32[] add(a, b) }\n"


def codes(text: str) -> list[tuple[str, int, int]]:
    return [(problem.code, problem.line, problem.column) for problem in analyse_text(text).problems]


@pytest.mark.parametrize(
    ("line", "expected"),
    [
        ("q = f32[2 add(p, p)", ("hlo.syntax", 3, 5)),
        ("q = f77[2] negate(p)", ("hlo.unknown_dtype", 3, 5)),
        ("q = f32[2] negate(p", ("hlo.syntax", 3, 18)),
        ("q = f32[2] negate(x)", ("hlo.unknown_operand", 3, 19)),
        ("q = f32[2] negate(3)", ("hlo.syntax", 3, 19)),
        ("q f32[2] negate(p)", ("hlo.syntax", 3, 1)),
        ("q = f32[2] negate", ("hlo.syntax", 3, 12)),
        ("q = f32[2] negate(p),", ("hlo.syntax", 3, 22)),
        ("q = f32[2] slice(p), slice={[0-2]}", ("hlo.attribute", 3, 29)),
        ("q = f32[2] broadcast(p), dimensions={0,x}", ("hlo.attribute", 3, 38)),
        ("q = f32[2] copy(p), sharding={devices=[2]<=[3]}", ("hlo.sharding", 3, 31)),
        ("q = f32[2] copy(p), sharding={replicated}, sharding={manual}", ("hlo.duplicate_attribute", 3, 44)),
        ('q = f32[2] copy(p), metadata={op_name="x}', ("hlo.syntax", 3, 39)),
        ("q = f32[2] call(p), to_apply=nobody", ("hlo.unknown_computation", 3, 1)),
        ("q = broadcast(p), dimensions={}", ("hlo.shape_missing", 3, 15)),
        ("q = s32[2] constant({1, 2, 3})", ("hlo.literal", 3, 21)),
        ("q = s32[2] constant({1, two})", ("hlo.literal", 3, 21)),
        ("q = s32[] parameter(2)", ("hlo.parameters", 2, 1)),
        ("q = s32[] parameter(-1)", ("hlo.syntax", 3, 21)),
        ("p = s32[] constant(1)", ("hlo.duplicate_instruction", 3, 1)),
        ("q = f32[2] add(p)", ("hlo.operand_count", 3, 1)),
        ("q = f32[2] get-tuple-element(p), index=0", ("hlo.tuple_index", 3, 1)),
        ("q = (f32[2], f32[2]) tuple(p)", ("hlo.shape_mismatch", 3, 1)),
        ("q = f32[2] all-reduce(p), to_apply=r, use_global_device_ids=true", ("hlo.group_mode", 3, 1)),
        ("q = f32[2] all-reduce(p), replica_groups={{0,1}}", ("hlo.missing_attribute", 3, 1)),
        ("q = f32[4] all-gather(p), replica_groups={{0,1}}", ("hlo.missing_attribute", 3, 1)),
        ("q = f32[4] all-gather(p), replica_groups={{0,1}}, dimensions={1}", ("hlo.attribute", 3, 1)),
        ("q = f32[2] collective-permute(p)", ("hlo.missing_attribute", 3, 1)),
        ("q = f32[2] all-reduce-done(p)", None),
        ("q = f32[2] call(p, p), to_apply=n", ("hlo.operand_count", 3, 1)),
        ("q = f32[2] call(p), to_apply=r", ("hlo.operand_count", 3, 1)),
        ("q = f32[2] while(p), condition=r, body=n", ("hlo.operand_count", 3, 1)),
        ("q = f32[2] conditional(p, p), branch_computations={n}", ("hlo.shape_mismatch", 3, 1)),
        ("q = f32[2] copy(p), control-predecessors={z}", ("hlo.unknown_operand", 3, 1)),
        ("q = (f32[2], f32[2]) async-start(p), calls=n", ("hlo.async_pair", 3, 1)),
    ],
)
def test_one_fault_one_finding(line: str, expected: tuple[str, int, int] | None) -> None:
    text = f"ENTRY e {{\np = f32[2] parameter(0)\n{line}\n}}\nn {{ x = f32[2] parameter(0) }}\n{REDUCER}"
    found = codes(text)
    if expected is None:
        assert found == []
    else:
        assert found[0] == expected
        assert {code for code, _, _ in found} == {expected[0]}


def test_all_faults_are_found_in_one_run() -> None:
    text = """ENTRY e {
  p = f32[2] parameter(0)
  a = f32[2] negate(p
  b = f32[2 negate(p)
  c = f32[2] negate(a)
  d = f32[2] negate(nobody)
  e = f32[2] negate(b), k={x
  f = f32[2] negate(p), dimensions={y}
  ROOT g = f32[2] add(f, c)
}
broken {
}
other { z = f32[] parameter(0) }
"""
    assert [(code, line) for code, line, _ in codes(text)] == [
        ("hlo.syntax", 3),
        ("hlo.syntax", 4),
        ("hlo.unknown_operand", 6),
        ("hlo.syntax", 7),
        ("hlo.attribute", 8),
        ("hlo.empty_computation", 11),
    ]


def test_what_depends_on_a_broken_line_is_not_reported_again() -> None:
    text = "e {\n  p = f32[2 parameter(0)\n  q = f32[2] negate(p)\n  ROOT r = f32[2] add(p, q)\n}"
    assert [code for code, _, _ in codes(text)] == ["hlo.syntax"]


def test_a_missing_brace_does_not_swallow_the_next_computation() -> None:
    text = "%a (p: f32[]) -> f32[] {\n  ROOT %p = f32[] parameter(0)\n\nENTRY %e (q: f32[]) -> f32[] {\n  ROOT %q = f32[] parameter(0)\n}\n"
    read = read_text(text)
    assert [(p.code, p.line) for p in read.problems] == [("hlo.syntax", 1)]
    assert [c.name for c in read.modules[0].computations] == ["a", "e"]


@pytest.mark.parametrize(
    ("text", "code"),
    [
        ("", "hlo.empty"),
        ("  // nothing\n", "hlo.empty"),
        ("HloModule m\n", "hlo.empty"),
        ("HloModule\n", "hlo.syntax"),
        ("HloModule m, \ne { p = f32[] parameter(0) }", "hlo.syntax"),
        ("hello world", "hlo.syntax"),
        ("e { }", "hlo.empty_computation"),
        ("e { p = f32[] parameter(0)", "hlo.syntax"),
        ("e { p = f32[] parameter(0) } }", "hlo.syntax"),
        ("e { ROOT p = f32[] parameter(0) ROOT q = f32[] negate(p) }", "hlo.roots"),
        ("e { p = f32[] parameter(0) } e { p = f32[] parameter(0) }", "hlo.duplicate_computation"),
        ("ENTRY a { p = f32[] parameter(0) } ENTRY b { p = f32[] parameter(0) }", "hlo.entry"),
        ("a (p f32[]) -> f32[] { p = f32[] parameter(0) }", "hlo.syntax"),
        ("a (p: f32[]) { p = f32[] parameter(0) }", "hlo.syntax"),
        ("a { p = f32[] parameter(0) ROOT c = f32[] call(p), to_apply=a }", "hlo.recursion"),
        ("a { p = f32[] parameter(0) } /* never closed", "hlo.syntax"),
        ("HloModule a\nx { p = f32[] parameter(0) }\nHloModule b\ny { p = f32[] parameter(0) }", "hlo.several_modules"),
    ],
)
def test_faults_of_the_file(text: str, code: str) -> None:
    assert code in [found for found, _, _ in codes(text)]


@pytest.mark.parametrize(
    ("line", "code"),
    [
        ("all-gather(p), dimensions={0}, replica_groups=[1,4]<=[4], channel_id=1, use_global_device_ids=true", None),
        (
            "all-gather(p), dimensions={0}, replica_groups=[1,8]<=[8], channel_id=1, use_global_device_ids=true",
            "device_count",
        ),
        ("all-gather(p), dimensions={0}, replica_groups={{0,1}}", None),
        ("all-gather(p), dimensions={0}, replica_groups={{0,2}}", "device_count"),
        ("all-to-all(p), dimensions={0}, replica_groups={{0,2}}, channel_id=1", "device_count"),
        ("collective-permute(p), source_target_pairs={{0,1}}, channel_id=1", None),
        ("collective-permute(p), source_target_pairs={{0,2}}, channel_id=1", "device_count"),
        ("copy(p), sharding={devices=[2]<=[2]}", None),
        ("copy(p), sharding={devices=[4]<=[4]}", "device_count"),
        ("copy(p), sharding={maximal device=2}", "device_count"),
    ],
)
def test_ids_beyond_what_the_header_states(line: str, code: str | None) -> None:
    text = (
        f"HloModule m, num_partitions=2, replica_count=2\nENTRY e {{ p = f32[4] parameter(0) ROOT a = f32[4] {line} }}"
    )
    assert [found for found, _, _ in codes(text)] == ([] if code is None else [f"hlo.{code}"])


def test_async_pairs_that_do_not_belong_together() -> None:
    text = """e {
  p = f32[4] parameter(0)
  s = ((f32[4]), f32[4], u32[]) negate-start(p)
  ROOT d = f32[4] copy-done(s)
}"""
    assert [code for code, _, _ in codes(text)] == ["hlo.async_pair"]
    assert [code for code, _, _ in codes(text.replace("copy-done", "abs-done"))] == ["hlo.async_pair"]
    assert codes(text.replace("copy-done", "negate-done")) == []


def test_unknown_opcode_is_a_warning() -> None:
    analysed = analyse_text("e { p = f32[2] parameter(0) ROOT q = f32[2] frobnicate(p, p, p) }")
    assert [(p.code, p.level.value) for p in analysed.problems] == [("hlo.unknown_opcode", "warning")]
    assert analysed.module is not None


@pytest.mark.parametrize(
    "text",
    [
        "(" * 200_000,
        "{" * 200_000,
        "e {\n" + "  a = (" * 50_000,
        "e {\n" + "  a = f32[] add({\n" * 20_000,
        "e {\n" + "  a = f32[] add(x), m={\n" * 20_000 + "}" * 20_000,
        '"' * 100_000,
        "e {\n" + '  a = f32[] add(x), m="\n' * 20_000,
        "e { a = " + "(" * 50_000 + ")" * 50_000 + " tuple() }",
        "e { " + "a = f32[] call(), to_apply={ " * 5_000,
        "/*" * 100_000,
        "e " + "()->" * 50_000,
        "e { p = f32[2] parameter(0), sharding=" + "{" * 50_000 + "}" * 50_000 + " }",
        "e { c = f32[9] constant(" + "{" * 50_000 + "1" + "}" * 50_000 + ") }",
        "// -----\n" * 50_000,
        "\0\x01\x02" * 1_000,
    ],
    ids=lambda text: repr(text[:24]),
)
def test_hostile_text_ends_with_a_finding_or_nothing(text: str) -> None:
    read = read_text(text)
    assert read.problems or not read.modules


def test_problems_are_bounded_and_the_rest_is_counted() -> None:
    read = read_text("e {\n" + "  a = f32[2] negate(b), c=1, c=1\n" * 5_000 + "}")
    assert len(read.problems) == 1_000
    assert read.omitted > 3_000
    assert not read.ok


@pytest.mark.parametrize("number", ["2000000000", "99999999999"])
def test_numbers_cost_no_memory(number: str) -> None:
    text = f"""HloModule m, num_partitions={number}
ENTRY e {{
  p = f32[{number}] parameter(0), sharding={{devices=[{number}]<=[{number}]}}
  ROOT a = f32[{number}] all-gather(p), replica_groups=[1,{number}]<=[{number}], dimensions={{0}}, channel_id=1, use_global_device_ids=true
}}"""
    analysed = analyse_text(text)
    assert analysed.module is not None
    assert analysed.module.count.devices.ranks == int(number)
