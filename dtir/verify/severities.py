"""The severity of every code that the verifier reports; all others are errors."""

from __future__ import annotations

from collections import defaultdict

from dtir.schema.diagnostics import Severity

WARNINGS = (
    "sharding.correlated_random",
    "order.ambiguous",
    "redundant.collective",
    "redundant.fusible",
    "redundant.roundtrip",
    "redundant.hoistable",
    "redundant.repeated",
    "memory.peak",
)

SEVERITIES: defaultdict[str, Severity] = defaultdict(lambda: Severity.ERROR, dict.fromkeys(WARNINGS, Severity.WARNING))
