"""Single views as functions: what `dtir_app.views` offers. Each takes a program, or whatever names one."""

from __future__ import annotations

from pathlib import Path

from dtir.cost.profile import MachineProfile
from dtir_app.notebook.opening import Openable, open_object, profile_named, run_in
from dtir_app.notebook.sharing import SharedSelection
from dtir_app.notebook.widget import ExplorerView, InspectorView, SingleView, TableView
from dtir_app.state import VIEWS

__all__ = [
    "SharedSelection",
    "collectives_table",
    "diagnostics_table",
    "explorer",
    "graph_view",
    "inspector",
    "mesh_view",
    "overview",
    "tasks_table",
    "tensor_view",
    "tensors_table",
    "view",
]


def view(
    what: Openable,
    name: str,
    *,
    selection: SharedSelection | None = None,
    dark: bool = False,
    height: int = 460,
    profile: str | Path | MachineProfile | None = None,
) -> SingleView:
    """One view by its name, as the tabs of the explorer have it.

    Args:
        what: a program, a path, or what else `dtir.explore` takes.
        name: one of `dtir_app.state.VIEWS`.
        selection: what is selected, shared with other views; those of one program share one when None.
        dark: the theme.
        height: in pixels.
        profile: the machine that the planned side is of, as for `dtir.explore`.

    Raises:
        ValueError: there is no such view, or `profile` is none.
    """
    if name not in VIEWS:
        raise ValueError(f"name={name!r} (str) is not one of {', '.join(VIEWS)}")
    machine = profile_named(profile) if profile is not None else None
    return SingleView(
        open_object(what), name, selection=selection, dark=dark, height=height, run=run_in(what), profile=machine
    )


def explorer(
    what: Openable, *, selection: SharedSelection | None = None, dark: bool = False, height: int = 760
) -> ExplorerView:
    """The whole explorer."""
    return ExplorerView(open_object(what), selection=selection, dark=dark, height=height, run=run_in(what))


def overview(
    what: Openable, *, selection: SharedSelection | None = None, dark: bool = False, height: int = 460
) -> SingleView:
    """What is in the program, what is wrong, what costs most."""
    return view(what, "overview", selection=selection, dark=dark, height=height)


def graph_view(
    what: Openable, *, selection: SharedSelection | None = None, dark: bool = False, height: int = 460
) -> SingleView:
    """Tasks and what they wait for."""
    return view(what, "graph", selection=selection, dark=dark, height=height)


def mesh_view(
    what: Openable, *, selection: SharedSelection | None = None, dark: bool = False, height: int = 460
) -> SingleView:
    """Ranks, and the groups of the selected collective."""
    return view(what, "mesh", selection=selection, dark=dark, height=height)


def tensor_view(
    what: Openable, *, selection: SharedSelection | None = None, dark: bool = False, height: int = 460
) -> SingleView:
    """Which rank holds which block of the selected tensor, or before and after the selected task."""
    return view(what, "tensor", selection=selection, dark=dark, height=height)


def collectives_table(
    what: Openable, *, selection: SharedSelection | None = None, dark: bool = False, height: int = 320
) -> TableView:
    """Every communication, with groups, bytes and runs."""
    return TableView(open_object(what), "collectives", selection=selection, dark=dark, height=height, run=run_in(what))


def diagnostics_table(
    what: Openable, *, selection: SharedSelection | None = None, dark: bool = False, height: int = 320
) -> TableView:
    """Every finding."""
    return TableView(open_object(what), "diagnostics", selection=selection, dark=dark, height=height, run=run_in(what))


def tasks_table(
    what: Openable, *, selection: SharedSelection | None = None, dark: bool = False, height: int = 320
) -> TableView:
    """Every task."""
    return TableView(open_object(what), "tasks", selection=selection, dark=dark, height=height, run=run_in(what))


def tensors_table(
    what: Openable, *, selection: SharedSelection | None = None, dark: bool = False, height: int = 320
) -> TableView:
    """Every tensor."""
    return TableView(open_object(what), "tensors", selection=selection, dark=dark, height=height, run=run_in(what))


def inspector(
    what: Openable, *, selection: SharedSelection | None = None, dark: bool = False, height: int = 460
) -> InspectorView:
    """Everything about what is selected."""
    return InspectorView(open_object(what), selection=selection, dark=dark, height=height, run=run_in(what))
