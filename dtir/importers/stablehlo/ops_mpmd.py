"""MPMD programs: fragments that run on one mesh each, transfers between meshes, loops over them.

Source: the public MPMD dialect (openxla/shardy, dialect/mpmd/ir).
"""

from __future__ import annotations

import re

from dtir.importers.hlo.attributes import AttributeValue, Names, Raw
from dtir.importers.hlo.lexing import HloSyntaxError
from dtir.importers.hlo.shapes import ArrayShape
from dtir.importers.stablehlo.builder import Builder
from dtir.importers.stablehlo.lists import closing
from dtir.importers.stablehlo.mpmd import ON
from dtir.importers.stablehlo.ops_sdy import body_call, manual_arguments, operand_list
from dtir.importers.stablehlo.translate import Handler, Translator
from dtir.importers.stablehlo.values import integer
from dtir.importers.stablehlo.views import View, arguments

_MESH = re.compile(r'\bmesh\s*=\s*"([^"\n]*)"')
_ORIGIN = re.compile(r"\borigin\s*=\s*\[([^\]]*)\]")


def _fragment(translator: Translator, builder: Builder, view: View) -> None:
    operation = view.operation
    if len(operation.regions) != 1:
        raise HloSyntaxError(f"needs one region, found {len(operation.regions)}", 0, "mlir.missing_attribute")
    head = operation.segments[0]
    attributes: dict[str, AttributeValue] = {}
    for name, pattern in (("mpmd.mesh", _MESH), ("mpmd.origin", _ORIGIN)):
        match = pattern.search(head)
        if match is not None:
            attributes[name] = Raw(match.group(1))
    # Its own angle brackets hold no operands.
    start = head.find("<")
    if 0 <= start < (head.find("(") if "(" in head else len(head)):
        operation.segments[0] = head[closing(head, start) :]
    match = _MESH.search(head)
    number = translator.topology.number(match.group(1)) if translator.topology is not None and match is not None else -1
    if number >= 0 and not operation.results:
        attributes[ON] = (number,)
    body_call(translator, builder, view, "fragment", attributes, number if number >= 0 else None)


def _transfer(translator: Translator, builder: Builder, view: View) -> None:
    translator.emit(builder, view, "mpmd.transfer", {"types": Raw(" ".join(view.type_text.split()))})


def _for(translator: Translator, builder: Builder, view: View) -> None:
    """A loop with a stated number of iterations: the last argument of its body counts them."""
    operation = view.operation
    iterations = integer(view.attributes.pop("iterations", None))
    if iterations is None or len(operation.regions) != 1:
        raise HloSyntaxError("needs iterations and one region", 0, "mlir.missing_attribute")
    operands = operand_list(view)
    parameters = arguments(manual_arguments(view), translator.shared)
    if len(parameters) != len(operands) + 1:
        message = f"carries {len(operands)} values, its body takes {len(parameters)} with the number of the iteration"
        raise HloSyntaxError(message, 0, "mlir.operand_count")
    values = [builder.value(ssa) for ssa in operands]
    label = translator.label(view)
    kind = ArrayShape("u32", ())
    first = builder.emit(f"{label}.first", "constant", kind, (), {}, operation.at, "0")
    shapes = [builder.by_name[name].shape for name in values]
    name, _ = translator.computation(
        builder,
        f"{builder.name}.{label}.iteration",
        operation.regions[0],
        parameters,
        [*shapes, kind],
        counted=True,
    )
    attributes: dict[str, AttributeValue] = {"body": Names((name,)), "iterations": iterations}
    emitted = builder.emit(
        label,
        "mpmd.for",
        translator.bundle([*shapes, kind]),
        [*values, first],
        {**attributes, **translator.common(builder, view, 0)},
        operation.at,
    )
    for number, result in enumerate(operation.result_names()):
        builder.bind(result, emitted, number)


HANDLERS: dict[str, Handler] = {
    "mpmd.fragment": _fragment,
    "mpmd.transfer": _transfer,
    "mpmd.for": _for,
}
