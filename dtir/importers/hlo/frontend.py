"""Text in, analysed module out: reading, spelling out short forms, control flow, device count and checks.

Every stage adds to one list of problems; a stage whose input is faulty is not run, so one fault is reported once.
"""

from __future__ import annotations

from dataclasses import dataclass

from dtir.importers.hlo.control import Control, analyse
from dtir.importers.hlo.devices import DeviceCount, count_devices
from dtir.importers.hlo.problems import Level, Problem, Problems
from dtir.importers.hlo.reader import read_text
from dtir.importers.hlo.sugar import desugar
from dtir.importers.hlo.syntax import Computation, HloModule
from dtir.importers.hlo.validate import validate


@dataclass(frozen=True, slots=True)
class AnalysedModule:
    """A module without faults: its short forms spelled out, with control flow facts and device count.

    `reachable` are the computations that the entry uses, callees before callers.
    """

    module: HloModule
    control: Control
    count: DeviceCount
    reachable: tuple[Computation, ...]


@dataclass(frozen=True, slots=True)
class Analysed:
    """The first module of a text (None when it has faults) and everything found, in text order."""

    module: AnalysedModule | None
    problems: tuple[Problem, ...]
    omitted: int = 0


def analyse_text(text: str) -> Analysed:
    """Read and check the first module of a text; further ones are read for faults and named in a warning."""
    read = read_text(text)
    problems = Problems(text)
    problems.items += read.problems
    problems.omitted = read.omitted
    if len(read.modules) > 1:
        names = ", ".join(module.name or module.entry.name for module in read.modules[1:6])
        more = ", ..." if len(read.modules) > 6 else ""
        message = f"the text holds {len(read.modules)} modules; the first is imported, not {names}{more}"
        problems.warning(
            "hlo.several_modules", message, read.modules[1].offset, "cut the text at the module in question"
        )
    module = analyse_module(read.modules[0], problems) if read.ok and read.modules else None
    items = sorted(problems.items, key=lambda problem: (problem.line, problem.column))
    return Analysed(module, tuple(items), problems.omitted)


def analyse_module(module: HloModule, problems: Problems) -> AnalysedModule | None:
    """Analyse one module that could be read; None when it has faults, which are then among `problems`."""
    module = desugar(module, problems)
    control = analyse(module)
    if control.cycle:
        by_name = module.by_name()
        message = f"computations call each other in a circle: {' -> '.join(control.cycle)}"
        problems.error("hlo.recursion", message, by_name[control.cycle[0]].offset)
        return None
    by_name = module.by_name()
    reachable = tuple(by_name[name] for name in control.order)
    count = count_devices(module, reachable)
    validate(module, reachable, count, problems)
    if any(problem.level is Level.ERROR for problem in problems.items) or problems.omitted:
        return None
    return AnalysedModule(module, control, count, reachable)
