"""Two programs side by side: the list of what differs, the most telling first, and pictures of one difference in both."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from dtir.diff import Change, Diff, Match, Present
from dtir_app.cues import Case, Cue, draw_cue
from dtir_app.cues.marks import Picture
from dtir_app.kinds import COMMUNICATION, FAMILY_OF_KIND, KIND_INDEX
from dtir_app.selection import Selection, find_selection, of_task
from dtir_app.store import Store
from dtir_app.text import bytes_text, count_text, plural, shorten

ROWS = 300
"""Rows of the list at first; the number of the others is said, and as many more are shown when they are asked for."""

KINDS = ("all", "communication", "layouts", "added", "removed")
"""What the list can be narrowed to."""

MATCHES = {
    Match.EXACT: "exactly alike",
    Match.LINEAGE: "by lineage",
    Match.STRUCTURE: "by structure",
    Match.ORDER: "by order alone",
}
"""How two things were found to be the same, the surest first."""


@dataclass(frozen=True, slots=True)
class Line:
    """One row of the list.

    Args:
        sign: ``+`` only in the second, ``−`` only in the first, ``≠`` in both and different.
        what: task, value, axis, ...
        name: for people.
        kind: of a task or value.
        field: what differs; empty for what one program lacks.
        before, after: texts; empty where there is none.
        match: how the pair was found; empty for what one program lacks.
        id, other_id: display ids in the first and second program; empty where it is not there.
        order: what the list is sorted by.
        group: communication, layouts or other.
    """

    sign: str
    what: str
    name: str
    kind: str
    field: str
    before: str
    after: str
    match: str
    id: str
    other_id: str
    order: int
    group: str


def lines_of(diff: Diff) -> list[Line]:
    """All differences, the most telling first: mesh, communication that came and went, layouts, sizes, the rest."""
    lines = [_present(item, "+") for item in diff.added] + [_present(item, "−") for item in diff.removed]
    lines += [_change(item) for item in diff.changed]
    return sorted(lines, key=lambda line: line.order)


def _communicates(kind: str) -> bool:
    return kind in KIND_INDEX and FAMILY_OF_KIND[KIND_INDEX[kind]] in COMMUNICATION


def _present(item: Present, sign: str) -> Line:
    size = bytes_text(item.message_bytes) if item.message_bytes is not None else ""
    told = " ".join(text for text in (item.operation, size, item.source) if text)
    group = "communication" if _communicates(item.kind) else "other"
    order = 0 if item.what == "axis" else 1 if group == "communication" else 4
    before, after = ("", told) if sign == "+" else (told, "")
    first, second = ("", item.id) if sign == "+" else (item.id, "")
    return Line(sign, item.what, item.name, item.kind, "", before, after, "", first, second, order, group)


def _change(item: Change) -> Line:
    layout = item.field.startswith(("sharding", "owners", "layout", "partial", "halo", "scale"))
    group = "layouts" if layout else "communication" if _communicates(item.kind) else "other"
    order = 0 if item.what == "mesh" else 2 if group == "layouts" else 3 if group == "communication" else 5
    name = item.name if item.name == item.other_name else f"{item.name} → {item.other_name}"
    return Line(
        "≠", item.what, name, item.kind, item.field, item.before, item.after, MATCHES[item.match], item.id,
        item.other_id, order, group,
    )  # fmt: skip


def narrowed(lines: Sequence[Line], kind: str) -> list[tuple[int, Line]]:
    """The lines of one kind, each with its number among all."""
    match kind:
        case "communication" | "layouts":
            return [(at, line) for at, line in enumerate(lines) if line.group == kind]
        case "added" | "removed":
            sign = "+" if kind == "added" else "−"
            return [(at, line) for at, line in enumerate(lines) if line.sign == sign]
        case _:
            return list(enumerate(lines))


def difference_frame(
    first: Store, second: Store, diff: Diff, lines: Sequence[Line], kind: str, row: int, most: int = ROWS
) -> dict[str, object]:
    """What the page draws: a summary, the first lines of the list, and the pictures of the chosen one."""
    shown = narrowed(lines, kind)
    chosen = row if 0 <= row < len(lines) else shown[0][0] if shown else -1
    cut = [(at, line) for number, (at, line) in enumerate(shown) if number < most or at == chosen]
    frame: dict[str, object] = {
        "first": _side(first),
        "second": _side(second),
        "summary": summary(diff),
        "matched": [
            {"label": MATCHES[how], "count": count_text(diff.matched[how])} for how in Match if diff.matched.get(how)
        ],
        "bytes": [
            {"kind": name, "before": bytes_text(one), "after": bytes_text(other), "change": _delta(one, other)}
            for name, (one, other) in diff.bytes_by_kind.items()
        ],
        "kinds": [
            {"name": name, "count": count_text(len(narrowed(lines, name))), "chosen": name == kind} for name in KINDS
        ],
        "rows": [_row(at, line) for at, line in cut],
        "more": f"… {plural(len(shown) - len(cut), 'more difference')}" if len(shown) > len(cut) else "",
        "row": chosen,
    }
    if chosen >= 0:
        frame["pictures"] = pictures(first, second, lines[chosen])
    return frame


def _side(store: Store) -> dict[str, str]:
    return {"name": store.name, "digest": store.digest[:8], "label": store.label, "mesh": store.mesh_text}


def _row(at: int, line: Line) -> dict[str, object]:
    return {
        "row": at,
        "sign": line.sign,
        "what": line.what,
        "name": line.name,
        "kind": line.kind,
        "field": line.field.replace("_", " "),
        "before": shorten(line.before, 120),
        "after": shorten(line.after, 120),
        "match": line.match,
        "key": line.id,
    }


def summary(diff: Diff) -> str:
    """One sentence: how many differences, and what the communication of both comes to."""
    if diff.equal:
        return "Nothing differs: both do the same, on the same ranks, in the same layouts."
    counts = [
        (len(diff.changed), "changed"),
        (len(diff.added), "only in the second"),
        (len(diff.removed), "only in the first"),
    ]
    said = ", ".join(f"{count_text(number)} {words}" for number, words in counts if number)
    if diff.bytes_before is None or diff.bytes_after is None:
        return f"{said}; bytes are not numbers in both."
    change = _delta(diff.bytes_before, diff.bytes_after)
    return f"{said}; communication {bytes_text(diff.bytes_before)} → {bytes_text(diff.bytes_after)} ({change})."


def _delta(before: float, after: float) -> str:
    """A difference of bytes with its sign and its share.

    >>> _delta(1024, 1536), _delta(10, 10)
    ('+512 B, +50 %', 'the same')
    """
    if before == after:
        return "the same"
    sign = "+" if after > before else "−"
    ratio = after / before if before else 0.0
    share = "" if not before else f", ×{ratio:.3g}" if ratio >= 10 else f", {sign}{abs(ratio - 1) * 100:.3g} %"
    return f"{sign}{bytes_text(abs(after - before))}{share}"


def pictures(first: Store, second: Store, line: Line) -> list[dict[str, object]]:
    """The chosen line in both programs, with the same kind of picture; a place where one lacks it."""
    cue = Cue.SLICE if line.group == "layouts" else Cue.PLACE
    sides = ((first, line.id, line.before, "before"), (second, line.other_id, line.after, "after"))
    made: list[dict[str, object]] = []
    for store, identifier, text, label in sides:
        found = find_selection(store, identifier) if identifier else Selection()
        picture = _picture(store, found, cue)
        picture.says = text or ("not there" if not identifier else "not stated")
        made.append({"label": label, "key": identifier if found else "", "picture": picture.payload()})
    return made


def _picture(store: Store, found: Selection, cue: Cue) -> Picture:
    if not found:
        return Picture("place")
    if found.task >= 0:
        return draw_cue(Cue.PLACE, Case(store, None, (found.task,), ()))
    producer = int(store.values.producer[found.value])
    if cue is Cue.PLACE and producer >= 0:
        return draw_cue(Cue.PLACE, Case(store, None, (of_task(producer).task,), ()))
    return draw_cue(cue, Case(store, None, (), (found.value,)))
