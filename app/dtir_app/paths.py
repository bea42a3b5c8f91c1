"""Where a task stands in the model that it came from: the path that the outline shows.

HLO keeps a path in ``op_name`` (``jit(step)/transpose(jvp(block_3))/dot_general``); programs of the upstream format name
phase and layer; pipeline tasks their stage and microbatch.
"""

from __future__ import annotations

from dtir.ir.tasks import DistributedTask
from dtir.ir.transformer import (
    TransformerInferenceDistributedTaskSemantic,
    TransformerTrainingDistributedTaskSemantic,
)

_MAX_PARTS = 12


def split_scopes(op_name: str) -> tuple[str, ...]:
    """The parts of an op_name; slashes inside brackets do not separate.

    >>> split_scopes("jit(f)/jvp(a/b)/dot")
    ('jit(f)', 'jvp(a/b)', 'dot')
    """
    parts: list[str] = []
    depth = start = 0
    for position, letter in enumerate(op_name):
        if letter in "([{":
            depth += 1
        elif letter in ")]}":
            depth = max(0, depth - 1)
        elif letter == "/" and depth == 0:
            parts.append(op_name[start:position])
            start = position + 1
    parts.append(op_name[start:])
    return tuple(part for part in parts if part)[:_MAX_PARTS]


def task_path(task: DistributedTask) -> tuple[str, ...]:
    """The enclosing scopes of a task, outermost first; empty when its source says nothing."""
    op_name = task.attributes.get("op_name")
    if isinstance(op_name, str) and op_name:
        return split_scopes(op_name)[:-1]
    semantic = task.semantic
    if isinstance(semantic, (TransformerTrainingDistributedTaskSemantic, TransformerInferenceDistributedTaskSemantic)):
        invocation = semantic.invocation
        return (invocation.phase.value, *invocation.source_layer.split(".")[:-1][:_MAX_PARTS])
    if task.pipeline is not None:
        slot = task.pipeline
        return (f"stage {slot.stage}", f"microbatch {slot.microbatch}", slot.phase)
    return ()


def task_name(task: DistributedTask) -> str:
    """What a task is called: its own name, the name of its invocation, else its operation."""
    if task.name:
        return task.name
    semantic = task.semantic
    if isinstance(semantic, (TransformerTrainingDistributedTaskSemantic, TransformerInferenceDistributedTaskSemantic)):
        return semantic.invocation.name
    return task.operation.name
