"""The commands on programs that can be read."""

from __future__ import annotations

import gzip
import json
from pathlib import Path

import pytest

from dtir.importers import load_path
from dtir.ir import BindingAxis, DistributedTaskIR, Symbol
from dtir.schema.diagnostics import Diagnostic, VerificationReport
from tests.helpers.cli import Run
from tests.helpers.programs import all_reduce, mesh_of, permute, program
from tests.helpers.shared import shared_params


def save(path: Path, made: DistributedTaskIR) -> Path:
    path.write_text(made.to_json(), encoding="utf-8")
    return path


# ------------------------------------------------------------------------------------------------------------ show


def test_show_json(run: Run, snapshot: Path) -> None:
    done = run("show", snapshot, "--format", "json")
    assert (done.code, done.err) == (0, "")
    result = done.json
    assert list(result) == ["name", "digest", "format", "source", "mesh", "tasks", "collectives", "values", "warnings"]
    assert (result["name"], result["format"], result["digest"]) == ("demo", "dtir", program().digest)
    assert result["source"] == {"format": "dtir", "digest": program().digest}
    assert result["collectives"][0]["groups"] == [[0, 1, 2, 3], [4, 5, 6, 7]]
    assert result["warnings"] == []


def test_show_text(run: Run, snapshot: Path) -> None:
    done = run("show", snapshot)
    assert (done.code, done.err) == (0, "")
    assert done.out.startswith("demo\n")
    assert "8 ranks = dp 2 × tp 4" in done.out
    assert "\x1b" not in done.out


def test_show_reads_packed_files_and_standard_input(run: Run, snapshot: Path, tmp_path: Path) -> None:
    packed = tmp_path / "x"
    packed.write_bytes(gzip.compress(snapshot.read_bytes()))
    plain = run("show", snapshot, "--format", "json")
    assert run("show", packed, "--format", "json").json == plain.json
    assert run("show", "-", "--format", "json", stdin=packed.read_bytes()).json == plain.json


def test_standard_input_can_be_read_once(run: Run) -> None:
    done = run("show", "-", "-")
    assert done.code == 2
    assert "named twice" in done.err


def test_several_files_are_shown_one_after_the_other(run: Run, snapshot: Path, tmp_path: Path) -> None:
    other = save(tmp_path / "other.json", program(name="other"))
    done = run("show", snapshot, other)
    assert done.code == 0
    assert [line for line in done.out.splitlines() if line in ("demo", "other")] == ["demo", "other"]
    assert [item["name"] for item in run("show", snapshot, other, "--format", "json").json["files"]] == [
        "demo",
        "other",
    ]


def test_a_name_cannot_write_to_the_terminal(run: Run, tmp_path: Path) -> None:
    evil = "<b>x</b>\x1b]0;owned\x07\x1b[2J\u202e\u2028"
    mesh = mesh_of(**{evil: 2})
    path = save(tmp_path / "evil.json", program(mesh, name=evil, task_name=evil, spec=all_reduce(mesh)))
    for options in ([], ["--format", "json"]):
        done = run("show", path, *options)
        assert done.code == 0
        assert (done.out + done.err).replace("\n", "").isprintable()
    assert run("show", path, "--format", "json").json["name"] == evil
    assert "<b>x</b>" in run("show", path).out


def test_a_mesh_of_two_thousand_million_ranks(run: Run, tmp_path: Path) -> None:
    mesh = mesh_of(dp=1_000_000, tp=2_000)
    path = save(tmp_path / "huge.json", program(mesh, spec=all_reduce(mesh, axes=("dp",))))
    assert path.stat().st_size < 10_000
    done = run("show", path, "--format", "json")
    assert done.code == 0
    row = done.json["collectives"][0]
    assert (row["groups"], row["group_count"], row["group_size"]) == (None, 2_000, 1_000_000)
    (note,) = done.json["warnings"]
    assert (note["code"], note["severity"]) == ("show.groups_omitted", "info")
    assert "2000000000 ranks" in note["message"]
    assert run("show", path).code == 0
    assert run("verify", path).code == 0


def test_the_limit_on_member_lists_can_be_lifted(run: Run, snapshot: Path) -> None:
    short = run("show", snapshot, "--format", "json", "--max-members", "7").json
    assert short["collectives"][0]["groups"] is None
    whole = run("show", snapshot, "--format", "json", "--max-members", "8").json
    assert whole["collectives"][0]["groups"] == [[0, 1, 2, 3], [4, 5, 6, 7]]
    assert whole["warnings"] == []


