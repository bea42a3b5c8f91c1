"""Shardy's operations: manual computations, constraints, and communication between layouts of whole values."""

from __future__ import annotations

import re

from dtir.importers.hlo.attributes import AttributeValue, Frontend, Names, Raw
from dtir.importers.hlo.lexing import HloSyntaxError
from dtir.importers.hlo.shapes import Shape, TupleShape
from dtir.importers.hlo.shardings import Sharding
from dtir.importers.stablehlo.builder import Builder
from dtir.importers.stablehlo.lists import closing
from dtir.importers.stablehlo.sdy import parse_list, parse_refs, to_hlo
from dtir.importers.stablehlo.shardings import joined
from dtir.importers.stablehlo.translate import Handler, Translator
from dtir.importers.stablehlo.values import string
from dtir.importers.stablehlo.views import View, arguments

_LISTS = re.compile(r"\b(in_shardings|out_shardings)\s*=\s*(?:#sdy\.sharding_per_value<)?\s*\[")
_MANUAL = re.compile(r"\bmanual_axes\s*=?\s*(?:#sdy<manual_axes)?\s*\{([^{}]*)\}")
_OUT = re.compile(r"\b(?:out_sharding|sharding)\s*=\s*(?:#sdy\.sharding)?\s*<")
_LAST_GROUP = re.compile(r"\(\s*(?:%[^()]*(?:\([^()]*\)[^()]*)*)?\)\s*$")


def manual_parts(view: View) -> tuple[str, str, tuple[str, ...]]:
    """In shardings, out shardings (as the text of lists) and manual axes of a manual computation."""
    text = view.operation.segments[0]
    if view.operation.generic:
        text += " " + " ".join(view.operation.segments[1:])
    lists = {match.group(1): text[match.end() - 1 : closing(text, match.end() - 1)] for match in _LISTS.finditer(text)}
    manual = _MANUAL.search(text)
    if len(lists) != 2 or manual is None:
        raise HloSyntaxError("needs in_shardings, out_shardings and manual_axes", 0, "mlir.missing_attribute")
    refs, _ = parse_refs(manual.group(1))
    return lists["in_shardings"], lists["out_shardings"], tuple(ref.name for ref in refs)


def manual_arguments(view: View) -> str:
    """The text of the arguments of the body of a manual computation or a fragment."""
    if not view.operation.regions:
        return ""
    region = view.operation.regions[0]
    if region.arguments:
        return region.arguments
    head = view.operation.segments[0].rstrip()
    if not head.endswith(")"):
        return ""
    depth = 0
    for at in range(len(head) - 1, -1, -1):
        if head[at] == ")":
            depth += 1
        elif head[at] == "(":
            depth -= 1
            if depth == 0:
                return head[at + 1 : -1]
    return ""


def operand_list(view: View) -> tuple[str, ...]:
    """Operands in the first parentheses: behind them stand the arguments of the body."""
    head = view.operation.segments[0]
    start = head.find("(")
    if start < 0:
        return ()
    return tuple(re.findall(r"%[\w.$\-]+(?:#\d+)?", head[start : closing(head, start)], re.ASCII))


