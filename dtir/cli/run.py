"""``dtir run``: execute a program, compare what comes out and what it took with what was planned."""

from __future__ import annotations

import argparse
import os
from pathlib import Path
from typing import TYPE_CHECKING

from dtir.cli.command import FINDINGS, OK, Command, Console, Failure, add_format, failure, has_errors
from dtir.cli.systems import add_system

if TYPE_CHECKING:  # `dtir --help` need not load the executors
    from contextlib import AbstractContextManager

    from dtir.execute.archive import Archive
    from dtir.execute.binding import Binding
    from dtir.execute.placement import Placement
    from dtir.execute.run import Prepared, Report
    from dtir.importers import Imported

SIBLINGS = ((".spmd.", ".sharded."),)
"""How the dump of a module after partitioning, and that before it, are named by XLA's users here."""


PROFILED = (5, 1)
"""Repetitions and warm-up of runs that are compared with planned times, unless said otherwise."""


def _count(text: str) -> int:
    try:
        number = int(text)
    except ValueError:
        raise argparse.ArgumentTypeError(f"{text!r} is no whole number") from None
    if number < 0:
        raise argparse.ArgumentTypeError(f"{number} is negative")
    return number


def _positive(text: str) -> int:
    number = _count(text)
    if number == 0:
        raise argparse.ArgumentTypeError("0 is too few")
    return number


def _seconds(text: str) -> float:
    try:
        number = float(text)
    except ValueError:
        raise argparse.ArgumentTypeError(f"{text!r} is no number of seconds") from None
    if not 0 < number < float("inf"):
        raise argparse.ArgumentTypeError(f"{text} must be a positive number of seconds")
    return number


def _configure(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "file", metavar="FILE", help="a program, recognised by content; - is standard input; .gz is read through"
    )
    parser.add_argument("--program", metavar="NAME", help="which program, of a file that holds several")
    add_system(parser)
    parser.add_argument("--backend", default="numpy", metavar="NAME", help="numpy (default), mpi, cupy")
    parser.add_argument("-n", "--processes", type=_positive, metavar="N", help="processes to spread the ranks over")
    parser.add_argument("--binding", metavar="FILE", help="which rank lives where (JSON)")
    parser.add_argument(
        "--stall-after",
        type=_seconds,
        metavar="S",
        help="mpi: a communication step that waits so long is a hang, and ends the run (default: 30, or 20 times the plan)",
    )
    parser.add_argument("--timeout", type=_seconds, metavar="S", help="mpi: end the run after so many seconds")
    parser.add_argument("--inputs", metavar="X.npz", help="global arrays in0, in1, ... (default: made from --seed)")
    parser.add_argument("--outputs", metavar="Y.npz", help="where to write the global arrays out0, out1, ...")
    parser.add_argument(
        "--layouts",
        metavar="FILE",
        help="the module before partitioning, for the layouts of the outputs (default: X.sharded.hlo beside X.spmd.hlo)",
    )
    parser.add_argument(
        "--profile",
        metavar="P",
        help="compare with the times planned on a machine: a preset, or a profile file of dtir calibrate",
    )
    parser.add_argument("--seed", type=_count, default=0, metavar="N", help="root of generated data (default: 0)")
    parser.add_argument(
        "--reps",
        type=_positive,
        metavar="N",
        help=f"measured repetitions (default: 1; with --profile {PROFILED[0]}, so that there is a noise to compare with)",
    )
    parser.add_argument(
        "--warmup", type=_count, metavar="N", help=f"repetitions before them (default: 0; with --profile {PROFILED[1]})"
    )
    parser.add_argument(
        "--timing",
        choices=("free", "isolated"),
        default="free",
        help="let ranks go as they come, or wait for all before every communication (default: free)",
    )
    parser.add_argument(
        "--algorithm",
        choices=("native", "ordered"),
        default="native",
        help="collectives as the library does them, or in rank order, bit by bit reproducible (default: native)",
    )
    parser.add_argument(
        "--op-module",
        action="append",
        default=[],
        metavar="M",
        help="a Python module (or X.py) with operators of your own, a tuple OPS of (dialect, OpDef); may be repeated",
    )
    parser.add_argument(
        "--check",
        action="store_true",
        help="compare the results of every collective with the reference (#wrong), in a repetition that is not measured",
    )
    parser.add_argument("--skip-local", action="store_true", help="run communication only")
    parser.add_argument(
        "--memory-limit", type=_positive, metavar="BYTES", help="memory that may be used (default: what is free)"
    )
    parser.add_argument("-o", "--output", metavar="RUN.json", help="where to write the run record")
    parser.add_argument("--all", action="store_true", help="text: every collective, output and finding")
    add_format(parser, "text", "json")


