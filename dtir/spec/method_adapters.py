"""Methods of classes that are wrapped, and ``forward`` of single objects."""

from __future__ import annotations

import functools
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, ClassVar

from dtir.spec.errors import SpecError
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
class MethodAdapter:
    """A method of a class, wrapped: the stand-in is called as ``replacement(original, self, ...)``.

    Written with the class, ``MethodAdapter(ConvSV, "forward", stand_in)``, or with names, ``MethodAdapter("aimnet.modules.aev",
    "ConvSV", "forward", stand_in)``.
    """

    module_path: str
    class_name: str
    method_name: str
    replacement: Replacement = None
    mode: str = "wrap"
    trusted: bool = field(default=True, compare=False, repr=False)
    install_site: str = field(default="", compare=False)
    kind: ClassVar[str] = "method"

    def __init__(
        self,
        target: type | str,
        name: str = "",
        more: Any = None,
        replacement: Replacement = None,
        *,
        mode: str = "wrap",
        trusted: bool = True,
        install_site: str = "",
    ) -> None:
        if isinstance(target, type):
            module_path, class_name, method_name = target.__module__, target.__qualname__, name
            replacement = more if replacement is None else replacement
        else:
            module_path, class_name, method_name = target, name, more
        check_names(module_path=module_path, class_name=class_name, method_name=method_name)
        check_replacement(replacement)
        check_mode(mode, ("wrap", "marshal"))
        for attribute, value in (
            ("module_path", module_path),
            ("class_name", class_name),
            ("method_name", method_name),
            ("replacement", replacement),
            ("mode", mode),
            ("trusted", trusted),
            ("install_site", install_site or call_site()),
        ):
            object.__setattr__(self, attribute, value)

    @property
    def target(self) -> str:
        """``module.Class.method``."""
        return f"{self.module_path}.{self.class_name}.{self.method_name}"

    def install(self, tools: Tools) -> Undo:
        """Wrap the method."""
        replacement = live_replacement(self.replacement, tools.callables)
        if self.mode == "wrap" and replacement is None:
            return nothing
        owner: Any = tools.callables.module(self.module_path, trusted=self.trusted)
        for part in self.class_name.split("."):
            owner = existing(owner, part, self.target)
        original = existing(owner, self.method_name, self.target)
        if self.mode == "marshal":
            return swap(owner, self.method_name, tools.marshal(original), self.target)
        stand_in = replacement
        assert stand_in is not None

        @functools.wraps(original)
        def wrapped(*args: Any, **kwargs: Any) -> Any:
            return stand_in(original, *args, **kwargs)

        return swap(owner, self.method_name, wrapped, self.target)

    def to_dict(self) -> dict[str, Any]:
        """The JSON form."""
        return {
            "kind": self.kind,
            "module_path": self.module_path,
            "class_name": self.class_name,
            "method_name": self.method_name,
            "replacement": replacement_name(self.replacement),
            "mode": self.mode,
        }

    @classmethod
    def from_dict(cls, given: Mapping[str, Any]) -> MethodAdapter:
        """Read the JSON form; nothing is imported."""
        needed = ("kind", "module_path", "class_name", "method_name")
        check_fields(given, needed, ("replacement", "mode"), "third_party_helpers")
        if not isinstance(given["module_path"], str):
            raise SpecError("module_path", f"module_path is {given['module_path']!r}, which is no name", "spec.adapter")
        return cls(
            given["module_path"],
            given["class_name"],
            given["method_name"],
            given.get("replacement"),
            mode=given.get("mode", "wrap"),
            trusted=False,
            install_site="json",
        )


@dataclass(frozen=True, eq=False)
class ModuleForwardAdapter:
    """``forward`` of one object, replaced. A file holds only that there is one: the model makes it anew.

    Args:
        module: the object; None for one that was read from a file, which is declared only.
        replacement: called as ``forward`` is.
        label: what people call it.
        declared_target: of one that was read from a file.
    """

    module: Any
    replacement: Callable[..., Any] | None
    label: str = "module_forward"
    declared_target: str = ""
    install_site: str = field(default="", compare=False)
    kind: ClassVar[str] = "module_forward"

    def __post_init__(self) -> None:
        if self.replacement is not None and not callable(self.replacement):
            raise TypeError(f"replacement is {type(self.replacement).__name__}, not a callable")
        if not self.install_site:
            object.__setattr__(self, "install_site", call_site())

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, ModuleForwardAdapter):
            return NotImplemented
        return (self.target, self.label, self.module is other.module) == (other.target, other.label, True)

    def __hash__(self) -> int:
        return hash((self.target, self.label))

    @property
    def target(self) -> str:
        """``module.Class.forward``."""
        if self.module is None:
            return self.declared_target
        return f"{type(self.module).__module__}.{type(self.module).__qualname__}.forward"

    def install(self, tools: Tools) -> Undo:
        """Set the object's own ``forward``."""
        del tools
        if self.module is None or self.replacement is None:
            return nothing
        existing(self.module, "forward", self.target)
        own = self.module.__dict__
        if "forward" in own:
            return swap(self.module, "forward", self.replacement, self.target)
        self.module.forward = self.replacement
        return lambda: own.pop("forward", None) and None

    def to_dict(self) -> dict[str, Any]:
        """The JSON form: object and stand-in are not in it."""
        return {"kind": self.kind, "target": self.target, "label": self.label}

    @classmethod
    def from_dict(cls, given: Mapping[str, Any]) -> ModuleForwardAdapter:
        """Read the JSON form: declared only."""
        check_fields(given, ("kind", "target"), ("label",), "third_party_helpers")
        if not isinstance(given["target"], str):
            raise SpecError("target", f"target is {given['target']!r}, not text", "spec.adapter")
        return cls(None, None, given.get("label", "module_forward"), given["target"], "json")
