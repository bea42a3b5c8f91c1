"""Looking for GPUs: what is asked in which order, and what people are told."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from dtir.execute import Request, load_backend, run_program
from dtir.execute.backends.cupy_ import CupyBackend
from dtir.execute.backends.cupy_probe import DTYPES, Driver, ask_driver, nccl_version, probe_devices
from dtir.execute.binding import Binding, BindingError, Seat
from dtir.execute.session import Options
from dtir.schema.result import Err
from tests.helpers.cli import runner
from tests.helpers.devices import played_backend, played_runtime
from tests.helpers.running import hlo_program, plan_of

SMALL = """HloModule m, num_partitions=2
ENTRY e { p = f32[256]{0} parameter(0)
 ROOT r = f32[256]{0} add(p, p) }"""


class Number:
    """A device array of one number."""

    def __init__(self, value: int) -> None:
        self.value = value

    def __add__(self, other: int) -> Number:
        return Number(self.value)

    def sum(self) -> int:
        return self.value


def cupy(*, result: int = 10, devices: int = 1, nccl: bool = False, available: bool = True) -> Any:
    """As much of CuPy as the probe looks at."""
    properties: Callable[[int], dict[str, bytes]] = lambda number: {"name": b"A GPU"}  # noqa: E731
    runtime = SimpleNamespace(
        getDeviceCount=lambda: devices, driverGetVersion=lambda: 13010, getDeviceProperties=properties
    )
    found = SimpleNamespace(available=True, get_version=lambda: 23203) if nccl else SimpleNamespace()
    return SimpleNamespace(
        __version__="14.2.0",
        is_available=lambda: available,
        arange=lambda count: Number(result),
        cuda=SimpleNamespace(runtime=runtime, nccl=found),
    )


def refuse() -> Any:
    raise AssertionError("CuPy is loaded though there is no driver")


def test_nothing_is_loaded_without_a_driver() -> None:
    probe = probe_devices(lambda: True, lambda: Driver(0, "there is no NVIDIA driver (libcuda.so.1)"), refuse)
    assert not probe.ok
    assert "no NVIDIA driver" in probe.reason
    assert "not installed" not in probe.reason
    assert "--backend numpy" in probe.reason


def test_all_that_is_missing_is_named_at_once() -> None:
    probe = probe_devices(lambda: False, lambda: Driver(0, "there is no NVIDIA driver (libcuda.so.1)"), refuse)
    assert "no NVIDIA driver" in probe.reason
    assert "dtir[gpu]" in probe.reason


def test_a_device_that_works() -> None:
    probe = probe_devices(lambda: True, lambda: Driver(1), cupy)
    assert probe.ok
    assert probe.reason == "CuPy 14.2.0, driver for CUDA 13.1, A GPU"
    assert probe.capabilities.devices == ("A GPU",)
    assert probe.capabilities.clock == "CUDA events"
    assert "bfloat16" in probe.capabilities.dtypes


@pytest.mark.parametrize(("nccl", "text"), [(True, "NCCL 2.32.3"), (False, "no NCCL: ranks on one device only")])
def test_several_devices_are_asked_for_nccl(nccl: bool, text: str) -> None:
    probe = probe_devices(lambda: True, lambda: Driver(2), lambda: cupy(devices=2, nccl=nccl))
    assert probe.ok
    assert text in probe.reason
    assert nccl_version(cupy(nccl=nccl)) == ("2.32.3" if nccl else None)


def raises(error: Exception) -> Callable[[], Any]:
    def load() -> Any:
        found = cupy()

        def arange(count: int) -> Any:
            raise error

        found.arange = arange
        return found

    return load


@pytest.mark.parametrize(
    ("load", "text"),
    [
        (lambda: cupy(available=False), "built for another version of CUDA"),
        (lambda: cupy(result=9), "gives a wrong result"),
        (raises(RuntimeError("NVRTC is not there\nmore lines")), "cannot run a kernel: NVRTC is not there;"),
        (raises(ImportError("no module")), "cannot run a kernel: no module"),
    ],
)
def test_a_device_that_does_not_work(load: Callable[[], Any], text: str) -> None:
    probe = probe_devices(lambda: True, lambda: Driver(1), load)
    assert not probe.ok
    assert text in probe.reason


def test_the_driver_answers_here() -> None:
    """Whatever this machine has: a number of devices, or a reason."""
    found = ask_driver()
    assert (found.devices > 0) == (found.reason == "")


def test_the_back_end_is_known_and_explains_itself() -> None:
    probe = load_backend("cupy").probe()
    assert probe.reason
    assert probe.ok == bool(probe.capabilities.devices)


def test_asking_loads_nothing() -> None:
    code = (
        "import sys; from dtir.execute import load_backend; p = load_backend('cupy').probe();"
        "sys.exit(0 if p.ok or 'cupy' not in sys.modules else 1)"
    )
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0


@pytest.mark.skipif(load_backend("cupy").probe().ok, reason="there is a GPU here")
def test_the_command_line_says_why_and_what_to_do(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "small.hlo"
    path.write_text(SMALL)
    done = runner(capsys, monkeypatch)("run", str(path), "--backend", "cupy")
    assert done.code == 2
    assert "the cupy back end cannot run here" in done.err
    assert "--backend numpy" in done.err
    assert done.out == ""


# -- what is refused before a run starts ----------------------------------------------------------------------------------


def test_a_program_that_does_not_fit_into_the_device_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    runtime = played_runtime(1, memory_bytes=4096)
    monkeypatch.setattr("dtir.execute.run.load_backend", lambda name: played_backend(runtime))
    found = run_program(hlo_program(SMALL), Request(backend="cupy"))
    assert isinstance(found, Err)
    (finding,) = found.error
    assert finding.code == "run.memory"
    assert "2 ranks need about 6.0 KiB on device 0, 4.0 KiB are free there" in finding.message
    assert not runtime.log


def test_element_types_that_devices_lack_are_refused() -> None:
    backend = CupyBackend(played_runtime, lambda: probe_devices(lambda: True, lambda: Driver(1), cupy))
    plan = plan_of(hlo_program(SMALL.replace("f32", "f8e4m3fn")))
    (finding,) = backend.obstacles(plan, backend.default_binding(plan))
    assert finding.code == "run.dtype"
    assert "f8e4m3fn" in finding.message
    assert "float8_e4m3fn" not in DTYPES


def test_bindings_are_checked() -> None:
    runtime = played_runtime(2)
    backend = played_backend(runtime)
    plan = plan_of(hlo_program(SMALL))
    far = Binding("cupy", (Seat(0, 0), Seat(0, 5)))
    (finding,) = backend.obstacles(plan, far)
    assert finding.code == "run.binding"
    assert "device 5" in finding.message
    with pytest.raises(BindingError, match="device 5, there are 2"):
        backend.prepare(plan, far, Options())
    with pytest.raises(BindingError, match="all ranks in one process"):
        backend.default_binding(plan, 2)
    with pytest.raises(BindingError, match="the binding is for 1 ranks"):
        backend.prepare(plan, Binding("cupy", (Seat(0, 0),)), Options())
