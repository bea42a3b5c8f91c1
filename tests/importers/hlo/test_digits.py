"""Rank lists as digits: decomposition, cuts and fibres."""

from __future__ import annotations

from itertools import pairwise
from math import prod

from hypothesis import given
from hypothesis import strategies as st

from dtir.importers.hlo.digits import Cuts, Digit, digits_of, fibre_digits, in_order
from dtir.importers.hlo.groups import MeshGroups, expand
from dtir.importers.hlo.meshes import AxisRef, Mesh


def test_regular_lists() -> None:
    assert digits_of((5,)) == ()
    assert digits_of((0, 1, 2, 3)) == (Digit(4, 1),)
    assert digits_of((1, 3, 5)) == (Digit(3, 2),)
    assert digits_of((0, 4, 1, 5)) == (Digit(2, 1), Digit(2, 4))
    assert digits_of(range(2_000_000_000)) == (Digit(2_000_000_000, 1),)


def test_irregular_lists() -> None:
    assert digits_of((0, 7)) == (Digit(2, 7),)
    assert digits_of((0, 1, 3)) is None
    assert digits_of((3, 2)) is None
    assert digits_of((0, 1, 4, 6)) is None


def test_cuts_must_divide_each_other() -> None:
    cuts = Cuts(12)
    assert cuts.add((Digit(3, 4),))
    assert not cuts.add((Digit(2, 6),))
    assert cuts.pieces() == (Digit(3, 4), Digit(4, 1))
    assert cuts.add((Digit(2, 2),))
    assert cuts.split(Digit(4, 1)) == (Digit(2, 2), Digit(2, 1))
    assert not cuts.add((Digit(2, 12),))


def test_groups_in_another_order_are_fibres_out_of_order() -> None:
    groups = ((0, 1), (4, 5), (2, 3), (6, 7))
    digits = fibre_digits(groups, 8)
    assert digits == (Digit(2, 1),)
    assert not in_order(groups, digits, 8)
    assert in_order(sorted(groups), digits, 8)


def test_what_is_no_set_of_fibres() -> None:
    assert fibre_digits((), 4) is None
    assert fibre_digits(((0, 7), (1, 6), (2, 5), (3, 4)), 8) is None
    assert fibre_digits(((0, 1),), 4) is None
    assert fibre_digits(((0, 1), (2,)), 3) is None
    assert fibre_digits(((0, 1), (0, 1)), 4) is None
    assert fibre_digits(((0, 1, 2), (3, 4, 5)), 6) == (Digit(3, 1),)
    assert fibre_digits(((0, 2, 1, 3),), 4) == (Digit(2, 1), Digit(2, 2))


@st.composite
def _cases(draw: st.DrawFn) -> tuple[list[int], list[int]]:
    factors = draw(st.lists(st.sampled_from([2, 3]), min_size=1, max_size=4))
    chosen = draw(st.lists(st.integers(0, len(factors) - 1), unique=True, min_size=1))
    return factors, chosen


@given(_cases())
def test_groups_along_pieces_are_their_digits(case: tuple[list[int], list[int]]) -> None:
    factors, chosen = case
    count = prod(factors)
    cuts = [prod(factors[:end]) for end in range(len(factors) + 1)]
    refs = [AxisRef("a", low, high // low) for low, high in pairwise(cuts)]
    groups = expand(MeshGroups(Mesh((("a", count),)), tuple(refs[number] for number in chosen), ""))
    digits = fibre_digits(groups, count)
    assert digits is not None
    assert in_order(groups, digits, count)
    space = Cuts(count)
    assert space.add(digits)
    assert prod(piece.size for piece in space.pieces()) == count
    pieces = [piece for digit in digits for piece in space.split(digit)]
    assert prod(piece.size for piece in pieces) == len(groups[0])
