"""How the mesh and the shard maps are laid out."""

from __future__ import annotations

from dtir_app.actions.context import Context, Message, whole
from dtir_app.frames.meshgrid import default_columns
from dtir_app.frames.tensor import default_dims
from dtir_app.frames.tensors import shown_values


def mesh_group(context: Context, message: Message) -> None:
    """Show the groups over one axis more or less."""
    axis = str(message.get("axis", ""))
    names = context.store.mesh.axis_names
    if axis in names:
        now = context.state.mesh_axes or frozenset({names[-1]})
        context.state.mesh_axes = now ^ {axis} or frozenset({names[-1]})


def mesh_place(context: Context, message: Message) -> None:
    """Swap an axis between rows and columns."""
    axis, names = str(message.get("axis", "")), context.store.mesh.axis_names
    if axis in names:
        now = context.state.mesh_columns
        context.state.mesh_columns = (default_columns(names) if now is None else now) ^ {axis}


def mesh_at(context: Context, message: Message) -> None:
    """Another coordinate of an axis that is shown at one only."""
    axis = str(message.get("axis", ""))
    if axis in context.store.mesh.axis_names:
        context.state.mesh_at = {**context.state.mesh_at, axis: max(0, whole(message.get("value")))}


def shown_value(context: Context, side: str) -> int:
    """The value that a side of the tensor view shows, or -1."""
    shown = shown_values(context.store, context.state.selection, context.state.tensor_values)
    return next((value for name, value, _ in shown if name == side), -1)


def tensor_pick(context: Context, message: Message) -> None:
    """Another of several operands or results."""
    context.state.tensor_values = {
        **context.state.tensor_values,
        str(message.get("side", "")): whole(message.get("value")),
    }


def tensor_dim(context: Context, message: Message) -> None:
    """Another dim down or across."""
    value, which, dim = (
        shown_value(context, str(message.get("side", ""))),
        whole(message.get("which")),
        whole(message.get("dim")),
    )
    if value < 0 or which not in (0, 1):
        return
    now = list(context.state.tensor_dims.get(value, default_dims(context.store.value_records[value])))
    if now[1 - which] == dim:
        now[1 - which] = now[which]
    now[which] = dim
    context.state.tensor_dims = {**context.state.tensor_dims, value: (now[0], now[1])}


def tensor_at(context: Context, message: Message) -> None:
    """Another block of a dim that is neither down nor across."""
    value, dim = shown_value(context, str(message.get("side", ""))), whole(message.get("dim"))
    if value >= 0:
        now = context.state.tensor_at.get(value, {})
        context.state.tensor_at = {**context.state.tensor_at, value: {**now, dim: max(0, whole(message.get("value")))}}
