"""Executing programs, and comparing what was measured with what was planned.

`run_program` does it all; plans, bindings, back ends and records are parts of their own.

>>> from dtir.execute import load_backend
>>> load_backend("numpy").probe().ok
True
"""

from __future__ import annotations

from dtir.execute.archive import Archive, ArchiveError, write_archive
from dtir.execute.backends import BACKENDS, Backend, BackendError, Capabilities, Fabric, Probe, load_backend
from dtir.execute.binding import Binding, BindingError, Seat, spread
from dtir.execute.exchange import Exchange, Move, Moves
from dtir.execute.plan import make_plan
from dtir.execute.record import RecordError, RunRecord, read_record, write_record
from dtir.execute.run import Report, Request, prepare_run, run_prepared, run_program
from dtir.execute.runner import Interrupted, Timing, run_plan
from dtir.execute.session import ExecutionError, Options, Session
from dtir.execute.steps import ExecPlan, Step, StepKind
from dtir.execute.values import Held, Pieces, Slab

__all__ = [
    "BACKENDS",
    "Archive",
    "ArchiveError",
    "Backend",
    "BackendError",
    "Binding",
    "BindingError",
    "Capabilities",
    "Exchange",
    "ExecPlan",
    "ExecutionError",
    "Fabric",
    "Held",
    "Interrupted",
    "Move",
    "Moves",
    "Options",
    "Pieces",
    "Probe",
    "RecordError",
    "Report",
    "Request",
    "RunRecord",
    "Seat",
    "Session",
    "Slab",
    "Step",
    "StepKind",
    "Timing",
    "load_backend",
    "make_plan",
    "prepare_run",
    "read_record",
    "run_plan",
    "run_prepared",
    "run_program",
    "spread",
    "write_archive",
    "write_record",
]
