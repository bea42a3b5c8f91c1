"""The native snapshot: what it looks like, what is kept in tables, what its digest depends on, and where faults are."""

from __future__ import annotations

import hashlib
import json
import tracemalloc
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dtir.ir import (
    AllGather,
    AllReduce,
    BindingAxis,
    Collective,
    DistributedTaskIR,
    Lineage,
    LineageKind,
    LocalCompute,
    NodeId,
    ProgramBuilder,
    RankRange,
    ReductionKind,
    RegionId,
    Symbol,
    TokenId,
    ValueId,
    ValueRole,
    maximum,
)
from dtir.ir.native_codecs import RankSetCodec
from dtir.ir.native_session import RANKS_AT_LEAST, ReadSession, WriteSession
from dtir.ir.ranks import EXPANDED_RANKS_LIMIT
from dtir.schema import Err, FrozenDict, Ok
from dtir.schema.jsontext import raw_json
from dtir.schema.opendata import PlainError
from tests.helpers.programs import program
from tests.helpers.strategies import attributes, frozen_values, programs


def small() -> DistributedTaskIR:
    build = ProgramBuilder("small", axes={"tp": 8}, attributes={"note": ["a", 1.0, b"x"]})
    b = Symbol("b", BindingAxis.WORKLOAD, positive=True)
    x = build.input("x", (b, 16), "bf16", split={1: "tp"})
    y = build.value("y", (b, 16), "bf16")
    z = build.value("z", (b, 16), "bf16", role=ValueRole.OUTPUT)
    body = Collective(AllGather(tuple(range(8)), maximum(b * 32, 1), axes=("tp",), dim=1))
    build.task("collective.all_gather", (x,), (y,), body=body, name="gather")
    build.task("core.relu", (y,), (z,))
    build.output(z)
    return build.build(require_valid=True)


SMALL = small()
TEXT = SMALL.to_json()


def load(text: str) -> DistributedTaskIR:
    return DistributedTaskIR.require_from_json(text)


def refusal(text: str) -> str:
    match DistributedTaskIR.from_json(text):
        case Ok():
            pytest.fail("it loads")
        case Err(error):
            (found,) = error
            assert (found.code, found.path) == ("serialization.snapshot", ("snapshot",))
            assert found.hint
            return found.message


def edited(edit: Callable[[dict[str, Any]], object], text: str = TEXT) -> str:
    tree = json.loads(text)
    edit(tree)
    return raw_json(tree)


# -- form --------------------------------------------------------------------------------------------------------


