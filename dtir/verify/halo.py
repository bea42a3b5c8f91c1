"""Ghost regions (``halo.*``)."""

from __future__ import annotations

from collections.abc import Iterator

from dtir.analysis.deviations import Kind
from dtir.schema.diagnostics import Diagnostic
from dtir.verify.context import Context, finding, task_name, task_path, value_name, value_path
from dtir.verify.ghost_versions import stale_reads
from dtir.verify.layout_words import operand_value, related_values, result_value, subjects


def wide_enough(context: Context) -> Iterator[Diagnostic]:
    """Width of ghosts.

    - a task that reads r elements beyond the block has r up-to-date ghost layers along every split dim.
    """
    for flow, index, item in context.deviations(Kind.HALO_THIN):
        task, value = flow.scope.tasks[index], operand_value(flow, index, item)
        name, dim = value_name(value) if value is not None else "the operand", item.dims[0]
        yield finding(
            "halo.thin",
            f"{task_name(task)} reads {item.wanted} elements beyond the block along dim {dim}, {name} has "
            f"{item.found} ghost layers there",
            task_path(flow, index),
            hint=f"exchange {item.wanted} ghost layers of dim {dim} over {', '.join(item.axes)} before "
            f"{task_name(task)}, or exchange after each step",
            subject=subjects(task, [value], item.axes),
            related=related_values(flow, ("ghosts of", value)),
        )


def diagonal_ghosts(context: Context) -> Iterator[Diagnostic]:
    """Corners.

    - a task that reads diagonal neighbours along two split dims has the corner ghosts filled.
    """
    for flow, index, item in context.deviations(Kind.HALO_CORNER):
        task, value = flow.scope.tasks[index], operand_value(flow, index, item)
        name = value_name(value) if value is not None else "the operand"
        yield finding(
            "halo.corner",
            f"{task_name(task)} reads diagonal neighbours along dims {' and '.join(map(str, item.dims))}, "
            f"the corner ghosts of {name} are not filled",
            task_path(flow, index),
            hint="exchange dim by dim, ghosts already received included, or exchange with the diagonal "
            "neighbours too (corners: true)",
            subject=subjects(task, [value], item.axes),
            related=related_values(flow, ("ghosts of", value)),
        )


def fresh_ghosts(context: Context) -> Iterator[Diagnostic]:
    """Age of ghosts.

    - ghost layers that a result declares are brought up to date by its task: an exchange, or a step that leaves enough of
      wider ones valid;
    - where buffers are updated in place, an exchange stands between the last update and a read of ghosts.
    """
    for flow, index, item in context.deviations(Kind.HALO_STALE):
        task, value = flow.scope.tasks[index], result_value(flow, index, item)
        name, dim = value_name(value) if value is not None else "the result", item.dims[0]
        yield finding(
            "halo.stale",
            f"{task_name(task)} writes {name}, of whose {item.wanted} ghost layers on dim {dim} "
            f"{item.found} are as new as the interior",
            task_path(flow, index, "outputs"),
            hint=f"exchange the ghosts of {name} over {', '.join(item.axes)} after {task_name(task)}, or start "
            "from a wider halo",
            subject=subjects(task, [value], item.axes),
            related=related_values(flow, ("ghosts of", value)),
        )
    for flow in context.flows:
        yield from stale_reads(flow)


def shard_holds_halo(context: Context) -> Iterator[Diagnostic]:
    """Size of shards.

    - the smallest shard has at least as many elements as its neighbours' ghosts need.
    """
    for flow, index, item in context.deviations(Kind.NARROW_SHARD):
        value, dim = flow.scope.values[index], item.dims[0]
        yield finding(
            "halo.narrow_shard",
            f"the smallest shard of {value_name(value)} has {item.found} elements on dim {dim}, its "
            f"neighbour needs {item.wanted}",
            value_path(flow, index, "sharding", "halo"),
            hint=f"split dim {dim} over fewer ranks, or exchange over several hops",
            subject=subjects(None, [value], item.axes),
        )


def owned_cells(context: Context) -> Iterator[Diagnostic]:
    """Reductions of values with ghosts.

    - a reduction over a split dim takes owned elements only.
    """
    for flow, index, item in context.deviations(Kind.DOUBLE_COUNT):
        task, value = flow.scope.tasks[index], operand_value(flow, index, item)
        name = value_name(value) if value is not None else "the operand"
        yield finding(
            "halo.double_count",
            f"{task_name(task)} ({item.wanted}) counts {item.found} ghost layers of {name} on dim "
            f"{item.dims[0]}, which a neighbour owns, once more",
            task_path(flow, index),
            hint="reduce over owned elements only (include_halo: false)",
            subject=subjects(task, [value], item.axes),
            related=related_values(flow, ("ghosts of", value)),
        )


RULES = (wide_enough, diagonal_ghosts, fresh_ghosts, shard_holds_halo, owned_cells)
