"""The upstream format: its documented examples, its real files, and what it must not hold."""

from __future__ import annotations

import hashlib
import json
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings

from dtir.ir import (
    Add,
    AllReduce,
    BindingAxis,
    Collective,
    DistributedTaskIR,
    DistributedValue,
    LocalCompute,
    NodeId,
    SchemaVersion,
    Symbol,
    ValueId,
    make_header,
)
from dtir.ir.upstream import program_from_text, program_from_tree
from dtir.ir.upstream_pieces import read_pieces
from dtir.schema import Err, FrozenDict, Ok, SerializationError, canonical_json, content_digest
from dtir.schema.decoding import decode_tree
from dtir.schema.jsontext import parse_json, raw_json
from tests.helpers.expected import expected_params, upstream_text
from tests.helpers.strategies import programs

FIXTURES = Path(__file__).parent / "fixtures"
EX1 = (FIXTURES / "worked-ex1.json").read_text(encoding="utf-8")
EX2 = (FIXTURES / "worked-ex2.json").read_text(encoding="utf-8")
NAME, DOMAIN = "blueprinting.distributed-task", "ir:blueprinting.distributed-task"


def load(text: str) -> DistributedTaskIR:
    return DistributedTaskIR.require_from_json(text)


def outcome(text: str) -> list[tuple[str, list[str], str]]:
    """Code, path and message of every finding; empty when the text loads."""
    match DistributedTaskIR.from_json(text):
        case Ok():
            return []
        case Err(error):
            return [(item.code, list(item.path), item.message) for item in error]


def refusal(text: str) -> str:
    """The message of the one finding about an unreadable text."""
    ((code, path, message),) = outcome(text)
    assert (code, path) == ("serialization.snapshot", ["snapshot"])
    return message


def edited(text: str, edit: Callable[[dict[str, Any], dict[str, Any]], object], *, resign: bool = True) -> str:
    """A snapshot changed as a tree (``edit(envelope fields, payload fields)``), with the digest of the raw payload."""
    tree = json.loads(text)
    edit(tree["fields"], tree["fields"]["payload"]["fields"])
    if resign:
        payload = raw_json(tree["fields"]["payload"])
        tree["fields"]["content_digest"] = hashlib.blake2b(f"{DOMAIN}\0{payload}".encode(), digest_size=20).hexdigest()
    return raw_json(tree)


# -- the documented examples -------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("text", "length", "payload_length", "payload_sha256", "digest"),
    [
        (
            EX1,
            2897,
            2556,
            "c4f39fd4d03d5cfc2c893fe69892feb777cfa6c17e7cf42c9f8bcb8e3e6cf2c2",
            "05b247d921f66497eccf1a0da123a7e74ae12a01",
        ),
        (
            EX2,
            6429,
            6083,
            "5f67059e27f850ad488074735dde756db4a6637f2d0affeccf5cab5c4b2317cd",
            "a0949c25e283a1aef02e254a6966d1db0dff07a8",
        ),
    ],
    ids=["example 1", "example 2"],
)
def test_worked_examples(text: str, length: int, payload_length: int, payload_sha256: str, digest: str) -> None:
    assert len(text.encode()) == length
    program = load(text)
    assert program.to_upstream_json() == text
    assert program.upstream_digest == digest
    payload = canonical_json(decode_tree(json.loads(text)["fields"]["payload"]))
    assert len(payload.encode()) == payload_length
    assert hashlib.sha256(payload.encode()).hexdigest() == payload_sha256
    assert hashlib.blake2b(f"{DOMAIN}\0{payload}".encode(), digest_size=20).hexdigest() == digest


def test_what_the_second_example_holds() -> None:
    program = load(EX2)
    b = Symbol("b", BindingAxis.WORKLOAD, positive=True)
    ratio = Symbol("ratio", BindingAxis.CALIBRATION, integer=False)
    assert program.name == "två"
    assert program.mesh.shape == (1, 2)
    assert program.inputs == (ValueId.derive("ex2", "x"),)
    first, second = program.tasks
    assert first.id == NodeId.derive("ex2", 0)
    assert first.body == LocalCompute()
    body: Any = second.body
    assert body.spec.message_bytes == b * 32 + ratio
    assert body.spec.message_bytes.evaluate({"b": 2, "calibration.ratio": 0.5}) == 64.5
    assert program.values[0].attributes == FrozenDict({"a": frozenset({"v", "é"}), "z": (1, 2.5, True, b"\x00\x01")})
    assert program.values[0].type.layout == (1, 0)
    assert program.header == make_header(
        "dtir.distributed-task",
        SchemaVersion(1),
        parent_digests=("ab" * 20,),
        features=("beta",),
        producer_version="1.0",
    )


