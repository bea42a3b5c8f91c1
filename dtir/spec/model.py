"""`MLIPSpec`: a `DistributionSpec` and what becomes of a model's outputs; version 2 of the public nvalchemi toolkit's JSON form.

>>> spec = MLIPSpec(DistributionSpec(HaloPolicy()), outputs={"stress": OutputSpec(OutputKind.PER_GRAPH, Reduce.ALL_REDUCE)})
>>> spec.all_reduce_outputs, spec.output_kinds["stress"].value
(frozenset({'stress'}), 'per_graph')
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from enum import Enum
from pathlib import Path
from typing import Any, cast

from dtir.spec.adapters import Adapter
from dtir.spec.distribution import DistributionSpec
from dtir.spec.errors import SpecError
from dtir.spec.naming import check_fields
from dtir.spec.policies import HaloPolicy
from dtir.spec.policy_json import merged_policy

VERSION = 2


class OutputKind(Enum):
    """What the rows of an output are."""

    PER_NODE = "per_node"
    PER_GRAPH = "per_graph"
    GLOBAL = "global"
    UNKNOWN = "unknown"


class Reduce(Enum):
    """What happens to an output across ranks beyond what follows from its kind."""

    NONE = "none"
    OWNED_ONLY = "owned_only"
    ALL_REDUCE = "all_reduce"


@dataclass(frozen=True)
class OutputSpec:
    """One output: what its rows are, and what happens to it across ranks."""

    kind: OutputKind
    reduce: Reduce = Reduce.NONE


@dataclass(frozen=True)
class MLIPSpec:
    """What a model of atoms declares.

    Args:
        distribution: storage and adapters.
        owned_only_outputs: outputs that are right on every rank already: the owned rows are taken.
        all_reduce_outputs: outputs that are a share of each rank: they are summed.
        output_kinds: what the rows of each output are.
        system_reductions: whether sums per system count owned rows only and go over all ranks.
        node_energy_key: output with energies of single atoms, of which the energy is the sum over owned rows.
        node_virial_key: the same for virials.
        gp_replicate_geometry: under `graph_parallel`, whether every rank sees all positions.
        outputs: kind and reduction of each output in one place: lowered onto the three fields above, and then empty.

    Raises:
        TypeError: a field has another type; the message names it.
        SpecError: an output is both owned only and all reduced.
    """

    distribution: DistributionSpec
    owned_only_outputs: frozenset[str] = frozenset()
    all_reduce_outputs: frozenset[str] = frozenset()
    output_kinds: Mapping[str, OutputKind] = field(default_factory=dict[str, OutputKind])
    system_reductions: bool = True
    node_energy_key: str | None = None
    node_virial_key: str | None = None
    gp_replicate_geometry: bool = False
    outputs: Mapping[str, OutputSpec] = field(default_factory=dict[str, OutputSpec], compare=False)

    def __post_init__(self) -> None:
        if not isinstance(self.distribution, DistributionSpec):  # pyright: ignore[reportUnnecessaryIsInstance]
            raise TypeError(f"distribution is {type(self.distribution).__name__}, not DistributionSpec")
        for name, one in self.outputs.items():
            if not isinstance(one, OutputSpec):  # pyright: ignore[reportUnnecessaryIsInstance]
                raise TypeError(f"outputs[{name!r}] is {type(one).__name__}, not OutputSpec")
        for name, kind in self.output_kinds.items():
            if not isinstance(kind, OutputKind):  # pyright: ignore[reportUnnecessaryIsInstance]
                raise TypeError(f"output_kinds[{name!r}] is {type(kind).__name__}, not OutputKind")
        for name in ("system_reductions", "gp_replicate_geometry"):
            if not isinstance(getattr(self, name), bool):
                raise TypeError(f"{name} is {type(getattr(self, name)).__name__}, not bool")
        for name in ("node_energy_key", "node_virial_key"):
            if not isinstance(getattr(self, name), str | None):
                raise TypeError(f"{name} is {type(getattr(self, name)).__name__}, not text or None")
        said = self.outputs.items()
        owned = frozenset(name for name, one in said if one.reduce is Reduce.OWNED_ONLY)
        summed = frozenset(name for name, one in said if one.reduce is Reduce.ALL_REDUCE)
        kinds = {name: one.kind for name, one in said if one.kind is not OutputKind.UNKNOWN}
        owned |= _names(self.owned_only_outputs, "owned_only_outputs")
        summed |= _names(self.all_reduce_outputs, "all_reduce_outputs")
        both = sorted(owned & summed)
        if both:
            raise SpecError(
                "all_reduce_outputs", f"{both[0]!r} is taken from its owner and summed over ranks: it is one or the other",
                "spec.output",
            )  # fmt: skip
        object.__setattr__(self, "owned_only_outputs", owned)
        object.__setattr__(self, "all_reduce_outputs", summed)
        object.__setattr__(self, "output_kinds", {**self.output_kinds, **kinds})
        object.__setattr__(self, "outputs", {})

    def __hash__(self) -> int:
        return hash((self.owned_only_outputs, self.all_reduce_outputs, tuple(sorted(self.output_kinds))))

    # -- changing --------------------------------------------------------------------------------------------------------

    def with_adapters(self, *adapters: Adapter) -> MLIPSpec:
        """The same with further adapters, behind those it has."""
        return replace(self, distribution=replace(self.distribution, adapters=adapters))

    def merge(self, other: MLIPSpec) -> MLIPSpec:
        """The spec of a model made of two: policies merged, everything else of both.

        Kinds of outputs are kept (the public toolkit drops them here, at the commit our examples are from).

        Raises:
            SpecError: the policies do not go together, an output has two kinds, or is owned only in one and summed in the other.
        """
        left, right = self.distribution, other.distribution
        for name in sorted(self.output_kinds.keys() & other.output_kinds.keys()):
            mine, theirs = self.output_kinds[name], other.output_kinds[name]
            if mine is not theirs:
                raise SpecError(
                    "output_kinds",
                    f"output {name!r} is {mine.value} in one spec and {theirs.value} in the other",
                    "spec.output",
                )
        return MLIPSpec(
            DistributionSpec(
                merged_policy(left.storage, right.storage),
                left.custom_ops + right.custom_ops,
                left.third_party_helpers + right.third_party_helpers,
                tuple(dict.fromkeys(left.shard_fields + right.shard_fields)),
            ),
            self.owned_only_outputs | other.owned_only_outputs,
            self.all_reduce_outputs | other.all_reduce_outputs,
            {**self.output_kinds, **other.output_kinds},
            self.system_reductions or other.system_reductions,
            self.node_energy_key or other.node_energy_key,
            self.node_virial_key or other.node_virial_key,
            self.gp_replicate_geometry or other.gp_replicate_geometry,
        )

    # -- JSON ------------------------------------------------------------------------------------------------------------

    def to_dict(self) -> dict[str, Any]:
        """The JSON form, version 2."""
        return {
            "version": VERSION,
            "core": self.distribution.to_dict(),
            "system_reductions": self.system_reductions,
            "node_energy_key": self.node_energy_key,
            "node_virial_key": self.node_virial_key,
            "gp_replicate_geometry": self.gp_replicate_geometry,
            "owned_only_outputs": sorted(self.owned_only_outputs),
            "all_reduce_outputs": sorted(self.all_reduce_outputs),
            "output_kinds": [[name, self.output_kinds[name].value] for name in sorted(self.output_kinds)],
        }

    @classmethod
    def from_dict(cls, given: Mapping[str, Any]) -> MLIPSpec:
        """Read the JSON form; names stay names, nothing is imported.

        Raises:
            SpecError: another version, or a field that is missing, unknown or has another form.
        """
        version = given.get("version")
        if version is not True and version == VERSION:
            check_fields(given, ("version", "core"), _MORE_FIELDS, "spec")
            flags = {name: _typed(given, name, bool, cls_default) for name, cls_default in _FLAGS.items()}
            keys = {name: _key(given, name) for name in ("node_energy_key", "node_virial_key")}
            return cls(
                DistributionSpec.from_dict(given["core"]),
                frozenset(_strings(given, "owned_only_outputs")),
                frozenset(_strings(given, "all_reduce_outputs")),
                _kinds(given.get("output_kinds", [])),
                flags["system_reductions"],
                keys["node_energy_key"],
                keys["node_virial_key"],
                flags["gp_replicate_geometry"],
            )
        raise SpecError(
            "version",
            f"MLIPSpec.from_dict: unsupported version {version}; this build understands version={VERSION}.",
            "spec.version",
        )

    def save(self, path: str | Path) -> None:
        """Write the JSON form, as ``json.dumps(..., indent=2)``; what stood there is replaced only when all is written."""
        target = Path(path)
        part = target.with_name(f".{target.name}.part")
        part.write_text(json.dumps(self.to_dict(), indent=2), encoding="utf-8")
        part.replace(target)

    @classmethod
    def load(cls, path: str | Path) -> MLIPSpec:
        """Read a file that `save` wrote.

        Raises:
            SpecError: it is no JSON object, or no spec.
        """
        try:
            given = json.loads(Path(path).read_text(encoding="utf-8"))
        except ValueError as error:
            raise SpecError("file", f"{path} is no JSON text: {error}", "spec.value") from error
        if not isinstance(given, dict):
            raise SpecError("file", f"{path} holds {type(given).__name__}, not an object", "spec.value")
        return cls.from_dict(cast("dict[str, Any]", given))


_FLAGS = {"system_reductions": True, "gp_replicate_geometry": False}
_MORE_FIELDS = (
    "system_reductions",
    "node_energy_key",
    "node_virial_key",
    "gp_replicate_geometry",
    "owned_only_outputs",
    "all_reduce_outputs",
    "output_kinds",
)


def _names(given: Iterable[str], name: str) -> frozenset[str]:
    if isinstance(given, str) or not all(isinstance(one, str) for one in given):  # pyright: ignore[reportUnnecessaryIsInstance]
        raise TypeError(f"{name} is {given!r}, not a set of names")
    return frozenset(given)


def _typed(given: Mapping[str, Any], name: str, kind: type[bool], default: bool) -> bool:
    found = given.get(name, default)
    if not isinstance(found, kind):
        raise SpecError(name, f"{name} is {found!r}, not {kind.__name__}", "spec.field")
    return found


def _key(given: Mapping[str, Any], name: str) -> str | None:
    found = given.get(name)
    if found is not None and not isinstance(found, str):
        raise SpecError(name, f"{name} is {found!r}, not text or null", "spec.field")
    return found


def _strings(given: Mapping[str, Any], name: str) -> list[str]:
    found = given.get(name, [])
    if not isinstance(found, list) or not all(isinstance(one, str) for one in cast("list[Any]", found)):
        raise SpecError(name, f"{name} is not a list of names", "spec.field")
    return cast("list[str]", found)


def _kinds(given: object) -> dict[str, OutputKind]:
    """A list of pairs, as it is written, or a table."""
    if isinstance(given, Mapping):
        pairs = list(cast("Mapping[Any, Any]", given).items())
    elif isinstance(given, list) and all(
        isinstance(one, list) and len(cast("list[Any]", one)) == 2 for one in cast("list[Any]", given)
    ):
        pairs = [(one[0], one[1]) for one in cast("list[list[Any]]", given)]
    else:
        raise SpecError("output_kinds", "output_kinds is neither a list of pairs nor a table", "spec.output")
    found: dict[str, OutputKind] = {}
    for name, kind in pairs:
        known = [one.value for one in OutputKind]
        if not isinstance(name, str) or kind not in known:
            raise SpecError(
                "output_kinds",
                f"MLIPSpec.from_dict: unknown OutputKind value {kind!r} for output {name!r}; expected one of {known}",
                "spec.output",
            )
        if name in found:
            raise SpecError("output_kinds", f"output {name!r} stands twice in output_kinds", "spec.output")
        found[name] = OutputKind(kind)
    return found


# -- declarations that models start from ------------------------------------------------------------------------------------

_OUTPUTS = {
    "energy": OutputSpec(OutputKind.PER_GRAPH),
    "forces": OutputSpec(OutputKind.PER_NODE),
    "stress": OutputSpec(OutputKind.PER_GRAPH),
    "atomic_energies": OutputSpec(OutputKind.PER_NODE),
}

SPEC_HALO = MLIPSpec(DistributionSpec(HaloPolicy()), outputs=_OUTPUTS)
"""A model whose atoms see neighbours within a cutoff: halo storage, the four usual outputs."""
