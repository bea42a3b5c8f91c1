"""How much memory a run needs by estimate, and how much the machine has."""

from __future__ import annotations

import os
from pathlib import Path

from dtir.execute.steps import ExecPlan
from dtir.schema.diagnostics import Diagnostic

WORKING_SHARE = 1.5
"""Temporaries of one step on top of what values hold: at most about half as much again."""


def needed_bytes(plan: ExecPlan, ranks: int) -> int:
    """Bytes that `ranks` ranks hold at a time, by estimate: an upper bound, for equal copies are held once."""
    return int(plan.peak_bytes * ranks * WORKING_SHARE)


def available_bytes() -> int | None:
    """Bytes of memory that can be had without swapping; None where the system does not say."""
    try:
        for line in Path("/proc/meminfo").read_text().splitlines():
            if line.startswith("MemAvailable:"):
                free = int(line.split()[1]) * 1024
                limit = _group_limit()
                return free if limit is None else min(free, limit)
    except (OSError, ValueError, IndexError):
        pass
    names = os.sysconf_names if hasattr(os, "sysconf_names") else {}
    if "SC_PHYS_PAGES" in names and "SC_PAGE_SIZE" in names:
        return os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
    return None


def _group_limit() -> int | None:
    """The limit of the control group that the process is in, less what the group uses."""
    try:
        limit = Path("/sys/fs/cgroup/memory.max").read_text().strip()
        if limit == "max":
            return None
        return max(0, int(limit) - int(Path("/sys/fs/cgroup/memory.current").read_text()))
    except (OSError, ValueError):
        return None


def memory_problem(plan: ExecPlan, ranks: int, limit: int | None = None) -> Diagnostic | None:
    """Why a run would not fit, or None.

    Args:
        ranks: ranks that this process hosts.
        limit: bytes that may be used; None: what the machine has.
    """
    most = limit if limit is not None else available_bytes()
    needed = needed_bytes(plan, ranks)
    if most is None or needed <= most:
        return None
    return Diagnostic(
        "run.memory",
        f"{ranks} ranks need about {text_bytes(needed)}, {'allowed' if limit is not None else 'the machine has'} are {text_bytes(most)}",
        hint="spread the ranks over processes on several hosts, run a smaller program, or set --memory-limit",
    )


def text_bytes(count: float) -> str:
    """Bytes for people: ``1.5 MiB``."""
    size = float(count)
    for unit in ("B", "KiB", "MiB", "GiB", "TiB"):
        if size < 1024 or unit == "TiB":
            return f"{size:.0f} {unit}" if unit == "B" else f"{size:.1f} {unit}"
        size /= 1024
    raise AssertionError("unreachable")
