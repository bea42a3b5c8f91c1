"""Cut and mutated real files: findings with a place, never an exception."""

from __future__ import annotations

import random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dtir.importers.stablehlo.importer import import_mlir
from tests.helpers.mangle import mutate
from tests.importers.stablehlo.mlir_files import FIXTURES

TEXTS = [path.read_text() for path in sorted(FIXTURES.glob("*.mlir"))]
PIECES = [
    *"{}()[]<>\"',=%#@^\n\0?",
    "->",
    "//",
    "\n// -----\n",
    "-1",
    "99999999999999999999",
    "%0",
    "%arg0",
    "^bb0(%x: tensor<f32>):",
    "dense<",
    "tensor<",
    "loc(",
    "é",
    "func.func @f() {",
    "#sdy.sharding<@mesh, [",
    'unreduced={"dp"}',
    '{"tp":(2)2}',
    "stablehlo.while(%x = %arg0)",
    "replica_groups",
]


def check(text: str) -> None:
    found = import_mlir(text)
    assert found.parts
    for one in found.programs:
        if one.program is None:
            assert one.diagnostics.errors or one.diagnostics.items
        else:
            one.program.diagnostics()
    lines = text.count("\n") + 1
    for item in found.diagnostics:
        if item.path:
            assert 1 <= int(item.path[1]) <= lines


@pytest.mark.parametrize("seed", range(300))
def test_mutated_files(seed: int) -> None:
    rng = random.Random(seed)
    check(mutate(rng.choice(TEXTS), rng, PIECES))


@pytest.mark.parametrize("text", TEXTS, ids=range(len(TEXTS)))
def test_cut_files(text: str) -> None:
    for at in range(0, len(text), max(1, len(text) // 60)):
        check(text[:at])


@given(st.text(max_size=200))
@settings(max_examples=60, deadline=None)
def test_any_text(text: str) -> None:
    check(text)


def test_numbers_in_a_file_make_no_memory() -> None:
    huge = "9" * 18
    check(f"func.func @f(%a: tensor<{huge}x{huge}xf32>) {{ return }}")
    check(
        f'sdy.mesh @m = <["x"={huge}]>\nfunc.func @f(%a: tensor<4xf32> {{sdy.sharding = #sdy.sharding<@m, [{{"x"}}]>}}) {{ return }}'
    )
    check(f"func.func @f() {{\n  %0 = stablehlo.constant dense<1> : tensor<{huge}xi32>\n  return\n}}")
    check(f"module @m attributes {{mhlo.num_partitions = {huge} : i32}} {{ func.func @f() {{ return }} }}")
    check(f"func.func @f() {{\n  %0:{huge} = x.y : i32\n  return\n}}")
