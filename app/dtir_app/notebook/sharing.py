"""One selection for all views of a program, in whatever cell they stand."""

from __future__ import annotations

import weakref

import param


class SharedSelection(param.Parameterized):
    """What is selected, by the text that links use: ``node:...`` for a task, ``value:...`` for a tensor, empty for nothing.

    ```python
    chosen = SharedSelection()
    graph_view(program, selection=chosen)   # in one cell
    mesh_view(program, selection=chosen)    # in another: it follows
    chosen.key                              # what was clicked
    ```
    """

    key = param.String(default="", doc="node:..., value:..., or empty")


_KNOWN: weakref.WeakValueDictionary[str, SharedSelection] = weakref.WeakValueDictionary()


def shared_selection(digest: str) -> SharedSelection:
    """The selection that all views of a program share unless they are given another; it lives as long as one of them."""
    made = _KNOWN.get(digest)
    if made is None:
        made = _KNOWN[digest] = SharedSelection()
    return made