def test_symbols_and_permutes(run: Run, tmp_path: Path) -> None:
    mesh = mesh_of(x=4)
    size = Symbol("b", BindingAxis.WORKLOAD) * 4
    first = save(tmp_path / "a.json", program(mesh, spec=all_reduce(mesh, message_bytes=size)))
    second = save(tmp_path / "b.json", program(mesh, spec=permute(mesh, ((0, 1), (1, 0)))))
    one, two = (item["collectives"][0] for item in run("show", first, second, "--format", "json").json["files"])
    assert one["message_bytes"] == "workload.b * 4"
    assert (two["groups"], two["kind"]) == ([[0, 1], [1, 0]], "collective_permute")


TWO_PROGRAMS = """\
schema: dtir-program/1
name: first
mesh: {axes: [[tp, 2]]}
values: [{id: x, shape: [4]}, {id: y, shape: [4]}]
tasks: [{id: t, kind: local, op: exp, in: [x], out: [y]}]
inputs: [x]
outputs: [y]
"""


def two_programs(tmp_path: Path) -> Path:
    path = tmp_path / "two.dtir.yaml"
    path.write_text(f"{TWO_PROGRAMS}---\n{TWO_PROGRAMS.replace('first', 'second')}")
    return path


def test_a_file_of_several_programs(run: Run, tmp_path: Path) -> None:
    path = two_programs(tmp_path)
    files = run("show", path, "--format", "json").json["files"]
    assert [(item["file"], item["name"]) for item in files] == [
        (f"{path}#first", "first"),
        (f"{path}#second", "second"),
    ]
    verified = run("verify", path, "--judge", "structure", "--format", "json").json["files"]
    assert [item["ok"] for item in verified] == [True, True]
    out = tmp_path / "out.json"
    assert "name one with --program: first, second" in run("convert", path, "-o", out).err
    assert "holds no program 'third'" in run("convert", path, "-o", out, "--program", "third").err
    assert run("convert", path, "-o", out, "--program", "second").code == 0
    assert run("show", out, "--format", "json").json["name"] == "second"
    assert "leave --program out" in run("convert", out, "-o", tmp_path / "x", "--program", "second").err


# ---------------------------------------------------------------------------------------------------------- verify


def test_verify_a_valid_program(run: Run, snapshot: Path) -> None:
    done = run("verify", snapshot, "--judge", "structure")
    assert (done.code, done.out) == (0, "demo.json: ok (no findings; judged by structure)\n")
    assert run("verify", snapshot, "--judge", "structure", "--format", "json").json == {
        "ok": True,
        "counts": {"error": 0, "warning": 0, "info": 0},
        "diagnostics": [],
    }
    sarif = run("verify", snapshot, "--judge", "structure", "--format", "sarif").json
    assert (sarif["version"], sarif["runs"][0]["results"]) == ("2.1.0", [])


