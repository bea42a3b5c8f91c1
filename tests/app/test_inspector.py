from __future__ import annotations

import json

import pytest
from dtir_app.frames.communication import message_formula, sentence
from dtir_app.frames.inspector import inspect, neighbours
from dtir_app.frames.overview import overview
from dtir_app.gallery import examples
from dtir_app.kinds import COMMUNICATION
from dtir_app.selection import NOTHING, find_selection, of_task, of_value
from dtir_app.store import Store

from dtir.ir.collectives import Broadcast, PeerTransfer
from dtir.ir.ranks import all_ranks
from dtir.ir.tasks import LocalCompute, PipelineSlot, PointToPoint
from dtir.schema.frozen import FrozenDict
from tests.app.build import store_of, store_of_example
from tests.helpers.programs import all_reduce, mesh_of, permute, program, task

NAMES = [item.name for item in examples()]


def rows(content: dict[str, object]) -> dict[str, dict[str, object]]:
    return {str(row["label"]): row for section in content["sections"] for row in section["rows"]}


@pytest.mark.parametrize("name", NAMES)
def test_everything_can_be_inspected_as_plain_data_and_every_link_leads_somewhere(name: str) -> None:
    store = store_of_example(name)
    step = max(1, len(store.tasks) // 50)
    selections = [
        NOTHING,
        *map(of_task, range(0, len(store.tasks), step)),
        *map(of_value, range(0, len(store.values), step)),
    ]
    for selection in selections:
        content = inspect(store, selection)
        json.dumps(content)
        for section in content["sections"]:
            assert section["rows"] or section["strip"]
            for row in section["rows"]:
                for link in row["links"]:
                    assert not link["key"] or find_selection(store, link["key"])


@pytest.mark.parametrize("name", NAMES)
def test_the_message_follows_from_the_tensors_where_shapes_are_known(name: str) -> None:
    store = store_of_example(name)
    derived = 0
    for row in range(len(store.tasks)):
        formula = message_formula(store, row)
        if formula is not None and store.format == "hlo" and "permute" not in store.tasks.operation[row]:
            assert formula[1] == store.tasks.message_bytes[row], store.tasks.name[row]
            derived += 1
    if store.format == "hlo" and name not in ("ring_attention", "halo"):
        assert derived


def test_a_message_that_does_not_follow_is_told() -> None:
    mesh = mesh_of(dp=2, tp=4)
    content = inspect(store_of(program(mesh, spec=all_reduce(mesh, axes=("tp",), message_bytes=99))), of_task(1))
    row = rows(content)["derived"]
    assert row["text"] == "f32[4,8] × 4 B = 128 B"
    assert row["note"] == "the program says 99 B"
    assert row["tone"] == "warning"
    right = inspect(store_of(program(mesh)), of_task(1))
    assert rows(right)["derived"]["note"] == ""


def test_a_collective_in_one_sentence() -> None:
    store = store_of(program())
    assert sentence(store, 1) == "All-reduce (sum) over tp: 2 × 4 ranks, 128 B a group."
    loop = store_of_example("scan_layers")
    inside = next(
        row for row in range(len(loop.tasks)) if loop.tasks.executions[row] == 4 and loop.tasks.family[row] == 1
    )
    assert sentence(loop, inside).endswith("256 B a group, ×4.")


@pytest.mark.parametrize("name", NAMES)
def test_every_task_has_a_sentence(name: str) -> None:
    store = store_of_example(name)
    assert all(sentence(store, row).endswith(".") for row in range(len(store.tasks)))


def test_groups_stand_with_their_members() -> None:
    content = inspect(store_of(program()), of_task(1))
    groups = next(section for section in content["sections"] if section["title"] == "Groups")
    assert [(row["label"], row["text"]) for row in groups["rows"]] == [
        ("tp group @ dp=0", "0–3"),
        ("tp group @ dp=1", "4–7"),
    ]


def test_more_groups_than_are_listed_are_counted() -> None:
    mesh = mesh_of(a=100, b=2)
    content = inspect(store_of(program(mesh, spec=all_reduce(mesh, axes=("b",)))), of_task(1))
    groups = next(section for section in content["sections"] if section["title"] == "Groups")
    assert groups["rows"][-1]["text"] == "… 84 more groups; all of them in the mesh view"


def test_special_tasks_say_what_is_special() -> None:
    mesh = mesh_of(pp=4)
    tasks = (
        task("send", mesh, PointToPoint(PeerTransfer(0, 1, 64, "act")), pipeline=PipelineSlot(1, 2, "forward", 3)),
        task("odd", mesh, LocalCompute(), attributes=FrozenDict({"note": "x" * 2000})),
    )
    store = store_of(program(mesh, tasks=tasks, values=(), inputs=(), outputs=()))
    found = rows(inspect(store, of_task(0)))
    assert found["transfer"]["text"] == "0 → 1"
    assert found["channel"]["text"] == "act"
    assert found["pipeline"]["text"] == "stage 1, microbatch 2, forward, chunk 3"
    assert str(rows(inspect(store, of_task(1)))["note"]["text"]).endswith("… (2,000 characters)")
    root = store_of(program(mesh, spec=Broadcast(all_ranks(4), 64, 2, axes=("pp",))))
    assert rows(inspect(root, of_task(1)))["root"]["text"] == "2"
    pairs = inspect(store_of(program(mesh, spec=permute(mesh, ((0, 1), (1, 2))))), of_task(1))
    assert (
        next(section for section in pairs["sections"] if section["title"] == "Pairs")["rows"][0]["text"] == "0→1, 1→2"
    )


def test_findings_come_first_with_their_hint() -> None:
    store = store_of_example("faults")
    content = inspect(store, of_task(7))
    first = content["sections"][0]
    assert first["title"] == "1 finding"
    assert first["rows"][0]["label"] == "collective.gather_dim"
    assert first["rows"][0]["note"] == "gather on the dim that tp split: dim 1"


def test_neighbours_are_the_ends_of_the_edges() -> None:
    store = store_of_example("faults")
    names = {name: row for row, name in enumerate(store.tasks.name)}
    before, after = neighbours(store, names["act"])
    assert [store.tasks.name[row] for row in before] == ["up"]
    assert sorted(store.tasks.name[row] for row in after) == ["down", "gather_act", "grad_w2"]


def cards(store: Store) -> dict[str, object]:
    made = overview(store)
    json.dumps(made)
    return made


@pytest.mark.parametrize("name", NAMES)
def test_the_overview_adds_up(name: str) -> None:
    store = store_of_example(name)
    made = cards(store)
    communicating = int(sum(store.tasks.family[row] in COMMUNICATION for row in range(len(store.tasks))))
    number = lambda text: int(str(text).replace(",", ""))  # noqa: E731
    assert sum(number(item["count"]) for item in made["kinds"]) == len(store.tasks)
    assert sum(number(item["count"]) for item in made["communication"]) == communicating
    assert sum(number(item["count"]) for item in made["axes"]) == communicating
    sizes = [item["total"] for item in made["heaviest"]]
    assert len(sizes) == min(5, communicating)
    assert all(find_selection(store, item["key"]) for item in made["heaviest"])
    assert all(find_selection(store, item["key"]) for item in made["strip"]["bins"])


def test_the_heaviest_counts_its_runs() -> None:
    store = store_of_example("pipeline")
    heaviest = cards(store)["heaviest"][0]
    assert (heaviest["total"], heaviest["runs"], heaviest["message"]) == ("640 B", "5", "128 B")


def test_the_worst_finding_is_named() -> None:
    worst = cards(store_of_example("faults"))["worst"]
    assert (worst["severity"], worst["place"], worst["total"]) == ("error", "add_bias", 3)
    assert "severity" not in cards(store_of(program()))["worst"]


def test_a_program_without_communication_says_so_by_empty_cards() -> None:
    mesh = mesh_of(tp=2)
    made = cards(store_of(program(mesh, tasks=(task("only", mesh, LocalCompute()),), values=(), inputs=(), outputs=())))
    assert made["heaviest"] == made["communication"] == made["axes"] == made["strip"]["bins"] == []
