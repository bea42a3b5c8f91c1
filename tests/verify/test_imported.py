"""Documents that cannot say what is pending: foreign snapshots and compiler dumps give no errors, and waste is seen in them."""

from __future__ import annotations

import gzip
import json
from pathlib import Path

import pytest

from dtir.importers import load_path
from dtir.ir.program import DistributedTaskIR
from dtir.schema.diagnostics import Severity
from dtir.verify import mode_of, verify
from tests.helpers.authoring import codes, program, sketch
from tests.helpers.shared import shared_params

DUMPS = shared_params("inputs/hlo_jax/cpu8/*.spmd.hlo")


def loaded(path: Path) -> DistributedTaskIR:
    found = load_path(path)
    assert found.program is not None, [item.render() for item in found.diagnostics]
    return found.program


@pytest.mark.parametrize("path", DUMPS)
def test_a_partitioned_dump_has_no_errors(path: Path) -> None:
    found = loaded(path)
    assert mode_of(found) == "infer"
    assert [item.render() for item in verify(found) if item.severity is Severity.ERROR] == []


@pytest.mark.parametrize("path", DUMPS)
def test_only_the_wasteful_dump_has_redundant_reductions(path: Path) -> None:
    names = verify(loaded(path)).of_code("redundant.collective")
    assert len(names) == (3 if path.name.startswith("psum_replicated_redundant") else 0)


def test_foreign_snapshots_have_no_errors(shared_data: Path) -> None:
    expected = json.loads((shared_data / "upstream" / "EXPECTED.json").read_text())["valid"]
    for name in expected:
        path = shared_data / "upstream" / name
        if not path.exists():
            path = path.with_name(f"{name}.gz")
        text = gzip.decompress(path.read_bytes()).decode() if path.suffix == ".gz" else path.read_text()
        found = DistributedTaskIR.require_from_json(text)
        assert mode_of(found) == "infer"
        assert [item.render() for item in verify(found) if item.severity is Severity.ERROR] == [], name


CHAIN = """
mesh [tp, 2]
values
  x [4, 6] dims: [[], [tp]]
  w [6, 5] dims: [[tp], []]
  p [4, 5] dims: [[], []]
  h [4, 5] dims: [[], []]
  y [4, 5] dims: [[], []]
tasks
  m: matmul x, w -> p
  s: neg p -> h
  {last}
in x, w
out y
"""


def test_infer_mode_carries_what_is_pending_to_its_reduction() -> None:
    text = sketch(CHAIN.format(last="r: ar h -> y, axes: [tp], reduction: sum"))
    assert codes(text, mode="infer") == ()
    assert codes(text, mode="check") == ("collective.reduce_replicated", "partial.dropped", "scale.factor")


def test_infer_mode_finds_what_is_pending_at_the_output() -> None:
    assert codes(sketch(CHAIN.format(last="r: neg h -> y")), mode="infer") == ("partial.output",)


def test_infer_mode_finds_a_nonlinear_use() -> None:
    assert codes(sketch(CHAIN.format(last="r: relu h -> y")), mode="infer") == ("partial.nonlinear",)


def test_a_document_that_states_what_is_pending_is_checked() -> None:
    assert mode_of(program(sketch(CHAIN.format(last="r: relu h -> y")))) == "check"
