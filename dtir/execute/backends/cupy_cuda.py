"""Devices of CUDA, through CuPy.

Source of what CuPy offers: its reference for version 14, and NCCL's user guide. One session has a memory pool of its own on
each device: what a graph has captured stays its own between two launches.
"""

from __future__ import annotations

from collections.abc import Generator, Sequence
from contextlib import contextmanager
from importlib import import_module
from typing import Any

import numpy as np

from dtir.execute.backends.cupy_runtime import DeviceError, DeviceFacts, require_distinct
from dtir.execute.dtypes import Array
from dtir.execute.kernels import OPTIONS, Geometry, Launch, kernel_source
from dtir.ir.reductions import ReductionKind

WAVES = 32
"""Blocks of a grid for every multiprocessor: 4 are there at a time, so that each does about 8 rounds."""

_NCCL_TYPES = {
    "i8": 0, "u8": 1, "i32": 2, "u32": 3, "i64": 4, "u64": 5, "f16": 6, "f32": 7, "f64": 8, "bf16": 9,
}  # fmt: skip
"""``ncclDataType_t``."""

_NCCL_OPERATIONS = {ReductionKind.SUM: 0, ReductionKind.PRODUCT: 1, ReductionKind.MAX: 2, ReductionKind.MIN: 3}
"""``ncclRedOp_t``."""

_BYTES = 1
"""``ncclUint8``: what is only moved is moved as bytes."""


class CudaEvent:
    """A CUDA event."""

    def __init__(self, cupy: Any, device: int, *, timed: bool) -> None:
        self._cupy = cupy
        with cupy.cuda.Device(device):
            self.event: Any = cupy.cuda.Event(disable_timing=not timed)

    def synchronize(self) -> None:
        """Wait on the host until it is reached."""
        self.event.synchronize()

    def since_ms(self, earlier: Any) -> float:
        """Milliseconds since an earlier event; 0.5 us is what CUDA's events resolve."""
        return float(self._cupy.cuda.get_elapsed_time(earlier.event, self.event))


class CudaStream:
    """A CUDA stream that does not wait for the default stream."""

    def __init__(self, cupy: Any, device: int) -> None:
        self.device = device
        with cupy.cuda.Device(device):
            self.stream: Any = cupy.cuda.Stream(non_blocking=True)

    def record(self, event: Any) -> None:
        """Set an event behind all work so far."""
        event.event.record(self.stream)

    def wait(self, event: Any) -> None:
        """Let later work wait for an event."""
        self.stream.wait_event(event.event)

    def synchronize(self) -> None:
        """Wait on the host until all work is done."""
        self.stream.synchronize()


class CudaArena:
    """A memory pool for one session."""

    def __init__(self, cupy: Any, device: int, limit_bytes: int | None) -> None:
        self.pool: Any = cupy.cuda.MemoryPool()
        if limit_bytes is not None:
            with cupy.cuda.Device(device):
                self.pool.set_limit(size=limit_bytes)

    @property
    def used_bytes(self) -> int:
        """Bytes of arrays that live."""
        return int(self.pool.used_bytes())

    @property
    def held_bytes(self) -> int:
        """Bytes that were taken from the device."""
        return int(self.pool.total_bytes())

    def close(self) -> None:
        """Give free memory back."""
        self.pool.free_all_blocks()


class CudaGraph:
    """Captured work."""

    def __init__(self, graph: Any, stream: Any) -> None:
        self._graph = graph
        graph.upload(stream.stream)

    def launch(self, stream: Any) -> None:
        """Issue it."""
        self._graph.launch(stream.stream)


class CudaCapture:
    """What comes out of a capture."""

    def __init__(self) -> None:
        self.graph: Any = None


class CudaCommunicator:
    """One device's end of an NCCL communicator."""

    def __init__(self, nccl: Any, communicator: Any) -> None:
        self._nccl = nccl
        self._communicator = communicator

    def all_reduce(self, send: int, receive: int, count: int, element: str, kind: ReductionKind, stream: Any) -> None:
        """``ncclAllReduce``."""
        self._communicator.allReduce(
            send, receive, count, _NCCL_TYPES[element], _NCCL_OPERATIONS[kind], stream.stream.ptr
        )

    def send(self, source: int, size_bytes: int, peer: int, stream: Any) -> None:
        """``ncclSend``, within a group."""
        self._communicator.send(source, size_bytes, _BYTES, peer, stream.stream.ptr)

    def receive(self, target: int, size_bytes: int, peer: int, stream: Any) -> None:
        """``ncclRecv``, within a group."""
        self._communicator.recv(target, size_bytes, _BYTES, peer, stream.stream.ptr)

    def check(self) -> None:
        """Ask for errors that came up since the calls returned.

        Raises:
            DeviceError: there was one.
        """
        try:
            self._communicator.check_async_error()
        except self._nccl.NcclError as error:
            raise DeviceError(f"NCCL: {error}") from error

    def close(self, *, abort: bool = False) -> None:
        """Give it back."""
        if abort:
            self._communicator.abort()
        else:
            self._communicator.destroy()


