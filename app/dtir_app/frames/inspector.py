"""What is to be said about the selected task or value: sections of labelled rows, as plain text and links."""

from __future__ import annotations

from dtir_app.frames import cells
from dtir_app.frames.communication import communication_section, sentence
from dtir_app.frames.inspect_value import inspect_program, inspect_value
from dtir_app.frames.rankstrip import rank_section
from dtir_app.frames.rows import (
    LINKS,
    Row,
    Section,
    attribute_sections,
    finding_sections,
    limited,
    lineage_row,
    row,
    section,
    task_link,
    value_link,
)
from dtir_app.frames.why import why_section
from dtir_app.kinds import KINDS
from dtir_app.repeats import instances_of
from dtir_app.selection import Selection, of_task, selection_text
from dtir_app.store import Store
from dtir_app.text import count_text, plural, ranks_text, runs_text
from dtir_app.timing import timing_rows


def inspect(store: Store, selection: Selection) -> dict[str, object]:
    """The inspector's content; the program itself when nothing is selected."""
    if selection.task >= 0:
        return _task(store, selection.task)
    if selection.value >= 0:
        return inspect_value(store, selection.value)
    return inspect_program(store)


def _task(store: Store, index: int) -> dict[str, object]:
    record, kind = store.task_records[index], KINDS[store.tasks.kind[index]]
    findings = [(at, item) for at, item in enumerate(store.findings) if index in item.tasks]
    sections = [
        *finding_sections(findings),
        *communication_section(store, index),
        *_timing(store, index),
        *rank_section(store, index),
        *why_section(store, index),
        _flow(store, index),
        _where(store, index),
        *attribute_sections(record.attributes.items()),
    ]
    return {
        "title": store.tasks.name[index],
        "kind": kind.label,
        "code": kind.code,
        "family": int(kind.family),
        "key": selection_text(store, of_task(index)),
        "sentence": sentence(store, index),
        "badges": [text for text in (runs_text(store.scopes[int(store.tasks.scope[index])].executions),) if text],
        "sections": [item for item in sections if item["rows"] or "strip" in item],
        "enter": [{"scope": scope, "text": _region_text(store, scope)} for scope in store.tasks.entered.get(index, ())],
    }


def _timing(store: Store, index: int) -> list[Section]:
    """What was planned and measured, where one of them is known."""
    rows = [row(label, text, note=note) for label, text, note in timing_rows(store, index)]
    return [section("Planned and measured", rows)] if rows else []


def _region_text(store: Store, scope: int) -> str:
    region = store.scopes[scope]
    runs = runs_text(region.executions)
    return f"{region.name} ({plural(region.task_count, 'task')}{f', {runs}' if runs else ''})"


def _flow(store: Store, index: int) -> Section:
    record, scope = store.task_records[index], int(store.tasks.scope[index])
    rows: list[Row] = []
    for title, names in (("in", record.operand_values), ("out", record.outputs)):
        for position, name in enumerate(names[:LINKS]):
            value = store.value_at(scope, name.value)
            label = f"{title} {position}" if len(names) > 1 else title
            if value < 0:
                rows.append(row(label, f"value:{name.value} is not in this scope", mono=True, tone="error"))
                continue
            text = f"{store.values.shape[value]}  {store.values.layout[value]}"
            rows.append(row(label, text, mono=True, links=[value_link(store, value)]))
        if len(names) > LINKS:
            rows.append(row(title, f"… {count_text(len(names) - LINKS)} more"))
    before, after = neighbours(store, index)
    if before:
        rows.append(row("waits for", links=limited([task_link(store, other) for other in before])))
    if after:
        rows.append(row("used by", links=limited([task_link(store, other) for other in after])))
    return section("Dataflow", rows)


def neighbours(store: Store, index: int) -> tuple[list[int], list[int]]:
    """Tasks that a task waits for, and tasks that wait for it, in program order."""
    part = store.edges.of_scope(int(store.tasks.scope[index]))
    source, destination = store.edges.source[part], store.edges.destination[part]
    return source[destination == index].tolist(), destination[source == index].tolist()


def _where(store: Store, index: int) -> Section:
    record, scope = store.task_records[index], int(store.tasks.scope[index])
    rows = [
        row("operation", store.tasks.operation[index], mono=True),
        row(
            "ranks",
            f"{ranks_text(record.ranks)}",
            mono=True,
            note=f"{count_text(len(record.ranks))} of {count_text(store.mesh.size)}",
        ),
    ]
    if store.tasks.source[index]:
        rows.append(row("source", store.tasks.source[index], mono=True))
    if store.tasks.path[index]:
        rows.append(row("scope", " / ".join(store.tasks.path[index]), mono=True))
    for family, number in instances_of(store, index):
        differs = family.differences.get(number, "")
        rows.append(
            row(
                cells.instance_noun(family),
                f"{number}, one of {count_text(len(family.numbers))}",
                note=f"differs from most: {differs}" if differs else f"{count_text(family.alike)} of them are alike",
            )
        )
    if scope:
        region = store.scopes[scope]
        rows.append(
            row(
                "region",
                f"{region.name} {runs_text(region.executions)}".strip(),
                mono=True,
                links=[task_link(store, caller) for caller in region.callers[:LINKS]],
                note="entered by" if region.callers else "nothing enters it",
            )
        )
    if record.pipeline is not None:
        slot = record.pipeline
        rows.append(
            row(
                "pipeline",
                f"stage {slot.stage}, microbatch {slot.microbatch}, {slot.phase}{f', chunk {slot.chunk}' if slot.chunk else ''}",
            )
        )
    rows.extend(row("effect", f"{effect.kind.value} {effect.resource}", mono=True) for effect in record.effects[:LINKS])
    rows.append(lineage_row(store, record.lineage))
    rows.append(row("id", f"node:{record.id.value}", mono=True))
    return section("Where", rows)
