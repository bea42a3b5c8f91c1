"""Storage policies as JSON: kinds are looked up in a table that others can add to.

>>> policy_from_dict({"kind": "halo", "scatter_mode": "local", "gather_mode": "halo_read"})
HaloPolicy(scatter_mode='local', gather_mode='halo_read')
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from dtir.spec.errors import SpecError
from dtir.spec.policies import (
    GATHER_MODES,
    SCATTER_MODES,
    GraphParallelPolicy,
    HaloPolicy,
    LocalPolicy,
    RefreshHaloPolicy,
    ShardPolicy,
)
from dtir.spec.policy import StoragePolicy

PolicyReader = Callable[[Mapping[str, Any]], StoragePolicy]
_KINDS: dict[str, PolicyReader] = {}


def register_policy_kind(kind: str, read: PolicyReader) -> None:
    """Let `policy_from_dict` read a further kind; registering a kind again replaces its reader.

    Args:
        kind: the word under ``kind``.
        read: makes the policy from its JSON form.
    """
    _KINDS[kind] = read


def policy_kinds() -> tuple[str, ...]:
    """Every kind that can be read."""
    return tuple(sorted(_KINDS))


def policy_from_dict(given: Mapping[str, Any]) -> StoragePolicy:
    """The policy of a JSON form.

    Raises:
        SpecError: an unknown kind, a field that the kind does not have, or a mode that is none.
    """
    kind = given.get("kind")
    read = _KINDS.get(kind) if isinstance(kind, str) else None
    if read is None:
        raise SpecError(
            "policy.kind",
            f"policy_from_dict: unknown kind {kind!r}; known are {', '.join(policy_kinds())}",
            "spec.policy",
        )
    return read(given)


def _no_more(given: Mapping[str, Any], *known: str) -> None:
    extra = [key for key in given if key not in ("kind", *known)]
    if extra:
        raise SpecError(f"policy.{extra[0]}", f"policy kind {given['kind']!r} has no field {extra[0]!r}", "spec.policy")


def _plain(make: Callable[[], StoragePolicy]) -> PolicyReader:
    def read(given: Mapping[str, Any]) -> StoragePolicy:
        _no_more(given)
        return make()

    return read


def _halo(make: type[HaloPolicy]) -> PolicyReader:
    def read(given: Mapping[str, Any]) -> StoragePolicy:
        _no_more(given, "scatter_mode", "gather_mode")
        return make(given.get("scatter_mode", "halo_correction"), given.get("gather_mode", "halo_read"))

    return read


register_policy_kind("local", _plain(LocalPolicy))
register_policy_kind("shard", _plain(ShardPolicy))
register_policy_kind("graph_parallel", _plain(GraphParallelPolicy))
register_policy_kind("halo", _halo(HaloPolicy))
register_policy_kind("refresh_halo", _halo(RefreshHaloPolicy))


def merged_policy(left: StoragePolicy, right: StoragePolicy) -> StoragePolicy:
    """The policy that serves both: `local` gives way to any, two halos take the stronger modes.

    Raises:
        SpecError: two kinds that do not go together.
    """
    if isinstance(left, LocalPolicy):
        return right
    if isinstance(right, LocalPolicy):
        return left
    if isinstance(left, HaloPolicy) and type(left) is type(right) and isinstance(right, HaloPolicy):
        return type(left)(
            max(left.scatter_mode, right.scatter_mode, key=SCATTER_MODES.index),
            max(left.gather_mode, right.gather_mode, key=GATHER_MODES.index),
        )
    if left == right:
        return left
    raise SpecError("policy", f"policies {left.kind} and {right.kind} cannot be merged", "spec.policy")
