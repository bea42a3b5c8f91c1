"""A picture in pixels: an SVG drawn by a Chromium that is there already. Nothing is installed, and it reaches no network."""

from __future__ import annotations

import os
import shutil
import subprocess
import tempfile
from collections.abc import Mapping
from pathlib import Path

VARIABLE = "DTIR_CHROMIUM"
NAMES = ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable", "chrome", "msedge", "microsoft-edge")
TIMEOUT_S = 120
_PNG = b"\x89PNG\r\n\x1a\n"


class NoBrowser(Exception):
    """There is no browser, or it drew nothing; the text says which, `hint` how to mend it."""

    def __init__(self, text: str, hint: str) -> None:
        super().__init__(text)
        self.hint = hint


def find_browser(environment: Mapping[str, str] = os.environ) -> Path:
    """A Chromium: the one that DTIR_CHROMIUM names, else one on PATH.

    Raises:
        NoBrowser: there is none.
    """
    hint = f"install Chromium (or Chrome), or name it with {VARIABLE}; .svg and .html need no browser"
    if named := environment.get(VARIABLE):
        if not Path(named).is_file():
            raise NoBrowser(f"{VARIABLE}={named} is no file", hint)
        return Path(named)
    for name in NAMES:
        if found := shutil.which(name, path=environment.get("PATH")):
            return Path(found)
    raise NoBrowser(f"a PNG is drawn by Chromium, and none was found (looked for {', '.join(NAMES[:5])} on PATH)", hint)


def screenshot(svg: str, size_px: tuple[int, int]) -> bytes:
    """An SVG as PNG.

    Args:
        svg: text of the file.
        size_px: width and height of the picture.

    Raises:
        NoBrowser: there is no browser, or it failed.
    """
    width, height = size_px
    # In a page and not alone: a page of exactly the window's size has no scroll bars and no margin.
    body = svg.partition("?>")[2]
    style = f"*{{margin:0}}html,body{{overflow:hidden}}body>svg{{display:block;width:{width}px;height:{height}px}}"
    policy = "default-src 'none'; style-src 'unsafe-inline'"
    page = (
        f'<!DOCTYPE html><meta charset="utf-8"><meta http-equiv="Content-Security-Policy" content="{policy}">'
        f"<style>{style}</style>{body}"
    )
    return photograph(page, "", size_px)


def photograph(page: str, address: str, size_px: tuple[int, int]) -> bytes:
    """A page as PNG, once its scripts have come to rest.

    Args:
        page: HTML that loads nothing.
        address: what stands behind its file name: ``#...`` or nothing.
        size_px: width and height of the picture.

    Raises:
        NoBrowser: there is no browser, or it failed.
    """
    browser = find_browser()
    width, height = size_px
    with tempfile.TemporaryDirectory(prefix="dtir-png-") as folder:
        source, target = Path(folder, "picture.html"), Path(folder, "picture.png")
        source.write_text(page, encoding="utf-8", errors="replace")
        command = [
            str(browser),
            "--headless=new",
            *(["--no-sandbox"] if hasattr(os, "geteuid") and os.geteuid() == 0 else []),
            "--disable-gpu",
            "--disable-background-networking",
            "--disable-component-update",
            "--no-first-run",
            "--hide-scrollbars",
            "--font-render-hinting=none",
            "--force-device-scale-factor=1",
            f"--user-data-dir={folder}/profile",
            f"--window-size={width},{height}",
            f"--screenshot={target}",
            "--virtual-time-budget=20000",
            f"{source.as_uri()}{address}",
        ]
        try:
            done = subprocess.run(
                command, stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=TIMEOUT_S, check=False
            )
        except (OSError, subprocess.TimeoutExpired) as error:
            raise NoBrowser(f"{browser.name} did not draw the picture: {error}", "write .svg instead") from error
        made = target.read_bytes() if target.is_file() else b""
        if not made.startswith(_PNG):
            said = (done.stderr or done.stdout).strip().splitlines()
            raise NoBrowser(
                f"{browser.name} drew no picture: {said[-1] if said else done.returncode}", "write .svg instead"
            )
        return made
