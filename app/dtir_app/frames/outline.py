"""The outline: program, regions, the scopes that task names speak of, tasks; as many rows as are unfolded.

A row is named by the way that leads to it (``0>g2>t17>s1``), so that a region entered from two places has two rows.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field

from dtir_app.addressing import names_tell
from dtir_app.kinds import COMMUNICATION, KINDS
from dtir_app.selection import Selection, of_task, selection_text, task_of
from dtir_app.store import SEVERITIES, Store
from dtir_app.text import count_text, plural, runs_text

ROOT = "0"
CHILDREN = 200
"""Children shown of one row until more are asked for."""

Span = tuple[int, int]
"""The first child shown and the one after the last."""

FIRST: Span = (0, CHILDREN)

MAX_DEPTH = 40


@dataclass(slots=True, eq=False)
class Group:
    """A node of a scope's tree of names: its label, what stands in it, and sums over everything below."""

    label: str
    number: int = 0
    parent: int = -1
    groups: dict[str, Group] = field(default_factory=dict)
    members: list[Group | int] = field(default_factory=list)
    tasks: int = 0
    communication: int = 0
    worst: int = 3
    first: int = -1


def tree(store: Store, scope: int) -> tuple[Group, list[Group]]:
    """The tree of names of a scope, and its nodes by number; made once a program.

    What all paths begin with is left out, and a node with a single group in it and nothing else is joined with that group.
    """
    return store.memo.made(("tree", scope), lambda: _tree(store, scope))


def _tree(store: Store, scope: int) -> tuple[Group, list[Group]]:
    span = store.scopes[scope]
    root = Group(span.name)
    families, worst = store.tasks.family, store.tasks.worst
    for index in range(span.first_task, span.last_task):
        node = root
        communicates = int(families[index]) in COMMUNICATION
        for part in (*group_path(store, index), None):
            node.tasks += 1
            node.communication += communicates
            node.worst = min(node.worst, int(worst[index]))
            node.first = index if node.first < 0 else node.first
            if part is None:
                node.members.append(index)
            elif part in node.groups:
                node = node.groups[part]
            else:
                made = node.groups[part] = Group(part)
                node.members.append(made)
                node = made
    while len(root.members) == 1 and isinstance(root.members[0], Group):
        only = root.members[0]
        root.members, root.groups = only.members, only.groups
    nodes: list[Group] = []
    stack = [root]
    while stack:
        node = stack.pop()
        while node is not root and len(node.members) == 1 and isinstance(node.members[0], Group):
            only = node.members[0]
            node.label, node.members, node.groups = f"{node.label}/{only.label}", only.members, only.groups
        node.number = len(nodes)
        nodes.append(node)
        for item in node.members:
            if isinstance(item, Group):
                item.parent = node.number
        # Scopes before single tasks, each in program order: a list of constants must not push the structure out of sight.
        node.members.sort(key=lambda item: isinstance(item, int))
        stack.extend(item for item in reversed(node.members) if isinstance(item, Group))
    return root, nodes


