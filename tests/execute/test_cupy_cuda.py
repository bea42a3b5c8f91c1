"""The door to CUDA: what CuPy and NCCL are called with, and what becomes of their errors. A stand-in answers for them."""

from __future__ import annotations

import re
import sys
from collections.abc import Callable, Sequence
from contextlib import nullcontext
from importlib.util import find_spec
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from dtir.execute.backends.cupy_cuda import CudaRuntime
from dtir.execute.backends.cupy_runtime import DeviceError
from dtir.execute.kernels import Geometry, ReductionKind, fold
from tests.helpers.shared import ROOT


class CompileException(Exception):
    """CuPy's own is no RuntimeError either."""


class NcclError(RuntimeError):
    pass


class StandIn:
    """As much of CuPy as the runtime touches; notes every call."""

    def __init__(self) -> None:
        self.calls: list[tuple[Any, ...]] = []
        self.total = 1024
        self.fails = ""
        self.cuda = SimpleNamespace(
            runtime=SimpleNamespace(
                getDeviceCount=lambda: 2,
                getDeviceProperties=lambda device: {"name": b"A GPU"},
                memcpyAsync=self._note("memcpy"),
                memcpyDeviceToDevice=3,
                streamCaptureModeThreadLocal=1,
            ),
            compiler=SimpleNamespace(CompileException=CompileException),
            Device=self.device,
            Event=lambda **named: SimpleNamespace(record=self._note("record"), synchronize=self._note("sync"), **named),
            Stream=lambda **named: Stream(self),
            MemoryPool=lambda: SimpleNamespace(
                malloc=None,
                set_limit=lambda **named: self.calls.append(("limit", named)),
                used_bytes=lambda: 0,
                total_bytes=lambda: self.total,
                free_all_blocks=self._note("free"),
            ),
            using_allocator=lambda malloc: nullcontext(),
            get_elapsed_time=lambda begin, end: 2.5,
        )

    def _note(self, name: str) -> Callable[..., None]:
        return lambda *arguments: self.calls.append((name, *arguments))

    def device(self, number: int) -> Any:
        facts = SimpleNamespace(
            attributes={"MultiProcessorCount": 132}, mem_info=(3 << 30, 4 << 30), compute_capability="90"
        )
        return nullcontext(facts)

    def RawModule(self, *, code: str, options: Sequence[str], name_expressions: Sequence[str]) -> Any:
        if self.fails == "compile":
            raise CompileException("NVRTC refuses")
        assert "fold_fixed" in code
        self.calls.append(("compile", tuple(options), tuple(name_expressions)))

        def function(name: str) -> Callable[..., None]:
            return lambda grid, block, arguments: self.calls.append((name, grid, block, arguments))

        return SimpleNamespace(get_function=function)

    def named(self, name: str) -> list[tuple[Any, ...]]:
        return [call for call in self.calls if call[0] == name]


class Stream:
    ptr = 77

    def __init__(self, cupy: StandIn) -> None:
        self._cupy = cupy

    def __enter__(self) -> None: ...

    def __exit__(self, *_: object) -> None: ...

    def wait_event(self, event: object) -> None:
        self._cupy.calls.append(("wait", event))

    def synchronize(self) -> None:
        self._cupy.calls.append(("synchronize",))

    def begin_capture(self, mode: int) -> None:
        if self._cupy.fails == "begin":
            raise RuntimeError("cudaErrorStreamCaptureUnsupported")

    def end_capture(self) -> Any:
        if self._cupy.fails == "end":
            raise RuntimeError("cudaErrorStreamCaptureUnjoined")
        note = self._cupy.calls.append
        return SimpleNamespace(upload=lambda stream: note(("upload",)), launch=lambda stream: note(("graph",)))


@pytest.fixture
def cupy(monkeypatch: pytest.MonkeyPatch) -> StandIn:
    found = StandIn()

    def ends(devices: list[int]) -> list[Any]:
        if found.fails == "nccl":
            raise NcclError("unhandled cuda error")

        def check() -> None:
            if found.fails == "link":
                raise NcclError("a link is down")

        note = found._note
        return [
            SimpleNamespace(
                allReduce=note("allReduce"), send=note("send"), recv=note("recv"), check_async_error=check,
                abort=note("abort"), destroy=note("destroy"),
            )
            for _ in devices
        ]  # fmt: skip

    nccl = SimpleNamespace(
        available=True, NcclError=NcclError, NcclCommunicator=SimpleNamespace(initAll=ends),
        groupStart=found._note("start"), groupEnd=found._note("end"),
    )  # fmt: skip
    monkeypatch.setitem(sys.modules, "cupy", found)
    monkeypatch.setitem(sys.modules, "cupy.cuda", found.cuda)
    monkeypatch.setitem(sys.modules, "cupy.cuda.nccl", nccl)
    return found


@pytest.fixture
def runtime(cupy: StandIn) -> CudaRuntime:
    del cupy
    return CudaRuntime()


def test_what_a_device_is(runtime: CudaRuntime) -> None:
    facts = runtime.facts(0)
    assert (facts.name, facts.architecture, facts.multiprocessors) == ("A GPU", "9.0", 132)
    assert (facts.free_bytes, facts.total_bytes) == (3 << 30, 4 << 30)
    assert runtime.geometry(0) == Geometry(132 * 32)
    assert runtime.count == 2


