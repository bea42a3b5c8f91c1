"""Reductions, windows, scatters and sorts: operations with a function of elements."""

from __future__ import annotations

import re

from dtir.importers.hlo.attributes import AttributeValue, Names, Window
from dtir.importers.hlo.lexing import HloSyntaxError
from dtir.importers.hlo.shapes import ArrayShape
from dtir.importers.hlo.syntax import Computation, Instruction
from dtir.importers.stablehlo.builder import Builder
from dtir.importers.stablehlo.lists import closing, entries, split
from dtir.importers.stablehlo.ops_tensor import dims, take
from dtir.importers.stablehlo.syntax import Region
from dtir.importers.stablehlo.translate import Handler, Translator
from dtir.importers.stablehlo.values import boolean, booleans, dense_ints, integer, ints
from dtir.importers.stablehlo.views import NAME, Argument, View, arguments

_INIT = re.compile(rf"\(\s*({NAME})\s+init\s*:\s*({NAME})\s*\)", re.ASCII)
_APPLIES = re.compile(r"\bapplies\s+([\w.]+)")
_CONVOLUTION = re.compile(r"\[([^\]]*)\]\s*x\s*\[([^\]]*)\]\s*->\s*\[([^\]]*)\]")


def reducer(translator: Translator, opcode: str, dtype: str, offset: int) -> str:
    """The computation that applies one operation to two scalars; made once per type."""
    name = f"reducer.{opcode}.{dtype}"
    if name not in translator.computations:
        shape = ArrayShape(dtype, ())
        left = Instruction("lhs", "parameter", shape, (), {}, offset, 0)
        right = Instruction("rhs", "parameter", shape, (), {}, offset, 1)
        root = Instruction("result", opcode, shape, ("lhs", "rhs"), {}, offset)
        translator.computations[name] = Computation(name, (left, right, root), root, offset)
    return name


def _reduce(translator: Translator, builder: Builder, view: View) -> None:
    operation = view.operation
    if operation.generic:
        operands = view.operands
        to_apply = translator.applied(builder, view, operation.regions[0], f"{translator.label(view)}.reducer") \
            if operation.regions else ""  # fmt: skip
        dimensions = dims(view, "dimensions")
    else:
        pairs = _INIT.findall(view.head)
        operands = (*(value for value, _ in pairs), *(start for _, start in pairs))
        found = re.search(r"\bdimensions\s*=\s*\[([\d,\s]*)\]", view.head)
        dimensions = tuple(int(part) for part in found.group(1).split(",") if part.strip()) if found else ()
        if operation.regions:
            to_apply = _pretty_reducer(translator, builder, view)
        else:
            applies = _APPLIES.search(view.head)
            first = builder.shape(operands[0]) if operands else None
            if applies is None or not isinstance(first, ArrayShape):
                raise HloSyntaxError("needs a reducer", 0, "mlir.missing_attribute")
            opcode = applies.group(1).rpartition(".")[2].replace("_", "-")
            to_apply = reducer(translator, opcode, first.dtype, operation.at)
    if not operands or len(operands) % 2:
        raise HloSyntaxError(f"needs as many initial values as operands, found {len(operands)} altogether", 0,
                             "mlir.operand_count")  # fmt: skip
    attributes: dict[str, AttributeValue] = {"dimensions": dimensions, "to_apply": Names((to_apply,))}
    shapes = view.result_shapes
    if operation.regions and not operation.generic:
        # The types stand before the word "reducer".
        head, _, _ = operation.segments[0].rpartition("reducer")
        colon = head.rfind(" : ")
        shapes = translator.shared.types.of(_results(head[colon + 3 :]))
    translator.emit(builder, view, "reduce", attributes, [builder.value(ssa) for ssa in operands], shapes)


def _results(text: str) -> str:
    _, _, results = text.partition("->")
    results = re.sub(r"\bloc\(.*$", "", results.strip(), flags=re.DOTALL).strip()
    return results[1 : closing(results, 0) - 1] if results.startswith("(") else results


def _pretty_reducer(translator: Translator, builder: Builder, view: View) -> str:
    """The reducer behind ``reducer(%a: T, %b: T) (%c: U, %d: U) {``: pairs, of which HLO takes all firsts first."""
    operation = view.operation
    _, _, text = operation.segments[0].rpartition("reducer")
    firsts: list[Argument] = []
    seconds: list[Argument] = []
    pos = text.find("(")
    while pos >= 0:
        end = closing(text, pos)
        pair = arguments(text[pos + 1 : end - 1], translator.shared)
        if len(pair) != 2:
            raise HloSyntaxError("a reducer takes pairs of values", 0, "mlir.operand_count")
        firsts.append(pair[0])
        seconds.append(pair[1])
        pos = text.find("(", end)
    name = f"{builder.name}.{translator.label(view)}.reducer"
    return translator.computation(builder, name, operation.regions[0], (*firsts, *seconds))[0]


def _window(view: View, rank: int) -> Window:
    ones = (1,) * rank
    size = ints(take(view, "window_dimensions")) or ones
    rank = len(size)
    ones = (1,) * rank
    flat = dense_ints(take(view, "padding") or "dense<> : tensor<0xi64>") or ()
    pads = tuple(zip(flat[::2], flat[1::2], strict=False)) or ((0, 0),) * rank
    return Window(
        size,
        ints(take(view, "window_strides")) or ones,
        pads,
        ints(take(view, "base_dilations", "lhs_dilation")) or ones,
        ints(take(view, "window_dilations", "rhs_dilation")) or ones,
        booleans(take(view, "window_reversal")) or (False,) * rank,
    )


