"""HLO files with known answers: the fixtures beside this file, and the shared real files where they are present."""

from __future__ import annotations

import gzip
import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any

FIXTURES = Path(__file__).parent / "fixtures"
COLLECTIVES = {
    "all-reduce",
    "all-gather",
    "all-to-all",
    "reduce-scatter",
    "collective-permute",
    "collective-broadcast",
    "ragged-all-to-all",
}


@dataclass(frozen=True)
class HloFile:
    """A text with what is known about each of its modules."""

    text: str
    truths: list[dict[str, Any]]


def read(path: Path) -> str:
    return gzip.decompress(path.read_bytes()).decode() if path.suffix == ".gz" else path.read_text()


def truth_path(path: Path) -> Path | None:
    """The truth file of an HLO file: named by its program, or by itself."""
    name = path.name.removesuffix(".gz").removesuffix(".hlo")
    candidates = [name, name.rpartition(".")[0], name.split(".")[0]]
    found = [path.parent / f"{stem}.truth.json" for stem in candidates if stem]
    return next((candidate for candidate in found if candidate.exists()), None)


def load(path: Path) -> HloFile | None:
    """The file with its truth; None for one without."""
    truth = truth_path(path)
    if truth is None:
        return None
    known = json.loads(truth.read_text())
    if "truth" in known:
        return HloFile(read(path), known["truth"] if isinstance(known["truth"], list) else [known["truth"]])
    part = known.get("files", {}).get(path.name)
    return HloFile(read(path), [part]) if part is not None else None


def with_truth(paths: list[Path]) -> list[Path]:
    return [path for path in paths if truth_path(path) is not None]


def fixture_paths() -> list[Path]:
    return sorted(FIXTURES.glob("*.hlo"))


def module_records(folder: Path) -> list[dict[str, Any]]:
    """Every record of the shared collections of test modules."""
    records: list[dict[str, Any]] = []
    for path in sorted((folder / "inputs/hlo_public/xla_test_modules").glob("*.jsonl.gz")):
        records += map(json.loads, gzip.decompress(path.read_bytes()).decode().splitlines())
    return records
