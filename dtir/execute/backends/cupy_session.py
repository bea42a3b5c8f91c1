"""Sessions whose values live on a device: what comes in is brought there, what goes out is brought back."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np

from dtir.execute.backends.base import Combine
from dtir.execute.backends.cupy_check import DeviceChecker, Pool
from dtir.execute.backends.cupy_fabric import DeviceFabric
from dtir.execute.backends.cupy_runtime import DeviceError
from dtir.execute.checked import Checker
from dtir.execute.dtypes import Array
from dtir.execute.exchange import Exchange
from dtir.execute.fabric import LocalFabric
from dtir.execute.session import ExecutionError, Observer, Options, Session
from dtir.execute.steps import ExecPlan, ScopePlan, Step, StepKind
from dtir.execute.values import Held, Pieces, Slab, is_shared, shared
from dtir.schema.diagnostics import Diagnostic, Severity

SHOWN = 3
"""Steps that a remark names."""

_LACKING = (TypeError, NotImplementedError, AttributeError)
"""What an array module raises where it has no such function, or not for such elements."""


class DeviceSession(Session):
    """A prepared plan on the ranks of one device.

    A step that the device's array module cannot do runs on the host, and is noted in `on_host`; its operands are
    then brought there and its results back.

    Args:
        plan: the plan.
        fabric: communication, and the device.
        options: how to run.
        observer: told of every step.
    """

    def __init__(
        self, plan: ExecPlan, fabric: DeviceFabric, options: Options, observer: Observer | None = None
    ) -> None:
        super().__init__(plan, fabric, options, fabric.xp, observer)
        self.lane = fabric.lane
        self.on_host: dict[str, str] = {}
        self._host = Session(plan, LocalFabric(fabric.ranks), options)
        self._by_host: set[int] = set()
        self._closed = ""
        self._last: Step | None = None

    def remarks(self) -> tuple[Diagnostic, ...]:
        """The steps that ran on the host."""
        return host_remarks(self.on_host)

    # -- values in and out ------------------------------------------------------------------------------------------------

    def load_slot(self, slot: int, held: Held) -> None:
        """Give ranks their parts of an input, from arrays of the host."""
        with self.lane.computing():
            super().load_slot(slot, self._to_device(held))

    def load(self, value: str, rank: int, data: Array) -> None:
        """Give a rank its part of an input, by the name of the value."""
        self.load_slot(self._numbers[value], Slab((rank,), np.asarray(data)[None]))

    def read_slot(self, slot: int) -> Held:
        """What the ranks of this process hold of a value that was kept, as arrays of the host."""
        with self.lane.computing():
            self.lane.join()
            return self._to_host(super().read_slot(slot))

    def read(self, value: str, rank: int) -> Array:
        """A rank's part of a value that was kept, as an array of the host."""
        with self.lane.computing():
            self.lane.join()
            return self.lane.runtime.to_host(super().read(value, rank))

    def bring(self, values: Sequence[Held]) -> list[Held]:
        """Values as arrays of the host, after all communication so far."""
        self.lane.join()
        return [self._to_host(held) for held in values]

    def host_combine(self, request: Exchange) -> Combine | None:
        """The computation of a custom reduction, for arrays of the host."""
        return self._host._combined(request)

    def make_checker(self) -> Checker:
        """What compares the exchanges of this device with the reference."""
        return DeviceChecker(self, Pool(self.plan.ranks, {}))

    def _to_device(self, held: Held) -> Held:
        bring = self.lane.runtime.to_device
        if isinstance(held, Pieces):
            return Pieces(held.ranks, tuple(bring(np.asarray(array)) for array in held.arrays))
        if is_shared(held):
            return shared(held.ranks, bring(np.asarray(held.array[0], order="C")), self.xp)
        return Slab(held.ranks, bring(np.asarray(held.array, order="C")))

    def _to_host(self, held: Held) -> Held:
        bring = self.lane.runtime.to_host
        if isinstance(held, Pieces):
            return Pieces(held.ranks, tuple(bring(array) for array in held.arrays))
        if is_shared(held):
            return shared(held.ranks, bring(held.array[0]))
        return Slab(held.ranks, bring(held.array))

    # -- steps ------------------------------------------------------------------------------------------------------------

    def held(self) -> dict[int, Held]:
        """The values that are there, by slot, where they are on the device."""
        return dict(self._values)

    def hold(self, values: Mapping[int, Held]) -> None:
        """Make these the values that are there."""
        self._values.clear()
        self._values.update(values)

    def close_for_steps(self, reason: str) -> None:
        """From now on no step is executed: their memory belongs to somebody else."""
        self._closed = reason

    def execute(self, step: Step) -> None:
        """Run one step of the program's own list.

        Raises:
            DeviceError: the session was closed for steps.
        """
        if self._closed:
            raise DeviceError(f"the session executes no steps any more: {self._closed}")
        self._last = step
        try:
            with self.lane.computing():
                super().execute(step)
        except ExecutionError:
            raise
        except RuntimeError as error:  # what a device, its driver or NCCL raises
            raise ExecutionError(str(error), step) from error

    def sync(self) -> None:
        """Wait until everything that was issued is done.

        Raises:
            ExecutionError: a device or a communicator says that something failed, in the last step or before it.
        """
        try:
            super().sync()
        except RuntimeError as error:
            if self._last is None or isinstance(error, ExecutionError):
                raise
            raise ExecutionError(f"in this step or one before it: {error}", self._last) from error

    def _operands(self, scope: ScopePlan, step: Step, values: Mapping[int, Held], ranks: Sequence[int]) -> list[Held]:
        # The parts of some of the ranks may be a copy, made as local work.
        given = [values[number] for number in step.inputs if number in values]
        self.lane.need([held for held in given if held.ranks is not ranks and held.ranks != ranks])
        return super()._operands(scope, step, values, ranks)

    def _run(self, scope: ScopePlan, step: Step, operands: Sequence[Held], ranks: tuple[int, ...]) -> tuple[Held, ...]:
        communicates = step.kind in (StepKind.EXCHANGE, StepKind.MOVE)
        if not communicates:
            self.lane.need(operands)
        if step.kind is StepKind.LOCAL and self._options.skip_local:
            return super()._run(scope, step, operands, ranks)
        if step.kind is not StepKind.LOCAL and not (communicates and self._all_here):
            return super()._run(scope, step, operands, ranks)
        if step.index not in self._by_host:
            try:
                return super()._run(scope, step, operands, ranks)
            except ExecutionError:
                raise
            except _LACKING as error:
                self._by_host.add(step.index)
                self.on_host[step.name] = str(error) or type(error).__name__
        return self._run_on_host(scope, step, operands, ranks)

    def _run_on_host(
        self, scope: ScopePlan, step: Step, operands: Sequence[Held], ranks: tuple[int, ...]
    ) -> tuple[Held, ...]:
        self.lane.need(operands)
        given = [self._to_host(held) for held in operands]
        return tuple(self._to_device(held) for held in self._host._run(scope, step, given, ranks))

    def _enter(self, scope: ScopePlan, operands: Sequence[Held], ranks: Sequence[int]) -> list[Held]:
        found = super()._enter(scope, operands, ranks)
        self.lane.join()  # results leave the region: who uses them looks at them, too
        return found


def host_remarks(on_host: Mapping[str, str]) -> tuple[Diagnostic, ...]:
    """A finding that names the steps that ran on the host, and why the first of them did."""
    if not on_host:
        return ()
    names = list(on_host)
    shown = ", ".join(names[:SHOWN]) + (f", ... ({len(names) - SHOWN} more)" if len(names) > SHOWN else "")
    return (
        Diagnostic(
            "run.on_host",
            f"{len(names)} steps ran on the host: {shown}; the device's array module says of the first: {on_host[names[0]]}",
            ("tasks",),
            Severity.INFO,
            "their times are not those of a device",
            tuple(names[:SHOWN]),
        ),
    )
