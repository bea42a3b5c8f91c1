"""Forms of operations that are rare: complex angles, index vectors without numbers, denormals, types that do not fit."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from dtir.execute import ExecutionError
from tests.helpers.cli import runner
from tests.helpers.running import run_one

ATAN2 = """HloModule m
ENTRY e { a = %s[5] parameter(0)
 b = %s[5] parameter(1)
 ROOT r = %s[5] atan2(a, b) }"""


@pytest.mark.parametrize(("kind", "tolerance"), [("c64", 2e-6), ("c128", 1e-14)])
def test_the_angle_of_complex_numbers(kind: str, tolerance: float) -> None:
    generator = np.random.default_rng(3)
    y, x = (generator.standard_normal((2, 5)) + 1j * generator.standard_normal((2, 5))).astype(np.complex128)
    (found,) = run_one(ATAN2 % (kind, kind, kind), y, x)
    # tan of the angle is y / x, whatever branch was taken.
    assert np.abs(np.tan(found.astype(np.complex128)) - y / x).max() < tolerance * 1e3
    (real,) = run_one(ATAN2 % (kind, kind, kind), np.abs(y), np.abs(x))
    assert np.abs(real - np.arctan2(np.abs(y), np.abs(x))).max() < tolerance


SCATTER = """HloModule m
add { a = f32[] parameter(0)
 b = f32[] parameter(1)
 ROOT c = f32[] add(a, b) }
ENTRY e { p = f32[4,3] parameter(0)
 i = s32[5,0] parameter(1)
 u = f32[5,4,3] parameter(2)
 ROOT r = f32[4,3] scatter(p, i, u), update_window_dims={1,2}, inserted_window_dims={}, scatter_dims_to_operand_dims={},
   index_vector_dim=1, to_apply=add }"""


def test_a_scatter_whose_index_vectors_are_empty_adds_whole_windows() -> None:
    operand = np.arange(12, dtype=np.float32).reshape(4, 3)
    updates = np.arange(60, dtype=np.float32).reshape(5, 4, 3)
    (found,) = run_one(SCATTER, operand, np.zeros((5, 0), np.int32), updates)
    assert np.array_equal(found, operand + updates.sum(axis=0))


GATHER = """HloModule m
ENTRY e { p = f32[4,3] parameter(0)
 i = s32[5,0] parameter(1)
 ROOT r = f32[5,4,3] gather(p, i), offset_dims={1,2}, collapsed_slice_dims={}, start_index_map={}, index_vector_dim=1,
   slice_sizes={4,3} }"""


def test_a_gather_whose_index_vectors_are_empty_repeats_the_operand() -> None:
    operand = np.arange(12, dtype=np.float32).reshape(4, 3)
    (found,) = run_one(GATHER, operand, np.zeros((5, 0), np.int32))
    assert np.array_equal(found, np.broadcast_to(operand, (5, 4, 3)))


def test_denormals_are_kept() -> None:
    text = "HloModule m\nENTRY e { a = f32[2] parameter(0)\n ROOT r = f32[2] multiply(a, a) }"
    (found,) = run_one(text, np.asarray([2e-20, 1e-30], np.float32))
    assert 0 < found[0] < np.finfo(np.float32).tiny
    assert found[1] == 0


COPY = """HloModule m
ENTRY e { p = f32[4]{0:S(1)} parameter(0)
 s = (f32[4]{0:S(2)}, f32[4]{0:S(1)}, u32[]) copy-start(p)
 d = f32[4]{0:S(2)} copy-done(s)
 ROOT r = f32[4] add(d, p) }"""


def test_an_asynchronous_copy_is_a_copy() -> None:
    (found,) = run_one(COPY, np.arange(4, dtype=np.float32))
    assert np.array_equal(found, 2 * np.arange(4))


WRONG = "HloModule m\nENTRY e { a = c64[3] parameter(0)\n ROOT r = c64[3] ceil(a) }"


def test_an_operation_that_its_type_does_not_have_is_a_finding(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    with pytest.raises(ExecutionError):
        run_one(WRONG, np.ones(3))
    path = tmp_path / "wrong.hlo"
    path.write_text(WRONG)
    done = runner(capsys, monkeypatch)("run", path, "--format", "json")
    assert done.code == 1
    assert [item["code"] for item in done.json["findings"]] == ["run.failed"]
    assert "Traceback" not in done.err
