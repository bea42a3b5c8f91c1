"""Transforms of inputs and outputs of a registered operation."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any, ClassVar, cast

from dtir.spec.callables import op_qualname
from dtir.spec.errors import SpecError
from dtir.spec.installing import Tools, Undo
from dtir.spec.naming import call_site, check_fields
from dtir.spec.transforms import ArgTransform, OutputTransform, arg_transform, output_transform


@dataclass(frozen=True)
class OpAdapter:
    """Transforms of inputs and outputs of a registered operation, by position.

    Roles may be given as keywords or as dicts; a dict entry wins over a keyword for the same position.

    >>> OpAdapter("ns::spread", owned_slice_inputs=[0], all_reduce_outputs=[0]).to_dict()["output_transforms"]
    {'0': {'type': 'all_reduce_sum'}}

    Args:
        op: the operation, or ``namespace::name``.
        arg_transforms, output_transforms: by position.
        gather_inputs, gather_inputs_full, slice_owned: positions of inputs with that role (`owned_slice_inputs` is another
            word for the last).
        scatter_outputs, all_reduce_sum, slice_outputs_owned: positions of outputs (`all_reduce_outputs` is another word for
            the second).

    Raises:
        SpecError: a position that is no number from 0 on, or two roles for one position.
    """

    op: Any
    arg_transforms: Mapping[int, ArgTransform]
    output_transforms: Mapping[int, OutputTransform]
    install_site: str = field(default="", compare=False)
    kind: ClassVar[str] = "op"

    def __init__(
        self,
        op: Any,
        arg_transforms: Mapping[int, ArgTransform] | None = None,
        output_transforms: Mapping[int, OutputTransform] | None = None,
        *,
        gather_inputs: Iterable[int] = (),
        gather_inputs_full: Iterable[int] = (),
        slice_owned: Iterable[int] = (),
        owned_slice_inputs: Iterable[int] = (),
        scatter_outputs: Iterable[int] = (),
        all_reduce_sum: Iterable[int] = (),
        all_reduce_outputs: Iterable[int] = (),
        slice_outputs_owned: Iterable[int] = (),
        install_site: str = "",
    ) -> None:
        roles = (
            (ArgTransform.GATHER_INPUTS, gather_inputs),
            (ArgTransform.GATHER_INPUTS_FULL, gather_inputs_full),
            (ArgTransform.SLICE_OWNED, (*slice_owned, *owned_slice_inputs)),
        )
        output_roles = (
            (OutputTransform.SCATTER_OUTPUTS, scatter_outputs),
            (OutputTransform.ALL_REDUCE_SUM, (*all_reduce_sum, *all_reduce_outputs)),
            (OutputTransform.SLICE_OUTPUTS_OWNED, slice_outputs_owned),
        )
        op_qualname(op)
        object.__setattr__(self, "op", op)
        object.__setattr__(self, "arg_transforms", _by_position(arg_transforms, roles, ArgTransform, "arg_transforms"))
        object.__setattr__(
            self,
            "output_transforms",
            _by_position(output_transforms, output_roles, OutputTransform, "output_transforms"),
        )
        object.__setattr__(self, "install_site", install_site or call_site())

    @property
    def target(self) -> str:
        """``namespace::name``."""
        return op_qualname(self.op)

    def to_dict(self) -> dict[str, Any]:
        """The JSON form."""
        return {
            "op": self.target,
            "arg_transforms": {str(at): {"type": item.value} for at, item in sorted(self.arg_transforms.items())},
            "output_transforms": {str(at): {"type": item.value} for at, item in sorted(self.output_transforms.items())},
        }

    @classmethod
    def from_dict(cls, given: Mapping[str, Any]) -> OpAdapter:
        """Read the JSON form; the operation stays a name.

        Raises:
            SpecError: a field is missing, unknown or has another form.
        """
        check_fields(given, ("op",), ("arg_transforms", "output_transforms"), "custom_ops")
        return cls(
            given["op"],
            {at: arg_transform(one, f"arg_transforms.{at}") for at, one in _positions(given, "arg_transforms")},
            {
                at: output_transform(one, f"output_transforms.{at}")
                for at, one in _positions(given, "output_transforms")
            },
            install_site="json",
        )

    def install(self, tools: Tools) -> Undo:
        """Hand the transforms to whoever dispatches operations."""
        return tools.wrap_op(self, tools.resolve_op(self.target) if isinstance(self.op, str) else self.op)


def _by_position(given: Any, roles: Any, kind: Any, name: str) -> dict[int, Any]:
    found: dict[int, Any] = {}
    for role, positions in roles:
        for at in positions:
            if at in found and found[at] is not role:
                raise SpecError(
                    f"{name}.{at}", f"position {at} has two roles: {found[at].value} and {role.value}", "spec.adapter"
                )
            found[at] = role
    found.update(given or {})
    for at, role in found.items():
        if type(at) is not int or at < 0:
            raise SpecError(name, f"position {at!r} is no number from 0 on", "spec.adapter")
        if not isinstance(role, kind):
            raise TypeError(f"{name}[{at}] is {type(role).__name__}, not {kind.__name__}")
    return dict(sorted(found.items()))


def _positions(given: Mapping[str, Any], name: str) -> list[tuple[int, Any]]:
    entries = given.get(name, {})
    if not isinstance(entries, Mapping):
        raise SpecError(name, f"{name} is {type(entries).__name__}, not a table by position", "spec.adapter")
    found: list[tuple[int, Any]] = []
    for at, one in cast("Mapping[Any, Any]", entries).items():
        if not isinstance(at, str) or not at.isdigit() or len(at) > 4:
            raise SpecError(name, f"position {at!r} is no number from 0 on", "spec.adapter")
        found.append((int(at), one))
    return found
