"""Text of table cells, and the numbers behind them."""

from __future__ import annotations

import math

import numpy as np
import numpy.typing as npt

from dtir.analysis.groups import group_size_of, groups_of
from dtir.analysis.scalars import scalar_text
from dtir.ir.collectives import AllReduce, ReduceScatter
from dtir.ir.tasks import Collective, PointToPoint
from dtir_app.inferred import at_hand
from dtir_app.kinds import KINDS
from dtir_app.repeats import Family, instances_of, repeats
from dtir_app.store import SEVERITIES, Store
from dtir_app.text import bytes_text, count_text, plural, shorten

_SYMBOLIC_LIMIT = 28
LAYOUT_HELP = "[axes that split each dim], then what the other axes do"


def kind_cell(store: Store, index: int) -> str:
    """The kind for people."""
    return KINDS[store.tasks.kind[index]].label


def kind_raw(store: Store, index: int) -> str:
    """The kind as filters write it."""
    return KINDS[store.tasks.kind[index]].name


def finding_place(store: Store, row: int) -> str:
    """The name of what a finding is about, else its path."""
    finding = store.findings[row]
    if finding.tasks:
        return store.tasks.name[finding.tasks[0]]
    if finding.values:
        return store.values.name[finding.values[0]]
    return finding.path or "program"


def axis_cell(store: Store, index: int) -> str:
    """The axes that the groups span, joined by ``×``; ``?`` where they are no axes' fibres."""
    how = store.tasks.group_axes.get(index)
    if how is None:
        return ""
    if not how.axes:
        return "?"
    return "×".join(how.axes)


def axis_sort(store: Store) -> list[str]:
    """The axis cells of all tasks."""
    return [axis_cell(store, index) for index in range(len(store.tasks))]


def groups_cell(store: Store, index: int) -> str:
    """``2 × 4``: number of groups and members of each; the number of pairs of a permute."""
    body = store.task_records[index].body
    if isinstance(body, PointToPoint):
        return f"{body.spec.source_rank} → {body.spec.destination_rank}"
    if not isinstance(body, Collective):
        return ""
    groups = groups_of(body.spec, store.mesh)
    if groups is None:
        return "?"
    if hasattr(body.spec, "pairs"):
        return plural(len(groups), "pair")
    size = group_size_of(groups)
    return f"{count_text(len(groups))} × {'mixed' if size is None else count_text(size)}"


def groups_sort(store: Store) -> list[int]:
    """Number of groups of all tasks; 0 where there are none."""
    made: list[int] = []
    for record in store.task_records:
        groups = groups_of(record.body.spec, store.mesh) if isinstance(record.body, Collective) else None
        made.append(0 if groups is None else len(groups))
    return made


def message_cell(store: Store, index: int) -> str:
    """The message in binary units; a symbolic size as its formula."""
    number = float(store.tasks.message_bytes[index])
    if math.isfinite(number):
        return bytes_text(number)
    body = store.task_records[index].body
    if isinstance(body, (Collective, PointToPoint)):
        return f"{shorten(scalar_text(body.spec.message_bytes), _SYMBOLIC_LIMIT)} B"
    return ""


def message_raw(store: Store, index: int) -> object:
    """The message as a number, or its formula."""
    body = store.task_records[index].body
    if not isinstance(body, (Collective, PointToPoint)):
        return None
    size = body.spec.message_bytes
    return size if isinstance(size, (int, float)) else scalar_text(size)


def instance_cell(store: Store, index: int) -> str:
    """Which instances of what repeats a task is in: ``mb 2, layer 41``."""
    return ", ".join(f"{instance_noun(family)} {number}" for family, number in instances_of(store, index))


def instance_noun(family: Family) -> str:
    """``layer``; with its name where several blocks repeat: ``block A``."""
    return family.label if family.noun == "instance" else family.noun


