"""Functions: name, arguments, results, and which function calls which."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass, field

from dtir.importers.hlo.lexing import HloSyntaxError
from dtir.importers.stablehlo.lists import closing, entries, inside, split
from dtir.importers.stablehlo.syntax import Operation, Region, walk
from dtir.importers.stablehlo.values import string
from dtir.importers.stablehlo.views import Argument, Dialects, View, argument_rest, arguments

_NAME = re.compile(r'@([\w.$\-]+|"(?:[^"\\\n]|\\.)*")')
_CALLEE = re.compile(r'@([\w.$\-]+|"(?:[^"\\\n]|\\.)*")')
_FUNCTIONS = frozenset({"func.func", "func"})
_MODULES = frozenset({"module", "builtin.module"})
_CALLS = frozenset({"func.call", "call", "stablehlo.composite", "mpmd.call", "mpmd.fragment_call"})


@dataclass(slots=True)
class Function:
    """A function with its body; `module` are the attributes of the module around it."""

    name: str
    operation: Operation
    arguments: tuple[Argument, ...]
    results: tuple[Argument, ...]
    attributes: dict[str, str]
    module: dict[str, str] = field(default_factory=dict[str, str])
    private: bool = False
    calls: tuple[str, ...] = ()

    @property
    def body(self) -> Region:
        """The region of its body."""
        return self.operation.regions[0]


def is_function(operation: Operation) -> bool:
    """Whether an operation defines a function with a body."""
    return operation.name in _FUNCTIONS and bool(operation.regions)


def top_level(
    region: Region, attributes: dict[str, str], shared: Dialects
) -> Iterator[tuple[Operation, dict[str, str]]]:
    """Operations of a module and of the modules nested in it, with the attributes of the innermost module."""
    stack = [(iter([*region.operations()]), attributes)]
    while stack:
        operations, around = stack[-1]
        operation = next(operations, None)
        if operation is None:
            stack.pop()
        elif operation.regions and (operation.name in _MODULES or operation.name.endswith("_module")):
            inner = {**around, **module_attributes(operation, shared)}
            nested = [one for part in operation.regions for one in part.operations()]
            stack.append((iter(nested), inner))
        else:
            yield operation, around


def module_attributes(operation: Operation, shared: Dialects) -> dict[str, str]:
    """The attributes of a module, its name under ``sym_name``."""
    head = operation.segments[0]
    at = head.find("attributes")
    found: dict[str, str] = {}
    start = head.find("{", max(at, 0))
    if start >= 0:
        found = entries(head[start + 1 : closing(head, start) - 1])
    if operation.generic:
        found.update(View(operation, shared).attributes)
        found["sym_name"] = string(found.get("sym_name")) or ""
    else:
        name = _NAME.search(head[: at if at >= 0 else len(head)])
        if name is not None:
            found["sym_name"] = name.group(1).strip('"')
    return found


def read_function(operation: Operation, module: dict[str, str], shared: Dialects) -> Function:
    """The function of an operation; raises `HloSyntaxError`."""
    if operation.generic:
        return _generic(operation, module, shared)
    head = operation.segments[0]
    name = _NAME.search(head)
    if name is None:
        raise HloSyntaxError("a function has no name", operation.offset, "mlir.function")
    start = head.find("(", name.end())
    if start < 0:
        raise HloSyntaxError(
            f"function @{name.group(1)} has no arguments in parentheses", operation.offset, "mlir.function"
        )
    end = closing(head, start)
    taken = arguments(head[start + 1 : end - 1], shared)
    if len(taken) != len(split(head[start + 1 : end - 1])):
        raise HloSyntaxError(
            f"the arguments of @{name.group(1)} are not all '%name: type'", operation.offset, "mlir.function"
        )
    rest = head[end:]
    given, rest = _results(rest, shared)
    attributes: dict[str, str] = {}
    at = rest.find("attributes")
    brace = rest.find("{", max(at, 0))
    if at >= 0 and brace >= 0:
        attributes = entries(rest[brace + 1 : closing(rest, brace) - 1])
    private = re.search(r"\bprivate\b", head[: name.start()]) is not None
    return Function(name.group(1).strip('"'), operation, taken, given, attributes, module, private)


def _results(rest: str, shared: Dialects) -> tuple[tuple[Argument, ...], str]:
    """The results after a function's arguments, and what follows them."""
    stripped = rest.lstrip()
    if not stripped.startswith("->"):
        return (), rest
    rest = stripped[2:].lstrip()
    if rest.startswith("("):
        end = closing(rest, 0)
        parts = split(rest[1 : end - 1])
        rest = rest[end:]
    else:
        at = re.search(r"\s+attributes\b|\s*$|\s+loc\(", rest)
        end = at.start() if at is not None else len(rest)
        parts, rest = [rest[:end]], rest[end:]
    found: list[Argument] = []
    for number, part in enumerate(parts):
        kind, attributes, place = argument_rest(part, shared)
        found.append(Argument(f"result{number}", kind, attributes, place))
    return tuple(found), rest


def _generic(operation: Operation, module: dict[str, str], shared: Dialects) -> Function:
    view = View(operation, shared)
    attributes = dict(view.attributes)
    name = string(attributes.pop("sym_name", None))
    if name is None:
        raise HloSyntaxError("a function has no sym_name", operation.offset, "mlir.function")
    plain = arguments(operation.regions[0].arguments, shared)
    stated = [entries(inside(part)) for part in split(inside(attributes.pop("arg_attrs", "")))]
    taken = tuple(
        Argument(one.name, one.type, stated[number] if number < len(stated) else {}, one.place)
        for number, one in enumerate(plain)
    )
    kind = attributes.pop("function_type", "")
    results = kind.partition("->")[2].strip()
    results = results[1:-1] if results.startswith("(") else results
    given = [entries(inside(part)) for part in split(inside(attributes.pop("res_attrs", "")))]
    found = tuple(
        Argument(f"result{number}", part, given[number] if number < len(given) else {})
        for number, part in enumerate(split(results))
    )
    private = string(attributes.pop("sym_visibility", None)) == "private"
    return Function(name, operation, taken, found, attributes, module, private)


def called(function: Function) -> tuple[str, ...]:
    """Names of the functions that it calls, each once."""
    found: dict[str, None] = {}
    for operation in walk(function.body):
        if operation.name in _CALLS:
            for segment in operation.segments:
                for match in _CALLEE.finditer(segment):
                    found[match.group(1).strip('"')] = None
    return tuple(found)
