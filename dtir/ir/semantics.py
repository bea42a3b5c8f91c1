"""Semantic records: what a task or program means above its dataflow.

`DistributedTaskSemantic` and `ProgramSemantic` are open bases; `EmptySemantic` is both. The Transformer records are in
`dtir.ir.transformer`.
"""

from __future__ import annotations

from dtir.schema.authoring import record
from dtir.schema.refinements import NonEmptyText


class DistributedTaskSemantic:
    """Base of what may stand in `DistributedTask.semantic`."""

    __slots__ = ()


class ProgramSemantic:
    """Base of what may stand in `DistributedTaskIR.semantic`."""

    __slots__ = ()


class ModelOperationSemantic:
    """Base of what may stand in `ModelOperation.semantic`."""

    __slots__ = ()


@record("blueprinting.ir.semantic.empty")
class EmptySemantic(DistributedTaskSemantic, ProgramSemantic, ModelOperationSemantic):
    """No meaning beyond the dataflow."""

    namespace: NonEmptyText = "generic"


EMPTY_SEMANTIC = EmptySemantic()
