"""The codes of the value-level judge that are no verdict: what it did not judge, and why. The verdicts are in the verifier's table."""

from __future__ import annotations

from dtir.schema.catalogue import CodeEntry
from dtir.schema.diagnostics import Severity

CODES: tuple[CodeEntry, ...] = (
    CodeEntry(
        "value.skipped",
        "The program cannot be run on numbers here: a symbol has no value, or the smallest run of it would need more memory than the "
        "judge spends. Nothing is said about its values.",
        "shape: [B, 8] without bind",
        "bind: {B: 16}",
        "bind the symbols, or judge a smaller program of the same shape",
        Severity.INFO,
    ),
    CodeEntry(
        "value.reduced",
        "The program is too large to run on numbers as it stands. What was run has smaller extents, or fewer ranks on axes that are "
        "used only as a whole, and the same tasks and layouts.",
        "shape: [8192, 16384]",
        "shape: [4, 6]",
        "the verdict is a test of that run; for the sizes as written, the static judge speaks",
        Severity.INFO,
    ),
    CodeEntry(
        "value.unknown",
        "An operator is not known, or its parameters do not fit it, so that nobody can say what its result should be. Nothing is concluded "
        "about that value or what depends on it.",
        "{kind: local, op: my_kernel, in: [x], out: [y]}",
        "register_op(OpDef('my_kernel', ...), dialect='core')",
        "register the operator, or mend its parameters",
        Severity.INFO,
    ),
)
