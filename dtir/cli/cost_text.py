"""The text of ``dtir cost``: the answer first, then where the time goes. Nothing is left out without saying how much."""

from __future__ import annotations

import textwrap
from collections.abc import Sequence

from dtir.cli.terminal import PLAIN, Style, count, printable, size_text, table
from dtir.cost.critical import Exposure, Step, longest_path_s
from dtir.cost.profile import MachineProfile
from dtir.cost.report import Report
from dtir.cost.report_json import bandwidths, memory_tree, pipeline_tree, task_of
from dtir.cost.spans import Stream

ROWS_SHOWN = 10
CLASSES_SHOWN = 8
BAR_COLUMNS = 64


def time_text(seconds: float | None) -> str:
    """Seconds with a unit, three or four digits; ``?`` when not known.

    >>> time_text(0.0021), time_text(3.5e-6), time_text(0.0), time_text(None), time_text(75.0)
    ('2.100 ms', '3.500 us', '0', '?', '75.00 s')
    """
    if seconds is None:
        return "?"
    if seconds == 0:
        return "0"
    for unit, scale in (("s", 1.0), ("ms", 1e-3), ("us", 1e-6)):
        if seconds >= scale * 0.9995:
            return f"{_digits(seconds / scale)} {unit}"
    return f"{_digits(seconds / 1e-9)} ns"


def _digits(value: float) -> str:
    return f"{value:,.0f}" if value >= 1000 else f"{value:.4g}" if value >= 100 else f"{value:#.4g}"


def _percent(part: float, whole: float) -> str:
    return f"{100 * part / whole:.1f} %" if whole else "0.0 %"


def _rate(bytes_per_s: float | None) -> str:
    return "" if bytes_per_s is None else f"{bytes_per_s / 1e9:,.4g} GB/s"


def profiles(items: Sequence[MachineProfile], style: Style = PLAIN) -> list[str]:
    """The presets and their sources."""
    lines: list[str] = []
    for item in items:
        lines.append(f"{style.bold(item.id)}  {style.dim(f'{item.source.standing.value}, {item.source.date}')}")
        lines.append(f"  {item.summary}")
        lines += [f"  {style.dim(line)}" for line in textwrap.wrap(item.source.text, 100)]
    return lines


def planned(report: Report, *, label: str, remarks: Sequence[str], show_all: bool, style: Style = PLAIN) -> list[str]:
    """The whole text."""
    made = report.made
    limit = None if show_all else ROWS_SHOWN
    lines = [style.bold(printable(made.program.name)) + f"  {style.dim('planned, not measured')}"]
    facts = [
        ("source", printable(label)),
        ("machine", f"{made.profile.title}: {made.profile.summary}"),
        *_answer(report),
    ]
    lines += [f"  {style.dim(name.ljust(9))} {text}" for name, text in facts]
    notes = [*remarks, *report.notes]
    if notes:
        lines += ["", style.bold("what the numbers leave open")]
        lines += [f"  - {printable(note)}" for note in notes]
    for title, rows in (
        ("ranks", _ranks(report, show_all, style)),
        ("critical path", _path(report, limit, style)),
        ("communication", _collectives(report, limit, style)),
        ("local work", _tasks(report, limit, style)),
        ("bytes by mesh axis", _axes(report, style)),
        ("memory", _memory(report, limit)),
    ):
        if rows:
            lines += ["", style.bold(title), *(f"  {row}" for row in rows)]
    return lines


def _answer(report: Report) -> list[tuple[str, str]]:
    made = report.made
    makespan, mine = made.makespan_s, report.times[report.critical]
    at_least = "" if report.unknown == 0 else "at least "
    bound = max(longest_path_s(made), *(item.compute_s for item in report.times))
    found = [
        (
            "makespan",
            f"{at_least}{time_text(makespan)}  (no order of these tasks on two streams is below {time_text(bound)})",
        ),
        ("compute", f"{time_text(mine.compute_s)}  {_percent(mine.compute_s, makespan)} of the critical rank"),
        (
            "exposed",
            f"{time_text(report.exposed_communication_s)}  {_percent(report.exposed_communication_s, makespan)}: "
            f"sending {time_text(mine.exposed_s)}, idle {time_text(mine.idle_s)}; "
            f"{time_text(mine.communication_s - mine.exposed_s)} of communication is hidden",
        ),
        ("bubble", f"{100 * report.bubble_fraction:.1f} % of the ranks' time is idle"),
    ]
    slots = pipeline_tree(report)
    if slots is not None:
        over = slots["bubble_over_ideal"]
        live = ", ".join(str(item) for item in slots["in_flight"][:16])
        chunks = f", {slots['chunks']} chunks" if slots["chunks"] > 1 else ""
        ideal = "" if over is None else f"; {100 * over:.1f} % over the ideal time"
        found.append(
            (
                "pipeline",
                f"{slots['stages']} stages, {slots['microbatches']} microbatches{chunks}{ideal}; live at most {live}",
            )
        )
    return found


