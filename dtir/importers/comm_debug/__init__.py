"""CommDebugMode trees of PyTorch: how often each module communicates, forward and backward, and how parameters are placed."""

from dtir.importers.comm_debug.reader import FORMAT, read_comm_debug

__all__ = ["FORMAT", "read_comm_debug"]
