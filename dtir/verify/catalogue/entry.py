"""One row of the table of codes: what the code means, two small programs that show it, and how it is drawn."""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum

from dtir.schema.catalogue import CODE
from dtir.schema.diagnostics import Severity

WARNING = Severity.WARNING


class Judge(Enum):
    """Who can see the fault."""

    STATIC = "static"
    ISSUE = "static+issue"
    BOTH = "both"
    VALUE = "value"


@dataclass(frozen=True, slots=True)
class Entry:
    """One code.

    Args:
        code: the code.
        judge: who can see it: the static judge alone, with issue lists, both judges, the value-level judge alone.
        name: what is wrong, in a few words.
        why: what goes wrong because of it.
        bad: a program in the authoring form that is reported with this code.
        good: the same program put right; it is not.
        hint: what to do, in one line.
        cue: which picture of the explorer shows it.
        severity: of the findings.

    Raises:
        ValueError: a text is empty, or the code does not follow the grammar.
    """

    code: str
    judge: Judge
    name: str
    why: str
    bad: str
    good: str
    hint: str
    cue: str
    severity: Severity = Severity.ERROR

    def __post_init__(self) -> None:
        if not CODE.fullmatch(self.code):
            raise ValueError(f"code={self.code!r} (str) is not dotted lower-case text")
        for field in ("name", "why", "bad", "good", "hint", "cue"):
            if not str(getattr(self, field)).strip():
                raise ValueError(f"{field} of {self.code} is empty")


def document(body: str, name: str = "example") -> str:
    """A program of the table as a whole document of the authoring form."""
    return f"schema: dtir-program/1\nname: {name}\n{body.strip()}\n"


def mend(text: str, *changes: tuple[str, str]) -> str:
    """A program with some lines put right.

    Raises:
        ValueError: a text that is to be replaced does not stand there exactly once.
    """
    for old, new in changes:
        if text.count(old) != 1:
            raise ValueError(f"{old!r} stands {text.count(old)} times in the example, wanted once")
        text = text.replace(old, new)
    return text
