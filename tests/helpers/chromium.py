"""Finding a Chromium for the UI tests, or installing one.

In this order: DTIR_CHROMIUM, the names browsers have on PATH, Playwright's own; then Playwright's installer, then (as
root, where there is apt-get) Debian's package. DTIR_NO_BROWSER_INSTALL=1 leaves the machine as it is.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

VARIABLE = "DTIR_CHROMIUM"
NO_INSTALL = "DTIR_NO_BROWSER_INSTALL"
NAMES = ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable", "chrome")
INSTALL_TIMEOUT_S = 600

LAUNCH_ARGS = (
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
    "--font-render-hinting=none",
    "--force-device-scale-factor=1",
)


def launch_args() -> list[str]:
    """Arguments for a quiet, repeatable browser; root needs the sandbox off."""
    root = hasattr(os, "geteuid") and os.geteuid() == 0
    return [*(["--no-sandbox"] if root else []), *LAUNCH_ARGS]


class NoBrowser(Exception):
    """No Chromium was found and none could be installed; the text says what was tried."""


def find_chromium(own: str | None = None) -> Path | None:
    """The executable to use, or None.

    Args:
        own: where Playwright would have its own browser.

    Raises:
        NoBrowser: DTIR_CHROMIUM names a file that is not there.
    """
    if named := os.environ.get(VARIABLE):
        if not Path(named).is_file():
            raise NoBrowser(f"{VARIABLE}={named} is no file")
        return Path(named)
    on_path = next((found for name in NAMES if (found := shutil.which(name))), None)
    if on_path:
        return Path(on_path)
    return Path(own) if own and Path(own).is_file() else None


def _run(*command: str) -> str | None:
    """Run an installer; None when it worked, else the last line of what it said."""
    try:
        done = subprocess.run(command, capture_output=True, text=True, timeout=INSTALL_TIMEOUT_S, check=False)
    except subprocess.TimeoutExpired:
        return f"{' '.join(command)}: no end after {INSTALL_TIMEOUT_S} s"
    if done.returncode == 0:
        return None
    said = (done.stderr or done.stdout).strip().splitlines()
    return f"{' '.join(command)}: {said[-1] if said else f'exit {done.returncode}'}"


def require_chromium(own: str | None = None, run: Callable[..., str | None] = _run) -> Path:
    """The executable to use, installed when there is none.

    Raises:
        NoBrowser: there is none, with the reasons.
    """
    if found := find_chromium(own):
        return found
    if os.environ.get(NO_INSTALL):
        raise NoBrowser(f"no Chromium ({VARIABLE}, PATH, Playwright's own), and {NO_INSTALL} forbids installing one")
    tried: list[str] = []
    root = hasattr(os, "geteuid") and os.geteuid() == 0
    installers = [[(sys.executable, "-m", "playwright", "install", "chromium")]]
    if root and shutil.which("apt-get"):
        install = ("apt-get", "-qq", "install", "-y", "--no-install-recommends", "chromium", "fonts-dejavu-core")
        installers.append([("apt-get", "-qq", "update"), install])
    for commands in installers:
        for command in commands:
            if reason := run(*command):
                tried.append(reason)
        if found := find_chromium(own):
            return found
    raise NoBrowser(
        f"no Chromium ({VARIABLE}, PATH, Playwright's own), and none could be installed: " + "; ".join(tried)
    )
