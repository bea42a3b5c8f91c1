"""What is written on and about an item of the graph."""

from __future__ import annotations

from collections import Counter

from dtir_app.frames import cells
from dtir_app.items import Scene
from dtir_app.kinds import KINDS, Family
from dtir_app.scenes import communication_in
from dtir_app.store import Store
from dtir_app.text import count_text, plural, runs_text


def item_label(store: Store, at: Scene, item: int) -> tuple[str, str]:
    """Code and name of an item: ``AR`` and the task's name; of a block, how many tasks it holds and which."""
    size = int(at.folded.size[item])
    if size > 1:
        return (count_text(size), main_operations(store, at.tasks_of(item).tolist()))
    task = at.first_task(item)
    kind = KINDS[store.tasks.kind[task]]
    regions = store.tasks.entered.get(task, ())
    if regions:
        scope = store.scopes[max(regions, key=lambda number: store.scopes[number].task_count)]
        own = scope.executions
        runs = runs_text(own) if kind.name == "loop" else ""
        return (f"{kind.code}{f' {runs}' if runs else ''}", store.tasks.name[task])
    name = short_name(store.tasks.name[task], store.tasks.path[task])
    if kind.family is Family.COLLECTIVE:
        axis = cells.axis_cell(store, task)
        return (
            kind.code,
            " ".join(text for text in (axis if axis != "?" else "", message_text(store, at, item)) if text),
        )
    return (kind.code, name)


def item_detail(store: Store, at: Scene, item: int) -> str:
    """The second line of an item: the name of a collective, the size of a transfer, the operation of local work."""
    if int(at.folded.size[item]) > 1:
        return "local tasks"
    task = at.first_task(item)
    kind = KINDS[store.tasks.kind[task]]
    if kind.family is Family.COLLECTIVE:
        return short_name(store.tasks.name[task], store.tasks.path[task])
    if kind.family is Family.BLOCK:
        inside = sum(store.scopes[scope].task_count for scope in store.tasks.entered.get(task, ()))
        return plural(inside, "task")
    return message_text(store, at, item) or store.tasks.operation[task]


_PLAIN = frozenset(
    [
        "constant",
        "broadcast",
        "reshape",
        "bitcast",
        "copy",
        "tuple",
        "get-tuple-element",
        "convert",
        "transpose",
        "iota",
        "parameter",
    ]
)


def main_operations(store: Store, tasks: list[int], limit: int = 4) -> str:
    """The operations of a block, most frequent first; those that only move or make data where there are no others."""
    counts = Counter(store.tasks.operation[task].rsplit(".", 1)[-1] for task in tasks)
    telling = [(name, count) for name, count in counts.most_common() if name not in _PLAIN] or counts.most_common()
    return ", ".join(name for name, _ in telling[:limit]) + (", …" if len(telling) > limit else "")


def short_name(name: str, path: tuple[str, ...]) -> str:
    """A name without the parts that its path says already: ``attention.query.forward`` in forward/attention is ``query``; the last part
    of a long name.

    >>> short_name("attention.query.forward", ("forward", "attention"))
    'query'
    >>> short_name("mb.0.layers.375.qkv", ())
    'qkv'
    """
    parts = name.split(".")
    kept = [part for part in parts if part not in path]
    if len(kept) == len(parts) > 2 and not parts[-1].isdecimal():
        return parts[-1]  # what stands before is the same for the whole neighbourhood, and is told when one is selected
    return ".".join(kept) if kept and len(parts) > 1 else name


def kind_text(store: Store, at: Scene, item: int) -> str:
    """What an item is, in a few words; and for how many instances it stands."""
    text = _kind_text(store, at, item)
    if at.copies[item] > 1:
        text = f"{text} · in {count_text(int(at.copies[item]))} instances"
    return f"{text} · not in the instance that is shown" if at.absent[item] else text


def _kind_text(store: Store, at: Scene, item: int) -> str:
    size = int(at.folded.size[item])
    if size > 1:
        return f"folded block of {plural(size, 'local task')}"
    task = at.first_task(item)
    kind = KINDS[store.tasks.kind[task]]
    if kind.family is Family.BLOCK:
        inside = ", ".join(
            f"{store.scopes[scope].name}: {plural(store.scopes[scope].task_count, 'task')}, {communication_in(store, scope)} communicating"
            for scope in store.tasks.entered.get(task, ())
        )
        return f"{kind.label} ({inside})"
    if kind.family is Family.LOCAL:
        return store.tasks.operation[task]
    axis = cells.axis_cell(store, task)
    return f"{kind.label}{f' over {axis}' if axis not in ('', '?') else ''}"


def message_text(store: Store, at: Scene, item: int) -> str:
    """What an item sends, and how often; empty for local work."""
    if int(at.folded.size[item]) > 1:
        return ""
    task = at.first_task(item)
    text = cells.message_cell(store, task)
    runs = cells.runs_cell(store, task)
    return f"{text}{f' ×{runs}' if runs != '1' else ''}" if text else ""
