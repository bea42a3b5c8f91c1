"""Small programs for tests of the verifier: written as one would note them, judged, and their codes compared.

A case reads::

    == a name for it
    -> partial.dropped
    mesh [dp, 2], [tp, 3]
    limits: {inflight: 2}
    values
      x [6, 4] dims: [[dp], []]
    tasks
      s: sum x -> g, dims: [0]
      r: ar g -> y, axes: [dp], reduction: sum
    in x
    out y

with the expected codes after the arrow (``clean`` for none), any further keys of the authoring form after the mesh, and
short words for collectives: ``ar rs ag a2a bc p2p reshard control``. A task without an arrow stands as in the form.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from dtir.importers.yaml import read_programs
from dtir.ir.program import DistributedTaskIR
from dtir.schema.diagnostics import VerificationReport
from dtir.verify import Mode, Strictness, verify
from dtir.verify.catalogue import document

SHORT = {
    "ar": "kind: collective, coll: all_reduce",
    "rs": "kind: collective, coll: reduce_scatter",
    "ag": "kind: collective, coll: all_gather",
    "a2a": "kind: collective, coll: all_to_all",
    "bc": "kind: collective, coll: broadcast",
    "p2p": "kind: p2p",
    "reshard": "kind: reshard",
    "control": "kind: control",
}


@dataclass(frozen=True)
class Case:
    """One program and the codes it is expected to have."""

    name: str
    expected: tuple[str, ...]
    text: str

    def program(self) -> DistributedTaskIR:
        return program(self.text)


def read_cases(path: Path) -> list[Case]:
    """The cases of a file.

    Raises:
        ValueError: a case lacks its line of codes, or two have one name.
    """
    found: list[Case] = []
    for block in path.read_text().split("\n== ")[0:]:
        name, _, rest = block.removeprefix("== ").partition("\n")
        arrow, _, body = rest.partition("\n")
        if not arrow.startswith("-> "):
            raise ValueError(f"{path.name}: {name!r} does not say which codes it has")
        codes = tuple(sorted(code.strip() for code in arrow[3:].split(",") if code.strip() != "clean"))
        found.append(Case(name, codes, sketch(body)))
    names = [case.name for case in found]
    if len(set(names)) != len(names):
        raise ValueError(f"{path.name}: a name stands twice")
    return found


def sketch(text: str) -> str:
    """A sketched program in the authoring form, without schema and name."""
    head: list[str] = []
    values: list[str] = []
    tasks: list[str] = []
    ends = {"in": "", "out": ""}
    section = head
    for line in text.strip().splitlines():
        word, _, rest = line.strip().partition(" ")
        if line.strip() == "values":
            section = values
        elif line.strip() == "tasks":
            section = tasks
        elif not line.startswith(" ") and word in ends:
            ends[word] = rest
        elif not line.startswith(" ") and word == "mesh":
            head.append(f"mesh: {{axes: [{rest}]}}")
        elif section is values:
            values.append(_value(line.strip()))
        elif section is tasks:
            tasks.append(_task(line.strip()))
        else:
            head.append(line)
    parts = [*head, "values:", *values, "tasks:", *tasks, f"inputs: [{ends['in']}]", f"outputs: [{ends['out']}]"]
    return "\n".join(parts)


def _value(line: str) -> str:
    name, _, rest = line.partition(" ")
    shape, _, more = rest.partition("]")
    return f"- {{id: {name}, shape: {shape}]{', ' + more.strip() if more.strip() else ''}}}"


def _task(line: str) -> str:
    name, _, rest = line.partition(":")
    head, arrow, tail = rest.strip().partition("->")
    if not arrow or rest.strip().startswith("kind:"):
        return f"- {{id: {name}, {rest.strip()}}}"
    word, *names = head.replace(",", " ").split()
    out, _, more = tail.strip().partition(",")
    kind = SHORT.get(word, f"kind: local, op: {word}")
    keys = f", {more.strip()}" if more.strip() else ""
    return f"- {{id: {name}, {kind}, in: [{', '.join(names)}], out: [{out.strip()}]{keys}}}"


def program(text: str) -> DistributedTaskIR:
    """The program of a text without schema and name.

    Raises:
        AssertionError: it cannot be read.
    """
    (read,) = read_programs(document(text))
    assert read.program is not None, [item.render() for item in read.diagnostics]
    return read.program


def judged(
    text: str | DistributedTaskIR,
    *,
    judges: Sequence[str] = ("structure", "static"),
    mode: Mode | None = None,
    strictness: Strictness = "nccl",
) -> VerificationReport:
    """The report on a program or its text."""
    return verify(program(text) if isinstance(text, str) else text, judges=judges, mode=mode, strictness=strictness)


def codes(
    text: str | DistributedTaskIR, *, mode: Mode | None = None, strictness: Strictness = "nccl"
) -> tuple[str, ...]:
    """The codes found, each once, sorted."""
    return tuple(sorted({item.code for item in judged(text, mode=mode, strictness=strictness)}))