# -- ranks ----------------------------------------------------------------------------------------------------------------


def _ranks(report: Report, show_all: bool, style: Style) -> list[str]:
    made = report.made
    sizes, firsts = made.classes.sizes(), made.classes.first_ranks()
    rows: dict[tuple[str, ...], list[int]] = {}
    for one, mine in enumerate(report.times):
        cells = (
            time_text(mine.compute_s),
            time_text(mine.exposed_s),
            time_text(mine.communication_s - mine.exposed_s),
            time_text(mine.waiting_s),
            time_text(mine.idle_s),
            size_text(report.peaks[one].peak_bytes),
        )
        # What reads the same stands once.
        rows.setdefault(cells, []).append(one)
    kept = list(rows.items()) if show_all else list(rows.items())[:CLASSES_SHOWN]
    table_rows: list[list[str]] = []
    for cells, ones in kept:
        others = sum(sizes[one] for one in ones) - 1
        table_rows.append([f"{firsts[ones[0]]}" + (f" and {others:,} like it" if others else ""), *cells])
    header = ["rank", "compute", "exposed", "hidden", "waits for others", "idle", "peak"]
    lines = table(header, table_rows, right=range(1, 7), style=style)
    if len(rows) > len(kept):
        lines.append(style.dim(f"... {len(rows) - len(kept):,} more kinds of ranks; --all shows them"))
    return [*lines, "", *_bars(report, [ones[0] for _, ones in kept], style)]


def _bars(report: Report, shown: Sequence[int], style: Style) -> list[str]:
    """A line for each stream: # computes, = sends, ~ further rounds of a loop."""
    spans, makespan = report.made.spans, report.made.makespan_s
    if makespan <= 0:
        return []
    firsts = report.made.classes.first_ranks()
    filled = {one: ([0.0] * BAR_COLUMNS, [0.0] * BAR_COLUMNS) for one in shown}
    rounds = {one: [0.0] * BAR_COLUMNS for one in shown}
    for place in range(len(spans)):
        stream = spans.stream[place]
        for one in spans.classes[place]:
            if one not in filled:
                continue
            row = rounds[one] if stream == Stream.BOTH else filled[one][stream]
            _fill(row, spans.start[place] / makespan, spans.end[place] / makespan)
    lines = [style.dim(f"{'rank':>6}  0{'':{BAR_COLUMNS - 2 - len(time_text(makespan))}} {time_text(makespan)}")]
    for one in shown:
        for row, mark in zip(filled[one], "#=", strict=True):
            bar = "".join(
                "~" if loop > 0.5 else mark if part > 0.5 else "." if part > 0.02 else " "
                for part, loop in zip(row, rounds[one], strict=True)
            )
            name = f"{firsts[one]:>6}" if mark == "#" else " " * 6
            lines.append(f"{name} |{bar}|")
    loops = any(times > 1 for times in spans.times)
    lines.append(style.dim("# computes, = sends, . a little" + (", ~ further rounds of a loop" if loops else "")))
    return lines


def _fill(row: list[float], first: float, last: float) -> None:
    begin, end = first * BAR_COLUMNS, last * BAR_COLUMNS
    for column in range(int(begin), min(BAR_COLUMNS, int(end) + 1)):
        row[column] += max(0.0, min(end, column + 1) - max(begin, column))


# -- the path ---------------------------------------------------------------------------------------------------------------


