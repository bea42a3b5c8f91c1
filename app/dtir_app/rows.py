"""How each view is laid out: rows of elements and figures; of the views that are not panels it is said here."""

from __future__ import annotations

from collections.abc import Mapping

from dtir_app.panels import PANELS
from dtir_app.panels.base import Cell, Row

CORE_ROWS: Mapping[str, tuple[Row, ...]] = {
    "overview": (Row((Cell("overview", grows=True),)),),
    "graph": (
        Row((Cell("graphbar"),)),
        Row((Cell("graph", grows=True, label="The program as a graph. The tables below hold the same as text."),)),
        Row((Cell("graphfoot"),)),
    ),
    "mesh": (
        Row((Cell("meshbar"),)),
        Row(
            (
                Cell("mesh", grows=True, label="The mesh with its groups. The list beside it holds the same as text."),
                Cell("meshside", width_px=250),
            )
        ),
    ),
    "tensor": (
        Row((Cell("tensorbar"),)),
        Row(
            (
                Cell("tensor-before", grows=True, label="Shard map. The table of blocks above holds the same as text."),
                Cell("tensor-after", grows=True, label="Shard map after the task."),
            )
        ),
    ),
}
CORE_LABELS: Mapping[str, str] = {"overview": "Overview", "graph": "Graph", "mesh": "Mesh", "tensor": "Tensor"}
SELECTED = ("mesh", "tensor")
"""Views beside the graph that follow the selection and are no panels."""


def rows_of_views() -> dict[str, tuple[Row, ...]]:
    """The rows of every view by its name, in the order of the tabs."""
    return {**CORE_ROWS, **{kind.name: kind.rows for kind in PANELS}}


def labels_of_views() -> dict[str, str]:
    """The label of every view."""
    return {**CORE_LABELS, **{kind.name: kind.label for kind in PANELS}}
