"""Running a real JupyterLab: a server of its own in a folder of its own, ended as a group."""

from __future__ import annotations

import contextlib
import json
import os
import socket
import subprocess
import sys
import time
import urllib.request
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from tests.helpers.explorer import stop_group
from tests.helpers.shared import ROOT

START_TIMEOUT_S = 90

READY = """
() => window.jupyterapp?.shell.currentWidget?.sessionContext?.session?.kernel?.status === 'idle'
  && document.querySelector('.jp-Notebook .jp-Cell')
"""
"""Whether the notebook is there and its kernel waits."""

IDLE = "![...document.querySelectorAll('.jp-InputArea-prompt')].some((prompt) => prompt.textContent.includes('*'))"
"""Whether no cell is waiting or running."""
RUN_ALL = "void window.jupyterapp.commands.execute('notebook:run-all-cells')"
"""Run all cells, without waiting: the promise ends with the last of them."""


@dataclass(slots=True)
class Jupyter:
    """A running JupyterLab.

    Args:
        url: of the server.
        folder: its root.
        process: leader of its own group.
    """

    url: str
    folder: Path
    process: subprocess.Popen[bytes]

    def notebook(self, name: str, cells: Sequence[str]) -> str:
        """Write a notebook of code cells; returns the address that opens it."""
        made = {
            "cells": [
                {
                    "cell_type": "code",
                    "execution_count": None,
                    "id": f"cell-{number}",
                    "metadata": {},
                    "outputs": [],
                    "source": source,
                }
                for number, source in enumerate(cells)
            ],
            "metadata": {"kernelspec": {"display_name": "Python 3", "language": "python", "name": "python3"}},
            "nbformat": 4,
            "nbformat_minor": 5,
        }
        (self.folder / name).write_text(json.dumps(made), encoding="utf-8")
        return f"{self.url}/doc/tree/{name}"

    def stop(self) -> None:
        stop_group(self.process)  # type: ignore[arg-type]


def free_port() -> int:
    with socket.socket() as own:
        own.bind(("127.0.0.1", 0))
        return int(own.getsockname()[1])


def start_jupyter(folder: Path) -> Jupyter:
    """Start JupyterLab on loopback, without a login, in a folder.

    Raises:
        RuntimeError: it does not answer in time; with what it printed.
    """
    port = free_port()
    settings = folder / ".jupyter"
    settings.mkdir(parents=True, exist_ok=True)
    asks = settings / "lab" / "@jupyterlab" / "apputils-extension"
    asks.mkdir(parents=True)
    (asks / "notification.jupyterlab-settings").write_text('{"fetchNews": "false", "checkForUpdates": false}', "utf-8")
    log = settings / "log.txt"
    command = [
        sys.executable,
        "-m",
        "jupyterlab",
        "--no-browser",
        "--allow-root",
        "--expose-app-in-browser",
        "--ServerApp.ip=127.0.0.1",
        f"--ServerApp.port={port}",
        "--ServerApp.port_retries=0",
        "--IdentityProvider.token=",
        f"--ServerApp.root_dir={folder}",
        "--LabApp.check_for_updates_class=jupyterlab.NeverCheckForUpdate",
    ]
    environment = {
        **os.environ,
        "JUPYTER_CONFIG_DIR": str(settings),
        "JUPYTER_DATA_DIR": str(settings / "data"),
        "JUPYTER_RUNTIME_DIR": str(settings / "runtime"),
        "JUPYTERLAB_SETTINGS_DIR": str(settings / "lab"),
        "JUPYTERLAB_WORKSPACES_DIR": str(settings / "workspaces"),
        "IPYTHONDIR": str(settings / "ipython"),
        "PYTHONPATH": os.pathsep.join([str(ROOT), str(ROOT / "app")]),
    }
    with log.open("wb") as said:
        process = subprocess.Popen(
            command, stdin=subprocess.DEVNULL, stdout=said, stderr=said, env=environment, start_new_session=True
        )
    url = f"http://127.0.0.1:{port}"
    end = time.monotonic() + START_TIMEOUT_S
    while time.monotonic() < end and process.poll() is None:
        with contextlib.suppress(OSError), urllib.request.urlopen(f"{url}/api/status", timeout=2):
            return Jupyter(url, folder, process)
        with contextlib.suppress(subprocess.TimeoutExpired):
            process.wait(timeout=0.2)
    stop_group(process)  # type: ignore[arg-type]
    raise RuntimeError(f"JupyterLab did not start:\n{log.read_text(encoding='utf-8', errors='replace')[-3000:]}")
