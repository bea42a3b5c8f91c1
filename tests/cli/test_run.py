"""``dtir run``: exit codes, keys and files that scripts rely on, and everything that is refused before a run starts."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from dtir.execute import RunRecord, Session, read_record
from tests.helpers.cli import Done, Run
from tests.helpers.shared import ROOT

FILES = ROOT / "tests" / "execute" / "files"
NAMES = ("cond_collective", "mlp_tp8_fwd", "scan_layers_dp2tp4_fwdbwd", "uneven_padding_gspmd")
KEYS = ["backend", "ranks", "tasks", "collectives", "values", "totals", "findings"]

SUM = """schema: dtir-program/1
name: %s
mesh: {axes: [[tp, 2]]}
values:
- {id: x, shape: [4, 8], dims: [[], [tp]]}
- {id: r, shape: [4], dims: [[]], partial: {tp: sum}}
- {id: y, shape: [4], dims: [[]]}
tasks:
- {id: t1, kind: local, op: sum, in: [x], out: [r], dims: [1]}
- {id: t2, kind: collective, coll: %s, in: [r], out: [y], axes: [tp]%s}
inputs: [x]
outputs: [y]
"""
RIGHT = SUM % ("right", "all_reduce", ", reduction: sum")
WRONG = SUM % ("wrong", "all_reduce", ", reduction: max")


@pytest.fixture
def saved(tmp_path: Path) -> Callable[[str, str], Path]:
    def save(name: str, text: str) -> Path:
        path = tmp_path / name
        path.write_text(text, encoding="utf-8")
        return path

    return save


def arrays(tmp_path: Path, **named: Any) -> Path:
    path = tmp_path / "arrays.npz"
    np.savez(path, **named)
    return path


def codes(done: Done) -> list[str]:
    return [item["code"] for item in done.json["findings"]]


# -- what comes out --------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", NAMES)
def test_a_partitioned_module_gives_what_jax_gave(run: Run, tmp_path: Path, name: str) -> None:
    out = tmp_path / "out.npz"
    done = run("run", FILES / f"{name}.spmd.hlo", "--inputs", FILES / f"{name}.io.npz", "--outputs", out)
    assert (done.code, done.err) == (0, "")
    with np.load(out) as found, np.load(FILES / f"{name}.io.npz") as expected:
        names = [item for item in expected if item.startswith("out")]
        assert sorted(found) == sorted(names)
        for item in names:
            scale = np.abs(expected[item]).max(initial=0.0)
            assert np.abs(found[item] - expected[item]).max(initial=0.0) <= 2e-5 * scale


def test_json_keys(run: Run) -> None:
    done = run("run", FILES / "mlp_tp8_fwd.spmd.hlo", "--inputs", FILES / "mlp_tp8_fwd.io.npz", "--format", "json")
    assert (done.code, done.err) == (0, "")
    result = done.json
    assert list(result) == KEYS
    assert (result["backend"], result["ranks"], result["findings"]) == ("numpy", 8, [])
    (row,) = result["collectives"]
    assert (row["kind"], row["size_bytes"], row["count"], row["type"], row["redop"]) == (
        "all_reduce",
        2048,
        512,
        "f32",
        "sum",
    )
    # 2 (n - 1) S on the wire of the whole group; nothing crosses a wire in one process.
    assert (row["planned_bytes"], row["measured_bytes"], row["planned_us"]) == (2 * 7 * 2048, None, None)
    assert row["busbw"] == pytest.approx(row["algbw"] * 2 * 7 / 8)
    (value,) = result["values"]
    assert (value["compared_with"], value["wrong"], value["layout"]) == ("expected", 0, "stated")
    assert result["totals"]["planned_bytes"] == row["planned_bytes"]
    assert len(result["tasks"]) == result["totals"]["tasks"]


def test_text_columns(run: Run) -> None:
    done = run("run", FILES / "mlp_tp8_fwd.spmd.hlo", "--inputs", FILES / "mlp_tp8_fwd.io.npz", "--reps", 3)
    for column in ("size(B)", "count", "type", "redop", "root", "time(us)", "algbw", "busbw", "#wrong", "planned us"):
        assert column in done.out
    assert "not measured" in done.out
    assert "\x1b" not in done.out


def test_a_loop_is_counted(run: Run) -> None:
    done = run("run", FILES / "scan_layers_dp2tp4_fwdbwd.spmd.hlo", "--format", "json", "--reps", 2)
    rows = done.json["collectives"]
    inside = [row for row in rows if row["executions"] == 4]
    assert inside, "four layers: collectives in the loop run four times a repetition"
    assert all(row["planned_bytes"] % 4 == 0 for row in inside)


def test_generated_data_are_the_same_every_time(run: Run, tmp_path: Path) -> None:
    for name, seed in (("a", 5), ("b", 5), ("c", 6)):
        run("run", FILES / "mlp_tp8_fwd.spmd.hlo", "--seed", seed, "--outputs", tmp_path / name)
    a, b, c = ((tmp_path / name).read_bytes() for name in "abc")
    assert a == b
    assert a != c


def test_a_program_is_compared_with_the_undivided_one(run: Run, saved: Callable[[str, str], Path]) -> None:
    right = run("run", saved("r.dtir.yaml", RIGHT), "--format", "json")
    assert right.code == 0
    assert right.json["values"][0]["compared_with"] == "undivided"
    wrong = run("run", saved("w.dtir.yaml", WRONG), "--format", "json")
    assert wrong.code == 1
    assert codes(wrong) == ["run.values_differ"]
    assert wrong.json["values"][0]["wrong"] > 0


def test_wrong_expected_arrays_are_found(run: Run, tmp_path: Path) -> None:
    with np.load(FILES / "mlp_tp8_fwd.io.npz") as good:
        path = arrays(tmp_path, **{**good, "out0": good["out0"] + 1})
    done = run("run", FILES / "mlp_tp8_fwd.spmd.hlo", "--inputs", path, "--format", "json")
    assert (done.code, codes(done)) == (1, ["run.values_differ"])


def test_the_record(run: Run, tmp_path: Path) -> None:
    path = tmp_path / "run.json"
    done = run("run", FILES / "mlp_tp8_fwd.spmd.hlo", "-o", path, "--reps", 4, "--warmup", 2, "--timing", "isolated")
    assert done.code == 0
    record = read_record(path)
    assert record.complete
    assert (record.options["repetitions"], record.options["warmup"], record.options["timing"]) == (4, 2, "isolated")
    assert record.records.repetition == [0, 1, 2, 3]
    assert all(start <= end for start, end in zip(record.records.start_ns, record.records.end_ns, strict=True))
    assert len(record.totals["elapsed_ns"]) == 4


def test_interrupted_runs_leave_what_was_done(run: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "run.json"
    execute = Session.execute

    def stop(self: Session, step: Any) -> None:
        execute(self, step)
        if step.name == "all-reduce":
            raise KeyboardInterrupt

    monkeypatch.setattr(Session, "execute", stop)
    done = run("run", FILES / "mlp_tp8_fwd.spmd.hlo", "-o", path, "--reps", 5)
    assert done.code == 130
    record = RunRecord.from_json(path.read_text())
    assert not record.complete
    assert record.records.repetition == [0]


# -- layouts of outputs ------------------------------------------------------------------------------------------------------


def alone(tmp_path: Path, name: str) -> Path:
    """A module without the one before partitioning beside it."""
    path = tmp_path / f"{name}.spmd.hlo"
    path.write_bytes((FILES / path.name).read_bytes())
    return path


def test_layouts_come_from_the_module_that_is_named(run: Run, tmp_path: Path) -> None:
    name = "cond_collective"
    module = alone(tmp_path, name)
    given = ["--inputs", FILES / f"{name}.io.npz", "--format", "json"]
    assert run("run", module, *given).json["values"][0]["layout"] in ("inferred", "shape")
    named = run("run", module, *given, "--layouts", FILES / f"{name}.sharded.hlo")
    assert named.json["values"][0]["layout"] == "stated"


def test_a_module_that_does_not_belong(run: Run, tmp_path: Path) -> None:
    done = run(
        "run", FILES / "mlp_tp8_fwd.spmd.hlo", "--layouts", FILES / "cond_collective.sharded.hlo", "--format", "json"
    )
    assert done.code == 2
    assert done.codes == ["run.layouts"]


PARTS = """HloModule m, num_partitions=2
ENTRY e { p = u32[] partition-id()
 ROOT r = u32[1] reshape(p) }"""


def test_parts_of_no_known_layout_are_given_rank_by_rank(
    run: Run, tmp_path: Path, saved: Callable[[str, str], Path]
) -> None:
    out = tmp_path / "out.npz"
    done = run("run", saved("x.hlo", PARTS), "--outputs", out, "--format", "json")
    assert (done.code, codes(done)) == (0, ["run.output_layout"])
    with np.load(out) as found:
        assert {name: found[name].tolist() for name in found} == {"out0@0": [0], "out0@1": [1]}


PER_RANK = """HloModule m, num_partitions=2
add { x = f32[] parameter(0)
 y = f32[] parameter(1)
 ROOT r = f32[] add(x, y) }
