"""What all figures share: size, fonts, colours, no decoration."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from bokeh.core.properties import value
from bokeh.models import (
    ColumnDataSource,
    Glyph,
    GlyphRenderer,
    HoverTool,
    PanTool,
    Plot,
    Range1d,
    Toolbar,
    WheelZoomTool,
)

from dtir_app.theme import FONT, Tokens

Columns = Mapping[str, Sequence[Any]]

SIZE = """
const size = (name) => { try { return fig[name] ?? 0; } catch { return 0; } };
"""
"""For scripts of a figure `fig`: its size in pixels. A figure that was never drawn has none, and asking it fails."""


def blank_figure(name: str, *, hover: HoverTool | None = None) -> Plot:
    """A figure without axes, grid and title, y pointing down, that pans and zooms.

    A plain `Plot`, and glyphs by `draw`: the helpers of `bokeh.plotting` make five glyphs for one and a dozen models besides,
    which every page would have to build, check and send.

    Args:
        name: what tests and scripts find it by.
        hover: the tool that shows texts under the pointer.
    """
    pan, zoom = PanTool(), WheelZoomTool(zoom_on_axis=False)
    return Plot(
        name=name,
        x_range=Range1d(-1, 1),
        y_range=Range1d(1, -1),
        toolbar=Toolbar(tools=[pan, zoom, *([hover] if hover else [])], active_scroll=zoom, active_drag=pan),
        toolbar_location=None,
        title=None,
        sizing_mode="stretch_both",
        output_backend="canvas",
        outline_line_color=None,
        min_border=0,
        styles={"clip-path": "inset(2px 0 0 1px)"},  # along the edge a line of what was painted before shows through
        lod_threshold=None,
    )


def draw(plot: Plot, source: ColumnDataSource, glyph: Glyph, *, visible: bool = True) -> GlyphRenderer:
    """Draw a glyph for every row of a source."""
    made = GlyphRenderer(
        data_source=source,
        glyph=glyph,
        visible=visible,
        selection_glyph=None,
        nonselection_glyph=None,
        hover_glyph=None,
        muted_glyph=None,
    )
    plot.renderers.append(made)
    return made


def empty_source(name: str, columns: Iterable[str]) -> ColumnDataSource:
    """A named source without rows; its first tag counts the times it was filled."""
    return ColumnDataSource({column: [] for column in columns}, name=name, tags=[0])


def paint(made: Plot, theme: Tokens) -> None:
    """Background of a figure."""
    made.background_fill_color = theme.paper
    made.border_fill_color = theme.paper


def set_columns(source: ColumnDataSource, columns: Columns) -> None:
    """Replace what a source holds, once."""
    source.data = dict(columns)


def text_props(size: str = "11px", weight: str = "normal") -> dict[str, Any]:
    """Properties of a text glyph in the page's own font."""
    # As a value: a bare text with several names would be taken for the name of a column.
    return {"text_font": value(FONT), "text_font_size": size, "text_font_style": weight}
