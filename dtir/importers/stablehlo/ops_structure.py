"""Calls, custom calls, tuples, tokens and barriers."""

from __future__ import annotations

import re

from dtir.importers.hlo.attributes import AttributeValue, Names, Raw
from dtir.importers.hlo.lexing import HloSyntaxError
from dtir.importers.hlo.shapes import TupleShape
from dtir.importers.stablehlo.builder import Builder
from dtir.importers.stablehlo.ops_tensor import number, take
from dtir.importers.stablehlo.translate import Handler, Translator
from dtir.importers.stablehlo.values import boolean, string
from dtir.importers.stablehlo.views import View


def _custom_call(translator: Translator, builder: Builder, view: View) -> None:
    target = string(take(view, "call_target_name")) or view.symbol()
    attributes: dict[str, AttributeValue] = {"custom_call_target": target}
    config = take(view, "backend_config")
    if config not in (None, '""'):
        attributes["backend_config"] = Raw(config or "")
    if boolean(take(view, "has_side_effect")):
        attributes["custom_call_has_side_effect"] = True
    translator.emit(builder, view, "custom-call", attributes)


def _call(translator: Translator, builder: Builder, view: View) -> None:
    callee = view.symbol() or (take(view, "callee", "decomposition") or "").strip("@ ")
    enter(translator, builder, view, callee.strip('"'))


def _composite(translator: Translator, builder: Builder, view: View) -> None:
    callee = (take(view, "decomposition") or "").strip().lstrip("@").strip('"')
    enter(translator, builder, view, callee)


def enter(translator: Translator, builder: Builder, view: View, callee: str) -> None:
    """A call of a function; of one without a body a custom call."""
    function = translator.functions.get(callee)
    if function is None:
        if not callee or callee not in translator.declared:
            raise HloSyntaxError(f"there is no function @{callee}", 0, "mlir.unknown_function")
        translator.emit(builder, view, "custom-call", {"custom_call_target": callee})
        return
    operands = view.operands
    if len(operands) != len(function.arguments):
        message = f"passes {len(operands)} operands to @{callee}, which takes {len(function.arguments)}"
        raise HloSyntaxError(message, 0, "mlir.operand_count")
    results = view.operation.result_names()
    if len(results) != len(function.results):
        message = f"takes {len(results)} results from @{callee}, which gives {len(function.results)}"
        raise HloSyntaxError(message, 0, "mlir.operand_count")
    for ssa, argument in zip(operands, function.arguments, strict=True):
        found, wanted = builder.shape(ssa), translator.shared.types.one(argument.type)
        if found.text() != wanted.text():
            message = f"passes {found.text()} to @{callee}, whose {argument.name} is {wanted.text()}"
            raise HloSyntaxError(message, 0, "mlir.operand_type")
    translator.emit(builder, view, "call", {"to_apply": Names((callee,))})


def _tuple(translator: Translator, builder: Builder, view: View) -> None:
    operands = [builder.value(ssa) for ssa in view.operands]
    shape = TupleShape(tuple(builder.by_name[name].shape for name in operands))
    translator.emit(builder, view, "tuple", operands=operands, shapes=(shape,))


def _element(translator: Translator, builder: Builder, view: View) -> None:
    match = re.search(r"\[\s*(\d{1,9})\s*\]", view.head)
    index = int(match.group(1)) if match is not None and not view.operation.generic else number(view, "index")
    shape = builder.shape(view.operands[0]) if view.operands else None
    if not isinstance(shape, TupleShape) or index >= len(shape.elements):
        raise HloSyntaxError(f"takes element {index} of what has no such element", 0, "mlir.operand_type")
    translator.emit(builder, view, "get-tuple-element", {"index": index}, shapes=(shape.elements[index],))


def _barrier(translator: Translator, builder: Builder, view: View) -> None:
    operands = [builder.value(ssa) for ssa in view.operands]
    shapes = [builder.by_name[name].shape for name in operands]
    if not operands:
        return
    if len(operands) > 1:
        bundle = builder.emit(
            f"{translator.label(view)}.operands", "tuple", TupleShape(tuple(shapes)), operands, {}, view.operation.at
        )
        operands = [bundle]
    translator.emit(builder, view, "opt-barrier", operands=operands, shapes=shapes)


def _plain(opcode: str) -> Handler:
    def translate(translator: Translator, builder: Builder, view: View) -> None:
        translator.emit(builder, view, opcode)

    return translate


HANDLERS: dict[str, Handler] = {
    "stablehlo.custom_call": _custom_call,
    "func.call": _call,
    "call": _call,
    "stablehlo.composite": _composite,
    "stablehlo.tuple": _tuple,
    "stablehlo.get_tuple_element": _element,
    "stablehlo.optimization_barrier": _barrier,
    "stablehlo.after_all": _plain("after-all"),
    "stablehlo.create_token": _plain("after-all"),
    "stablehlo.infeed": _plain("infeed"),
    "stablehlo.outfeed": _plain("outfeed"),
}