ENTRY e { a = f32[2] parameter(0)
 ROOT s = f32[2] all-reduce(a), replica_groups={}, channel_id=1, use_global_device_ids=true, to_apply=add }"""


def test_an_array_for_every_rank(run: Run, tmp_path: Path, saved: Callable[[str, str], Path]) -> None:
    path = arrays(tmp_path, **{"in0@0": np.float32([1, 2]), "in0@1": np.float32([10, 20])})
    out = tmp_path / "out.npz"
    assert run("run", saved("x.hlo", PER_RANK), "--inputs", path, "--outputs", out).code == 0
    with np.load(out) as found:
        assert found["out0"].tolist() == [11, 22]


def test_one_array_for_all_ranks_is_said(run: Run, tmp_path: Path, saved: Callable[[str, str], Path]) -> None:
    done = run(
        "run", saved("x.hlo", PER_RANK), "--inputs", arrays(tmp_path, in0=np.float32([1, 2])), "--format", "json"
    )
    assert (done.code, codes(done)) == (0, ["run.input_replicated"])


# -- refused before it starts -------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("named", "expected"),
    [
        ({}, ["run.input_missing"]),
        ({"in0@0": np.float32([1, 2])}, ["run.input_missing"]),
        ({"in0": np.float32([1, 2, 3])}, ["run.input_shape"]),
        ({"in0": np.float64([1, 2])}, ["run.input_dtype"]),
        ({"in0": np.int32([[1]])}, ["run.input_shape", "run.input_dtype"]),
        ({"in0": np.float32([1, 2]), "in1": np.float32([1])}, ["run.input_unused"]),
    ],
)
def test_wrong_arrays(
    run: Run, tmp_path: Path, saved: Callable[[str, str], Path], named: dict[str, Any], expected: list[str]
) -> None:
    out = tmp_path / "out.npz"
    module = saved("x.hlo", PER_RANK)
    done = run("run", module, "--inputs", arrays(tmp_path, **named), "--outputs", out, "--format", "json")
    assert done.code == 2
    errors = [item for item in done.json["diagnostics"] if item["severity"] == "error"]
    assert [item["code"] for item in errors] == expected
    assert all(item["hint"] for item in errors)
    assert not out.exists()


UNKNOWN = """HloModule m, num_partitions=2
ENTRY e { a = f32[2] parameter(0)
 b = f32[2] custom-call(a), custom_call_target="my_kernel"
 c = f32[2] custom-call(b), custom_call_target="my_kernel"
 d = f32[2] constant({...})
 ROOT s = f32[2] add(c, d) }"""


def test_everything_that_stands_against_a_run_is_said_at_once(run: Run, saved: Callable[[str, str], Path]) -> None:
    module = saved("x.hlo", UNKNOWN)
    done = run("run", module, "--format", "json", "-n", 9)
    assert done.code == 2
    assert done.codes == ["run.unknown_op", "run.elided_constant", "run.binding"]
    first = done.json["diagnostics"][0]
    assert "2 tasks use it: b, c" in first["message"]
    assert "my_kernel" in first["message"]
    text = run("run", module)
    assert text.code == 2
    assert "Traceback" not in text.err
    assert "hint:" in text.err


def test_communication_alone_needs_no_operations(run: Run, saved: Callable[[str, str], Path]) -> None:
    done = run("run", saved("x.hlo", UNKNOWN), "--skip-local", "--format", "json")
    assert done.code == 0


@pytest.mark.parametrize(
    ("options", "code"),
    [
        (["--backend", "nunpy"], "run.backend"),
        (["-n", "3"], "run.binding"),
        (["-n", "2"], "run.binding"),
        (["--memory-limit", "10"], "run.memory"),
        (["--inputs", "no/such.npz"], "run.archive"),
        (["--binding", "no/such.json"], "run.binding"),
        (["--outputs", "no/such/folder/x.npz"], "cli.output"),
        (["-o", "no/such/folder/run.json"], "cli.output"),
        (["--reps", "0"], "cli.usage"),
        (["--seed", "-1"], "cli.usage"),
    ],
)
def test_refusals(run: Run, saved: Callable[[str, str], Path], options: list[str], code: str) -> None:
    done = run("run", saved("x.hlo", PER_RANK), *options, "--format", "json")
    assert (done.code, done.codes) == (2, [code])


def test_a_binding_for_another_program(run: Run, saved: Callable[[str, str], Path]) -> None:
    binding = saved("b.json", json.dumps({"schema": "dtir.binding", "version": "1.0.0", "backend": "numpy", "processes": 1,
                                          "ranks": [{"rank": 0, "process": 0, "device": None}]}))  # fmt: skip
    done = run("run", saved("x.hlo", PER_RANK), "--binding", binding, "--format", "json")
    assert (done.code, done.codes) == (2, ["run.binding"])


def test_a_program_that_cannot_be_read(run: Run, saved: Callable[[str, str], Path]) -> None:
    done = run("run", saved("x.hlo", "HloModule m\nENTRY e { a = f32[2] parameter(0)\n ROOT b = f32[2] negate(z) }"))
    assert done.code == 2
    assert "Traceback" not in done.err


def test_more_ranks_than_one_run_may_have(run: Run, saved: Callable[[str, str], Path]) -> None:
    text = RIGHT.replace("[tp, 2]", "[tp, 2], [dp, 1000000000]")
    done = run("run", saved("x.dtir.yaml", text), "--format", "json")
    assert (done.code, done.codes) == (2, ["run.too_many_ranks"])


# -- while it runs --------------------------------------------------------------------------------------------------------------

DEADLOCK = """HloModule m, num_partitions=2
add { x = f32[] parameter(0)
 y = f32[] parameter(1)
 ROOT r = f32[] add(x, y) }
