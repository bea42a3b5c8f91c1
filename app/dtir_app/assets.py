"""Where the files that are not Python lie: in the installed package, or beside the package in a checkout."""

from __future__ import annotations

from functools import cache
from pathlib import Path

_HERE = Path(__file__).resolve().parent


def assets_folder() -> Path:
    """The folder with css, icons and bundled programs.

    Raises:
        FileNotFoundError: the package was installed without it.
    """
    for folder in (_HERE / "assets", _HERE.parents[1] / "assets"):
        if (folder / "css").is_dir():
            return folder
    raise FileNotFoundError(f"no assets folder in {_HERE} or {_HERE.parents[1]}")


@cache
def css(name: str) -> str:
    """A style sheet of the assets folder."""
    return (assets_folder() / "css" / f"{name}.css").read_text(encoding="utf-8")


@cache
def script(name: str) -> str:
    """A script of the package."""
    return (_HERE / "js" / f"{name}.js").read_text(encoding="utf-8")
