"""Tensor types, operation names, effects, sizes of element types."""

from __future__ import annotations

from typing import Any

import pytest

from dtir.ir import (
    BindingAxis,
    Effect,
    EffectKind,
    OperationName,
    Symbol,
    TensorType,
    ceil_div,
    dtype_bits,
    elements_bytes,
    is_known_target_dialect,
)
from dtir.schema import EMPTY_MAP, record_spec
from dtir.schema.authoring import enum_spec_of

B = Symbol("b", BindingAxis.WORKLOAD)


def test_types() -> None:
    made = TensorType((B, 16, 2.5, B * 2), "bf16", (3, 2, 1, 0))
    assert made.rank == 4
    assert not made.is_static
    assert TensorType((), "f32").is_static
    assert TensorType((4, 0), "f32").attributes == EMPTY_MAP
    assert record_spec(TensorType).tag == "blueprinting.ir.tensor-type"


@pytest.mark.parametrize(
    ("fields", "name"),
    [
        ({"shape": (-1,)}, "shape"),
        ({"shape": (True,)}, "shape"),
        ({"shape": (0.0,)}, "shape"),
        ({"shape": (-2.5,)}, "shape"),
        ({"shape": (float("inf"),)}, "shape"),
        ({"shape": [1]}, "shape"),
        ({"dtype": "1f"}, "dtype"),
        ({"dtype": ""}, "dtype"),
        ({"layout": [0]}, "layout"),
        ({"attributes": {}}, "attributes"),
    ],
    ids=str,
)
def test_fields_are_matched(fields: dict[str, Any], name: str) -> None:
    with pytest.raises(TypeError, match=rf"TensorType\.{name} must match"):
        TensorType(**{"shape": (1,), "dtype": "f32", **fields})


@pytest.mark.parametrize("layout", [(0,), (0, 0), (0, 2), (1, 0, 2), (-1, 0)])
def test_a_layout_is_a_permutation(layout: tuple[int, ...]) -> None:
    with pytest.raises(ValueError, match=r"layout must be a permutation of range\(2\)"):
        TensorType((1, 2), "f32", layout)


def test_an_empty_dim_is_a_fact_that_upstream_cannot_hold() -> None:
    assert TensorType((4, 1), "f32").upstream_obstacle() is None
    assert "positive dimensions" in str(TensorType((4, 0), "f32").upstream_obstacle())


def test_operation_names() -> None:
    made = OperationName.parse("hlo.dot.general")
    assert (made.dialect, made.name, str(made)) == ("hlo", "dot.general", "hlo.dot.general")
    assert OperationName("a", "b") < OperationName("a", "c") < OperationName("b", "a")
    for bad in ("", "hlo", ".x", "hlo."):
        with pytest.raises(TypeError, match=r"OperationName\.\w+ must match"):
            OperationName.parse(bad)


@pytest.mark.parametrize("dialect", ["cuda", "lpu", "nccl", "rccl", "rocm", "NCCL", "Cuda"])
def test_target_dialects(dialect: str) -> None:
    assert is_known_target_dialect(OperationName(dialect, "x"))


@pytest.mark.parametrize("dialect", ["hip", "cudnn", "xla", "musa", "core", "ncclx"])
def test_other_dialects(dialect: str) -> None:
    assert not is_known_target_dialect(OperationName(dialect, "x"))


def test_effects() -> None:
    assert [kind.value for kind in EffectKind] == ["read", "write", "state", "random", "io", "alloc", "free"]
    spec = enum_spec_of(EffectKind)
    assert spec is not None
    assert spec.extensions == {"ALLOC", "FREE"}
    with pytest.raises(TypeError, match=r"Effect\.resource must match"):
        Effect(EffectKind.READ, "")


@pytest.mark.parametrize(
    ("dtype", "bits"),
    [
        ("f32", 32),
        ("bf16", 16),
        ("float8", 8),
        ("f8e4m3fn", 8),
        ("s4", 4),
        ("u1", 1),
        ("pred", 8),
        ("bool", 8),
        ("c64", 64),
        ("complex128", 128),
        ("float", 32),
        ("token", 0),
        ("F32", 32),
        ("mystery", None),
    ],
)
def test_bits(dtype: str, bits: int | None) -> None:
    assert dtype_bits(dtype) == bits


def test_bytes_of_elements() -> None:
    assert elements_bytes(10, "bf16") == 20
    assert elements_bytes(5, "s4") == 3
    assert elements_bytes(B, "f32") == B * 4
    assert elements_bytes(B, "s4") == ceil_div(B * 4, 8)
    assert elements_bytes(10, "mystery") is None
