"""Two programs compared: what is no difference, and how each kind of difference is told."""

from __future__ import annotations

import gzip
import re
from pathlib import Path

import pytest

from dtir.diff import Diff, Match, diff_programs
from dtir.importers import load_bytes
from dtir.ir.program import DistributedTaskIR

ASSETS = Path(__file__).parents[2] / "assets" / "programs"

PROGRAM = """\
schema: dtir-program/1
name: mlp
mesh: {axes: [[dp, 2], [tp, 4]]}
values:
- {id: x, shape: [16, 64], dims: [[dp], []], role: input}
- {id: w1, shape: [64, 128], dims: [[], [tp]], role: parameter}
- {id: w2, shape: [128, 64], dims: [[tp], []], role: parameter}
- {id: h, shape: [16, 128], dims: [[dp], [tp]]}
- {id: a, shape: [16, 128], dims: [[dp], [tp]]}
- {id: part, shape: [16, 64], dims: [[dp], []], partial: {tp: sum}}
- {id: y, shape: [16, 64], dims: [[dp], []]}
- {id: wide, shape: [16, 128], dims: [[dp], []]}
- {id: less, shape: [16, 64], dims: [[dp], []]}
tasks:
- {id: up, kind: local, op: einsum, in: [x, w1], out: [h], spec: "bi,io->bo"}
- {id: act, kind: local, op: relu, in: [h], out: [a]}
- {id: down, kind: local, op: einsum, in: [a, w2], out: [part], spec: "bi,io->bo"}
- {id: sum_tp, kind: collective, coll: all_reduce, in: [part], out: [y], axes: [tp], reduction: sum}
- {id: gather, kind: collective, coll: all_gather, in: [a], out: [wide], axes: [tp], dim: 1}
- {id: minus, kind: local, op: sub, in: [y, x], out: [less]}
inputs: [x, w1, w2]
outputs: [less, wide]
"""


def program(text: str, name: str = "p.dtir.yaml") -> DistributedTaskIR:
    loaded = load_bytes(text.encode(), name=name)
    assert loaded.program is not None, [item.render() for item in loaded.diagnostics]
    return loaded.program


def changed(*edits: tuple[str, str]) -> Diff:
    """The difference that edits of the program's text make."""
    text = PROGRAM
    for old, new in edits:
        assert old in text
        text = text.replace(old, new)
    return diff_programs(program(PROGRAM), program(text))


def told(diff: Diff) -> list[tuple[str, str, str, str, str]]:
    return [(item.what, item.name, item.field, item.before, item.after) for item in diff.changed]


# -- no difference ------------------------------------------------------------------------------------------------------


def test_a_program_equals_itself_read_twice() -> None:
    found = diff_programs(program(PROGRAM), program(PROGRAM))
    assert found.equal
    assert found.bytes_delta == 0
    assert found.matched == {Match.EXACT: 6}


def test_names_and_the_order_of_independent_tasks_do_not_count() -> None:
    lines = PROGRAM.splitlines()
    first = next(at for at, line in enumerate(lines) if "id: sum_tp" in line)
    lines[first], lines[first + 1] = lines[first + 1], lines[first]
    text = re.sub(r"\b(up|act|down|sum_tp|gather|minus)\b", r"new_\1", "\n".join(lines))
    text = re.sub(r"\b(h|a|part|y|wide|less)\b(?=[,\]])", r"\1_2", text)
    found = diff_programs(program(PROGRAM), program(text))
    assert found.equal, told(found)


def _hlo(name: str) -> str:
    return gzip.decompress((ASSETS / f"{name}.spmd.hlo.gz").read_bytes()).decode()


@pytest.mark.parametrize(
    "name", ["transformer4l_dp2tp4_train", "scan_layers_dp2tp4_fwdbwd", "ring_attention_unrolled", "pp2dp2tp2_fwd"]
)
def test_renamed_and_renumbered_hlo_is_equal(name: str) -> None:
    text = _hlo(name)
    renamed = re.sub(r"%([\w.\-]+)", lambda found: f"%z_{found[1].replace('.', '_q')}", text)
    assert renamed != text
    bare = re.sub(r", metadata=\{[^}]*\}", "", renamed)
    for other in (renamed, bare):
        found = diff_programs(program(text, "a.hlo"), program(other, "b.hlo"))
        assert found.equal, told(found)[:5]