def test_it_reads_like_the_program() -> None:
    ids = {value.name: value.id.value for value in SMALL.values}
    symbol = {"axis": "workload", "kind": "symbol", "name": "b", "positive": True}
    size = {"kind": "maximum", "values": [{"factors": [symbol, 32], "kind": "multiply"}, 1]}
    lineage, type_ = {"kind": "root", "transform": "build"}, {"dtype": "bf16", "shape": [symbol, 16]}
    assert json.loads(TEXT) == {
        "digest": SMALL.digest,
        "features": ["typed-semantics"],
        "producer_version": "0.0.0",
        "schema": "dtir.distributed-task",
        "version": "1.0.0",
        "payload": {
            "attributes": {"note": ["a", 1.0, {"$bytes": "eA=="}]},
            "header": {
                "feature_set": ["typed-semantics"],
                "parent_digests": [SMALL.source_model_digest],
                "schema_name": "dtir.distributed-task",
                "schema_version": "1.0.0",
            },
            "inputs": [ids["x"]],
            "mesh": {"axes": [{"name": "tp", "size": 8}], "name": "mesh"},
            "name": "small",
            "outputs": [ids["z"]],
            "source_model_digest": SMALL.source_model_digest,
            "tables": {
                "lineages": [lineage],
                "shardings": [{"dimension_axes": [[], []], "replicated_axes": ["tp"]}],
                "types": [type_],
            },
            "tasks": [
                {
                    "body": {
                        "kind": "collective",
                        "spec": {
                            "axes": ["tp"],
                            "dim": 1,
                            "kind": "all-gather",
                            "message_bytes": size,
                            "participants": [[0, 8]],
                        },
                    },
                    "dependencies": [],
                    "id": SMALL.tasks[0].id.value,
                    "inputs": [ids["x"]],
                    "lineage": 0,
                    "name": "gather",
                    "operation": {"dialect": "collective", "name": "all_gather"},
                    "outputs": [ids["y"]],
                    "ranks": [[0, 8]],
                },
                {
                    "body": {"kind": "local-compute"},
                    "dependencies": [SMALL.tasks[0].id.value],
                    "id": SMALL.tasks[1].id.value,
                    "inputs": [ids["y"]],
                    "lineage": 0,
                    "operation": {"dialect": "core", "name": "relu"},
                    "outputs": [ids["z"]],
                    "ranks": [[0, 8]],
                },
            ],
            "values": [
                {
                    "id": ids["x"],
                    "lineage": 0,
                    "name": "x",
                    "owners": [[0, 8]],
                    "role": "input",
                    "sharding": {"dimension_axes": [[], ["tp"]]},
                    "type": 0,
                },
                {
                    "id": ids["y"],
                    "lineage": 0,
                    "name": "y",
                    "owners": [[0, 8]],
                    "role": "activation",
                    "sharding": 0,
                    "type": 0,
                },
                {
                    "id": ids["z"],
                    "lineage": 0,
                    "name": "z",
                    "owners": [[0, 8]],
                    "role": "output",
                    "sharding": 0,
                    "type": 0,
                },
            ],
        },
    }


def test_text_is_canonical_and_its_digest_is_over_the_payload() -> None:
    tree = json.loads(TEXT)
    assert json.dumps(tree, ensure_ascii=False, sort_keys=True, separators=(",", ":")) == TEXT
    payload = raw_json(tree["payload"])
    expected = hashlib.blake2b(f"ir:dtir.distributed-task\0{payload}".encode(), digest_size=20).hexdigest()
    assert SMALL.digest == tree["digest"] == expected


@settings(max_examples=50)
@given(programs())
def test_reading_undoes_writing(made: DistributedTaskIR) -> None:
    text = made.to_json()
    again = load(text)
    assert again == made
    assert again.digest == made.digest
    assert again.to_json() == text
    tree = json.loads(text)
    assert raw_json(tree) == text


@settings(max_examples=30)
@given(programs(), st.data())
def test_equal_programs_have_equal_digests(left: DistributedTaskIR, data: st.DataObject) -> None:
    other = data.draw(programs())
    tasks = tuple(replace(task, attributes=data.draw(attributes())) for task in left.tasks)
    for right in (other, replace(left, tasks=tasks), replace(left, attributes=other.attributes)):
        assert (left == right) == (left.digest == right.digest)


@given(frozen_values(), frozen_values())
def test_open_data_decides_about_equality_and_digest_alike(left: Any, right: Any) -> None:
    one, two = (replace(SMALL, attributes=FrozenDict({"a": value})) for value in (left, right))
    assert (one == two) == (one.digest == two.digest)
    assert load(one.to_json()) == one


@pytest.mark.parametrize(
    "other", [1.0, True, "1", (1,), None, frozenset({1}), FrozenDict({"a": 1}), 0.0, -0.0, b"1"], ids=repr
)
def test_kinds_are_kept_apart(other: Any) -> None:
    one, two = replace(SMALL, attributes=FrozenDict({"a": 1})), replace(SMALL, attributes=FrozenDict({"a": other}))
    assert one != two
    assert one.digest != two.digest
    assert load(two.to_json()).attributes == FrozenDict({"a": other})


def test_a_size_of_one_and_one_point_zero_differ() -> None:
    made = program()
    body: Any = made.tasks[1].body
    digests = set[str]()
    for size in (0, 0.0, -0.0, 1, 1.0):
        tasks = (made.tasks[0], replace(made.tasks[1], body=Collective(replace(body.spec, message_bytes=size))))
        digests.add(replace(made, tasks=tasks).digest)
    assert len(digests) == 5


