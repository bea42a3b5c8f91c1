"""The many names of one collective, and the names of element types, as runtimes write them.

>>> call_kind("c10d::_allgather_base_"), call_kind("nccl:all_reduce_barrier"), call_kind("wait")
(<CallKind.ALL_GATHER: 'all_gather'>, <CallKind.BARRIER: 'barrier'>, None)
>>> dtype_name("Tensor(float)"), dtype_name("c10::BFloat16")
('f32', 'bf16')
"""

from __future__ import annotations

import math
import re

from dtir.importers.rank_set.events import CallKind, Tensor
from dtir.ir.reductions import ReductionKind
from dtir.ir.types import dtype_bits

_LETTERS = re.compile(r"[^a-z]")
_KERNEL = re.compile(r"(?:nccl|rccl)(?:Dev)?Kernel(?:Generic)?_?([A-Za-z]+?)(?:_|\(|$)")

# The longer words first: reduce_scatter is no reduce.
_WORDS: tuple[tuple[str, CallKind], ...] = (
    ("allreducebarrier", CallKind.BARRIER),
    ("monitoredbarrier", CallKind.BARRIER),
    ("barrier", CallKind.BARRIER),
    ("allreduce", CallKind.ALL_REDUCE),
    ("allgather", CallKind.ALL_GATHER),
    ("reducescatter", CallKind.REDUCE_SCATTER),
    ("alltoall", CallKind.ALL_TO_ALL),
    ("broadcast", CallKind.BROADCAST),
    ("reduce", CallKind.REDUCE),
    ("gather", CallKind.GATHER),
    ("scatter", CallKind.SCATTER),
)


def call_kind(name: str) -> CallKind | None:
    """What a named call does; None for a name that is no collective (a wait, a send)."""
    word = _LETTERS.sub("", name.rpartition(":")[2].lower()).removeprefix("sparse")
    return next((kind for begin, kind in _WORDS if word.startswith(begin)), None)


def kernel_kind(name: str) -> CallKind | None:
    """What a communication kernel does, ``ncclDevKernel_AllReduce_Sum_f32_RING_LL``; None when it is none."""
    found = _KERNEL.match(name)
    return call_kind(found[1]) if found else None


def transfer_side(name: str) -> bool | None:
    """True for a send, False for a receive, None for anything else."""
    word = _LETTERS.sub("", name.rpartition(":")[2].split(" ")[0].lower())
    if word in ("send", "isend"):
        return True
    return False if word in ("recv", "irecv", "recvanysource", "receive") else None


_DTYPES = {
    "float": "f32",
    "double": "f64",
    "half": "f16",
    "bfloat": "bf16",
    "bfloat16": "bf16",
    "long": "s64",
    "longint": "s64",
    "int": "s32",
    "short": "s16",
    "shortint": "s16",
    "char": "s8",
    "signedchar": "s8",
    "byte": "u8",
    "unsignedchar": "u8",
    "bool": "pred",
    "complexfloat": "c64",
    "complexdouble": "c128",
    "cfloat": "c64",
    "cdouble": "c128",
    "float8e4m3fn": "f8e4m3fn",
    "float8e5m2": "f8e5m2",
    "uint16": "u16",
    "uint32": "u32",
    "uint64": "u64",
    "int8": "s8",
    "int16": "s16",
    "int32": "s32",
    "int64": "s64",
    "uint8": "u8",
    "float16": "f16",
    "float32": "f32",
    "float64": "f64",
}
_TENSOR = re.compile(r"Tensor\(([^()]*)\)")
_PLAIN = re.compile(r"[^a-z0-9]")


def dtype_name(text: str) -> str | None:
    """The IR's name of an element type; None when the name is not known."""
    inner = _TENSOR.search(text)
    word = _PLAIN.sub("", (inner[1] if inner else text).lower().removeprefix("c10::"))
    return _DTYPES.get(word)


_REDUCTIONS = {
    "sum": ReductionKind.SUM,
    "avg": ReductionKind.AVERAGE,
    "max": ReductionKind.MAX,
    "min": ReductionKind.MIN,
    "product": ReductionKind.PRODUCT,
    "prod": ReductionKind.PRODUCT,
    "band": ReductionKind.AND,
    "bor": ReductionKind.OR,
    "bxor": ReductionKind.XOR,
}


def reduction_kind(word: str) -> ReductionKind | None:
    """The reduction of a word like ``sum``; None when it is none."""
    return _REDUCTIONS.get(word.lower())


def tensor_bytes(tensor: Tensor) -> int:
    """Bytes of a tensor; of an unknown element type one byte an element."""
    return -(-math.prod(tensor.shape) * (dtype_bits(tensor.dtype) or 8) // 8)
