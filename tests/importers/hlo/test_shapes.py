"""Shapes: every printed form, sizes in bytes, and text that is no shape."""

from __future__ import annotations

import pytest

from dtir.importers.hlo.lexing import HloSyntaxError
from dtir.importers.hlo.shapes import ArrayShape, TupleShape, parse_shape


@pytest.mark.parametrize(
    ("text", "dtype", "dims"),
    [
        ("f32[]", "f32", ()),
        ("f32[8,16]{1,0}", "f32", (8, 16)),
        ("bf16[4096]{0:T(1024)(128)(2,1)S(1)}", "bf16", (4096,)),
        ("s32[]{:T(256)S(1)}", "s32", ()),
        ("u4[1024,512]{1,0:E(4)}", "u4", (1024, 512)),
        ("f8e4m3b11fnuz[3]", "f8e4m3b11fnuz", (3,)),
        ("f32[2,3]{1,0:T(8,128)L(16)#(s32)*(u32)E(16)S(5)SC(1:64)M(1024)}", "f32", (2, 3)),
        ("f32[8]{0:D(D)P(s32[2]{0})}", "f32", (8,)),
        ("token[]", "token", ()),
        ("opaque[]", "opaque", ()),
    ],
)
def test_arrays(text: str, dtype: str, dims: tuple[int, ...]) -> None:
    shape = parse_shape(text)
    assert isinstance(shape, ArrayShape)
    assert (shape.dtype, shape.dims) == (dtype, dims)


@pytest.mark.parametrize(
    ("text", "size_bytes"),
    [
        ("f32[]", 4),
        ("f32[3,0,5]", 0),
        ("pred[7]", 7),
        ("s4[5]", 3),  # 20 bits
        ("u1[9]", 2),
        ("s2[4]", 1),
        ("f4e2m1fn[3]", 2),
        ("c128[2]", 32),
        ("token[]", 0),
        ("(f32[2], (s4[3], bf16[2,2]), token[])", 8 + 2 + 8),
        ("f32[99999999999,99999999999]", 4 * 99999999999**2),
    ],
)
def test_sizes_in_bytes(text: str, size_bytes: int) -> None:
    assert parse_shape(text).size_bytes() == size_bytes


def test_dynamic_dims_keep_their_bound() -> None:
    shape = parse_shape("f32[<=8, 4]")
    assert shape == ArrayShape("f32", (8, 4), (True, False))
    assert shape.text() == "f32[<=8,4]"


def test_a_dim_without_bound_has_no_size() -> None:
    assert parse_shape("f32[?,4]") == ArrayShape("f32", (-1, 4), (True, False))


def test_tuples_nest_and_hold_comments() -> None:
    shape = parse_shape("(f32[2]{0}, s32[], /*index=2*/((bf16[4])), ())")
    assert isinstance(shape, TupleShape)
    assert [leaf.text() for leaf in shape.leaves()] == ["f32[2]", "s32[]", "bf16[4]"]
    assert shape.text() == "(f32[2], s32[], ((bf16[4])), ())"


def test_a_buffer_is_marked() -> None:
    shape = parse_shape("b(f32[10]{0})")
    assert isinstance(shape, TupleShape)
    assert shape.buffer
    assert shape.text() == "b(f32[10])"


@pytest.mark.parametrize(
    ("text", "code", "says"),
    [
        ("", "hlo.syntax", "expected a shape"),
        ("f33[2]", "hlo.unknown_dtype", "f33"),
        ("f32[2", "hlo.syntax", "expected a shape"),
        ("f32[2,]", "hlo.syntax", "is not a dim size"),
        ("f32[-1]", "hlo.syntax", "expected a shape"),
        ("f32[99999999999999999999]", "hlo.syntax", "20 digits"),
        ("(f32[2]", "hlo.syntax", "expected ','"),
        ("(f32[2] f32[3])", "hlo.syntax", "expected ','"),
        ("f32[2]{1,0", "hlo.syntax", "never closed"),
        ("f32[2] x", "hlo.syntax", "unexpected text"),
        ("(" * 5000, "hlo.syntax", "nested deeper than 100"),
    ],
)
def test_text_that_is_no_shape(text: str, code: str, says: str) -> None:
    with pytest.raises(HloSyntaxError, match=says) as caught:
        parse_shape(text)
    assert caught.value.code == code