def test_a_launch_hands_structures_by_value_and_numbers_as_scalars(runtime: CudaRuntime, cupy: StandIn) -> None:
    launch = fold([0, 256, 512], [4096], "bf16", ReductionKind.SUM, 64, runtime.geometry(0))
    stream = runtime.stream(1)
    runtime.launch(launch, stream)
    runtime.launch(launch, stream)
    assert len(cupy.named("compile")) == 1
    (name, grid, block, arguments), _ = cupy.named(launch.expression)
    assert name == launch.expression
    assert (grid, block) == (launch.grid, (256, 1, 1))
    assert [getattr(item, "nbytes", None) for item in arguments] == [512, 4, 512, 4, 24]
    assert [isinstance(item, np.ndarray) for item in arguments] == [True, False, True, False, True]
    assert all(item.size == 1 for item in arguments)


def test_kernels_are_compiled_together_and_once(runtime: CudaRuntime, cupy: StandIn) -> None:
    runtime.compile(["copy_pairs<1>", "copy_pairs<2>", "copy_pairs<1>"], 0)
    runtime.compile(["copy_pairs<2>"], 0)
    assert cupy.named("compile") == [("compile", ("-std=c++17",), ("copy_pairs<1>", "copy_pairs<2>"))]
    cupy.fails = "compile"
    with pytest.raises(DeviceError, match="the kernels cannot be compiled: NVRTC refuses"):
        runtime.compile(["copy_pairs<4>"], 0)


def test_events_streams_and_memory(runtime: CudaRuntime, cupy: StandIn) -> None:
    stream, begin, end = runtime.stream(0), runtime.event(0, timed=True), runtime.event(0)
    assert not begin.event.disable_timing
    assert end.event.disable_timing
    stream.record(begin)
    stream.wait(begin)
    stream.synchronize()
    begin.synchronize()
    assert end.since_ms(begin) == 2.5
    runtime.copy(64, 32, 16, stream)
    assert cupy.named("memcpy") == [("memcpy", 64, 32, 16, 3, 77)]
    arena = runtime.arena(0, 4096)
    assert cupy.named("limit") == [("limit", {"size": 4096})]
    assert (arena.used_bytes, arena.held_bytes) == (0, 1024)
    arena.close()
    assert cupy.named("free")


def test_nccl_gets_its_own_numbers(runtime: CudaRuntime, cupy: StandIn) -> None:
    stream = runtime.stream(0)
    one, _ = runtime.communicators([0, 1])
    one.all_reduce(1, 2, 3, "f32", ReductionKind.MAX, stream)
    with runtime.group():
        one.send(5, 6, 1, stream)
        one.receive(7, 8, 1, stream)
    assert cupy.named("allReduce") == [("allReduce", 1, 2, 3, 7, 2, 77)]
    names = [call[0] for call in cupy.calls if call[0] in ("start", "send", "recv", "end")]
    assert names == ["start", "send", "recv", "end"]
    assert cupy.named("send") == [("send", 5, 6, 1, 1, 77)]
    one.check()
    cupy.fails = "link"
    with pytest.raises(DeviceError, match="a link is down"):
        one.check()
    one.close(abort=True)
    one.close()
    assert [call[0] for call in cupy.calls if call[0] in ("abort", "destroy")] == ["abort", "destroy"]


def test_communicators_that_cannot_be_made_say_why(runtime: CudaRuntime, cupy: StandIn) -> None:
    with pytest.raises(DeviceError, match="distinct devices"):
        runtime.communicators([0, 0])
    cupy.fails = "nccl"
    with pytest.raises(DeviceError, match="unhandled cuda error"):
        runtime.communicators([0, 1])
    sys.modules["cupy.cuda.nccl"].available = False  # type: ignore[attr-defined]
    with pytest.raises(DeviceError, match=r"dtir\[gpu-nccl\]"):
        runtime.communicators([0, 1])


def captured(runtime: CudaRuntime, during: Callable[[], None] = lambda: None) -> Any:
    with runtime.capture(runtime.stream(0), runtime.arena(0)) as found:
        during()
    return found.graph


def test_captures(runtime: CudaRuntime, cupy: StandIn) -> None:
    captured(runtime).launch(runtime.stream(0))
    assert cupy.named("upload")
    assert cupy.named("graph")
    with pytest.raises(DeviceError, match="memory was taken"):
        captured(runtime, lambda: setattr(cupy, "total", 4096))
    cupy.fails = "begin"
    with pytest.raises(DeviceError, match="no capture can begin"):
        captured(runtime)
    cupy.fails = "end"
    with pytest.raises(DeviceError, match="StreamCaptureUnjoined"):
        captured(runtime)


def test_no_device_is_an_error(cupy: StandIn) -> None:
    def none() -> int:
        raise RuntimeError("cudaErrorNoDevice")

    cupy.cuda.runtime.getDeviceCount = none
    with pytest.raises(DeviceError, match="cudaErrorNoDevice"):
        CudaRuntime()


def test_cupy_has_every_function_that_the_executors_call() -> None:
    """Importing CuPy needs no GPU."""
    if find_spec("cupy") is None:
        pytest.skip("cupy is not installed")
    module = pytest.importorskip("cupy", reason="cupy cannot be imported", exc_type=ImportError)
    text = "\n".join(
        path.read_text() for folder in ("execute", "ops") for path in (ROOT / "dtir" / folder).rglob("*.py")
    )
    used = set(re.findall(r"\bxp\.([a-z]\w+)", text)) - {"compile"}
    assert "concatenate" in used
    assert not [name for name in sorted(used) if not hasattr(module, name)]
