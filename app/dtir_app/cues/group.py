"""Groups of a collective on the mesh: declared solid, expected dashed, roots as crowns (``collective.*``)."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import islice

from dtir.analysis.groups import axis_fibres, groups_of
from dtir.ir.collectives import Broadcast
from dtir.ir.ranks import rank_set
from dtir.ir.tasks import Collective
from dtir.verify.roots import roots_of
from dtir_app.cues import place
from dtir_app.cues.case import Case
from dtir_app.cues.chain import shown_state
from dtir_app.cues.marks import Picture, listed
from dtir_app.cues.ranks import Cell, Cells, draw_ranks

MOST_GROUPS, MOST_MEMBERS = 64, 1024


def draw(case: Case) -> Picture:
    """The mesh with the groups of the task."""
    picture = Picture("group")
    task = case.task
    body = case.record(task).body if task >= 0 else None
    if not isinstance(body, Collective):
        made = place.draw(case)
        made.cue = "group"
        return made
    listed_groups = (groups_of(body.spec, case.store.mesh) or ())[:MOST_GROUPS]
    groups = [list(islice(group, MOST_MEMBERS)) for group in listed_groups]
    member = {rank: number for number, group in enumerate(groups) for rank in group}
    content = _contents(case, task)
    faulty = case.code in ("collective.reduce_sharded", "collective.reduce_varying", "collective.broadcast_sharded")
    stated, running = rank_set(body.spec.participants), rank_set(case.record(task).ranks)

    def look(rank: int) -> Cell:
        number = member.get(rank)
        words = content(rank) if content is not None else "" if number is None else f"group {number}"
        fill = "plain" if number is None else f"axis-{number % 6}"
        odd = case.code == "collective.participants" and (rank in stated) != (rank in running)
        return Cell(
            "plain" if content is not None else fill,
            "bad" if odd or (faulty and number is not None) else "muted",
            words,
            2.5 if odd else 1.4,
            number is None,
        )

    name = case.task_name(task)
    title = f"{name}: groups as declared"
    cells = draw_ranks(
        case,
        picture,
        0,
        0,
        look,
        title=title,
        width=92,
        height=44,
        under=lambda cells: _join(picture, cells, groups, False),
    )
    _roots(case, picture, body, groups, cells)
    expected, axes = _expected(case, task, groups)
    if expected and expected != [sorted(group) for group in groups]:
        other = {rank: number for number, group in enumerate(expected) for rank in group}

        def look_at(rank: int) -> Cell:
            inside = rank in other
            return Cell(
                f"axis-{other[rank] % 6}" if inside else "plain",
                "good",
                f"group {other[rank]}" if inside else "",
                1.4,
                True,
            )

        title = f"expected: fibres of {'·'.join(axes)}"
        draw_ranks(
            case, picture, cells.right + 60, 0, look_at, title=title, width=92, height=44,
            under=lambda cells: _join(picture, cells, expected, True),
        )  # fmt: skip
        picture.fact("expected", f"groups {_text(expected)}: fibres of {', '.join(axes)}", tone="good")
    picture.fact("declared", f"groups {_text(groups)}", case.task_key(task), "bad" if case.finding is not None else "")
    for value in case.operands(task)[:2]:
        picture.fact(case.value_name(value), case.store.values.layout[value], case.value_key(value))
    picture.says = _says(case, task, groups, axes)
    return picture


def _join(picture: Picture, cells: Cells, groups: Sequence[Sequence[int]], dashed: bool) -> None:
    """A line through the members of every group, below the cells."""
    for number, group in enumerate(groups):
        points = [cells.middle(rank) for rank in group if rank in cells.places]
        if len(points) > 1:
            picture.line(points, tone=f"axis-{number % 6}", thick=8, dashed=dashed, says=f"group {listed(group)}")


def _contents(case: Case, task: int) -> Callable[[int], str] | None:
    """What a member of a group holds, where that is the fault."""
    context = case.known.context
    if context is None or case.code not in (
        "collective.reduce_sharded",
        "collective.broadcast_sharded",
        "collective.reduce_varying",
    ):
        return None
    operands = case.operands(task)
    state = shown_state(case, operands[0]) if operands else None
    if state is None:
        return None
    if case.code == "collective.reduce_varying":
        return "own data {}".format
    space, split = context.around.space, state.split

    def block(rank: int) -> str:
        return f"block {space.position(rank, split)}"

    return block


def _expected(case: Case, task: int, groups: list[list[int]]) -> tuple[list[list[int]], tuple[str, ...]]:
    """The fibres that the groups should be: of the axes over which the operand is pending, else of one axis of the groups' size."""
    mesh = case.store.mesh
    if (
        case.finding is None
        or case.code not in ("collective.group_split", "collective.participants")
        or mesh.size > 4096
    ):
        return [], ()
    operands = case.operands(task)
    state = case.declared(operands[0]) if operands else None
    names = set(mesh.axis_names)
    axes = tuple(axis for axis in (state.partial if state is not None else ()) if axis in names)
    if not axes:
        stated = getattr(getattr(case.record(task).body, "spec", None), "axes", ())
        axes = tuple(axis for axis in stated if axis in names)
    if not axes and groups:
        axes = tuple(axis.name for axis in mesh.axes if axis.size == len(groups[0]))[:1]
    return ([sorted(group) for group in axis_fibres(mesh, axes)[:MOST_GROUPS]], axes) if axes else ([], ())


