"""`Ok` and `Err`."""

from __future__ import annotations

from typing import Any

import pytest

from dtir.schema import Diagnostic, DiagnosticError, DiagnosticSet, Err, Ok, Severity, checked, collect_results

ERROR = DiagnosticSet.of(Diagnostic("a.error", "wrong"))
WARNING = DiagnosticSet.of(Diagnostic("a.warning", "odd", severity=Severity.WARNING))
OTHER = DiagnosticSet.of(Diagnostic("b.warning", "odd too", severity=Severity.WARNING))


def test_which_is_which() -> None:
    assert (Ok(1).is_ok, Ok(1).is_err, Err(ERROR).is_ok, Err(ERROR).is_err) == (True, False, False, True)
    assert not hasattr(Ok(1), "error")
    assert not hasattr(Err(ERROR), "value")


def test_ok_holds_no_error_and_err_needs_one() -> None:
    with pytest.raises(ValueError, match="Ok cannot carry error diagnostics"):
        Ok(1, ERROR)
    with pytest.raises(ValueError, match="Err requires at least one error"):
        Err(WARNING)
    assert Ok(1, WARNING).diagnostics == WARNING
    assert Err("anything").error == "anything"


def test_map() -> None:
    assert Ok(1, WARNING).map(lambda n: n + 1) == Ok(2, WARNING)
    assert Err(ERROR).map(lambda n: n + 1) == Err(ERROR)
    assert Ok(1).map_error(str) == Ok(1)
    assert Err(3).map_error(str) == Err("3")


def test_and_then_puts_earlier_warnings_first() -> None:
    following: Any = lambda value: Ok(value + 1, OTHER)  # noqa: E731
    assert Ok(1, WARNING).and_then(following) == Ok(2, WARNING.extend(OTHER))
    assert Ok(1).and_then(following) == Ok(2, OTHER)
    failing: Any = lambda _: Err(ERROR)  # noqa: E731
    assert Ok(1, WARNING).and_then(failing) == Err(WARNING.extend(ERROR))
    assert Ok(1, WARNING).and_then(lambda _: Err("text")) == Err("text")
    assert Err(ERROR).and_then(failing) == Err(ERROR)


def test_or_raise() -> None:
    assert Ok(1).or_raise() == 1
    assert Ok(1).or_raise(KeyError) == 1
    with pytest.raises(DiagnosticError, match=r"a\.error"):
        Err(ERROR).or_raise()
    with pytest.raises(RuntimeError, match="text"):
        Err("text").or_raise()
    with pytest.raises(KeyError):
        Err(ERROR).or_raise(KeyError)


def test_checked_and_collected() -> None:
    assert checked(1, WARNING) == Ok(1, WARNING)
    assert checked(1, ERROR) == Err(ERROR)
    assert collect_results([]) == Ok(())
    assert collect_results([Ok(1, WARNING), Ok(2)]) == Ok((1, 2), WARNING)
    assert collect_results([Ok(1, WARNING), Err(ERROR), Ok(2, OTHER)]) == Err(WARNING.extend(ERROR).extend(OTHER))


def test_they_are_matched_by_class() -> None:
    match checked("x", WARNING):
        case Ok(value, diagnostics):
            assert (value, diagnostics) == ("x", WARNING)
        case Err():
            pytest.fail("it is Ok")