# -- the real files ----------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("name", "facts"), expected_params("valid"))
def test_valid_files(name: str, facts: dict[str, Any], shared_data: Path) -> None:
    text = upstream_text(shared_data, name)
    program = load(text)
    assert program.upstream_digest == facts["content_digest"]
    assert program.to_upstream_json() == text
    assert (len(program.tasks), len(program.values)) == (facts["tasks"], facts["values"])
    assert program.name == facts.get("name", program.name)
    assert program.source_model_digest == facts.get("source_model_digest", program.source_model_digest)
    assert {axis.name: axis.size for axis in program.mesh.axes} == facts.get(
        "mesh", {axis.name: axis.size for axis in program.mesh.axes}
    )
    if "body_tags" in facts:
        tags = [task.body_tag for task in program.tasks]
        assert {tag: tags.count(tag) for tag in tags} == facts["body_tags"]
    if "sha256" in facts:
        assert hashlib.sha256(text.encode()).hexdigest() == facts["sha256"]


@pytest.mark.parametrize(("name", "facts"), expected_params("valid"))
def test_valid_files_are_read_by_their_pieces(name: str, facts: dict[str, Any], shared_data: Path) -> None:
    found = read_pieces(upstream_text(shared_data, name))
    assert found is not None
    assert found.digest == found.stated_digest == facts["content_digest"]


@pytest.mark.parametrize(("name", "facts"), expected_params("valid_noncanonical"))
def test_files_that_are_not_canonical(name: str, facts: dict[str, Any], shared_data: Path) -> None:
    text = upstream_text(shared_data, name)
    if facts["outcome"] == "Ok":
        program = load(text)
        assert program.upstream_digest == facts["digest"]
        # odd-03 differs in its escapes alone and its text here is plain ASCII, so that both forms are one.
        assert (program.to_upstream_json() == text) is facts["canonical_equal"]
    else:
        assert outcome(text) == [(item["code"], item["path"], item["message"]) for item in facts["diagnostics"]]


OWN_NAMES = ("bad-27-bool-bytes.json", "bad-32-wrong-semantic-type.json")
"""Their messages quote the names of modules; ours are others."""


@pytest.mark.parametrize(("name", "facts"), expected_params("invalid"))
def test_invalid_files(name: str, facts: dict[str, Any], shared_data: Path) -> None:
    found = outcome(upstream_text(shared_data, name))
    if facts["outcome"] == "RAISES":
        # Upstream's reader runs out of stack here; ours says so.
        assert found == [("serialization.snapshot", ["snapshot"], "canonical IR nests deeper than 984 levels")]
        return
    wanted = [(item["code"], item["path"], item["message"]) for item in facts["diagnostics"]]
    if name in OWN_NAMES:
        found = [
            (code, path, message.replace("dtir.ir.", "blueprinting.synthesizer.")) for code, path, message in found
        ]
    assert found == wanted


@pytest.mark.parametrize(("name", "facts"), expected_params("invalid"))
def test_every_finding_has_a_hint(name: str, facts: dict[str, Any], shared_data: Path) -> None:
    del facts
    match DistributedTaskIR.from_json(upstream_text(shared_data, name)):
        case Ok():
            pytest.fail("it loads")
        case Err(error):
            assert all(item.hint for item in error)


# -- the order of the checks -------------------------------------------------------------------------------------


def set_field(name: str, value: Any) -> Callable[[dict[str, Any], dict[str, Any]], object]:
    return lambda envelope, payload: envelope.__setitem__(name, value)


def version(minor: int) -> dict[str, Any]:
    return {"$type": "blueprinting.ir.schema-version", "fields": {"major": 0, "minor": minor, "patch": 0}}


