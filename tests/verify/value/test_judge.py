"""Verdicts of the value-level judge: code, place, words and repair, one case for each fault, with a right neighbour."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import yaml

from dtir.importers.yaml import read_programs
from dtir.ir import DistributedTaskIR
from dtir.ops import OpDef, OpError, register_op, require_op, unregister_op
from dtir.schema import Severity
from dtir.verify.value import ValueVerdict, judge_values
from tests.helpers.programs import mesh_of, program


def document(text: str) -> DistributedTaskIR:
    (read,) = read_programs(f"schema: dtir-program/1\nname: demo\n{text}")
    assert [item.render() for item in read.diagnostics] == []
    assert read.program is not None
    assert read.program.diagnostics().ok, [item.render() for item in read.program.diagnostics()]
    return read.program


def judge(text: str, **options: Any) -> ValueVerdict:
    return judge_values(document(text), **options)


def demo(mesh: str, values: dict[str, str], tasks: dict[str, str], inputs: str, outputs: str, more: str = "") -> str:
    """A program from one line for each value and task, without their ids and braces."""
    lines = [f"mesh: {{axes: {mesh}}}", "values:"]
    lines += [f"- {{id: {name}, {rest}}}" for name, rest in values.items()]
    lines += ["tasks:", *(f"- {{id: {name}, kind: {rest}}}" for name, rest in tasks.items())]
    return "\n".join([*lines, f"inputs: [{inputs}]", f"outputs: [{outputs}]", more])


def codes(verdict: ValueVerdict) -> list[str]:
    return [item.code for item in verdict.diagnostics]


GRADIENT = """
mesh: {axes: [[dp, 2], [tp, 3]]}
values:
- {id: x, shape: [4, 5], dims: [[dp], []]}
- {id: gy, shape: [4, 6], dims: [[dp], []]}
- {id: gp, shape: [5, 6], dims: [[], []], partial: {dp: sum}}
- {id: g, shape: [5, 6], dims: [[], []]}
- {id: h, shape: [5, 6], dims: [[], []]}
tasks:
- {id: t1, kind: local, op: einsum, spec: 'bi,bo->io', in: [x, gy], out: [gp]}
- {id: t2, kind: collective, coll: all_reduce, axes: [dp], reduction: sum, in: [gp], out: [g]}
- {id: t3, kind: local, op: tanh, in: [g], out: [h]}
inputs: [x, gy]
outputs: [h]
"""


def test_a_right_program_is_clean_and_every_value_was_compared() -> None:
    verdict = judge(GRADIENT)
    assert (verdict.ok, len(verdict.diagnostics), verdict.first_bad_value) == (True, 0, None)
    assert verdict.judged == ("x", "gy", "gp", "g", "h")
    assert not verdict.unjudged


@pytest.mark.parametrize(
    ("old", "new", "found", "first", "words", "repair"),
    [
        # A share that nobody sums: copies part, and their sum is the specification.
        ("dims: [[], []], partial: {dp: sum}}", "dims: [[], []]}", ["value.replica_divergence", "value.mismatch"], "gp",
         "shares that nobody has summed over dp", "all-reduce(sum, [dp]) after t1"),
        # A factor names its axes, when sizes are coprime.
        ("axes: [dp], reduction: sum", "axes: [dp, tp], reduction: sum", ["value.mismatch"], "g",
         "3 times the specification (3 = |tp|)", "all-reduce(sum, [dp]) in place of t2"),
        ("axes: [dp], reduction: sum", "axes: [dp], reduction: avg", ["value.mismatch"], "g",
         "1/2 times the specification (1/2 = 1/|dp|)", "all-reduce(sum, [dp]) in place of t2"),
        ("axes: [dp], reduction: sum", "axes: [dp], reduction: max", ["value.mismatch"], "g", "elements differ, most at",
         "all-reduce(sum, [dp]) in place of t2"),
        ("axes: [dp], reduction: sum", "axes: [tp], reduction: sum", ["value.replica_divergence", "value.mismatch"], "g",
         "copies along dp, tp", "all-reduce(sum, [dp]) in place of t2"),
        ("coll: all_reduce, axes: [dp], reduction: sum", "coll: all_gather, axes: [dp], dim: 0", ["value.shape"], "g",
         "the local array is [10, 6], the layout wants [5, 6]", "all-reduce(sum, [dp]) in place of t2"),
        ("op: tanh, in: [g]", "op: tanh, in: [gp]", ["value.replica_divergence", "value.mismatch"], "h",
         "should hold equal copies", "all-reduce(sum, [dp]) of gp before t3"),
        ("coll: all_reduce, axes: [dp], reduction: sum, in: [gp], out: [g]}",
         "coll: all_reduce, groups: [[0, 3], [1, 4]], reduction: sum, in: [gp], out: [g]}", ["value.undefined"], "g",
         "ranks 2, 5: nothing arrives here", "all-reduce(sum, [dp]) in place of t2"),
    ],
)  # fmt: skip
def test_a_fault_its_place_its_look_and_its_repair(
    old: str, new: str, found: list[str], first: str, words: str, repair: str
) -> None:
    verdict = judge(GRADIENT.replace(old, new))
    assert codes(verdict) == found
    assert verdict.first_bad_value == first
    assert any(words in item.message for item in verdict.diagnostics)
    assert repair in [item.text for item in verdict.repairs]
    assert verdict.diagnostics.errors[0].hint == f"{verdict.repairs[0].text} makes it right"


def test_a_finding_names_value_task_and_path() -> None:
    text = GRADIENT.replace("reduction: sum", "reduction: avg")
    shown = document(text)
    (found,) = judge_values(shown).diagnostics
    assert found.path == ("values", "3")
    assert found.subject == (str(shown.values[3].id), str(shown.tasks[1].id))
    assert (found.related[0].path, found.related[0].label) == (("tasks", "1"), "made by t2")
    assert found.message.startswith("value g of t2 (rank 0 first): ")


def test_nothing_is_concluded_from_a_bad_value_but_other_chains_are_judged() -> None:
    text = GRADIENT.replace("reduction: sum", "reduction: avg").replace("inputs: [x, gy]", "inputs: [x, gy, b]")
    text = text.replace("tasks:", "- {id: b, shape: [4], dims: [[]]}\n- {id: c, shape: [4], dims: [[]]}\ntasks:")
    text = text.replace("tasks:", "tasks:\n- {id: u, kind: local, op: scale, c: 2, intro: true, in: [b], out: [c]}")
    verdict = judge(text)
    assert [(item.name, item.task) for item in verdict.bad] == [("c", "u"), ("g", "t2")]
    assert "h" not in verdict.judged


def test_the_verdict_is_a_function_of_program_and_seed() -> None:
    text = GRADIENT.replace("reduction: sum", "reduction: max")
    assert judge(text, seed=7) == judge(text, seed=7)
    assert judge(text, seed=7).first_bad_value == judge(text, seed=8).first_bad_value
    assert judge(text, seed=7) != judge(text, seed=8)


# -- scales -----------------------------------------------------------------------------------------------------------------


def scaled(declared: str, factor: str) -> ValueVerdict:
    values = {"x": "shape: [4], dims: [[]]", "y": f"shape: [4], dims: [[]]{declared}"}
    tasks = {"t": f"local, op: scale, c: {factor}, intro: true, in: [x], out: [y]"}
    return judge(demo("[[dp, 2]]", values, tasks, "x", "y"))


@pytest.mark.parametrize(
    ("declared", "factor", "right"),
    [
        ("", "1", True),
        ("", "2", False),
        (", scale: 2", "2", True),
        (", scale: 1/3", "1/3", True),
        (", scale: 3", "2", False),
    ],
)
def test_a_value_is_its_declared_scale_times_the_specification(declared: str, factor: str, right: bool) -> None:
    assert scaled(declared, factor).ok is right


MEAN = """
mesh: {{axes: [[dp, 3]]}}
values:
- {{id: x, shape: [{extent}, 2], dims: [[dp], []]{sizes}}}
- {{id: m, shape: [], dims: [], partial: {{dp: sum}}}}
- {{id: y, shape: [], dims: []}}
tasks:
- {{id: t1, kind: local, op: mean, in: [x], out: [m]}}
- {{id: t2, kind: collective, coll: all_reduce, axes: [dp], reduction: {reduction}, in: [m], out: [y]}}
inputs: [x]
outputs: [y]
"""


def test_local_means_of_equal_parts_may_wait_for_their_average() -> None:
    assert judge(MEAN.format(extent=6, sizes="", reduction="avg")).ok
    assert judge(MEAN.format(extent=6, sizes="", reduction="sum")).first_bad_value == "y"
    assert judge(MEAN.format(extent=6, sizes=", sizes: {0: [3, 2, 1]}", reduction="avg")).first_bad_value == "m"


# -- copies, roots, random ------------------------------------------------------------------------------------------------


COPY = """
mesh: {{axes: [[dp, 3]]}}
values:
- {{id: w, shape: [4], dims: [[]], valid_on: [1]}}
- {{id: v, shape: [4], dims: [[]]}}
- {{id: y, shape: [4], dims: [[]]}}
tasks:
- {{id: send, kind: collective, coll: broadcast, axes: [dp], root: {root}, in: [w], out: [v]}}
- {{id: use, kind: local, op: relu, in: [{used}], out: [y]}}
inputs: [w]
outputs: [y]
"""


@pytest.mark.parametrize(("root", "used", "first"), [(1, "v", None), (0, "v", "v"), (1, "w", "y")])
def test_copies_that_are_not_current_hold_something_else(root: int, used: str, first: str | None) -> None:
    assert judge(COPY.format(root=root, used=used)).first_bad_value == first


@pytest.mark.parametrize(("key", "found"), [("[dp]", []), ("[]", []), ("[dp, tp]", ["value.replica_divergence"])])
def test_what_is_drawn_must_agree_between_copies_and_nothing_else(key: str, found: list[str]) -> None:
    """(The same numbers on every shard are a matter of statistics, not of copies.)"""
    values = {"m": "shape: [4], dims: [[dp]]", "y": "shape: [4], dims: [[dp]]"}
    tasks = {"t": f"local, op: rand, key_axes: {key}, in: [], out: [m]", "u": "local, op: relu, in: [m], out: [y]"}
    assert codes(judge(demo("[[dp, 2], [tp, 2]]", values, tasks, "", "y"))) == found


# -- uneven shards, padding, empty shards ------------------------------------------------------------------------------------


GATHER = """
mesh: {{axes: [[a, 2]]}}
values:
- {{id: x, shape: [5], dims: [[a]], sizes: {{0: [{sizes}]}}}}
- {{id: y, shape: [5], dims: [[]]}}
tasks:
- {{id: t, kind: collective, coll: all_gather, axes: [a], dim: 0{how}, in: [x], out: [y]}}
inputs: [x]
outputs: [y]
"""


@pytest.mark.parametrize(
    ("sizes", "how", "found"),
    [
        ("3, 2", ", vector: true", []),
        ("3, 2", ", trim: true", []),  # the padding comes last: trimming takes it off
        ("2, 3", ", trim: true", ["value.mismatch"]),  # here it stands in the middle
        ("3, 2", "", ["value.shape"]),
        ("3, 3", ", trim: true", []),  # padded shards
        ("3, 3", "", ["value.shape"]),
        ("5, 0", ", vector: true", []),
        ("1, 2, 2", ", vector: true", ["value.shape"]),
    ],
)
def test_gathers_of_uneven_and_padded_shards(sizes: str, how: str, found: list[str]) -> None:
    assert codes(judge(GATHER.format(sizes=sizes, how=how)))[:1] == found


@pytest.mark.parametrize(("op", "before", "first"), [("sum", "neg", None), ("min", "abs", "m"), ("sum", "exp", "m")])
def test_what_zero_padding_does_to_a_reduction(op: str, before: str, first: str | None) -> None:
    padded = "shape: [5], dims: [[a]], sizes: {0: [3, 3]}"
    values = {"x": padded, "n": padded, "m": f"shape: [], dims: [], partial: {{a: {op}}}", "y": "shape: [], dims: []"}
    tasks = {
        "t0": f"local, op: {before}, in: [x], out: [n]",
        "t1": f"local, op: {op}, in: [n], out: [m]",
        "t2": f"collective, coll: all_reduce, axes: [a], reduction: {op}, in: [m], out: [y]",
    }
    assert judge(demo("[[a, 2]]", values, tasks, "x", "y")).first_bad_value == first


def test_a_block_of_one_element_is_no_broadcast() -> None:
    values = {"x": "shape: [4], dims: [[a]]", "n": "shape: [4], dims: [[a, b]]", "y": "shape: [4], dims: [[a]]"}
    verdict = judge(demo("[[a, 2], [b, 2]]", values, {"t": "local, op: add, in: [x, n], out: [y]"}, "x, n", "y"))
    assert codes(verdict) == ["value.shape"]
    assert "blocks of one dim have 2 and 1 elements" in verdict.diagnostics.errors[0].message


# -- reshards, halos, permutes -------------------------------------------------------------------------------------------------


RESHARD = """
mesh: {{axes: [[a, 2]]}}
values: [{{id: x, shape: [6], dims: [[a]]}}, {{id: y, shape: [6], dims: [{dims}]}}]
tasks: [{{id: t, kind: reshard, in: [x], out: [y]{regions}}}]
inputs: [x]
outputs: [y]
"""


@pytest.mark.parametrize(
    ("dims", "regions", "found"),
    [
        ("[]", "", []),
        ("[a]", ", regions: [{box: [[0, 3]]}, {box: [[3, 6]]}]", []),
        ("[a]", ", regions: [{box: [[0, 3]]}]", ["value.undefined"]),
        ("[]", ", regions: [{box: [[0, 6]]}, {box: [[2, 4]], from: [[0, 2]]}]", ["value.mismatch"]),
        ("[]", ", regions: [{box: [[0, 6]], from: [[1, 7]]}]", ["value.undefined"]),
    ],
)
def test_reshards_fill_every_element_once(dims: str, regions: str, found: list[str]) -> None:
    assert codes(judge(RESHARD.format(dims=dims, regions=regions))) == found


HALO = """
mesh: {{axes: [[px, 2], [py, 2]]}}
values:
- {{id: u, shape: [4, 6], dims: [[px], [py]]}}
- {{id: uh, shape: [4, 6], dims: [[px], [py]]{halo}}}
- {{id: v, shape: [4, 6], dims: [[px], [py]]}}
tasks:
- {{id: t1, kind: {exchange}, in: [u], out: [uh]}}
- {{id: t2, kind: local, op: stencil, radius: {radius}, points: {points}, in: [uh], out: [v]}}
inputs: [u]
outputs: [v]
"""
WIDE = ", halo: {0: 1, 1: 1}"


@pytest.mark.parametrize(
    ("halo", "exchange", "radius", "points", "first"),
    [
        (WIDE, "reshard, op: halo", 1, "box", None),
        (WIDE + ", corners: false", "reshard, op: halo", 1, "star", None),
        (WIDE + ", corners: false", "reshard, op: halo", 1, "box", "v"),
        (WIDE, "reshard, op: halo", 2, "star", "v"),
        (", halo: {0: 2, 1: 2}", "reshard, op: halo", 2, "star", None),
        (", halo: {0: [1, 0], 1: 1}", "reshard, op: halo", 1, "star", "v"),
        ("", "reshard, op: halo", 1, "star", "v"),
        (WIDE, "local, op: identity", 1, "star", "v"),  # declared, and never filled
    ],
)
def test_ghosts(halo: str, exchange: str, radius: int, points: str, first: str | None) -> None:
    assert judge(HALO.format(halo=halo, exchange=exchange, radius=radius, points=points)).first_bad_value == first


def test_a_ghost_exchange_moves_no_blocks() -> None:
    text = HALO.format(halo=WIDE, exchange="reshard, op: halo", radius=1, points="star")
    assert codes(
        judge(text.replace("{id: u, shape: [4, 6], dims: [[px], [py]]}", "{id: u, shape: [4, 6], dims: [[], [py]]}"))
    ) == ["value.shape"]


STAGES = {"x": "shape: [3], dims: [[]], at: {pp: 0}", "y": "shape: [3], dims: [[]], at: {pp: 1}"}


@pytest.mark.parametrize(
    ("task", "y", "found"),
    [
        ("p2p, pairs: [[0, 1]], in: [x], out: [y]", STAGES["y"], []),
        (
            "p2p, pairs: [[0, 0]], ranks: [0, 1], participants: [0, 1], in: [x], out: [y]",
            STAGES["y"],
            ["value.undefined"],
        ),
        # The sender keeps its copy of what is replicated along the way, and of nothing else.
        ("p2p, src: 0, dst: 1, in: [x], out: [y]", "shape: [3], dims: [[]]", []),
        ("p2p, src: 0, dst: 1, in: [x], out: [y]", "shape: [3], dims: [[]], varying: [pp]", ["value.undefined"]),
        # A stage that reads what it does not own.
        ("local, op: relu, in: [x], out: [y]", STAGES["y"], ["value.undefined"]),
    ],
)
def test_hops_between_stages(task: str, y: str, found: list[str]) -> None:
    assert codes(judge(demo("[[pp, 2]]", {**STAGES, "y": y}, {"t": task}, "x", "y"))) == found


# -- the undivided program ------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("first", "second", "bad"), [("tanh", "exp", []), ("exp", "tanh", ["a", "b"])])
def test_an_explicit_undivided_program_decides(first: str, second: str, bad: list[str]) -> None:
    """Two outputs that have changed places break no layout rule."""
    copy = "shape: [4], dims: [[]]"
    tasks = {"t1": "local, op: tanh, in: [x], out: [a]", "t2": "local, op: exp, in: [x], out: [b]"}
    oracle = (
        f"oracle:\n- {{id: o1, kind: local, op: {first}, in: [x], out: [a]}}\n"
        f"- {{id: o2, kind: local, op: {second}, in: [x], out: [b]}}\n"
    )
    verdict = judge(demo("[[dp, 2]]", dict.fromkeys("xab", copy), tasks, "x", "a, b", oracle))
    assert [item.name for item in verdict.bad] == bad


def test_one_rank_with_a_constant_of_its_own() -> None:
    values = dict.fromkeys("xy", "shape: [4], dims: [[]]")
    task = "local, op: scale, c: 1/2, c_by_rank: {1: 1/4}, in: [x], out: [y]"
    verdict = judge(demo("[[tp, 3]]", values, {"t": task}, "x", "y"))
    assert codes(verdict) == ["value.replica_divergence", "value.mismatch"]
    assert "on rank 1" in verdict.diagnostics.errors[1].message


# -- what is not known -------------------------------------------------------------------------------------------------------------


UNKNOWN = demo(
    "[[tp, 2]]",
    {**dict.fromkeys("xyu", "shape: [4], dims: [[tp]]"), "z": "shape: [4], dims: [[]]"},
    {
        "t1": "local, op: my_kernel, in: [x], out: [y]",
        "t2": "collective, coll: all_reduce, axes: [tp], reduction: sum, in: [y], out: [z]",
        "t3": "local, op: my_kernel, in: [x], out: [u]",
    },
    "x",
    "z",
)


def test_an_unknown_operator_is_said_once_and_nothing_is_built_on_it() -> None:
    verdict = judge(UNKNOWN)
    assert verdict.ok
    assert [(item.code, item.severity) for item in verdict.diagnostics] == [("value.unknown", Severity.INFO)]
    assert "y (2 values)" in verdict.diagnostics.diagnostics[0].message
    assert set(verdict.unjudged or {}) == {"y", "z", "u"}


def test_a_registered_operator_is_run() -> None:
    relu = require_op("relu")
    own = OpDef("my_kernel", "mine", (1, 1), relu.op_class, relu.labels, relu.scale, relu.run)
    register_op(own, dialect="core")
    try:
        assert judge(UNKNOWN).first_bad_value == "z"
    finally:
        unregister_op(document(UNKNOWN).tasks[0].operation)


def test_parameters_that_do_not_fit_are_no_verdict() -> None:
    verdict = judge(UNKNOWN.replace("op: my_kernel", "op: clip, low: much"))
    assert [item.code for item in verdict.diagnostics] == ["value.unknown"]
    assert "low 'much' is not a rational number" in verdict.diagnostics.diagnostics[0].message
    with pytest.raises(OpError):
        require_op("clip").check_arity(2)


def test_a_structurally_broken_program_is_not_run() -> None:
    (found,) = judge_values(program(name="")).diagnostics
    assert (found.code, found.severity) == ("value.skipped", Severity.INFO)


def test_per_rank_data_has_no_one_meaning() -> None:
    values = dict.fromkeys("xy", "shape: [4], dims: [[]], varying: [tp]")
    verdict = judge(demo("[[tp, 2]]", values, {"t": "local, op: relu, in: [x], out: [y]"}, "x", "y"))
    assert (verdict.ok, verdict.judged) == (True, ())
    assert verdict.unjudged == dict.fromkeys(("x", "y"), "it is per-rank data, without one meaning")


@pytest.mark.parametrize(("operand", "first"), [("f", None), ("x", "y")])
def test_elements_that_are_no_number_do_not_count(operand: str, first: str | None) -> None:
    """The square root of a negative number is no fault; a wrong root of a positive one is."""
    whole = "shape: [8], dims: [[]]"
    tasks = {
        "t1": "collective, coll: all_reduce, axes: [tp], reduction: sum, in: [x], out: [f]",
        "t2": f"local, op: sqrt, in: [{operand}], out: [y]",
    }
    values = {"x": f"{whole}, partial: {{tp: sum}}", "f": whole, "y": whole}
    assert judge(demo("[[tp, 2]]", values, tasks, "x", "y")).first_bad_value == first


def test_a_program_by_hand() -> None:
    """Built without the authoring form: the reduction over tp of a replicated value counts it four times."""
    made = program(mesh_of(dp=2, tp=4))
    verdict = judge_values(made)
    assert set(verdict.unjudged or {}) == {"h", "y"}  # its operator is none of ours
    assert verdict.ok


# -- the corpus ----------------------------------------------------------------------------------------------------------------------


def test_the_corpus_of_faulty_programs(shared_data: Path) -> None:
    text = (shared_data / "bug_corpus.yaml").read_text(encoding="utf-8")
    entries = {entry["id"]: entry for entry in yaml.safe_load(text)["entries"]}
    repaired = 0
    for read in read_programs(text):
        assert read.program is not None
        entry, verdict = entries[read.name], judge_values(read.program)
        assert sorted({item.code for item in verdict.diagnostics}) == sorted(entry["expected_dynamic"]), read.name
        if "first_bad_value" in entry:
            assert verdict.first_bad_value == entry["first_bad_value"], read.name
        repaired += bool(verdict.repairs)
    print(
        f"\nrepairs for {repaired} of {sum(bool(entry['expected_dynamic']) for entry in entries.values())} visible faults"
    )
    assert repaired >= 40


def test_the_corrected_variants_are_clean(shared_data: Path) -> None:
    text = (shared_data / "bug_corpus.yaml").read_text(encoding="utf-8")
    for read in read_programs(text, fixed=True):
        assert read.program is not None
        assert [item.render() for item in judge_values(read.program).diagnostics] == [], read.name
