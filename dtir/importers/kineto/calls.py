"""The communications of one rank's profile, each once, with what the other views of it know.

The view that counts is the first of these that the trace has: ``record_param_comms`` with a collective's name, operators of
``c10d``, annotations of the backend (``nccl:all_reduce``), kernels. From the others come shapes that it lacks, and when the
work really ran: the kernel of an NCCL call, the annotation on the worker thread of gloo. Gloo has no reduce_scatter and
annotates an all_reduce for it.
"""

from __future__ import annotations

import json
from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from dtir.importers.kineto.metadata import COLLECTIVE, described_call
from dtir.importers.kineto.slices import KERNEL_CATEGORIES, Slice
from dtir.importers.rank_set.events import Call, CallKind, Span, Transfer
from dtir.importers.rank_set.plain import sequence, text_of
from dtir.importers.rank_set.words import call_kind, kernel_kind, reduction_kind, transfer_side
from dtir.importers.torch_calls import Argument, annotation_call, operator_call, tensors_of

PARAMS = "record_param_comms"
BACKENDS = ("nccl:", "gloo:", "mpi:", "ucc:", "rccl:", "xccl:")
FUNCTIONAL = "_c10d_functional::"
OPERATORS = "c10d::"

MOST_TEXT = 100_000


@dataclass(frozen=True, slots=True)
class Found:
    """One communication: the slice that it was read from, what it is, and when it ran."""

    slice: Slice
    call: Call | Transfer
    name: str
    span: Span | None


def find_calls(slices: Sequence[Slice], known_groups: Mapping[str, str]) -> list[Found]:
    """The communications in order of their issue.

    Args:
        slices: events in order of time.
        known_groups: the name here of every process group of the file.
    """
    host = [item for item in slices if item.category not in KERNEL_CATEGORIES]
    kernels = [item for item in slices if item.category == "kernel"]
    annotations = [item for item in host if item.name.startswith(BACKENDS) and not item.category.startswith("gpu")]
    named = [
        Found(item, call, text_of(item.arguments.get(COLLECTIVE)), item.span)
        for item in host
        if item.name == PARAMS and (call := described_call(item.arguments)) is not None
    ]
    if named:
        return _with_kernels(named, kernels)
    operators = _operators(host, known_groups)
    if operators:
        return _with_annotations(operators, annotations)
    if annotations:
        found = [(item, annotation_call(item.name, _arguments(item))) for item in annotations]
        return [Found(item, call, item.name, item.span) for item, call in found if call is not None]
    return _kernels_alone(kernels)


# -- operators -----------------------------------------------------------------------------------------------------------------


def _operators(host: Sequence[Slice], known_groups: Mapping[str, str]) -> list[Found]:
    found: list[Found] = []
    wrappers: dict[tuple[str, str], Slice] = {}
    for item in host:
        if item.name.startswith(FUNCTIONAL):
            wrappers[item.thread] = item
        if not item.name.startswith(OPERATORS):
            continue
        wrapper = wrappers.get(item.thread)
        inside = wrapper if wrapper is not None and _encloses(wrapper, item) else None
        words = [text_of(word) for word in sequence(inside.arguments.get("Concrete Inputs"))] if inside else []
        group = next((known_groups[word] for word in reversed(words) if word in known_groups), None)
        call = operator_call(item.name, _arguments(item), group)
        if call is None:
            continue
        reduction = next((kind for word in words if (kind := reduction_kind(word)) is not None), None)
        if isinstance(call, Call) and reduction is not None:
            call = replace(call, reduction=reduction)
        found.append(Found(item, call, item.name, item.span))
    return found


def _encloses(outer: Slice, inner: Slice) -> bool:
    if outer.span is None or inner.span is None:
        return False
    return outer.span.start_ns <= inner.span.start_ns and inner.span.end_ns <= outer.span.end_ns


