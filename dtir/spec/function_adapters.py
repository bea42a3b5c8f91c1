"""Functions of modules that are replaced while a model runs across ranks."""

from __future__ import annotations

import importlib
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, ClassVar

from dtir.spec.installing import Tools, Undo, existing, nothing, swap
from dtir.spec.naming import (
    Replacement,
    call_site,
    check_fields,
    check_mode,
    check_names,
    check_replacement,
    live_replacement,
    replacement_name,
)


@dataclass(frozen=True)
class PythonAdapter:
    """A function of a module, replaced by a stand-in while the adapter is installed."""

    module_path: str
    attr_name: str
    replacement: Replacement = None
    trusted: bool = field(default=True, compare=False, repr=False)
    install_site: str = field(default="", compare=False)
    kind: ClassVar[str] = "python"

    def __post_init__(self) -> None:
        check_names(module_path=self.module_path, attr_name=self.attr_name)
        check_replacement(self.replacement)
        if not self.install_site:
            object.__setattr__(self, "install_site", call_site())

    @property
    def target(self) -> str:
        """``module.function``."""
        return f"{self.module_path}.{self.attr_name}"

    def install(self, tools: Tools) -> Undo:
        """Swap the function in."""
        replacement = live_replacement(self.replacement, tools.callables)
        if replacement is None:
            return nothing
        module = tools.callables.module(self.module_path, trusted=self.trusted)
        return swap(module, self.attr_name, replacement, self.target)

    def to_dict(self) -> dict[str, Any]:
        """The JSON form; a stand-in without a name of its own is written as null."""
        return {
            "kind": self.kind,
            "module_path": self.module_path,
            "attr_name": self.attr_name,
            "replacement": replacement_name(self.replacement),
        }

    @classmethod
    def from_dict(cls, given: Mapping[str, Any]) -> PythonAdapter:
        """Read the JSON form; nothing is imported."""
        check_fields(given, ("kind", "module_path", "attr_name"), ("replacement",), "third_party_helpers")
        return cls(given["module_path"], given["attr_name"], given.get("replacement"), False, "json")


@dataclass(frozen=True)
class JitAdapter:
    """A compiled helper: replaced by a plain copy (`eager`), or called on local data (`marshal`)."""

    module_path: str
    attr_name: str
    replacement: Replacement = None
    mode: str = "eager"
    trusted: bool = field(default=True, compare=False, repr=False)
    install_site: str = field(default="", compare=False)
    kind: ClassVar[str] = "jit"

    def __post_init__(self) -> None:
        check_names(module_path=self.module_path, attr_name=self.attr_name)
        check_replacement(self.replacement)
        check_mode(self.mode, ("eager", "marshal"))
        if not self.install_site:
            object.__setattr__(self, "install_site", call_site())

    @property
    def target(self) -> str:
        """``module.function``."""
        return f"{self.module_path}.{self.attr_name}"

    def install(self, tools: Tools) -> Undo:
        """Swap the helper."""
        replacement = live_replacement(self.replacement, tools.callables)
        if self.mode == "eager" and replacement is None:
            return nothing
        module = tools.callables.module(self.module_path, trusted=self.trusted)
        if self.mode == "marshal":
            replacement = tools.marshal(existing(module, self.attr_name, self.target))
        assert replacement is not None
        return swap(module, self.attr_name, replacement, self.target)

    def to_dict(self) -> dict[str, Any]:
        """The JSON form."""
        return {
            "kind": self.kind,
            "module_path": self.module_path,
            "attr_name": self.attr_name,
            "replacement": replacement_name(self.replacement),
            "mode": self.mode,
        }

    @classmethod
    def from_dict(cls, given: Mapping[str, Any]) -> JitAdapter:
        """Read the JSON form; nothing is imported."""
        check_fields(given, ("kind", "module_path", "attr_name"), ("replacement", "mode"), "third_party_helpers")
        mode = given.get("mode", "eager")
        return cls(given["module_path"], given["attr_name"], given.get("replacement"), mode, False, "json")


def FunctionAdapter(function: Callable[..., Any], replacement: Replacement = None) -> PythonAdapter:
    """A `PythonAdapter` named by the function itself.

    Raises:
        TypeError: it is no function of a module.
        ValueError: the module that the function says it is from has something else under its name; it is exported again from
            elsewhere, and only `PythonAdapter` can say which of the names is meant.
    """
    module, name = getattr(function, "__module__", None), getattr(function, "__name__", None)
    if not callable(function) or not isinstance(module, str) or not isinstance(name, str):
        raise TypeError(f"function is {type(function).__name__}, not a function of a module")
    if getattr(importlib.import_module(module), name, None) is not function:
        raise ValueError(
            f"{module}.{name} is not the function that was given: it is exported again under another name. "
            "Say which binding is meant with PythonAdapter(module_path, attr_name)"
        )
    return PythonAdapter(module, name, replacement)
