"""`import_hlo`: HLO text to a program, with everything that was found on the way."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass, field

from dtir.importers.hlo.facts import fact
from dtir.importers.hlo.frontend import AnalysedModule, analyse_text
from dtir.importers.hlo.layouts import Form
from dtir.importers.hlo.lexing import HloSyntaxError
from dtir.importers.hlo.lowering import lower
from dtir.importers.hlo.problems import Level, Lines, Problem
from dtir.ir.program import DistributedTaskIR
from dtir.schema.diagnostics import Diagnostic, DiagnosticBag, DiagnosticSet, Severity

_DIGEST_SIZE_BYTES = 20


@dataclass(frozen=True, slots=True)
class HloImport:
    """What came out of one text.

    Args:
        program: the program; None when the text has errors or holds nothing to import.
        diagnostics: everything found, in text order; the path is `("line", n, "column", m)`.
        module: the module as read and analysed; None when it has errors.
    """

    program: DistributedTaskIR | None
    diagnostics: DiagnosticSet
    module: AnalysedModule | None = field(default=None, repr=False)

    @property
    def ok(self) -> bool:
        """True when there is a program and no error."""
        return self.program is not None and self.diagnostics.ok


def import_hlo(text: str, *, name: str = "", digest: str | None = None) -> HloImport:
    """Import the first module of an HLO text. Nothing is raised for what the text holds.

    Args:
        text: HLO as text, in any print form.
        name: the program's name; the module's own when empty.
        digest: content digest of the source (40 hex digits); BLAKE2b-160 of the text as UTF-8 when not given.

    >>> found = import_hlo("e { p = f32[4] parameter(0)  ROOT n = f32[4] negate(p) }", name="neg")
    >>> [str(task.operation) for task in found.program.tasks]
    ['hlo.negate']
    """
    analysed = analyse_text(text)
    bag = DiagnosticBag()
    bag.extend(_diagnostic(problem) for problem in analysed.problems)
    if analysed.omitted:
        bag.error("hlo.omitted", f"{analysed.omitted} further problems are not listed", hint="repair those above first")
    module = analysed.module
    if module is None:
        return HloImport(None, DiagnosticSet(tuple(bag.report())))
    source = (
        digest or hashlib.blake2b(text.encode("utf-8", "surrogatepass"), digest_size=_DIGEST_SIZE_BYTES).hexdigest()
    )
    label = name or module.module.name or module.module.entry.name
    try:
        program = lower(module, name=label, digest=source)
    except HloSyntaxError as error:
        line, column = Lines(text).position(error.offset)
        bag.add(_diagnostic(Problem(error.code, error.message, line, column, hint="name fewer ranks")))
        return HloImport(None, DiagnosticSet(tuple(bag.report())), module)
    _note(module, program, bag)
    return HloImport(program, DiagnosticSet(tuple(bag.report())), module)


def _note(module: AnalysedModule, program: DistributedTaskIR, bag: DiagnosticBag) -> None:
    """What a reader of the program should know about how it was made."""
    devices = module.count.devices
    if module.count.inferred:
        bag.warning(
            "hlo.device_count_inferred",
            f"the header does not state {devices.replicas} replicas and {devices.partitions} partitions; "
            "they are inferred from the ids in groups, pairs, shardings and meshes",
            hint="add num_partitions= or replica_count= to the HloModule line",
        )
    unreachable = program.attributes.get(fact("unreachable"), ())
    if unreachable:
        names = ", ".join(unreachable[:5]) + (", ..." if len(unreachable) > 5 else "")
        bag.info("hlo.unreachable", f"{len(unreachable)} computations are used by nothing and left out: {names}")
    if devices.ranks > 1:
        if program.attributes[fact("form")] == Form.PER_DEVICE.value:
            bag.info(
                "hlo.per_rank",
                "shapes are what one rank holds: values vary along every axis, only parameters with a sharding say "
                "how they are split",
            )
        else:
            bag.info(
                "hlo.unpartitioned",
                "shapes are global and the partitioner has not run: layouts are those it is asked for, the "
                "communication between them is not in the text",
                hint="import the dump made right after spmd-partitioning to see it",
            )


def _diagnostic(problem: Problem) -> Diagnostic:
    severity = Severity.ERROR if problem.level is Level.ERROR else Severity.WARNING
    path = ("line", str(problem.line), "column", str(problem.column))
    return Diagnostic(problem.code, problem.message, path, severity, problem.hint)
