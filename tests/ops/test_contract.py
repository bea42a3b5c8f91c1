"""Sums of products against numpy's own einsum, and their label rule against blocks."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from dtir.ops import Field, Floats, OpCall, OpError, require_op
from dtir.ops.contract import EXACT_TERMS, contract, parse_spec

EXTENTS = {"a": 2, "b": 3, "c": 4, "d": 1, "e": 5}


@st.composite
def specs(draw: st.DrawFn) -> tuple[list[str], str]:
    """Labels of one to four operands (repeated ones among them), and of a result."""
    letters = st.lists(st.sampled_from("abcde"), max_size=3)
    parts = ["".join(item) for item in draw(st.lists(letters, min_size=1, max_size=4))]
    known = sorted(set("".join(parts)))
    right = draw(st.permutations(known))
    return parts, "".join(right[: draw(st.integers(0, len(known)))])


@given(specs(), st.integers(0, 2**32 - 1))
def test_contraction_is_einsum(spec: tuple[list[str], str], seed: int) -> None:
    parts, right = spec
    random = np.random.default_rng(seed)
    arrays = [random.normal(size=[EXTENTS[label] for label in part]) for part in parts]
    found = contract(Floats(np), arrays, parts, right)
    wanted = np.einsum(",".join(parts) + "->" + right, *arrays)
    np.testing.assert_allclose(found, wanted, rtol=1e-9, atol=1e-9)


@given(specs(), st.integers(0, 2**32 - 1), st.sampled_from([97, 1_048_573]))
def test_contraction_is_exact_modulo_a_prime(spec: tuple[list[str], str], seed: int, prime: int) -> None:
    parts, right = spec
    random = np.random.default_rng(seed)
    arrays = [random.integers(0, prime, size=[EXTENTS[label] for label in part]) for part in parts]
    found = contract(Field(np, prime), arrays, parts, right)
    exact = [np.vectorize(int, otypes=[object])(array) for array in arrays]
    wanted = np.einsum(",".join(parts) + "->" + right, *exact) % prime
    assert np.array_equal(found, np.asarray(wanted).astype(np.int64))


def test_long_sums_stay_exact() -> None:
    prime = 1_048_573
    terms = 3 * EXACT_TERMS + 5
    array = np.full((1, terms), prime - 1, dtype=np.int64)
    found = contract(Field(np, prime), (array, array.T), ("ik", "ko"), "io")
    assert int(found[0, 0]) == terms * (prime - 1) ** 2 % prime


def test_empty_dims_give_zeros() -> None:
    for arithmetic in (Floats(np), Field(np, 97)):
        left, right = np.zeros((2, 0), dtype=np.int64), np.zeros((0, 3), dtype=np.int64)
        found = contract(arithmetic, (left, right), ("ik", "ko"), "io")
        assert found.shape == (2, 3)
        assert not found.any()


@pytest.mark.parametrize(
    ("spec", "operands", "reason"),
    [
        (None, 1, "must be text"),
        ("ab", 1, "must read"),
        ("a1->a", 1, "one letter"),
        ("a,b->ab", 1, "has 2 operands, the task 1"),
        ("a->aa", 1, "twice"),
        ("a->b", 1, "occurs in no operand"),
    ],
)
def test_bad_specs_are_named(spec: object, operands: int, reason: str) -> None:
    with pytest.raises(OpError, match=reason):
        parse_spec(spec, operands)


def test_labels_with_two_extents_are_named() -> None:
    with pytest.raises(OpError, match="label 'i' has extent 8 and 7"):
        require_op("einsum").labels(OpCall(((4, 8), (7, 6)), ((4, 6),), {"spec": "bi,io->bo"}))
    with pytest.raises(OpError, match="has 3 dims"):
        require_op("einsum").labels(OpCall(((4, 8, 2), (8, 6)), ((4, 6),), {"spec": "bi,io->bo"}))
