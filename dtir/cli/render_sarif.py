"""Findings as SARIF 2.1.0, which code review tools and editors read.

Source of the format: OASIS, "Static Analysis Results Interchange Format (SARIF) Version 2.1.0", sections 3.13 (sarifLog),
3.14 (run), 3.19 (toolComponent), 3.27 (result), 3.33 (logicalLocation), 3.58 (notification).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from urllib.parse import quote

from dtir.cli.places import text_place
from dtir.explain import explain
from dtir.schema.diagnostics import Diagnostic, Severity

SCHEMA = "https://json.schemastore.org/sarif-2.1.0.json"

_LEVELS = {Severity.ERROR: "error", Severity.WARNING: "warning", Severity.INFO: "note"}


@dataclass(frozen=True, slots=True)
class Judged:
    """One input and what was found about it.

    Args:
        name: the path as given.
        diagnostics: the findings.
        readable: False when it could not be read at all: the findings are then about the run and not about a program.
    """

    name: str
    diagnostics: Sequence[Diagnostic]
    readable: bool = True


def uri(name: str) -> str:
    """A path as a URI reference: relative as it stands, absolute with its scheme."""
    path = Path(name)
    return path.as_uri() if path.is_absolute() else quote(path.as_posix())


def report(judged: Sequence[Judged], *, version: str) -> dict[str, Any]:
    """A SARIF log of one run over the inputs.

    Args:
        judged: inputs with their findings.
        version: version of this tool.
    """
    codes = list(dict.fromkeys(item.code for one in judged for item in one.diagnostics))
    places = {code: index for index, code in enumerate(codes)}
    failures = [
        _notification(one, position, item)
        for position, one in enumerate(judged)
        if not one.readable
        for item in one.diagnostics
    ]
    run: dict[str, Any] = {
        "tool": {
            "driver": {
                "name": "dtir",
                "version": version,
                "semanticVersion": version,
                "rules": [_rule(code) for code in codes],
            }
        },
        "columnKind": "unicodeCodePoints",
        "artifacts": [{"location": {"uri": uri(one.name)}} for one in judged],
        "invocations": [
            {
                "executionSuccessful": not failures,
                **({"toolExecutionNotifications": failures} if failures else {}),
            }
        ],
        "results": [
            _result(one, position, item, places[item.code])
            for position, one in enumerate(judged)
            if one.readable
            for item in one.diagnostics
        ],
    }
    return {"$schema": SCHEMA, "version": "2.1.0", "runs": [run]}


def _rule(code: str) -> dict[str, Any]:
    entry = explain(code)
    if entry is None:
        return {"id": code}
    return {
        "id": code,
        "shortDescription": {"text": entry.hint},
        "fullDescription": {"text": entry.why},
        "help": {"text": f"{entry.hint}\n\nBad: {entry.bad}\n\nGood: {entry.good}"},
        "defaultConfiguration": {"level": _LEVELS[entry.severity]},
    }


def _location(one: Judged, position: int, path: Sequence[str]) -> dict[str, Any]:
    physical: dict[str, Any] = {"artifactLocation": {"uri": uri(one.name), "index": position}}
    place = text_place(path)
    if place:
        column = {} if place.column is None else {"startColumn": place.column}
        return {"physicalLocation": {**physical, "region": {"startLine": place.line, **column}}}
    location: dict[str, Any] = {"physicalLocation": physical}
    if path:
        location["logicalLocations"] = [{"name": path[-1], "fullyQualifiedName": ".".join(path), "kind": "member"}]
    return location


def _message(item: Diagnostic) -> dict[str, str]:
    # Braces would be placeholders (3.11.5), and "[a](b)" from an untrusted name a link (3.11.6).
    text = item.message + (f" Hint: {item.hint}" if item.hint else "")
    if "](" in text:
        text = text.replace("\\", "\\\\").replace("[", "\\[").replace("]", "\\]")
    return {"text": text.replace("{", "{{").replace("}", "}}")}


def _result(one: Judged, position: int, item: Diagnostic, rule: int) -> dict[str, Any]:
    result: dict[str, Any] = {
        "ruleId": item.code,
        "ruleIndex": rule,
        "level": _LEVELS[item.severity],
        "message": _message(item),
        "locations": [_location(one, position, item.path)],
        "properties": {"path": list(item.path), "subject": list(item.subject), "hint": item.hint},
    }
    if item.related:
        result["relatedLocations"] = [
            {**_location(one, position, related.path), "message": {"text": related.label}} for related in item.related
        ]
    return result


def _notification(one: Judged, position: int, item: Diagnostic) -> dict[str, Any]:
    return {
        "descriptor": {"id": item.code},
        "level": _LEVELS[item.severity],
        "message": _message(item),
        "locations": [_location(one, position, item.path)],
    }
