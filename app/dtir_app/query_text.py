"""Reading a search: free words, ``key:value`` conditions, negation, quotes, and paths along the edges.

``kind:all_reduce axis:tp bytes>64MiB attention`` finds the all-reduces over tp that send more than 64 MiB and whose name, operation,
source or path says "attention". All must hold; commas are "or": ``kind:all_gather,reduce_scatter``. A ``-`` before a word or condition
turns it round. Quotes keep blanks together and signs plain: ``"a:b c"``.

``matmul > * > all_reduce`` finds ways along the edges: a matmul, any task that uses it, an all_reduce that uses that. ``**`` between two
tasks is any number of tasks, none too.

>>> parse("kind:all_reduce -softmax").terms
(Condition(key='kind', compare=':', value='all_reduce', negated=False), Word(text='softmax', negated=True))
>>> parse("colour:red").problem
"there is no key 'colour'; keys are kind, axis, bytes, severity, stage, microbatch, implicit, source, op, rank, state, runs, dtype, in"
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from difflib import get_close_matches
from typing import TypeAlias

from dtir_app.kinds import FAMILY_LABELS, KINDS
from dtir_app.store import SEVERITIES
from dtir_app.text import parse_bytes

KEYS = {
    "kind": "kind of task: all_reduce, all_gather, local_compute, … or a family: collective",
    "axis": "a mesh axis that a collective's groups span",
    "bytes": "message size: bytes>64MiB",
    "severity": "worst finding: error, warning, info",
    "stage": "pipeline stage: stage:1",
    "microbatch": "microbatch of a pipeline: microbatch:3",
    "implicit": "communication that no operation of the source asked for: implicit:yes",
    "source": "part of the source line",
    "op": "operation: op:dot",
    "rank": "a rank that takes part: rank:3",
    "state": "layout of an input or output: state:partial, state:replicated, state:split, state:per_rank; of one axis: state:partial@tp",
    "runs": "executions: runs>1",
    "dtype": "element type of an input or output",
    "in": "name of a region or scope",
}
"""What may stand before ``:``, and what it means."""
SIGNS_HELP = (
    ("-word  -key:value", "not that"),
    ('"two words"', "as it stands"),
    ("a,b", "one of them"),
    ("a > b", "b uses directly what a makes"),
    ("a > * > b", "any one task between"),
    ("a > ** > b", "any number of tasks between"),
)
"""The rest of the grammar, for the help."""
STATES = ("partial", "replicated", "split", "per_rank", "at", "unsaid")
NUMBERS = frozenset({"runs", "stage", "microbatch"})

_TOKEN = re.compile(r'[-!]?[^\s"]*"[^"]*(?:"|$)|\S+')
_CONDITION = re.compile(r"([a-z_]+)(>=|<=|[:=<>])(.*)", re.IGNORECASE | re.DOTALL)


@dataclass(frozen=True, slots=True)
class Word:
    """Text that must occur, in lower case; must not where `negated`."""

    text: str
    negated: bool = False


@dataclass(frozen=True, slots=True)
class Condition:
    """One ``key:value``."""

    key: str
    compare: str
    value: str
    negated: bool = False


Term: TypeAlias = Word | Condition


@dataclass(frozen=True, slots=True)
class Step:
    """One task of a path: the terms that it fulfils (none: any task), and whether any number of tasks may lie before it."""

    terms: tuple[Term, ...] = ()
    far: bool = False


@dataclass(frozen=True, slots=True)
class Query:
    """A parsed search.

    Args:
        steps: the tasks of the path; one where it is no path, none where nothing is looked for.
        problem: what is wrong with the text; empty when nothing is.
        start, stop: where in the text that is.
    """

    steps: tuple[Step, ...] = ()
    problem: str = ""
    start: int = 0
    stop: int = 0

    @property
    def empty(self) -> bool:
        return not self.steps

    @property
    def terms(self) -> tuple[Term, ...]:
        """All terms."""
        return tuple(term for step in self.steps for term in step.terms)

    @property
    def words(self) -> tuple[str, ...]:
        """The free words that must occur."""
        return tuple(term.text for term in self.terms if isinstance(term, Word) and not term.negated)


@dataclass(slots=True)
class _Reading:
    """What is being read, with the first problem."""

    axes: Sequence[str] | None
    problem: str = ""
    start: int = 0
    stop: int = 0
    steps: list[Step] = field(default_factory=list[Step])

    def wrong(self, problem: str, start: int, stop: int) -> None:
        if not self.problem:
            self.problem, self.start, self.stop = problem, start, stop


def parse(text: str, axes: Sequence[str] | None = None) -> Query:
    """Read a search; what is wrong with it is said, with its place, and finds nothing.

    Args:
        text: what a person wrote.
        axes: names of the mesh's axes, to check names against; None leaves them unchecked.
    """
    reading = _Reading(axes)
    terms: list[Term] = []
    any_task = far = arrow = False
    last = (0, 0)
    for token, start, stop in _tokens(text):
        last = (start, stop)
        if token == ">":
            if not terms and not any_task and not far:
                reading.wrong("'>' needs a task before it: a > b", start, stop)
            if terms or any_task:
                reading.steps.append(Step(tuple(terms), far))
                far = False
            terms, any_task, arrow = [], False, True
        elif token == "**":
            if not reading.steps or terms or any_task:
                reading.wrong("'**' stands alone between two '>': a > ** > b", start, stop)
            far, arrow = True, False
        elif token == "*":
            any_task, arrow = True, False
        else:
            arrow = False
            if far and not terms and reading.steps and not text[:start].rstrip().endswith(">"):
                reading.wrong("'**' stands alone between two '>': a > ** > b", start, stop)
            term = _term(reading, token, start, stop)
            if term is not None:
                terms.append(term)
    if terms or (any_task and reading.steps):
        reading.steps.append(Step(tuple(terms), far))
    elif arrow:
        reading.wrong("'>' needs a task behind it: a > b", *last)
    elif far:
        reading.wrong("'**' needs '>' and a task behind it: a > ** > b", *last)
    return Query(tuple(reading.steps), reading.problem, reading.start, reading.stop)


def _tokens(text: str) -> Iterator[tuple[str, int, int]]:
    for match in _TOKEN.finditer(text):
        yield match.group(), match.start(), match.end()


def _term(reading: _Reading, token: str, start: int, stop: int) -> Term | None:
    """One word or condition; None where it holds nothing or is wrong."""
    negated = len(token) > 1 and token[0] in "-!"
    plain = token[1:] if negated else token
    if plain.count('"') % 2:
        reading.wrong("this quote has no end", start + token.index('"'), stop)
        return None
    match = _CONDITION.fullmatch(plain)
    if plain.startswith('"') or not match:
        word = plain.replace('"', "").lower()
        return Word(word, negated) if word else None
    key, compare, value = match.group(1).lower(), match.group(2), match.group(3).replace('"', "").lower()
    if key not in KEYS:
        if compare != ":":
            return Word(plain.lower(), negated)
        close = get_close_matches(key, KEYS, 1)
        more = f"did you mean {close[0]}:?" if close else f"keys are {', '.join(KEYS)}"
        reading.wrong(f"there is no key {key!r}; {more}", start, start + negated + len(key))
        return None
    value_start = start + negated + match.start(3)
    if not value.strip(","):
        reading.wrong(f"{key}{compare} needs a value", start, stop)
        return None
    problem = _problem_of(key, compare, value, reading.axes)
    if problem:
        reading.wrong(problem, value_start, stop)
        return None
    return Condition(key, compare, value, negated)


def _problem_of(key: str, compare: str, value: str, axes: Sequence[str] | None) -> str:
    """What is wrong with a condition; empty when nothing is."""
    parts = [part for part in value.split(",") if part]
    if key == "bytes" and parse_bytes(value) is None:
        return f"{value!r} is no size; write 64KiB, 1.5MiB"
    if key in NUMBERS and not all(part.isdecimal() for part in parts):
        return f"{value!r} is no whole number"
    if key == "rank" and not all(part.isdecimal() for part in parts):
        return f"{value!r} is no whole number"
    if key != "bytes" and key not in NUMBERS and compare not in (":", "="):
        return f"{key} takes ':', not {compare!r}"
    if key in NUMBERS and compare not in (":", "=") and len(parts) > 1:
        return f"{compare} compares with one number"
    known = _known(key, axes)
    for part in parts if known is not None else ():
        name = part.partition("@")[0] if key == "state" else part
        assert known is not None
        if name.replace("-", "_").replace(" ", "_") not in known:
            return _unknown(key, name, known)
        axis = part.partition("@")[2] if key == "state" else ""
        if axis and axes is not None and axis not in {one.lower() for one in axes}:
            return _unknown("axis", axis, [one.lower() for one in axes])
    return ""


def _known(key: str, axes: Sequence[str] | None) -> list[str] | None:
    """The values that a key takes; None where any text is one."""
    match key:
        case "severity":
            return list(SEVERITIES)
        case "implicit":
            return ["yes", "no"]
        case "state":
            return list(STATES)
        case "kind":
            return [name for names in KIND_NAMES for name in names]
        case "axis" if axes is not None:
            return [axis.lower() for axis in axes]
        case _:
            return None


def _unknown(key: str, name: str, known: Sequence[str]) -> str:
    close = get_close_matches(name, known, 1)
    few = list(dict.fromkeys(known))[:12]
    return f"there is no {key} {name!r}; " + (
        f"did you mean {close[0]}?" if close else f"{key} is one of {', '.join(few)}"
    )


KIND_NAMES: tuple[tuple[str, ...], ...] = tuple(
    (
        kind.name,
        kind.code.lower(),
        kind.label.replace("-", "_").replace(" ", "_"),
        FAMILY_LABELS[kind.family].replace(" ", "_"),
    )
    for kind in KINDS
)
"""Of every kind, the names that it goes by: its own, its code, its label, its family's."""
