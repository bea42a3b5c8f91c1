"""Whether there are GPUs that work, cheapest questions first.

1. Are the package cupy and NVIDIA's driver there? Nothing is loaded but the driver's library (0.2 ms).
2. Does CuPy, once loaded, see devices?
3. Does a small kernel run? That finds a missing NVRTC and GPUs that are too new or too old for it.
4. With several devices: is NCCL there?

The driver is initialised in the process that asks: ask in the process that runs, and do not fork after it.
"""

from __future__ import annotations

import ctypes
from collections.abc import Callable
from dataclasses import dataclass
from importlib import import_module
from importlib.util import find_spec
from typing import Any

from dtir.execute.backends.base import Capabilities, Probe

PACKAGE = "cupy"

INSTALL = "pip install 'dtir[gpu]' for a driver of CUDA 13, 'dtir[gpu12]' for one of CUDA 12, one of them only"

DTYPES = (
    "bool", "int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64",
    "float16", "float32", "float64", "bfloat16", "complex64", "complex128",
)  # fmt: skip
"""Element types that CuPy computes with; bfloat16 since version 14."""

LIBRARY = "libcuda.so.1"

_NO_DEVICE = 100
"""``CUDA_ERROR_NO_DEVICE`` of the driver's interface: no GPU, or all hidden by CUDA_VISIBLE_DEVICES."""


@dataclass(frozen=True, slots=True)
class Driver:
    """What the driver says.

    Args:
        devices: how many it has.
        reason: why there are none.
    """

    devices: int
    reason: str = ""


def ask_driver() -> Driver:
    """Ask NVIDIA's driver for devices."""
    try:
        library = ctypes.CDLL(LIBRARY)
    except OSError:
        return Driver(0, f"there is no NVIDIA driver ({LIBRARY})")
    status = library.cuInit(0)
    if status == _NO_DEVICE:
        return Driver(0, "the NVIDIA driver finds no GPU, or CUDA_VISIBLE_DEVICES hides it")
    if status:
        return Driver(0, f"the NVIDIA driver does not start (cuInit gives {status})")
    count = ctypes.c_int(0)
    status = library.cuDeviceGetCount(ctypes.byref(count))
    if status or not count.value:
        return Driver(0, "the NVIDIA driver finds no GPU")
    return Driver(count.value)


def _load() -> Any:
    return import_module(PACKAGE)


def probe_devices(
    installed: Callable[[], bool] = lambda: find_spec(PACKAGE) is not None,
    driver: Callable[[], Driver] = ask_driver,
    load: Callable[[], Any] = _load,
) -> Probe:
    """Whether programs can run on GPUs here; never raises.

    Args:
        installed: whether the package is there.
        driver: asks the driver.
        load: loads the package.

    Returns:
        Why not; where they can, the versions and the devices.
    """
    lacking: list[str] = []
    there, found = installed(), driver()
    if not found.devices:
        lacking.append(found.reason)
    if not there:
        lacking.append(f"the package cupy is not installed ({INSTALL})")
    if lacking:
        return Probe(False, "; ".join(lacking) + "; on a machine without a GPU use --backend numpy or mpi")
    try:
        cupy = load()
        if not cupy.is_available():
            return Probe(
                False, "CuPy finds no device, though the driver does: cupy is built for another version of CUDA"
            )
        # The first kernel: compiled, loaded and run.
        if int((cupy.arange(4) + 1).sum()) != 10:
            return Probe(False, "a first small kernel gives a wrong result")
        names = tuple(_name(cupy, number) for number in range(int(cupy.cuda.runtime.getDeviceCount())))
        version = int(cupy.cuda.runtime.driverGetVersion())
    except (ImportError, RuntimeError, OSError) as error:
        first = (str(error).splitlines() or [type(error).__name__])[0]
        return Probe(False, f"CuPy cannot run a kernel: {first}; {INSTALL}")
    text = f"CuPy {cupy.__version__}, driver for CUDA {version // 1000}.{version % 1000 // 10}, {_several(names)}"
    if len(names) > 1:
        nccl = nccl_version(cupy)
        text += f", NCCL {nccl}" if nccl else ", no NCCL: ranks on one device only (pip install 'dtir[gpu-nccl]')"
    return Probe(True, text, Capabilities(dtypes=DTYPES, clock="CUDA events", devices=names))


def nccl_version(cupy: Any) -> str | None:
    """The version of NCCL that CuPy has found, None when it has none (its module is then empty)."""
    nccl: Any = cupy.cuda.nccl
    if not getattr(nccl, "available", False):
        return None
    number = int(nccl.get_version())
    return f"{number // 10000}.{number % 10000 // 100}.{number % 100}"


def _name(cupy: Any, number: int) -> str:
    name = cupy.cuda.runtime.getDeviceProperties(number)["name"]
    return name.decode() if isinstance(name, bytes) else str(name)


def _several(names: tuple[str, ...]) -> str:
    return (
        names[0]
        if len(set(names)) == 1 and len(names) == 1
        else f"{len(names)} devices ({', '.join(dict.fromkeys(names))})"
    )