def _arguments(item: Slice) -> list[Argument]:
    shapes = sequence(item.arguments.get("Input Dims"))
    types = sequence(item.arguments.get("Input type", item.arguments.get("Input Type")))
    values = sequence(item.arguments.get("Concrete Inputs"))
    found: list[Argument] = []
    for place in range(min(max(len(shapes), len(values)), 64)):
        shape: object = shapes[place] if place < len(shapes) else None
        word = text_of(types[place]) if place < len(types) else ""
        value = _value(text_of(values[place])) if place < len(values) else None
        # Of a list of tensors the element type is not written; of a scalar the shape says nothing.
        typed = "Tensor(byte)" if word == "TensorList" else word
        found.append(Argument(tensors_of(shape, typed) if shape else (), value))
    return found


def _value(text: str) -> object:
    """A concrete argument, which is written as text: a number, or a list of numbers."""
    if len(text) > MOST_TEXT or not text or text[0] not in "-0123456789[":
        return None
    try:
        return json.loads(text)
    except (ValueError, RecursionError):
        return None


# -- other views -----------------------------------------------------------------------------------------------------------------


def _with_kernels(found: Sequence[Found], kernels: Sequence[Slice]) -> list[Found]:
    """Times of the kernels that the calls launched; a call without a kernel keeps its own."""
    ran: dict[int, Span] = {}
    for kernel in kernels:
        number = kernel.external_id
        if number is not None and kernel.span is not None and (COLLECTIVE in kernel.arguments or _is_nccl(kernel)):
            ran.setdefault(number, kernel.span)
    return [replace(item, span=ran.get(item.slice.external_id or -1, item.span)) for item in found]


def _is_nccl(kernel: Slice) -> bool:
    return kernel.name.startswith(("nccl", "rccl"))


def _kind(call: Call | Transfer) -> str:
    """The word under which a backend annotates a call."""
    if isinstance(call, Transfer):
        return "send" if call.sends else "recv"
    return call.kind.value


def _with_annotations(found: Sequence[Found], annotations: Sequence[Slice]) -> list[Found]:
    """Shapes and times of the backend's own annotations, matched in order for each kind where their numbers agree."""
    gloo = any(item.name.startswith("gloo:") for item in annotations)
    by_kind: dict[str, list[Slice]] = defaultdict(list)
    # Work on several threads need not begin in the order of its issue; numbers of recorded functions grow with that.
    numbered = all(item.number is not None for item in annotations)
    for item in sorted(annotations, key=lambda item: item.number or 0) if numbered else annotations:
        side, kind = transfer_side(item.name), call_kind(item.name)
        word = ("send" if side else "recv") if side is not None else kind.value if kind is not None else ""
        by_kind[word].append(item)
    words = [
        CallKind.ALL_REDUCE.value if gloo and _kind(item.call) == CallKind.REDUCE_SCATTER.value else _kind(item.call)
        for item in found
    ]
    agree = {word for word in set(words) if len(by_kind[word]) == words.count(word)}
    taken: dict[str, int] = defaultdict(int)
    result: list[Found] = []
    for item, word in zip(found, words, strict=True):
        if word in agree:
            other = by_kind[word][taken[word]]
            taken[word] += 1
            item = replace(item, span=other.span or item.span, call=_filled(item.call, other))
        result.append(item)
    return result


def _filled(call: Call | Transfer, annotation: Slice) -> Call | Transfer:
    """The call with the shape and type that the annotation alone has."""
    arguments = _arguments(annotation)
    tensor = arguments[0].tensors[0] if arguments and arguments[0].tensors else None
    if tensor is None:
        return call
    if isinstance(call, Transfer):
        return replace(call, tensor=tensor) if call.tensor is None or call.tensor.shape == tensor.shape else call
    if call.kind is CallKind.BARRIER:
        return call
    same = call.operand is not None and call.operand.shape == tensor.shape
    operand = tensor if call.operand is None or same else call.operand
    result = call.result
    if result is None and call.kind in (CallKind.ALL_REDUCE, CallKind.BROADCAST):
        result = operand
    elif result is not None and same:
        result = replace(result, dtype=tensor.dtype)
    return replace(call, operand=operand, result=result)


def _kernels_alone(kernels: Sequence[Slice]) -> list[Found]:
    found: list[Found] = []
    for item in kernels:
        call = described_call(item.arguments)
        kind = kernel_kind(item.name)
        if call is None and kind is not None:
            call = Call(kind, None)
        if call is not None:
            found.append(Found(item, call, text_of(item.arguments.get(COLLECTIVE)) or item.name, item.span))
    return found
