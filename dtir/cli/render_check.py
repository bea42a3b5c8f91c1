"""A check of one program against another as JSON and as text."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from dtir.check import Checked, OutputCheck, Parting
from dtir.check.agreement import Agreement
from dtir.check.parting import Place
from dtir.check.programs import Step, Verdict
from dtir.cli.render_json import diagnostic
from dtir.cli.terminal import PLAIN, Style, printable


def as_json(checked: Checked, paths: Mapping[str, str]) -> dict[str, Any]:
    """Keys: ``verdict, reference, guilty, last_equal, first_difference, checked[], diagnostics[]``; numbers that are not finite are text.

    Args:
        paths: files by label, where labels are shorter.
    """
    guilty = checked.guilty
    return {
        "verdict": checked.verdict.value,
        "reference": paths.get(checked.reference, checked.reference),
        "guilty": None if guilty is None else paths.get(guilty.label, guilty.label),
        "last_equal": None if guilty is None else paths.get(guilty.against, guilty.against),
        "first_difference": _parting(guilty.parting) if guilty is not None else None,
        "checked": [_step(step, paths) for step in checked.steps],
        "diagnostics": [diagnostic(item) for item in checked.problems],
    }


def _step(step: Step, paths: Mapping[str, str]) -> dict[str, Any]:
    return {
        "file": paths.get(step.label, step.label),
        "against": paths.get(step.against, step.against),
        "verdict": step.verdict.value,
        "outputs": [_output(item) for item in step.outputs],
    }


def _output(item: OutputCheck) -> dict[str, Any]:
    return {
        "number": item.number,
        "name": item.name,
        "layout": item.layout,
        "equal": None if item.agreement is None else item.agreement.equal,
        **(_agreement(item.agreement) if item.agreement is not None else {}),
    }


def _agreement(found: Agreement) -> dict[str, Any]:
    return {
        "max_error": _number(found.max_error),
        "bound": _number(found.bound),
        "wrong": found.wrong,
        "size": found.size,
    }


def _number(value: float) -> float | str:
    return value if value - value == 0 else str(value)


def _parting(found: Parting | None) -> dict[str, Any] | None:
    if found is None:
        return None
    return {
        "before": _place(found.before),
        "after": _place(found.after),
        **_agreement(found.agreement),
        "values_compared": found.compared,
        "outputs_only": found.outputs_only,
    }


def _place(place: Place) -> dict[str, Any]:
    return {
        "id": place.id,
        "name": place.name,
        "operation": place.operation,
        "op_name": place.op_name,
        "source": place.source,
    }


def as_text(checked: Checked, *, style: Style = PLAIN) -> list[str]:
    """Lines for a person: form by form, then where the first wrong one parts."""
    lines: list[str] = [f"reference  {printable(checked.reference)}"]
    for step in checked.steps:
        lines.append(f"{_verdict(step, style)}  {printable(step.label)}")
        if step.verdict is Verdict.DIFFERENT and step is not checked.guilty:
            continue  # whatever comes after a wrong form is wrong too
        lines += [f"           {printable(item.message)} [{item.code}]" for item in step.problems]
    guilty = checked.guilty
    if guilty is None:
        return lines
    if len(checked.steps) > 1:
        lines.append(style.bold(f"first wrong: {printable(guilty.label)} (right until {printable(guilty.against)})"))
    found = guilty.parting
    if found is None:
        return lines
    what = "the first output that differs" if found.outputs_only else "the first value that differs"
    agreement = found.agreement
    lines += [
        style.bold(what)
        + f": {agreement.wrong} of {agreement.size} elements, by {agreement.max_error:.6g} at most"
        + ("" if found.outputs_only else f"; {found.compared} values with a counterpart were looked at"),
        f"  before  {_place_text(found.before)}",
        f"  after   {_place_text(found.after)}",
    ]
    return lines


def _verdict(step: Step, style: Style) -> str:
    match step.verdict:
        case Verdict.EQUAL:
            return style.good("equal    ")
        case Verdict.DIFFERENT:
            return style.bold("DIFFERENT")
        case Verdict.NOT_COMPARABLE:
            return "not run  "


def _place_text(place: Place) -> str:
    origin = " ".join(part for part in (place.op_name, f"({place.source})" if place.source else "") if part)
    return "  ".join(printable(part) for part in (place.name, place.operation, origin) if part)