class CudaRuntime:
    """The GPUs of this process.

    Raises:
        DeviceError: there is none; `cupy_probe` says why beforehand.
    """

    def __init__(self) -> None:
        try:
            self.xp: Any = import_module("cupy")
            self.count = int(self.xp.cuda.runtime.getDeviceCount())
        except (ImportError, RuntimeError) as error:
            raise DeviceError(f"CUDA cannot be used: {error}") from error
        self._functions: dict[tuple[int, str], Any] = {}

    def facts(self, device: int) -> DeviceFacts:
        """What a GPU is, and its memory now."""
        with self.xp.cuda.Device(device) as here:
            attributes: dict[str, int] = here.attributes
            free, total = here.mem_info
            name = self.xp.cuda.runtime.getDeviceProperties(device)["name"]
            capability = str(here.compute_capability)
            return DeviceFacts(
                name.decode() if isinstance(name, bytes) else str(name),
                f"{capability[:-1]}.{capability[-1]}",
                int(attributes["MultiProcessorCount"]),
                int(free),
                int(total),
            )

    def geometry(self, device: int) -> Geometry:
        """Enough blocks for every multiprocessor."""
        return Geometry(self.facts(device).multiprocessors * WAVES)

    def arena(self, device: int, limit_bytes: int | None = None) -> CudaArena:
        """A memory pool."""
        return CudaArena(self.xp, device, limit_bytes)

    def stream(self, device: int) -> CudaStream:
        """A stream."""
        return CudaStream(self.xp, device)

    def event(self, device: int, *, timed: bool = False) -> CudaEvent:
        """An event."""
        return CudaEvent(self.xp, device, timed=timed)

    @contextmanager
    def on(self, stream: Any, arena: Any) -> Generator[None]:
        """Work of CuPy in this thread goes to the stream, its memory comes from the pool."""
        cuda: Any = self.xp.cuda
        with cuda.Device(stream.device), cuda.using_allocator(arena.pool.malloc), stream.stream:
            yield

    def compile(self, expressions: Sequence[str], device: int) -> None:
        """Compile kernels that are not ready into one module.

        Raises:
            DeviceError: NVRTC is missing, or refuses the source.
        """
        wanted = tuple(one for one in dict.fromkeys(expressions) if (device, one) not in self._functions)
        if not wanted:
            return
        with self.xp.cuda.Device(device):
            try:
                module = self.xp.RawModule(code=kernel_source(), options=OPTIONS, name_expressions=wanted)
                for expression in wanted:
                    self._functions[device, expression] = module.get_function(expression)
            except (RuntimeError, self.xp.cuda.compiler.CompileException) as error:
                raise DeviceError(f"the kernels cannot be compiled: {str(error).strip()[:500]}") from error

    def launch(self, launch: Launch, stream: Any) -> None:
        """Issue a kernel; it is compiled when it is first met."""
        self.compile([launch.expression], stream.device)
        function = self._functions[stream.device, launch.expression]
        with self.xp.cuda.Device(stream.device):
            # Structures go by value as arrays of one element, plain numbers as scalars.
            arguments = tuple(argument if argument.dtype.names else argument[0] for argument in launch.arguments)
            with stream.stream:
                function(launch.grid, (launch.threads, 1, 1), arguments)

    def copy(self, target: int, source: int, size_bytes: int, stream: Any) -> None:
        """Issue a copy within devices."""
        runtime: Any = self.xp.cuda.runtime
        runtime.memcpyAsync(target, source, size_bytes, runtime.memcpyDeviceToDevice, stream.stream.ptr)

    def address(self, array: Array) -> int:
        """Where an array begins."""
        return int(array.data.ptr)

    def memory(self, array: Array) -> int | None:
        """The allocation that an array is a view of."""
        return int(array.data.mem.ptr) if array.size else None

    def to_device(self, array: Array) -> Array:
        """A copy of a host array, on the current stream."""
        return self.xp.asarray(np.asarray(array))

    def to_host(self, array: Array) -> Array:
        """A copy for the host; waits for the current stream."""
        return array.get()

    def communicators(self, devices: Sequence[int]) -> list[CudaCommunicator]:
        """An NCCL communicator among distinct devices, all ends made together.

        Raises:
            DeviceError: NCCL is not there, or refuses.
        """
        require_distinct(devices)
        nccl: Any = import_module("cupy.cuda.nccl")
        if not getattr(nccl, "available", False):
            raise DeviceError("ranks on several devices need NCCL: pip install 'dtir[gpu-nccl]'")
        try:
            made: Any = nccl.NcclCommunicator.initAll(list(devices))
        except nccl.NcclError as error:
            raise DeviceError(f"NCCL makes no communicator among devices {list(devices)}: {error}") from error
        return [CudaCommunicator(nccl, communicator) for communicator in made]

    @contextmanager
    def group(self) -> Generator[None]:
        """``ncclGroupStart`` and ``ncclGroupEnd``."""
        nccl: Any = import_module("cupy.cuda.nccl")
        nccl.groupStart()
        try:
            yield
        finally:
            nccl.groupEnd()

    @contextmanager
    def capture(self, stream: Any, arena: Any) -> Generator[CudaCapture]:
        """Capture work of this thread into a graph.

        Raises:
            DeviceError: something was done that CUDA does not capture, or the pool grew.
        """
        found = CudaCapture()
        held = arena.held_bytes
        with self.on(stream, arena):
            try:
                stream.stream.begin_capture(self.xp.cuda.runtime.streamCaptureModeThreadLocal)
            except RuntimeError as error:
                raise DeviceError(f"no capture can begin: {error}") from error
            try:
                yield found
            finally:
                graph = _captured(stream)
        if arena.held_bytes != held:
            raise DeviceError("memory was taken from the device during a capture: run once before it")
        found.graph = CudaGraph(graph, stream)


def _captured(stream: Any) -> Any:
    """End a capture.

    Raises:
        DeviceError: something was done in it that CUDA does not capture, or a stream was not joined.
    """
    try:
        return stream.stream.end_capture()
    except RuntimeError as error:
        raise DeviceError(f"the work cannot be captured: {error}") from error
