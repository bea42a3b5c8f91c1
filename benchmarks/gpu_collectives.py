"""Collectives of several ranks on one GPU: are they right, how fast are they, and what does a graph save.

Peer of every collective: a copy on the device that reads and writes as many bytes as the collective must touch at least
(its floor), timed with the same events in the same run. Peer of a graph: the same steps issued one by one.

Right means: integer-valued data, whose sums are exact in every type, bit by bit as the numpy back end; and data of all sizes
folded in rank order, bit by bit as well. Every collective runs through a whole program, as `dtir run` does it, and through
its kernels alone, with results of their own for every rank, in place, and at addresses without alignment.

    python benchmarks/gpu_collectives.py --json record.json     # about 3 minutes on one GPU; needs cupy, numpy, pydantic
    python benchmarks/gpu_collectives.py --dry-run              # the same on devices played on the host: no times

Status: 0 all is right, 1 something is wrong, 2 there is no GPU or a package is missing.
"""

from __future__ import annotations

import argparse
import json
import platform
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import suppress
from dataclasses import dataclass, field
from datetime import UTC, datetime
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any

import numpy as np

ROOT = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT))
try:
    from dtir.execute import Options, Slab, load_backend, make_plan
    from dtir.execute.backends.cupy_ import CupyBackend
    from dtir.execute.backends.cupy_graph import capture
    from dtir.execute.backends.cupy_lane import Lane
    from dtir.execute.backends.cupy_moves import exchange_box
    from dtir.execute.backends.cupy_runtime import DeviceError, DeviceRuntime
    from dtir.execute.backends.cupy_session import DeviceSession
    from dtir.execute.binding import Binding, Seat
    from dtir.execute.data import output_leaves
    from dtir.execute.dtypes import numpy_dtype
    from dtir.execute.kernels import Launch, ReductionKind, blocks, fold, pairs, replicate
    from dtir.execute.steps import ExecPlan
    from dtir.execute.values import rows
    from dtir.importers.hlo.importer import import_hlo
except ImportError as error:
    sys.exit(f"gpu_collectives: {error}: see benchmarks/records/README.md for what this script needs")

SCHEMA, VERSION = "dtir.gpu-collectives", "1.0.0"
KIB, MIB = 1 << 10, 1 << 20
DTYPES = ("f32", "f64", "s32", "bf16", "f16")
RANKS = (1, 2, 3, 4, 8, 16)
KINDS = ("all-reduce", "reduce-scatter", "all-gather", "all-to-all", "collective-broadcast", "collective-permute")
SIZES = (64 * KIB, MIB, 16 * MIB, 64 * MIB, 256 * MIB)
GOAL, GOAL_BYTES = 0.85, 64 * MIB
"""From so many bytes a rank on, a collective is to reach this part of the copy's speed."""

PROGRAM = """HloModule m, num_partitions={k}
fold {{ a = {t}[] parameter(0)
 b = {t}[] parameter(1)
 ROOT c = {t}[] add(a, b) }}
ENTRY e {{ p = {t}[{n},{m}] parameter(0)
 ROOT r = {t}[{out}] {kind}(p), channel_id=1, {rest} }}"""


def plan_of(kind: str, k: int, dtype: str, block: int, width: int) -> ExecPlan:
    group = "{{" + ",".join(map(str, range(k))) + "}}"
    shape, out = (k * block, width), f"{k * block},{width}"
    rest = f"replica_groups={group}, use_global_device_ids=true"
    match kind:
        case "all-reduce":
            rest += ", to_apply=fold"
        case "reduce-scatter":
            rest, out = rest + ", dimensions={0}, to_apply=fold", f"{block},{width}"
        case "all-gather":
            rest, out = rest + ", dimensions={1}", f"{k * block},{k * width}"
        case "all-to-all":
            rest = f"replica_groups={group}, dimensions={{0}}"
        case "collective-broadcast":
            rest = f"replica_groups={group}"
        case _:
            rest = "source_target_pairs={" + ",".join(f"{{{r},{(r + 1) % k}}}" for r in range(k)) + "}"
    text = PROGRAM.format(k=k, t=dtype, n=shape[0], m=shape[1], out=out, kind=kind, rest=rest)
    program = import_hlo(text).program
    assert program is not None
    return make_plan(program).or_raise()


