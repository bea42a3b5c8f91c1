"""Label rules that operators share, parameters, the registry."""

from __future__ import annotations

import math
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from dtir.ir import BindingAxis, OperationName, Symbol
from dtir.ops import (
    DimGroup,
    Factor,
    Floats,
    Labels,
    OpCall,
    OpClass,
    OpDef,
    OpError,
    Place,
    Regroup,
    Unscaled,
    elements,
    find_op,
    register_op,
    require_op,
    similar_ops,
    unregister_op,
)
from dtir.ops.elementwise import scale_factor
from dtir.ops.parameters import dims_of, rational
from dtir.ops.placed import stencil_offsets, stencil_reach
from dtir.ops.rules import dim_groups, elementwise, unscaled

B = Symbol("B", BindingAxis.WORKLOAD)


# -- reshapes -----------------------------------------------------------------------------------------------------------


@st.composite
def reshapes(draw: st.DrawFn) -> tuple[tuple[int, ...], tuple[int, ...]]:
    """Two shapes of one size: the same small factors, put together in two ways, with units strewn in."""
    factors = draw(st.lists(st.sampled_from([1, 2, 3, 5]), min_size=1, max_size=6))

    def joined() -> tuple[int, ...]:
        shape: list[int] = []
        for factor in factors:
            if shape and draw(st.booleans()):
                shape[-1] *= factor
            else:
                shape.append(factor)
        return tuple(shape)

    return joined(), joined()


@given(reshapes())
def test_dim_groups_have_equal_products_and_leave_nothing_out(shapes: tuple[tuple[int, ...], tuple[int, ...]]) -> None:
    source, target = shapes
    groups = dim_groups(source, target)
    for group in groups:
        assert math.prod(source[dim] for dim in group.operand_dims) == math.prod(
            target[dim] for dim in group.result_dims
        )
    assert [dim for group in groups for dim in group.operand_dims] == [d for d, e in enumerate(source) if e != 1]
    assert [dim for group in groups for dim in group.result_dims] == [d for d, e in enumerate(target) if e != 1]


@given(reshapes(), st.integers(2, 3))
def test_a_split_of_the_leading_dim_of_a_group_is_the_same_split_behind_the_reshape(
    shapes: tuple[tuple[int, ...], tuple[int, ...]], parts: int
) -> None:
    source, target = shapes
    array = np.arange(math.prod(source)).reshape(source)
    whole = array.reshape(target)
    for group in dim_groups(source, target):
        dim, other = group.operand_dims[0], group.result_dims[0]
        if source[dim] % parts or target[other] % parts:
            continue
        shape = tuple(extent // parts if k == other else extent for k, extent in enumerate(target))
        blocks = [block.reshape(shape) for block in np.split(array, parts, axis=dim)]
        assert np.array_equal(np.concatenate(blocks, axis=other), whole)


def test_symbolic_dims_are_paired_by_name() -> None:
    assert dim_groups((B, 6), (B, 2, 3)) == (DimGroup((0,), (0,)), DimGroup((1,), (1, 2)))
    with pytest.raises(OpError, match="bind their symbols"):
        dim_groups((B, 6), (12, 3))


def test_shapes_of_different_size_are_no_reshape() -> None:
    with pytest.raises(OpError, match="different numbers of elements"):
        dim_groups((4, 6), (5, 5))


# -- broadcasting ---------------------------------------------------------------------------------------------------------


@given(st.lists(st.integers(1, 4), max_size=4), st.data())
def test_elementwise_labels_align_as_numpy_broadcasts(result: list[int], data: st.DataObject) -> None:
    first = data.draw(st.integers(0, len(result)))
    shape = tuple(data.draw(st.sampled_from([1, extent])) for extent in result[first:])
    rule = elementwise(OpCall((shape,), (tuple(result),)))
    assert isinstance(rule, Labels)
    assert np.broadcast_shapes(shape, tuple(result)) == tuple(result)
    for dim, label in enumerate(rule.operands[0]):
        if label is None:
            assert shape[dim] == 1 != result[first + dim]
        else:
            assert label == rule.results[0][first + dim]


def test_shapes_that_do_not_meet_are_named() -> None:
    with pytest.raises(
        OpError, match=r"\[4, 5\] does not broadcast to the result \[4, 6\]: dim 1 has 5, wanted 6 or 1"
    ):
        elementwise(OpCall(((4, 5),), ((4, 6),)))
    with pytest.raises(OpError, match="more dims"):
        elementwise(OpCall(((1, 4),), ((4,),)))


# -- constants --------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("given_as", "wanted"),
    [
        ("1/8", Fraction(1, 8)),
        ("0.5", Fraction(1, 2)),
        (3, Fraction(3)),
        (0.25, Fraction(1, 4)),
        ("-2e-1", Fraction(-1, 5)),
        ("6 / 4", Fraction(3, 2)),
    ],
)
def test_constants_are_exact(given_as: object, wanted: Fraction) -> None:
    assert rational(given_as) == wanted


@pytest.mark.parametrize(
    "text", ["", "one", "1//2", "1/0", "1e999999999", "1e-9999", "9" * 60, "nan", "inf", None, True, [1]]
)
def test_constants_that_are_none_are_refused_without_building_them(text: object) -> None:
    with pytest.raises(OpError):
        rational(text)


