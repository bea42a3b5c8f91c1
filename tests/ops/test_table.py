"""Every claim of every operator, tried on numbers: labels, folds, pending class, scale law, padding, exactness.

The verifier believes these claims, so each is a property of the evaluation: a split that the label rule allows gives the same
result block by block; a linear operator adds up; a homogeneous one scales.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from dtir.ops import (
    Degrees,
    EqualScales,
    Field,
    Floats,
    Fold,
    Labels,
    OpCall,
    OpClass,
    OpError,
    Place,
    ScaleFree,
    elements,
)
from dtir.ops.registry import _built_in
from tests.helpers.op_calls import SAMPLES, Sample

FLOATS = Floats(np)
CORE = {name.name: operator for name, operator in _built_in().items() if name.dialect == "core"}
EVALUATED = [
    sample for sample in SAMPLES if sample.name != "stencil"
]  # its operand comes with a frame: tested beside it
WITH_OPERANDS = [sample for sample in EVALUATED if sample.call.operands]


def each(samples: Sequence[Sample]) -> pytest.MarkDecorator:
    assert samples
    return pytest.mark.parametrize("sample", samples, ids=lambda item: item.name)


def of_class(*classes: OpClass) -> list[Sample]:
    return [sample for sample in WITH_OPERANDS if sample.operator.op_class in classes]


def labelled(sample: Sample) -> Labels | None:
    rule = sample.operator.labels(sample.call)
    return rule if isinstance(rule, Labels) else None


by_name = each(EVALUATED)


def run(
    sample: Sample, operands: Sequence[np.ndarray], call: OpCall | None = None, place: Place | None = None
) -> list[np.ndarray]:
    assert sample.operator.run is not None
    place = place or Place(sizes={"tp": 2})
    return [np.asarray(item) for item in sample.operator.run(FLOATS, operands, call or sample.call, place)]


def random_for(sample: Sample) -> np.random.Generator:
    return np.random.default_rng(sum(map(ord, sample.name)))


def test_every_operator_has_a_sample() -> None:
    assert {sample.name for sample in SAMPLES} == set(CORE)


@by_name
def test_results_have_the_declared_shapes(sample: Sample) -> None:
    results = run(sample, sample.operands(random_for(sample)))
    assert [item.shape for item in results] == list(sample.call.results)


@each([sample for sample in SAMPLES if labelled(sample)])
def test_every_label_has_one_extent(sample: Sample) -> None:
    rule = labelled(sample)
    assert rule is not None
    extents: dict[str, Any] = {}
    rows = zip((*rule.operands, *rule.results), (*sample.call.operands, *sample.call.results), strict=True)
    for labels, shape in rows:
        assert len(labels) == len(shape)
        for label, extent in zip(labels, shape, strict=True):
            assert label is not None or extent == 1
            if label is not None:
                assert extents.setdefault(label, extent) == extent
    made = {label for row in rule.results for label in row}
    assert made.isdisjoint(rule.folds)
    assert set(rule.folds) | made | rule.whole >= {label for row in rule.operands for label in row if label}


def _blocks(rows: Sequence[Any], arrays: Sequence[np.ndarray], label: str, parts: int) -> list[list[np.ndarray]]:
    """Every array cut along the dim of a label; copies of those without it."""
    cut: list[list[np.ndarray]] = [[] for _ in range(parts)]
    for labels, array in zip(rows, arrays, strict=True):
        pieces = np.split(array, parts, axis=labels.index(label)) if label in labels else [array] * parts
        for place, piece in enumerate(pieces):
            cut[place].append(piece)
    return cut


def _extent(rule: Labels, call: OpCall, label: str) -> int:
    rows = zip(rule.operands, call.operands, strict=True)
    extent = next(shape[labels.index(label)] for labels, shape in rows if label in labels)
    assert isinstance(extent, int)
    return extent


def _halved(rule: Labels, call: OpCall, label: str) -> tuple[Any, ...]:
    """Result shapes with half of a label's extent."""
    return tuple(
        tuple(int(extent) // 2 if own == label else extent for own, extent in zip(labels, shape, strict=True))
        for labels, shape in zip(rule.results, call.results, strict=True)
    )


FOLDS: dict[Fold, Callable[[list[np.ndarray]], np.ndarray]] = {
    Fold.SUM: lambda items: sum(items[1:], items[0]),
    Fold.MEAN: lambda items: np.mean(items, axis=0),
    Fold.MAX: lambda items: np.max(items, axis=0),
    Fold.MIN: lambda items: np.min(items, axis=0),
    Fold.PRODUCT: lambda items: np.prod(items, axis=0),
    Fold.AND: lambda items: np.all(items, axis=0),
    Fold.OR: lambda items: np.any(items, axis=0),
}


@each([sample for sample in WITH_OPERANDS if labelled(sample) and sample.name not in ("dropout", "moe_expert")])
def test_splits_that_the_label_rule_allows_give_the_same_result(sample: Sample) -> None:
    """(A dropout draws for where it runs; an expert body takes the whole route.)"""
    rule = labelled(sample)
    assert rule is not None
    operands = sample.operands(random_for(sample))
    whole = run(sample, operands)
    tried = 0
    for label in sorted({item for row in rule.operands for item in row if item} - rule.whole):
        if _extent(rule, sample.call, label) % 2:
            continue
        tried += 1
        made: list[list[np.ndarray]] = []
        for blocks in _blocks(rule.operands, operands, label, 2):
            results = _halved(rule, sample.call, label)
            call = replace(sample.call, operands=tuple(item.shape for item in blocks), results=results)
            made.append(run(sample, blocks, call))
        for position, labels in enumerate(rule.results):
            parts = [item[position] for item in made]
            if label in labels:
                joined = np.concatenate(parts, axis=labels.index(label))
            elif label in rule.folds:
                joined = FOLDS[rule.folds[label]](parts)
            else:
                joined = parts[0]
            np.testing.assert_allclose(joined, whole[position], rtol=1e-10, atol=1e-12, err_msg=label)
    assert tried or rule.whole


@each([sample for sample in WITH_OPERANDS if (rule := labelled(sample)) and rule.whole])
def test_whole_dims_are_not_splittable_for_nothing(sample: Sample) -> None:
    """A label is called whole only where blocks really give something else (or cannot be run at all)."""
    rule = labelled(sample)
    assert rule is not None
    operands = sample.operands(random_for(sample))
    whole = run(sample, operands)
    for label in sorted(rule.whole & {item for row in rule.operands for item in row if item}):
        kept = [(position, labels) for position, labels in enumerate(rule.results) if label in labels]
        if not kept or any(
            int(shape[row.index(label)]) % 2
            for row, shape in zip(rule.operands, sample.call.operands, strict=True)
            if label in row
        ):
            continue
        parts: list[np.ndarray] = []
        position, labels = kept[0]
        try:
            for blocks in _blocks(rule.operands, operands, label, 2):
                results = _halved(rule, sample.call, label)
                call = replace(sample.call, operands=tuple(item.shape for item in blocks), results=results)
                parts.append(run(sample, blocks, call)[position])
        except OpError:
            continue  # a block cannot even be run
        joined = np.concatenate(parts, axis=labels.index(label))
        differs = not np.allclose(joined, whole[position])
        assert differs, label


# -- pending classes ---------------------------------------------------------------------------------------------------


def _data_operands(sample: Sample) -> list[int]:
    return [k for k in range(len(sample.call.operands)) if k not in sample.operator.nonlinear_operands]


@each(of_class(OpClass.LINEAR, OpClass.ADDITIVE, OpClass.MULTILINEAR))
def test_linear_classes_add_up(sample: Sample) -> None:
    random = random_for(sample)
    first, second = sample.operands(random), sample.operands(random)
    data = _data_operands(sample)
    changed = [[position] for position in data] if sample.operator.op_class is OpClass.MULTILINEAR else [data]
    for positions in changed:
        other = [second[k] if k in positions else first[k] for k in range(len(first))]
        total = [first[k] + second[k] if k in positions else first[k] for k in range(len(first))]
        for one, two, both in zip(run(sample, first), run(sample, other), run(sample, total), strict=True):
            np.testing.assert_allclose(one + two, both, rtol=1e-9, atol=1e-9)


@each(
    [
        sample
        for sample in of_class(OpClass.NONLINEAR, OpClass.MONOTONE, OpClass.EXTREMUM, OpClass.ORDER)
        if set(range(len(sample.call.operands))) - set(sample.operator.nonlinear_operands)
    ]
)
def test_nonlinear_operators_do_not_add_up(sample: Sample) -> None:
    random = random_for(sample)
    first, second = sample.operands(random), sample.operands(random)
    data = _data_operands(sample)
    total = [first[k] + second[k] if k in data else first[k] for k in range(len(first))]
    other = [second[k] if k in data else first[k] for k in range(len(first))]
    with np.errstate(all="ignore"):
        pairs = zip(run(sample, first), run(sample, other), run(sample, total), strict=True)
        assert any(not np.allclose(one.astype(float) + two, both) for one, two, both in pairs)


@each(of_class(OpClass.MONOTONE, OpClass.ORDER, OpClass.EXTREMUM))
def test_order_classes_commute_with_the_extremum(sample: Sample) -> None:
    operator = sample.operator
    random = random_for(sample)
    first, second = sample.operands(random), sample.operands(random)
    least = sample.name in ("minimum", "min")
    pick = np.minimum if least else np.maximum
    most = [pick(one, two) for one, two in zip(first, second, strict=True)]
    fold = np.minimum if least or operator.signs(sample.call)[0] < 0 else np.maximum
    for one, two, both in zip(run(sample, first), run(sample, second), run(sample, most), strict=True):
        np.testing.assert_allclose(fold(one, two), both)


def _folds(sample: Sample) -> bool:
    rule = labelled(sample)
    return rule is not None and bool(rule.folds)


@each(
    [
        sample
        for sample in of_class(OpClass.LINEAR, OpClass.ADDITIVE, OpClass.MONOTONE, OpClass.ORDER)
        if not _folds(sample)
    ]
)
def test_signs_say_what_becomes_of_a_pending_maximum(sample: Sample) -> None:
    """f(max(x, y)) is max(f(x), f(y)) for +1 and min(f(x), f(y)) for -1, one operand at a time; 0 claims neither."""
    signs = sample.operator.signs(sample.call)
    assert len(signs) == len(sample.call.operands)
    random = random_for(sample)
    first, second = sample.operands(random), sample.operands(random)
    for position in _data_operands(sample):
        other = [second[k] if k == position else item for k, item in enumerate(first)]
        most = [np.maximum(item, second[k]) if k == position else item for k, item in enumerate(first)]
        for one, two, both in zip(run(sample, first), run(sample, other), run(sample, most), strict=True):
            if signs[position]:
                fold = np.maximum if signs[position] > 0 else np.minimum
                np.testing.assert_allclose(fold(one, two), both)
            else:
                assert not np.allclose(np.maximum(one, two), both)


# -- scales and padding ------------------------------------------------------------------------------------------------


@each([s for s in WITH_OPERANDS if isinstance(s.operator.scale(s.call), (Degrees, EqualScales, ScaleFree))])
def test_scale_laws(sample: Sample) -> None:
    random = random_for(sample)
    operands = sample.operands(random)
    base = run(sample, operands)
    law = sample.operator.scale(sample.call)
    match law:
        case Degrees(degrees):
            factors = [1.7 if degree else 1.0 for degree in degrees]
            power = float(np.prod([factor ** float(degree) for factor, degree in zip(factors, degrees, strict=True)]))
        case EqualScales(positions):
            factors = [1.7 if k in positions else 1.0 for k in range(len(operands))]
            power = 1.7
        case ScaleFree():
            factors, power = [1.7 if k in _data_operands(sample) else 1.0 for k in range(len(operands))], 1.0
        case _:
            raise AssertionError(law)
    scaled = [factor * item for factor, item in zip(factors, operands, strict=True)]
    for before, after in zip(base, run(sample, scaled), strict=True):
        np.testing.assert_allclose(after, power * before.astype(float), rtol=1e-9, atol=1e-9)


@each([sample for sample in WITH_OPERANDS if sample.operator.keeps_zero])
def test_zero_stays_zero_where_claimed(sample: Sample) -> None:
    operands = sample.operands(random_for(sample))
    zeros = [item * 0 if k in _data_operands(sample) else item for k, item in enumerate(operands)]
    for result in run(sample, zeros):
        assert not np.any(result)


# -- exact arithmetic ----------------------------------------------------------------------------------------------------


@each([sample for sample in EVALUATED if sample.operator.polynomial])
@pytest.mark.parametrize("prime", [1_048_573, 97])
def test_polynomial_operators_are_exact_modulo_a_prime(sample: Sample, prime: int) -> None:
    operator = sample.operator
    random = random_for(sample)
    kinds = sample.kinds or ("real",) * len(sample.call.operands)
    operands = [
        random.integers(0, 4 if kind == "index" else prime, size=shape)
        for kind, shape in zip(kinds, sample.call.operands, strict=True)
    ]
    assert operator.run is not None
    place = Place(sizes={"tp": 2})
    found = operator.run(Field(np, prime), operands, sample.call, place)
    exact = [np.vectorize(int, otypes=[object])(item) for item in operands]
    constants = Field(np, prime)

    class Unbounded:
        """Python's integers: nothing is reduced before the end."""

        xp = np
        exact = False

        def number(self, value: Any) -> Any:
            return constants.number(value)

        def settle(self, array: Any) -> Any:
            return array

    if sample.name in ("matmul", "einsum", "moe_expert"):
        exact = operands  # the sums stay below 2**63 here: numpy's own integers do
    wanted = operator.run(Unbounded(), exact, sample.call, place)
    for mine, theirs in zip(found, wanted, strict=True):
        assert np.array_equal(np.asarray(mine), np.asarray(theirs % prime).astype(np.int64))


# -- costs ---------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("sample", SAMPLES, ids=lambda item: item.name)
def test_flops_and_bytes_are_counted(sample: Sample) -> None:
    operator = sample.operator
    shapes = (*sample.call.operands, *sample.call.results)
    assert operator.flops(sample.call) >= 0
    assert operator.traffic_bytes(sample.call, [4] * len(shapes)) == 4 * sum(elements(shape) for shape in shapes)


def test_flops_of_products() -> None:
    by = {sample.name: sample for sample in SAMPLES}
    assert by["einsum"].operator.flops(by["einsum"].call) == 2 * 4 * 6 * 3
    assert by["matmul"].operator.flops(by["matmul"].call) == 2 * 2 * 4 * 6 * 3
    assert by["attention"].operator.flops(by["attention"].call) >= 2 * 2 * 4 * 8 * (6 + 3)


def test_samples_differ_from_each_other() -> None:
    names = [sample.name for sample in SAMPLES]
    assert all(count == 1 for count in map(names.count, names))
    assert list(itertools.groupby(names))