def _reduce_window(translator: Translator, builder: Builder, view: View) -> None:
    first = builder.shape(view.operands[0]) if view.operands else None
    rank = len(first.dims) if isinstance(first, ArrayShape) else 0
    name = translator.applied(builder, view, _region(view, 0), f"{translator.label(view)}.reducer")
    attributes: dict[str, AttributeValue] = {"window": _window(view, rank), "to_apply": Names((name,))}
    translator.emit(builder, view, "reduce-window", attributes)


def _select_and_scatter(translator: Translator, builder: Builder, view: View) -> None:
    select = translator.applied(builder, view, _region(view, 0), f"{translator.label(view)}.select")
    scatter = translator.applied(builder, view, _region(view, 1), f"{translator.label(view)}.scatter")
    attributes: dict[str, AttributeValue] = {
        "window": _window(view, 0),
        "select": Names((select,)),
        "scatter": Names((scatter,)),
    }
    translator.emit(builder, view, "select-and-scatter", attributes)


def _region(view: View, number: int) -> Region:
    regions = view.operation.regions
    if number >= len(regions):
        raise HloSyntaxError(f"needs {number + 1} regions, found {len(regions)}", 0, "mlir.missing_attribute")
    return regions[number]


def _scatter(translator: Translator, builder: Builder, view: View) -> None:
    numbers = take(view, "scatter_dimension_numbers") or ""
    stated = entries(numbers[numbers.find("<") + 1 : -1])
    name = translator.applied(builder, view, _region(view, 0), f"{translator.label(view)}.update")
    attributes: dict[str, AttributeValue] = {
        "index_vector_dim": integer(stated.get("index_vector_dim")) or 0,
        "to_apply": Names((name,)),
    }
    for key in (
        "update_window_dims",
        "inserted_window_dims",
        "scatter_dims_to_operand_dims",
        "input_batching_dims",
        "scatter_indices_batching_dims",
    ):
        if key in stated or not key.endswith("batching_dims"):
            attributes[key] = ints(stated.get(key)) or ()
    for flag in ("indices_are_sorted", "unique_indices"):
        if boolean(take(view, flag)):
            attributes[flag] = True
    translator.emit(builder, view, "scatter", attributes)


def _sort(translator: Translator, builder: Builder, view: View) -> None:
    name = translator.applied(builder, view, _region(view, 0), f"{translator.label(view)}.comparator")
    first = builder.shape(view.operands[0]) if view.operands else None
    rank = len(first.dims) if isinstance(first, ArrayShape) else 1
    stated = integer(take(view, "dimension"))
    dim = rank - 1 if stated is None or stated == -1 else stated
    attributes: dict[str, AttributeValue] = {"dimensions": (dim,), "to_apply": Names((name,))}
    if boolean(take(view, "is_stable")):
        attributes["is_stable"] = True
    translator.emit(builder, view, "sort", attributes)


def _map(translator: Translator, builder: Builder, view: View) -> None:
    name = translator.applied(builder, view, _region(view, 0), f"{translator.label(view)}.function")
    translator.emit(builder, view, "map", {"dimensions": dims(view, "dimensions"), "to_apply": Names((name,))})


def _convolution(translator: Translator, builder: Builder, view: View) -> None:
    stated = take(view, "dimension_numbers")
    match = _CONVOLUTION.search(stated if stated is not None else view.pretty)
    if match is None:
        raise HloSyntaxError("needs dim_numbers such as [b, 0, f]x[0, i, o]->[b, 0, f]", 0, "mlir.missing_attribute")
    left, right, out = ("".join(split(text)) for text in match.groups())
    kernel = builder.shape(view.operands[1]) if len(view.operands) > 1 else None
    if not isinstance(kernel, ArrayShape) or len(kernel.dims) != len(right):
        raise HloSyntaxError("its kernel does not have the dims that dim_numbers name", 0, "mlir.operand_count")
    spatial = sorted(mark for mark in right if mark.isdigit())
    size = tuple(kernel.dims[right.index(mark)] for mark in spatial)
    found = re.search(r"\bwindow\s*=\s*\{", view.pretty)
    if found is not None and not view.operation.generic:
        text = view.pretty
        parts = entries(text[found.end() : closing(text, found.end() - 1) - 1])
        flat = [int(part) for part in re.findall(r"-?\d{1,18}", parts.get("pad", ""))]
        ones = (1,) * len(size)
        window = Window(
            size,
            ints(parts.get("stride")) or ones,
            tuple(zip(flat[::2], flat[1::2], strict=False)) or ((0, 0),) * len(size),
            ints(parts.get("lhs_dilate")) or ones,
            ints(parts.get("rhs_dilate")) or ones,
            booleans(parts.get("reverse")) or (False,) * len(size),
        )
    else:
        rest = _window(view, len(size))
        window = Window(size, rest.stride, rest.pad, rest.lhs_dilate, rest.rhs_dilate, rest.reversed)
    attributes: dict[str, AttributeValue] = {"window": window, "dim_labels": f"{left}_{right}->{out}"}
    for key in ("feature_group_count", "batch_group_count"):
        count = integer(take(view, key))
        if count is not None and count != 1:
            attributes[key] = count
    take(view, "precision_config")
    translator.emit(builder, view, "convolution", attributes)


HANDLERS: dict[str, Handler] = {
    "stablehlo.reduce": _reduce,
    "stablehlo.reduce_window": _reduce_window,
    "stablehlo.select_and_scatter": _select_and_scatter,
    "stablehlo.scatter": _scatter,
    "stablehlo.sort": _sort,
    "stablehlo.map": _map,
    "stablehlo.convolution": _convolution,
}