def _run(options: argparse.Namespace, console: Console) -> int:
    from dtir.cli import render_json, render_run

    if options.backend == "mpi":
        console = _first_only(console)
    elif options.timeout or options.stall_after:
        raise failure(
            "cli.usage", "--timeout and --stall-after are for runs in several processes", hint="add --backend mpi"
        )
    _load_operators(options.op_module, console)
    from dtir.cli.inputs import load_one
    from dtir.execute.record import record_bytes
    from dtir.execute.runner import Interrupted

    _settle_repetitions(options)
    imported = load_one(options.file, options.program, console, options.system)
    if imported.program is None:
        raise Failure(imported.diagnostics)
    if not imported.diagnostics.ok:
        # A program that was not understood in full is not run: what is missing could change what it computes.
        raise Failure(imported.diagnostics)
    with _atoms(options) as inputs:
        options.inputs = inputs
        prepared = _prepared(imported, options)
    for name in (options.outputs, options.output):
        _check_target(name)
    try:
        report = _execute(prepared, console)
    except Interrupted as interrupted:
        if options.output:
            _write(options.output, record_bytes(interrupted.record, options.output))
            console.err.write(f"dtir: interrupted; {options.output} holds the steps that were done\n")
        raise
    if options.outputs and report.record is not None:
        from dtir.execute.archive import pack

        _write(options.outputs, pack(report.arrays()))
    if options.output and report.record is not None:
        _write(options.output, record_bytes(report.record, options.output))
    if options.format == "json":
        console.out.write(render_json.text(render_run.report(report)))
    else:
        lines = render_run.lines(
            report, label=imported.label, how=_how(options), show_all=options.all, style=console.style
        )
        console.out.write("\n".join(lines) + "\n")
    return FINDINGS if has_errors(report.findings) else OK


def _atoms(options: argparse.Namespace) -> AbstractContextManager[str | None]:
    """The inputs: as given, else the atoms of the system."""
    from contextlib import nullcontext

    options.atoms = options.system is not None and options.inputs is None
    if options.system is None or options.inputs is not None:
        return nullcontext(options.inputs)
    from dtir.cli.systems import inputs_of

    return inputs_of(options.file, options.system)


def _settle_repetitions(options: argparse.Namespace) -> None:
    reps, warmup = PROFILED if options.profile is not None else (1, 0)
    options.reps = reps if options.reps is None else options.reps
    options.warmup = warmup if options.warmup is None else options.warmup


def _load_operators(names: list[str], console: Console) -> None:
    """Operators of the person's own, and of installed packages: before the program is read, which may use them."""
    from dtir.ops import OpModuleError, load_installed, load_op_module

    for problem in load_installed():
        console.err.write(f"dtir: warning: {problem}\n")
    for name in names:
        try:
            load_op_module(name)
        except OpModuleError as error:
            raise failure("run.op_module", str(error), hint="see dtir.ops.modules for what it has to hold") from None


def _first_only(console: Console) -> Console:
    """Of several processes that mpiexec or srun has started, the first one speaks for all."""
    from dtir.execute.launch import is_follower

    if not is_follower():
        return console
    nowhere = open(os.devnull, "w", encoding="utf-8")  # noqa: SIM115 - as long as the process runs
    return Console(nowhere, nowhere, console.environment)


def _how(options: argparse.Namespace) -> str:
    data = f"inputs from {options.inputs}" if options.inputs else f"data of seed {options.seed}"
    if options.system and options.atoms:
        data = f"atoms of {options.system}"
    skipped = ", communication only" if options.skip_local else ""
    return f"{data}, {options.reps} repetition{'s' if options.reps > 1 else ''}{skipped}"


