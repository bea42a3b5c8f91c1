"""The small languages inside: types, lists, attribute values, constants, places."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dtir.importers.hlo.shapes import ArrayShape
from dtir.importers.stablehlo.gspmd import decode
from dtir.importers.stablehlo.lists import entries, split
from dtir.importers.stablehlo.literals import literal
from dtir.importers.stablehlo.locations import NOWHERE, Locations
from dtir.importers.stablehlo.types import MALFORMED, OPAQUE, Types, mesh_of, signature
from dtir.importers.stablehlo.values import dense_ints, ints, matrix


@pytest.mark.parametrize(
    ("text", "shape"),
    [
        ("tensor<4x8xf32>", "f32[4,8]"),
        ("tensor<f32>", "f32[]"),
        ("tensor<2x3xcomplex<f32>>", "c64[2,3]"),
        ("tensor<?x4xbf16, #stablehlo.bounds<8, ?>>", "bf16[<=8,4]"),
        ("tensor<?xi1>", "pred[?]"),
        ("tensor<2x!quant.uniform<i8:f32, 0.1>>", "s8[2]"),
        ("tensor<2xf8E4M3FN>", "f8e4m3fn[2]"),
        ("!alias", "u8[7]"),
        ("tuple<tensor<i32>, tuple<!stablehlo.token>>", "(s32[], (token[]))"),
        ('!mpmd.mesh_tensor<"m1", tensor<4xf32>, sharding=<@mesh, [{"x"}]>>', "f32[4]"),
        ("index", "s64[]"),
        ("memref<4xf32>", "opaque[]"),
        ("tensor<*xf32>", "opaque[]"),
        ("!loop", "opaque[]"),
    ],
)
def test_types(text: str, shape: str) -> None:
    found = Types({"!alias": "tensor<7xui8>", "!loop": "!loop"}).one(text)
    assert found.text() == shape
    assert found is not MALFORMED


@pytest.mark.parametrize("text", ["tensor<4xf33>", "tensor<4xf32", "tensor<4x8xf32>>", "f32 f32", "", "4xf32"])
def test_text_that_is_no_type(text: str) -> None:
    assert Types({}).one(text) is MALFORMED


def test_mesh_of_an_mpmd_type() -> None:
    assert mesh_of("!t", {"!t": '!mpmd.mesh_tensor<"m2", tensor<f32>>'}) == "m2"
    assert mesh_of("tensor<f32>", {}) is None


def test_signatures() -> None:
    assert signature("(a, b<c, d>) -> (e, f)") == ("a, b<c, d>", "e, f")
    assert signature("(a) -> b") == ("a", "b")
    assert signature("a, b") == (None, "a, b")
    assert signature("a -> b<c>") == ("a", "b<c>")


def test_lists_split_outside_of_brackets_and_strings() -> None:
    assert split('a, "b, c", [d, {e, f}], (g) -> h, i<j, k>') == ["a", '"b, c"', "[d, {e, f}]", "(g) -> h", "i<j, k>"]
    assert split(" ") == []
    assert entries('a.b = {c = 1}, "d e" = "f, g", unit') == {"a.b": "{c = 1}", "d e": '"f, g"', "unit": ""}


@given(st.lists(st.integers(-(2**40), 2**40), max_size=6))
def test_integer_lists_are_read_in_every_form(numbers: list[int]) -> None:
    text = ", ".join(map(str, numbers))
    assert ints(f"[{text}]") == tuple(numbers)
    assert ints(f"array<i64: {text}>") == tuple(numbers)
    assert ints("[" + ", ".join(f"{number} : i64" for number in numbers) + "]") == tuple(numbers)
    assert dense_ints(f"dense<[{text}]> : tensor<{len(numbers)}xi64>") == tuple(numbers)


def test_rows_of_groups() -> None:
    assert matrix("dense<[[0, 2], [1, 3]]> : tensor<2x2xi64>") == ((0, 2), (1, 3))
    assert matrix("dense<[[0, 1, 2], [3, -1, -1]]> : tensor<2x3xi64>") == ((0, 1, 2), (3,))
    assert matrix("dense<0> : tensor<1x1xi64>") == ((0,),)
    assert matrix('dense<"0x00000000000000000100000000000000"> : tensor<1x2xi64>') == ((0, 1),)
    assert matrix("dense<[0, 1]> : tensor<2xi64>") is None
    assert matrix("dense<1> : tensor<999999999x999999999xi64>") is None


@pytest.mark.parametrize(
    ("text", "dtype", "dims", "found"),
    [
        ("dense<[[1, 2], [3, 4]]>", "s32", (2, 2), "{{1, 2}, {3, 4}}"),
        ("dense<1.5>", "f32", (9,), "1.5"),
        ("dense<0x7FC00000>", "f32", (), "nan"),
        ("dense<0xFF80>", "bf16", (), "-inf"),
        ("dense<[true, false]>", "pred", (2,), "{true, false}"),
        ('dense<"0x01000000FFFFFFFF">', "s32", (2,), "{1, -1}"),
        ('dense<"0x0000803F">', "f32", (5,), "1.0"),
        ('dense<"0x05">', "pred", (3,), "{true, false, true}"),
        ("dense<(1.0, 2.0)>", "c64", (), "(1.0, 2.0)"),
        ("dense<>", "f32", (0,), "{}"),
        ("dense_resource<big>", "f32", (4,), "{...}"),
        ('dense<"0x01">', "f32", (2,), None),
        ('dense<"0xzz">', "f32", (2,), None),
    ],
)
def test_constants(text: str, dtype: str, dims: tuple[int, ...], found: str | None) -> None:
    assert literal(text, ArrayShape(dtype, dims)) == found


def test_places() -> None:
    places = Locations(
        {
            "#loc": "loc(unknown)",
            "#loc1": 'loc("a.py":3:4 to :9)',
            "#loc2": 'loc("f/g"(#loc1))',
            "#loc3": "loc(callsite(#loc2 at #loc1))",
            "#loc4": "loc(#loc4)",
        }
    )
    assert places.of("loc(#loc2)") == ("f/g", "a.py", 3)
    assert places.of("loc(#loc3)") == ("f/g", "a.py", 3)
    assert places.of('loc("x")') == ("x", "", 0)
    assert places.of("loc(#loc)") == places.of("loc(#loc4)") == places.of("loc(#none)") == NOWHERE


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("\\08\\03\\1A\\02\\02\\01\\22\\02\\00\\01", "{devices=[2,1]0,1}"),
        (
            "\\08\\03\\1A\\03\\02\\01\\02\\22\\04\\00\\01\\02\\03B\\01\\00",
            "{devices=[2,1,2]0,1,2,3 last_tile_dims={replicated}}",
        ),
        ("\\08\\04", "{manual}"),
        ("\\08\\01\\22\\01\\03", "{maximal device=3}"),
    ],
)
def test_serialised_shardings(text: str, found: str) -> None:
    assert decode(text) == found


def test_opaque_values_hold_no_data() -> None:
    assert OPAQUE.size_bytes() == 0