def test_the_form_does_not_depend_on_what_is_shared() -> None:
    # The same content, once with one object for equal parts and once with a new object everywhere.
    again = load(TEXT)
    copied = DistributedTaskIR.require_from_json(TEXT)
    tasks = tuple(replace(task, ranks=tuple(iter(task.ranks)), lineage=replace(task.lineage)) for task in again.tasks)
    values = tuple(
        replace(value, type=replace(value.type), sharding=replace(value.sharding), lineage=replace(value.lineage))
        for value in again.values
    )
    unshared = replace(again, tasks=tasks, values=values)
    assert unshared == copied
    assert unshared.to_json() == TEXT


def test_what_is_inside_a_repeated_part_counts_once_in_either_case() -> None:
    ranks = (0, 2, 1, 3, 5, 4, 7, 6)

    def made(*, shared: bool) -> DistributedTaskIR:
        build = ProgramBuilder("nested", axes={"x": 8})
        build.value("v", (1,), "f32")
        body = Collective(AllReduce(ranks, 8, ReductionKind.SUM))
        for _ in range(3):
            own = body if shared else Collective(AllReduce(tuple(iter(ranks)), 8, ReductionKind.SUM))
            build.task("core.sum", body=own)
        return build.build(require_valid=True)

    assert made(shared=True).to_json() == made(shared=False).to_json()


# -- tables ------------------------------------------------------------------------------------------------------


def test_repeated_parts_are_read_once() -> None:
    again = load(TEXT)
    assert again.values[1].type is again.values[2].type
    assert again.values[1].sharding is again.values[2].sharding
    assert again.tasks[0].lineage is again.values[0].lineage
    assert again.tasks[0].ranks is again.values[0].owners
    assert again.tasks[0].id is again.tasks[1].dependencies[0]


def test_size_follows_the_number_of_different_things() -> None:
    def made(count: int) -> int:
        build = ProgramBuilder("chain", axes={"dp": 64, "tp": 64})
        groups = tuple(tuple((first + 7 * step) % 4096 for step in range(64)) for first in range(0, 4096, 64))
        everyone = tuple(sorted({rank for group in groups for rank in group}))
        build.value("v", (1,), "f32")
        body = Collective(AllReduce(everyone, 8, ReductionKind.SUM, groups=groups))
        for _ in range(count):
            build.task("core.sum", body=body, ranks=everyone)
        return len(build.build().to_json())

    # A task that says nothing new costs its identifier and a few numbers, whatever its body weighs.
    assert made(20) - made(10) < 10 * 250


@pytest.mark.parametrize(
    ("edit", "message"),
    [
        (
            lambda payload: payload["values"][0].__setitem__("type", 1),
            "payload.values[0].type: table 'types' has 1 entries, there is no number 1",
        ),
        (
            lambda payload: payload["values"][0].__setitem__("type", -1),
            "payload.values[0].type: table 'types' has 1 entries, there is no number -1",
        ),
        (
            lambda payload: payload["tables"]["types"].append({"dtype": "f32", "shape": []}),
            "payload.tables.types[1]: nothing refers to this entry",
        ),
        (
            lambda payload: payload["tables"].__setitem__("kernels", []),
            "payload.tables: unknown table 'kernels'; known are bodies, lineages, operations, ranks, semantics, shardings, types",
        ),
        (lambda payload: payload["tables"].__setitem__("types", {}), "payload.tables.types: expected an array"),
        (lambda payload: payload.__setitem__("tables", []), "payload.tables: expected an object"),
        (
            lambda payload: payload["tables"]["types"].__setitem__(0, 0),
            "payload.tables.types[0]: expected an object, got an integer",
        ),
        (
            lambda payload: payload["tables"]["types"][0].__setitem__("dtype", 3),
            "payload.tables.types[0].dtype: expected text, got an integer",
        ),
        (
            lambda payload: payload["tasks"][1].__setitem__("ranks", 0),
            "payload.tasks[1].ranks: table 'ranks' has 0 entries, there is no number 0",
        ),
    ],
)
def test_faults_of_tables(edit: Callable[[Any], object], message: str) -> None:
    assert refusal(edited(lambda tree: edit(tree["payload"]))) == message


