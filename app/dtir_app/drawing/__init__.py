"""Figures as SVG, written on the server from the columns that the browser would draw; no browser is needed.

A figure of `dtir_app.views` is a Bokeh `Plot` of a few kinds of glyph over columns. Each kind is written here as the SVG element
that looks the same, so that every view, also one that is added later, can be exported.
"""

from __future__ import annotations

from dtir_app.drawing.framing import Frame, frame_figure
from dtir_app.drawing.styles import Styles
from dtir_app.drawing.svg import draw_figure, standalone

__all__ = ["Frame", "Styles", "draw_figure", "frame_figure", "standalone"]
