"""Verdicts of the value-level judge on one program, with repairs made one after the other; each is computed once."""

from __future__ import annotations

from collections.abc import Sequence

from dtir.ir.program import DistributedTaskIR
from dtir.verify.value import Repair, ValueVerdict, judge_values

MOST_TASKS = 20_000
"""Tasks of a program that is judged by its values from the explorer."""

MOST_REPAIRS = 8
"""Repairs that are made one after the other."""

Made = tuple[str, ...]
"""The repairs that were made, in words and in order."""


class Verdicts:
    """What the judge says of one program; `judge` may run in another thread."""

    def __init__(self, program: DistributedTaskIR) -> None:
        self._program = program
        self._known: dict[Made, ValueVerdict] = {}

    @property
    def too_large(self) -> bool:
        return len(self._program.tasks) > MOST_TASKS

    def known(self, made: Made) -> ValueVerdict | None:
        """A verdict that is there already."""
        return self._known.get(made)

    def judge(self, made: Made = ()) -> ValueVerdict:
        """The verdict on the program with some repairs made.

        Raises:
            KeyError: a repair that no verdict before it proposed.
        """
        if made not in self._known:
            self._known[made] = judge_values(self._program, repairs=self._repairs(made))
        return self._known[made]

    def _repairs(self, made: Made) -> Sequence[Repair]:
        found: list[Repair] = []
        for count, text in enumerate(made[:MOST_REPAIRS]):
            self.judge(made[:count])
            found.append(self.offered(made[:count])[text])
        return found

    def offered(self, made: Made) -> dict[str, Repair]:
        """The repairs that a verdict proposes, by their words; none while it is not there."""
        verdict = self._known.get(made)
        return {item.text: item for bad in verdict.bad for item in bad.repairs} if verdict is not None else {}
