"""The explorer in a notebook: the door to the app, which the core does not know."""

from __future__ import annotations

from importlib import import_module
from typing import Any


def explore(what: Any, **options: Any) -> Any:
    """The explorer of a program, a file, a report or a run, live in a notebook's cell.

    ```python
    import dtir

    dtir.explore("step.hlo")                    # also a program, a report, a run record
    dtir.explore(program, view="mesh", height=500, dark=True)
    ```

    All views of one program share what is selected, in whatever cell they stand. Where nothing is live (a saved notebook, a
    viewer), the same object is shown as HTML. Single views are functions of `dtir_app.views`.

    Args:
        what: a program, a path, what an importer gave, a report, or a run record.
        options: `view`, `selection`, `dark`, `height`, `profile`; see `dtir_app.notebook.explore`.

    Raises:
        ImportError: the `notebook` extra is not installed.
        LookupError: the program of a report or a run was not opened before.
        ValueError: a file that holds no program, or a view that there is not.
    """
    try:
        app = import_module("dtir_app.notebook")
    except ModuleNotFoundError as error:
        if (error.name or "").split(".")[0] in ("dtir", "dtir_app"):
            raise
        raise ImportError(
            f"the explorer needs the package {error.name}: pip install 'dtir[notebook]'", name=error.name
        ) from error
    return app.explore(what, **options)
