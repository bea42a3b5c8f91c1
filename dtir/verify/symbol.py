"""Symbolic sizes (``symbol.*``)."""

from __future__ import annotations

from collections.abc import Iterator

from dtir.analysis.deviations import Kind
from dtir.analysis.scalars import scalar_text
from dtir.schema.diagnostics import Diagnostic, Severity
from dtir.verify.context import Context, finding, listed, task_name, task_path, value_name, value_path
from dtir.verify.layout_words import operand_value, subjects


def named_dims(context: Context) -> Iterator[Diagnostic]:
    """Dims that a task does not name.

    - where a task leaves its dim to be found by extent, only one dim can have it.
    """
    for flow, index, item in context.deviations(Kind.AMBIGUOUS):
        task, value = flow.scope.tasks[index], operand_value(flow, index, item)
        name = value_name(value) if value is not None else "the operand"
        yield finding(
            "symbol.ambiguous",
            f"{task_name(task)} names no dim, and dims {' and '.join(map(str, sorted(item.dims)))} of "
            f"{name} (may) have the same extent",
            task_path(flow, index, "body"),
            hint="name the dim by its position",
            subject=subjects(task, [value], item.axes),
        )


def divisible_symbols(context: Context) -> Iterator[Diagnostic]:
    """Symbols that are split.

    - the assumptions of the program say that the number of shards divides the extent;
    - the value that the program binds to the symbol agrees.

    In infer mode, for documents that cannot state assumptions, this is a note.
    """
    for flow, index, item in context.deviations(Kind.DIVISIBILITY):
        value, dim = flow.scope.values[index], item.dims[0]
        extent = scalar_text(value.type.shape[dim]).replace("workload.", "")
        shards = f"{item.wanted} shards over {', '.join(item.axes)}"
        match item.note:
            case "bound":
                message = (
                    f"dim {dim} of {value_name(value)} has extent {extent} = {item.found}, which {shards} do not divide"
                )
                hint = f"bind a multiple of {item.wanted}, or pad"
            case "assumed":
                message = (
                    f"dim {dim} of {value_name(value)} has extent {extent} and {shards}: that {item.found} "
                    "divides is true of the bound value alone"
                )
                hint = f'add the assumption "{extent} % {item.wanted} == 0", or pad'
            case _:
                shown = f" (bound to {item.found})" if item.found else ""
                message = (
                    f"dim {dim} of {value_name(value)} has extent {extent}{shown} and {shards}: nothing says "
                    "that they divide it"
                )
                hint = f'add the assumption "{extent} % {item.wanted} == 0", or pad'
        yield finding(
            "symbol.divisibility", message, value_path(flow, index, "type", "shape", str(dim)), hint=hint,
            subject=subjects(None, [value], item.axes), severity=Severity.INFO if context.mode == "infer" else None,
        )  # fmt: skip


def readable_assumptions(context: Context) -> Iterator[Diagnostic]:
    """Assumptions of the program.

    - each has a form that is understood; others are left out of account, and said so.
    """
    unread = context.around.facts.unread
    if unread:
        yield finding(
            "verify.assumption",
            f"{len(unread)} assumptions are not understood and not used: {listed([repr(item) for item in unread], 4)}",
            ("assume",),
            hint='write "B % 4 == 0", "S * H % (2 * tp) == 0" or "H == 64"',
            subject=(),
            severity=Severity.INFO,
        )


RULES = (named_dims, divisible_symbols, readable_assumptions)
