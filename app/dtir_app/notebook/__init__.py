"""The explorer in a notebook: live views that share one selection, and pages of HTML where nothing is live.

`dtir.explore` leads here. Single views to put together with others are `dtir_app.views`.
"""

from __future__ import annotations

from pathlib import Path

from dtir.cost.profile import MachineProfile
from dtir_app.notebook.opening import Openable, open_object, profile_named, run_in
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
    profile: str | Path | MachineProfile | None = None,
) -> ExplorerView:
    """The explorer of a program, a file, a report or a run, to be shown in a cell.

    Args:
        what: a program, a path, what an importer gave, a report of a verifier, or a run record. A report and a run name no
            program by themselves: it must have been opened before in this kernel. A run is set against what is planned.
        view: the view to begin with.
        selection: what is selected, shared with other views; those of one program share one when None.
        dark: the theme.
        height: in pixels.
        profile: the machine that the planned side is of: a preset's name, a file that ``dtir calibrate`` wrote, or a profile.

    Raises:
        LookupError: the program of a report or a run is not known here.
        ValueError: there is no such view, a file holds no program, or `profile` is none.
    """
    opened = open_object(what)
    machine = profile_named(profile) if profile is not None else None
    return ExplorerView(
        opened, view=view, selection=selection, dark=dark, height=height, run=run_in(what), profile=machine
    )
