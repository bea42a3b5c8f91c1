"""The explorer in a notebook: live views that share one selection, and pages of HTML where nothing is live.

`dtir.explore` leads here. Single views to put together with others are `dtir_app.views`.
"""

from __future__ import annotations

from dtir_app.notebook.opening import Openable, open_object, run_in
from dtir_app.notebook.sharing import SharedSelection, shared_selection
from dtir_app.notebook.static import static_html
from dtir_app.notebook.widget import ExplorerView

__all__ = ["ExplorerView", "Openable", "SharedSelection", "explore", "open_object", "shared_selection", "static_html"]


def explore(
    what: Openable,
    *,
    view: str | None = None,
    selection: SharedSelection | None = None,
    dark: bool = False,
    height: int = 760,
) -> ExplorerView:
    """The explorer of a program, a file, a report or a run, to be shown in a cell.

    Args:
        what: a program, a path, what an importer gave, a report of a verifier, or a run record. A report and a run name no
            program by themselves: it must have been opened before in this kernel. A run is set against what is planned.
        view: the view to begin with.
        selection: what is selected, shared with other views; those of one program share one when None.
        dark: the theme.
        height: in pixels.

    Raises:
        LookupError: the program of a report or a run is not known here.
        ValueError: there is no such view, or a file holds no program.
    """
    opened = open_object(what)
    return ExplorerView(opened, view=view, selection=selection, dark=dark, height=height, run=run_in(what))
