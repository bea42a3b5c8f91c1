"""How a notebook shows a program, a report or a run: by the app where it is installed, as plain text elsewhere.

The core draws nothing and does not know who does. Like a plug-in, what draws is looked up by name when a notebook asks, and
never before, so that `import dtir` loads no plotting.
"""

from __future__ import annotations

from collections.abc import Callable
from importlib import import_module
from importlib.util import find_spec
from typing import Any, cast

DISPLAYER = "dtir_app.notebook.display"
"""The module whose `bundle` gives MIME types with content for an object, or None."""


class Displayed:
    """Something that a notebook shows as more than its `repr`."""

    __slots__ = ()

    def _repr_mimebundle_(self, include: object = None, exclude: object = None) -> Any:
        """What IPython asks an object in the last line of a cell for; None: use its `repr`."""
        del include, exclude  # what is not wanted is dropped by IPython
        if find_spec(DISPLAYER.partition(".")[0]) is None:
            return None
        try:
            module = import_module(DISPLAYER)
        except ModuleNotFoundError as error:
            if (error.name or "").split(".")[0] in ("dtir", "dtir_app"):
                raise
            return None  # the app is there and the packages of its extra are not
        return cast("Callable[[object], Any]", module.bundle)(self)
