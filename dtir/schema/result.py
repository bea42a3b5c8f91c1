"""`Ok` and `Err`: a value with warnings, or the reasons why there is none.

`Checked[T]` is `Ok[T] | Err`. An `Ok` may carry warnings but no errors; an `Err` carries at least one error. Match on
the class, or use the methods:

>>> from dtir.schema.diagnostics import Diagnostic, DiagnosticSet
>>> Ok(2).map(lambda n: n + 1).value
3
>>> Err(DiagnosticSet.of(Diagnostic("input.empty", "the file is empty"))).is_ok
False
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Generic, NoReturn, TypeAlias, TypeVar, cast

from dtir.schema.diagnostics import EMPTY_DIAGNOSTICS, DiagnosticError, DiagnosticSet

T = TypeVar("T", covariant=True)
E = TypeVar("E", covariant=True)
U = TypeVar("U")
F = TypeVar("F")


@dataclass(frozen=True, slots=True)
class Ok(Generic[T]):
    """A value, with the warnings found on the way.

    Raises:
        ValueError: `diagnostics` holds an error.
    """

    value: T
    diagnostics: DiagnosticSet = EMPTY_DIAGNOSTICS

    def __post_init__(self) -> None:
        if not self.diagnostics.ok:
            raise ValueError("Ok cannot carry error diagnostics")

    @property
    def is_ok(self) -> bool:
        return True

    @property
    def is_err(self) -> bool:
        return False

    def map(self, function: Callable[[T], U]) -> Ok[U]:
        return Ok(function(self.value), self.diagnostics)

    def map_error(self, function: Callable[..., object]) -> Ok[T]:
        del function
        return self

    def and_then(self, function: Callable[[T], Result[U, F]]) -> Result[U, F]:
        """Go on with `function(value)`; earlier warnings come first in what it returns."""
        following = function(self.value)
        if not self.diagnostics:
            return following
        match following:
            case Ok(value, diagnostics):
                return Ok(value, self.diagnostics.extend(diagnostics))
            case Err(error):
                if isinstance(error, DiagnosticSet):
                    return cast("Err[F]", Err(self.diagnostics.extend(error)))
                return following

    def or_raise(self, factory: Callable[..., BaseException] | None = None) -> T:
        del factory
        return self.value


@dataclass(frozen=True, slots=True)
class Err(Generic[E]):
    """Why there is no value; usually a `DiagnosticSet` with at least one error.

    Raises:
        ValueError: `error` is a `DiagnosticSet` without errors.
    """

    error: E

    def __post_init__(self) -> None:
        if isinstance(self.error, DiagnosticSet) and self.error.ok:
            raise ValueError("Err requires at least one error diagnostic")

    @property
    def is_ok(self) -> bool:
        return False

    @property
    def is_err(self) -> bool:
        return True

    def map(self, function: Callable[..., object]) -> Err[E]:
        del function
        return self

    def map_error(self, function: Callable[[E], F]) -> Err[F]:
        return Err(function(self.error))

    def and_then(self, function: Callable[..., object]) -> Err[E]:
        del function
        return self

    def or_raise(self, factory: Callable[[E], BaseException] | None = None) -> NoReturn:
        """Raise `factory(error)`, else `DiagnosticError` for diagnostics, else `RuntimeError`."""
        if factory is not None:
            raise factory(self.error)
        if isinstance(self.error, DiagnosticSet):
            raise DiagnosticError(self.error)
        raise RuntimeError(str(self.error))


Result: TypeAlias = Ok[T] | Err[E]
Checked: TypeAlias = Ok[T] | Err[DiagnosticSet]


def checked(value: U, diagnostics: DiagnosticSet) -> Checked[U]:
    """`Ok(value, warnings)` when no diagnostic is an error, else `Err` with all of them."""
    return Ok(value, diagnostics) if diagnostics.ok else Err(diagnostics)


def collect_results(results: Iterable[Checked[U]]) -> Checked[tuple[U, ...]]:
    """All values, or every warning and failure of the sequence, in order."""
    values: list[U] = []
    diagnostics = EMPTY_DIAGNOSTICS
    for result in results:
        match result:
            case Ok(value, warnings):
                values.append(value)
                diagnostics = diagnostics.extend(warnings)
            case Err(error):
                diagnostics = diagnostics.extend(error)
    return checked(tuple(values), diagnostics)
