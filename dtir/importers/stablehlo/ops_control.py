"""Loops and branches."""

from __future__ import annotations

import re

from dtir.importers.hlo.attributes import AttributeValue, Names
from dtir.importers.hlo.lexing import HloSyntaxError
from dtir.importers.hlo.shapes import ArrayShape, Shape, TupleShape
from dtir.importers.hlo.syntax import Computation
from dtir.importers.stablehlo.builder import Builder
from dtir.importers.stablehlo.syntax import Region
from dtir.importers.stablehlo.translate import Handler, Translator
from dtir.importers.stablehlo.views import NAME, Argument, View, arguments

_CARRIED = re.compile(rf"({NAME})\s*=\s*({NAME})", re.ASCII)


def _while(translator: Translator, builder: Builder, view: View) -> None:
    operation = view.operation
    if len(operation.regions) != 2:
        raise HloSyntaxError(f"needs a condition and a body, found {len(operation.regions)} regions", 0,
                             "mlir.missing_attribute")  # fmt: skip
    condition, body = operation.regions
    if operation.generic:
        operands = view.operands
        inside = arguments(condition.arguments, translator.shared), arguments(body.arguments, translator.shared)
    else:
        pairs = _CARRIED.findall(view.head)
        operands = tuple(value for _, value in pairs)
        carried = tuple(Argument(name, "") for name, _ in pairs)
        inside = carried, carried
    shapes = [builder.shape(ssa) for ssa in operands]
    if any(len(names) != len(shapes) for names in inside):
        raise HloSyntaxError(f"carries {len(shapes)} values, its regions take {len(inside[0])} and {len(inside[1])}",
                             0, "mlir.operand_count")  # fmt: skip
    outside = translator.outside(builder, (condition, body))
    outside = [ssa for ssa in outside if all(ssa != one.name for names in inside for one in names)]
    outside, sunk = translator.constants(builder, outside)
    label = f"{builder.name}.{translator.label(view)}"
    test, tested = translator.computation(builder, f"{label}.condition", condition, inside[0], shapes, outside, sunk)
    step, stepped = translator.computation(
        builder, f"{label}.body", body, inside[1], shapes, outside, sunk, carried=True
    )
    if tested.root.shape.text() != "pred[]":
        raise HloSyntaxError(f"its condition yields {tested.root.shape.text()}, wanted pred[]", 0, "mlir.operand_type")
    outer = [builder.shape(ssa) for ssa in outside]
    found = _elements(stepped)
    if [shape.text() for shape in found] != [shape.text() for shape in (*shapes, *outer)]:
        raise HloSyntaxError(
            f"its body yields {_texts(found[: len(shapes)])}, wanted {_texts(shapes)}", 0, "mlir.operand_type"
        )
    attributes: dict[str, AttributeValue] = {"condition": Names((test,)), "body": Names((step,))}
    values = [builder.value(ssa) for ssa in (*operands, *outside)]
    _emit(translator, builder, view, "while", attributes, values, shapes, outer)


def _emit(
    translator: Translator,
    builder: Builder,
    view: View,
    opcode: str,
    attributes: dict[str, AttributeValue],
    values: list[str],
    shapes: list[Shape],
    outer: list[Shape],
) -> None:
    """A loop; what it carries from outside is behind its own results, where nothing refers to it."""
    if not outer:
        translator.emit(builder, view, opcode, attributes, values, shapes)
        return
    operation = view.operation
    results = operation.result_names()
    if len(results) != len(shapes):
        raise HloSyntaxError(f"{len(results)} results of {len(shapes)} carried values", 0, "mlir.result_types")
    name = builder.emit(
        translator.label(view),
        opcode,
        TupleShape((*shapes, *outer)),
        values,
        {**attributes, **translator.common(builder, view, len(results))},
        operation.at,
    )
    for number, result in enumerate(results):
        builder.bind(result, name, number)


def _elements(computation: Computation) -> list[Shape]:
    shape = computation.root.shape
    if computation.root.opcode == "tuple" and isinstance(shape, TupleShape):
        return list(shape.elements)
    return [shape]


def _texts(shapes: list[Shape]) -> str:
    return ", ".join(shape.text() for shape in shapes) or "nothing"


def _branch(translator: Translator, builder: Builder, view: View) -> None:
    operation = view.operation
    if len(view.operands) != 1 or not operation.regions:
        raise HloSyntaxError(f"needs a selector and regions, found {len(view.operands)} operands and "
                             f"{len(operation.regions)} regions", 0, "mlir.operand_count")  # fmt: skip
    label = f"{builder.name}.{translator.label(view)}"
    names: list[str] = []
    bundles: list[str] = []
    shapes: list[Shape] = []
    for number, region in enumerate(operation.regions):
        outside, sunk = translator.constants(builder, translator.outside(builder, (region,)))
        values = [builder.value(ssa) for ssa in outside]
        bundle = builder.emit(
            f"{translator.label(view)}.operands.{number}",
            "tuple",
            TupleShape(tuple(builder.by_name[name].shape for name in values)),
            values,
            {},
            operation.at,
        )
        name, found = _branch_computation(
            translator, builder, f"{label}.branch.{number}", region, outside, sunk, bundle
        )
        if shapes and found != shapes:
            message = f"branch {number} yields {_texts(found)}, branch 0 {_texts(shapes)}"
            raise HloSyntaxError(message, 0, "mlir.operand_type")
        shapes = found
        names.append(name)
        bundles.append(bundle)
    selector = builder.value(view.operands[0])
    kind = builder.by_name[selector].shape
    if not isinstance(kind, ArrayShape) or kind.dims or kind.dtype not in ("pred", "s32"):
        raise HloSyntaxError(f"its selector is {kind.text()}, wanted pred[] or s32[]", 0, "mlir.operand_type")
    attributes: dict[str, AttributeValue] = {"branch_computations": Names(tuple(names))}
    if kind.dtype == "pred":
        if len(names) != 2:
            raise HloSyntaxError(f"has {len(names)} regions, wanted 2", 0, "mlir.operand_count")
        attributes = {"true_computation": Names((names[0],)), "false_computation": Names((names[1],))}
    translator.emit(builder, view, "conditional", attributes, [selector, *bundles], shapes)


def _branch_computation(
    translator: Translator,
    builder: Builder,
    name: str,
    region: Region,
    outside: list[str],
    sunk: list[str],
    bundle: str,
) -> tuple[str, list[Shape]]:
    """A branch as a computation of one tuple: the values that it uses from outside."""
    label = translator.fresh(name)
    translator.reserve(label, region.offset)
    inner = Builder(translator, label, region.offset, builder.manual, builder.mesh)
    shape = builder.by_name[bundle].shape
    operand = inner.parameter("%operands", shape, {}, region.offset, bound=False)
    for number, ssa in enumerate(outside):
        inner.bind(ssa, operand, number)
    translator.sink(builder, inner, sunk)
    results = translator.region(inner, region)
    translator.computations[label] = inner.finish(results, region.offset)
    return label, [inner.by_name[result].shape for result in results]


HANDLERS: dict[str, Handler] = {
    "stablehlo.while": _while,
    "stablehlo.case": _branch,
    "stablehlo.if": _branch,
}
