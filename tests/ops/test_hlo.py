"""Label rules of HLO opcodes against blocks, and the table against real modules."""

from __future__ import annotations

import math
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from dtir.importers import load_path
from dtir.ir import DistributedTaskIR, DistributedValue, LocalCompute, OperationName
from dtir.ops import Fold, Labels, OpCall, OpClass, OpError, find_op, op_attributes
from dtir.ops.hlo import HLO_OPS
from tests.helpers.shared import shared_params


def rule(opcode: str, operands: tuple[Any, ...], result: tuple[int, ...], **attributes: Any) -> Labels:
    found = HLO_OPS[opcode].labels(OpCall(operands, (result,), attributes))
    assert isinstance(found, Labels)
    return found


def test_the_table_is_asked_for_and_never_found() -> None:
    """Operations of a module that is not partitioned yet are no steps of ranks."""
    assert find_op(OperationName("hlo", "dot")) is None


def test_a_dot_with_batch_dims_is_the_einsum_of_its_labels() -> None:
    random = np.random.default_rng(0)
    left, right = random.normal(size=(2, 3, 4)), random.normal(size=(4, 2, 5))
    found = rule("dot", (left.shape, right.shape), (2, 3, 5), lhs_batch_dims=(0,), rhs_batch_dims=(1,),
                 lhs_contracting_dims=(2,), rhs_contracting_dims=(0,))  # fmt: skip
    letters = {
        label: chr(97 + k) for k, label in enumerate(sorted({label or "" for row in found.operands for label in row}))
    }
    rows = ["".join(letters[label or ""] for label in row) for row in (*found.operands, *found.results)]
    product = np.einsum(f"{rows[0]},{rows[1]}->{rows[2]}", left, right)
    np.testing.assert_allclose(product, np.einsum("bij,jbk->bik", left, right))
    assert dict(found.folds) == {"c0": Fold.SUM}
    assert (
        HLO_OPS["dot"].flops(OpCall((left.shape, right.shape), ((2, 3, 5),), {"lhs_contracting_dims": (2,)}))
        == 2 * 30 * 4
    )


def test_dims_that_move_keep_their_labels() -> None:
    assert rule("transpose", ((2, 3, 4),), (4, 2, 3), dimensions=(2, 0, 1)).results == (("d2", "d0", "d1"),)
    assert rule("broadcast", ((3,),), (2, 3), dimensions=(1,)).operands == (("d1",),)
    assert rule("select", ((), (4, 5), (4, 5)), (4, 5)).operands == ((), ("d0", "d1"), ("d0", "d1"))


def test_dims_that_are_cut_joined_or_folded_are_whole() -> None:
    assert rule("slice", ((4, 6),), (4, 3)).whole == {"d1", "e1"}
    assert rule("concatenate", ((4, 2), (4, 3)), (4, 5), dimensions=(1,)).whole == {"d1", "part0", "part1"}
    assert rule("reduce", ((4, 6), ()), (4,), dimensions=(1,)).whole == {"d1"}
    assert rule("dynamic-update-slice", ((8, 6), (1, 6), (), ()), (8, 6)).whole == {"d0", "u0"}
    found = rule("gather", ((4, 6), (3, 1)), (3, 6))
    assert found.whole == {label for row in (*found.operands, *found.results) for label in row}


@pytest.mark.parametrize(
    ("opcode", "operands", "result", "attributes"),
    [
        ("dot", ((4, 8), (7, 6)), (4, 6), {"lhs_contracting_dims": (1,), "rhs_contracting_dims": (0,)}),
        ("dot", ((4, 8), (8, 6)), (4, 6), {"lhs_contracting_dims": (1,)}),
        ("dot", ((4, 8), (8, 6)), (4, 6), {"lhs_contracting_dims": (2,), "rhs_contracting_dims": (0,)}),
        ("transpose", ((4, 8),), (8, 4), {"dimensions": (0, 0)}),
        ("broadcast", ((3,),), (2, 4), {"dimensions": (1,)}),
        ("add", ((4, 8), (8, 4)), (4, 8), {}),
        ("negate", ((4,), (4,)), (4,), {}),
    ],
)  # fmt: skip
def test_calls_that_do_not_fit_are_refused(
    opcode: str, operands: tuple[Any, ...], result: tuple[int, ...], attributes: dict[str, Any]
) -> None:
    with pytest.raises(OpError):
        rule(opcode, operands, result, **attributes)


def test_classes() -> None:
    assert HLO_OPS["add"].op_class is OpClass.ADDITIVE
    assert HLO_OPS["divide"].nonlinear_operands == (1,)
    # What a reduction does is said by a computation of its own.
    assert HLO_OPS["reduce"].op_class is OpClass.NONLINEAR


WITHOUT_RULE = {
    "custom-call", "partition-id", "replica-id", "rng", "rng-bit-generator", "rng-get-and-update-state", "map", "get-dimension-size",
    "copy-start", "copy-done", "after-all", "infeed", "outfeed", "set-dimension-size", "complex", "add-dependency",
}  # fmt: skip
"""Opcodes of real modules that no rule can be given for, or none is: they say so as unknown operators."""


def local_shape(value: DistributedValue, program: DistributedTaskIR) -> tuple[Any, ...]:
    """What one rank holds: parameters of a partitioned module are split, everything else is per rank already."""
    counts = (math.prod(program.mesh.axis_size(axis) for axis in axes) for axes in value.sharding.dimension_axes)
    return tuple(-(-int(extent) // count) for extent, count in zip(value.type.shape, counts, strict=True))


def local_calls(program: DistributedTaskIR) -> list[tuple[str, OpCall]]:
    """The HLO operations of a module, with the shapes of one rank."""
    found: list[tuple[str, OpCall]] = []
    for _, scope in program.scopes():
        shapes = {value.id: local_shape(value, program) for value in scope.values}
        for task in scope.tasks:
            if isinstance(task.body, LocalCompute) and task.operation.dialect == "hlo":
                operands = tuple(shapes[item] for item in task.operand_values)
                results = tuple(shapes[item] for item in task.outputs)
                found.append((task.operation.name, OpCall(operands, results, op_attributes(task))))
    return found


@pytest.mark.parametrize("path", shared_params("inputs/hlo_jax/cpu8/*.spmd.hlo"))
def test_calls_of_real_modules_fit_their_rules(path: Path) -> None:
    program = load_path(path).program
    assert program is not None
    for opcode, call in local_calls(program):
        if opcode not in HLO_OPS:
            assert opcode in WITHOUT_RULE, opcode
            continue
        found = HLO_OPS[opcode].labels(call)
        if isinstance(found, Labels):
            assert [len(row) for row in found.operands] == [len(shape) for shape in call.operands], opcode
            assert [len(row) for row in found.results] == [len(shape) for shape in call.results], opcode
