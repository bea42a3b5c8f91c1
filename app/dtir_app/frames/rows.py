"""Rows, links and sections of the inspector.

A row is ``{"label", "text", "mono", "links", "note", "tone"}``; a link is ``{"text", "key", "badge", "family"}`` with the text of a
selection. No markup: the page shows every text as text.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from dtir.ir.ids import Lineage
from dtir_app.kinds import KINDS
from dtir_app.selection import of_task, of_value, selection_text
from dtir_app.store import Finding, Store
from dtir_app.text import count_text, plural, shorten

Row = dict[str, object]
Section = dict[str, object]

LINKS = 40
ATTRIBUTE_CHARS = 600


def row(
    label: str,
    text: str = "",
    *,
    mono: bool = False,
    links: Iterable[dict[str, str]] = (),
    note: str = "",
    tone: str = "",
) -> Row:
    """One labelled row."""
    return {"label": label, "text": text, "mono": mono, "links": list(links), "note": note, "tone": tone}


def section(title: str, rows: list[Row]) -> Section:
    """A titled list of rows."""
    return {"title": title, "rows": rows}


def task_link(store: Store, index: int) -> dict[str, str]:
    """A link to a task."""
    kind = KINDS[store.tasks.kind[index]]
    return {
        "text": store.tasks.name[index],
        "key": selection_text(store, of_task(index)),
        "badge": kind.code,
        "family": str(int(kind.family)),
    }


def value_link(store: Store, index: int) -> dict[str, str]:
    """A link to a value."""
    return {"text": store.values.name[index], "key": selection_text(store, of_value(index)), "badge": "", "family": ""}


def limited(links: list[dict[str, str]]) -> list[dict[str, str]]:
    """The first links, and the number of the others."""
    if len(links) <= LINKS:
        return links
    return [*links[:LINKS], {"text": f"… {count_text(len(links) - LINKS)} more", "key": "", "badge": "", "family": ""}]


def finding_sections(findings: Sequence[tuple[int, Finding]]) -> list[Section]:
    """A section with the findings about something, each with its row, where there are any."""
    if not findings:
        return []
    rows = [
        row(item.code, item.message, note=item.hint, tone=item.severity) | {"at": at} for at, item in findings[:LINKS]
    ]
    return [section(plural(len(findings), "finding"), rows) | {"findings": True}]


def lineage_row(store: Store, lineage: Lineage) -> Row:
    """Where something came from."""
    links: list[dict[str, str]] = []
    for source in lineage.sources[:LINKS]:
        task, value = store.task_index.get(source.value, -1), store.value_index.get(source.value, -1)
        if task >= 0:
            links.append(task_link(store, task))
        elif value >= 0:
            links.append(value_link(store, value))
        else:
            links.append({"text": shorten(str(source), 24), "key": "", "badge": "", "family": ""})
    return row("lineage", f"{lineage.kind.value} by {lineage.transform}", links=links)


def attribute_sections(items: Iterable[tuple[str, object]]) -> list[Section]:
    """A section with the attributes, where there are any."""
    rows = [row(key or "''", _attribute_text(item), mono=True) for key, item in items]
    return [section("Attributes", rows)] if rows else []


def _attribute_text(item: object) -> str:
    text = item if isinstance(item, str) else repr(item)
    return text if len(text) <= ATTRIBUTE_CHARS else f"{text[:ATTRIBUTE_CHARS]}… ({count_text(len(text))} characters)"
