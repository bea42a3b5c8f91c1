"""Adapters: third-party callables that need a distributed stand-in while a model runs across ranks.

| adapter | what it changes |
|---|---|
| `OpAdapter` | how a registered operation is called: transforms of inputs and outputs, by position |
| `JitAdapter` | a compiled helper: replaced by a plain one (`eager`), or called on local data (`marshal`) |
| `PythonAdapter` | a function of a module, replaced |
| `FunctionAdapter` | the same, named by the function itself |
| `MethodAdapter` | a method of a class, wrapped: the stand-in gets the original first |
| `ModuleForwardAdapter` | ``forward`` of one object |

Roles and JSON forms are those of the public nvalchemi toolkit; installing and restoring is `AdapterRegistry`'s.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, TypeAlias

from dtir.spec.errors import SpecError
from dtir.spec.function_adapters import FunctionAdapter, JitAdapter, PythonAdapter
from dtir.spec.method_adapters import MethodAdapter, ModuleForwardAdapter
from dtir.spec.op_adapter import OpAdapter

__all__ = [
    "Adapter",
    "FunctionAdapter",
    "Helper",
    "JitAdapter",
    "MethodAdapter",
    "ModuleForwardAdapter",
    "OpAdapter",
    "PythonAdapter",
    "adapter_kinds",
    "helper_from_dict",
    "register_adapter_kind",
]

Helper: TypeAlias = JitAdapter | PythonAdapter | MethodAdapter | ModuleForwardAdapter
Adapter: TypeAlias = OpAdapter | Helper

HelperReader: TypeAlias = Callable[[Mapping[str, Any]], Helper]
_KINDS: dict[str, HelperReader] = {
    "jit": JitAdapter.from_dict,
    "python": PythonAdapter.from_dict,
    "method": MethodAdapter.from_dict,
    "module_forward": ModuleForwardAdapter.from_dict,
}


def register_adapter_kind(kind: str, read: HelperReader) -> None:
    """Let `helper_from_dict` read a further kind; registering a kind again replaces its reader."""
    _KINDS[kind] = read


def adapter_kinds() -> tuple[str, ...]:
    """Every kind of helper that can be read."""
    return tuple(sorted(_KINDS))


def helper_from_dict(given: object) -> Helper:
    """The helper of a JSON form; nothing is imported or resolved.

    Raises:
        SpecError: an unknown kind, or a field that is missing, unknown or has another form.
    """
    kind = given.get("kind") if isinstance(given, Mapping) else None  # pyright: ignore[reportUnknownMemberType, reportUnknownVariableType]
    read = _KINDS.get(kind) if isinstance(kind, str) else None
    if read is None:
        known = ", ".join(adapter_kinds())
        raise SpecError(
            "third_party_helpers.kind",
            f"unknown third-party helper kind {kind!r}; expected one of {known}",
            "spec.adapter",
        )
    return read(given)  # pyright: ignore[reportArgumentType]