def test_an_entry_that_refers_to_itself() -> None:
    def edit(tree: dict[str, Any]) -> None:
        payload = tree["payload"]
        body = payload["tasks"][0]["body"]
        payload["tables"]["bodies"] = [body]
        payload["tables"]["ranks"] = [[0]]
        body["spec"]["groups"] = [0, 0]
        payload["tasks"][0]["body"] = 0

    # Rank sets hold no references, so no circle can be written; what remains is the digest.
    assert refusal(edited(edit)) == "canonical IR snapshot digest mismatch"

    class Circle:
        kinds = frozenset({list})

        def accepts(self, value: Any) -> bool:
            return True

        def write(self, value: Any, session: Any) -> str:
            raise NotImplementedError

        def read(self, node: Any, session: ReadSession, path: Any) -> Any:
            return session.entry("circle", node[0], self, path)

    with pytest.raises(PlainError, match="entry 0 of table 'circle' refers to itself"):
        ReadSession({"circle": [[0]]}, 0).entry("circle", 0, Circle(), None)


# -- rank sets ---------------------------------------------------------------------------------------------------

RANKS = RankSetCodec()


@pytest.mark.parametrize(
    ("ranks", "text"),
    [
        ((), "[]"),
        ((5,), "[5]"),
        ((0, 1), "[0,1]"),
        ((0, 1, 2), "[0,1,2]"),
        ((0, 1, 2, 3), "[[0,4]]"),
        ((0, 2, 4, 6), "[[0,7,2]]"),
        ((7, 0, 1, 2, 3, 9), "[7,[0,4],9]"),
        ((3, 2, 1, 0), "[3,2,1,0]"),
        ((1, 1, 1, 1, 1), "[1,1,1,1,1]"),
        ((0, 4, 8, 12, 1, 5, 9, 13), "[[0,13,4],[1,14,4]]"),
        (RankRange(0, 4), "[[0,4]]"),
        (RankRange(0, 8, 2), "[[0,7,2]]"),
        (RankRange(3, 3), "[]"),
        (RankRange(0, 2_000_000_000), "[[0,2000000000]]"),
        (RankRange(1, 2_000_000_000, 3), "[[1,2000000000,3]]"),
        (RankRange(1, 1_999_999_999, 3), "[[1,1999999997,3]]"),
    ],
    ids=str,
)
def test_runs_of_ranks(ranks: Any, text: str) -> None:
    assert RANKS.write(ranks, WriteSession()) == text
    again = RANKS.read(json.loads(text), ReadSession({}, 0), None)
    assert again == ranks
    assert isinstance(again, RankRange) == (len(ranks) > EXPANDED_RANKS_LIMIT)


@given(st.lists(st.integers(0, 30), max_size=40).map(tuple))
def test_any_ranks_in_any_order(ranks: tuple[int, ...]) -> None:
    text = RANKS.write(ranks, WriteSession())
    assert RANKS.read(json.loads(text), ReadSession({}, 0), None) == ranks


@given(st.integers(0, 100), st.integers(0, 10**12), st.integers(1, 10**6))
def test_runs_have_one_form(start: int, length: int, step: int) -> None:
    run = RankRange(start, start + length, step)
    text = RANKS.write(run, WriteSession())
    padded = RankRange(run.start, run[-1] + step, step) if len(run) else run
    assert RANKS.write(padded, WriteSession()) == text
    assert RANKS.read(json.loads(text), ReadSession({}, 0), None) == run


def test_a_long_tuple_is_written_rank_by_rank() -> None:
    ranks = tuple(range(EXPANDED_RANKS_LIMIT + 1))
    text = RANKS.write(ranks, WriteSession())
    assert text.startswith("[0,1,2,3,4,5")
    again = RANKS.read(json.loads(text), ReadSession({}, len(text)), None)
    assert again == ranks
    assert type(again) is tuple