def instance_sort(store: Store) -> npt.NDArray[np.int64]:
    """Order of the instances of all tasks: by family, then by number, outermost first; last those in none."""
    made = np.full(len(store.tasks), np.iinfo(np.int64).max)
    for scope in store.scopes:
        found = repeats(store, scope.index)
        part = made[scope.first_task : scope.last_task]
        for at, member in enumerate(found.member):
            first = (part == np.iinfo(np.int64).max) & (member >= 0)
            part[first] = at * 10**10 + member[first].astype(np.int64)
    return made


def inferred_cell(store: Store, index: int) -> str:
    """The inferred layout of a value; empty where nothing follows, or where it was not looked for yet."""
    found = at_hand(store)
    return found.text(index) if found is not None else ""


def runs_cell(store: Store, index: int) -> str:
    """Executions; a question mark where the data decide."""
    number = store.scopes[int(store.tasks.scope[index])].executions
    return "?" if number is None else count_text(number) if number < 10**12 else f"{number:.1e}"


def runs_raw(store: Store, index: int) -> object:
    """Executions, None where the data decide."""
    return store.scopes[int(store.tasks.scope[index])].executions


def total_bytes(store: Store) -> npt.NDArray[np.float64]:
    """Message of one group times runs, of every task; NaN where one of them is no number."""
    return store.tasks.message_bytes * store.tasks.executions


def total_cell(store: Store, index: int) -> str:
    """Message times runs in binary units."""
    number = float(store.tasks.message_bytes[index] * store.tasks.executions[index])
    return bytes_text(number) if not math.isnan(number) else "–"


def total_raw(store: Store, index: int) -> object:
    """Message times runs, None where one of them is no number."""
    size, runs = message_raw(store, index), runs_raw(store, index)
    return size * runs if isinstance(size, (int, float)) and isinstance(runs, int) else None


def reduction_cell(store: Store, index: int) -> str:
    """What a collective reduces with; empty where it does not."""
    body = store.task_records[index].body
    return (
        body.spec.reduction.value
        if isinstance(body, Collective) and isinstance(body.spec, (AllReduce, ReduceScatter))
        else ""
    )


def dtype_cell(store: Store, index: int) -> str:
    """Element types of what a communication sends."""
    record, scope = store.task_records[index], int(store.tasks.scope[index])
    found = (store.value_at(scope, name.value) for name in (record.inputs or record.outputs))
    return ", ".join(dict.fromkeys(store.values.dtype[value] for value in found if value >= 0))


def region_cell(store: Store, index: int) -> str:
    """The region that holds a task; empty for the program's own list."""
    scope = int(store.tasks.scope[index])
    return store.scopes[scope].name if scope else ""


def value_region_cell(store: Store, index: int) -> str:
    """The region that holds a value."""
    scope = int(store.values.scope[index])
    return store.scopes[scope].name if scope else ""


def worst_cell(store: Store, index: int) -> str:
    """The worst severity found about a task."""
    worst = int(store.tasks.worst[index])
    return SEVERITIES[worst] if worst < len(SEVERITIES) else ""


def local_cell(store: Store, index: int) -> str:
    """Bytes of the largest shard."""
    return bytes_text(float(store.values.local_bytes[index]))


def local_raw(store: Store, index: int) -> object:
    """Bytes of the largest shard as a number."""
    number = float(store.values.local_bytes[index])
    return int(number) if math.isfinite(number) else None


def producer_cell(store: Store, index: int) -> str:
    """The task that makes a value."""
    producer = int(store.values.producer[index])
    return store.tasks.name[producer] if producer >= 0 else "input"


def ranks_cell(store: Store, index: int) -> str:
    """Number of ranks that run a task."""
    return count_text(int(store.tasks.rank_count[index]))


def role_cell(store: Store, index: int) -> str:
    """What a value is for."""
    return store.values.role[index].replace("_", " ")


def users_cell(store: Store, index: int) -> str:
    """Number of tasks that read a value."""
    return count_text(len(store.values.readers_of(index)))
