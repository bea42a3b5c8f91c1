"""How fast HLO text becomes a program, as ratios in one run.

Peer: one regular expression that finds the head of every instruction in the same text, the least that any reader must do.
Inputs: a generated training step of 1 000, 10 000 and 100 000 instructions (0.15 to 15 MB) with the print forms of a real
dump, or the files named on the command line.

    python benchmarks/bench_hlo.py [FILE...]      # a table: medians, and ratios to the peer
    pytest benchmarks/bench_hlo.py                # the same stages with pytest-benchmark
"""

from __future__ import annotations

import gzip
import re
import statistics
import sys
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from dtir.importers.hlo import analyse_text, import_hlo
from dtir.importers.hlo.reader import read_text

SIZES = (1_000, 10_000, 100_000)
_HEAD = re.compile(r"^\s*(?:ROOT )?%?([\w.\-]+) = (\(.*?\)|\S+) ([a-z][\w\-]*)\(", re.MULTILINE)

STAGES: dict[str, Callable[[str], object]] = {
    "find heads (peer)": _HEAD.findall,
    "read": read_text,
    "read and check": analyse_text,
    "import": import_hlo,
}

_HEADER = """HloModule jit_step, num_partitions=64

%add (x: f32[], y: f32[]) -> f32[] {
  %x = f32[] parameter(0)
  %y = f32[] parameter(1)
  ROOT %add.0 = f32[] add(%x, %y)
}

ENTRY %main (h: bf16[8,1024], w: bf16[1024,128]) -> bf16[8,1024] {
  %h = bf16[8,1024]{1,0} parameter(0), sharding={devices=[8,8]<=[64]}
  %w = bf16[1024,128]{1,0} parameter(1), sharding={devices=[1,8,8]<=[64] last_tile_dim_replicate}
"""
_META = 'metadata={op_name="jit(step)/layer_N/KIND" source_file="model.py" source_line=17}'
_GROUPS = "channel_id=N, use_global_device_ids=true, replica_groups="
_LAYER = "\n".join(
    f"  {line}"
    for line in (
        f"%all-gather.N = bf16[1024,1024]{{1,0}} all-gather(%w), dimensions={{1}}, {_GROUPS}[8,8]<=[64], {_META}",
        "%dot.N = bf16[8,1024]{1,0} dot(%PREVIOUS, %all-gather.N), lhs_contracting_dims={1}, rhs_contracting_dims={0}, "
        + _META,
        "%constant.N = f32[] constant(0)",
        "%convert.N = f32[8,1024]{1,0} convert(%dot.N)",
        f"%tanh.N = f32[8,1024]{{1,0}} tanh(%convert.N), {_META}",
        "%reduce.N = f32[8]{0} reduce(%tanh.N, %constant.N), dimensions={1}, to_apply=%add",
        f"%all-reduce.N = f32[8]{{0}} all-reduce(%reduce.N), {_GROUPS}mesh['dp'=8,'tp'=8] {{'tp'}}, to_apply=%add",
        "%broadcast.N = f32[8,1024]{1,0} broadcast(%all-reduce.N), dimensions={0}",
        "%divide.N = f32[8,1024]{1,0} divide(%tanh.N, %broadcast.N)",
        "%out.N = bf16[8,1024]{1,0} convert(%divide.N)",
        "",
    )
)


def training_step(instructions: int) -> str:
    """A module with about as many instructions, ten a layer."""
    layers = [
        _LAYER.replace("PREVIOUS", f"out.{number - 1}" if number else "h").replace("N", str(number))
        for number in range(instructions // 10)
    ]
    return _HEADER + "".join(layers) + "}\n"


def read(path: Path) -> str:
    return gzip.decompress(path.read_bytes()).decode() if path.suffix == ".gz" else path.read_text()


def median_s(work: Callable[[str], object], text: str, rounds: int = 5) -> float:
    times: list[float] = []
    for _ in range(rounds):
        begin = time.perf_counter()
        work(text)
        times.append(time.perf_counter() - begin)
    return statistics.median(times)


def main(arguments: list[str]) -> None:
    if arguments:
        texts = {Path(argument).name: read(Path(argument)) for argument in arguments}
    else:
        texts = {f"generated, {size} instructions": training_step(size) for size in SIZES}
    print(f"{'input':40} {'MB':>6} {'instr':>7} " + " ".join(f"{stage:>18}" for stage in STAGES))
    for name, text in texts.items():
        times = [median_s(work, text) for work in STAGES.values()]
        cells = [f"{took:8.3f}s {took / times[0]:6.1f}x" for took in times]
        found = len(_HEAD.findall(text))
        print(f"{name[:40]:40} {len(text) / 1e6:6.2f} {found:7} " + " ".join(f"{cell:>18}" for cell in cells))


@pytest.mark.parametrize("stage", STAGES)
@pytest.mark.parametrize("size", SIZES[:2])
def test_stage(benchmark: Callable[..., object], size: int, stage: str) -> None:
    text = training_step(size)
    found = import_hlo(text)
    assert found.diagnostics.errors == ()
    assert found.program is not None
    benchmark(STAGES[stage], text)


if __name__ == "__main__":
    main(sys.argv[1:])
