"""The page's small elements: each draws one JSON text and sends messages back. Defined once, here: a component class made in a
served script would be a new model type in every session.

Programs are untrusted text. The elements put text into the page as text only; there is no HTML on the way.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from functools import cache
from typing import Any, ClassVar

import param
from panel.custom import JSComponent
from panel.io.state import state

from dtir_app.assets import css, script

Message = Mapping[str, Any]
Listener = Callable[[str, Message], None]


def _no_listener(kind: str, message: Message) -> None:
    """What happens to messages before somebody listens: nothing."""


@cache
def shared_script() -> str:
    """What the elements share, for a page that is not ours: the style sheet and `window.dtir`, unless they are there."""
    style = json.dumps(css("element")).replace("<", "\\u003c")
    return f"""if (!document.getElementById('element-css')) {{
  const sheet = document.createElement('style');
  Object.assign(sheet, {{id: 'element-css', media: 'not all', textContent: {style}}});
  document.head.append(sheet);
}}
if (!window.dtir) {{
{script("dom")}
}}"""


class Element(JSComponent):
    """An element that draws `payload`, a JSON text."""

    payload = param.String(default="")

    _esm: ClassVar[str] = "export function render() { return document.createElement('div'); }"

    def __init__(self, **params: Any) -> None:
        params.setdefault("margin", 0)
        params.setdefault("sizing_mode", "stretch_both")
        super().__init__(**params)
        self._listener: Listener = _no_listener

    def listen(self, listener: Listener) -> None:
        """Call with type and content of every message from the browser."""
        self._listener = listener

    def show(self, content: object) -> None:
        """Draw other content; equal content is not sent again."""
        text = json.dumps(content, ensure_ascii=False, separators=(",", ":"))
        if text != self.payload:
            self.payload = text

    def send(self, kind: str, **content: Any) -> None:
        """A message to the browser's side."""
        self._send_msg({"type": kind, **content})

    @classmethod
    def _render_esm(cls, compiled: Any = True, server: bool = False) -> str:
        """The script of the element. A page of ours brings what all elements share; elsewhere each brings it along."""
        own = super()._render_esm(compiled=compiled, server=server)
        served = state.curdoc is not None and state.curdoc.session_context is not None
        return own if served else f"{shared_script()}\n{own}"

    def _handle_msg(self, data: Any) -> None:
        if isinstance(data, dict) and data.get("type") == "shown":
            # What changes while a page is being built now and then never reaches it: an element says what it drew first.
            if data.get("size") != len(self.payload) and self.payload:
                self.payload = f"{self.payload.rstrip()}{'' if self.payload.endswith(' ') else ' '}"
        elif isinstance(data, dict) and isinstance(data.get("type"), str):
            self._listener(data["type"], data)


class TopBar(Element):
    """Program, search, findings, theme."""

    _esm = script("topbar")


class Notice(Element):
    """A message above the page."""

    _esm = script("notice")


class Rail(Element):
    """Outline and filters."""

    _esm = script("rail")


class Tabs(Element):
    """The tabs of the views."""

    _esm = script("tabs")


class Overview(Element):
    """The cards of the overview."""

    _esm = script("overview")


class GraphBar(Element):
    """Place, legend and limits of the graph."""

    _esm = script("graphbar")


class GraphFoot(Element):
    """The selected task between its neighbours."""

    _esm = script("graphfoot")


class MeshBar(Element):
    """Title and axes of the mesh view."""

    _esm = script("meshbar")


class MeshSide(Element):
    """The groups as a list."""

    _esm = script("meshside")


class TensorBar(Element):
    """Names, states and choices of the shard maps."""

    _esm = script("tensorbar")


class Inspector(Element):
    """Everything about the selection."""

    _esm = script("inspector")


class Drawer(Element):
    """The four tables."""

    _esm = script("drawer")


class Gallery(Element):
    """The programs that can be opened."""

    _esm = script("gallery")


class Bridge(Element):
    """Keys, address bar, downloads, announcements."""

    _esm = script("bridge")