def _path(report: Report, limit: int | None, style: Style) -> list[str]:
    total = sum(step.seconds * step.times for step in report.path)
    parts = {Stream.COMPUTE: 0.0, Stream.COMMUNICATION: 0.0}
    for step in report.path:
        parts[Stream(step.stream)] += step.seconds * step.times
    lines = [
        f"{count(len(report.path), 'step')}: compute {_percent(parts[Stream.COMPUTE], total)}, "
        f"communication {_percent(parts[Stream.COMMUNICATION], total)}; the longest:"
    ]
    firsts = report.made.classes.first_ranks()
    rows: dict[tuple[object, ...], list[Step]] = {}
    for step in report.path:
        # What reads the same stands once, unless all of it is asked for, in order.
        key = (
            (step.start_s, step.task) if limit is None else (_operation(report, step.task), step.seconds, step.because)
        )
        rows.setdefault(key, []).append(step)
    groups = list(rows.values())
    if limit is not None:
        groups.sort(key=lambda group: -sum(step.seconds * step.times for step in group))
    lines += table(
        ["task", "operation", "rank", "time", "times", "share", "because"],
        [_steps(report, group, total, firsts) for group in groups[:limit]],
        right=(2, 3, 4, 5),
        style=style,
    )
    if limit is not None and len(groups) > limit:
        rest = sum(len(group) for group in groups[limit:])
        lines.append(style.dim(f"... {count(rest, 'more step')}; --all shows them in order"))
    return lines if report.path else []


def _operation(report: Report, number: int) -> str:
    return str(task_of(report, number).operation)


def _named(names: Sequence[str]) -> str:
    """The first of several names, and how many more there are."""
    different = list(dict.fromkeys(names))
    return different[0] + (f" +{len(different) - 1}" if len(different) > 1 else "")


def _steps(report: Report, steps: Sequence[Step], total: float, firsts: Sequence[int]) -> list[str]:
    first = steps[0]
    whole = sum(step.seconds * step.times for step in steps)
    return [
        _named([task_of(report, step.task).name or str(task_of(report, step.task).id) for step in steps]),
        _operation(report, first.task),
        _named([str(firsts[step.classes[0]]) for step in steps]),
        time_text(first.seconds),
        f"{sum(step.times for step in steps):,}",
        _percent(whole, total),
        first.because,
    ]


# -- tasks ------------------------------------------------------------------------------------------------------------------


def _collectives(report: Report, limit: int | None, style: Style) -> list[str]:
    made = report.made
    numbers = [
        number
        for number in made.exchanges
        if report.counted.get(number, 0) or made.exchanges[number].price.seconds is None
    ]
    totals = {n: (made.exchanges[n].price.seconds or 0.0) * report.counted.get(n, 0) for n in numbers}
    alike: dict[tuple[object, ...], list[int]] = {}
    for number in numbers:
        exchange = made.exchanges[number]
        own = number if limit is None else -1
        alike.setdefault(
            (own, exchange.kind, exchange.size_bytes, exchange.group_size, report.axes[number], exchange.price), []
        ).append(number)
    groups = sorted(alike.values(), key=lambda group: -sum(totals[number] for number in group))
    cells: list[list[str]] = []
    for group in groups[:limit]:
        first = made.exchanges[group[0]]
        exposures = [report.exposures.get(number, Exposure()) for number in group]
        longest = max(exposures, key=lambda item: item.waiting_s)
        _, bus = bandwidths(first)
        cells.append(
            [
                first.kind,
                "?" if first.size_bytes is None else size_text(first.size_bytes),
                "" if first.group_size is None else str(first.group_size),
                ",".join(report.axes[group[0]]),
                first.price.level,
                first.price.algorithm,
                time_text(first.price.seconds),
                f"{sum(report.counted.get(number, 0) for number in group):,}",
                time_text(sum(totals[number] for number in group)),
                time_text(sum(item.exposed_s for item in exposures)),
                "" if longest.last is None else f"{time_text(longest.waiting_s)} for {longest.last}",
                _rate(bus),
                _named([made.exchanges[number].task.name or str(made.exchanges[number].task.id) for number in group]),
            ]
        )
    header = ["kind", "message", "size", "axes", "over", "algorithm", "time", "runs", "total", "exposed", "waits"]
    header += ["busbw", "name"]
    lines = table(header, cells, right=(1, 2, 6, 7, 8, 9, 11), style=style) if cells else []
    if limit is not None and len(groups) > limit:
        lines.append(style.dim(f"... {sum(map(len, groups[limit:])):,} more; --all shows them"))
    models = sorted({made.exchanges[number].price.model for number in numbers})
    return [*lines, style.dim(f"times by: {', '.join(models)}")] if cells else []


