"""The views beyond the first four, each a `Kind`: registered here, drawn by the session, written nowhere else."""

from __future__ import annotations

from dtir_app.panels import diff, finding, memory, run, timeline, traffic
from dtir_app.panels.base import Cell, Desk, Kind, Panel, Row

__all__ = ["PANELS", "Cell", "Desk", "Kind", "Panel", "Row"]

PANELS: tuple[Kind, ...] = (finding.KIND, timeline.KIND, traffic.KIND, diff.KIND, memory.KIND, run.KIND)
"""In the order of the tabs; their names are those at the end of `dtir_app.state.VIEWS`."""
