"""The structure of MLIR text: operations, regions, blocks, aliases; what is wrong has a line and a column."""

from __future__ import annotations

import pytest

from dtir.importers.hlo.problems import Problems
from dtir.importers.stablehlo.importer import import_mlir
from dtir.importers.stablehlo.scan import MAX_BRACKETS, MAX_REGIONS, Scanner
from dtir.importers.stablehlo.syntax import Operation, Part, walk
from dtir.importers.stablehlo.text import parts, without_comments


def scan(text: str) -> tuple[Part, Problems]:
    problems = Problems(text)
    return Scanner(without_comments(text), 0, len(text), problems).run(), problems


def operations(text: str) -> list[Operation]:
    part, problems = scan(text)
    assert not problems.items
    return list(walk(part.region))


def test_generic_and_pretty_forms_nest() -> None:
    found = operations(
        """
        module @m attributes {a.b = 1 : i32} {
          func.func @f(%a: tensor<2xf32> {x.y}) -> (tensor<2xf32> {z}) attributes {k = "}"} {
            %0:2 = "x.two"(%a) <{n = 1}> ({
            ^bb0(%b: f32, %c: f32):
              x.ret %b : f32
            }, {
              x.ret
            }) {tail = [1, 2]} : (tensor<2xf32>) -> (f32, f32)
            %1, %2 = x.pair %0#1
                some = [3]
                {
              x.ret
            } : f32 loc("a{b")
            return %a : tensor<2xf32>
          }
        }
        """
    )
    assert [one.name for one in found] == [
        "module", "func.func", "x.two", "x.ret", "x.ret", "x.pair", "x.ret", "return",
    ]  # fmt: skip
    two, pair = found[2], found[5]
    assert two.result_names() == ("%0#0", "%0#1")
    assert two.regions[0].arguments == "%b: f32, %c: f32"
    assert [len(one.regions) for one in (two, pair)] == [2, 1]
    assert pair.result_names() == ("%1", "%2")
    assert "loc" in pair.segments[-1]


@pytest.mark.parametrize(
    "text",
    [
        "x.op {a}\nx.end",
        'x.op {"a" = 1}\nx.end',
        "x.op {}\nx.end",
        "x.op sets={1, 2}\nx.end",
        'x.op {"a", "b":(1)2}\nx.end',
        'x.op [{"a"}, {?}, {"b", ?}p1]\nx.end',
        "x.op <{a = 1}>\nx.end",
        "x.op (%a: t {b = 2},\n  %c: t)\nx.end",
    ],
)
def test_braces_of_attributes_open_no_region(text: str) -> None:
    found = operations(text)
    assert [one.name for one in found] == ["x.op", "x.end"]
    assert not found[0].regions


def test_two_operations_may_share_a_line() -> None:
    found = operations("%0 = x.op %a : tensor<2xf32>  func.return %0 : t\n%1 = x.op(%b = %0) : t %2 = x.end : t")
    assert [one.name for one in found] == ["x.op", "func.return", "x.op", "x.end"]


def test_comments_and_strings_hide_brackets() -> None:
    found = operations('// {{{\nx.op "{" // }\nx.end loc("//")')
    assert [one.name for one in found] == ["x.op", "x.end"]


def test_aliases_and_resources_are_no_operations() -> None:
    part, problems = scan(
        '#loc = loc("f":1:2)\n!t = tuple<(a,\n  b)>\nx.op\n{-# dialect_resources: { a: "0x00" } #-}\n'
    )
    assert not problems.items
    assert part.aliases == {"#loc": 'loc("f":1:2)', "!t": "tuple<(a,\n  b)>"}
    assert part.resources


@pytest.mark.parametrize(
    ("text", "line", "column"),
    [
        ("func.func @f() {\n  return\n", 1, 16),
        ("func.func @f() {\n  %0 = x.y(%a, [1)\n  return\n}", 2, 16),
        ('x.op "open\nx.end', 1, 6),
        ("}", 1, 1),
        ("x.op )\n", 1, 6),
        ("func.func @f() {\n  ???\n}", 2, 3),
        ('func.func @f() {\n  "no name"()\n}', 2, 4),
        ("^bb0", 1, 1),
        ("{-# never", 1, 1),
    ],
)
def test_what_is_wrong_has_a_place(text: str, line: int, column: int) -> None:
    _, problems = scan(text)
    first = problems.items[0]
    assert (first.code, first.line, first.column) == ("mlir.syntax", line, column)


def test_a_broken_function_does_not_hide_what_is_wrong_in_the_next() -> None:
    broken = "func.func @a() {\n  ???\n}\n"
    _, problems = scan(broken + broken)
    assert [item.line for item in problems.items] == [2, 5]


@pytest.mark.parametrize("text", ["x.op " + "(" * (MAX_BRACKETS + 10), "x.op {\n" * (MAX_REGIONS + 10)])
def test_depth_is_bounded(text: str) -> None:
    _, problems = scan(text)
    assert problems.items[0].code == "mlir.too_deep"


def test_parts_and_their_names() -> None:
    text = "func.func @f() {\n return\n}\n// -----\nfunc.func @f() {\n return\n}\n// -----\n"
    assert len(parts(text)) == 3
    found = import_mlir(text)
    assert [(part.line, [one.name for one in part.programs]) for part in found.parts] == [(1, ["f"]), (5, ["f"])]
