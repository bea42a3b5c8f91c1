"""Loading what a notebook page needs, once in a kernel, from this installation alone."""

from __future__ import annotations

import sys

import panel as pn
from panel.config import panel_extension


def in_notebook() -> bool:
    """Whether this is a Jupyter kernel: somebody may look at what cells show."""
    shell = sys.modules.get("IPython")
    running = shell.get_ipython() if shell is not None else None
    return running is not None and type(running).__name__ == "ZMQInteractiveShell"


def start() -> None:
    """Put Panel's scripts into the page, if that has not been done.

    They are part of the cell's output (about 7 MB in a saved notebook): Panel would load them from a CDN otherwise.
    """
    if not panel_extension._loaded:
        pn.extension(inline=True)
