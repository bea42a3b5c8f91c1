from __future__ import annotations

import json
from dataclasses import replace

from dtir.analysis.summary import summarize
from dtir.cli import render_json
from dtir.ir import BindingAxis, Symbol
from dtir.schema.diagnostics import Diagnostic, Related, Severity
from tests.helpers.programs import all_reduce, mesh_of, node_id, program

FINDING = Diagnostic(
    "demo.code", "no", ("tasks", "0"), hint="do", subject=("node:ab",), related=(Related("other", ("x",)),)
)


def test_a_finding_has_the_keys_of_the_contract() -> None:
    assert render_json.diagnostic(FINDING) == {
        "code": "demo.code",
        "severity": "error",
        "message": "no",
        "hint": "do",
        "path": ["tasks", "0"],
        "subject": ["node:ab"],
        "related": [{"label": "other", "path": ["x"]}],
    }
    assert render_json.diagnostic(Diagnostic("a.b", "m"))["hint"] is None


def test_verify_counts_and_judges() -> None:
    warning = replace(FINDING, severity=Severity.WARNING)
    assert render_json.verified([warning]) == {
        "ok": True,
        "counts": {"error": 0, "warning": 1, "info": 0},
        "diagnostics": [render_json.diagnostic(warning)],
    }
    assert render_json.verified([warning, FINDING])["ok"] is False
    assert render_json.verified([])["ok"] is True


def test_show_has_the_keys_of_the_contract() -> None:
    result = render_json.shown(
        summarize(program()), digest="d", format="hlo", source_digest="s", warnings=(FINDING,), written_out=(True,)
    )
    assert result == {
        "name": "demo",
        "digest": "d",
        "format": "hlo",
        "source": {"format": "hlo", "digest": "s"},
        "mesh": {"axes": [{"name": "dp", "size": 2}, {"name": "tp", "size": 4}], "ranks": 8},
        "tasks": {"total": 2, "by_kind": {"local-compute": 1, "collective": 1}},
        "collectives": [
            {
                "id": str(node_id("sum.1")),
                "kind": "all_reduce",
                "groups": [[0, 1, 2, 3], [4, 5, 6, 7]],
                "group_count": 2,
                "group_size": 4,
                "message_bytes": 128,
                "reduction": "sum",
                "dtype": "f32",
                "source": "jit(f)/psum",
                "source_name": "sum.1",
                "executions": 1,
                "axes": ["tp"],
                "region": None,
            }
        ],
        "values": {"total": 3},
        "warnings": [render_json.diagnostic(FINDING)],
    }


def test_groups_that_are_not_written_out_keep_their_size() -> None:
    mesh = mesh_of(dp=1_000_000, tp=2_000)
    made = summarize(program(mesh, spec=all_reduce(mesh, axes=("dp",))))
    row = render_json.shown(made, digest="", format="", source_digest="", warnings=(), written_out=(False,))[
        "collectives"
    ][0]
    assert (row["groups"], row["group_count"], row["group_size"]) == (None, 2_000, 1_000_000)


def test_a_symbolic_size_is_text() -> None:
    assert render_json.scalar(Symbol("b", BindingAxis.WORKLOAD) * 2) == "workload.b * 2"
    assert render_json.scalar(64) == 64
    assert render_json.scalar(0.5) == 0.5


def test_one_file_is_an_object_and_several_are_a_list() -> None:
    assert render_json.per_file(["a"], [{"ok": True}]) == {"ok": True}
    assert render_json.per_file(["a", "b"], [{"ok": True}, {"diagnostics": []}]) == {
        "files": [{"file": "a", "ok": True}, {"file": "b", "diagnostics": []}]
    }


def test_the_text_is_safe_on_a_terminal_and_reads_back() -> None:
    value = {"name": "två\x1b[2J\u202e\ud800"}
    text = render_json.text(value)
    assert text.isascii()
    assert "\x1b" not in text
    assert json.loads(text) == value
    assert text.endswith("}\n")


def test_the_ranks_of_a_group_stand_on_one_line() -> None:
    value = {"groups": [[0, 1, 2], [-3], []], "text": "[\n  1,\n  2\n]", "mixed": [1, None]}
    text = render_json.text(value)
    assert "[0, 1, 2]" in text
    assert "[-3]" in text
    assert json.loads(text) == value
