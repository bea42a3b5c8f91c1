from __future__ import annotations

import pytest
from dtir_app.gallery import examples
from dtir_app.kinds import Family
from dtir_app.scenes import (
    communicating_scopes,
    crumbs,
    default_folding,
    entered_place,
    family_of_item,
    first_place,
    home_of,
    scene,
    standing,
    valid_place,
)

from dtir.ir.tasks import LocalCompute
from tests.app.build import store_of, store_of_example
from tests.helpers.programs import call, loop, mesh_of, program, region, task

NAMES = [item.name for item in examples()]


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("folded", [True, False])
def test_every_task_of_a_place_is_in_an_item(name: str, folded: bool) -> None:
    store = store_of_example(name)
    for scope in store.scopes:
        place = () if scope.index == 0 else (("region", scope.index),)
        at = scene(store, place, folded)
        assert sum(len(at.tasks_of(item)) for item in range(at.count)) == scope.task_count
        for task_number in range(scope.first_task, scope.last_task, 7):
            assert task_number in at.tasks_of(at.item_of(task_number)).tolist()
    assert scene(store, (), True).item_of(len(store.tasks)) == -1


@pytest.mark.parametrize("name", NAMES)
def test_a_block_opens_to_its_tasks(name: str) -> None:
    store = store_of_example(name)
    for scope in store.scopes:
        place = () if scope.index == 0 else (("region", scope.index),)
        at = scene(store, place, True)
        for item in range(at.count):
            target = entered_place(store, place, at, item)
            if at.folded.size[item] > 1:
                assert target is not None
                assert scene(store, target, False).tasks.tolist() == at.tasks_of(item).tolist()
                assert family_of_item(store, at, item) is Family.BLOCK


@pytest.mark.parametrize("name", NAMES)
def test_the_home_of_a_task_shows_it(name: str) -> None:
    store = store_of_example(name)
    for number in range(0, len(store.tasks), 5):
        place = home_of(store, number)
        assert valid_place(store, place)
        assert scene(store, place, False).item_of(number) >= 0
        assert len(crumbs(store, place)) == len(place) + 1


@pytest.mark.parametrize("name", NAMES)
def test_a_program_opens_where_something_communicates(name: str) -> None:
    store = store_of_example(name)
    place = first_place(store)
    tasks = scene(store, place, False).tasks
    assert standing(store)[tasks].any()


def test_a_call_of_local_work_folds_like_local_work() -> None:
    store = store_of_example("scan_layers")
    inside = communicating_scopes(store)
    for number, scopes in store.tasks.entered.items():
        assert standing(store)[number] == any(inside[scope] for scope in scopes)


def test_a_wrapper_is_passed_over_but_a_loop_is_not() -> None:
    mesh = mesh_of(dp=2, tp=4)
    inner = program(mesh).tasks
    wrapped = region("body", mesh, inner)
    one = store_of(
        program(mesh, tasks=(call("call", mesh, "body"),), values=(), inputs=(), outputs=(), regions=(wrapped,))
    )
    assert first_place(one) == (("region", 1),)
    many = store_of(
        program(mesh, tasks=(loop("while", mesh, "body", 4),), values=(), inputs=(), outputs=(), regions=(wrapped,))
    )
    assert first_place(many) == ()


def test_regions_that_enter_each_other_end() -> None:
    mesh = mesh_of(tp=2)
    a = region("a", mesh, (call("to_b", mesh, "b"),))
    b = region("b", mesh, (call("to_a", mesh, "a"), task("leaf", mesh, LocalCompute())))
    store = store_of(program(mesh, tasks=(call("in", mesh, "a"),), values=(), inputs=(), outputs=(), regions=(a, b)))
    assert home_of(store, 3)[-1] == ("region", 2)
    assert first_place(store) == ()


def test_long_lists_open_folded_and_blocks_never() -> None:
    assert default_folding(store_of_example("transformer_train"), ())
    assert not default_folding(store_of_example("faults"), ())
    assert not default_folding(store_of_example("transformer_train"), (("block", 0),))


def test_a_place_of_another_program_is_not_valid() -> None:
    store = store_of_example("faults")
    assert not valid_place(store, (("region", 1),))
    assert not valid_place(store, (("block", 10_000),))
    assert valid_place(store, ())


def test_few_scenes_are_kept() -> None:
    store = store_of_example("transformer_64")
    for scope in range(1, 40):
        scene(store, (("region", scope),), False)
    assert sum(1 for key in store.memo if isinstance(key, tuple) and key[0] == "scene") <= 16