def test_axis_names_are_one_change() -> None:
    found = changed(("dp", "data"), ("tp]", "model]"), ("[tp,", "[model,"), ("{tp:", "{model:"))
    assert told(found) == [("mesh", "names of the axes", "names", "dp x tp", "data x model")]


def test_a_call_and_the_same_tasks_in_place_are_equal() -> None:
    body = "  ROOT %s = f32[4] add(%p, %p)\n"
    outlined = (
        "HloModule m\n\n%f (p: f32[4]) -> f32[4] {\n  %p = f32[4] parameter(0)\n"
        + body
        + "}\n\nENTRY %main (x: f32[4]) -> f32[4] {\n  %x = f32[4] parameter(0)\n"
        "  ROOT %c = f32[4] call(%x), to_apply=%f\n}\n"
    )
    inlined = "HloModule m\n\nENTRY %main (x: f32[4]) -> f32[4] {\n  %p = f32[4] parameter(0)\n" + body + "}\n"
    assert diff_programs(program(outlined, "a.hlo"), program(inlined, "b.hlo")).equal


# -- each kind of difference --------------------------------------------------------------------------------------------


def test_a_reduction() -> None:
    found = changed(("reduction: sum", "reduction: max"))
    assert told(found) == [("task", "sum_tp", "reduction", "sum", "max")]
    assert found.changed[0].match is Match.LINEAGE


def test_a_gathered_dim() -> None:
    assert told(changed(("dim: 1", "dim: 0"))) == [("task", "gather", "dim", "1", "0")]


def test_groups_of_a_collective() -> None:
    found = changed(("out: [y], axes: [tp]", "out: [y], axes: [dp]"))
    fields = {item.field: (item.before, item.after) for item in found.changed}
    assert fields["groups"] == ("{0,1,2,3}{4,5,6,7}", "{0,4}{1,5}{2,6}{3,7}")


def test_groups_written_another_way_are_the_same() -> None:
    found = changed(("out: [y], axes: [tp]", "out: [y], groups: [[4, 5, 6, 7], [0, 1, 2, 3]]"))
    assert found.equal, told(found)


def test_a_layout() -> None:
    found = changed(("{id: w1, shape: [64, 128], dims: [[], [tp]]", "{id: w1, shape: [64, 128], dims: [[], []]"))
    assert ("input", "w1", "sharding_dims", "[{}, {tp}]", "[{}, {}]") in told(found)
    assert {item.what for item in found.changed} == {"input"}


def test_a_pending_sum() -> None:
    found = changed((", partial: {tp: sum}", ""))
    assert ("value", "part", "sharding_partial", "sum over tp", "") in told(found)


def test_mesh_sizes() -> None:
    found = changed(("[tp, 4]", "[tp, 2]"))
    assert ("mesh", "tp", "size of tp", "4", "2") in told(found)


def test_an_axis_more() -> None:
    found = changed(("[tp, 4]]", "[tp, 4], [pp, 2]]"))
    assert [(item.what, item.id) for item in found.added] == [("axis", "pp")]


def test_a_collective_that_is_gone_and_what_that_saves() -> None:
    text = "\n".join(line for line in PROGRAM.splitlines() if "id: gather" not in line and "id: wide" not in line)
    found = diff_programs(program(PROGRAM), program(text.replace("[less, wide]", "[less]")))
    assert [(item.what, item.name, item.kind) for item in found.removed] == [
        ("output", "wide", "output"),
        ("task", "gather", "all_gather"),
    ]
    assert found.added == ()
    assert found.changed == ()
    assert found.bytes_delta == -8 * 128 * 4  # the gathered rows of one rank: 8 x 128 f32


def test_a_removed_task_is_one_entry_though_its_reader_reads_something_else() -> None:
    text = _hlo("transformer4l_dp2tp4_train")
    line = next(line for line in text.splitlines() if " all-reduce(%dot" in line)
    name = line.split(" = ")[0].strip()
    operand = re.search(r"all-reduce\((%[\w.\-]+)\)", line)
    assert operand is not None
    other = text.replace(line + "\n", "").replace(f"{name},", f"{operand[1]},").replace(f"{name})", f"{operand[1]})")
    found = diff_programs(program(text, "a.hlo"), program(other, "b.hlo"))
    assert [item.kind for item in found.removed] == ["all_reduce"]
    assert (found.added, found.changed) == ((), ())
    assert found.bytes_delta is not None
    assert found.bytes_delta < 0
    back = diff_programs(program(other, "b.hlo"), program(text, "a.hlo"))
    assert [item.kind for item in back.added] == ["all_reduce"]
    assert back.bytes_delta == -found.bytes_delta


