"""Factors: values that are k times what they should be (``scale.*``)."""

from __future__ import annotations

from collections.abc import Iterator
from fractions import Fraction

from dtir.analysis.abstract import ONE
from dtir.analysis.deviations import Kind
from dtir.analysis.flow import Flow
from dtir.analysis.scale import factor_axes
from dtir.ir.collectives import CollectivePermute
from dtir.ir.tasks import Collective
from dtir.ir.values import DistributedValue
from dtir.schema.diagnostics import Diagnostic, Related
from dtir.verify.context import Context, finding, task_name, task_path, value_name
from dtir.verify.layout_words import operand_value, related_values, result_value, subjects


def wrong_factor(context: Context) -> Iterator[Diagnostic]:
    """Scale of values.

    - a value that declares a scale has it;
    - outputs of the program have scale 1. Outputs that owe the same factor to the same task are one finding.
    """
    for flow, index, item in context.deviations(Kind.SCALE_FACTOR):
        task, value = flow.scope.tasks[index], result_value(flow, index, item)
        assert value is not None
        yield _finding(
            context,
            flow,
            value,
            Fraction(item.found),
            Fraction(item.wanted),
            ("tasks", str(index), "outputs"),
            (),
            str(task.id),
        )
    flow = context.flows[0]
    seen: dict[tuple[int | None, Fraction], list[int]] = {}
    for index, identifier in enumerate(flow.scope.outputs):
        known = flow.values.get(identifier)
        if known is None or not known.known or known.scale is None or known.scale == ONE:
            continue
        seen.setdefault((flow.origin.get(identifier), known.scale), []).append(index)
    for (_, scale), places in sorted(seen.items(), key=lambda item: item[1]):
        first = flow.scope.outputs[places[0]]
        value = flow.scope.values[flow.position[first]]
        others = tuple(
            Related(
                f"also output {value_name(flow.scope.values[flow.position[flow.scope.outputs[place]]])}",
                ("outputs", str(place)),
            )
            for place in places[1:]
        )
        yield _finding(context, flow, value, scale, ONE, ("outputs", str(places[0])), others)


def _finding(
    context: Context, flow: Flow, value: DistributedValue, scale: Fraction, wanted: Fraction, path: tuple[str, ...],
    others: tuple[Related, ...], *ids: str,
) -> Diagnostic:  # fmt: skip
    origin = flow.origin.get(value.id)
    axes = factor_axes(scale / wanted, _sizes(context, flow, origin))
    where = f", brought in by {task_name(flow.scope.tasks[origin])}" if origin is not None else ""
    of = ""
    if axes is not None:
        names, divides = axes
        of = f" = {'1 / ' if divides else ''}{' x '.join(f'{name} ({context.around.space.sizes[name]})' for name in names)}"
    target = f"scale {wanted}" if wanted != ONE else "the specification"
    related = list(others)
    if origin is not None:
        related.insert(0, Related(f"factor comes from {task_name(flow.scope.tasks[origin])}", task_path(flow, origin)))
    more = scale / wanted
    repair = f"multiply by {1 / more} once" if more < 1 or more.denominator == 1 else f"bring the factor {more} to 1"
    place = f" in {task_name(flow.scope.tasks[origin])}" if origin is not None else ""
    task_ids = [str(flow.scope.tasks[origin].id)] if origin is not None else []
    return finding(
        "scale.factor",
        f"{value_name(value)} is {more} times {target}{of}{where}",
        path,
        hint=_hint(flow, origin, more, axes[0] if axes else (), f"{repair}{place}"),
        subject=(*ids, str(value.id), *task_ids, *(axes[0] if axes else ())),
        related=related,
    )


def _hint(flow: Flow, origin: int | None, more: Fraction, axes: tuple[str, ...], repair: str) -> str:
    if origin is None:
        return repair
    task = flow.scope.tasks[origin]
    reduction = getattr(getattr(task.body, "spec", None), "reduction", None)
    if reduction is not None and reduction.value == "avg" and more < 1:
        return f"reduce with sum instead of avg in {task_name(task)}, or {repair}"
    if reduction is not None and reduction.value == "sum" and more > 1 and axes:
        return f"drop {', '.join(axes)} from the axes of {task_name(task)}, or {repair}"
    return repair


def _sizes(context: Context, flow: Flow, origin: int | None) -> dict[str, int]:
    """Sizes of the axes, those of the task that brings a factor in first: of axes with one size they are meant."""
    sizes = context.around.space.sizes
    task = flow.scope.tasks[origin] if origin is not None else None
    own: tuple[str, ...] = ()
    if task is not None and isinstance(task.body, Collective) and not isinstance(task.body.spec, CollectivePermute):
        own = context.reader.axes(task.body.spec) or ()
    return {axis: sizes[axis] for axis in (*own, *(axis for axis in sizes if axis not in own))}


def mixed_factors(context: Context) -> Iterator[Diagnostic]:
    """Factors that meet.

    - addends have one scale;
    - an operator that is not homogeneous gets operands of scale 1.
    """
    for flow, index, item in context.deviations(Kind.SCALE_MIXED):
        task, value = flow.scope.tasks[index], operand_value(flow, index, item)
        name = value_name(value) if value is not None else "an operand"
        if item.note == "add":
            message = (
                f"{task_name(task)} adds {name}, which is {item.found} times its specification, to operands "
                f"that are {item.wanted} times theirs"
            )
        else:
            message = (
                f"{task_name(task)} ({task.operation.name}) takes {name}, which is {item.found} times its "
                "specification: the factor does not pass through"
            )
        origin = flow.origin.get(value.id) if value is not None else None
        source = f" where it comes from ({task_name(flow.scope.tasks[origin])})" if origin is not None else ""
        yield finding(
            "scale.mixed", message, task_path(flow, index, "inputs"),
            hint=f"bring {name} to scale {item.wanted} before {task_name(task)}: multiply by "
            f"{1 / (Fraction(item.found) / Fraction(item.wanted))}, or remove the factor{source}",
            subject=subjects(task, [value], []),
            related=related_values(flow, ("scaled:", value)),
        )  # fmt: skip


def token_weights(context: Context) -> Iterator[Diagnostic]:
    """Averages of quotients.

    - values that were divided by per-rank numbers are not averaged or summed with equal weights.
    """
    for flow, index, item in context.deviations(Kind.TOKEN_WEIGHT):
        task, value = flow.scope.tasks[index], operand_value(flow, index, item)
        name = value_name(value) if value is not None else "the operand"
        yield finding(
            "scale.token_weight",
            f"{task_name(task)} gives every rank along {context.axes_text(item.axes)} the same weight, "
            f"but {name} was divided by a number of that rank's own",
            task_path(flow, index),
            hint=f"all_reduce(sum) numerator and denominator over {', '.join(item.axes)} and divide once",
            subject=subjects(task, [value], item.axes),
            related=related_values(flow, ("divided per rank:", value)),
        )


RULES = (wrong_factor, mixed_factors, token_weights)
