"""Ranks on GPUs: several on one device, whose communication is fused kernels; NCCL between devices.

What a device does is behind `DeviceRuntime`: CUDA through CuPy here, the host in tests.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable

from dtir.execute.backends.base import Capabilities, Probe
from dtir.execute.backends.cupy_devices import DevicesSession
from dtir.execute.backends.cupy_fabric import DeviceFabric, kernels_of
from dtir.execute.backends.cupy_lane import Lane
from dtir.execute.backends.cupy_peers import Peers
from dtir.execute.backends.cupy_probe import probe_devices
from dtir.execute.backends.cupy_runtime import DeviceRuntime
from dtir.execute.backends.cupy_session import DeviceSession
from dtir.execute.binding import Binding, BindingError, require_fit, spread
from dtir.execute.dtypes import numpy_dtype
from dtir.execute.memory import needed_bytes, text_bytes
from dtir.execute.session import Observer, Options, Session
from dtir.execute.steps import ExecPlan
from dtir.schema.diagnostics import Diagnostic


def _cuda() -> DeviceRuntime:
    from dtir.execute.backends.cupy_cuda import CudaRuntime

    return CudaRuntime()


class CupyBackend:
    """Runs every rank of a program on the devices of this process.

    Args:
        runtime: makes the devices when they are needed; the default are those of CUDA.
        found: what a look for devices has to say; the default looks.
    """

    name = "cupy"

    def __init__(
        self, runtime: Callable[[], DeviceRuntime] = _cuda, found: Callable[[], Probe] = probe_devices
    ) -> None:
        self._make = runtime
        self._find = found
        self._runtime: DeviceRuntime | None = None

    @property
    def runtime(self) -> DeviceRuntime:
        """The devices, made when they are first needed."""
        if self._runtime is None:
            self._runtime = self._make()
        return self._runtime

    def probe(self) -> Probe:
        """Whether there are devices that work: cheap questions first, and nothing is loaded where those say no."""
        return self._find()

    def default_binding(self, plan: ExecPlan, processes: int | None = None) -> Binding:
        """All ranks in one process, on the first device.

        Raises:
            BindingError: several processes are asked for.
        """
        binding = spread(self.name, plan.ranks, processes or 1, 1)
        self._require_one(binding)
        return binding

    def obstacles(self, plan: ExecPlan, binding: Binding) -> list[Diagnostic]:
        """Devices that are not there, too little memory on them, element types that CuPy does not have."""
        found: list[Diagnostic] = []
        known = self.probe().capabilities.dtypes
        used = sorted({slot.value.type.dtype for scope in plan.scopes for slot in scope.slots})
        lacking = [name for name in used if known and numpy_dtype(name).name not in known]
        if lacking:
            found.append(
                Diagnostic(
                    "run.dtype",
                    f"CuPy has no arrays of {', '.join(lacking)}, which the program uses",
                    ("values",),
                    hint="run it with --backend numpy or mpi",
                )
            )
        ranks = Counter(seat.device or 0 for seat in binding.seats)
        for device, count in sorted(ranks.items()):
            if device >= self.runtime.count:
                found.append(
                    Diagnostic(
                        "run.binding",
                        f"a rank is bound to device {device}, there {'is' if self.runtime.count == 1 else 'are'} {self.runtime.count}",
                        hint="devices are numbered from 0; CUDA_VISIBLE_DEVICES hides the others",
                    )
                )
                continue
            free, needed = self.runtime.facts(device).free_bytes, needed_bytes(plan, count)
            if needed > free:
                found.append(
                    Diagnostic(
                        "run.memory",
                        f"{count} ranks need about {text_bytes(needed)} on device {device}, {text_bytes(free)} are free there",
                        hint="bind ranks to further devices, run a smaller program, or use --backend numpy",
                    )
                )
        return found

    def prepare(self, plan: ExecPlan, binding: Binding, options: Options, observer: Observer | None = None) -> Session:
        """A session that holds all ranks.

        Raises:
            BindingError: the binding is for another number of ranks, spreads them over processes, or names a device that
                is not there.
            UnknownOperation: a local step has no evaluation.
        """
        require_fit(binding, plan.ranks)
        self._require_one(binding)
        devices = sorted({seat.device or 0 for seat in binding.seats})
        if devices and devices[-1] >= self.runtime.count:
            raise BindingError(f"a rank is bound to device {devices[-1]}, there are {self.runtime.count}")
        if len(devices) > 1:
            place_of = [devices.index(seat.device or 0) for seat in binding.seats]
            return DevicesSession(plan, Peers(self.runtime, devices, place_of), options, observer)
        self.runtime.compile(kernels_of(plan, self.runtime.geometry(devices[0])), devices[0])
        lane = Lane(self.runtime, devices[0], timed=observer is not None)
        return DeviceSession(plan, DeviceFabric(range(plan.ranks), lane), options, observer)

    def _require_one(self, binding: Binding) -> None:
        if binding.processes != 1:
            raise BindingError(
                f"the cupy back end runs all ranks in one process, {binding.processes} are asked for: use --backend mpi"
            )


__all__ = ["Capabilities", "CupyBackend"]
