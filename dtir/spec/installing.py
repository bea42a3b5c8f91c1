"""What installing an adapter needs, and the one way in which an attribute is changed and put back."""

from __future__ import annotations

import functools
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, TypeAlias, cast

from dtir.spec.callables import Callables
from dtir.spec.errors import SpecError

Undo: TypeAlias = Callable[[], None]


def nothing() -> None:
    """Undo of what was only declared."""


Marshal: TypeAlias = Callable[[Callable[..., Any]], Callable[..., Any]]
"""Makes a callable that takes a rank's local data out of its arguments, calls the given one, and wraps what comes back."""


def call_on_local(original: Callable[..., Any]) -> Callable[..., Any]:
    """The marshaller of plain arrays: arguments that have ``to_local()`` are replaced by what it gives; results stay local."""

    @functools.wraps(original)
    def marshalled(*args: Any, **kwargs: Any) -> Any:
        return original(*(_local(one) for one in args), **{name: _local(one) for name, one in kwargs.items()})

    return marshalled


def _local(argument: Any) -> Any:
    if isinstance(argument, list | tuple):
        parts = cast("list[Any] | tuple[Any, ...]", argument)
        return type(parts)([_local(one) for one in parts])
    to_local = getattr(argument, "to_local", None)
    return to_local() if callable(to_local) else argument


def no_wrapping(adapter: Any, op: Any) -> Undo:
    """What `Tools` do with operations when nobody dispatches them here: the transforms are what lowering reads."""
    del adapter, op
    return nothing


@dataclass(frozen=True)
class Tools:
    """What installing needs.

    Args:
        callables: resolves names that come from files.
        resolve_op: from ``namespace::name`` to whatever `wrap_op` takes; None: the name itself.
        wrap_op: makes an operation follow its transforms, and gives the way back.
        marshal: makes a callable work on local data.
    """

    callables: Callables = field(default_factory=Callables)
    op_resolver: Callable[[str], Any] | None = None
    wrap_op: Callable[[Any, Any], Undo] = no_wrapping
    marshal: Marshal = call_on_local

    def resolve_op(self, name: str) -> Any:
        """The live operation, or the name where nobody resolves names."""
        return name if self.op_resolver is None else self.op_resolver(name)


def existing(owner: Any, name: str, target: str) -> Any:
    """An attribute that has to be there.

    Raises:
        SpecError: it is not.
    """
    found = getattr(owner, name, None)
    if found is None:
        raise SpecError(
            "attr_name", f"{target} is not there: {_owner(owner)} has no {name!r}", "spec.missing_attribute"
        )
    return found


def _owner(owner: Any) -> str:
    return str(getattr(owner, "__name__", type(owner).__name__))


def swap(owner: Any, name: str, replacement: Callable[..., Any], target: str) -> Undo:
    """Set an attribute, and give the way back to what was there.

    What the owner itself held is put back as it stood (a static method stays one); what it inherited is inherited again.
    """
    existing(owner, name, target)
    own = dict(cast("dict[str, Any]", vars(owner)))
    had, previous = name in own, own.get(name)
    setattr(owner, name, replacement)

    def undo() -> None:
        if had:
            setattr(owner, name, previous)
        else:
            delattr(owner, name)

    return undo
