"""PyTorch flight recorder dumps in JSON: what each rank had issued, and what was not over, when the job hung.

Pickled dumps are never opened: a pickle can run code. PyTorch writes JSON with ``_dump_fr_trace_json``.
"""

from dtir.importers.flight_recorder.reader import FORMAT, read_flight_recorder

__all__ = ["FORMAT", "read_flight_recorder"]
