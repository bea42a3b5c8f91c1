"""Programs that are too large to run as they stand: smaller extents, fewer ranks, symbols, or a refusal in words."""

from __future__ import annotations

import pytest

from dtir.schema import Severity
from dtir.verify.value import judge_values
from dtir.verify.value.build import NotConcrete
from dtir.verify.value.case import Case
from dtir.verify.value.locally import TooLarge
from dtir.verify.value.sizes import MOST_ELEMENTS, choose_case
from tests.verify.value.test_judge import demo, document

MLP = """
mesh: {{axes: [[dp, {dp}], [tp, {tp}]]}}
values:
- {{id: x, shape: [{batch}, 4096], dims: [[dp], []]}}
- {{id: w1, shape: [4096, 16384], dims: [[], [tp]]}}
- {{id: h, shape: [{batch}, 16384], dims: [[dp], [tp]]}}
- {{id: a, shape: [{batch}, 16384], dims: [[dp], [tp]]}}
- {{id: w2, shape: [16384, 4096], dims: [[tp], []]}}
- {{id: p, shape: [{batch}, 4096], dims: [[dp], []], partial: {{tp: sum}}}}
- {{id: y, shape: [{batch}, 4096], dims: [[dp], []]}}
tasks:
- {{id: t1, kind: local, op: einsum, spec: 'bi,io->bo', in: [x, w1], out: [h]}}
- {{id: t2, kind: local, op: gelu, in: [h], out: [a]}}
- {{id: t3, kind: local, op: einsum, spec: 'bi,io->bo', in: [a, w2], out: [p]}}
- {{id: t4, kind: collective, coll: all_reduce, axes: [{axes}], reduction: sum, in: [p], out: [y]}}
inputs: [x, w1, w2]
outputs: [y]
{more}
"""


def mlp(*, dp: int = 2, tp: int = 4, batch: int | str = 8192, axes: str = "tp", more: str = "") -> str:
    return MLP.format(dp=dp, tp=tp, batch=batch, axes=axes, more=more)


def shapes(case: Case) -> dict[str, tuple[int, ...]]:
    return {value.name: value.shape for value in case.values.values()}