@pytest.mark.parametrize(
    ("node", "message"),
    [
        ("0", "expected an array, got text"),
        ([True], "expected a rank, [start, stop] or [start, stop, step], got True"),
        ([1.0], "expected a rank, [start, stop] or [start, stop, step], got 1.0"),
        ([[1]], "expected a rank, [start, stop] or [start, stop, step], got [1]"),
        ([[1, 2, 3, 4]], "expected a rank, [start, stop] or [start, stop, step], got [1, 2, 3, 4]"),
        ([[0, True]], "expected a rank, [start, stop] or [start, stop, step], got [0, True]"),
        ([[5, 5]], "the run [5, 5] holds no rank"),
        ([[5, 2]], "the run [5, 2] holds no rank"),
        ([[0, 5, 0]], "RankRange.step must match"),
        ([[-1, 5]], "RankRange.start must match"),
        ([[0, 10**30]], "a run holds at most 9223372036854775807 ranks"),
        ([[0, 10**9], 7], "runs beside others stand for 1000000000 ranks, more than 65536"),
        ([[0, 60_000], [60_000, 120_000]], "runs beside others stand for 120000 ranks, more than 65536"),
    ],
    ids=str,
)
def test_faults_of_rank_sets(node: Any, message: str) -> None:
    with pytest.raises(PlainError) as caught:
        RANKS.read(node, ReadSession({}, 0), None)
    assert caught.value.message.startswith(message)


def test_what_runs_stand_for_is_bounded_for_a_file() -> None:
    session = ReadSession({}, 0)
    nodes = [[[first, first + 60_000]] for first in range(200)]
    fitting = RANKS_AT_LEAST // 60_000
    for node in nodes[:fitting]:
        assert len(RANKS.read(node, session, None)) == 60_000
    with pytest.raises(PlainError, match="the runs of ranks of this file stand for more than 4194304 ranks"):
        RANKS.read(nodes[fitting], session, None)
    # What has been read already costs nothing more.
    assert RANKS.read(nodes[0], session, None) is RANKS.read(nodes[0], session, None)


def test_memory_does_not_follow_a_number_in_the_file() -> None:
    def edit(tree: dict[str, Any]) -> None:
        payload = tree["payload"]
        payload["mesh"]["axes"][0]["size"] = 2_000_000_000
        for part, name in ((payload["values"], "owners"), (payload["tasks"], "ranks")):
            for item in part:
                item[name] = [[0, 2_000_000_000]]
        payload["tasks"][0]["body"]["spec"]["participants"] = [[0, 2_000_000_000]]

    tracemalloc.start()
    try:
        assert refusal(edited(edit)) == "canonical IR snapshot digest mismatch"
        _, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert peak < 500_000


def test_a_huge_mesh_goes_both_ways() -> None:
    build = ProgramBuilder("huge", axes={"dp": 2_000_000, "tp": 1_000})
    x = build.input("x", (4,), "f32")
    y = build.value("y", (4,), "f32")
    everyone = RankRange(0, 2_000_000_000)
    build.task("core.sum", (x,), (y,), body=Collective(AllReduce(everyone, 8, ReductionKind.SUM)))
    build.output(y)
    made = build.build(require_valid=True)
    text = made.to_json()
    assert len(text) < 2_000
    assert load(text) == made


NO_BODY = (
    "no kind that may stand here; known are branch, call, collective, control, local-compute, loop, point-to-point, "
    "reshard"
)
NO_SCALAR = "expected an integer or a number with a point or exponent or an object"

# -- identifiers and scalars -------------------------------------------------------------------------------------


def test_sources_of_any_kind_carry_their_prefix() -> None:
    sources = (NodeId.derive(1), ValueId.derive(1), TokenId.derive(1), RegionId.derive(1))
    made = replace(
        SMALL, tasks=(replace(SMALL.tasks[0], lineage=Lineage(LineageKind.FUSED, "f", sources)), SMALL.tasks[1])
    )
    text = made.to_json()
    assert f'"sources":["{sources[0]}","{sources[1]}","{sources[2]}","{sources[3]}"]' in text
    assert load(text) == made


