"""What is to be said about a tensor, and about the program where nothing is selected."""

from __future__ import annotations

import math

from dtir_app.frames.rows import (
    Row,
    attribute_sections,
    finding_sections,
    limited,
    lineage_row,
    row,
    section,
    task_link,
    value_link,
)
from dtir_app.inferred import Inferred, at_hand
from dtir_app.layouts import axis_states
from dtir_app.selection import of_value, selection_text
from dtir_app.store import Store
from dtir_app.text import count_text, exact_bytes_text, plural, ranks_text


def inspect_value(store: Store, index: int) -> dict[str, object]:
    """Everything about a tensor."""
    record, scope = store.value_records[index], int(store.values.scope[index])
    findings = [(at, item) for at, item in enumerate(store.findings) if index in item.values]
    follows = at_hand(store)
    layout = [
        row(
            axis,
            state,
            mono=True,
            tone="warning" if state.startswith("partial") else "",
            note=_follows(follows, index, axis),
        )
        for axis, state in axis_states(record.sharding, store.mesh).items()
    ]
    if record.scale.numerator != record.scale.denominator:
        layout.append(row("scale", f"× {record.scale.numerator}/{record.scale.denominator}", mono=True))
    made, users = int(store.values.producer[index]), store.values.readers_of(index)
    flow: list[Row] = [
        row("made by", "" if made >= 0 else "an input", links=[task_link(store, made)] if made >= 0 else ())
    ]
    flow.append(row("used by", "" if users else "nothing", links=limited([task_link(store, user) for user in users])))
    where = [
        row("role", record.role.value.replace("_", " ")),
        row(
            "owners",
            ranks_text(record.owners),
            mono=True,
            note=f"{count_text(len(record.owners))} of {count_text(store.mesh.size)}",
        ),
        *([row("region", store.scopes[scope].name, mono=True)] if scope else []),
        lineage_row(store, record.lineage),
        row("id", f"value:{record.id.value}", mono=True),
    ]
    size = float(store.values.local_bytes[index])
    size_rows = [
        row(
            "type",
            store.values.shape[index],
            mono=True,
            note="what one rank holds" if record.sharding.varying else "global shape",
        ),
        row("on a rank", exact_bytes_text(size) if not math.isnan(size) else "not a number yet", note="largest shard"),
    ]
    sections = [
        *finding_sections(findings),
        section("Size", size_rows),
        section("Layout", layout),
        section("Dataflow", flow),
        section("Where", where),
        *attribute_sections(record.attributes.items()),
    ]
    return {
        "title": store.values.name[index],
        "kind": "tensor",
        "code": "",
        "family": -1,
        "key": selection_text(store, of_value(index)),
        "sentence": f"{store.values.shape[index]}, {store.values.layout[index]}",
        "badges": [],
        "sections": [item for item in sections if item["rows"]],
        "enter": [],
    }


def _follows(follows: Inferred | None, value: int, axis: str) -> str:
    """What is inferred of an axis, and how; said to be so, since the program does not state it."""
    state = follows.of(value).get(axis) if follows is not None else None
    if follows is None or state is None:
        return ""
    return f"inferred: {state}, since {follows.reasons[value, axis]}"


def inspect_program(store: Store) -> dict[str, object]:
    """The program as a whole."""
    mesh = [row(axis.name, f"{count_text(axis.size)} ranks", mono=True) for axis in store.mesh.axes]
    program = store.program
    facts = [
        row("file", store.label, mono=True),
        row("format", store.format),
        row("digest", store.digest, mono=True),
        row("tasks", count_text(len(store.tasks))),
        row("tensors", count_text(len(store.values))),
        row("regions", count_text(len(store.scopes) - 1)),
    ]
    inputs = [(store.value_at(0, name.value), name) for name in program.inputs]
    outputs = [(store.value_at(0, name.value), name) for name in program.outputs]
    interface = [
        row(
            f"{label} ({count_text(len(found))})",
            links=limited([value_link(store, value) for value, _ in found if value >= 0]),
        )
        for label, found in (("inputs", inputs), ("outputs", outputs))
    ]
    return {
        "title": store.name,
        "kind": "program",
        "code": "",
        "family": -1,
        "key": "",
        "sentence": f"{plural(store.mesh.size, 'rank')}, {plural(len(store.tasks), 'task')}. "
        "Select a task or tensor anywhere to see it here.",
        "badges": [],
        "sections": [
            section("Program", facts),
            section("Mesh" if store.mesh.name == "mesh" else f"Mesh {store.mesh.name}", mesh),
            section("Interface", interface),
            *attribute_sections(program.attributes.items()),
        ],
        "enter": [],
    }