def group_path(store: Store, task: int) -> tuple[str, ...]:
    """The groups that a task stands in: its path; where it has none, what stands before the last dot of a name of several parts."""
    path = store.tasks.path[task]
    if path or not names_tell(store):
        return path
    parts = tuple(part for part in store.tasks.name[task].split(".") if part)
    return parts[:-1][: MAX_DEPTH // 2] if len(parts) > 2 else ()


def outline_rows(
    store: Store, opened: Mapping[str, Span], selection: Selection, shown: frozenset[int] | None = None
) -> list[dict[str, object]]:
    """The rows of the unfolded part of the outline.

    Args:
        store: the program.
        opened: the rows that are unfolded, each with the span of its children to show.
        selection: what to mark.
        shown: tasks that the filters keep; None keeps all. Groups without such a task are left out, with the count said.
    """
    wanted = selection_text(store, of_task(task_of(store, selection))) if selection else ""
    rows: list[dict[str, object]] = []
    stack: list[Iterator[dict[str, object]]] = [iter([_scope_row(store, 0, ROOT, 0, opened)])]
    while stack:
        made = next(stack[-1], None)
        if made is None:
            stack.pop()
            continue
        made["selected"] = bool(wanted) and made["select"] == wanted
        rows.append(made)
        if made["expanded"]:
            stack.append(_children(store, made, opened, shown))
    return rows


def _row(key: str, depth: int, label: str, what: str, **more: object) -> dict[str, object]:
    made: dict[str, object] = {
        "key": key,
        "depth": depth,
        "label": label,
        "what": what,
        "select": "",
        "code": "",
        "family": -1,
        "note": "",
        "worst": "",
        "expanded": None,
        "scope": -1,
        "way": "",
    }
    return made | more


def _note(tasks: int, communication: int) -> str:
    return f"{count_text(tasks)}{f' · {count_text(communication)} comm' if communication else ''}"


def _repeated(group: Group) -> str:
    """``· ×80`` for a group of numbered ones."""
    numbered = sum(isinstance(item, Group) and item.label.split("/")[0].isdecimal() for item in group.members)
    return f" · ×{count_text(numbered)}" if numbered > 1 else ""


def _severity(worst: int) -> str:
    return SEVERITIES[worst] if worst < len(SEVERITIES) else ""


def _scope_row(store: Store, scope: int, key: str, depth: int, opened: Mapping[str, Span]) -> dict[str, object]:
    root, _ = tree(store, scope)
    span = store.scopes[scope]
    return _row(
        key,
        depth,
        store.name if scope == 0 else span.name,
        "program" if scope == 0 else "region",
        note=f"{_note(root.tasks, root.communication)}{f' · {runs}' if (runs := runs_text(span.executions)) else ''}",
        worst=_severity(root.worst),
        expanded=key in opened if root.members else None,
        scope=scope,
    )


def _group_row(group: Group, key: str, depth: int, opened: Mapping[str, Span]) -> dict[str, object]:
    return _row(
        key,
        depth,
        group.label,
        "group",
        note=f"{_note(group.tasks, group.communication)}{_repeated(group)}",
        worst=_severity(group.worst),
        expanded=key in opened,
    )


def _task_row(store: Store, index: int, key: str, depth: int, opened: Mapping[str, Span]) -> dict[str, object]:
    kind = KINDS[store.tasks.kind[index]]
    enters = index in store.tasks.entered and depth < MAX_DEPTH
    return _row(
        key,
        depth,
        store.tasks.name[index],
        "task",
        select=selection_text(store, of_task(index)),
        code=kind.code,
        family=int(kind.family),
        worst=_severity(int(store.tasks.worst[index])),
        expanded=(key in opened) if enters else None,
    )


def _children(
    store: Store, parent: dict[str, object], opened: Mapping[str, Span], shown: frozenset[int] | None
) -> Iterator[dict[str, object]]:
    key, depth = str(parent["key"]), int(str(parent["depth"])) + 1
    last = key.rsplit(">", 1)[-1]
    if last.startswith("t"):
        for scope in store.tasks.entered[int(last[1:])]:
            yield _scope_row(store, scope, f"{key}>s{scope}", depth, opened)
        return
    members = _members(store, key)
    if shown is not None:
        kept = [item for item in members if _keeps(item, shown)]
        hidden = len(members) - len(kept)
        members = kept
    else:
        hidden = 0
    first, last = opened.get(key, FIRST)
    first = min(first, max(0, len(members) - 1)) if members else 0
    if first:
        yield _row(f"{key}>before", depth, f"… {count_text(first)} before: show", "more", select=key, way="before")
    for item in members[first:last]:
        if isinstance(item, Group):
            yield _group_row(item, f"{key}>g{item.number}", depth, opened)
        else:
            yield _task_row(store, item, f"{key}>t{item}", depth, opened)
    if len(members) > last:
        yield _row(
            f"{key}>more", depth, f"… {count_text(len(members) - last)} more: show", "more", select=key, way="after"
        )
    if hidden:
        yield _row(f"{key}>hidden", depth, f"{plural(hidden, 'entry', 'entries')} hidden by the filters", "hidden")


def _keeps(item: Group | int, shown: frozenset[int]) -> bool:
    if isinstance(item, int):
        return item in shown
    return any(_keeps(member, shown) for member in item.members)


def _members(store: Store, key: str) -> list[Group | int]:
    parts = key.split(">")
    scope = next((int(part[1:]) for part in reversed(parts) if part.startswith("s")), 0)
    root, nodes = tree(store, scope)
    return nodes[int(parts[-1][1:])].members if parts[-1].startswith("g") else root.members


def reveal(store: Store, task: int) -> dict[str, int]:
    """The rows to unfold so that a task is among the rows, each with the position of the child that leads to it."""
    chain = [task]
    seen: set[int] = set()
    while (scope := int(store.tasks.scope[chain[0]])) and scope not in seen and store.scopes[scope].callers:
        seen.add(scope)
        chain.insert(0, store.scopes[scope].callers[0])
    way: dict[str, int] = {}
    key = ROOT
    for position, index in enumerate(chain):
        if position:
            way[key] = 0
            key = f"{key}>s{int(store.tasks.scope[index])}"
        key = _way_down(store, key, index, way)
    return way


def _way_down(store: Store, key: str, task: int, way: dict[str, int]) -> str:
    """From a scope's row down to a task; the key of the task's row."""
    scope = int(store.tasks.scope[task])
    node, nodes = tree(store, scope)
    homes = _homes(store, scope)
    groups = [homes[task]]
    while groups[0] != node.number:
        groups.insert(0, nodes[groups[0]].parent)
    for number in groups[1:]:
        way[key] = node.members.index(nodes[number])
        key, node = f"{key}>g{number}", nodes[number]
    way[key] = node.members.index(task)
    return f"{key}>t{task}"


def _homes(store: Store, scope: int) -> dict[int, int]:
    """The group that holds each task of a scope; made once a program."""

    def make() -> dict[int, int]:
        nodes = tree(store, scope)[1]
        return {item: node.number for node in nodes for item in node.members if isinstance(item, int)}

    return store.memo.made(("homes", scope), make)


def unfolded(opened: Mapping[str, Span], way: Mapping[str, int]) -> dict[str, Span]:
    """The unfolded rows with a way added; of a long row only the surroundings of the child are shown.

    >>> unfolded({"0": (0, 200)}, {"0": 5000})
    {'0': (4900, 5100)}
    """
    made = dict(opened)
    for key, position in way.items():
        first, last = made.get(key, FIRST)
        if not first <= position < last:
            first = max(0, position - CHILDREN // 2)
            last = first + CHILDREN
        made[key] = (first, last)
    return made


def widened(opened: Mapping[str, Span], key: str, way: str) -> dict[str, Span]:
    """The unfolded rows with more children of one, before or after those shown."""
    if key not in opened:
        return dict(opened)
    first, last = opened[key]
    step = 5 * CHILDREN
    return {**opened, key: (max(0, first - step), last) if way == "before" else (first, last + step)}
