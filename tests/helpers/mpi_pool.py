"""Real MPI processes that stay and run one small plan after the other: starting them anew for each case takes a second.

The processes of a pool wait on a socket, so that they cost nothing while they wait. Run as a module this is what they do.
"""

from __future__ import annotations

import atexit
import json
import socket
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np

from dtir.execute import ExecPlan, ExecutionError, Slab, load_backend, make_plan
from dtir.execute.archive import Archive, write_archive
from dtir.execute.binding import Binding, spread
from dtir.execute.data import Inputs, output_leaves
from dtir.execute.dtypes import numpy_dtype
from dtir.execute.launch import find_launcher, worker_environment
from dtir.execute.launch_job import read_inputs, write_inputs
from dtir.execute.values import Held, rows, stack
from dtir.ir import DistributedTaskIR

ROOT = Path(__file__).resolve().parents[2]

PATIENCE_S = 120.0
"""A pool that does not answer for so long is broken."""


class Pool:
    """So many MPI processes.

    Args:
        processes: how many.
    """

    def __init__(self, processes: int) -> None:
        self.processes = processes
        self._folder = tempfile.TemporaryDirectory(prefix="dtir-pool-")
        address = str(Path(self._folder.name) / "socket")
        self._server = socket.socket(socket.AF_UNIX)
        self._server.bind(address)
        self._server.listen(processes)
        self._server.settimeout(PATIENCE_S)
        command = find_launcher().command(
            processes, [sys.executable, "-m", "mpi4py", "-m", "tests.helpers.mpi_pool", address]
        )
        self._log = (Path(self._folder.name) / "log").open("wb")
        self._process = subprocess.Popen(
            command,
            cwd=ROOT,
            env=worker_environment(),
            stdin=subprocess.DEVNULL,
            stdout=self._log,
            stderr=subprocess.STDOUT,
            start_new_session=True,
        )
        self._lines: list[Any] = []
        for _ in range(processes):
            connection, _ = self._server.accept()
            connection.settimeout(PATIENCE_S)
            self._lines.append(connection.makefile("rw", encoding="utf-8"))
            connection.close()

    def ask(self, question: dict[str, Any]) -> list[dict[str, Any]]:
        """What every process answers; in no particular order."""
        text = json.dumps(question) + "\n"
        for line in self._lines:
            line.write(text)
            line.flush()
        return [json.loads(line.readline()) for line in self._lines]

    def run(self, plan: ExecPlan, inputs: Sequence[Held], binding: Binding, algorithm: str) -> list[Held]:
        """Outputs of a plan, from what the ranks hold of its inputs.

        Raises:
            ExecutionError: what a process says went wrong.
        """
        with tempfile.TemporaryDirectory(prefix="dtir-case-", dir=self._folder.name) as folder:
            (Path(folder) / "program.json").write_text(plan.program.to_json())
            held = dict(zip(plan.main.inputs, inputs, strict=True))
            write_inputs(Path(folder) / "inputs.npz", Inputs(held, {}, {}))
            question = {"folder": folder, "binding": binding.to_json(), "algorithm": algorithm}
            answers = self.ask(question)
            failed = [answer for answer in answers if answer["error"]]
            if failed:
                steps = {step.index: step for scope in plan.scopes for step in scope.steps}
                raise ExecutionError(failed[0]["error"], steps[failed[0]["step"]], failed[0]["code"])
            return _outputs(plan, [Archive.open(answer["result"]) for answer in answers])

    def close(self) -> None:
        """End the processes."""
        for line in self._lines:
            line.close()
        self._server.close()
        try:
            self._process.wait(10)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()
        self._log.close()
        self._folder.cleanup()


def _outputs(plan: ExecPlan, archives: Sequence[Archive]) -> list[Held]:
    found: list[Held] = []
    for number, slot in enumerate(output_leaves(plan)):
        dtype = numpy_dtype(plan.main.slots[slot].value.type.dtype)
        parts: dict[int, np.ndarray] = {}
        for archive in archives:
            for rank in range(plan.ranks):
                name = f"o{number}@{rank}"
                if name in archive.headers:
                    array = archive.read(name)
                    parts[rank] = array if array.dtype == dtype else array.view(dtype)
        ranks = tuple(sorted(parts))
        found.append(stack(ranks, [parts[rank] for rank in ranks]))
    return found


@cache
def pool(processes: int) -> Pool:
    """The pool of so many processes, started when it is first asked for."""
    made = Pool(processes)
    atexit.register(made.close)
    return made


def run_in_pool(
    plan: ExecPlan, inputs: Sequence[Held], *, processes: int | None = None, algorithm: str = "ordered"
) -> list[Held]:
    """Outputs of a plan in several MPI processes; as many as it has ranks unless said otherwise."""
    count = min(processes or plan.ranks, plan.ranks)
    return pool(count).run(plan, inputs, spread("mpi", plan.ranks, count), algorithm)


# -- what the processes do ------------------------------------------------------------------------------------------------


def serve(address: str) -> None:
    from dtir.execute.backends.mpi_world import world

    number = world().process
    with socket.socket(socket.AF_UNIX) as connection:
        connection.connect(address)
        with connection.makefile("rw", encoding="utf-8") as line:
            for question in line:
                line.write(json.dumps(_answer(json.loads(question), number)) + "\n")
                line.flush()


def _answer(question: dict[str, Any], number: int) -> dict[str, Any]:
    folder = Path(question["folder"])
    program = DistributedTaskIR.require_from_json((folder / "program.json").read_text())
    plan = make_plan(program, algorithm=question["algorithm"]).or_raise()
    binding = Binding.from_json(question["binding"])
    ranks = binding.ranks_of(number)
    try:
        outputs = _run(plan, binding, read_inputs(folder / "inputs.npz", plan, ranks, None))
    except ExecutionError as error:
        return {"error": str(error), "step": error.step.index, "code": error.code, "result": ""}
    result = folder / f"result.{number}.npz"
    arrays = {
        f"o{place}@{rank}": np.asarray(array)
        for place, held in enumerate(outputs)
        for rank, array in zip(held.ranks, rows(held), strict=True)
    }
    write_archive(result, arrays)
    return {"error": "", "step": -1, "code": "", "result": str(result)}


def _run(plan: ExecPlan, binding: Binding, inputs: Inputs) -> list[Held]:
    from dtir.execute import Options

    session = load_backend("mpi").prepare(plan, binding, Options())
    for slot, held in inputs.held.items():
        session.load_slot(slot, held if not isinstance(held, Slab) else Slab(held.ranks, np.array(held.array)))
    session.start()
    for step in plan.main.steps:
        session.execute(step)
    return [session.read_slot(slot) for slot in output_leaves(plan)]


if __name__ == "__main__":
    serve(sys.argv[1])
