"""What a person can do: one function a message of the page. Each changes the state once; the session draws what follows."""

from __future__ import annotations

from collections.abc import Callable

from dtir_app.actions import arranging, graphing, listing, selecting
from dtir_app.actions.context import Context, Message
from dtir_app.actions.keys import KEYS, arrow
from dtir_app.actions.paging import close_gallery, copy_link, dismiss, open_program, set_theme, set_view, toggle_gallery
from dtir_app.panels import PANELS

__all__ = ["Context", "handle"]


def handle(context: Context, kind: str, message: Message) -> None:
    """Do what a message asks for; a message that nobody knows, or without what it needs, does nothing."""
    action = HANDLERS.get(kind)
    if action is None or (context.state.store is None and kind not in WITHOUT_PROGRAM):
        return
    action(context, message)


def _key(context: Context, message: Message) -> None:
    key = str(message.get("key", ""))
    if key.startswith("Arrow"):
        arrow(context, key)
    elif key in KEYS:
        KEYS[key](context)


Action = Callable[[Context, Message], None]

HANDLERS: dict[str, Action] = {
    "select": selecting.select_key,
    "clear": selecting.clear,
    "row": selecting.row,
    "finding": selecting.finding,
    "key": _key,
    "open": graphing.open_item,
    "enter-scope": graphing.enter_scope,
    "leave": graphing.leave,
    "fold": graphing.fold,
    "unfold-all": graphing.unfold_all,
    "repeat-fold": graphing.repeat_fold,
    "repeat-step": graphing.repeat_step,
    "unpin": graphing.unpin,
    "fit": graphing.fit,
    "focus": graphing.focus,
    "search": listing.search,
    "hit-step": selecting.hit_step,
    "keep": listing.keep,
    "filter": listing.toggle_filter,
    "filter-clear": listing.filter_clear,
    "show-kind": listing.show_kind,
    "show-axes": listing.show_axes,
    "findings": listing.findings,
    "table": listing.show_table,
    "sort": listing.sort,
    "page": listing.page,
    "export": listing.export,
    "export-selection": listing.export_selection,
    "outline-toggle": listing.outline_toggle,
    "outline-more": listing.outline_more,
    "mesh-group": arranging.mesh_group,
    "mesh-place": arranging.mesh_place,
    "mesh-at": arranging.mesh_at,
    "tensor-pick": arranging.tensor_pick,
    "tensor-dim": arranging.tensor_dim,
    "tensor-at": arranging.tensor_at,
    "view": set_view,
    "theme": set_theme,
    "gallery": toggle_gallery,
    "close-gallery": close_gallery,
    "open-program": open_program,
    "dismiss": dismiss,
    "copy-link": copy_link,
    **{name: action for kind in PANELS for name, action in kind.actions.items()},
}
WITHOUT_PROGRAM = frozenset({"theme", "gallery", "open-program", "dismiss", "clear", "view", "copy-link"})