STEPS: list[tuple[str, Callable[[dict[str, Any], dict[str, Any]], object]]] = [
    ("snapshot schema other.schema@0.1.0 is not", set_field("schema_name", "other.schema")),
    ("snapshot schema blueprinting.distributed-task@0.1.0 is not", set_field("schema_version", version(1))),
    ("snapshot is missing required feature epoch(s): typed-semantics", set_field("feature_set", {"$frozenset": []})),
    ("snapshot payload is EmptySemantic, expected DistributedTaskIR", lambda envelope, payload: None),
    ("snapshot envelope metadata does not match its payload header", set_field("producer_version", "other")),
    ("canonical IR snapshot digest mismatch", set_field("content_digest", "0" * 40)),
]


@pytest.mark.parametrize("first", range(len(STEPS)))
def test_the_first_failing_check_is_the_one_reported(first: int) -> None:
    def edit(envelope: dict[str, Any], payload: dict[str, Any]) -> None:
        for message, change in reversed(STEPS[first:]):
            if "payload is" in message:
                envelope["payload"] = {"$type": "blueprinting.ir.semantic.empty", "fields": {}}
            else:
                change(envelope, payload)

    assert refusal(edited(EX1, edit, resign=first != len(STEPS) - 1)).startswith(STEPS[first][0])


def test_the_tree_is_decoded_before_anything_is_looked_at() -> None:
    def edit(envelope: dict[str, Any], payload: dict[str, Any]) -> None:
        envelope["schema_name"] = "other.schema"
        payload["tasks"]["$tuple"][0]["fields"]["body"]["$type"] = "no.such"

    assert refusal(edited(EX1, edit)) == "unknown canonical record tag: 'no.such'"


def test_a_model_is_no_distributed_program() -> None:
    model = {
        "$type": "blueprinting.ir.model",
        "fields": {
            "name": "m",
            "values": {"$tuple": []},
            "operations": {"$tuple": []},
            "inputs": {"$tuple": []},
            "outputs": {"$tuple": []},
        },
    }
    text = edited(EX1, lambda envelope, payload: envelope.__setitem__("payload", model))
    assert refusal(text) == "snapshot payload is ModelIR, expected DistributedTaskIR"


def test_an_omitted_header_is_the_default_of_the_format() -> None:
    text = edited(EX1, lambda envelope, payload: payload.pop("header"), resign=False)
    # Without a header there are no parents, so the content is another one.
    assert refusal(text) == "canonical IR snapshot digest mismatch"
    payload = decode_tree(json.loads(text)["fields"]["payload"])
    assert payload.header == make_header(NAME, SchemaVersion(0))
    signed = edited(
        text,
        lambda envelope, fields: envelope.__setitem__("content_digest", content_digest(payload, DOMAIN)),
        resign=False,
    )
    assert [code for code, _, _ in outcome(signed)] == ["distributed.parent_digest"]


# -- what is ours does not exist there ---------------------------------------------------------------------------

TASK = "blueprinting.ir.distributed-task.task"
REGION = {"$type": "dtir.ir.id.region", "fields": {"value": "0" * 32}}
RUN = {"$type": "dtir.ir.rank-range", "fields": {"start": 0, "stop": 1, "step": 1}}


def in_task(name: str, value: Any) -> Callable[[dict[str, Any], dict[str, Any]], object]:
    return lambda envelope, payload: payload["tasks"]["$tuple"][0]["fields"].__setitem__(name, value)


def in_value(name: str, value: Any) -> Callable[[dict[str, Any], dict[str, Any]], object]:
    return lambda envelope, payload: payload["values"]["$tuple"][0]["fields"].__setitem__(name, value)


def in_sharding(name: str, value: Any) -> Callable[[dict[str, Any], dict[str, Any]], object]:
    return lambda envelope, payload: payload["values"]["$tuple"][0]["fields"]["sharding"]["fields"].__setitem__(
        name, value
    )


def all_reduce(**fields: Any) -> dict[str, Any]:
    sum_ = {"$enum": "blueprinting.ir.distributed-task.reduction-kind", "value": "sum"}
    given = {"participants": {"$tuple": [0]}, "message_bytes": 1, "reduction": sum_}
    spec = {"$type": "blueprinting.ir.distributed-task.collective.all-reduce", "fields": {**given, **fields}}
    return {"$type": f"{TASK}.collective", "fields": {"spec": spec}}