def _tasks(report: Report, limit: int | None, style: Style) -> list[str]:
    made = report.made
    totals: dict[int, float] = {}
    for number, plan in made.locals.items():
        seconds = max(plan.by_class) if plan.by_class else plan.timed.seconds or 0.0
        totals[number] = seconds * report.counted.get(number, 0)
    bounds: dict[str, float] = {}
    for number, total in totals.items():
        bound = made.locals[number].timed.bound
        bounds[bound] = bounds.get(bound, 0.0) + total
    whole = sum(totals.values())
    shares = ", ".join(
        f"{name} {_percent(part, whole)}"
        for name, part in sorted(bounds.items(), key=lambda item: -item[1])
        if part and name
    )
    alike: dict[tuple[object, ...], list[int]] = {}
    for number, total in totals.items():
        plan = made.locals[number]
        if total or plan.timed.seconds is None:
            own = number if limit is None else -1
            alike.setdefault((own, _operation(report, number), plan.timed, plan.work, plan.by_class), []).append(number)
    groups = sorted(alike.values(), key=lambda group: -sum(totals[number] for number in group))
    cells: list[list[str]] = []
    for group in groups[:limit]:
        plan = made.locals[group[0]]
        known = plan.timed.seconds is not None
        whole_group = sum(totals[number] for number in group)
        cells.append(
            [
                _named([task_of(report, number).name or str(task_of(report, number).id) for number in group]),
                _operation(report, group[0]),
                time_text(max(plan.by_class) if plan.by_class else plan.timed.seconds),
                f"{sum(report.counted.get(number, 0) for number in group):,}",
                time_text(whole_group),
                _percent(whole_group, whole),
                plan.timed.bound if known else plan.timed.reason,
                f"{plan.work.flops:.3g}" if known and plan.work.flops else "",
                "" if plan.work.moved_bytes is None else size_text(plan.work.moved_bytes),
            ]
        )
    header = ["task", "operation", "time", "runs", "total", "share", "bound by", "flops", "moves"]
    if not cells:
        return []
    lines = [f"limited by {shares}"] if shares else []
    lines += table(header, cells, right=(2, 3, 4, 5, 7, 8), style=style)
    if limit is not None and len(groups) > limit:
        lines.append(style.dim(f"... {sum(map(len, groups[limit:])):,} more; --all shows them"))
    return lines


def _axes(report: Report, style: Style) -> list[str]:
    rows = [
        [name, size_text(item.total_bytes), f"{item.messages:,}", time_text(item.seconds)]
        for name, item in sorted(report.traffic.items(), key=lambda pair: -pair[1].total_bytes)
    ]
    lines = table(["axis", "all ranks send", "executions", "time"], rows, right=(1, 2, 3), style=style) if rows else []
    if len(report.levels) > 1:
        lines.append(
            "one rank sends " + ", ".join(f"{size_text(sent)} over {name}" for name, sent in report.levels.items())
        )
    return lines


def _memory(report: Report, limit: int | None) -> list[str]:
    found = memory_tree(report)
    if not found["peak_bytes"]:
        return []
    where = f"at {printable(found['task'])}" if found["task"] else "at the start"
    region = f" in {printable(found['region'])}" if found["region"] else ""
    room = f", {_percent(found['peak_bytes'], found['limit_bytes'])} of a rank's" if found["limit_bytes"] else ""
    lines = [
        f"peak {size_text(found['peak_bytes'])}{room} on rank {found['rank']}, {where}{region}; "
        f"{count(found['live_values'], 'live value')}, inputs {size_text(found['input_bytes'])}"
    ]
    shown = found["largest"] if limit is None else found["largest"][:4]
    lines.append("largest: " + ", ".join(f"{printable(item['value'])} {size_text(item['bytes'])}" for item in shown))
    if found["stated"]:
        stated = ", ".join(f"{name} {size_text(size)}" for name, size in found["stated"].items() if size)
        lines.append(f"the program states for one block: {stated}")
    return lines
