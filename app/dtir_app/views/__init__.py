"""Views of a program, to be put together: in a notebook, or in a Panel app.

```python
from dtir_app.views import SharedSelection, collectives_table, graph_view, mesh_view

chosen = SharedSelection()
graph_view(program, selection=chosen)          # a cell
mesh_view(program, selection=chosen)           # another one: it follows what is clicked in the first
pn.Row(collectives_table(program), mesh_view(program))   # views of one program share a selection of their own accord
```

Every function takes a program, a path, or whatever `dtir.explore` takes, and returns a `panel.viewable.Viewer`: `pn.panel(view)`
is its layout. They are loaded when they are used; the modules of this package are the figures themselves, each built once from a source
and given a name, and know nothing of the program behind the columns.
"""

from __future__ import annotations

from importlib import import_module
from typing import Any

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


def __getattr__(name: str) -> Any:
    # Not imported at once: the page is made of these figures, and the functions are made of the page.
    if name in __all__:
        return getattr(import_module("dtir_app.notebook.single"), name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
