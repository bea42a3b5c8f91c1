"""The outline of a model: its stages in order, what each reads, around which atoms it looks, and what becomes an output.

Two complete models are here: a Lennard-Jones fluid and a two-layer message-passing potential with forces written out. Their
operations are those of `dtir.ops.atoms`.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from types import MappingProxyType

from dtir.spec.errors import SpecError
from dtir.spec.model import SPEC_HALO, MLIPSpec, OutputKind

FIELDS: Mapping[str, tuple[str, ...]] = MappingProxyType({"positions": ("x", "y", "z"), "atomic_numbers": ("kind",)})
"""Fields of atoms by the names that specs use, and the columns that they are."""

FORCE = ("fx", "fy", "fz")
VIRIAL = ("vxx", "vyy", "vzz", "vxy", "vxz", "vyz")


@dataclass(frozen=True)
class Stage:
    """One operation.

    Args:
        name: for people.
        op: ``namespace::name``; what adapters name.
        reads: columns, in operand order.
        makes: columns, in result order.
        around: of `reads`, those of which it reads neighbours' rows.
        scatters: of `makes`, those that neighbours contribute to: sums over the pairs of an atom.
        parameters: constants of the operation.
    """

    name: str
    op: str
    reads: tuple[str, ...]
    makes: tuple[str, ...]
    around: tuple[str, ...] = ()
    scatters: tuple[str, ...] = ()
    parameters: Mapping[str, float] = field(default_factory=dict[str, float])


@dataclass(frozen=True)
class ModelOutline:
    """A model.

    Args:
        name: for people.
        stages: in order.
        outputs: columns of each output.
        kinds: whether an output is per atom, or one sum over all atoms.
        per_volume: outputs whose sum is divided by the volume of the box.
    """

    name: str
    stages: tuple[Stage, ...]
    outputs: Mapping[str, tuple[str, ...]]
    kinds: Mapping[str, OutputKind]
    per_volume: frozenset[str] = frozenset({"stress"})

    @property
    def inputs(self) -> tuple[str, ...]:
        """Columns that no stage makes, in the order in which they are first read."""
        made = {column for stage in self.stages for column in stage.makes}
        read = [column for stage in self.stages for column in stage.reads if column not in made]
        return tuple(dict.fromkeys(read))


_OUTPUTS: Mapping[str, tuple[str, ...]] = MappingProxyType(
    {"energy": ("e",), "forces": FORCE, "stress": VIRIAL, "atomic_energies": ("e",)}
)
_KINDS: Mapping[str, OutputKind] = MappingProxyType(
    {
        "energy": OutputKind.PER_GRAPH,
        "forces": OutputKind.PER_NODE,
        "stress": OutputKind.PER_GRAPH,
        "atomic_energies": OutputKind.PER_NODE,
    }
)
_ATOM = ("x", "y", "z", "kind")


def lennard_jones(epsilon: float = 1.0, sigma: float = 1.0, *, cutoff: float) -> ModelOutline:
    """A Lennard-Jones fluid, cut off and shifted so that the energy of a pair is 0 at the cutoff."""
    six = (sigma / cutoff) ** 6
    parameters = {"epsilon": epsilon, "sigma": sigma, "cutoff": cutoff, "shift": 4 * epsilon * (six**2 - six)}
    pairs = Stage("pairs", "atoms::lennard_jones", _ATOM, ("e", *FORCE, *VIRIAL), _ATOM, (), parameters)
    return ModelOutline("lennard_jones", (pairs,), _OUTPUTS, _KINDS)


def message_passing(a: float = 0.5, b: float = 0.25, *, cutoff: float) -> ModelOutline:
    """A potential of two layers: features of neighbours' kinds, messages of neighbours' features; forces through both.

    The messages of an atom depend on atoms two cutoffs away, so that ghosts have to be brought up to date between the layers,
    forward and backward.
    """
    parameters = {"cutoff": cutoff, "a": a, "b": b}
    stages = (
        Stage("features", "atoms::density", _ATOM, ("h",), _ATOM, ("h",), parameters),
        Stage("messages", "atoms::message", (*_ATOM, "h"), ("m",), (*_ATOM, "h"), ("m",), parameters),
        Stage("readout", "atoms::readout", ("kind", "h", "m"), ("e", "p", "q"), (), (), parameters),
        Stage("adjoint", "atoms::adjoint", (*_ATOM, "p", "q"), ("g",), (*_ATOM, "p"), ("g",), parameters),
        Stage(
            "pull",
            "atoms::message_force",
            (*_ATOM, "h", "p", "g"),
            (*FORCE, *VIRIAL),
            (*_ATOM, "h", "p", "g"),
            (),
            parameters,
        ),
    )
    return ModelOutline("message_passing", stages, _OUTPUTS, _KINDS)


MODELS = ("lennard_jones", "message_passing")


def model_outline(name: str, cutoff: float, parameters: Mapping[str, float]) -> ModelOutline:
    """A model by name.

    Raises:
        SpecError: no such model, or a parameter that it does not have.
    """
    known = {"lennard_jones": ("epsilon", "sigma"), "message_passing": ("a", "b")}.get(name)
    if known is None:
        raise SpecError("model", f"there is no model {name!r}; models are {', '.join(MODELS)}", "spec.lower")
    for key in parameters:
        if key not in known:
            raise SpecError(
                "parameters", f"model {name} has no parameter {key!r}; it has {', '.join(known)}", "spec.lower"
            )
    if name == "lennard_jones":
        return lennard_jones(parameters.get("epsilon", 1.0), parameters.get("sigma", 1.0), cutoff=cutoff)
    return message_passing(parameters.get("a", 0.5), parameters.get("b", 0.25), cutoff=cutoff)


DEFAULT_SPEC: MLIPSpec = SPEC_HALO
"""What both models are declared with: halo storage, sums over owned rows."""
