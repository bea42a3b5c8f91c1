"""Where a reduction becomes due, where it should have happened, and what comes between (``partial.*`` and its kin).

Tiles are hatched along every axis over which a reduction is pending; a red arrow is where the hatch runs into something that
takes it for finished.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from dtir.analysis.deviations import Deviation, Kind
from dtir.analysis.states import State
from dtir.ir.collectives import AllReduce, ReduceScatter
from dtir.ir.reductions import ReductionKind
from dtir.ir.tasks import Collective, Reshard
from dtir_app.cues.case import Case
from dtir_app.cues.chain import NODE_W, Ghost, draw_arrows, draw_tasks, draw_tiles, lay_out, shown_state, state_words
from dtir_app.cues.marks import Picture, listed
from dtir_app.kinds import COMMUNICATION, Family

MOST_UP, MOST_DOWN = 3, 2
MOST_OPERANDS = 6
INFERRED = (
    "The hatch ends at the task that reduces it; what ranks hold before it is inferred to be shares, from its groups."
)

_IN_PLACE = frozenset({Kind.GATHER_PARTIAL, Kind.WRONG_REDUCTION, Kind.INCOMPLETE_AXES, Kind.MIXED_OPS})
_BEFORE = frozenset(
    {Kind.NONLINEAR, Kind.PRODUCT, Kind.ADD_REPLICATED, Kind.REDUCTION_COMMUTE, Kind.RESHARD_PARTIAL}
)  # fmt: skip


def draw(case: Case) -> Picture:
    """The chain around the fault, with the reduction that is missing as a ghost."""
    picture = Picture("pending")
    item = case.deviation
    main = case.task
    if main < 0:
        return _alone(case, picture)
    loose = inferred_states(case, main)
    culprits = _culprits(case, item) or list(loose)
    axes = item.axes if item is not None and item.axes else case.axes
    tasks = list(dict.fromkeys([*_upstream(case, culprits, axes), main, *_downstream(case, main)]))
    tasks = [task for task in tasks if len(case.operands(task)) <= MOST_OPERANDS or task == main]
    ghosts = list(_ghosts(case, item, main, culprits, axes))
    chain = lay_out(case, tasks, ghosts)
    wrong = _wrong_edges(case, item, main, culprits)
    states = _arriving(case, item, main) | loose
    draw_arrows(case, picture, chain, wrong=wrong, faded=_replaced(item, main))
    draw_tiles(case, picture, chain, states, wrong=_wrong_values(case, item))
    draw_tasks(case, picture, chain, wrong=[main] if case.finding is not None else [], faded=_replaced(item, main))
    if item is not None and item.kind is Kind.DROPPED and not item.note:
        x, y = chain.tasks[main]
        for number, axis in enumerate(axes):
            op = _op(item, culprits, case)
            tone = f"axis-{case.axis_number(axis)}"
            picture.badge(x + NODE_W / 2 + 19, y - 14 - 18 * number, f"{'Σ' if op == 'sum' else op} {axis}", tone=tone)
            picture.explain("box", tone, f"a {op} over {axis} is due")
    _words(case, picture, item, main, culprits, axes, tasks)
    return picture


def _alone(case: Case, picture: Picture) -> Picture:
    """A value that no task makes, with what reads it."""
    readers = [reader for value in case.values[:2] for reader in case.store.values.readers_of(value)][:4]
    chain = lay_out(case, readers, extra=case.values)
    draw_arrows(case, picture, chain)
    draw_tiles(case, picture, chain, wrong=case.values[:1] if case.finding is not None else ())
    draw_tasks(case, picture, chain)
    picture.says = _lost(case) if case.code == "accumulate.lost" else "A hatched tile still waits for its reduction."
    return picture


def _culprits(case: Case, item: Deviation | None) -> list[int]:
    """Values whose pending state meets the task."""
    if item is None:
        return [value for value in case.operands(case.task) if _is_pending(case, value)]
    found = [case.operand(item.operand)]
    if item.note.isdecimal():
        found.append(case.operand(int(item.note)))
    pending = [value for value in found if value >= 0 and _is_pending(case, value)]
    return pending or [value for value in case.operands(case.task) if _is_pending(case, value)]


def _is_pending(case: Case, value: int, axes: Sequence[str] = ()) -> bool:
    state = shown_state(case, value)
    return state is not None and bool(set(state.partial) & set(axes) if axes else state.partial)


def _upstream(case: Case, values: Sequence[int], axes: Sequence[str]) -> list[int]:
    """Tasks back to where the reduction became due."""
    found: list[int] = []
    front = list(values)
    for _ in range(MOST_UP):
        makers = [int(case.store.values.producer[value]) for value in front]
        makers = [task for task in dict.fromkeys(makers) if task >= 0 and task not in found]
        found = [*makers[:2], *found]
        front = [value for task in makers[:2] for value in case.operands(task) if _is_pending(case, value, axes)]
        if not front:
            break
    return found


def _downstream(case: Case, main: int) -> list[int]:
    """What reads the results, up to the next communication."""
    found: list[int] = []
    front = [main]
    for _ in range(MOST_DOWN):
        readers = [
            reader for task in front for value in case.outputs(task) for reader in case.store.values.readers_of(value)
        ]
        front = [reader for reader in dict.fromkeys(readers) if reader not in found][:2]
        found += front
        if any(Family(int(case.store.tasks.family[task])) in COMMUNICATION for task in front):
            break
    return found


def _op(item: Deviation | None, values: Sequence[int], case: Case) -> str:
    for value in values:
        state = shown_state(case, value)
        if state is not None and state.op is not None:
            return state.op.value
    words = item.found.removeprefix("pending ") if item is not None else ""
    return words if words in {kind.value for kind in ReductionKind} else "sum"


def _ghosts(
    case: Case, item: Deviation | None, main: int, culprits: Sequence[int], axes: Sequence[str]
) -> Iterator[Ghost]:
    """The reduction where it would be right."""
    if item is None or not axes:
        return
    op = _op(item, culprits, case)
    result = case.outputs(main)[item.result or 0] if case.outputs(main) else -1
    declared = case.declared(result) if result >= 0 else None
    splits = declared is not None and set(axes) & set(declared.split)
    code, text = f"{'RS' if splits else 'AR'}({op})", "+".join(axes)
    if item.kind is Kind.OUTPUT:
        value = case.values[0] if case.values else result
        yield Ghost(f"AR({op})", text, value, -1, False)
    elif item.kind is Kind.DROPPED and not item.note:
        yield Ghost(code, text, result, main, False)
    elif item.kind in _BEFORE or item.kind is Kind.DROPPED:
        value = next((v for v in culprits if item.kind is not Kind.PRODUCT or v == case.operand(item.operand)), -1)
        if value >= 0:
            yield Ghost(f"AR({op})", text, value, main, True)
    elif item.kind in _IN_PLACE and result >= 0:
        state = shown_state(case, culprits[0]) if culprits else None
        due = "+".join(state.partial) if state is not None and state.partial else text
        yield Ghost(f"AR({op})", f"{due}, in its place", result, main, False)


def _replaced(item: Deviation | None, main: int) -> list[int]:
    return [main] if item is not None and item.kind is Kind.GATHER_PARTIAL else []


def _wrong_edges(case: Case, item: Deviation | None, main: int, culprits: Sequence[int]) -> list[tuple[int, int, bool]]:
    if case.finding is None:
        return []
    if item is None or item.kind in _BEFORE or item.kind in _IN_PLACE or (item.kind is Kind.DROPPED and item.note):
        return [(value, main, True) for value in culprits]
    if item.kind in (Kind.DROPPED, Kind.FABRICATED):
        outputs = case.outputs(main)
        place = item.result or 0
        return [(outputs[place], main, False)] if place < len(outputs) else []
    return []


def _wrong_values(case: Case, item: Deviation | None) -> list[int]:
    if case.finding is None:
        return []
    if item is not None and item.kind is Kind.OUTPUT:
        return list(case.values[:1])
    if item is not None and item.kind in (Kind.DROPPED, Kind.FABRICATED) and not item.note:
        return [value for value in case.outputs(case.task) if value in case.values]
    if item is not None and item.kind is Kind.ADD_REPLICATED:
        return [value for value in (case.operand(item.operand),) if value >= 0]
    if case.code == "accumulate.lost":
        return list(case.values[:1])
    return []


def _arriving(case: Case, item: Deviation | None, main: int) -> dict[int, State]:
    """For a result that is declared finished although it is not: what it is declared, so that the break is seen."""
    found: dict[int, State] = {}
    if item is None or case.finding is None:
        return found
    if item.kind is Kind.DROPPED and not item.note:
        for value in case.outputs(main):
            declared = case.declared(value)
            if declared is not None:
                found[value] = declared
    return found


def inferred_states(case: Case, task: int) -> dict[int, State]:
    """Operands of a reduction in a dump: per-rank data there, and shares of the reduction as far as its groups say."""
    body, context = case.record(task).body, case.known.context
    if not isinstance(body, Collective) or not isinstance(body.spec, (AllReduce, ReduceScatter)) or context is None:
        return {}
    axes = context.reader.axes(body.spec) or ()
    found: dict[int, State] = {}
    for value in case.operands(task):
        state = shown_state(case, value)
        if axes and state is not None and set(axes) <= set(state.varying):
            rest = tuple(axis for axis in state.varying if axis not in axes)
            found[value] = State(state.dims, context.around.space.ordered(axes), body.spec.reduction, rest)
    return found


def _words(
    case: Case,
    picture: Picture,
    item: Deviation | None,
    main: int,
    culprits: Sequence[int],
    axes: Sequence[str],
    tasks: Sequence[int],
) -> None:
    name = case.task_name(main)
    over = listed(axes) or "an axis"
    if case.finding is None:
        loose = inferred_states(case, main)
        picture.says = _right(case, main, tasks) if not loose else INFERRED
    elif item is not None and item.kind is Kind.FABRICATED:
        picture.says = f"{name} leaves equal copies; the hatched tile says that a reduction over {over} is still due."
    elif item is not None and item.kind is Kind.DROPPED and not item.note:
        op = _op(item, culprits, case)
        picture.says = f"After {name} a {op} over {over} is due (red arrow), and the tile it runs into is not hatched."
    elif item is not None and item.kind is Kind.OUTPUT:
        picture.says = f"The hatched tile is returned as it is: its reduction over {over} never happens."
    elif item is not None and item.kind is Kind.ADD_REPLICATED:
        count = case.known.context.around.space.count(axes) if case.known.context is not None else 0
        picture.says = (
            f"A whole value meets one that is a sum of {count} shares over {over}: it is counted {count} times."
        )
    elif case.code == "accumulate.lost":
        picture.says = _lost(case)
    else:
        picture.says = f"A hatched tile runs into {name} before its reduction over {over} has happened."
    for value in dict.fromkeys([*culprits, *case.outputs(main)]):
        state = inferred_states(case, main).get(value) or shown_state(case, value)
        declared = case.declared(value)
        text = state_words(state)
        if state is not None and state.partial:
            text += f" over {', '.join(state.partial)}"
        if item is not None and item.kind is Kind.DROPPED and value in case.outputs(main):
            text = f"follows as pending {_op(item, culprits, case)} over {over}, declared {state_words(declared)}"
        picture.fact(case.value_name(value), text, case.value_key(value))
    source = next((task for task in tasks if _begins(case, task, axes)), -1)
    if source >= 0 and culprits:
        picture.fact("becomes due in", case.task_name(source), case.task_key(source))


def _begins(case: Case, task: int, axes: Sequence[str]) -> bool:
    """Whether a task makes a value pending whose operands are not."""
    return any(_is_pending(case, value, axes) for value in case.outputs(task)) and not any(
        _is_pending(case, value, axes) for value in case.operands(task)
    )


def _right(case: Case, main: int, tasks: Sequence[int]) -> str:
    due = [value for task in tasks for value in case.outputs(task) if _is_pending(case, value)]
    body = case.record(main).body
    if not due:
        return "No reduction is pending here: no tile is hatched."
    ends = isinstance(body, (Collective, Reshard))
    return (
        "Every hatch ends at a task that reduces it."
        if ends
        else "Hatched tiles wait for a reduction that is still to come."
    )


def _lost(case: Case) -> str:
    value = case.values[0] if case.values else -1
    if value < 0:
        return "A contribution reaches no output."
    scope = int(case.store.values.scope[value])
    users = 0
    context = case.known.context
    if context is not None and scope < len(context.flows):
        users = len(context.liveness(scope).users.get(case.value(value).id, ()))
    reads = f"is read by {users} task(s), and none of them leads to an output" if users else "is read by nothing"
    return f"The marked tile {reads}: what it holds is lost."
