"""Kernels for several ranks on one device: their source, and how they are launched.

The source is CUDA C++ that needs no CUDA headers. The same text is compiled by NVRTC for a GPU and, with ``HOST_EMU``, by
a C++ compiler for the host, where the tests compare it bit by bit with `dtir.execute.semantics`.

>>> launch = fold([0, 4096], [8192], "f32", ReductionKind.SUM, 1024, Geometry(32, 256))
>>> launch.expression, launch.grid
('fold_fixed<f32, Sum<f32>, f32, 2, 1, 4, false>', (1, 1, 1))
"""

from __future__ import annotations

from dtir.execute.kernels.folds import ELEMENTS, FOLDS, can_fold, fold
from dtir.execute.kernels.launches import OPTIONS, TABLE, Geometry, Launch, kernel_source
from dtir.execute.kernels.movement import Box, blocks, pairs, replicate
from dtir.ir.reductions import ReductionKind

__all__ = [
    "ELEMENTS",
    "FOLDS",
    "OPTIONS",
    "TABLE",
    "Box",
    "Geometry",
    "Launch",
    "ReductionKind",
    "blocks",
    "can_fold",
    "fold",
    "kernel_source",
    "pairs",
    "replicate",
]