def data_of(k: int, shape: tuple[int, ...], dtype: str, *, exact: bool) -> np.ndarray:
    generator = np.random.default_rng((k, *shape))
    kind = numpy_dtype(dtype)
    if exact or kind.kind == "i":
        return generator.integers(-8, 9, (k, *shape)).astype(np.float64).astype(kind)
    scale = 10.0 ** generator.integers(-2, 3, (k, *shape))
    return (generator.standard_normal((k, *shape)) * scale).astype(np.float32).astype(kind)


def differing(found: np.ndarray, wanted: np.ndarray) -> int:
    """Elements whose bits differ."""
    if found.shape != wanted.shape or found.dtype != wanted.dtype:
        return max(found.size, wanted.size)
    one, two = (np.ascontiguousarray(array).reshape(-1).view(np.uint8) for array in (found, wanted))
    return int((one.reshape(found.size, -1) != two.reshape(found.size, -1)).any(axis=1).sum()) if found.size else 0


def run_plan(backend: Any, plan: ExecPlan, data: np.ndarray, binding: Binding | None = None) -> np.ndarray:
    session = backend.prepare(plan, binding or backend.default_binding(plan), Options())
    try:
        session.load_slot(plan.main.inputs[0], Slab(tuple(range(len(data))), data))
        session.start()
        for step in plan.main.steps:
            session.execute(step)
        session.sync()
        return np.stack([np.asarray(row) for row in rows(session.read_slot(output_leaves(plan)[0]))])
    finally:
        session.close()


