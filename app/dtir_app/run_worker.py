"""The process that runs a program for the explorer: ``python -m dtir_app.run_worker FOLDER``.

It reads ``request.json`` and ``program.json`` in the folder, tells how far it is as JSON lines on standard output, and leaves
``record.json``. It ends when its standard input ends: it does not outlive the server that wants its result.
"""

from __future__ import annotations

import json
import os
import signal
import sys
import threading
from pathlib import Path
from typing import Any

from dtir.execute.binding import Binding
from dtir.execute.launch import LaunchError
from dtir.execute.run import Request, prepare_run, run_prepared
from dtir.execute.runner import Interrupted, Timing
from dtir.ir.program import DistributedTaskIR
from dtir.schema.result import Err

EVERY = 200
"""Messages of a run, about: progress is not told step by step."""


def tell(**message: Any) -> None:
    """One line."""
    sys.stdout.write(json.dumps(message) + "\n")
    sys.stdout.flush()


def _end_with_parent() -> None:
    """Interrupt this process when nobody listens any more: what it started is then ended in order."""
    while sys.stdin.buffer.read(4096):
        pass
    os.kill(os.getpid(), signal.SIGINT)


def main(folder: Path) -> int:
    """Run; the exit status is 0 when there is a record."""
    threading.Thread(target=_end_with_parent, daemon=True).start()
    asked = json.loads((folder / "request.json").read_text(encoding="utf-8"))
    program = DistributedTaskIR.require_from_json((folder / "program.json").read_text(encoding="utf-8"))
    request = Request(
        backend=asked["backend"],
        processes=asked["processes"],
        binding=Binding.from_json(asked["binding"]) if asked["binding"] else None,
        seed=asked["seed"],
        timing=Timing(asked["repetitions"], asked["warmup"], asked["isolated"]),
        skip_local=asked["skip_local"],
        timeout_s=asked["timeout_s"] if asked["backend"] == "mpi" else None,
    )
    tell(doing="preparing")
    prepared = prepare_run(program, request)
    if isinstance(prepared, Err):
        tell(refused=[[item.code, item.message, item.hint or ""] for item in prepared.error])
        return 2
    last = -1

    def note(done: int, total: int) -> None:
        nonlocal last
        part = done * EVERY // max(1, total)
        if part != last:
            last = part
            tell(done=done, total=total)

    try:
        report = run_prepared(prepared.value, note)
    except Interrupted:
        return 130
    except LaunchError as error:
        tell(refused=[["run.launch", str(error), ""]])
        return 2
    if report.record is None:
        tell(refused=[[item.code, item.message, item.hint or ""] for item in report.findings])
        return 2
    (folder / "record.json").write_text(report.record.to_json(), encoding="utf-8")
    tell(finished=True)
    return 0


if __name__ == "__main__":
    sys.exit(main(Path(sys.argv[1])))
