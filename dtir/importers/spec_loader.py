"""A declaration (`MLIPSpec`, `DistributionSpec`) as an input: a program with a system of atoms beside it, else only what it says."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, cast

import numpy as np
import numpy.typing as npt

from dtir.importers.base import Imported, Source, imported, refused
from dtir.schema.diagnostics import Diagnostic, DiagnosticSet
from dtir.spec.distribution import DistributionSpec
from dtir.spec.errors import SpecError
from dtir.spec.lower import lower
from dtir.spec.model import MLIPSpec
from dtir.spec.outline import model_outline
from dtir.spec.partition import Partition, block_partition, grid_for, spatial_partition
from dtir.spec.policies import HaloPolicy
from dtir.spec.system import System, read_system

FORMAT = "mlipspec"


@dataclass(frozen=True)
class Lowered:
    """A declaration made into a program.

    Args:
        imported: the program, or why there is none.
        arrays: the program's inputs, ``in0``, ``in1``, ...; empty without a program.
        partition: who owns which atoms; None without a program.
    """

    imported: Imported
    arrays: Mapping[str, npt.NDArray[np.float64]] = field(
        default_factory=dict[str, npt.NDArray[np.float64]], repr=False
    )
    partition: Partition | None = field(default=None, repr=False)


def load_spec(source: Source) -> Imported:
    """Read a declaration: it is checked, and says that a program needs a system."""
    try:
        read_spec(source)
    except SpecError as error:
        return refused(source.label, finding(error), format=FORMAT, digest=source.digest())
    needs = Diagnostic(
        "spec.no_system",
        f"{source.label} declares storage and adapters; what ranks do follows from a system of atoms beside it",
        hint="name one with --system FILE: cell, positions, kinds, cutoff, model, ranks",
    )
    return refused(source.label, needs, format=FORMAT, digest=source.digest())


def read_spec(source: Source) -> MLIPSpec | DistributionSpec:
    """The declaration of a source.

    Raises:
        SpecError: it is none.
    """
    try:
        given = json.loads(source.text or "")
    except ValueError as error:
        raise SpecError("file", f"{source.label} is no JSON text: {error}", "spec.value") from error
    if not isinstance(given, dict):
        raise SpecError("file", f"{source.label} holds {type(given).__name__}, not an object", "spec.value")
    table = cast("dict[str, Any]", given)
    # A declaration alone has no version; what wraps one has a core.
    if "core" in table or "version" in table:
        return MLIPSpec.from_dict(table)
    return DistributionSpec.from_dict(table)


def finding(error: SpecError) -> Diagnostic:
    """What is wrong with a spec, as a diagnostic that names the field."""
    return Diagnostic(error.code, str(error), tuple(error.field.split(".")))


def lower_source(source: Source, system_path: str | Path) -> Lowered:
    """A declaration and a file with a system as a program with its inputs."""
    try:
        spec = read_spec(source)
        system, more = read_system(system_path)
        outline = model_outline(*_model(system, more))
        partition = _partition(spec, system, more)
        program = lower(spec, partition, outline)
    except SpecError as error:
        return Lowered(refused(source.label, finding(error), format=FORMAT, digest=source.digest()))
    except OSError as error:
        missing = Diagnostic(
            "spec.system", f"{system_path} cannot be read: {error.strerror or error}", hint="check the path"
        )
        return Lowered(refused(source.label, missing, format=FORMAT, digest=source.digest()))
    fields = system.fields()
    arrays = {f"in{number}": fields[column] for number, column in enumerate(outline.inputs)}
    return Lowered(imported(source, FORMAT, program, DiagnosticSet()), arrays, partition)


def _model(system: System, more: Mapping[str, Any]) -> tuple[str, float, dict[str, float]]:
    name = more.get("model", "lennard_jones")
    given = more.get("parameters", {})
    if not isinstance(name, str):
        raise SpecError("model", f"model is {name!r}, not a name", "spec.system")
    if not isinstance(given, dict):
        raise SpecError("parameters", "parameters is no table of numbers", "spec.system")
    parameters: dict[str, float] = {}
    for key, number in cast("dict[str, Any]", given).items():
        if isinstance(number, bool) or not isinstance(number, int | float):
            raise SpecError(f"parameters.{key}", f"parameters.{key} is {number!r}, not a number", "spec.system")
        parameters[key] = float(number)
    return name, system.cutoff, parameters


def _partition(spec: MLIPSpec | DistributionSpec, system: System, more: Mapping[str, Any]) -> Partition:
    core = spec.distribution if isinstance(spec, MLIPSpec) else spec
    grid, ranks, width = more.get("grid"), more.get("ranks"), more.get("ghost_width")
    if width is not None and (isinstance(width, bool) or not isinstance(width, int | float)):
        raise SpecError("ghost_width", f"ghost_width is {width!r}, not a length", "spec.ghost_width")
    if ranks is not None and (type(ranks) is not int or not 1 <= ranks <= MOST_RANKS):
        raise SpecError("ranks", f"ranks is {ranks!r}; wanted is a number from 1 to {MOST_RANKS}", "spec.partition")
    if grid is not None and (
        not isinstance(grid, list)
        or any(type(part) is not int or not 1 <= part <= MOST_RANKS for part in cast("list[Any]", grid))
    ):
        raise SpecError("grid", f"grid is {grid!r}; wanted are three numbers from 1 on", "spec.partition")
    parts = cast("list[int] | None", grid)
    if not isinstance(core.storage, HaloPolicy):
        if parts is not None and ranks is None:
            ranks = int(np.prod(parts))
        return block_partition(system, min(ranks or 1, system.bins[0]))
    chosen = tuple(parts) if parts is not None else grid_for(ranks or 1, system.bins)
    if parts is not None and ranks is not None and int(np.prod(parts)) != ranks:
        raise SpecError("grid", f"grid {parts} has {int(np.prod(parts))} domains, ranks is {ranks}", "spec.partition")
    return spatial_partition(system, chosen, None if width is None else float(width))


MOST_RANKS = 4096
"""Ranks of a system's partition."""
