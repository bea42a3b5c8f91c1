"""Names of callables, and how they become callables: never by importing what a file names.

A spec that was read from JSON holds text. A name resolves to what was registered under it, or inside a module that the caller allows
by name; nothing else is imported, looked up or run.

>>> catalogue = Callables()
>>> catalogue.register("model.sums:by_molecule", sum)
>>> catalogue.resolve("model.sums:by_molecule") is sum
True
>>> catalogue.resolve("os:system")
Traceback (most recent call last):
    ...
dtir.spec.errors.SpecError: 'os:system' is neither registered nor in an allowed module
"""

from __future__ import annotations

import importlib
import re
import sys
from collections.abc import Callable, Iterable
from types import ModuleType
from typing import Any

from dtir.spec.errors import SpecError

_NAME = re.compile(r"[A-Za-z][A-Za-z0-9_]*|_[A-Za-z0-9][A-Za-z0-9_]*")
"""A part of a dotted name; ``__dunder__`` parts lead to interpreters' internals and are no names of callables."""


class Callables:
    """Where names become callables.

    Args:
        allow: modules that names may be looked up in, and that are imported when they are; exact names.
    """

    def __init__(self, allow: Iterable[str] = ()) -> None:
        self._allowed = frozenset(allow)
        self._known: dict[str, Callable[..., Any]] = {}

    def register(self, name: str, function: Callable[..., Any]) -> None:
        """Let a name stand for a callable.

        Args:
            name: ``module:qualname``.

        Raises:
            SpecError: the name has another form.
            TypeError: it is not callable.
        """
        split_name(name, "name")
        if not callable(function):
            raise TypeError(f"{name} is {type(function).__name__}, not a callable")
        self._known[name] = function

    def resolve(self, name: str) -> Callable[..., Any]:
        """The callable of a name.

        Raises:
            SpecError: it is neither registered nor in an allowed module, or the module has no such callable.
        """
        if name in self._known:
            return self._known[name]
        module, path = split_name(name, "replacement")
        if module not in self._allowed:
            raise SpecError("replacement", f"{name!r} is neither registered nor in an allowed module", "spec.callable")
        found: Any = self.module(module, trusted=False)
        for part in path:
            found = getattr(found, part, None)
        if not callable(found):
            raise SpecError("replacement", f"module {module!r} has no callable {'.'.join(path)!r}", "spec.callable")
        return found

    def module(self, name: str, *, trusted: bool) -> ModuleType:
        """A module to change an attribute of.

        Args:
            trusted: the name was written in Python by the caller, not read from a file.

        Raises:
            SpecError: the module is not allowed, or there is none of that name.
        """
        if not trusted and name not in self._allowed:
            raise SpecError("module_path", f"module {name!r} was named by a file and is not allowed", "spec.callable")
        if not all(_NAME.fullmatch(part) for part in name.split(".")):
            raise SpecError("module_path", f"{name!r} is no module name", "spec.callable")
        if name in sys.modules:
            return sys.modules[name]
        try:
            return importlib.import_module(name)
        except ImportError as error:
            raise SpecError("module_path", f"module {name!r} cannot be imported: {error}", "spec.callable") from error


def split_name(name: object, field: str) -> tuple[str, list[str]]:
    """Module and attribute path of ``module:qualname``.

    Raises:
        SpecError: the text has another form.
    """
    module, separator, path = name.partition(":") if isinstance(name, str) else ("", "", "")
    parts = path.split(".")
    if not separator or not all(_NAME.fullmatch(part) for part in (*module.split("."), *parts)):
        raise SpecError(field, f"{name!r} is no name of the form module:qualname", "spec.callable")
    return module, parts


def callable_name(function: object) -> str | None:
    """``module:qualname`` of a callable; None for one without a name of its own (a lambda, a closure).

    >>> callable_name(callable_name), callable_name(lambda: 0)
    ('dtir.spec.callables:callable_name', None)
    """
    module, name = getattr(function, "__module__", None), getattr(function, "__qualname__", None)
    if not isinstance(module, str) or not isinstance(name, str) or "<" in name:
        return None
    return f"{module}:{name}"


def is_name(text: object) -> bool:
    """Whether a text may stand for a part of a dotted name."""
    return isinstance(text, str) and all(_NAME.fullmatch(part) for part in text.split("."))


OpResolver = Callable[[str], Any]
"""From ``namespace::name`` to a live operation; raises LookupError when there is none."""


def op_qualname(op: object) -> str:
    """``namespace::name`` of an operation: of text as it stands, of a torch operation by its schema, else ``module::name``.

    Raises:
        SpecError: the thing has no such name.
    """
    if isinstance(op, str):
        if not re.fullmatch(r"[A-Za-z_]\w*::[A-Za-z_][\w.]*", op):
            raise SpecError("op", f"{op!r} is no name of the form namespace::name", "spec.adapter")
        return op
    schema_name = getattr(getattr(op, "_schema", None), "name", None)
    if isinstance(schema_name, str):
        return schema_name
    packet_name = getattr(op, "_qualified_op_name", None)
    if isinstance(packet_name, str) and "::" in packet_name:
        return packet_name
    module, name = getattr(op, "__module__", None), getattr(op, "__name__", None)
    if isinstance(module, str) and isinstance(name, str) and name.isidentifier():
        return f"{module.rpartition('.')[2]}::{name}"
    raise SpecError("op", f"{type(op).__name__} has no qualified name; give namespace::name", "spec.adapter")


def resolve_op(name: str, resolver: OpResolver | None = None) -> Any:
    """The live operation of a name.

    Args:
        name: ``namespace::name``.
        resolver: looks it up; None: torch's registered operations, when torch was imported by somebody already.

    Raises:
        SpecError: the name has another form.
        LookupError: there is no such operation, or nothing to look it up in.
    """
    op_qualname(name)
    if resolver is not None:
        return resolver(name)
    torch = sys.modules.get("torch")
    if torch is None:
        raise LookupError(f"{name}: torch is not imported, and no resolver was given")
    namespace, _, rest = name.partition("::")
    packet = getattr(getattr(torch.ops, namespace, None), rest.partition(".")[0], None)
    if packet is None:
        raise LookupError(f"{name} is not registered: import the module that declares it first")
    return getattr(packet, rest.partition(".")[2] or "default")
