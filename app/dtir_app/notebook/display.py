"""What a cell shows of a program, a report and a run that stand in its last line."""

from __future__ import annotations

from typing import Any

from dtir.execute.record import RunRecord
from dtir.ir.program import DistributedTaskIR
from dtir.schema.diagnostics import VerificationReport
from dtir_app.notebook import explore
from dtir_app.notebook.opening import program_of_report, program_of_run
from dtir_app.notebook.start import in_notebook
from dtir_app.notebook.static import report_html, run_html
from dtir_app.notebook.widget import SingleView, TableView
from dtir_app.text import plural


def bundle(what: object) -> Any:
    """MIME types with content, and their metadata; None for what is better shown as text."""
    match what:
        case DistributedTaskIR():
            return explore(what)._repr_mimebundle_()
        case VerificationReport():
            return _report(what)
        case RunRecord():
            return _run(what)
        case _:
            return None


def _report(report: VerificationReport) -> Any:
    """A table that is linked with the views of the program, where the program is open here; else the findings as HTML."""
    if in_notebook():
        try:
            return TableView(program_of_report(report), "diagnostics")._repr_mimebundle_()
        except LookupError:
            pass
    text = f"<report: {plural(len(report), 'finding')}>"
    return {"text/html": report_html(report), "text/plain": text}, {}


def _run(run: RunRecord) -> Any:
    """The program with the run as its measured side, where the program is open here; else the figures of the run as HTML."""
    if in_notebook():
        try:
            return SingleView(program_of_run(run), "timeline", run=run)._repr_mimebundle_()
        except LookupError:
            pass
    return {"text/html": run_html(run), "text/plain": f"<run of {run.program.get('name', 'a program')}>"}, {}