@given(st.fractions(max_denominator=10**6))
def test_fractions_round_trip(value: Fraction) -> None:
    assume(len(str(value)) < 30)
    assert rational(str(value)) == value


def test_the_constant_of_the_undivided_program() -> None:
    def call(**attributes: object) -> OpCall:
        return OpCall(((4,),), ((4,),), attributes)

    assert scale_factor(call(c="1/4"), None) == Fraction(1, 4)
    assert scale_factor(call(c="1/4", intro=True), None) == 1
    assert scale_factor(call(c="1/4", c_oracle="1/8"), None) == Fraction(1, 8)
    assert scale_factor(call(c="1/4", c_by_rank={"1": "1/2"}), 1) == Fraction(1, 2)
    assert scale_factor(call(c="1/4", c_by_rank={"1": "1/2"}), 0) == Fraction(1, 4)
    scale = require_op("scale")
    assert scale.scale(call(c="1/4", intro=True)) == Factor(Fraction(1, 4), Fraction(1))
    assert scale.scale(call(c="0", c_oracle=1)) == Unscaled()
    assert scale.signs(call(c=-2)) == (-1,)


def test_dims_are_counted_from_either_end_and_named_once() -> None:
    call = OpCall(((4, 5, 6),), ((4,),), {"dims": [-1, 1]})
    assert dims_of(call, 3) == (2, 1)
    with pytest.raises(OpError, match="twice"):
        dims_of(OpCall(((4, 5),), ((),), {"dims": [1, -1]}), 2)
    with pytest.raises(OpError, match="outside"):
        dims_of(OpCall(((4, 5),), ((),), {"dims": [2]}), 2)


def test_a_shape_with_symbols_has_no_number_of_elements() -> None:
    with pytest.raises(OpError, match="bind its symbols"):
        elements((4, B))


# -- stencils ----------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("points", "count"), [("star", 9), ("box", 25)])
def test_a_stencil_reads_a_star_or_a_box(points: str, count: int) -> None:
    call = OpCall(((6, 6),), ((6, 6),), {"radius": 2, "points": points})
    reach = stencil_reach(call)
    assert reach is not None
    assert len(stencil_offsets(reach)) == count


def test_a_stencil_on_blocks_with_frames_is_the_stencil_on_the_whole() -> None:
    array = np.random.default_rng(0).normal(size=(6, 8))
    operator = require_op("stencil")
    assert operator.run is not None
    for points in ("star", "box"):
        call = OpCall(((6, 8),), ((6, 8),), {"radius": 1, "points": points})
        framed = np.pad(array, 1, mode="wrap")
        (whole,) = operator.run(Floats(np), (framed,), call, Place())
        blocks = [operator.run(Floats(np), (framed[:, start : start + 6],), call, Place())[0] for start in (0, 4)]
        np.testing.assert_allclose(np.concatenate(blocks, axis=1), whole)


@pytest.mark.parametrize("attributes", [{"radius": 65}, {"radius": -1}])
def test_a_stencil_of_any_radius_is_not_run(attributes: dict[str, int]) -> None:
    with pytest.raises(OpError, match="radius"):
        stencil_reach(OpCall(((6,),), ((6,),), attributes))


def test_a_box_of_many_points_is_refused() -> None:
    reach = stencil_reach(OpCall(((9,) * 4,), ((9,) * 4,), {"radius": 20, "points": "box"}))
    assert reach is not None
    with pytest.raises(OpError, match="more than 4096"):
        stencil_offsets(reach)


# -- the registry --------------------------------------------------------------------------------------------------------------


def test_users_register_operators_of_their_own() -> None:
    warp = OpDef("warp", "mine", (1, 1), OpClass.NONLINEAR, elementwise, unscaled)
    name = OperationName("mine", "warp")
    register_op(warp, dialect="mine")
    try:
        assert find_op(name) is warp
        assert similar_ops("wrap", "mine") == ["warp"]
        with pytest.raises(ValueError, match=r"mine.warp is already defined"):
            register_op(warp, dialect="mine")
    finally:
        unregister_op(name)
    assert find_op(name) is None
    with pytest.raises(ValueError, match="already defined"):
        register_op(require_op("einsum"), dialect="core")


def test_an_unknown_operator_is_named_with_a_similar_one() -> None:
    with pytest.raises(OpError, match=r"no operator core\.enisum: did you mean einsum"):
        require_op("enisum")


def test_a_reshape_answers_in_groups() -> None:
    rule = require_op("reshape").labels(OpCall(((4, 6),), ((24,),)))
    assert rule == Regroup((DimGroup((0, 1), (0,)),))


@pytest.mark.parametrize(
    ("name", "count", "wanted"),
    [("relu", 2, "takes 1 operands, got 2"), ("add", 1, "at least 2"), ("layernorm", 4, "1 to 3")],
)
def test_the_number_of_operands_is_checked(name: str, count: int, wanted: str) -> None:
    with pytest.raises(OpError, match=wanted):
        require_op(name).check_arity(count)


def test_the_work_of_a_call_with_too_few_operands_is_an_error_of_the_call() -> None:
    """A program may be invalid, and its cost is asked for all the same."""
    with pytest.raises(OpError, match="attention takes 3 operands, got 1"):
        require_op("attention").flops(OpCall(((4, 8),), ((4, 8),)))