def test_extents_shrink_together_and_stay_apart_from_others() -> None:
    case = choose_case(document(mlp()))
    found = shapes(case)
    batch, width = found["x"]
    hidden = found["w1"][1]
    assert found == {"x": (batch, width), "w1": (width, hidden), "h": (batch, hidden), "a": (batch, hidden),
                     "w2": (hidden, width), "p": (batch, width), "y": (batch, width)}  # fmt: skip
    assert len({batch, width, hidden}) == 3
    assert (batch % 2, hidden % 4) == (0, 0)
    assert min(batch // 2, hidden // 4) >= 2
    assert case.elements() < MOST_ELEMENTS
    assert case.reduced == "extents reduced"


def test_a_small_program_runs_as_it_is() -> None:
    text = demo(
        "[[tp, 2]]",
        dict.fromkeys("xy", "shape: [6], dims: [[tp]]"),
        {"t": "local, op: relu, in: [x], out: [y]"},
        "x",
        "y",
    )
    case = choose_case(document(text))
    assert (shapes(case), case.reduced) == ({"x": (6,), "y": (6,)}, "")


@pytest.mark.parametrize(("axes", "first"), [("tp", None), ("dp", "y"), ("dp, tp", "y")])
@pytest.mark.parametrize("size", [4, 1024, 100_000])
def test_verdicts_do_not_depend_on_the_size_of_the_mesh(axes: str, first: str | None, size: int) -> None:
    verdict = judge_values(document(mlp(dp=size, tp=size, batch=8 * size, axes=axes)))
    assert verdict.first_bad_value == first
    reduced = [item for item in verdict.diagnostics if item.code == "value.reduced"]
    assert [item.severity for item in reduced] == [Severity.INFO]
    if size > 4:
        assert f"dp {size} as 2, tp {size} as 3" in reduced[0].message


def test_symbols_get_the_smallest_values_that_keep_splits_and_assumptions() -> None:
    assert shapes(choose_case(document(mlp(batch="B"))))["x"][0] == 4
    assert shapes(choose_case(document(mlp(batch="B", more="assume: [B % 6 == 0]"))))["x"][0] % 6 == 0
    text = demo("[[dp, 4]]", dict.fromkeys("xy", "shape: [B, 2 * N], dims: [[dp], []]"),
                {"t": "local, op: relu, in: [x], out: [y]"}, "x", "y", "assume: ['B % 3 == 0', 'N > 5', 'B != 24']\n")  # fmt: skip
    batch, double = shapes(choose_case(document(text)))["x"]
    assert (batch % 12, batch != 24, double > 10, double // 2 != batch) == (0, True, True, True)
    with pytest.raises(NotConcrete, match="symbol B"):
        choose_case(document(text.replace("B % 3 == 0", "B < 1")))


def test_reshapes_and_joins_shrink_with_their_parts() -> None:
    values = {
        "x": "shape: [64, 1024, 4096], dims: [[], [], [tp]]",
        "q": "shape: [64, 1024, 32, 128], dims: [[], [], [tp], []]",
        "k": "shape: [64, 32, 1024, 128], dims: [[], [tp], [], []]",
        "c": "shape: [64, 32, 2048, 128], dims: [[], [tp], [], []]",
    }
    tasks = {
        "t1": "local, op: reshape, in: [x], out: [q]",
        "t2": "local, op: transpose, perm: [0, 2, 1, 3], in: [q], out: [k]",
        "t3": "local, op: concat, dim: 2, in: [k, k], out: [c]",
    }
    program = document(demo("[[tp, 4]]", values, tasks, "x", "c"))
    found = shapes(choose_case(program))
    assert found["x"][2] == found["q"][2] * found["q"][3]
    assert found["c"][2] == 2 * found["k"][2]
    assert judge_values(program).ok


def test_what_is_written_out_keeps_its_extent() -> None:
    wide = "shape: [4000000, 8], dims: [[a], []]"
    values = {"x": f"{wide}, sizes: {{0: [3000000, 1000000]}}", "y": f"{wide}, sizes: {{0: [3000000, 1000000]}}"}
    program = document(demo("[[a, 2]]", values, {"t": "local, op: relu, in: [x], out: [y]"}, "x", "y"))
    with pytest.raises(TooLarge, match="elements, more than"):
        choose_case(program)
    (found,) = judge_values(program).diagnostics
    assert (found.code, found.severity) == ("value.skipped", Severity.INFO)


def test_a_mesh_whose_coordinates_are_named_is_not_reduced() -> None:
    values = {"x": "shape: [4], dims: [[]], at: {pp: 0}", "y": "shape: [4], dims: [[]], at: {pp: 1}"}
    text = demo("[[pp, 2], [dp, 1000000]]", values, {"t": "p2p, pairs: [[0, 1000000]], in: [x], out: [y]"}, "x", "y")
    (found,) = judge_values(document(text)).diagnostics
    assert found.code == "value.skipped"
    assert "the mesh cannot be reduced" in found.message


def test_a_constant_that_may_stand_for_an_axis_keeps_the_mesh() -> None:
    values = dict.fromkeys("xy", "shape: [4], dims: [[]]")
    task = {"t": "local, op: scale, c: 1/100000, intro: true, in: [x], out: [y]"}
    (found,) = judge_values(document(demo("[[dp, 100000]]", values, task, "x", "y"))).diagnostics
    assert found.code == "value.skipped"


def test_an_evaluation_that_would_fill_the_memory_is_not_started() -> None:
    long = "shape: [100000], dims: [[]]"
    task = {"t": "local, op: einsum, spec: 'i,j->', in: [x, w], out: [y]"}
    text = demo("[[dp, 2]]", {"x": long, "w": long, "y": "shape: [], dims: []"}, task, "x, w", "y")
    (found,) = judge_values(document(text)).diagnostics
    assert found.code == "value.skipped"
    assert "10000000000 elements" in found.message
