"""The page itself: views, theme, gallery, notices."""

from __future__ import annotations

from dtir_app.actions.context import Context, Message
from dtir_app.state import QUIET, VIEWS


def set_view(context: Context, message: Message) -> None:
    """Show another view."""
    if message.get("view") in VIEWS:
        context.state.view = message["view"]


def set_theme(context: Context, message: Message) -> None:
    """Light or dark."""
    dark = bool(message.get("dark"))
    context.state.dark = dark
    context.tell("theme", dark=dark)


def toggle_gallery(context: Context, message: Message) -> None:
    """Open the page of programs, or close it."""
    context.state.gallery = not context.state.gallery


def close_gallery(context: Context, message: Message) -> None:
    """Back to the program."""
    context.state.gallery = False


def open_program(context: Context, message: Message) -> None:
    """Open another program."""
    context.open_program(str(message.get("key", "")))


def dismiss(context: Context, message: Message) -> None:
    """Take the notice away."""
    context.state.notice = QUIET


def copy_link(context: Context, message: Message) -> None:
    """Put the address into the clipboard."""
    context.tell("copy-link")
