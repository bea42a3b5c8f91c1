from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from dtir.cli.render_sarif import Judged, report, uri
from dtir.schema.diagnostics import Diagnostic, Related, Severity

UNKNOWN = Diagnostic(
    "rank.unknown",
    "task rank 7 is outside {8}",
    ("tasks", "0", "ranks"),
    hint="use [0-3]",
    subject=("node:ab",),
    related=(Related("the mesh", ("mesh",)),),
)
WARNING = Diagnostic("made.up", "hm", severity=Severity.WARNING)
NOTE = Diagnostic("made.up", "by the way", severity=Severity.INFO)


def made(*judged: Judged) -> dict[str, Any]:
    log = report(judged or [Judged("a.json", [UNKNOWN, WARNING, NOTE])], version="1.2.3")
    check_required(log)
    return log["runs"][0]


def check_required(log: dict[str, Any]) -> None:
    """What SARIF 2.1.0 requires of the parts that are used here (the numbers are its sections)."""
    assert json.loads(json.dumps(log)) == log
    assert log["version"] == "2.1.0"  # 3.13.2
    for run in log["runs"]:
        driver = run["tool"]["driver"]
        assert driver["name"]  # 3.19.8
        identifiers = [rule["id"] for rule in driver["rules"]]  # 3.49.3
        assert len(set(identifiers)) == len(identifiers)
        for invocation in run["invocations"]:
            assert isinstance(invocation["executionSuccessful"], bool)  # 3.20.14
            for notification in invocation.get("toolExecutionNotifications", []):
                assert notification["message"]["text"]  # 3.58.5
                assert notification["level"] in ("none", "note", "warning", "error")
        for result in run["results"]:
            assert result["message"]["text"]  # 3.27.11
            assert result["level"] in ("none", "note", "warning", "error")  # 3.27.10
            assert identifiers[result["ruleIndex"]] == result["ruleId"]  # 3.27.5, 3.27.6
            for location in (*result["locations"], *result.get("relatedLocations", [])):
                artifact = location["physicalLocation"]["artifactLocation"]
                assert run["artifacts"][artifact["index"]]["location"]["uri"] == artifact["uri"]  # 3.4.5
                for logical in location.get("logicalLocations", []):
                    assert logical["fullyQualifiedName"]  # 3.33.5


def test_results_say_what_the_findings_say() -> None:
    run = made()
    assert run["tool"]["driver"]["version"] == "1.2.3"
    first, second, third = run["results"]
    assert (first["ruleId"], first["level"]) == ("rank.unknown", "error")
    assert first["message"]["text"] == "task rank 7 is outside {{8}} Hint: use [0-3]"
    location = first["locations"][0]
    assert location["physicalLocation"]["artifactLocation"] == {"uri": "a.json", "index": 0}
    assert location["logicalLocations"] == [{"name": "ranks", "fullyQualifiedName": "tasks.0.ranks", "kind": "member"}]
    assert first["properties"] == {"path": ["tasks", "0", "ranks"], "subject": ["node:ab"], "hint": "use [0-3]"}
    assert first["relatedLocations"][0]["message"]["text"] == "the mesh"
    assert [second["level"], third["level"]] == ["warning", "note"]
    assert second["ruleIndex"] == third["ruleIndex"] == 1
    assert "logicalLocations" not in second["locations"][0]


def test_rules_carry_their_explanation() -> None:
    known, unknown = made()["tool"]["driver"]["rules"]
    assert known["id"] == "rank.unknown"
    assert known["fullDescription"]["text"]
    assert known["defaultConfiguration"]["level"] == "error"
    assert unknown == {"id": "made.up"}


def test_an_input_that_cannot_be_read_is_a_failure_of_the_run() -> None:
    run = made(Judged("a.json", []), Judged("b.json", [UNKNOWN], readable=False))
    assert run["results"] == []
    (invocation,) = run["invocations"]
    assert invocation["executionSuccessful"] is False
    assert invocation["toolExecutionNotifications"][0]["descriptor"] == {"id": "rank.unknown"}
    assert made(Judged("a.json", [UNKNOWN]))["invocations"] == [{"executionSuccessful": True}]


def test_a_name_cannot_smuggle_in_a_link() -> None:
    run = made(Judged("a", [Diagnostic("a.b", "value [click](http://example.invalid) is wrong")]))
    assert run["results"][0]["message"]["text"] == r"value \[click\](http://example.invalid) is wrong"


def test_a_place_in_a_text_is_a_region() -> None:
    run = made(
        Judged(
            "a.hlo",
            [Diagnostic("hlo.syntax", "no", ("line", "3", "column", "14")), Diagnostic("a.b", "no", ("line", "7"))],
        )
    )
    first, second = (result["locations"][0] for result in run["results"])
    assert first["physicalLocation"]["region"] == {"startLine": 3, "startColumn": 14}
    assert second["physicalLocation"]["region"] == {"startLine": 7}
    assert "logicalLocations" not in first


@pytest.mark.parametrize(("name", "wanted"), [("a b.json", "a%20b.json"), ("dir/x.json", "dir/x.json"), ("-", "-")])
def test_relative_paths_are_uri_references(name: str, wanted: str) -> None:
    assert uri(name) == wanted


def test_absolute_paths_have_their_scheme(tmp_path: Path) -> None:
    assert uri(str(tmp_path / "a b")).startswith("file:///")
    assert uri(str(tmp_path / "a b")).endswith("a%20b")
