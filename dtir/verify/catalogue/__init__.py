"""The table of codes: what each means, who can see it, a program that has it and the same program put right.

>>> entry_of("partial.dropped").hint
'insert an all_reduce (to replicated) or a reduce_scatter (to split)'
>>> len(TABLE)
103
"""

from __future__ import annotations

from dtir.schema.catalogue import CodeEntry
from dtir.schema.diagnostics import Severity
from dtir.verify.catalogue import collectives, grids, layouts, pending, resources, schedules, transfers, verdicts
from dtir.verify.catalogue.entry import Entry, Judge, document
from dtir.verify.catalogue.verdicts import NO_TEXT

__all__ = ["CODES", "NOTES", "NO_TEXT", "TABLE", "Entry", "Judge", "document", "entry_of"]

TABLE: tuple[Entry, ...] = (
    *layouts.ENTRIES,
    *pending.ENTRIES,
    *collectives.ENTRIES,
    *transfers.ENTRIES,
    *resources.ENTRIES,
    *schedules.ENTRIES,
    *grids.ENTRIES,
    *verdicts.ENTRIES,
)
"""Every code of the verifier."""

_BY_CODE = {entry.code: entry for entry in TABLE}


def entry_of(code: str) -> Entry:
    """The row of a code.

    Raises:
        KeyError: no such code.
    """
    return _BY_CODE[code]


NOTES: tuple[CodeEntry, ...] = (
    CodeEntry(
        "verify.skipped",
        "The program is structurally broken, or larger than a judge looks at, so that it was not judged in full. "
        "That nothing else was found means nothing.",
        "a task that reads a value which nothing writes",
        "the same program with its structure mended",
        "mend what is reported first, and judge again",
        Severity.INFO,
    ),
    CodeEntry(
        "verify.unknown_op",
        "An operator has no rule, so that nobody can say how its results lie. They, and what is computed from them, are not judged.",
        "{kind: local, op: my_kernel, in: [x], out: [y]}",
        "register_op(OpDef('my_kernel', ...), dialect='core')",
        "give the operator a rule with register_op",
        Severity.INFO,
    ),
    CodeEntry(
        "verify.op_call",
        "Operands, results or parameters of a task do not fit its operator: shapes that do not meet, a dim that does not exist. "
        "The layout of the task was not judged.",
        "{kind: local, op: matmul, in: [a, b], out: [c]} with a[4, 6] and b[5, 8]",
        "the same with b[6, 8]",
        "correct the shapes or parameters",
    ),
    CodeEntry(
        "verify.not_issued",
        "The program has issue lists, and no rank issues some of its communication tasks. Who would wait for whom there was not judged.",
        "issue: {0: [a], 1: [a]} with a further task b on ranks 0 and 1",
        "issue: {0: [a, b], 1: [a, b]}",
        "add the tasks to the lists of their ranks",
        Severity.INFO,
    ),
    CodeEntry(
        "verify.assumption",
        "An assumption of the program has a form that is not understood, so that nothing was concluded from it.",
        'assume: ["B is even"]',
        'assume: ["B % 2 == 0"]',
        'write "B % 4 == 0", "S * H % (2 * tp) == 0" or "H == 64"',
        Severity.INFO,
    ),
    CodeEntry(
        "verify.limit",
        "A limit of the program has a name that is not known, so that it was not judged.",
        "limits: {in_fligt: 2}",
        "limits: {inflight: 2}",
        "use inflight, buffers, peak_bytes or warmup",
        Severity.INFO,
    ),
)
"""Codes of the verifier about its own work: what it did not judge, and why."""


def _codes() -> tuple[CodeEntry, ...]:
    from dtir.ir.codes import CODES as STRUCTURE

    known = {entry.code for entry in STRUCTURE}
    rows = tuple(
        CodeEntry(entry.code, entry.why, entry.bad.strip(), entry.good.strip(), entry.hint, entry.severity)
        for entry in TABLE
        if entry.code not in known
    )
    return (*rows, *NOTES)


CODES: tuple[CodeEntry, ...] = _codes()
"""What ``dtir explain`` prints; codes of the structure are explained where they are reported."""