@dataclass
class Bench:
    """One run of the script."""

    runtime: DeviceRuntime
    dry: bool
    budget_s: float
    most_bytes: int
    write: Callable[[dict[str, Any]], None]
    record: dict[str, Any] = field(default_factory=dict[str, Any])
    begun: float = field(default_factory=time.monotonic)

    @property
    def over(self) -> bool:
        return time.monotonic() - self.begun > self.budget_s

    def section(self, name: str, cases: Iterator[dict[str, Any]]) -> None:
        found: list[dict[str, Any]] = []
        self.record[name] = found
        for case in cases:
            found.append(case)
            print(name, json.dumps(case), flush=True)
            if self.over:
                self.record["left_out"].append(f"{name}: the time was over after {len(found)} cases")
                break
        self.write(self.record)

    def compile(self) -> None:
        """All kernels in one go: one by one they would take longer than all the rest."""
        forms = [(k, ko, alias) for k in (2, 3, 4, 8) for ko, alias in ((1, False), (k, False), (k, True))]
        self.runtime.compile(
            [
                fold(
                    [256 * m for m in range(k)], [256 * (m if alias else 100 + m) for m in range(ko)],
                    "i32" if dtype == "s32" else dtype, ReductionKind.SUM, 64, self.runtime.geometry(0),
                ).expression
                for dtype in DTYPES for k, ko, alias in forms
            ],
            0,
        )  # fmt: skip

    # -- right ---------------------------------------------------------------------------------------------------------

    def programs(self) -> Iterator[dict[str, Any]]:
        """Every collective x type x number of ranks, as a program."""
        backend, reference = CupyBackend(lambda: self.runtime), load_backend("numpy")
        for kind in KINDS:
            for dtype in DTYPES:
                for k in RANKS:
                    plan = plan_of(kind, k, dtype, 5, 37)
                    wrong: dict[str, int] = {}
                    for name, exact in (("integers", True), ("ordered", False)):
                        data = data_of(k, (5 * k, 37), dtype, exact=exact)
                        wanted = run_plan(reference, plan, data)
                        wrong[name] = differing(run_plan(backend, plan, data), wanted)
                    yield {"collective": kind, "dtype": dtype, "ranks": k, "wrong": wrong}

    def kernels(self) -> Iterator[dict[str, Any]]:
        """Kernels alone: a result for every rank, in place, and no alignment."""
        runtime, lane = self.runtime, Lane(self.runtime, 0)
        names = {"s32": "i32"}
        for dtype in DTYPES:
            for k in (2, 3, 4, 8):
                data = data_of(k, (1003,), dtype, exact=True)
                wanted = data.astype(np.float64).sum(axis=0).astype(data.dtype)
                for form in ("own results", "in place", "unaligned"):
                    with lane.computing():
                        skip = 1 if form == "unaligned" else 0
                        held = runtime.xp.zeros((k, 1003 + skip), data.dtype)
                        held[:, skip:] = runtime.to_device(data)
                        out = held if form == "in place" else runtime.xp.zeros((k, 1003 + skip), data.dtype)
                        size, row = data.dtype.itemsize, (1003 + skip) * data.dtype.itemsize
                        sources = [runtime.address(held) + r * row + skip * size for r in range(k)]
                        targets = [runtime.address(out) + r * row + skip * size for r in range(k)]
                        runtime.launch(
                            fold(sources, targets, names.get(dtype, dtype), ReductionKind.SUM, 1003, lane.geometry),
                            lane.compute,
                        )
                        found = runtime.to_host(out)[:, skip:]
                    yield {
                        "kernel": form,
                        "dtype": dtype,
                        "ranks": k,
                        "wrong": sum(differing(f, wanted) for f in found),
                    }

    def devices(self) -> Iterator[dict[str, Any]]:
        """Ranks on several GPUs: kernels on each, NCCL between them."""
        count = min(self.runtime.count, 8)
        backend, reference = CupyBackend(lambda: self.runtime), load_backend("numpy")
        for kind in KINDS if count > 1 else ():
            for dtype in DTYPES:
                k = 2 * count
                plan = plan_of(kind, k, dtype, 3, 37)
                data = data_of(k, (3 * k, 37), dtype, exact=True)
                binding = Binding("cupy", tuple(Seat(0, rank // 2) for rank in range(k)))
                wrong = differing(run_plan(backend, plan, data, binding), run_plan(reference, plan, data))
                yield {"collective": kind, "dtype": dtype, "ranks": k, "devices": count, "wrong": {"integers": wrong}}

    # -- fast ----------------------------------------------------------------------------------------------------------

    def seconds(self, lane: Lane, issue: Callable[[], None], floor_bytes: int) -> float:
        """Least time of one issue over five rounds, by the device's events."""
        repetitions = 1 if self.dry else max(3, min(200, (4 << 30) // max(floor_bytes, 1)))
        begin, end = self.runtime.event(0, timed=True), self.runtime.event(0, timed=True)
        best = float("inf")
        for round_ in range(2 if self.dry else 6):
            lane.compute.record(begin)
            for _ in range(repetitions):
                issue()
            lane.compute.record(end)
            end.synchronize()
            if round_:  # the first compiles and warms up
                best = min(best, end.since_ms(begin) * 1e-3 / repetitions)
        return best

    def speeds(self) -> Iterator[dict[str, Any]]:
        """Bytes a second against a copy of the same footprint."""
        runtime, lane = self.runtime, Lane(self.runtime, 0)
        for size in (4 * KIB, 20 * KIB) if self.dry else SIZES:
            for k in (2, 4, 8, 16):
                for dtype in ("f32", "bf16"):
                    if 2 * k * size > self.most_bytes:
                        self.record["left_out"].append(
                            f"{k} x {size // KIB} KiB {dtype}: more than {self.most_bytes} bytes"
                        )
                        continue
                    with lane.computing():
                        yield from self._speed(lane, k, size, dtype)
                        lane.compute.synchronize()
                    lane.arena.close()
        del runtime

    def _speed(self, lane: Lane, k: int, size: int, dtype: str) -> Iterator[dict[str, Any]]:
        runtime, kind = self.runtime, numpy_dtype(dtype)
        count = size // kind.itemsize
        tile = np.random.default_rng(k).integers(-8, 9, (k, min(count, 4096))).astype(np.float32).astype(kind)
        source, target = runtime.xp.zeros((k, count), kind), runtime.xp.zeros((k, count), kind)
        source[:, : tile.shape[1]] = runtime.to_device(tile)
        a, b = runtime.address(source), runtime.address(target)
        sources, targets = [a + r * size for r in range(k)], [b + r * size for r in range(k)]
        geometry = lane.geometry
        box, source_step, target_step = exchange_box((count,), 0, 0, k, kind.itemsize)
        total = tile.astype(np.float64).sum(axis=0).astype(kind)

        def sums(results: int) -> list[Launch]:
            return [fold(sources, targets[:results], dtype, ReductionKind.SUM, count, geometry)]

        cases: list[tuple[str, int, list[Launch], Callable[[], np.ndarray], np.ndarray]] = [
            ("all_reduce", 2 * k * size, sums(k), lambda: target[k - 1], total),
            ("all_reduce, one result", (k + 1) * size, sums(1), lambda: target[0], total),
            ("replicate", (k + 1) * size, replicate(a, targets, size, geometry), lambda: target[k - 1], tile[0]),
            (
                "all_to_all", 2 * k * size, blocks(sources, targets, box, source_step, target_step, geometry),
                lambda: target[0], tile[0],
            ),
            ("permute", 2 * k * size, pairs(sources, targets[1:] + targets[:1], size, geometry), lambda: target[1], tile[0]),
        ]  # fmt: skip
        for name, floor_bytes, launches, result, wanted in cases:
            half = floor_bytes // 2
            # The same footprint: half of it read, half written; both lie in what the collective uses.
            copied = self.seconds(
                lane, lambda half=half: runtime.copy(b, a, min(half, k * size), lane.compute), floor_bytes
            )
            copied *= half / min(half, k * size)

            def issue(launches: list[Launch] = launches) -> None:
                for launch in launches:
                    runtime.launch(launch, lane.compute)

            taken = self.seconds(lane, issue, floor_bytes)
            head = min(len(wanted), 64 if name == "all_to_all" else len(wanted), count // k)
            found = runtime.to_host(result()[:head])
            row: dict[str, Any] = {
                "collective": name, "dtype": dtype, "ranks": k, "bytes_a_rank": size, "floor_bytes": floor_bytes,
                "wrong": differing(found, wanted[:head]),
            }  # fmt: skip
            if not self.dry:
                row |= {
                    "us": taken * 1e6, "copy_us": copied * 1e6, "bytes_a_second": floor_bytes / taken,
                    "of_copy": copied / taken,
                }  # fmt: skip
            yield row

    def graphs(self) -> Iterator[dict[str, Any]]:
        """64 small collectives issued one by one, and as one graph."""
        steps, k, count = 64, 8, 4096
        lines = [f" v0 = f32[{count}] parameter(0)"] + [
            f" {'ROOT ' if turn == steps - 1 else ''}v{turn + 1} = f32[{count}] all-reduce(v{turn}), channel_id={turn + 1}, "
            f"replica_groups={{{{{','.join(map(str, range(k)))}}}}}, use_global_device_ids=true, to_apply=fold"
            for turn in range(steps)
        ]
        text = "HloModule m, num_partitions=8\nfold { a = f32[] parameter(0)\n b = f32[] parameter(1)\n"
        text += " ROOT c = f32[] maximum(a, b) }\nENTRY e {\n" + "\n".join(lines) + " }"
        program = import_hlo(text).program
        assert program is not None
        plan = make_plan(program).or_raise()
        data = data_of(k, (count,), "f32", exact=True)
        session = CupyBackend(lambda: self.runtime).prepare(
            plan, Binding("cupy", tuple(Seat(0, 0) for _ in range(k))), Options()
        )
        assert isinstance(session, DeviceSession)
        session.load_slot(plan.main.inputs[0], Slab(tuple(range(k)), data))
        held = session.held()

        def eager() -> None:
            session.hold(held)
            for step in plan.main.steps:
                session.execute(step)
            session.lane.join()

        one = self.seconds(session.lane, eager, 1 << 26)
        session.hold(held)
        captured = capture(session)
        graph = self.seconds(session.lane, captured.launch, 1 << 26)
        session.sync()
        (found, *_) = rows(session.read_slot(output_leaves(plan)[0]))
        row: dict[str, Any] = {"steps": steps, "ranks": k, "bytes_a_rank": 4 * count}
        row["wrong"] = differing(np.asarray(found), data.max(axis=0))
        yield row if self.dry else row | {"eager_us": one * 1e6, "graph_us": graph * 1e6}
        session.close()


def wrong_in(record: dict[str, Any]) -> int:
    """Elements that are wrong, over all cases."""
    total = 0
    for name in ("programs", "kernels", "devices", "speeds", "graphs"):
        for case in record.get(name, ()):
            wrong = case["wrong"]
            total += sum(wrong.values()) if isinstance(wrong, dict) else wrong
    return total


def short_of_goal(record: dict[str, Any]) -> list[str]:
    return [
        f"{case['collective']} {case['ranks']} x {case['bytes_a_rank'] // MIB} MiB {case['dtype']}: {case['of_copy']:.0%} of the copy"
        for case in record.get("speeds", ())
        if case["bytes_a_rank"] >= GOAL_BYTES and case.get("of_copy", GOAL) < GOAL
    ]


def head(runtime: DeviceRuntime, reason: str, commit: str | None, dry: bool) -> dict[str, Any]:
    facts = runtime.facts(0)
    return {
        "schema": SCHEMA, "version": VERSION, "dry_run": dry, "when": datetime.now(UTC).isoformat(timespec="seconds"),
        "commit": commit or commit_here(),
        "device": {
            "name": facts.name, "architecture": facts.architecture, "multiprocessors": facts.multiprocessors,
            "memory_bytes": facts.total_bytes, "count": runtime.count,
        },
        "software": {"probe": reason, "python": platform.python_version(), "system": platform.platform(), **versions()},
        "goal": {"of_copy": GOAL, "from_bytes_a_rank": GOAL_BYTES}, "left_out": [],
    }  # fmt: skip


def versions() -> dict[str, str]:
    found: dict[str, str] = {}
    for name in ("numpy", "ml_dtypes", "cupy-cuda13x", "cupy-cuda12x", "nvidia-nccl-cu13"):
        with suppress(PackageNotFoundError):
            found[name] = version(name)
    with suppress(ImportError, RuntimeError, AttributeError):
        import cupy

        runtime, compiler = cupy.cuda.runtime, cupy.cuda.nvrtc
        found |= {"cuda": str(runtime.runtimeGetVersion()), "driver": str(runtime.driverGetVersion())}
        found["nvrtc"] = ".".join(map(str, compiler.getVersion()))
    return found


def commit_here() -> str | None:
    """The commit that is checked out, with ``+`` where files differ from it; None outside of a repository."""
    git = ["git", "-C", str(ROOT)]
    try:
        found = subprocess.run([*git, "rev-parse", "HEAD"], capture_output=True, text=True, check=True).stdout.strip()
        changed = subprocess.run(
            [*git, "status", "--porcelain", "-uno"], capture_output=True, text=True, check=True
        ).stdout
    except (OSError, subprocess.CalledProcessError):
        return None
    return found + ("+" if changed.strip() else "")


def main(arguments: list[str] | None = None, runtime: DeviceRuntime | None = None) -> int:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--json", type=Path, help="where to write the record")
    parser.add_argument("--dry-run", action="store_true", help="on devices played on the host, a few small cases")
    parser.add_argument("--budget-s", type=float, default=240.0, help="begin no further case after so many seconds")
    parser.add_argument("--max-gib", type=float, default=16.0, help="memory of one case at most")
    parser.add_argument("--commit", help="what was measured, where git is not at hand")
    options = parser.parse_args(arguments)
    reason = "devices played on the host"
    if not options.dry_run:
        probe = load_backend("cupy").probe()
        reason = probe.reason
        if not probe.ok:
            print(f"gpu_collectives: {probe.reason}", file=sys.stderr)
            return 2
    if runtime is None:
        runtime = CupyBackend().runtime if not options.dry_run else _played()

    def write(record: dict[str, Any]) -> None:
        if options.json is not None:
            options.json.write_text(json.dumps(record, indent=1) + "\n", encoding="utf-8")

    bench = Bench(runtime, options.dry_run, options.budget_s, int(options.max_gib * 2**30), write)
    bench.record = head(runtime, reason, options.commit, options.dry_run)
    bench.compile()
    for name in ("programs", "kernels", "devices", "graphs", "speeds"):
        try:
            bench.section(name, getattr(bench, name)())
        except (DeviceError, RuntimeError, MemoryError) as error:
            bench.record.setdefault("failed", {})[name] = f"{type(error).__name__}: {error}"[:500]
            print(name, "failed:", error, file=sys.stderr, flush=True)
    record = bench.record
    record |= {"wrong": wrong_in(record), "short_of_goal": short_of_goal(record)}
    record["seconds"] = round(time.monotonic() - bench.begun, 1)
    write(record)
    print(
        f"{record['wrong']} elements wrong; {len(record['short_of_goal'])} cases short of the goal; {record['seconds']} s"
    )
    return 1 if record["wrong"] or "failed" in record else 0


def _played() -> DeviceRuntime:
    from dtir.execute.backends.cupy_host import HostRuntime

    return HostRuntime(2)


if __name__ == "__main__":
    sys.exit(main())
