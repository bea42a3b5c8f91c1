from __future__ import annotations

from dtir.analysis.executions import MAX_EXECUTIONS, region_executions
from dtir.ir import Branch, DistributedTask, Region
from tests.helpers.programs import call, loop, mesh_of, region, region_id, task

MESH = mesh_of(x=2)


def counts(tasks: tuple[DistributedTask, ...], **regions: tuple[DistributedTask, ...]) -> dict[str, int | None]:
    made: list[Region] = [region(name, MESH, inner) for name, inner in regions.items()]
    found = region_executions(tasks, {one.id: one for one in made})
    return {one.name: found[one.id] for one in made}


def test_calls_add_up_and_loops_multiply() -> None:
    found = counts(
        (call("a", MESH, "f"), loop("b", MESH, "g", 5, "cond")),
        f=(call("c", MESH, "h"),),
        g=(call("d", MESH, "h"), call("e", MESH, "h"), loop("l", MESH, "inner", 3)),
        h=(),
        inner=(),
        cond=(),
        unused=(call("u", MESH, "only_from_unused"),),
        only_from_unused=(),
    )
    assert found == {"f": 1, "g": 5, "h": 1 + 2 * 5, "inner": 15, "cond": 6, "unused": 0, "only_from_unused": 0}


def test_what_the_data_decide_has_no_count() -> None:
    branch = task("br", MESH, Branch((region_id("yes"), region_id("no")), (0, 0)))
    found = counts(
        (loop("w", MESH, "body", None, "cond"), branch, call("c", MESH, "body2")),
        body=(call("x", MESH, "deep"), loop("n", MESH, "never", 0)),
        cond=(),
        yes=(),
        no=(),
        deep=(),
        never=(),
        body2=(),
    )
    assert found == {"body": None, "cond": None, "yes": None, "no": None, "deep": None, "never": 0, "body2": 1}


def test_a_branch_with_one_way_is_taken() -> None:
    assert counts((task("br", MESH, Branch((region_id("only"),), (0,))),), only=()) == {"only": 1}


def test_a_known_and_an_unknown_entry_together_are_unknown() -> None:
    assert counts((call("a", MESH, "f"), loop("b", MESH, "f", None)), f=()) == {"f": None}


def test_a_circle_has_no_count_and_ends() -> None:
    found = counts(
        (call("a", MESH, "f"), call("b", MESH, "ok")), f=(call("c", MESH, "g"),), g=(call("d", MESH, "f"),), ok=()
    )
    assert found == {"f": None, "g": None, "ok": 1}


def test_an_unknown_region_is_passed_over() -> None:
    assert counts((call("a", MESH, "missing"), call("b", MESH, "f")), f=()) == {"f": 1}


def test_doubling_calls_are_one_pass_and_bounded() -> None:
    regions = {f"r{i}": (call(f"a{i}", MESH, f"r{i + 1}"), call(f"b{i}", MESH, f"r{i + 1}")) for i in range(2000)}
    found = counts((call("start", MESH, "r0"),), **regions, r2000=())
    assert found["r10"] == 2**10
    assert found["r332"] == 2**332 < MAX_EXECUTIONS
    assert found["r2000"] is None