def _manual_computation(translator: Translator, builder: Builder, view: View) -> None:
    operation = view.operation
    if len(operation.regions) != 1:
        raise HloSyntaxError(f"needs one region, found {len(operation.regions)}", 0, "mlir.missing_attribute")
    stated_in, stated_out, axes = manual_parts(view)
    operands = operand_list(view)
    parameters = arguments(manual_arguments(view), translator.shared)
    if len(parameters) != len(operands):
        message = f"passes {len(operands)} operands to a body that takes {len(parameters)}"
        raise HloSyntaxError(message, 0, "mlir.operand_count")
    manual = (*builder.manual, *(axis for axis in axes if axis not in builder.manual))
    translator.shardings.note(stated_in + stated_out)
    ins, outs = parse_list(stated_in), parse_list(stated_out)
    label = translator.label(view)
    axes_text = ", ".join(f'"{axis}"' for axis in axes)
    frontend = [("xla.sdy.manual_axes", f"#sdy<manual_axes{{{axes_text}}}>")]
    local: list[Shape] = [translator.shared.types.one(parameter.type) for parameter in parameters]
    values = [builder.value(ssa) for ssa in operands]
    common = translator.common(builder, view, 0)
    if values:
        entering = (("xla.sdy.in_shardings", f"#sdy.sharding_per_value<{_one_line(stated_in)}>"), *frontend)
        attributes: dict[str, AttributeValue] = {
            "custom_call_target": "xla.sdy.GlobalToLocalShape",
            "frontend_attributes": Frontend(entering),
            **common,
        }
        kind = TupleShape(tuple(local)) if len(local) != 1 else local[0]
        entered = builder.emit(f"{label}.parts", "custom-call", kind, values, attributes, operation.at)
        values = [entered] if len(local) == 1 else _elements(builder, entered, local, operation.at)
    inside: list[Sharding | None] = [
        to_hlo(one, translator.meshes, manual) if any(ref.name not in manual for ref in one.used()) else None
        for one in ins
    ]
    name, body = translator.computation(
        builder,
        f"{builder.name}.{label}.manual",
        operation.regions[0],
        parameters,
        local,
        manual=manual,
        shardings=inside,
    )
    results = operation.result_names()
    found = list(body.root.shape.elements) if body.root.opcode == "tuple" and isinstance(body.root.shape, TupleShape) \
        else [body.root.shape]  # fmt: skip
    if len(found) != len(results):
        message = f"its body yields {len(found)} values, it has {len(results)} results"
        raise HloSyntaxError(message, 0, "mlir.result_types")
    called = builder.emit(
        f"{label}.call", "call", body.root.shape, values, {"to_apply": Names((name,)), **common}, operation.at
    )
    if not results:
        return
    values = [called] if body.root.opcode != "tuple" else _elements(builder, called, found, operation.at)
    leaving = (*frontend, ("xla.sdy.out_shardings", f"#sdy.sharding_per_value<{_one_line(stated_out)}>"))
    attributes = {
        "custom_call_target": "xla.sdy.LocalToGlobalShape",
        "frontend_attributes": Frontend(leaving),
        **common,
    }
    whole = [to_hlo(one, translator.meshes, builder.manual) for one in outs]
    if len(whole) == len(results):
        sharding = joined(whole) if len(whole) != 1 else whole[0]
        if sharding is not None:
            attributes["sharding"] = sharding
    shapes = view.result_shapes
    if len(shapes) != len(results):
        raise HloSyntaxError(f"{len(results)} results, but {len(shapes)} types for them", 0, "mlir.result_types")
    kind = shapes[0] if len(shapes) == 1 else TupleShape(shapes)
    translator.bind(builder, view, builder.emit(label, "custom-call", kind, values, attributes, operation.at))


def _elements(builder: Builder, name: str, shapes: list[Shape], offset: int) -> list[str]:
    return [
        builder.emit(f"{name}#{number}", "get-tuple-element", shape, (name,), {"index": number}, offset)
        for number, shape in enumerate(shapes)
    ]


def _one_line(text: str) -> str:
    return " ".join(text.split())


def out_sharding(view: View) -> str | None:
    """The text of the sharding that an operation states for its result."""
    text = view.pretty
    match = _OUT.search(text)
    if match is not None:
        return text[match.end() - 1 : closing(text, match.end() - 1)]
    if view.operation.generic:
        return view.attribute("sharding") or view.attribute("out_sharding")
    start = text.find("<", text.find("%"))
    return text[start : closing(text, start)] if start >= 0 else None


