"""PyTorch execution traces: ``ExecutionTraceObserver`` files of schemas 1.0.1 to 1.1."""

from dtir.importers.execution_trace.reader import FORMAT, read_execution_trace

__all__ = ["FORMAT", "read_execution_trace"]