@pytest.mark.parametrize(
    ("edit", "message"),
    [
        (lambda task: task.__setitem__("id", "X"), "payload.tasks[0].id: invalid NodeId value: 'X'"),
        (lambda task: task.__setitem__("id", 3), "payload.tasks[0].id: expected text, got an integer"),
        (
            lambda task: task.__setitem__("lineage", {"kind": "lowered", "transform": "t", "sources": ["zz:1"]}),
            "payload.tasks[0].lineage.sources[0]: expected an identifier such as node:..., got 'zz:1'",
        ),
        (
            lambda task: task.__setitem__("lineage", {"kind": "lowered", "transform": "t", "sources": ["node:1"]}),
            "payload.tasks[0].lineage.sources[0]: invalid NodeId value: '1'",
        ),
        (
            lambda task: task.__setitem__("lineage", {"kind": "lowered", "transform": "t", "sources": [3]}),
            "payload.tasks[0].lineage.sources[0]: expected text, got an integer",
        ),
        (
            lambda task: task["body"].__setitem__("kind", "fused"),
            f"payload.tasks[0].body.kind: 'fused' is {NO_BODY}",
        ),
        (
            lambda task: task["body"].pop("kind"),
            f"payload.tasks[0].body.kind: None is {NO_BODY}",
        ),
        (
            lambda task: task["body"]["spec"].__setitem__("message_bytes", True),
            f"payload.tasks[0].body.spec.message_bytes: {NO_SCALAR}, got true or false",
        ),
        (
            lambda task: task["body"]["spec"]["message_bytes"].__setitem__("kind", "power"),
            "payload.tasks[0].body.spec.message_bytes.kind: 'power' is no scalar; known are add, ceil-divide, divide, "
            "maximum, minimum, multiply, subtract, symbol",
        ),
        (
            lambda task: task["body"]["spec"]["message_bytes"]["values"].__setitem__(1, "1"),
            f"payload.tasks[0].body.spec.message_bytes.values[1]: {NO_SCALAR}, got text",
        ),
        (
            lambda task: task["body"]["spec"]["message_bytes"].__setitem__("values", 3),
            "payload.tasks[0].body.spec.message_bytes: Maximum.values must match",
        ),
        (
            lambda task: task["body"]["spec"]["message_bytes"].__setitem__("extra", 3),
            "payload.tasks[0].body.spec.message_bytes: unknown field 'extra' of Maximum",
        ),
        (
            lambda task: task["body"]["spec"]["message_bytes"].pop("values"),
            "payload.tasks[0].body.spec.message_bytes: field 'values' of Maximum is missing",
        ),
        (
            lambda task: task["body"]["spec"]["message_bytes"]["values"][0]["factors"][0].__setitem__("name", "a b"),
            "payload.tasks[0].body.spec.message_bytes.values[0].factors[0]: Symbol.name must match",
        ),
        (lambda task: task.__setitem__("priority", 1), "payload.tasks[0]: unknown field 'priority' of DistributedTask"),
        (lambda task: task.pop("operation"), "payload.tasks[0]: field 'operation' of DistributedTask is missing"),
        (
            lambda task: task.__setitem__("semantic", {"kind": "no.such"}),
            "payload.tasks[0].semantic.kind: 'no.such' is no DistributedTaskSemantic",
        ),
        (
            lambda task: task.__setitem__("semantic", {"kind": "blueprinting.ir.id.node", "value": "0" * 32}),
            "payload.tasks[0].semantic.kind: 'blueprinting.ir.id.node' is no DistributedTaskSemantic",
        ),
        (
            lambda task: task.__setitem__("attributes", {"$map": [["a"]]}),
            "payload.tasks[0].attributes: $map must hold [key, value] pairs",
        ),
        (lambda task: task.__setitem__("attributes", [1]), "payload.tasks[0].attributes: expected a map, got [1]"),
    ],
)
def test_faults_are_placed(edit: Callable[[Any], object], message: str) -> None:
    assert refusal(edited(lambda tree: edit(tree["payload"]["tasks"][0]))).startswith(message)