def _prepared(imported: Imported, options: argparse.Namespace) -> Prepared:
    from dataclasses import replace

    from dtir.execute.run import Request, prepare_run
    from dtir.execute.runner import Timing
    from dtir.schema.result import Err

    assert imported.program is not None
    request = Request(
        backend=options.backend,
        processes=options.processes,
        binding=_binding(options.binding),
        inputs=_archive(options.inputs),
        seed=options.seed,
        timing=Timing(options.reps, options.warmup, options.timing == "isolated"),
        algorithm=options.algorithm,
        skip_local=options.skip_local,
        memory_limit=options.memory_limit,
        limit_s=options.stall_after,
        timeout_s=options.timeout,
        partial=options.output,
        check=options.check,
    )
    profile = None
    if options.profile is not None:
        from dtir.cli.cost import load_profile

        profile = load_profile(options.profile)  # what is wrong with it is said before anything is planned
    prepared = prepare_run(imported.program, request)
    if isinstance(prepared, Err):
        raise Failure(prepared.error)
    layouts = _layouts(prepared.value, options)
    request = replace(request, layouts=layouts) if layouts else request
    if profile is not None:
        from dtir.cli.planned import forecast

        planned = forecast(prepared.value.plan, profile)
        if isinstance(planned, Err):
            raise Failure(planned.error)
        request = replace(request, forecast=planned.value)
    return replace(prepared.value, request=request)


def _layouts(prepared: Prepared, options: argparse.Namespace) -> dict[int, Placement]:
    """Layouts of outputs: of the file that was named, else of the module that stands beside the program."""
    from dtir.execute.layouts import layouts_from
    from dtir.importers import load_path
    from dtir.schema.result import Err

    named = options.layouts
    name = named or _sibling(options.file)
    if name is None:
        return {}
    loaded = load_path(name)
    if loaded.program is None:
        if named:
            raise Failure(loaded.diagnostics)
        return {}
    found = layouts_from(loaded.program, prepared.plan)
    if isinstance(found, Err):
        if named:
            raise Failure(found.error)
        return {}
    return found.value


def _sibling(name: str) -> str | None:
    """The dump of the same module before partitioning, where it stands beside."""
    path = Path(name)
    for after, before in SIBLINGS:
        if after in path.name:
            beside = path.with_name(path.name.replace(after, before))
            if beside.is_file():
                return str(beside)
    return None


def _archive(name: str | None) -> Archive | None:
    from dtir.execute.archive import Archive, ArchiveError

    if name is None:
        return None
    try:
        return Archive.open(name)
    except ArchiveError as error:
        raise failure("run.archive", str(error), hint="write it with numpy.savez(name, in0=..., in1=...)") from None


def _binding(name: str | None) -> Binding | None:
    from dtir.execute.binding import Binding, BindingError

    if name is None:
        return None
    try:
        return Binding.from_json(Path(name).read_text(encoding="utf-8"))
    except BindingError as error:
        raise failure("run.binding", f"{name}: {error}", hint="see dtir.execute.binding for the form") from None
    except (OSError, UnicodeDecodeError) as error:
        reason = error.strerror if isinstance(error, OSError) and error.strerror else str(error)
        raise failure("run.binding", f"{name} cannot be read: {reason}", hint="check the path") from None


def _check_target(name: str | None) -> None:
    """A result that cannot be written is found before the work, not after it."""
    if name is None:
        return
    folder = Path(name).resolve().parent
    if not folder.is_dir() or Path(name).is_dir():
        what = "is a folder" if Path(name).is_dir() else f"cannot be written: there is no folder {folder}"
        raise failure("cli.output", f"{name} {what}", hint="check that the folder exists and can be written")


def _write(name: str, data: bytes) -> None:
    from dtir.execute.files import write_bytes

    try:
        write_bytes(name, data)
    except OSError as error:
        reason = error.strerror or str(error)
        raise failure(
            "cli.output", f"{name} cannot be written: {reason}", hint="check that the folder exists and can be written"
        ) from error


def _execute(prepared: Prepared, console: Console) -> Report:
    from dtir.cli.progress import Progress
    from dtir.execute.launch import LaunchError
    from dtir.execute.run import run_prepared

    timing = prepared.request.timing
    total = len(prepared.plan.main.steps) * (timing.repetitions + timing.warmup + prepared.request.check)
    with Progress(console, total) as progress:

        def note(done: int, of: int) -> None:
            progress.at(done, "steps" if done else "starting")

        try:
            return run_prepared(prepared, note)
        except LaunchError as error:
            raise failure(
                "run.launch", str(error), hint="see python -m mpi4py --mpi-library and DTIR_MPIEXEC"
            ) from None


COMMAND = Command("run", "execute a program and compare it with its plan", _configure, _run)