EMPTY_TUPLE: dict[str, Any] = {"$tuple": []}

OURS: dict[str, tuple[Callable[[dict[str, Any], dict[str, Any]], object], str]] = {
    "program field": (
        lambda envelope, payload: payload.__setitem__("regions", EMPTY_TUPLE),
        "DistributedTaskIR.__init__() got an unexpected keyword argument 'regions'",
    ),
    "task field": (in_task("name", "x"), "DistributedTask.__init__() got an unexpected keyword argument 'name'"),
    "value field": (in_value("name", ""), "DistributedValue.__init__() got an unexpected keyword argument 'name'"),
    "sharding field": (
        in_sharding("partial", None),
        "ShardingSpec.__init__() got an unexpected keyword argument 'partial'",
    ),
    "collective field": (
        in_task("body", all_reduce(axes=EMPTY_TUPLE)),
        "AllReduce.__init__() got an unexpected keyword argument 'axes'",
    ),
    "reshard field": (
        in_task("body", {"$type": f"{TASK}.reshard", "fields": {"regions": EMPTY_TUPLE}}),
        "Reshard.__init__() got an unexpected keyword argument 'regions'",
    ),
    "call": (
        in_task("body", {"$type": f"{TASK}.call", "fields": {"region": REGION}}),
        f"unknown canonical record tag: '{TASK}.call'",
    ),
    "loop": (
        in_task("body", {"$type": f"{TASK}.loop", "fields": {"body": REGION}}),
        f"unknown canonical record tag: '{TASK}.loop'",
    ),
    "branch": (
        in_task("body", {"$type": f"{TASK}.branch", "fields": {"regions": EMPTY_TUPLE, "operand_counts": EMPTY_TUPLE}}),
        f"unknown canonical record tag: '{TASK}.branch'",
    ),
    "permute": (
        in_task("body", {"$type": "blueprinting.ir.distributed-task.collective.collective-permute", "fields": {}}),
        "unknown canonical record tag: 'blueprinting.ir.distributed-task.collective.collective-permute'",
    ),
    "reduction": (
        in_task(
            "body", all_reduce(reduction={"$enum": "blueprinting.ir.distributed-task.reduction-kind", "value": "avg"})
        ),
        "invalid value for canonical enum 'blueprinting.ir.distributed-task.reduction-kind'",
    ),
    "effect": (
        in_task(
            "effects",
            {
                "$tuple": [
                    {
                        "$type": "blueprinting.ir.effect",
                        "fields": {"kind": {"$enum": "blueprinting.ir.effect-kind", "value": "alloc"}, "resource": "x"},
                    }
                ]
            },
        ),
        "invalid value for canonical enum 'blueprinting.ir.effect-kind'",
    ),
    "collective kind": (
        in_task(
            "attributes",
            {
                "$map": [
                    ["a", {"$enum": "blueprinting.ir.distributed-task.collective-kind", "value": "collective_permute"}]
                ]
            },
        ),
        "invalid value for canonical enum 'blueprinting.ir.distributed-task.collective-kind'",
    ),
    "run of ranks": (in_task("ranks", RUN), "unknown canonical record tag: 'dtir.ir.rank-range'"),
    "our record in attributes": (
        in_task("attributes", {"$map": [["a", RUN]]}),
        "unknown canonical record tag: 'dtir.ir.rank-range'",
    ),
    "region id as a source": (
        in_value(
            "lineage",
            {
                "$type": "blueprinting.ir.lineage",
                "fields": {
                    "kind": {"$enum": "blueprinting.ir.lineage-kind", "value": "lowered"},
                    "transform": "t",
                    "sources": {"$tuple": [REGION]},
                },
            },
        ),
        "unknown canonical record tag: 'dtir.ir.id.region'",
    ),
    "empty dim": (
        in_value(
            "type", {"$type": "blueprinting.ir.tensor-type", "fields": {"dtype": "f32", "shape": {"$tuple": [0]}}}
        ),
        "TensorType.shape must match positive dimensions, got (0,)",
    ),
}


@pytest.mark.parametrize("name", OURS)
def test_what_is_ours_does_not_exist_in_upstream_files(name: str) -> None:
    edit, message = OURS[name]
    assert refusal(edited(EX1, edit)).endswith(message)


