"""The verifier against itself: both judges on every mutant of correct programs.

The judges share no rule code, so that agreement on mutants is the strongest cheap test of either. A mutant that neither reports
must be one that changes nothing that is used; a mutant that only one reports is a disagreement, unless

* the static judge alone reports, with codes that no value can show (order, bytes, contracts of outputs, ...);
* the value judge alone reports, at a value that no output depends on, or behind per-rank data, of which the static judge promises
  nothing (SEMANTICS 2.7).
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
import yaml

from dtir.importers.yaml import read_programs
from dtir.ir import DistributedTaskIR, ValueId
from dtir.schema import Diagnostic, Severity
from dtir.verify import verify
from dtir.verify.catalogue import TABLE
from dtir.verify.catalogue.entry import Judge
from dtir.verify.value import ValueVerdict, judge_values
from tests.helpers.mutate import Mutant, mutants

OWN = Path(__file__).parent / "programs" / "corrected.dtir.yaml"
KEYS = ("mesh", "values", "tasks", "inputs", "outputs", "oracle", "assume", "bind")

STATIC_ONLY = frozenset(entry.code for entry in TABLE if entry.judge in (Judge.STATIC, Judge.ISSUE))
"""Codes of the static judge that no value shows."""


@dataclass(frozen=True)
class Outcome:
    program: str
    mutant: Mutant
    static: tuple[Diagnostic, ...]
    value: ValueVerdict
    verdict: str

    def words(self) -> str:
        codes = sorted({item.code for item in self.static}) + sorted({item.code for item in self.value.diagnostics})
        return f"{self.program}: {self.mutant.what} ({self.mutant.kind}): {self.verdict}; {', '.join(codes)}"


def depends_on(program: DistributedTaskIR, identifiers: set[ValueId], *, forward: bool) -> set[ValueId]:
    """Values that depend on some values, or (not forward) that they depend on; these among them."""
    found = set(identifiers)
    for task in program.tasks if forward else reversed(program.tasks):
        sources, results = (task.inputs, task.outputs) if forward else (task.outputs, task.inputs)
        if found & set(sources):
            found.update(results)
    return found


def outcome(name: str, mutant: Mutant) -> Outcome | None:
    """What both judges say of a mutant; None when it is no program."""
    (read,) = read_programs(yaml.safe_dump(mutant.document, sort_keys=False))
    program = read.program
    if program is None:
        return None
    static = tuple(verify(program, judges=("structure", "static")))
    errors = [item for item in static if item.severity is Severity.ERROR]
    value = judge_values(program)
    if value.ok:
        if not errors:
            verdict = "equivalent"
        else:
            verdict = "static only" if {item.code for item in errors} <= STATIC_ONLY else "DISAGREE: static alone"
    elif any(item.severity is not Severity.INFO for item in static):
        verdict = "both"
    else:
        bad = {item.value for item in value.bad}
        varying = {item.id for item in program.values if item.sharding.varying}
        if not depends_on(program, bad, forward=True) & set(program.outputs):
            verdict = "unused"
        elif varying & depends_on(program, bad, forward=False):
            verdict = "per-rank data"
        else:
            verdict = "DISAGREE: value alone"
    return Outcome(name, mutant, static, value, verdict)


def own_programs() -> Iterator[dict[str, Any]]:
    yield from yaml.safe_load_all(OWN.read_text(encoding="utf-8"))


def corrected_entries(shared_data: Path) -> Iterator[dict[str, Any]]:
    for entry in yaml.safe_load((shared_data / "bug_corpus.yaml").read_text(encoding="utf-8"))["entries"]:
        fixed = {**entry, **entry.get("fixed_variant", {})}
        yield {"schema": "dtir-program/1", "name": entry["id"], **{key: fixed[key] for key in KEYS if key in fixed}}


def table(outcomes: list[Outcome]) -> str:
    """Counts by kind of mutant and verdict."""
    verdicts = (
        "both",
        "static only",
        "unused",
        "per-rank data",
        "equivalent",
        "DISAGREE: static alone",
        "DISAGREE: value alone",
    )
    counts = Counter((item.mutant.kind, item.verdict) for item in outcomes)
    kinds = sorted({item.mutant.kind for item in outcomes})
    lines = [f"{'mutants':<12}" + "".join(f"{name:>24}" for name in verdicts)]
    for kind in kinds:
        lines.append(f"{kind:<12}" + "".join(f"{counts[kind, name]:>24}" for name in verdicts))
    total = Counter(item.verdict for item in outcomes)
    lines.append(f"{'all':<12}" + "".join(f"{total[name]:>24}" for name in verdicts))
    return "\n".join(lines)


def study(programs: Iterator[dict[str, Any]]) -> list[Outcome]:
    found = [outcome(document["name"], mutant) for document in programs for mutant in mutants(document)]
    outcomes = [item for item in found if item is not None]
    print()
    print(table(outcomes))
    for item in outcomes:
        if item.verdict not in ("both", "static only"):
            print("  ", item.words())
    return outcomes


def test_correct_programs_are_clean() -> None:
    for read in read_programs(OWN.read_text(encoding="utf-8")):
        assert read.program is not None, read.name
        findings = [*read.diagnostics, *verify(read.program), *judge_values(read.program).diagnostics]
        assert [item.render() for item in findings] == [], read.name


@pytest.fixture(scope="module")
def own_outcomes() -> list[Outcome]:
    return study(own_programs())


def test_judges_agree_on_mutants_of_own_programs(own_outcomes: list[Outcome]) -> None:
    outcomes = own_outcomes
    assert len(outcomes) > 400
    assert {item.mutant.kind for item in outcomes} == {
        "drop", "duplicate", "swap", "axes", "dim", "reduction", "scale", "declaration", "destination",
    }  # fmt: skip
    assert [item.words() for item in outcomes if item.verdict.startswith("DISAGREE")] == []
    # Most mutants are faults: a study of harmless changes would show nothing.
    assert sum(item.verdict == "both" for item in outcomes) > 0.9 * len(outcomes)


def test_judges_agree_on_mutants_of_the_corpus(shared_data: Path) -> None:
    outcomes = study(corrected_entries(shared_data))
    assert len(outcomes) > 700
    assert [item.words() for item in outcomes if item.verdict.startswith("DISAGREE")] == []


def test_a_repair_is_found_for_most_mutants(own_outcomes: list[Outcome]) -> None:
    outcomes = [item for item in own_outcomes if not item.value.ok]
    repaired = sum(bool(item.value.repairs) for item in outcomes)
    print(f"\nrepairs: {repaired} of {len(outcomes)}")
    assert repaired > 0.8 * len(outcomes)


def test_the_study_sees_a_judge_that_is_blind(monkeypatch: pytest.MonkeyPatch) -> None:
    """The comparison itself is tested to fail: a static judge that finds nothing must be a disagreement."""
    document = next(own_programs())
    mutant = next(item for item in mutants(document) if item.kind == "drop")
    monkeypatch.setattr("tests.verify.test_mutation.verify", lambda program, judges: ())
    found = outcome(document["name"], mutant)
    assert found is not None
    assert found.verdict == "DISAGREE: value alone"
