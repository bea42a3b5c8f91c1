"""The selection as a file: the same words as in the inspector."""

from __future__ import annotations

import csv
import io
import json

from dtir_app.actions import handle
from dtir_app.frames.export import selection_csv
from dtir_app.frames.inspector import inspect
from dtir_app.library import Library
from dtir_app.selection import of_task
from dtir_app.session import Session

from tests.app.build import opened_example, store_of_example


def test_the_selected_task_can_be_taken_away() -> None:
    session = Session(Library())
    session.state.param.update(**session.state.program_fields(opened_example("faults"), ""))
    sent: list[dict[str, object]] = []
    session.parts.bridge._send_msg = sent.append
    session._heard("export-selection", {"type": "export-selection", "format": "json"})
    assert sent == [], "nothing is selected"
    session.select(of_task(4))
    for wanted in ("json", "csv", "anything"):
        session._heard("export-selection", {"type": "export-selection", "format": wanted})
    plain, table, other = (message for message in sent if message["type"] == "download")
    assert (plain["name"], plain["mime"]) == ("parallel_mlp_with_faults.sum_tp.json", "application/json")
    content = json.loads(str(plain["text"]))
    assert (content["title"], content["program"]) == ("sum_tp", "parallel_mlp_with_faults")
    assert content["sections"]
    rows = list(csv.DictReader(io.StringIO(str(table["text"]))))
    assert {"section", "label", "text", "note"} == set(rows[0])
    assert any("tp" in row["text"] for row in rows)
    assert other["text"] == table["text"]
    assert handle.__doc__


def test_no_cell_is_a_formula() -> None:
    content = inspect(store_of_example("faults"), of_task(4))
    content["sections"] = [{"title": "=1", "rows": [{"label": "+2", "text": "@3", "note": "-4", "links": []}]}]
    assert selection_csv(content).splitlines()[1] == "'=1,'+2,'@3,'-4"