def test_the_verifier_is_asked_for_what_was_named(run: Run, snapshot: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[tuple[object, ...]] = []

    def verify(
        made: DistributedTaskIR, *, judges: tuple[str, ...], mode: str | None, strictness: str
    ) -> VerificationReport:
        asked.append((made.name, judges, mode, strictness))
        return VerificationReport((Diagnostic("rank.unknown", "no"),))

    monkeypatch.setattr("dtir.verify.verify", verify)
    done = run(
        "verify", snapshot, "--judge", "value,static", "--mode", "infer", "--strictness", "mpi", "--format", "json"
    )
    assert asked == [("demo", ("structure", "static", "value"), "infer", "mpi")]
    assert done.code == 1
    assert done.codes == ["rank.unknown"]
    run("verify", snapshot)
    assert asked[1:] == [("demo", ("structure", "static"), None, "nccl")]


@pytest.mark.parametrize("names", ["", "static,", "structure,values"])
def test_an_unknown_judge(run: Run, snapshot: Path, names: str) -> None:
    done = run("verify", snapshot, "--judge", names)
    assert done.code == 2
    assert "known: structure, static, value" in done.err


# --------------------------------------------------------------------------------------------------------- convert


def test_convert_to_native_and_back(run: Run, snapshot: Path, tmp_path: Path) -> None:
    out = tmp_path / "out.json"
    done = run("convert", snapshot, "-o", out, "--format", "json")
    assert done.code == 0
    assert done.json == {"written": str(out), "digest": program().digest}
    assert out.read_text(encoding="utf-8") == program().to_json()
    assert load_path(out).program == program()


def test_convert_to_upstream_says_what_it_cannot_hold(run: Run, snapshot: Path, tmp_path: Path) -> None:
    out = tmp_path / "out.json"
    done = run("convert", snapshot, "-o", out, "--to", "upstream", "--format", "json")
    assert done.code == 1
    assert (done.json["written"], done.json["digest"]) == (None, None)
    assert set(done.codes) == {"serialization.upstream"}
    assert not out.exists()
    text = run("convert", snapshot, "-o", out, "--to", "upstream")
    assert text.out.startswith("not written: ")


def test_convert_to_standard_output(run: Run, snapshot: Path) -> None:
    done = run("convert", snapshot, "-o", "-")
    assert (done.code, done.out) == (0, program().to_json())
    assert "written -" in done.err
    assert run("convert", snapshot, "-o", "-", "--format", "json").code == 2


def test_convert_packs_by_name(run: Run, snapshot: Path, tmp_path: Path) -> None:
    assert run("convert", snapshot, "-o", tmp_path / "x.json.gz").code == 0
    assert gzip.decompress((tmp_path / "x.json.gz").read_bytes()).decode() == program().to_json()


def test_convert_to_networkx(run: Run, snapshot: Path, tmp_path: Path) -> None:
    import networkx as nx

    out = tmp_path / "graph.json"
    assert run("convert", snapshot, "-o", out, "--to", "networkx-json").code == 0
    graph = nx.node_link_graph(json.loads(out.read_text()), edges="edges")
    assert graph.is_directed()
    assert sorted(data["name"] for _, data in graph.nodes(data=True)) == ["mul.0", "sum.1"]
    assert graph.number_of_edges() == 1


def test_convert_to_a_place_that_cannot_be_written(run: Run, snapshot: Path, tmp_path: Path) -> None:
    done = run("convert", snapshot, "-o", tmp_path / "no" / "out.json", "--format", "json")
    assert done.code == 2
    assert done.codes == ["cli.output"]


# --------------------------------------------------------------------------------------------------------- explain


def test_explain(run: Run) -> None:
    done = run("explain", "rank.unknown", "--format", "json")
    assert done.code == 0
    assert list(done.json) == ["code", "why", "bad", "good", "hint"]
    assert done.json["code"] == "rank.unknown"
    assert "rank.unknown (error)" in run("explain", "[rank.unknown]").out


def test_explain_a_mistyped_code(run: Run) -> None:
    done = run("explain", "rank.unknwon", "--format", "json")
    assert (done.code, done.codes) == (2, ["cli.unknown_code"])
    assert "did you mean rank.unknown" in done.err
    assert run("explain").code == 2


def test_explain_lists_every_code(run: Run) -> None:
    from dtir.explain import catalogue

    done = run("explain", "--list", "--format", "json")
    assert [entry["code"] for entry in done.json["codes"]] == list(catalogue())
    assert len(run("explain", "--list").out.splitlines()) == len(catalogue()) + 1


# ------------------------------------------------------------------------------------------------------ real files


@pytest.mark.parametrize("path", shared_params("upstream/bad-*.json*"))
def test_every_bad_snapshot_gives_the_expected_findings(run: Run, path: Path, shared_data: Path) -> None:
    expected = json.loads((shared_data / "upstream" / "EXPECTED.json").read_text())["invalid"][path.name]
    # Where upstream's own reader raises, ours says that the snapshot cannot be trusted.
    unreadable = [{"code": "serialization.snapshot", "path": ["snapshot"]}]
    wanted = [(item["code"], item["path"]) for item in expected.get("diagnostics", unreadable)]
    structural = not wanted[0][0].startswith("serialization.")
    for command in ("show", "verify"):
        done = run(command, path, "--format", "json")
        assert [(i["code"], i["path"]) for i in done.json["diagnostics"] if i["severity"] == "error"] == wanted
        assert done.code == (1 if structural else 2)
    if structural:
        assert done.json["ok"] is False


@pytest.mark.parametrize("path", shared_params("upstream/0*.json"))
def test_every_good_snapshot_is_shown_and_converts_to_itself(
    run: Run, path: Path, shared_data: Path, tmp_path: Path
) -> None:
    expected = json.loads((shared_data / "upstream" / "EXPECTED.json").read_text())["valid"][path.name]
    result = run("show", path, "--format", "json").json
    assert result["source"] == {"format": "upstream", "digest": expected["content_digest"]}
    assert result["tasks"] == {"total": expected["tasks"], "by_kind": result["tasks"]["by_kind"]}
    assert result["tasks"]["by_kind"] == expected["body_tags"]
    assert {axis["name"]: axis["size"] for axis in result["mesh"]["axes"]} == expected["mesh"]
    native, back = tmp_path / "native.json", tmp_path / "back.json"
    assert run("convert", path, "-o", native).code == 0
    assert run("convert", native, "-o", back, "--to", "upstream").code == 0
    assert back.read_bytes() == path.read_bytes()