def _roots(case: Case, picture: Picture, body: Collective, groups: list[list[int]], cells: Cells) -> None:
    if not isinstance(body.spec, Broadcast):
        return
    operands = case.operands(case.task)
    valid = case.value(operands[0]).valid_on if operands else None
    current = set(valid) if valid is not None else None
    for number, root in enumerate(roots_of(body.spec)[:MOST_GROUPS]):
        group = groups[number] if number < len(groups) else []
        inside = root in group if group else any(root in other for other in groups)
        stale = current is not None and root not in current and case.code != "collective.root"
        if root in cells.places:
            x, y = cells.places[root]
            picture.crown(
                x + 12,
                y + 2,
                tone="muted" if stale else "warn" if inside else "bad",
                says=f"root {root}{', an old copy' if stale else ''}",
            )
        words = "has an old copy" if stale else "is in its group" if inside else "is in no group that it should serve"
        picture.fact(f"root {root}", words, tone="bad" if stale or not inside else "")
    if current is not None and case.code != "collective.root":
        picture.fact("current copy on", f"ranks {listed(sorted(current))}", tone="good")
        for rank in sorted(current)[:32]:
            if rank in cells.places:
                x, y = cells.places[rank]
                picture.badge(x + cells.width - 20, y + 2, "new", tone="good")
    picture.explain("box", "warn", "crown: the root")


def _text(groups: Sequence[Sequence[int]]) -> str:
    shown = " ".join("{" + listed(group, 8) + "}" for group in groups[:8])
    return shown + (f" … {len(groups) - 8} more" if len(groups) > 8 else "")


def _says(case: Case, task: int, groups: list[list[int]], axes: tuple[str, ...]) -> str:
    name = case.task_name(task)
    match case.code:
        case "collective.group_split":
            return (
                f"The groups of {name} are no fibres of mesh axes; dashed are those of {listed(axes)}."
                if axes
                else f"The groups of {name} are no fibres of mesh axes."
            )
        case "collective.participants":
            return f"The participants of {name} are not the ranks that run it."
        case "collective.reduce_sharded":
            return f"The members of a group of {name} hold different blocks: their sum means nothing."
        case "collective.reduce_varying":
            return f"The members of a group of {name} hold data that have nothing to do with each other."
        case "collective.broadcast_sharded":
            return f"{name} would give every rank the root's block only."
        case "collective.stale_root":
            return f"The root of {name} (grey crown) has an old copy; ranks marked new have the current one."
        case "collective.root":
            return f"The root of {name} does not fit its groups."
        case _:
            return f"{name} joins {len(groups)} group{'s' if len(groups) != 1 else ''} of ranks."
