"""Operations against XLA: small modules of our own with the outputs that XLA's CPU back end (jaxlib 0.10.2) gave for them.

``known_answers.jsonl.gz`` holds one case a line: name, HLO text, inputs and outputs (bytes, shape, type) and the relative
tolerance (0: bit by bit). XLA flushes denormals to zero; the inputs have none.
"""

from __future__ import annotations

import base64
import gzip
import json
import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from dtir.execute.dtypes import numpy_dtype
from dtir.execute.hlo import OPCODES
from tests.helpers.running import run_hlo, run_one

FILE = Path(__file__).with_name("known_answers.jsonl.gz")
CASES: list[dict[str, Any]] = [json.loads(line) for line in gzip.decompress(FILE.read_bytes()).splitlines()]


def array(entry: Mapping[str, Any]) -> np.ndarray:
    raw = base64.b64decode(entry["bytes"])
    return np.frombuffer(raw, numpy_dtype(entry["dtype"])).reshape(entry["shape"])


def agrees(found: np.ndarray, wanted: np.ndarray, relative: float) -> bool:
    """Equal types, NaN and infinities in the same places, finite elements within the tolerance."""
    if found.shape != wanted.shape or found.dtype != wanted.dtype:
        return False
    if relative == 0.0 and found.dtype.kind in "biu":
        return np.array_equal(found, wanted)
    with np.errstate(all="ignore"):
        a, b = found.astype(np.complex128), wanted.astype(np.complex128)
        finite = np.isfinite(b)
        scale = np.abs(b[finite]).max(initial=0.0)
        near = np.abs(a[finite] - b[finite]) <= relative * np.maximum(np.abs(b[finite]), scale * 0.05)
    same_specials = np.array_equal(np.isnan(a), np.isnan(b)) and np.array_equal(
        a[~finite & ~np.isnan(b)], b[~finite & ~np.isnan(b)]
    )
    return bool(same_specials and near.all())


@pytest.mark.parametrize("case", CASES, ids=lambda case: case["name"])
def test_as_xla(case: dict[str, Any]) -> None:
    found = run_one(case["text"], *(array(entry) for entry in case["inputs"]))
    wanted = [array(entry) for entry in case["outputs"]]
    assert len(found) == len(wanted)
    for one, other in zip(found, wanted, strict=True):
        assert agrees(np.asarray(one), other, case["rtol"]), (one, other)


@pytest.mark.parametrize("case", CASES[:: len(CASES) // 60], ids=lambda case: case["name"])
def test_ranks_do_not_mix(case: dict[str, Any]) -> None:
    """The same module on three ranks: the middle one has the known inputs, its neighbours other ones."""
    text = case["text"].replace("HloModule m", "HloModule m, num_partitions=3")
    arrays = [array(entry) for entry in case["inputs"]]
    other = [np.roll(item.reshape(-1), 1).reshape(item.shape) for item in arrays]
    ranks = run_hlo(text, *([two, one, two] for one, two in zip(arrays, other, strict=True)))
    for found, entry in zip(ranks[1], case["outputs"], strict=True):
        assert agrees(np.asarray(found), array(entry), case["rtol"])


def test_every_operation_has_a_known_answer() -> None:
    used = {opcode for case in CASES for opcode in re.findall(r"[\])}] ([a-z][a-z0-9-]*)\(", case["text"])}
    without = set(OPCODES) - used
    assert without == {
        "add-dependency", "after-all", "bitcast", "copy-start", "domain", "erf-inv", "erfc", "get-dimension-size", "opt-barrier",
        "optimization-barrier", "partition-id", "ragged-dot", "replica-id", "rng", "set-dimension-size", "square",
        "stochastic-convert",
    }  # fmt: skip


def test_the_comparison_can_fail() -> None:
    wanted = np.asarray([1.0, np.nan, np.inf], np.float32)
    assert agrees(wanted.copy(), wanted, 0.0)
    for wrong in ([1.1, np.nan, np.inf], [1.0, 0.0, np.inf], [1.0, np.nan, -np.inf]):
        assert not agrees(np.asarray(wrong, np.float32), wanted, 1e-6)
    assert not agrees(wanted.astype(np.float64), wanted, 1.0)
