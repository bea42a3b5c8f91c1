"""Diagnostics: findings about a program, collected and returned, never raised one by one.

A diagnostic has a stable dotted code, a severity, one terse message with the numbers found and wanted, the path to the
narrowest thing it is about, the ids of what it concerns, related places, and a hint that says how to mend it.

>>> bag = DiagnosticBag()
>>> bag.error("rank.unknown", "task rank 7 is outside the logical mesh", "tasks", "0", "ranks")
>>> bag.report().of_code("rank.unknown")[0].render()
'[rank.unknown] tasks.0.ranks: task rank 7 is outside the logical mesh'
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field, replace
from enum import Enum

from dtir.schema.display import Displayed
from dtir.schema.errors import SchemaError


class Severity(Enum):
    """How bad a finding is; only `ERROR` makes a program invalid."""

    ERROR = "error"
    WARNING = "warning"
    INFO = "info"

    def __lt__(self, other: Severity) -> bool:
        return _SEVERITY_ORDER[self] < _SEVERITY_ORDER[other]


_SEVERITY_ORDER = {Severity.ERROR: 0, Severity.WARNING: 1, Severity.INFO: 2}


def _require_text(value: object, what: str) -> None:
    if not isinstance(value, str) or not value:
        raise ValueError(f"{what} must be a non-empty string, got {value!r}")


@dataclass(frozen=True, slots=True, order=True)
class Related:
    """A second place that a finding speaks of, with a short label ("the other send")."""

    label: str
    path: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        _require_text(self.label, "related label")
        object.__setattr__(self, "path", tuple(self.path))


@dataclass(frozen=True, slots=True, order=True)
class Diagnostic:
    """One finding.

    Args:
        code: stable dotted lower-case code, for example ``rank.unknown``.
        message: one terse sentence with what was found and what was wanted.
        path: where, as keys and indices from the program's root; empty means the whole program.
        severity: `Severity.ERROR` unless said otherwise.
        hint: how to mend it.
        subject: display ids of what the finding is about (``task:...``, ``value:...``, an axis or dim name).
        related: further places, each with a label.

    Raises:
        ValueError: code, message, hint or a path item is empty or not a string.
    """

    code: str
    message: str
    path: tuple[str, ...] = ()
    severity: Severity = Severity.ERROR
    hint: str | None = None
    subject: tuple[str, ...] = ()
    related: tuple[Related, ...] = ()

    def __post_init__(self) -> None:
        _require_text(self.code, "diagnostic code")
        _require_text(self.message, "diagnostic message")
        if self.hint is not None:
            _require_text(self.hint, "diagnostic hint")
        for name in ("path", "subject"):
            items = tuple(getattr(self, name))
            for item in items:
                _require_text(item, f"diagnostic {name} item")
            object.__setattr__(self, name, items)
        object.__setattr__(self, "related", tuple(self.related))

    def prefixed(self, *path: str) -> Diagnostic:
        """The same finding seen from a root that lies `path` above."""
        related = tuple(replace(item, path=(*path, *item.path)) for item in self.related)
        return replace(self, path=(*path, *self.path), related=related)

    def render(self) -> str:
        """One line: ``[code] a.b.c: message Hint: hint``; an empty path reads ``<root>``."""
        text = f"[{self.code}] {'.'.join(self.path) or '<root>'}: {self.message}"
        return f"{text} Hint: {self.hint}" if self.hint else text


@dataclass(frozen=True, slots=True)
class DiagnosticSet:
    """Findings in the order in which they were made; nothing is sorted or merged."""

    diagnostics: tuple[Diagnostic, ...] = ()

    def __post_init__(self) -> None:
        object.__setattr__(self, "diagnostics", tuple(self.diagnostics))

    @classmethod
    def of(cls, *diagnostics: Diagnostic) -> DiagnosticSet:
        return cls(diagnostics)

    def __iter__(self) -> Iterator[Diagnostic]:
        return iter(self.diagnostics)

    def __len__(self) -> int:
        return len(self.diagnostics)

    def __bool__(self) -> bool:
        """A set is true when it holds a finding (`ok` says whether one of them is an error)."""
        return bool(self.diagnostics)

    @property
    def errors(self) -> tuple[Diagnostic, ...]:
        return tuple(item for item in self.diagnostics if item.severity is Severity.ERROR)

    @property
    def warnings(self) -> tuple[Diagnostic, ...]:
        return tuple(item for item in self.diagnostics if item.severity is Severity.WARNING)

    @property
    def infos(self) -> tuple[Diagnostic, ...]:
        return tuple(item for item in self.diagnostics if item.severity is Severity.INFO)

    @property
    def ok(self) -> bool:
        """True when no finding is an error."""
        return not any(item.severity is Severity.ERROR for item in self.diagnostics)

    def of_code(self, code: str) -> tuple[Diagnostic, ...]:
        return tuple(item for item in self.diagnostics if item.code == code)

    def extend(self, other: Iterable[Diagnostic]) -> DiagnosticSet:
        return type(self)((*self.diagnostics, *other))

    def prefixed(self, *path: str) -> DiagnosticSet:
        return type(self)(tuple(item.prefixed(*path) for item in self.diagnostics))


EMPTY_DIAGNOSTICS = DiagnosticSet()


class VerificationReport(DiagnosticSet, Displayed):
    """What a verifier found about one program."""

    __slots__ = ()

    def require_ok(self, subject: str = "IR") -> None:
        """Raise when a finding is an error.

        Raises:
            IRVerificationError: with every error of the report, one a line.
        """
        if not self.ok:
            raise IRVerificationError(subject, self)


@dataclass(slots=True)
class DiagnosticBag:
    """Collects findings while a check runs; the only mutable thing here."""

    _items: list[Diagnostic] = field(default_factory=list[Diagnostic])

    def add(self, diagnostic: Diagnostic) -> None:
        self._items.append(diagnostic)

    def extend(self, diagnostics: Iterable[Diagnostic]) -> None:
        self._items.extend(diagnostics)

    def error(
        self,
        code: str,
        message: str,
        *path: str,
        hint: str | None = None,
        subject: tuple[str, ...] = (),
        related: tuple[Related, ...] = (),
    ) -> None:
        self._items.append(Diagnostic(code, message, path, Severity.ERROR, hint, subject, related))

    def warning(
        self,
        code: str,
        message: str,
        *path: str,
        hint: str | None = None,
        subject: tuple[str, ...] = (),
        related: tuple[Related, ...] = (),
    ) -> None:
        self._items.append(Diagnostic(code, message, path, Severity.WARNING, hint, subject, related))

    def info(
        self,
        code: str,
        message: str,
        *path: str,
        hint: str | None = None,
        subject: tuple[str, ...] = (),
        related: tuple[Related, ...] = (),
    ) -> None:
        self._items.append(Diagnostic(code, message, path, Severity.INFO, hint, subject, related))

    def __len__(self) -> int:
        return len(self._items)

    def report(self) -> VerificationReport:
        return VerificationReport(tuple(self._items))


def _rendered(diagnostics: Iterable[Diagnostic]) -> str:
    return "".join(f"\n  - {item.render()}" for item in diagnostics)


class DiagnosticError(SchemaError, ValueError):
    """Findings turned into an exception, for callers who asked for a value or nothing."""

    def __init__(self, diagnostics: Iterable[Diagnostic], subject: str = "dtir contract") -> None:
        self.diagnostics = DiagnosticSet(tuple(diagnostics))
        self.subject = subject
        super().__init__(f"{subject} failed:{_rendered(self.diagnostics)}")


class IRVerificationError(SchemaError, ValueError):
    """A program was required to be valid and is not; `diagnostics` says why."""

    def __init__(self, subject: str, diagnostics: Iterable[Diagnostic]) -> None:
        self.subject = subject
        self.diagnostics = DiagnosticSet(tuple(diagnostics))
        super().__init__(f"{subject} verification failed:{_rendered(self.diagnostics)}")
