"""Execute a program and compare: everything that `dtir run` does, as one function.

>>> from dtir.execute import run_program
>>> run_program  # doctest: +ELLIPSIS
<function run_program at ...>
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace

from dtir.execute.archive import Archive
from dtir.execute.assemble import Output, Source, assemble
from dtir.execute.backends import load_backend
from dtir.execute.backends.base import Backend, Probe
from dtir.execute.binding import Binding, BindingError, require_fit
from dtir.execute.checks import check_outputs
from dtir.execute.compare import CollectiveRow, TaskRow, collective_rows, task_rows
from dtir.execute.data import Inputs, generate_inputs, read_inputs
from dtir.execute.deviations import elsewhere, findings, slow_tasks
from dtir.execute.dtypes import Array
from dtir.execute.forecast import Forecast
from dtir.execute.inferred import NOTHING_INFERRED, infer_layouts
from dtir.execute.launch import processes_here
from dtir.execute.launch_failure import RunFailed
from dtir.execute.launch_run import run_processes
from dtir.execute.memory import memory_problem
from dtir.execute.oracle import Undivided, run_undivided
from dtir.execute.placement import Placement
from dtir.execute.plan import make_plan
from dtir.execute.ready import local_problems
from dtir.execute.record import Columns, RunRecord, ValueCheck, diagnostic_fields
from dtir.execute.runner import Interrupted, Progress, RunResult, Spent, Timing, run_plan, with_forecast
from dtir.execute.session import ExecutionError, Options
from dtir.execute.steps import ExecPlan, Form
from dtir.execute.watchdog import stall_limit_s
from dtir.execute.wire_plan import planned_wire
from dtir.ir.program import DistributedTaskIR
from dtir.schema.diagnostics import EMPTY_DIAGNOSTICS, Diagnostic, DiagnosticSet, Severity
from dtir.schema.result import Checked, Err, Ok


@dataclass(frozen=True, slots=True)
class Request:
    """How a program is to be run.

    Args:
        backend: name of the back end.
        processes: how many processes; None: as the back end likes.
        binding: which rank lives where; None: the back end's default.
        inputs: an archive of inputs; None: made from the seed.
        seed: root of generated data and random numbers.
        timing: repetitions and how times are taken.
        algorithm: ``native`` or ``ordered``.
        skip_local: run communication only.
        memory_limit: bytes that may be used; None: what the machine has.
        layouts: layouts of outputs by number, for programs that do not state them.
        forecast: planned times, of a cost model.
        compare: compare outputs with the undivided program where there is one.
        limit_s: in several processes: how long a communication step may wait before it counts as a hang; None: 30 s, or
            20 times the longest planned time.
        timeout_s: in several processes: how long the run may take in all.
        partial: in processes that were started from outside: where they leave what they have recorded when the run fails,
            for then nobody is there to return it.
        check: compare the results of every collective with the reference, in a repetition of its own.
    """

    backend: str = "numpy"
    processes: int | None = None
    binding: Binding | None = None
    inputs: Archive | None = None
    seed: int = 0
    timing: Timing = field(default_factory=Timing)
    algorithm: str = "native"
    skip_local: bool = False
    memory_limit: int | None = None
    layouts: Mapping[int, Placement] = field(default_factory=dict[int, Placement])
    forecast: Forecast | None = field(default=None, repr=False)
    compare: bool = True
    limit_s: float | None = None
    timeout_s: float | None = None
    partial: str | None = None
    check: bool = False


@dataclass(frozen=True, slots=True)
class Report:
    """What came out of running a program.

    Args:
        plan: the plan.
        backend: the back end's name.
        probe: what the back end said of itself.
        outputs: the outputs, put together.
        collectives: one row a communication step.
        checks: outputs compared.
        findings: what deviates, and remarks.
        record: the run record, comparisons included; of a run that failed what was recorded until then, None where that
            is nothing.
        spent: time of every step.
        tasks: one row a step; empty for a run that failed before anything was recorded.
        forecast: planned times; None: none were asked for.
    """

    plan: ExecPlan = field(repr=False)
    backend: str
    probe: Probe
    outputs: tuple[Output, ...] = ()
    collectives: tuple[CollectiveRow, ...] = ()
    checks: tuple[ValueCheck, ...] = ()
    findings: DiagnosticSet = EMPTY_DIAGNOSTICS
    record: RunRecord | None = field(default=None, repr=False)
    spent: Mapping[int, Spent] = field(default_factory=dict[int, Spent], repr=False)
    tasks: tuple[TaskRow, ...] = field(default=(), repr=False)
    forecast: Forecast | None = field(default=None, repr=False)

    def arrays(self) -> dict[str, Array]:
        """The outputs as an archive holds them: ``out0``, ...; ``out0@3`` for parts that do not belong together by any known layout."""
        found: dict[str, Array] = {}
        for output in self.outputs:
            if output.array is not None:
                found[f"out{output.number}"] = output.array
            else:
                found.update({f"out{output.number}@{rank}": part for rank, part in output.parts.items()})
        return found


@dataclass(frozen=True, slots=True)
class Prepared:
    """A run that can start: nothing that is known beforehand stands against it."""

    plan: ExecPlan = field(repr=False)
    backend: Backend
    probe: Probe
    binding: Binding
    inputs: Inputs = field(repr=False)
    request: Request = field(repr=False)


def prepare_run(program: DistributedTaskIR, request: Request) -> Checked[Prepared]:
    """Look at everything that can stand against a run, before it starts.

    Returns:
        `Err` with every reason.
    """
    try:
        backend = load_backend(request.backend)
    except ValueError as error:
        return _refused("run.backend", str(error), "choose one of them with --backend")
    probe = backend.probe()
    if not probe.ok:
        return _refused("run.backend", f"the {backend.name} back end cannot run here: {probe.reason}",
                        "choose another with --backend, or install what it needs")  # fmt: skip
    planned = make_plan(program, algorithm=request.algorithm)
    if isinstance(planned, Err):
        return planned
    plan = planned.value
    problems: list[Diagnostic] = [] if request.skip_local else local_problems(plan)
    binding: Binding | None = None
    try:
        binding = request.binding or backend.default_binding(plan, request.processes)
        require_fit(binding, plan.ranks)
        problem = memory_problem(plan, _ranks_here(binding), request.memory_limit)
        if problem is not None:
            problems.append(problem)
        problems += backend.obstacles(plan, binding)
    except BindingError as error:
        problems.append(
            Diagnostic("run.binding", str(error), hint="start at most one process a rank: -n, or another binding")
        )
    if problems and any(item.code == "run.memory" for item in problems):
        return Err(DiagnosticSet(tuple(problems)))  # generated inputs would not fit either
    remarks: list[Diagnostic] = list(planned.diagnostics)
    inputs: Inputs | None = None
    if request.inputs is None:
        inputs = generate_inputs(plan, request.seed)
    else:
        read = read_inputs(plan, request.inputs)
        if isinstance(read, Err):
            problems += read.error
        else:
            inputs = read.value
            remarks += inputs.diagnostics
    if problems or binding is None or inputs is None:
        return Err(DiagnosticSet((*problems, *remarks)))
    return Ok(Prepared(plan, backend, probe, binding, inputs, request), DiagnosticSet(tuple(remarks)))


def _ranks_here(binding: Binding) -> int:
    """Ranks whose data this machine holds, at most."""
    here = processes_here(binding.processes)
    sizes = sorted((len(binding.ranks_of(process)) for process in range(binding.processes)), reverse=True)
    return sum(sizes[:here])


def _refused(code: str, message: str, hint: str) -> Err[DiagnosticSet]:
    return Err(DiagnosticSet.of(Diagnostic(code, message, hint=hint)))


def run_prepared(prepared: Prepared, progress: Progress | None = None) -> Report:
    """Run, put outputs together, compare.

    Raises:
        Interrupted: from the keyboard; its record says how far the run came.
        LaunchError: processes cannot be started.
    """
    request, plan = prepared.request, prepared.plan
    try:
        result = _run(prepared, progress)
    except ExecutionError as error:
        return _ended(prepared, DiagnosticSet.of(_step_finding(error)), error.record)
    except RunFailed as failed:
        return _ended(prepared, failed.findings, failed.record)
    except Interrupted as interrupted:
        if request.forecast is None:
            raise
        raise Interrupted(with_forecast(interrupted.record, request.forecast)) from None
    rows = _rows(prepared, result.record)
    shapes = {number: tuple(array.shape) for number, array in prepared.inputs.expected.items()}
    per_device = plan.form is Form.PER_RANK and plan.attribute("hlo.form") is not None
    inferred = infer_layouts(plan, result.slots) if per_device else NOTHING_INFERRED
    outputs = assemble(plan, result.slots, result.outputs, request.layouts, shapes, inferred)
    checks: list[ValueCheck] = []
    found: list[Diagnostic] = list(prepared.inputs.diagnostics)
    if not request.skip_local:
        undivided = _undivided(prepared) if request.compare else None
        checks = check_outputs(plan, outputs, prepared.inputs, undivided)
        found += _output_findings(outputs)
    found += findings(rows, checks)
    found += result.remarks
    tasks = _task_rows(prepared, rows, result.record)
    if request.forecast is not None:
        found += slow_tasks(plan, tasks)
        found += elsewhere(request.forecast, result.record.backend)
    record = replace(result.record, values=tuple(checks), findings=tuple(diagnostic_fields(item) for item in found))
    if request.forecast is not None:
        record = with_forecast(record, request.forecast)
    return Report(
        plan, prepared.backend.name, prepared.probe, tuple(outputs), tuple(rows), tuple(checks),
        DiagnosticSet(tuple(found)), record, result.spent, tuple(tasks), request.forecast,
    )  # fmt: skip


def _task_rows(prepared: Prepared, rows: list[CollectiveRow], record: RunRecord) -> list[TaskRow]:
    """Steps beside their plan; local steps that are left out have no time: to fill their results is not their work."""
    columns = Columns() if prepared.request.skip_local else record.local_records
    return task_rows(prepared.plan, rows, columns, prepared.request.forecast, prepared.binding)


def _rows(prepared: Prepared, record: RunRecord | None) -> list[CollectiveRow]:
    request = prepared.request
    columns = record.records if record is not None else Columns()
    wrong = {entry.index: entry.wrong for entry in record.steps if entry.wrong is not None} if record else {}
    return collective_rows(
        prepared.plan,
        columns,
        request.timing.repetitions,
        request.forecast,
        _planned_bytes(prepared),
        prepared.binding,
        wrong,
    )


def _run(prepared: Prepared, progress: Progress | None) -> RunResult:
    request, plan = prepared.request, prepared.plan
    options = Options(seed=request.seed, skip_local=request.skip_local, check=request.check)
    if not prepared.probe.capabilities.processes:
        return run_plan(
            plan, prepared.backend, prepared.binding, prepared.inputs,
            timing=request.timing, options=options, probe=prepared.probe, progress=progress,
        )  # fmt: skip
    longest = request.forecast.longest_us if request.forecast is not None else 0.0
    return run_processes(
        plan, prepared.backend, prepared.binding, prepared.inputs,
        timing=request.timing, options=options, probe=prepared.probe, progress=progress,
        limit_s=stall_limit_s(longest) if request.limit_s is None else request.limit_s, timeout_s=request.timeout_s,
        partial=request.partial,
    )  # fmt: skip


def _planned_bytes(prepared: Prepared) -> Mapping[int, int] | None:
    """What goes from process to process, where there are several."""
    if not prepared.probe.capabilities.processes:
        return None
    wired = planned_wire(prepared.plan, prepared.binding)
    return {index: issued.total_bytes for index, issued in wired.items()}


def _ended(prepared: Prepared, found: DiagnosticSet, record: RunRecord | None) -> Report:
    """A run that did not come to its end, and what was recorded until then."""
    rows = _rows(prepared, record)
    tasks: list[TaskRow] = []
    forecast = prepared.request.forecast
    if record is not None:
        record = replace(record, findings=tuple(diagnostic_fields(item) for item in found))
        record = record if forecast is None else with_forecast(record, forecast)
        tasks = _task_rows(prepared, rows, record)
    return Report(
        prepared.plan,
        prepared.backend.name,
        prepared.probe,
        collectives=tuple(rows),
        findings=found,
        record=record,
        tasks=tuple(tasks),
        forecast=forecast,
    )


def _undivided(prepared: Prepared) -> Undivided | None:
    """The undivided program, for programs whose layouts are known: a program partitioned elsewhere has none."""
    plan = prepared.plan
    if plan.form is Form.UNDIVIDED or plan.attribute("hlo.form") is not None:
        return None
    return run_undivided(plan, prepared.inputs.whole, prepared.request.seed)


def _step_finding(error: ExecutionError) -> Diagnostic:
    step = error.step
    return Diagnostic(
        error.code,
        f"task {step.name} ({step.task.operation}): {error}",
        ("tasks", step.name),
        Severity.ERROR,
        "dtir verify shows who waits for whom"
        if error.code == "run.deadlock"
        else "look at the task's operands and attributes; dtir verify may say more",
        (str(step.task.id),),
    )


def _output_findings(outputs: list[Output]) -> list[Diagnostic]:
    found: list[Diagnostic] = []
    unknown = [output for output in outputs if output.source is Source.UNKNOWN]
    if unknown:
        names = ", ".join(f"out{output.number}" for output in unknown[:5]) + (", ..." if len(unknown) > 5 else "")
        found.append(
            Diagnostic(
                "run.output_layout",
                f"nothing says how the parts of {len(unknown)} outputs belong together ({names}): they are given rank by rank",
                ("outputs",),
                Severity.WARNING,
                "name the module before partitioning with --layouts X.sharded.hlo, or store the expected out0, ... with the inputs",
            )
        )
    inferred = [output for output in outputs if output.source is Source.INFERRED]
    if inferred:
        names = ", ".join(f"out{output.number}" for output in inferred[:5]) + (", ..." if len(inferred) > 5 else "")
        found.append(
            Diagnostic(
                "run.output_inferred",
                f"the layouts of {len(inferred)} outputs ({names}) are inferred from those of the inputs",
                ("outputs",),
                Severity.INFO,
                "name the module before partitioning with --layouts to be sure",
            )
        )
    for output in outputs:
        if output.holes:
            found.append(
                Diagnostic(
                    "run.output_holes",
                    f"out{output.number} ({output.name}): {output.holes} elements are held by no rank",
                    ("outputs", str(output.number)),
                    Severity.ERROR,
                    "dtir verify says which rank should hold them",
                )
            )
    return found


def run_program(
    program: DistributedTaskIR, request: Request | None = None, progress: Progress | None = None
) -> Checked[Report]:
    """Execute a program and compare.

    Returns:
        `Err` with everything that stands against the run before it starts.

    Raises:
        Interrupted: from the keyboard.
    """
    prepared = prepare_run(program, request or Request())
    if isinstance(prepared, Err):
        return prepared
    return Ok(run_prepared(prepared.value, progress), prepared.diagnostics)


__all__ = ["Interrupted", "Prepared", "Report", "Request", "RunResult", "prepare_run", "run_prepared", "run_program"]
