"""What a run record says of the machine and the installation."""

from __future__ import annotations

import os
import platform
from contextlib import suppress
from importlib.metadata import PackageNotFoundError, version
from typing import Any

from dtir._version import __version__


def environment() -> dict[str, Any]:
    """What tells two machines and installations apart; no name of a person or host is in it."""
    packages = {name: _version(name) for name in ("numpy", "ml_dtypes", "mpi4py", "cupy")}
    found: dict[str, Any] = {
        "dtir": __version__,
        "python": platform.python_version(),
        "packages": {name: found for name, found in packages.items() if found is not None},
        "system": f"{platform.system()} {platform.release()}",
        "machine": platform.machine(),
        "cpus": len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count(),
    }
    with suppress(OSError, AttributeError):
        found["load"] = [round(item, 2) for item in os.getloadavg()]
    return found


def _version(package: str) -> str | None:
    try:
        return version(package)
    except PackageNotFoundError:
        return None