def test_a_collective_that_became_another_kind_is_one_change() -> None:
    gathered = "coll: all_gather, in: [a], out: [wide], axes: [tp], dim: 1"
    found = changed((gathered, gathered.replace("all_gather", "all_reduce").replace("dim: 1", "reduction: sum")))
    assert (found.added, found.removed) == ((), ())
    assert ("task", "gather", "kind", "all_gather", "all_reduce") in told(found)


def test_swapped_operands_are_a_difference() -> None:
    assert not changed(("in: [y, x]", "in: [x, y]")).equal


def test_swapped_operands_of_a_commuting_operation_are_none() -> None:
    swapped = PROGRAM.replace("op: sub, in: [y, x]", "op: add, in: [y, x]")
    assert diff_programs(program(swapped), program(swapped.replace("in: [y, x]", "in: [x, y]"))).equal
    other = diff_programs(program(swapped), program(swapped.replace("in: [y, x]", "in: [y, y]")))
    assert not other.equal


def test_swapped_outputs_are_a_difference() -> None:
    found = changed(("outputs: [less, wide]", "outputs: [wide, less]"))
    assert [item.what for item in found.changed] == ["output", "output"]


def test_an_input_more() -> None:
    found = changed(
        ("inputs: [x, w1, w2]", "inputs: [b, x, w1, w2]"),
        ("values:\n", "values:\n- {id: b, shape: [4], dims: [[]], role: input}\n"),
    )
    assert [(item.what, item.name) for item in found.added] == [("input", "b")]
    assert (found.removed, found.changed) == ((), ())


def test_issue_order() -> None:
    issue = "issue: {0: [up, act, down, sum_tp, gather, minus], 1: [up, act, down, gather, sum_tp, minus]}\n"
    other = issue.replace("gather, sum_tp", "sum_tp, gather")
    found = diff_programs(program(PROGRAM + issue), program(PROGRAM + other))
    assert [item.field for item in found.changed] == ["issue"]


def test_the_number_of_runs_of_a_loop() -> None:
    text = _hlo("scan_layers_dp2tp4_fwdbwd")
    count = re.search(r"s32\[\] constant\(4\)", text)
    assert count is not None
    found = diff_programs(
        program(text, "a.hlo"), program(text.replace("s32[] constant(4)", "s32[] constant(5)"), "b.hlo")
    )
    trips = [item for item in found.changed if item.field == "trip_count"]
    assert trips
    assert all((item.before, item.after) == ("4", "5") for item in trips)
    assert found.bytes_delta is not None
    assert found.bytes_delta > 0


def test_a_computation_that_reduces_otherwise() -> None:
    text = _hlo("transformer4l_dp2tp4_train")
    head, tail = text.split("ENTRY", 1)
    found = re.search(r"to_apply=%(region_\d+[\w.]*)", tail)
    assert found is not None
    body = re.search(r"%" + re.escape(found[1]) + r" \(.*?\n\}", head, re.DOTALL)
    assert body is not None
    assert " add(" in body[0] or " maximum(" in body[0]
    other = body[0].replace(" add(", " minimum(").replace(" maximum(", " minimum(")
    assert not diff_programs(program(text, "a.hlo"), program(text.replace(body[0], other), "b.hlo")).equal


def test_values_made_twice_do_not_stop_it() -> None:
    """Programs that break rules are compared all the same."""
    text = PROGRAM.replace("out: [a]", "out: [h]")
    loaded = load_bytes(text.encode(), name="p.dtir.yaml")
    if loaded.program is not None:
        assert not diff_programs(program(PROGRAM), loaded.program).equal


# -- real files -----------------------------------------------------------------------------------------------------------


def test_variants_of_real_programs(shared_data: Path) -> None:
    """The form in which groups are printed is no difference."""
    folder = shared_data / "inputs" / "hlo_jax"
    pairs = 0
    for variant in sorted((folder / "cpu8_variants").glob("*.spmd.hlo")):
        base, _, form = variant.name.removesuffix(".spmd.hlo").rpartition("__")
        original = folder / "cpu8" / f"{base}.spmd.hlo"
        if not original.exists() or form != "norgv3":  # other forms let the partitioner decide otherwise
            continue
        pairs += 1
        found = diff_programs(program(original.read_text(), "a.hlo"), program(variant.read_text(), "b.hlo"))
        assert found.equal, (variant.name, told(found)[:3])
    assert pairs >= 2