def _relayout(opcode: str) -> Handler:
    """An operation whose result is its operand in a layout that it states."""

    def translate(translator: Translator, builder: Builder, view: View) -> None:
        stated = out_sharding(view)
        if stated is None or len(view.operands) != 1:
            raise HloSyntaxError("needs one operand and a sharding", 0, "mlir.missing_attribute")
        for name in ("sharding", "out_sharding"):
            view.attributes.pop(name, None)
        attributes: dict[str, AttributeValue] = {}
        found = translator.shardings.of({"sdy.sharding": _one_line(stated)}, 1, builder.manual, view.operation.at)
        if found is not None:
            attributes["sharding"] = found
        axes = axes_text(view)
        if axes:
            attributes["axes"] = Raw(axes)
        if view.operation.at in translator.shardings.faulty:
            attributes["ill_formed"] = True
        target = "Sharding" if opcode == "sdy.sharding_constraint" else ""
        if target:
            attributes["custom_call_target"] = target
        shapes = view.result_shapes or (builder.shape(view.operands[0]),)
        translator.emit(builder, view, "custom-call" if target else opcode, attributes, shapes=shapes)

    return translate


def axes_text(view: View) -> str:
    """What stands between the name of the operation and its operand: the axes that it works along."""
    if view.operation.generic:
        found = [text for name, text in view.attributes.items() if name.endswith(("_axes", "params"))]
        return found[0] if found else ""
    head = view.head
    return _one_line(head[: head.find("%")]) if "%" in head else ""


def _barrier(translator: Translator, builder: Builder, view: View) -> None:
    direction = re.search(r"allowed_direction\s*=\s*(?:#sdy<propagation_direction\s*)?(\w+)", view.pretty)
    attributes: dict[str, AttributeValue] = {}
    if direction is not None:
        attributes["allowed_direction"] = direction.group(1)
    view.attributes.pop("allowed_direction", None)
    translator.emit(builder, view, "sdy.propagation_barrier", attributes)


def _group(translator: Translator, builder: Builder, view: View) -> None:
    number = re.search(r"group_id\s*=\s*(\d{1,18})", view.pretty)
    view.attributes.pop("group_id", None)
    attributes: dict[str, AttributeValue] = {"group_id": int(number.group(1))} if number is not None else {}
    translator.emit(builder, view, "sdy.sharding_group", attributes, shapes=())


def _named(translator: Translator, builder: Builder, view: View) -> None:
    """``sdy.named_computation<"name">(operands) (arguments) {...}``: a call of its body."""
    operation = view.operation
    if len(operation.regions) != 1:
        raise HloSyntaxError(f"needs one region, found {len(operation.regions)}", 0, "mlir.missing_attribute")
    name = string(operation.segments[0].strip().lstrip("<")) or string(view.attribute("name")) or "computation"
    body_call(translator, builder, view, name, {})


def body_call(
    translator: Translator,
    builder: Builder,
    view: View,
    name: str,
    attributes: dict[str, AttributeValue],
    mesh: int | None = None,
) -> None:
    """A call of the operation's own region, with its operands as arguments."""
    operands = operand_list(view)
    parameters = arguments(manual_arguments(view), translator.shared)
    if len(parameters) != len(operands):
        message = f"passes {len(operands)} operands to a body that takes {len(parameters)}"
        raise HloSyntaxError(message, 0, "mlir.operand_count")
    label, _ = translator.computation(
        builder, f"{builder.name}.{translator.label(view)}.{name}", view.operation.regions[0], parameters, mesh=mesh
    )
    values = [builder.value(ssa) for ssa in operands]
    translator.emit(builder, view, "call", {"to_apply": Names((label,)), **attributes}, values)


HANDLERS: dict[str, Handler] = {
    "sdy.manual_computation": _manual_computation,
    "sdy.sharding_constraint": _relayout("sdy.sharding_constraint"),
    "sdy.named_computation": _named,
    "sdy.propagation_barrier": _barrier,
    "sdy.sharding_group": _group,
    **{
        f"sdy.{name}": _relayout(f"sdy.{name}")
        for name in (
            "reshard",
            "all_gather",
            "all_slice",
            "all_to_all",
            "collective_permute",
            "all_reduce",
            "reduce_scatter",
            "sharded_to_unreduced",
            "replicated_to_unreduced",
        )
    },
}
