from __future__ import annotations

from dataclasses import replace

import pytest

from dtir.analysis.summary import collective_rows, summarize
from dtir.cli import render_text
from dtir.ir import BindingAxis, DistributedTaskIR, RankRange, Symbol
from dtir.schema.catalogue import CodeEntry
from dtir.schema.diagnostics import Diagnostic, Related, Severity
from tests.helpers.programs import all_reduce, mesh_of, permute, program

FINDING = Diagnostic(
    "demo.code",
    "4 != 6",
    ("tasks", "0"),
    hint="make them equal",
    subject=("node:ab",),
    related=(Related("the other", ("values", "1")),),
)
WARNING = replace(FINDING, severity=Severity.WARNING, code="demo.warning")
NOTE = replace(FINDING, severity=Severity.INFO, code="demo.note")


def shown(made: DistributedTaskIR, **options: object) -> str:
    given = {"label": "demo.json", "digest": "d" * 40, "format": "dtir", "source_digest": "e" * 40, "warnings": ()}
    return "\n".join(render_text.shown(summarize(made), **{**given, **options}))  # type: ignore[arg-type]


def test_the_facts_of_a_program() -> None:
    text = shown(program())
    for fact in (
        "demo\n",
        f"source   demo.json (dtir, {'e' * 40})",
        f"digest   {'d' * 40}",
        "mesh     8 ranks = dp 2 × tp 4",
        "tasks    2 (local-compute 1, collective 1)",
        "values   3 (1 input, 1 output)",
        "collectives  1",
    ):
        assert fact in text
    row = next(line for line in text.splitlines() if "sum.1" in line)
    assert row.split() == ["all_reduce", "sum", "f32", "128", "B", "1", "2", "4", "tp", "{0-3}", "{4-7}", "sum.1"]
    assert "findings" not in text
    assert "more" not in text


def test_findings_come_worst_first_with_everything_they_say() -> None:
    lines = render_text.findings([NOTE, WARNING, FINDING], limit=None)
    assert lines[:5] == [
        "error [demo.code] 4 != 6",
        "    at tasks.0",
        "    concerns node:ab",
        "    the other: values.1",
        "    hint: make them equal",
    ]
    assert [line.split()[0] for line in lines if line.startswith(("error", "warning", "info"))] == [
        "error",
        "warning",
        "info",
    ]
    assert render_text.finding_counts([NOTE, WARNING, FINDING, FINDING]) == "2 errors, 1 warning, 1 note"
    assert render_text.finding_counts([]) == "no findings"


def test_a_finding_concerns_things_by_their_names() -> None:
    made = program()
    subject = (str(made.tasks[1].id), str(made.values[0].id), "node:unknown", "tp")
    lines = render_text.finding(replace(FINDING, subject=subject), names=render_text.names_of(made))
    assert lines[2] == "    concerns sum.1, x, node:unknown, tp"


def test_what_is_left_out_is_counted_and_the_flag_is_named() -> None:
    assert render_text.findings([FINDING] * 5, limit=3)[-1] == "... 2 more findings; --all shows them"
    rows = collective_rows(program()) * 25
    lines = render_text.collectives(rows, show_all=False)
    assert lines[-1] == "... 5 more collectives; --all shows them"
    assert len(lines) == 22
    assert len(render_text.collectives(rows, show_all=True)) == 26


def test_shortened_member_lists_say_so() -> None:
    mesh = mesh_of(dp=8, tp=4)
    rows = collective_rows(program(mesh, spec=all_reduce(mesh, axes=("dp",))))
    lines = render_text.collectives(rows, show_all=False)
    assert "{0-28:4} {1-29:4} +2" in lines[1]
    assert lines[-1] == "member lists are shortened; --all shows them whole"
    whole = render_text.collectives(rows, show_all=True)
    assert "{0-28:4} {1-29:4} {2-30:4} {3-31:4}" in whole[1]
    assert len(whole) == 2


@pytest.mark.parametrize(
    ("group", "text"),
    [
        ((3,), "3"),
        ((0, 1), "0,1"),
        ((0, 1, 2), "0-2"),
        ((0, 2, 1), "0,2,1"),
        ((2, 1, 0), "2,1,0"),
        (RankRange(0, 8, 2), "0-6:2"),
        (RankRange(4, 6), "4,5"),
        (tuple(range(0, 40, 3)), "0,3,6,9,12,15,18,21,... +6"),
        (RankRange(0, 2_000_000_000), "0-1999999999"),
    ],
)
def test_member_lists(group: tuple[int, ...] | RankRange, text: str) -> None:
    assert render_text.group_text(group) == text


def test_a_permute_is_drawn_with_arrows() -> None:
    mesh = mesh_of(x=4)
    (row,) = collective_rows(program(mesh, spec=permute(mesh, ((0, 1), (1, 2), (2, 3)))))
    assert render_text.groups_text(row, all_groups=False) == ("0→1 1→2 +1", True)
    assert render_text.groups_text(row, all_groups=True) == ("0→1 1→2 2→3", False)


def test_unknown_and_symbolic_facts() -> None:
    mesh = mesh_of(dp=2, tp=4)
    size = Symbol("b", BindingAxis.WORKLOAD) * 4
    (row,) = collective_rows(program(spec=all_reduce(mesh, message_bytes=size, axes=("ep",))))
    lines = render_text.collectives([replace(row, executions=None)], show_all=False)
    assert "workload.b * 4" in lines[1]
    assert " ? " in lines[1]
    assert lines[-1] == "runs ?: the data decide how often"


def test_untrusted_names_are_escaped_everywhere() -> None:
    evil = "x\x1b[2J\u202e"
    mesh = mesh_of(**{evil: 2})
    finding = Diagnostic("demo.code", evil, (evil,), hint=evil, subject=(evil,), related=(Related(evil, (evil,)),))
    made = program(mesh, name=evil, task_name=evil, spec=all_reduce(mesh))
    text = shown(made, label=evil, warnings=(finding,)) + "\n".join(
        render_text.verified(evil, [finding], judges=[], show_all=True)
    )
    assert text.replace("\n", "").isprintable()


def test_a_huge_mesh_is_shown_in_constant_space() -> None:
    mesh = mesh_of(dp=1_000_000, tp=2_000)
    text = shown(program(mesh, spec=all_reduce(mesh, axes=("dp",))))
    assert "2,000,000,000 ranks = dp 1,000,000 × tp 2,000" in text
    assert "{0-1999998000:2000} {1-1999998001:2000} +1,998" in text


def test_the_verdict() -> None:
    assert render_text.verified("a", [], judges=["structure"], show_all=False) == [
        "a: ok (no findings; judged by structure)"
    ]
    assert (
        render_text.verified("a", [WARNING], judges=["structure"], show_all=False)[0]
        == "a: ok (1 warning; judged by structure)"
    )
    assert render_text.verified("a", [FINDING], judges=["structure", "static"], show_all=False)[0] == (
        "a: not valid (1 error; judged by structure, static)"
    )


def test_an_explanation_has_all_its_parts() -> None:
    text = "\n".join(render_text.explained(CodeEntry("a.b", "why " * 40, "bad one", "good one", "do this")))
    for part in ("a.b (error)", "why why", "bad\n    bad one", "good\n    good one", "hint  do this"):
        assert part in text
    assert all(len(line) <= 88 for line in text.splitlines())