# -- text --------------------------------------------------------------------------------------------------------


def test_a_lone_surrogate_in_a_file_is_a_finding() -> None:
    for text in (EX1.replace('"name":"one"', '"name":"\\ud800"'), EX1.replace('"name":"one"', '"name":"\ud800"')):
        assert refusal(text) == "text with a lone surrogate U+D800 cannot be encoded"


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ('"size":1', '"size":1e999', "canonical JSON does not permit Infinity"),
        ('"size":1', '"size":1.0', "MeshAxis.size must match"),
        ('"size":1', f'"size":{"9" * 5000}', "invalid canonical JSON"),
        ('"size":1', '"size":true', "MeshAxis.size must match"),
        ('"value":"2222', '"value":"222', "invalid NodeId value"),
        ('"name":"one"', '"name":"one","name":"one"', "duplicate canonical JSON key: 'name'"),
    ],
)
def test_other_faults_of_the_text(old: str, new: str, message: str) -> None:
    assert message in refusal(EX1.replace(old, new, 1))


def test_large_integers_are_exact() -> None:
    size = 1180591620717411303424
    text = edited(
        EX1,
        lambda envelope, payload: payload["mesh"]["fields"]["axes"]["$tuple"][0]["fields"].__setitem__("size", size),
    )
    program = load(text)
    assert program.mesh.size == size
    assert program.to_upstream_json() == text


# -- depth -------------------------------------------------------------------------------------------------------


def with_depth(levels: int) -> str:
    """An all-reduce of a left-nested sum, as canonical text (no writer makes it when it is too deep)."""
    opening = '{"$type":"blueprinting.expression.scalar.add","fields":{"terms":{"$tuple":['
    size = opening * levels + "1" + ",1]}}}" * levels
    body = raw_json(all_reduce(message_bytes="SIZE")).replace('"SIZE"', size)
    head, _, rest = EX1.partition(raw_json({"$type": f"{TASK}.local-compute", "fields": {}}))
    text = head + body + rest
    payload = text[text.index('"payload":') + 10 : text.rindex(',"producer_version"')]
    digest = hashlib.blake2b(f"{DOMAIN}\0{payload}".encode(), digest_size=20).hexdigest()
    return text.replace("05b247d921f66497eccf1a0da123a7e74ae12a01", digest)


def below(levels: int, work: Callable[[], Any]) -> Any:
    return work() if levels == 0 else below(levels - 1, work)


@pytest.mark.parametrize("frames", [0, 400, -200], ids=["shallow", "deep", "deepest"])
def test_legal_depth_loads_under_any_caller(frames: int) -> None:
    text = with_depth(243)
    frames = frames if frames >= 0 else sys.getrecursionlimit() + frames
    program = below(frames, lambda: load(text))
    size: Any = 1
    for _ in range(243):
        size = Add((size, 1))
    body: Any = program.tasks[0].body
    assert isinstance(body, Collective)
    assert isinstance(body.spec, AllReduce)
    assert body.spec.message_bytes == size
    assert below(frames, program.to_upstream_json) == text


@pytest.mark.parametrize("levels", [244, 245, 600, 20_000])
@pytest.mark.parametrize("frames", [0, 700])
def test_more_depth_is_a_finding_under_any_caller(levels: int, frames: int) -> None:
    text = with_depth(levels)
    assert below(frames, lambda: refusal(text)) == "canonical IR nests deeper than 984 levels"


# -- reading by pieces -------------------------------------------------------------------------------------------


@settings(max_examples=40)
@given(programs(extended=False))
def test_both_readers_agree(program: DistributedTaskIR) -> None:
    text = program.to_upstream_json()
    raw = json.loads(text)
    payload = json.dumps(raw["fields"]["payload"], ensure_ascii=False, sort_keys=True, separators=(",", ":"))
    assert hashlib.blake2b(f"{DOMAIN}\0{payload}".encode(), digest_size=20).hexdigest() == program.upstream_digest
    assert raw["fields"]["content_digest"] == program.upstream_digest
    found = read_pieces(text)
    assert found is not None
    assert found.program == program
    general = decode_tree(raw)
    assert general.content_digest == content_digest(general.payload, DOMAIN)
    assert general.payload.tasks == program.tasks
    assert general.payload.values == program.values
    assert load(text).to_upstream_json() == text


