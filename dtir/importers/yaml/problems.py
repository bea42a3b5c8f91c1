"""Collects what is wrong with YAML documents: code, message, document, key path and line, bounded in number."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from difflib import get_close_matches

from dtir.schema.diagnostics import Diagnostic, DiagnosticSet, Severity

MOST_FINDINGS = 1000
"""Findings kept of one file; the number of further ones is said."""


@dataclass(slots=True)
class Problems:
    """What was found so far; `document` is the number, from 0, of the document being read."""

    document: int = 0
    omitted: int = 0
    _found: list[Diagnostic] = field(default_factory=list[Diagnostic])

    def add(
        self, severity: Severity, code: str, message: str, path: tuple[str, ...], line: int, hint: str | None
    ) -> None:
        if len(self._found) >= MOST_FINDINGS:
            self.omitted += 1
            return
        where = f"line {line}: " if line else ""
        keys = tuple(key or "''" for key in path)
        self._found.append(Diagnostic(code, where + message, ("documents", str(self.document), *keys), severity, hint))

    def error(self, code: str, message: str, path: tuple[str, ...], line: int, hint: str | None = None) -> None:
        self.add(Severity.ERROR, code, message, path, line, hint)

    def warning(self, code: str, message: str, path: tuple[str, ...], line: int, hint: str | None = None) -> None:
        self.add(Severity.WARNING, code, message, path, line, hint)

    def errors(self) -> int:
        """Number of errors so far."""
        return sum(item.severity is Severity.ERROR for item in self._found)

    def report(self) -> DiagnosticSet:
        """All findings in the order in which they were made."""
        if not self.omitted:
            return DiagnosticSet(tuple(self._found))
        more = Diagnostic("yaml.limit", f"{self.omitted} further findings are not listed (limit {MOST_FINDINGS})",
                          hint="mend the first ones and read the file again")  # fmt: skip
        return DiagnosticSet((*self._found, more))

    def by_document(self) -> dict[int, DiagnosticSet]:
        """The findings of each document that has some, by its number."""
        found: dict[int, list[Diagnostic]] = {}
        for item in self.report():
            found.setdefault(int(item.path[1]) if item.path else self.document, []).append(item)
        return {number: DiagnosticSet(tuple(items)) for number, items in found.items()}


def did_you_mean(word: str, known: Iterable[str], alike: float = 0.6) -> str | None:
    """The known word that reads most like a mistyped one, if any is alike enough."""
    # difflib is quadratic in the length of a word, and a file chooses it.
    close = get_close_matches(word, list(known), n=1, cutoff=alike) if len(word) <= 64 else []
    return close[0] if close else None


def suggestion(word: str, known: Iterable[str]) -> str:
    """A hint for a mistyped word: the close one, or all."""
    words = list(known)
    close = did_you_mean(word, words)
    if close:
        return f"did you mean {close}?"
    return f"known here: {', '.join(words[:40])}" + (", ..." if len(words) > 40 else "")
