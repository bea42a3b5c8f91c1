"""``dtir calibrate``: measure this machine and write a profile of it."""

from __future__ import annotations

import argparse
import statistics
from collections.abc import Mapping, Sequence
from dataclasses import replace
from datetime import UTC
from pathlib import Path
from typing import TYPE_CHECKING, Any

from dtir.cli.command import OK, Command, Console, Failure, add_format, failure

if TYPE_CHECKING:  # what a command needs is loaded when it runs
    from dtir.cost.calibrate import Measured, Plan
    from dtir.cost.profile import MachineProfile
    from dtir.execute.record import RunRecord
    from dtir.execute.runner import Timing
    from dtir.ir.program import DistributedTaskIR

MOST_BYTES = 16 << 20

LOCAL_STEPS = 30
"""Steps of a program, and repetitions of it, that tell what starting a step costs."""


def _configure(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("-o", "--output", required=True, metavar="PROFILE.json", help="where to write the profile")
    parser.add_argument("--backend", default="numpy", metavar="NAME", help="numpy (default), mpi")
    parser.add_argument("-n", "--ranks", type=int, default=4, metavar="N", help="largest group (default: 4)")
    parser.add_argument(
        "--max-bytes", type=int, default=MOST_BYTES, metavar="B", help="largest message (default: 16 MiB)"
    )
    parser.add_argument("--reps", type=int, default=12, metavar="N", help="repetitions of large messages (default: 12)")
    parser.add_argument("--id", metavar="NAME", help="name of the profile (default: from the machine)")
    add_format(parser, "text", "json")


def _run(options: argparse.Namespace, console: Console) -> int:
    from dtir.cli import render_json
    from dtir.cli.writing import write
    from dtir.cost.calibrate import calibrated, local_rates
    from dtir.cost.profile_json import profile_json

    plan = _plan(options)
    _check_backend(options.backend)
    folder = Path(options.output).resolve().parent
    if options.output == "-":
        raise failure("cli.usage", "the profile cannot go to standard output", hint="give -o a file name")
    if not folder.is_dir():
        raise failure("cli.output", f"{options.output}: there is no folder {folder}", hint="make the folder first")
    sweeps = _Sweeps(options.backend, console, len(plan.sweeps))
    measured = sweeps.run(plan)
    rates = replace(local_rates(), start_s=sweeps.start_s(options.ranks))
    profile = calibrated(_machine(options, sweeps), measured.curves, rates)
    write(options.output, profile_json(profile), console)
    if options.format == "json":
        console.out.write(render_json.text(_tree(options.output, profile, measured)))
    else:
        console.out.write("\n".join(_lines(options.output, profile, measured, console)) + "\n")
    return OK


def _plan(options: argparse.Namespace) -> Plan:
    from dtir.cost.calibrate import SIZES, Plan

    if options.ranks < 2:
        raise failure("cli.usage", f"-n {options.ranks}: a group has at least 2 ranks", hint="give -n 2 or more")
    sizes = tuple(size for size in SIZES if size <= options.max_bytes)
    if len(sizes) < 6:
        raise failure(
            "cli.usage", f"--max-bytes {options.max_bytes} leaves {len(sizes)} sizes", hint="give at least 256"
        )
    if options.reps < 1:
        raise failure("cli.usage", f"--reps {options.reps}: at least 1", hint="give --reps 12")
    groups = [1 << power for power in range(1, options.ranks.bit_length()) if 1 << power <= options.ranks]
    held_out = tuple(3 * size // 2 for size in sizes[2:-1:3])
    return Plan(group_sizes=tuple(dict.fromkeys([*groups, options.ranks])), sizes=sizes, held_out=held_out,
                repetitions=options.reps)  # fmt: skip


def _check_backend(name: str) -> None:
    from dtir.execute.backends import BackendError, load_backend

    try:
        probe = load_backend(name).probe()
    except BackendError as error:
        raise failure("run.backend", str(error), hint="choose one of them with --backend") from None
    if not probe.ok:
        raise failure(
            "run.backend", f"the {name} back end cannot run here: {probe.reason}", hint="install what it needs"
        )


class _Sweeps:
    """Runs sweeps on a back end, with a progress line."""

    def __init__(self, backend: str, console: Console, total: int) -> None:
        self._backend = backend
        self._console = console
        self._total = total
        self.library = ""
        self.environment: Mapping[str, Any] = {}

    def run(self, plan: Plan) -> Measured:
        """All sweeps of a plan."""
        from dtir.cli.progress import Progress
        from dtir.cost.calibrate import measure_curves

        with Progress(self._console, self._total) as progress:

            def note(done: int, of: int, label: str) -> None:
                progress.step(label)

            return measure_curves(self.measure, plan, note)

    def start_s(self, ranks: int) -> float:
        """What a local step costs on one rank whatever it computes: a negation of one number, run as any step is run."""
        from dtir.execute.runner import Timing
        from dtir.ir.builder import ProgramBuilder

        build = ProgramBuilder("start", axes={"x": ranks})
        value = build.input("x", (1,), "f32", varying=("x",))
        for number in range(LOCAL_STEPS):
            result = build.value(f"y{number}", (1,), "f32", varying=("x",))
            build.task("hlo.negate", (value,), (result,), name=f"negate{number}")
            value = result
        build.output(value)
        record = self._run(build.build(), Timing(LOCAL_STEPS, warmup=2), skip_local=False)
        columns = record.local_records
        together = ranks if self._backend != "mpi" else 1
        times = sorted(
            (end - start) * 1e-9 / together for start, end in zip(columns.start_ns, columns.end_ns, strict=True)
        )
        return times[len(times) // 10]

    def measure(self, program: DistributedTaskIR, repetitions: int) -> Mapping[str, Sequence[float]]:
        """Seconds of every task and repetition: the slowest of its ranks, all begun together."""
        from dtir.execute.runner import Timing

        record = self._run(program, Timing(repetitions, warmup=2, isolated=True), skip_local=True)
        self.library = str(record.backend["library"])
        self.environment = record.environment
        names = {entry.index: entry.name for entry in record.steps}
        longest: dict[tuple[str, int], int] = {}
        columns = record.records
        for place, step in enumerate(columns.step):
            key = (names[step], columns.repetition[place])
            longest[key] = max(longest.get(key, 0), columns.end_ns[place] - columns.start_ns[place])
        found: dict[str, list[float]] = {}
        for (name, _), nanoseconds in longest.items():
            found.setdefault(name, []).append(nanoseconds * 1e-9)
        return found

    def _run(self, program: DistributedTaskIR, timing: Timing, *, skip_local: bool) -> RunRecord:
        from dtir.execute.launch import LaunchError
        from dtir.execute.run import Request, prepare_run, run_prepared
        from dtir.schema.result import Err

        ranks = program.mesh.size if self._backend == "mpi" else None
        request = Request(backend=self._backend, processes=ranks, timing=timing, compare=False, skip_local=skip_local)
        prepared = prepare_run(program, request)
        if isinstance(prepared, Err):
            raise Failure(prepared.error)
        try:
            report = run_prepared(prepared.value)
        except LaunchError as error:
            raise failure("run.launch", str(error), hint="see python -m mpi4py --mpi-library") from None
        if report.record is None or not report.record.complete:
            raise Failure(report.findings)
        return report.record


def _machine(options: argparse.Namespace, sweeps: _Sweeps) -> Any:
    import platform
    from datetime import datetime

    from dtir.cost.calibrate import Machine

    date = datetime.now(UTC).date().isoformat()
    environment = sweeps.environment
    cpus = int(environment.get("cpus") or 0)
    name = options.id or f"{options.backend}-{platform.machine()}-{cpus}cpu"
    load = next(iter(environment.get("load", ())), None)
    host: dict[str, str | int | float] = {
        "library": sweeps.library,
        "machine": platform.machine(),
        "system": platform.system(),
        "cpus": cpus,
        "python": platform.python_version(),
        **({"load": float(load)} if load is not None else {}),
    }
    source = (
        f"dtir calibrate --backend {options.backend} -n {options.ranks}: f32, isolated, the slowest rank of each "
        f"repetition, 10th percentile of {options.reps} to {4 * options.reps}; local rates by numpy, the start of a step by running it"
    )
    if options.backend == "numpy":
        source += (
            ". All ranks are in one process and share what they can: these are times of the reference, of no network"
        )
    return Machine(name, f"{sweeps.library} on {cpus} cpus, groups up to {options.ranks}", date, source, host)


def _tree(path: str, profile: MachineProfile, measured: Measured) -> dict[str, Any]:
    from dtir.cost.profile_json import profile_tree

    absolute = [abs(error) for error in measured.errors]
    return {
        "written": path,
        "id": profile.id,
        "curves": [
            {"op": item.op, "group_size": item.group_size, "segments": len(item.segments), "fit_error": item.fit_error}
            for item in profile.curves
        ],
        "held_out": {
            "sizes": len(absolute),
            "median_error": statistics.median(absolute) if absolute else None,
            "median_spread": statistics.median(measured.spread) if measured.spread else None,
        },
        "rates": profile_tree(profile)["rates"],
    }


def _lines(path: str, profile: MachineProfile, measured: Measured, console: Console) -> list[str]:
    from dtir.cli.cost_text import time_text
    from dtir.cli.terminal import size_text, table

    cells: list[list[str]] = []
    for curve in profile.curves:
        segments = "; ".join(
            f"from {size_text(item.from_bytes)}: {time_text(item.alpha_s)} + {_rate(item.beta_s_per_byte)}"
            for item in curve.segments
        )
        spread = statistics.median(item.relative for item in curve.noise)
        cells.append(
            [
                curve.op,
                str(curve.group_size),
                segments,
                f"{100 * (curve.fit_error or 0):.1f} %",
                f"{100 * spread:.0f} %",
            ]
        )
    lines = table(
        ["op", "ranks", "time of a message", "fit error", "noise"], cells, right=(1, 3, 4), style=console.style
    )
    if measured.errors:
        error = statistics.median(abs(item) for item in measured.errors)
        spread = statistics.median(measured.spread)
        lines.append(
            f"on {len(measured.errors)} sizes that were held out: median error {100 * error:.1f} %, "
            f"noise of those measurements {100 * spread:.0f} % (IQR over median)"
        )
    lines.append(f"written {path} ({profile.id})")
    return lines


def _rate(beta_s_per_byte: float) -> str:
    return f"{1e-9 / beta_s_per_byte:.3g} GB/s" if beta_s_per_byte else "nothing a byte"


COMMAND = Command("calibrate", "measure this machine and write a profile for dtir cost", _configure, _run)
"""The command."""