TRICKY = [
    '","name":"',
    '}},{"$type":"blueprinting.ir.distributed-task.task-envelope","fields":{"attributes":',
    ',"body":',
    ']},"values":{"$tuple":[',
    ',"producer_version":',
    "\\",
    '"',
]


@pytest.mark.parametrize("text", TRICKY)
def test_text_that_looks_like_a_mark_does_not_mislead(text: str) -> None:
    def edit(envelope: dict[str, Any], payload: dict[str, Any]) -> None:
        payload["name"] = text
        payload["mesh"]["fields"]["name"] = text
        for part in (payload["tasks"]["$tuple"][0], payload["values"]["$tuple"][0], payload["semantic"]):
            if "attributes" in part["fields"]:
                part["fields"]["attributes"] = {"$map": [[text, text]]}
        envelope["producer_version"] = payload["header"]["fields"]["producer_version"] = text

    made = edited(EX1, edit)
    assert read_pieces(made) is not None
    program = load(made)
    assert program.name == program.mesh.name == program.header.producer_version == text
    assert program.to_upstream_json() == made


def test_records_inside_attributes_do_not_mislead() -> None:
    inner = load(EX1)

    def edit(envelope: dict[str, Any], payload: dict[str, Any]) -> None:
        held = {"$tuple": [parse_json(canonical_json(part)) for part in (inner.tasks[0], inner.values[0], inner.tasks)]}
        payload["tasks"]["$tuple"][0]["fields"]["attributes"] = {"$map": [["a", held]]}
        payload["values"]["$tuple"][0]["fields"]["attributes"] = {"$map": [["a", held]]}
        payload["attributes"] = {"$map": [["a", held]]}

    made = edited(EX1, edit)
    program = load(made)
    assert program.tasks[0].attributes["a"] == (inner.tasks[0], inner.values[0], inner.tasks)
    assert program.to_upstream_json() == made


@pytest.mark.parametrize(
    ("old", "new"),
    [
        (',"fields":{"content_digest"', ', "fields":{"content_digest"'),
        ('"major":0', '"major": 0'),
        ('"name":"one"', '"name":"\\u006fne"'),
        ('{"$map":[]}', '{"$map":[ ]}'),
        ('"ranks":{"$tuple":[0]}', '"ranks":{"$tuple":[ 0]}'),
        ('},"role"', '} ,"role"'),
        ('"blueprinting.ir.id.node","fields":{"value":"2222', '"blueprinting.ir.id.node","fields":{ "value":"2222'),
        ("]}}},", "]}}} ,"),
    ],
)
def test_text_that_is_not_canonical_is_left_to_the_general_reader(old: str, new: str) -> None:
    text = EX1.replace(old, new)
    assert text != EX1
    assert read_pieces(text) is None
    assert load(text) == load(EX1)


@pytest.mark.parametrize("cut", range(0, len(EX1), 97))
def test_a_cut_text_is_left_to_the_general_reader(cut: int) -> None:
    assert read_pieces(EX1[:cut]) is None
    assert refusal(EX1[:cut]) == "invalid canonical JSON"


def test_a_wrong_digest_is_said_by_either_reader() -> None:
    wrong = EX1.replace("05b247d9", "05b247d8")
    with pytest.raises(SerializationError, match="digest mismatch") as caught:
        program_from_text(wrong)
    assert caught.value.hint == (
        "the envelope states 05b247d821f66497eccf1a0da123a7e74ae12a01, "
        "the payload has 05b247d921f66497eccf1a0da123a7e74ae12a01"
    )
    with pytest.raises(SerializationError, match="digest mismatch"):
        program_from_tree(json.loads(wrong.replace('"minor":0,', "")))


def test_repeated_parts_are_one_object() -> None:
    tree = json.loads(EX2)
    program = program_from_tree(tree)
    first, second = program.values
    assert first.owners is second.owners
    assert program.tasks[0].ranks is program.tasks[1].ranks
    assert program.tasks[0].id is program.tasks[1].dependencies[0]
    assert isinstance(first, DistributedValue)
