from __future__ import annotations

import pytest
from dtir_app.frames.export import selection_csv
from dtir_app.frames.inspector import inspect
from dtir_app.frames.rankstrip import STRIP_LIMIT, rank_section
from dtir_app.measuring import make_measured
from dtir_app.selection import of_task
from dtir_app.store import Store
from dtir_app.timing import TwoSides, with_sides

from dtir.ir.tasks import Collective
from tests.app.build import store_of, store_of_example
from tests.app.test_running import NAME, measured, per_rank
from tests.helpers.programs import mesh_of, permute, program


def strip_of(store: Store, task: int) -> list[dict[str, object]]:
    (section,) = rank_section(store, task)
    return section["strip"]  # type: ignore[return-value]


def first_collective(store: Store) -> int:
    return next(at for at, record in enumerate(store.task_records) if isinstance(record.body, Collective))


def test_every_rank_has_the_colour_and_the_name_of_its_group() -> None:
    store = store_of_example("faults")
    strip = strip_of(store, first_collective(store))
    assert [cell["rank"] for cell in strip] == list(range(8))
    groups: dict[object, set[object]] = {}
    for cell in strip:
        groups.setdefault(cell["colour"], set()).add(str(cell["text"]).split(" · ")[2])
    assert len(groups) == 2
    assert all(len(names) == 1 for names in groups.values())
    assert strip[5]["text"] == "rank 5 · dp=1, tp=1 · tp group @ dp=1"
    assert all("took" not in cell for cell in strip), "nothing was measured"


def test_a_permute_says_whom_a_rank_sends_to() -> None:
    mesh = mesh_of(x=4)
    store = store_of(program(mesh, spec=permute(mesh, ((0, 1), (1, 2), (3, 3)))))
    texts = [str(cell["text"]).split(" · ")[2] for cell in strip_of(store, 1)]
    assert texts == ["sends to 1", "sends to 2, receives from 0", "receives from 1", "sends to 3, receives from 3"]


def test_waits_and_times_are_those_of_the_rank() -> None:
    store = store_of_example(NAME)
    sided = with_sides(store, TwoSides(None, make_measured(store, per_rank(), key="strip")))
    task = first_collective(store)
    (section,) = rank_section(sided, task)
    waits = [float(cell["wait"]) for cell in section["strip"]]
    assert waits == sorted(waits, reverse=True), "rank r comes r microseconds late"
    assert waits[7] == 0
    assert max(cell["wait"] + cell["took"] for cell in section["strip"]) == pytest.approx(1)
    assert "waited 7 µs" in section["strip"][0]["text"]
    assert section["rows"][0]["note"].startswith("rank 0 waited longest, 7 µs")
    lines = selection_csv(inspect(sided, of_task(task))).splitlines()
    assert sum("rank 5 ·" in line and "waited 2 µs" in line for line in lines) == 1


def test_times_of_a_process_with_all_ranks_are_not_shown_as_those_of_a_rank() -> None:
    store = store_of_example(NAME)
    strip = strip_of(with_sides(store, TwoSides(None, measured())), first_collective(store))
    assert all("took" not in cell for cell in strip)


def test_local_work_of_all_ranks_has_no_strip_and_large_meshes_a_bounded_one() -> None:
    store = store_of_example("faults")
    assert rank_section(store, next(at for at in range(len(store.tasks)) if store.tasks.family[at] == 0)) == []
    large = mesh_of(dp=512, tp=8)
    (section,) = rank_section(store_of(program(large)), 1)
    assert len(section["strip"]) == STRIP_LIMIT
    assert section["strip_note"] == "64 of 4,096 ranks; see the mesh"
