"""Findings, sets of findings, and the errors they become."""

from __future__ import annotations

from typing import Any

import pytest

from dtir.schema import (
    EMPTY_DIAGNOSTICS,
    Diagnostic,
    DiagnosticBag,
    DiagnosticError,
    DiagnosticSet,
    IRVerificationError,
    Related,
    SchemaError,
    Severity,
    VerificationReport,
)

ERROR = Diagnostic("a.error", "wrong", ("tasks", "0"), hint="mend it", subject=("node:1",))
WARNING = Diagnostic("a.warning", "odd", severity=Severity.WARNING)
INFO = Diagnostic("a.info", "note", severity=Severity.INFO)


def test_a_finding_has_sensible_defaults() -> None:
    found = Diagnostic("a.b", "wrong")
    assert (found.path, found.severity, found.hint, found.subject, found.related) == ((), Severity.ERROR, None, (), ())
    assert Severity("error") is Severity.ERROR
    assert [item.value for item in sorted(Severity, reverse=True)] == ["info", "warning", "error"]


@pytest.mark.parametrize(
    "fields",
    [
        {"code": ""},
        {"message": ""},
        {"hint": ""},
        {"path": ("a", "")},
        {"path": ("a", 3)},
        {"subject": ("",)},
        {"code": None},
        {"message": 3},
    ],
    ids=str,
)
def test_texts_are_not_empty(fields: dict[str, Any]) -> None:
    with pytest.raises(ValueError, match="must be a non-empty string"):
        Diagnostic(**{"code": "a.b", "message": "wrong", **fields})
    with pytest.raises(ValueError, match="related label"):
        Related("")


def test_it_renders_in_one_line() -> None:
    assert ERROR.render() == "[a.error] tasks.0: wrong Hint: mend it"
    assert WARNING.render() == "[a.warning] <root>: odd"


def test_prefixed_moves_the_root() -> None:
    found = Diagnostic("a.b", "x", ("ranks",), related=(Related("the other", ("id",)),)).prefixed("tasks", "3")
    assert found.path == ("tasks", "3", "ranks")
    assert found.related[0].path == ("tasks", "3", "id")
    assert DiagnosticSet.of(ERROR, WARNING).prefixed("p").diagnostics[1].path == ("p",)


def test_findings_are_ordered_and_hashable() -> None:
    assert Diagnostic("a.a", "z") < Diagnostic("a.b", "a")
    assert len({ERROR, ERROR, WARNING}) == 2


def test_a_set_keeps_order_and_repetitions() -> None:
    found = DiagnosticSet.of(WARNING, ERROR, WARNING, INFO)
    assert list(found) == [WARNING, ERROR, WARNING, INFO]
    assert len(found) == 4
    assert (found.errors, found.warnings, found.infos) == ((ERROR,), (WARNING, WARNING), (INFO,))
    assert not found.ok
    assert DiagnosticSet.of(WARNING, INFO).ok
    assert found.of_code("a.warning") == (WARNING, WARNING)
    assert list(EMPTY_DIAGNOSTICS.extend([ERROR])) == [ERROR]
    assert EMPTY_DIAGNOSTICS.ok
    assert not EMPTY_DIAGNOSTICS
    assert bool(DiagnosticSet.of(INFO))
    made: Any = DiagnosticSet([ERROR])  # type: ignore[arg-type]
    assert made.diagnostics == (ERROR,)


def test_a_bag_collects() -> None:
    bag = DiagnosticBag()
    bag.error("a.error", "wrong", "tasks", "0", hint="mend it", subject=("node:1",))
    bag.warning("a.warning", "odd")
    bag.info("a.info", "note")
    bag.add(ERROR)
    bag.extend([WARNING, INFO])
    assert len(bag) == 6
    report = bag.report()
    assert isinstance(report, VerificationReport)
    assert list(report) == [ERROR, WARNING, INFO, ERROR, WARNING, INFO]
    assert isinstance(report.extend([]), VerificationReport)


def test_a_report_can_be_required_to_be_fine() -> None:
    VerificationReport((WARNING,)).require_ok()
    with pytest.raises(IRVerificationError) as caught:
        VerificationReport((WARNING, ERROR)).require_ok("Thing")
    assert caught.value.subject == "Thing"
    assert list(caught.value.diagnostics) == [WARNING, ERROR]
    assert str(caught.value) == (
        "Thing verification failed:\n  - [a.warning] <root>: odd\n  - [a.error] tasks.0: wrong Hint: mend it"
    )
    assert isinstance(caught.value, (SchemaError, ValueError))


def test_findings_as_an_error() -> None:
    error = DiagnosticError(DiagnosticSet.of(ERROR), "Contract")
    assert str(error) == "Contract failed:\n  - [a.error] tasks.0: wrong Hint: mend it"
    assert isinstance(error, ValueError)
    assert list(error.diagnostics) == [ERROR]