f { p = f32[] parameter(0)
 ROOT r = f32[] all-reduce(p), replica_groups={}, channel_id=1, use_global_device_ids=true, to_apply=add }
g { p = f32[] parameter(0)
 ROOT r = f32[] negate(p) }
ENTRY e { q = u32[] partition-id()
 i = s32[] convert(q)
 a = f32[] parameter(0)
 ROOT w = f32[] conditional(i, a, a), branch_computations={f,g} }"""


def test_a_deadlock_is_a_finding(run: Run, saved: Callable[[str, str], Path]) -> None:
    done = run("run", saved("x.hlo", DEADLOCK), "--format", "json")
    assert done.code == 1
    assert list(done.json) == KEYS
    (finding,) = done.json["findings"]
    assert finding["code"] == "run.deadlock"
    assert "ranks 0 wait for ranks 1" in finding["message"]


ORACLE = """schema: dtir-program/1
name: gathered
mesh: {axes: [[dp, 2]]}
values:
- {id: p, shape: [4], dims: [[dp]]}
- {id: P, shape: [4], dims: [[]]}
- {id: g, shape: [4], dims: [[]]}
- {id: a, shape: [4], dims: [[]]}
tasks:
- {id: t1, kind: collective, coll: all_gather, in: [p], out: [P], axes: [dp], dim: 0}
- {id: t2, kind: local, op: add, in: [%s, g], out: [a]}
oracle:
- {id: o1, kind: local, op: add, in: [g, g], out: [a]}
inputs: [p, g]
outputs: [a]
"""


@pytest.mark.parametrize(("operand", "wrong"), [("g", False), ("P", True)])
def test_an_explicit_undivided_program_is_what_counts(
    run: Run, saved: Callable[[str, str], Path], operand: str, wrong: bool
) -> None:
    """The oracle says a = g + g, whatever the tasks of the divided program look like."""
    done = run("run", saved("o.dtir.yaml", ORACLE % operand), "--format", "json")
    assert (done.code, codes(done)) == ((1, ["run.values_differ"]) if wrong else (0, []))
    (value,) = done.json["values"]
    assert value["compared_with"] == "undivided"
    assert (value["wrong"] > 0) is wrong
    assert (value["max_error"] > value["bound"]) is wrong
    text = run("run", saved("o.dtir.yaml", ORACLE % operand))
    assert "undivided program" in text.out
    assert ("differ from the undivided program" in text.out) is wrong


def test_collectives_are_checked_when_that_is_asked_for(
    run: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    module, record = FILES / "mlp_tp8_fwd.spmd.hlo", tmp_path / "run.json"
    (row,) = run("run", module, "--format", "json").json["collectives"]
    assert row["wrong"] is None
    done = run("run", module, "--check", "--format", "json", "-o", record, "--reps", 2)
    (row,) = done.json["collectives"]
    assert (done.code, row["wrong"], row["samples"]) == (0, 0, 2)
    assert [entry.wrong for entry in read_record(record).steps if entry.kind == "exchange"] == [0]
    monkeypatch.setattr("dtir.execute.checked.wrong_elements", lambda *found: 3)
    done = run("run", module, "--check", "--format", "json")
    assert (done.code, codes(done)) == (1, ["run.values_differ"])
    assert done.json["collectives"][0]["wrong"] == 3
