"""Devices that are played on the host, as a back end for tests: the cupy back end's own code, without a GPU."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from types import MappingProxyType

import pytest

from dtir.execute import ExecPlan, Options, Session, make_plan
from dtir.execute.backends import Probe
from dtir.execute.backends.cupy_ import CupyBackend
from dtir.execute.backends.cupy_host import HostRuntime
from dtir.execute.binding import Binding, Seat
from dtir.execute.data import output_leaves
from dtir.execute.kernels.host import host_compiler
from dtir.execute.session import Observer
from dtir.execute.values import Held
from tests.helpers.kernels import compiled_kernels

PLAYED: Mapping[str, int] = MappingProxyType({"cupy on 1 played device": 1, "cupy on 3 played devices": 3})
"""Names of back ends for tests, and how many devices each has."""


def played_reason() -> str | None:
    """Why devices cannot be played here, None where they can."""
    return (
        None
        if host_compiler() is not None
        else "no C++ compiler was found: the kernels cannot be compiled for the host"
    )


def require_played() -> None:
    """Skip with the reason where devices cannot be played."""
    reason = played_reason()
    if reason is not None:
        pytest.skip(reason)


def played_runtime(devices: int = 1, memory_bytes: int = 1 << 34) -> HostRuntime:
    require_played()
    return HostRuntime(devices, memory_bytes, compiled_kernels())


def played_backend(runtime: HostRuntime) -> CupyBackend:
    return CupyBackend(lambda: runtime, lambda: Probe(True, "devices played on the host"))


def device_binding(ranks: int, devices: int) -> Binding:
    """Ranks in order over devices, as evenly as it goes."""
    used = min(ranks, devices)
    return Binding("cupy", tuple(Seat(0, rank * used // ranks) for rank in range(ranks)))


def played_session(
    plan: ExecPlan, runtime: HostRuntime, options: Options | None = None, observer: Observer | None = None
) -> Session:
    binding = device_binding(plan.ranks, runtime.count)
    return played_backend(runtime).prepare(plan, binding, options or Options(), observer)


def run_played(
    plan: ExecPlan, inputs: Sequence[Held], runtime: HostRuntime, *, algorithm: str = "ordered"
) -> list[Held]:
    """Outputs of a plan on played devices; every run is judged for races on the way."""
    plan = make_plan(plan.program, algorithm=algorithm).or_raise()
    session = played_session(plan, runtime)
    try:
        for slot, held in zip(plan.main.inputs, inputs, strict=True):
            session.load_slot(slot, held)
        session.start()
        for step in plan.main.steps:
            session.execute(step)
        session.sync()
        return [session.read_slot(slot) for slot in output_leaves(plan)]
    finally:
        session.close()
