"""Checks the Shardy parts of a module before anything is made of it: meshes, shardings, collectives, manual computations.

One finding per operation, at the operation; the rules stand in `check_sharding`, `check_collectives` and below:

- a function's argument or result has a sharding, an operation a list with one sharding per result;
- a manual computation has a sharding per operand and result, all over one mesh; its axes are axes of that mesh, not bound
  already, stand before other axes in every dim, and are not cut into parts; what its body takes and yields are the parts that
  the shardings say.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import replace

from dtir.importers.hlo.lexing import HloSyntaxError
from dtir.importers.hlo.problems import Problems
from dtir.importers.hlo.shapes import ArrayShape, Shape, TupleShape
from dtir.importers.stablehlo.check_collectives import COLLECTIVES, check_collective
from dtir.importers.stablehlo.check_sharding import Fault, check_sharding
from dtir.importers.stablehlo.functions import Function
from dtir.importers.stablehlo.lists import split
from dtir.importers.stablehlo.ops_sdy import axes_text, manual_arguments, manual_parts, operand_list, out_sharding
from dtir.importers.stablehlo.sdy import SdyMesh, SdySharding, parse_list, parse_sharding
from dtir.importers.stablehlo.syntax import Operation, Region
from dtir.importers.stablehlo.types import OPAQUE
from dtir.importers.stablehlo.views import Dialects, View, arguments

_REGION_WORDS = re.compile(r"\b(?:reducer|cond|attributes)\b")
"""What follows the types in pretty forms whose regions stand behind them."""
_STATED = COLLECTIVES | {"sdy.reshard", "sdy.sharding_constraint"}
_HINTS = {
    "sharding.unknown_axis": "use an axis of the mesh",
    "sharding.axis_reuse": "an axis shards one dim, or is replicated or unreduced; name it once",
    "sharding.rank": "one entry per dim of the tensor",
    "shardy.unknown_mesh": "define the mesh with sdy.mesh",
    "shardy.no_sharding": "a collective changes a layout: give its operand one",
}


class Checker:
    """Checks the functions of one part; `faulty` are offsets of operations that have a finding."""

    def __init__(self, shared: Dialects, meshes: Mapping[str, SdyMesh], problems: Problems) -> None:
        self._shared = shared
        self._meshes = meshes
        self._problems = problems
        self._values: dict[str, SdySharding | None] = {}
        self.faulty: set[int] = set()

    def function(self, function: Function) -> None:
        """Check a function."""
        offset = function.operation.offset
        self._values = {}
        for what, values in (("arg", function.arguments), ("result", function.results)):
            for number, one in enumerate(values):
                stated = self._attribute(one.attributes)
                if stated is None:
                    continue
                fault = self._value(stated, one.type, f"{what} {number}", one.name if what == "arg" else "")
                if fault is not None:
                    self._report(fault, f"@{function.name}", offset)
                    break
        self._region(function.body, ())

    def _attribute(self, attributes: Mapping[str, str]) -> str | None:
        text = attributes.get("sdy.sharding")
        return None if text is None else self._shared.part.aliases.get(text, text)

    def _value(self, stated: str, kind: str, what: str, name: str) -> Fault | None:
        if "sharding_per_value" in stated:
            return Fault("shardy.attribute", f"{what}: wanted #sdy.sharding<...>, found a list of shardings")
        try:
            sharding = parse_sharding(stated)
        except HloSyntaxError as error:
            return Fault("mlir.sharding", f"{what}: {error.message}")
        if name:
            self._values[name] = sharding
        fault = check_sharding(sharding, self._shared.types.one(kind), kind, self._meshes)
        return None if fault is None else Fault(fault.code, f"{what}: {fault.message}")

    def _report(self, fault: Fault, name: str, offset: int) -> None:
        self.faulty.add(offset)
        # Whether a reduction may leave its result unreduced along further axes depends on the version of Shardy.
        say = self._problems.warning if fault.code == "partial.fabricated" else self._problems.error
        say(fault.code, f"{name}: {fault.message}", offset, _HINTS.get(fault.code))

    # -- operations --------------------------------------------------------------------------------------------

    def _region(self, region: Region, manual: tuple[str, ...]) -> None:
        stack = [(iter([*region.operations()]), manual)]
        while stack:
            operations, bound = stack[-1]
            operation = next(operations, None)
            if operation is None:
                stack.pop()
                continue
            inner = bound
            if "sdy" in operation.name or any("sdy." in segment for segment in operation.segments):
                view = View(operation, self._shared)
                try:
                    fault, inner = self._operation(view, bound)
                except HloSyntaxError as error:
                    fault = Fault("mlir.sharding" if error.code == "hlo.syntax" else error.code, error.message)
                if fault is not None:
                    self._report(fault, operation.name, operation.at)
            for nested in operation.regions:
                stack.append((iter([*nested.operations()]), inner))

    def _operation(self, view: View, bound: tuple[str, ...]) -> tuple[Fault | None, tuple[str, ...]]:
        """The finding about an operation, and the axes that are bound inside of it."""
        operation = view.operation
        if operation.name == "sdy.manual_computation":
            return self._manual(view, bound)
        if operation.name in _STATED:
            return self._relayout(view, bound), bound
        if operation.name == "sdy.propagation_barrier" and "allowed_direction=BOTH" in view.pretty.replace(" ", ""):
            return Fault("shardy.attribute", "direction BOTH is no barrier"), bound
        stated = self._attribute(view.attributes)
        if stated is None:
            return None, bound
        if "sharding_per_value" not in stated:
            message = "wanted #sdy.sharding_per_value<[...]> on an operation, found one sharding"
            return Fault("shardy.attribute", message), bound
        return self._per_value(view, parse_list(stated), bound), bound

    def _per_value(self, view: View, shardings: Sequence[SdySharding], bound: tuple[str, ...]) -> Fault | None:
        names = view.operation.result_names()
        shapes, kinds = self._result_types(view)
        if not names:
            shapes, kinds = (None,), ("",)
            if not shardings:
                return None
        elif len(shardings) != len(names):
            return Fault("shardy.attribute", f"{len(shardings)} shardings for {len(names)} results")
        for number, sharding in enumerate(shardings):
            shape = shapes[number] if number < len(shapes) else OPAQUE
            kind = kinds[number] if number < len(kinds) else ""
            if isinstance(shape, TupleShape):
                if len(shape.elements) != 1:
                    message = f"a sharding for a tuple of {len(shape.elements)}; only a tuple of one can have one"
                    return Fault("shardy.attribute", message)
                shape = shape.elements[0]
            fault = check_sharding(sharding, shape, kind, self._meshes, bound)
            if fault is not None:
                what = "result" if len(shardings) == 1 else f"result {number}"
                return Fault(fault.code, f"{what}: {fault.message}")
            if number < len(names):
                self._values[names[number]] = sharding
        return None

    def _result_types(self, view: View) -> tuple[tuple[Shape | None, ...], tuple[str, ...]]:
        """Shapes and texts of the result types; of a reduce with a region they stand before its reducer."""
        text = view.type_text
        operation = view.operation
        if operation.regions and not operation.generic:
            before = _REGION_WORDS.split(operation.segments[0])[0]
            text = before[before.rfind(" :") + 2 :] if " :" in before and not text else text
        _, results = self._shared.signature(text.strip())
        kinds = tuple(split(results))
        count = len(operation.result_names())
        if len(kinds) != count and kinds:
            kinds = (kinds[-1],) * count
        return tuple(self._shared.types.one(kind) for kind in kinds), kinds

    def _relayout(self, view: View, bound: tuple[str, ...]) -> Fault | None:
        stated = out_sharding(view)
        if stated is None:
            return None
        sharding = parse_sharding(stated)
        name = view.name
        source = self._values.get(view.operands[0]) if view.operands else None
        shapes, kinds = self._result_types(view)
        fault = check_sharding(sharding, shapes[0] if shapes else None, kinds[0] if kinds else "", self._meshes, bound)
        if fault is None and name in COLLECTIVES:
            fault = check_collective(name, axes_text(view), source, sharding, self._meshes)
        elif fault is None and source is not None:
            fault = _kept_reduction(source, sharding)
        for result in view.operation.result_names():
            self._values[result] = sharding
        return fault

    # -- manual computations -----------------------------------------------------------------------------------

    def _manual(self, view: View, bound: tuple[str, ...]) -> tuple[Fault | None, tuple[str, ...]]:
        stated_in, stated_out, axes = manual_parts(view)
        ins, outs = parse_list(stated_in), parse_list(stated_out)
        parameters = arguments(manual_arguments(view), self._shared)
        for name, sharding in zip(view.operation.result_names(), outs, strict=False):
            self._values[name] = sharding
        for parameter, sharding in zip(parameters, ins, strict=False):
            self._values[parameter.name] = _inside(sharding, axes)
        inner = (*bound, *axes)
        fault = self._manual_fault(view, ins, outs, axes, bound)
        return fault, inner

    def _manual_fault(
        self,
        view: View,
        ins: Sequence[SdySharding],
        outs: Sequence[SdySharding],
        axes: tuple[str, ...],
        bound: tuple[str, ...],
    ) -> Fault | None:
        operands = operand_list(view)
        results = view.operation.result_names()
        taken = next((axis for axis in axes if axis in bound), None)
        if taken is not None:
            return Fault("shardy.manual", f'axis "{taken}" is bound by a manual computation around it')
        for what, shardings, count in (("operand", ins, len(operands)), ("result", outs, len(results))):
            if len(shardings) != count:
                return Fault("shardy.attribute", f"{len(shardings)} {what} shardings for {count} values")
        everything = (*ins, *outs)
        if not everything:
            empty = all(not block.operations for block in view.operation.regions[0].blocks) \
                if view.operation.regions else True  # fmt: skip
            return (
                Fault("shardy.manual", "manual axes, but no sharding says of which mesh")
                if axes and not empty
                else None
            )
        operand_kinds = split(view.signature[0] or "")
        result_kinds = split(view.signature[1])
        for what, shardings, kinds in (("operand", ins, operand_kinds), ("result", outs, result_kinds)):
            for number, sharding in enumerate(shardings):
                kind = kinds[number] if number < len(kinds) else ""
                shape = self._shared.types.one(kind) if kind else None
                fault = check_sharding(sharding, shape, kind, self._meshes, bound)
                if fault is not None:
                    return Fault(fault.code, f"{what} {number}: {fault.message}")
        meshes = {self._mesh(sharding) for sharding in everything}
        meshes = {mesh for mesh in meshes if mesh is not None and mesh.axes}
        if len(meshes) > 1:
            return Fault("shardy.mesh_mismatch", "its shardings are of different meshes")
        mesh = next(iter(meshes), None)
        if mesh is None:
            return None
        unknown = next((axis for axis in axes if axis not in dict(mesh.axes)), None)
        if unknown is not None:
            return Fault("sharding.unknown_axis", f'manual axis "{unknown}" is no axis of the mesh')
        parameters = [one.type for one in arguments(manual_arguments(view), self._shared)]
        yielded = _yielded(view.operation, self._shared)
        for what, shardings, kinds, locals_ in (
            ("operand", ins, operand_kinds, parameters),
            ("result", outs, result_kinds, yielded),
        ):
            if locals_ is not None and len(locals_) != len(shardings):
                return Fault("mlir.operand_count", f"{len(shardings)} {what}s, its body has {len(locals_)}")
            for number, sharding in enumerate(shardings):
                local = locals_[number] if locals_ is not None else None
                fault = self._local(sharding, kinds[number] if number < len(kinds) else "", local, axes, mesh)
                if fault is not None:
                    return Fault(fault.code, f"{what} {number}: {fault.message}")
        return None

    def _mesh(self, sharding: SdySharding) -> SdyMesh | None:
        return sharding.inline if sharding.mesh is None else self._meshes.get(sharding.mesh)

    def _local(
        self, sharding: SdySharding, kind: str, local: str | None, axes: tuple[str, ...], mesh: SdyMesh
    ) -> Fault | None:
        """The part that a body has of a value is what the manual axes leave of it."""
        if any(ref.name in axes and ref.size is not None for ref in sharding.used()):
            return Fault("shardy.manual", "a manual axis is used in parts; it is manual as a whole")
        for number, dim in enumerate(sharding.dims):
            names = [ref.name in axes for ref in dim.axes]
            if names != sorted(names, reverse=True):
                return Fault("shardy.manual", f"dim {number} has another axis before a manual one")
        whole = self._shared.types.one(kind) if kind else None
        part = self._shared.types.one(local) if local is not None else None
        if (
            not isinstance(whole, ArrayShape)
            or not isinstance(part, ArrayShape)
            or len(whole.dims) != len(sharding.dims)
        ):
            return None
        wanted: list[int] = []
        for number, (size, dim) in enumerate(zip(whole.dims, sharding.dims, strict=True)):
            count = 1
            for ref in dim.axes:
                count *= mesh.size_of(ref) if ref.name in axes else 1
            if size >= 0 and size % count:
                message = f"dim {number} of {size} is not divisible by the {count} parts of the manual axes"
                return Fault("shardy.manual", message)
            wanted.append(size // count if size >= 0 else size)
        if tuple(wanted) != part.dims:
            expected = ArrayShape(whole.dtype, tuple(wanted)).text()
            return Fault("shardy.manual", f"the body has {part.text()}, the sharding leaves {expected}")
        return None


def _inside(sharding: SdySharding, axes: tuple[str, ...]) -> SdySharding:
    """A sharding as the body of a manual computation sees it: without the manual axes."""
    return replace(
        sharding,
        dims=tuple(replace(dim, axes=tuple(ref for ref in dim.axes if ref.name not in axes)) for dim in sharding.dims),
        replicated=tuple(ref for ref in sharding.replicated if ref.name not in axes),
        unreduced=tuple(ref for ref in sharding.unreduced if ref.name not in axes),
    )


def _yielded(operation: Operation, shared: Dialects) -> list[str] | None:
    """Types of what a body yields."""
    if not operation.regions:
        return None
    last = [one for one in operation.regions[0].operations() if one.name == "sdy.return"]
    if not last:
        return []
    return split(View(last[-1], shared).type_text)


def _kept_reduction(source: SdySharding, result: SdySharding) -> Fault | None:
    """What stays unreduced stays so by the same operation, and only a sum can begin."""
    before, after = source.reduction or "sum", result.reduction or "sum"
    kept = {ref.name for ref in source.unreduced} & {ref.name for ref in result.unreduced}
    if kept and before != after:
        return Fault("collective.wrong_reduction", f"what is unreduced by {before} becomes unreduced by {after}")
    if after != "sum" and {ref.name for ref in result.unreduced} - {ref.name for ref in source.unreduced}:
        return Fault("collective.wrong_reduction", f"axes become unreduced by {after}; zeros keep only a sum")
    return None
