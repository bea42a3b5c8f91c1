"""Kernels on the host: their source compiled by a C++ compiler and called thread by thread, for tests and dry runs."""

from __future__ import annotations

import ctypes
import os
import shutil
import subprocess
import tempfile
from collections.abc import Callable, Iterable
from pathlib import Path

import numpy as np

from dtir.execute.kernels.launches import Launch, host_source, kernel_source

COMPILERS = ("c++", "g++", "clang++")

FLAGS = ("-std=c++17", "-O1", "-ffp-contract=off", "-fwrapv", "-fno-strict-aliasing", "-w", "-shared", "-fPIC")
"""No fused multiply-add, as in the kernels on a GPU: nothing there multiplies and adds."""


class CompileError(RuntimeError):
    """There is no compiler, or it refuses the source; the message says which."""


def host_compiler() -> str | None:
    """The C++ compiler: that of ``CXX``, else the first of `COMPILERS` on the path; None when there is none."""
    named = os.environ.get("CXX")
    return next((found for name in ([named] if named else COMPILERS) if (found := shutil.which(name))), None)


def host_text(expressions: Iterable[str]) -> str:
    """The C++ source with an entry point for every expression, ``kernel_0``, ``kernel_1``, ..."""
    entries = [
        f'extern "C" void kernel_{number}(const unsigned* grid, unsigned block, void** arguments) '
        f"{{ run_kernel({expression}, grid, block, arguments); }}"
        for number, expression in enumerate(expressions)
    ]
    return "\n".join(["#define HOST_EMU", kernel_source(), host_source(), *entries, ""])


class HostKernels:
    """Instances of the kernels for the host; what is not there yet is compiled when it is first launched.

    Args:
        expressions: instances to compile together.

    Raises:
        CompileError: there is no C++ compiler.
    """

    def __init__(self, expressions: Iterable[str] = ()) -> None:
        self._compiler = host_compiler()
        if self._compiler is None:
            raise CompileError(f"no C++ compiler was found ({', '.join(COMPILERS)}, or CXX)")
        self._entries: dict[str, Callable[..., None]] = {}
        self.add(expressions)

    def add(self, expressions: Iterable[str]) -> None:
        """Compile those that are not there yet, together.

        Raises:
            CompileError: the compiler refuses one of them.
        """
        wanted = [expression for expression in dict.fromkeys(expressions) if expression not in self._entries]
        if wanted:
            self._compile(wanted)

    def _compile(self, expressions: list[str]) -> None:
        # The library stays loaded; its file need not stay.
        with tempfile.TemporaryDirectory(prefix="dtir-kernels-") as folder:
            source, library = Path(folder) / "kernels.cpp", Path(folder) / "kernels.so"
            source.write_text(host_text(expressions), encoding="utf-8")
            assert self._compiler is not None
            done = subprocess.run(
                [self._compiler, *FLAGS, "-o", str(library), str(source)], capture_output=True, text=True, check=False
            )
            if done.returncode:
                raise CompileError(f"{self._compiler} refuses the kernels: {done.stderr.strip()[:2000]}")
            loaded = ctypes.CDLL(str(library))
        for number, expression in enumerate(expressions):
            entry = loaded[f"kernel_{number}"]
            entry.restype = None
            self._entries[expression] = entry

    def run(self, launch: Launch) -> None:
        """Do what a launch would do on a GPU; the addresses are those of host memory.

        Raises:
            CompileError: the compiler refuses the instance.
        """
        self.add([launch.expression])
        grid = (ctypes.c_uint * 3)(*launch.grid)
        held = [np.ascontiguousarray(argument) for argument in launch.arguments]
        arguments = (ctypes.c_void_p * len(held))(*(array.ctypes.data for array in held))
        self._entries[launch.expression](grid, ctypes.c_uint(launch.threads), arguments)
