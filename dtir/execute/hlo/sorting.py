"""sort and top-k: stable orders under a comparator that is a computation."""

from __future__ import annotations

from dtir.execute.dtypes import Array
from dtir.execute.hlo.call import Context, Evaluator, HloCall, Operands, Results
from dtir.execute.hlo.elementwise import apply_elements, lift, total_order


def _sort(context: Context, call: HloCall, operands: Operands) -> Results:
    xp = context.xp
    (dim,) = call.dims()
    moved = [xp.moveaxis(operand, 1 + dim, -1) for operand in operands]
    shape: tuple[int, ...] = moved[0].shape
    rows = [xp.ascontiguousarray(array).reshape(-1, shape[-1]) for array in moved]
    computation = call.need("to_apply", str)
    order = _by_key(context, computation, rows[0])
    if order is None:
        order = _by_comparator(context, computation, rows)
    return tuple(xp.moveaxis(xp.take_along_axis(row, order, axis=-1).reshape(shape), -1, 1 + dim) for row in rows)


def _by_key(context: Context, computation: str, key: Array) -> Array | None:
    """The order of a comparator that is one comparison of the first operand, None for any other."""
    xp = context.xp
    name = context.reducer(computation) or ""
    head, _, rest = name.partition(".")
    direction, _, kind = rest.partition(".")
    if head != "compare" or direction not in ("LT", "GT"):
        return None
    plain = total_order(key) if kind == "TOTALORDER" else lift(key)
    if plain.dtype.kind in "fc" and bool(xp.isnan(plain).any()):
        return None  # not an order any more: what comes out is then up to the way of sorting
    if direction == "LT":
        return xp.argsort(plain, axis=-1, kind="stable")
    length = key.shape[-1]
    return (length - 1 - xp.argsort(plain[:, ::-1], axis=-1, kind="stable"))[:, ::-1]


def _by_comparator(context: Context, computation: str, rows: list[Array]) -> Array:
    """Merge sort, all rows and all merges of one width at once.

    Where an element of one half goes is its own position plus the number of elements of the other half before it,
    found by bisection: about ``log2(n) ** 2 / 2`` applications of the comparator to all elements.
    """
    xp = context.xp
    length = rows[0].shape[-1]
    order = xp.broadcast_to(xp.arange(length), rows[0].shape)
    position = xp.arange(length)
    width = 1
    while width < length:
        start = position - position % (2 * width)
        middle = xp.minimum(start + width, length)
        stop = xp.minimum(start + 2 * width, length)
        in_left = position < middle
        low = xp.broadcast_to(xp.where(in_left, middle, start), order.shape)
        high = xp.broadcast_to(xp.where(in_left, stop, middle), order.shape)
        first = low
        mine = [xp.take_along_axis(row, order, axis=-1) for row in rows]
        for _ in range(width.bit_length() + 1):
            active = low < high
            half = xp.where(active, (low + high) // 2, 0)
            other = [xp.take_along_axis(array, half, axis=-1) for array in mine]
            # Left elements count right ones that come before them; right elements count left ones that do not come after.
            pairs: list[Array] = []
            for one, two in zip(mine, other, strict=True):
                pairs += [xp.where(in_left, two, one), xp.where(in_left, one, two)]
            (before,) = apply_elements(context, computation, pairs)
            counted = xp.where(in_left, before, ~before)
            low = xp.where(active & counted, half + 1, low)
            high = xp.where(active & ~counted, half, high)
        own = position - xp.where(in_left, start, middle)
        target = start + own + (low - first)
        merged = xp.empty(order.shape, order.dtype)
        xp.put_along_axis(merged, target, order, axis=-1)
        order = merged
        width *= 2
    return order


def _top_k(context: Context, call: HloCall, operands: Operands) -> Results:
    """The k largest (or smallest) of the last dim, in order, and where they were."""
    xp = context.xp
    (array,) = operands
    count = call.need("k", int)
    largest = call.get("largest", bool, True)
    key = total_order(array)
    length = array.shape[-1]
    if largest:
        order = (length - 1 - xp.argsort(xp.flip(key, -1), axis=-1, kind="stable"))[..., ::-1]
    else:
        order = xp.argsort(key, axis=-1, kind="stable")
    order = order[..., :count]
    found = xp.take_along_axis(array, order, axis=-1)
    if len(call.results) == 1:
        return (found,)
    return found, order.astype(call.results[1].numpy)


OPCODES: dict[str, Evaluator] = {"sort": _sort, "topk": _top_k}
