"""Kineto and Chrome traces of PyTorch's profiler: one rank's communications with their times."""

from dtir.importers.kineto.reader import FORMAT, read_kineto

__all__ = ["FORMAT", "read_kineto"]
