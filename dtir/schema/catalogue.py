"""What a diagnostic code means: one entry per code, kept beside the code that reports it.

Every layer that reports findings has a module ``codes`` with a tuple ``CODES``; `dtir.explain` gathers them. A test
fails when a code of the source has no entry.

>>> CodeEntry("demo.size", "Two sizes differ.", "a[4] + b[5]", "a[4] + b[4]", "make them equal").severity.value
'error'
"""

from __future__ import annotations

import re
from dataclasses import dataclass

from dtir.schema.diagnostics import Severity

CODE = re.compile(r"[a-z][a-z0-9_]*(?:\.[a-z][a-z0-9_]*)+")
"""The grammar of codes: dotted, lower case, at least two words."""


@dataclass(frozen=True, slots=True)
class CodeEntry:
    """The explanation of one code.

    Args:
        code: the code, for example ``rank.unknown``.
        why: what is wrong and what goes wrong because of it.
        bad: a short example that is reported.
        good: the same example put right.
        hint: what to do, in one line.
        severity: the severity it is reported with (the highest, where several are possible).

    Raises:
        ValueError: the code does not follow the grammar, or a text is empty.
    """

    code: str
    why: str
    bad: str
    good: str
    hint: str
    severity: Severity = Severity.ERROR

    def __post_init__(self) -> None:
        if not CODE.fullmatch(self.code):
            raise ValueError(f"code={self.code!r} (str) is not dotted lower-case text")
        for name in ("why", "bad", "good", "hint"):
            if not str(getattr(self, name)).strip():
                raise ValueError(f"{name} of {self.code} is empty")
