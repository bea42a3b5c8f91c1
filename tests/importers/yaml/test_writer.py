"""Programs to YAML and back: the same program, or nothing."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from dtir.importers import load_path
from dtir.importers.yaml import read_programs, to_yaml
from dtir.ir import DistributedTaskIR
from dtir.schema import FrozenDict, IRVerificationError
from tests.helpers.programs import call, mesh_of, program, region
from tests.helpers.shared import shared_params
from tests.importers.yaml.test_reader import BASE

OWN = Path(__file__).parents[2] / "verify" / "programs" / "corrected.dtir.yaml"


def again(original: DistributedTaskIR) -> DistributedTaskIR:
    (found,) = read_programs(to_yaml(original))
    assert found.program is not None
    return found.program


@pytest.mark.parametrize("read", read_programs(OWN.read_text(encoding="utf-8")), ids=lambda item: item.name)
def test_own_programs_survive(read: object) -> None:
    original = read.program  # type: ignore[attr-defined]
    assert again(original) == original
    assert again(original).digest == original.digest
    assert to_yaml(again(original)) == to_yaml(original)


def test_one_line_for_each_value_and_task() -> None:
    text = to_yaml(read_programs(BASE)[0].program)  # type: ignore[arg-type]
    assert "- {id: p, shape: [4, 5], dims: [[dp], []], partial: {tp: sum}}\n" in text
    assert "- {id: t2, kind: collective, in: [p], out: [y], coll: all_reduce, reduction: sum, axes: [tp]}\n" in text


def test_the_corpus_survives(shared_data: Path) -> None:
    text = (shared_data / "bug_corpus.yaml").read_text(encoding="utf-8")
    for fixed in (False, True):
        for read in read_programs(text, fixed=fixed):
            assert read.program is not None
            assert again(read.program) == read.program, read.name


@pytest.mark.parametrize("path", shared_params("upstream/0*.json"))
def test_upstream_snapshots_survive(path: Path) -> None:
    loaded = load_path(path).program
    assert loaded is not None
    assert again(loaded) == loaded


@pytest.mark.parametrize("path", shared_params("inputs/**/*_fwd.spmd.hlo"))
def test_hlo_modules_survive_with_their_regions(path: Path) -> None:
    loaded = load_path(path).program
    assert loaded is not None
    assert again(loaded) == loaded


def test_programs_built_by_hand_survive() -> None:
    mesh = mesh_of(dp=2, tp=4)
    made = program(
        mesh, attributes=FrozenDict({"big": 10**30, "set": frozenset({1, 2}), "nested": {"a": (1, None, 0.5)}})
    )
    assert again(made) == made
    made = program(mesh)
    made = replace(made, regions=(region("body", mesh, ()),), tasks=(*made.tasks, call("c", mesh, "body")))
    assert again(made) == made


def test_what_cannot_be_said_is_not_written() -> None:
    broken = program(name="")
    with pytest.raises(IRVerificationError, match=r"distributed\.name"):
        to_yaml(broken)
    strange = program(attributes=FrozenDict({"x": float("nan")}))
    with pytest.raises(IRVerificationError):
        to_yaml(strange)
