"""MLIR files with known answers: the fixtures beside this file, and the shared real files where they are present."""

from __future__ import annotations

from collections import Counter
from pathlib import Path
from typing import Any

from dtir.analysis.summary import summarize
from dtir.importers.stablehlo.importer import MlirImport, import_mlir
from dtir.ir.program import DistributedTaskIR

FIXTURES = Path(__file__).parent / "fixtures"


def fixture(name: str) -> str:
    return (FIXTURES / f"{name}.stablehlo.mlir").read_text()


def program(text: str) -> DistributedTaskIR:
    """The first program of a text that has no errors."""
    found: MlirImport = import_mlir(text)
    errors = [item.render() for item in found.diagnostics.errors]
    assert not errors
    first = found.programs[0].program
    assert first is not None
    return first


def function(body: str, arguments: str = "%a: tensor<4x8xf32>", head: str = "", results: str = "") -> str:
    """A function with these lines as its body."""
    arrow = f" -> ({results})" if results else ""
    return f"{head}func.func @main({arguments}){arrow} {{\n{body}\n}}\n"


def collectives(found: DistributedTaskIR) -> Counter[tuple[Any, ...]]:
    """Kind, reduction, bytes, number of executions and groups of every collective."""
    return Counter(
        (
            row.kind,
            row.reduction,
            row.message_bytes,
            row.executions,
            tuple(tuple(group) for group in row.groups or ()),
        )
        for row in summarize(found).collectives
    )