# -- envelope ----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("edit", "message"),
    [
        (
            lambda tree: tree.__setitem__("version", "2.0.0"),
            "snapshot schema dtir.distributed-task@2.0.0 is not dtir.distributed-task@1.0.0",
        ),
        (
            lambda tree: tree.__setitem__("schema", "other"),
            "snapshot schema other@1.0.0 is not dtir.distributed-task@1.0.0",
        ),
        (
            lambda tree: tree.__setitem__("schema", ["\ud800"]),
            "snapshot schema ['\\ud800']@1.0.0 is not dtir.distributed-task@1.0.0",
        ),
        (
            lambda tree: tree.__setitem__("schema", "a\nb"),
            "snapshot schema 'a\\nb'@1.0.0 is not dtir.distributed-task@1.0.0",
        ),
        (lambda tree: tree.__setitem__("more", 1), "unknown key 'more' of the envelope"),
        (lambda tree: tree.pop("features"), "the envelope has no features"),
        (lambda tree: tree.pop("payload"), "the envelope has no payload"),
        (lambda tree: tree.__setitem__("payload", []), "payload: expected an object"),
        (
            lambda tree: tree.__setitem__("producer_version", "1"),
            "snapshot envelope metadata does not match its payload header",
        ),
        (
            lambda tree: tree.__setitem__("features", ["typed-semantics", "x"]),
            "snapshot envelope metadata does not match its payload header",
        ),
        (
            lambda tree: tree.__setitem__("features", "typed-semantics"),
            "snapshot envelope metadata does not match its payload header",
        ),
        (
            lambda tree: tree["payload"]["header"].__setitem__("schema_name", "blueprinting.distributed-task"),
            "snapshot envelope metadata does not match its payload header",
        ),
        (
            lambda tree: tree["payload"]["header"].__setitem__("schema_version", "1.0.1"),
            "snapshot envelope metadata does not match its payload header",
        ),
        (
            lambda tree: tree["payload"]["header"].__setitem__("schema_version", "1"),
            "payload.header.schema_version: schema version must be major.minor.patch, got '1'",
        ),
        (
            lambda tree: tree["payload"]["header"].__setitem__("feature_set", []),
            "snapshot is missing required feature epoch(s): typed-semantics",
        ),
        (lambda tree: tree.__setitem__("digest", "0" * 40), "canonical IR snapshot digest mismatch"),
        (lambda tree: tree.__setitem__("digest", None), "canonical IR snapshot digest mismatch"),
        (lambda tree: tree["payload"].__setitem__("name", "other"), "canonical IR snapshot digest mismatch"),
        (
            lambda tree: tree["payload"].__setitem__("name", "\ud800"),
            "text with a lone surrogate U+D800 cannot be encoded",
        ),
    ],
)
def test_faults_of_the_envelope(edit: Callable[[Any], object], message: str) -> None:
    assert refusal(edited(edit)) == message


def test_bytes_need_not_be_canonical() -> None:
    tree = json.loads(TEXT)
    tree["payload"]["tasks"][1]["effects"] = []  # a default
    tree["payload"]["values"][0]["type"] = tree["payload"]["tables"]["types"][0]  # a part in place
    tree["payload"]["values"][0]["owners"] = [0, [1, 8]]
    text = json.dumps(tree, indent=1, ensure_ascii=True)
    assert load(text) == SMALL
    assert load(text).to_json() == TEXT


def test_a_default_program_has_a_short_text() -> None:
    build = ProgramBuilder("s", axes={"x": 1})
    build.value("v", (), "f32")
    build.task("a.b", body=LocalCompute())
    payload = json.loads(build.build(require_valid=True).to_json())["payload"]
    assert set(payload) == {"header", "inputs", "mesh", "name", "outputs", "source_model_digest", "tasks", "values"} | {
        "tables"
    }
    assert payload["tables"] == {"lineages": [{"kind": "root", "transform": "build"}]}
