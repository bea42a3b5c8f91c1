"""`DistributionSpec`: how a model's fields are stored across ranks, and which callables need a distributed stand-in.

>>> spec = DistributionSpec(HaloPolicy(), adapters=(OpAdapter("ns::spread", all_reduce_sum=[0]),))
>>> [adapter.target for adapter in spec.custom_ops], spec.adapters
(['ns::spread'], ())
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, cast

from dtir.spec.adapters import (
    Adapter,
    Helper,
    JitAdapter,
    MethodAdapter,
    ModuleForwardAdapter,
    OpAdapter,
    PythonAdapter,
    helper_from_dict,
)
from dtir.spec.errors import SpecError
from dtir.spec.naming import check_fields
from dtir.spec.policies import LocalPolicy
from dtir.spec.policy import StoragePolicy
from dtir.spec.policy_json import policy_from_dict

SHARD_FIELDS = ("positions", "charges", "atomic_numbers")
"""Fields that are stored across ranks where a spec does not say."""

_HELPERS = (JitAdapter, PythonAdapter, MethodAdapter, ModuleForwardAdapter)


@dataclass(frozen=True)
class DistributionSpec:
    """What a model declares once.

    Args:
        policy: how fields are stored; None stands for `LocalPolicy`.
        custom_ops: operations with transforms.
        third_party_helpers: every other adapter.
        adapters: both together, for convenience: lowered by type onto the two, behind what they hold, and then empty.
        shard_fields: names of the fields that are stored across ranks; ``()`` means none, and never falls back.

    Raises:
        TypeError: the policy or an adapter is of another type; the message names the field.
        SpecError: a field name is empty or stands twice.
    """

    policy: StoragePolicy | None = None
    custom_ops: tuple[OpAdapter, ...] = ()
    third_party_helpers: tuple[Helper, ...] = ()
    shard_fields: tuple[str, ...] = SHARD_FIELDS
    adapters: tuple[Adapter, ...] = field(default=(), compare=False)

    def __post_init__(self) -> None:
        policy = LocalPolicy() if self.policy is None else self.policy
        if isinstance(policy, type) or not isinstance(policy, StoragePolicy):  # pyright: ignore[reportUnnecessaryIsInstance]
            raise TypeError(f"policy is {_named(policy)}, not a storage policy")
        _check(self.custom_ops, (OpAdapter,), "custom_ops")
        _check(self.third_party_helpers, _HELPERS, "third_party_helpers")
        _check(self.adapters, (OpAdapter, *_HELPERS), "adapters")
        names_given = cast("tuple[object, ...]", self.shard_fields)
        if isinstance(self.shard_fields, str) or not all(isinstance(name, str) for name in names_given):
            raise TypeError(f"shard_fields is {self.shard_fields!r}, not a tuple of names")
        names = tuple(self.shard_fields)
        if any(not name for name in names) or len(set(names)) != len(names):
            raise SpecError("shard_fields", f"shard_fields {list(names)} must be different names", "spec.field")
        lowered = tuple(self.adapters)
        ops = tuple(one for one in lowered if isinstance(one, OpAdapter))
        helpers = tuple(one for one in lowered if not isinstance(one, OpAdapter))
        object.__setattr__(self, "policy", policy)
        object.__setattr__(self, "custom_ops", (*self.custom_ops, *ops))
        object.__setattr__(self, "third_party_helpers", (*self.third_party_helpers, *helpers))
        object.__setattr__(self, "shard_fields", names)
        object.__setattr__(self, "adapters", ())

    @property
    def storage(self) -> StoragePolicy:
        """The policy, never None."""
        assert self.policy is not None
        return self.policy

    @property
    def installed_order(self) -> tuple[Adapter, ...]:
        """Every adapter in the order in which a registry installs them."""
        return (*self.custom_ops, *self.third_party_helpers)

    def to_dict(self) -> dict[str, Any]:
        """The JSON form; `shard_fields` is left out where it is the default."""
        made: dict[str, Any] = {
            "policy": self.storage.to_dict(),
            "custom_ops": [adapter.to_dict() for adapter in self.custom_ops],
            "third_party_helpers": [adapter.to_dict() for adapter in self.third_party_helpers],
        }
        if self.shard_fields != SHARD_FIELDS:
            made["shard_fields"] = list(self.shard_fields)
        return made

    @classmethod
    def from_dict(cls, given: Mapping[str, Any]) -> DistributionSpec:
        """Read the JSON form; names stay names, nothing is imported.

        Raises:
            SpecError: a field is missing, unknown or has another form.
        """
        check_fields(given, ("policy",), ("custom_ops", "third_party_helpers", "shard_fields"), "core")
        policy = given["policy"]
        if not isinstance(policy, Mapping):
            raise SpecError("core.policy", f"core.policy is {type(policy).__name__}, not an object", "spec.policy")
        fields = given.get("shard_fields", list(SHARD_FIELDS))
        if not isinstance(fields, list) or not all(isinstance(name, str) for name in cast("list[Any]", fields)):
            raise SpecError("core.shard_fields", "core.shard_fields is not a list of names", "spec.field")
        return cls(
            policy_from_dict(cast("Mapping[str, Any]", policy)),
            tuple(OpAdapter.from_dict(one) for one in _list(given, "custom_ops")),
            tuple(helper_from_dict(one) for one in _list(given, "third_party_helpers")),
            tuple(cast("list[str]", fields)),
        )


def _list(given: Mapping[str, Any], name: str) -> list[Any]:
    found = given.get(name, [])
    if not isinstance(found, list):
        raise SpecError(f"core.{name}", f"core.{name} is {type(found).__name__}, not a list", "spec.field")
    return cast("list[Any]", found)


def _check(given: Sequence[object], kinds: tuple[type, ...], name: str) -> None:
    if isinstance(given, str) or not isinstance(given, Sequence):  # pyright: ignore[reportUnnecessaryIsInstance]
        raise TypeError(f"{name} is {_named(given)}, not a tuple of adapters")
    for at, one in enumerate(given):
        if not isinstance(one, kinds):
            wanted = ", ".join(kind.__name__ for kind in kinds)
            raise TypeError(f"{name}[{at}] is {_named(one)}, not {wanted}")


def _named(thing: object) -> str:
    return f"the class {thing.__name__}" if isinstance(thing, type) else type(thing).__name__
