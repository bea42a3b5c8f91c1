"""Documents to programs: what every key becomes, and what is said about keys that become nothing."""

from __future__ import annotations

from typing import Any

import pytest
import yaml

from dtir.importers import load_bytes
from dtir.importers.yaml import ReadProgram, read_programs
from dtir.ir import (
    AllReduce,
    AllToAll,
    Broadcast,
    Collective,
    CollectivePermute,
    Control,
    DistributedTaskIR,
    EffectKind,
    Halo,
    HaloDim,
    LocalCompute,
    Loop,
    NodeId,
    Partial,
    PointToPoint,
    RankRange,
    ReductionKind,
    Reshard,
    ReshardKind,
    Scale,
    ValueId,
    ValueRole,
)
from dtir.schema import Severity

BASE = """
schema: dtir-program/1
name: base
mesh: {axes: [[dp, 2], [tp, 2]]}
values:
- {id: x, shape: [4, 6], dims: [[dp], [tp]]}
- {id: w, shape: [6, 5], dims: [[tp], []]}
- {id: p, shape: [4, 5], dims: [[dp], []], partial: {tp: sum}}
- {id: y, shape: [4, 5], dims: [[dp], []]}
tasks:
- {id: t1, kind: local, op: einsum, spec: 'bi,io->bo', in: [x, w], out: [p]}
- {id: t2, kind: collective, coll: all_reduce, axes: [tp], reduction: sum, in: [p], out: [y]}
inputs: [x, w]
outputs: [y]
"""


def document(**changes: Any) -> dict[str, Any]:
    """The base program with some keys replaced; None takes a key away."""
    base = {**yaml.safe_load(BASE), **changes}
    return {key: item for key, item in base.items() if item is not None}


def read(content: dict[str, Any] | str) -> ReadProgram:
    found = read_programs(content if isinstance(content, str) else yaml.safe_dump(content, sort_keys=False))
    assert len(found) == 1
    return found[0]


def program(content: dict[str, Any] | str) -> DistributedTaskIR:
    found = read(content)
    assert [item.render() for item in found.diagnostics] == []
    assert found.program is not None
    return found.program


def value_of(changed: dict[str, Any], mesh: list[list[Any]] | None = None) -> Any:
    """The value y of the base program with other keys."""
    base = document()
    values = [*base["values"][:3], {**base["values"][3], **changed}]
    found = program(document(values=values, mesh={"axes": mesh or [["dp", 2], ["tp", 2]]}))
    return found.values[3]


def task_of(task: dict[str, Any], **more: Any) -> Any:
    """The last task of the base program replaced."""
    return program(
        document(tasks=[document()["tasks"][0], {"id": "t2", "in": ["p"], "out": ["y"], **task}], **more)
    ).tasks[1]


def faults(content: dict[str, Any] | str) -> list[tuple[str, str, str]]:
    return [(item.code, ".".join(item.path), item.hint or "") for item in read(content).diagnostics]


# -- what keys become ----------------------------------------------------------------------------------------------------


def test_the_base_program() -> None:
    found = program(BASE)
    assert found.diagnostics().ok
    assert [value.id for value in found.values] == [ValueId.derive("yaml", "base", name) for name in "xwpy"]
    assert [task.id for task in found.tasks] == [NodeId.derive("yaml", "base", name) for name in ("t1", "t2")]
    x, _, p, y = found.values
    assert (x.role, p.role, y.role) == (ValueRole.INPUT, ValueRole.ACTIVATION, ValueRole.OUTPUT)
    assert x.sharding.replicated_axes == ()
    assert p.sharding.partial == Partial(("tp",), ReductionKind.SUM)
    assert p.sharding.replicated_axes == ()
    assert y.sharding.replicated_axes == ("tp",)
    assert y.owners == (0, 1, 2, 3)
    local, summed = found.tasks
    assert isinstance(local.body, LocalCompute)
    assert str(local.operation) == "core.einsum"
    assert local.attributes["op.spec"] == "bi,io->bo"
    assert isinstance(summed.body, Collective)
    # 2 of 4 rows, 5 columns, 4 bytes each; derived, and said to be.
    assert summed.body.spec == AllReduce((0, 1, 2, 3), 40, ReductionKind.SUM, axes=("tp",))
    assert summed.attributes["op.bytes"] == "derived"


def test_layout_keys() -> None:
    found = value_of(
        {"dims": [["dp", "tp"], []], "sizes": {0: [2, 1, 1, 0]}, "halo": {0: 1, 1: [0, 2]}, "corners": False}
    )
    assert found.sharding.dimension_axes == (("dp", "tp"), ())
    assert (found.sharding.sizes[0].dim, found.sharding.sizes[0].sizes) == (0, (2, 1, 1, 0))
    assert found.sharding.halo == Halo((HaloDim(0, 1, 1), HaloDim(1, 0, 2)), corners=False)
    found = value_of({"dims": [[], []], "at": {"dp": 1}, "scale": "3/2", "valid_on": [2], "dtype": "bf16"})
    assert (found.owners, found.scale, found.valid_on, found.type.dtype) == ((2, 3), Scale(3, 2), (2,), "bf16")
    assert found.sharding.replicated_axes == ("tp",)
    found = value_of({"dims": [[], []], "varying": ["tp"], "local_shapes": {1: [3, 5]}, "role": "grad", "grad_of": "w"})
    assert (found.sharding.varying, found.local_shapes[0].shape) == (("tp",), (3, 5))
    assert found.attributes["role"] == "gradient"
    assert found.grad_of == ValueId.derive("yaml", "base", "w")
    assert value_of({"role": "optimizer_state"}).role is ValueRole.OPTIMIZER_STATE


def test_several_pending_operators_are_kept_for_the_verifier() -> None:
    found = value_of({"partial": {"tp": "sum"}, "dims": [["dp"], []]})
    assert "partial" not in found.attributes
    found = value_of({"partial": {"tp": "max", "dp": "sum"}, "dims": [[], []]})
    assert found.sharding.partial == Partial(("tp", "dp"), ReductionKind.MAX)
    assert dict(found.attributes["partial"]) == {"tp": "max", "dp": "sum"}


def test_names_that_other_readers_take_for_truth_values() -> None:
    text = BASE.replace("id: x,", "id: no,").replace("[x, w]", "[no, w]").replace("id: t1", "id: on")
    found = program(text)
    assert (found.tasks[0].name, found.values[0].name) == ("on", "no")


def test_a_value_that_is_read_twice_stands_in_operands() -> None:
    found = task_of({"kind": "local", "op": "mul", "in": ["p", "p"]})
    assert (len(found.inputs), found.operands) == (1, (0, 0))


def test_a_maximum_of_two_is_elementwise() -> None:
    assert str(task_of({"kind": "local", "op": "max", "in": ["p", "p"]}).operation) == "core.maximum"
    assert str(task_of({"kind": "local", "op": "max", "dims": [1]}).operation) == "core.max"


@pytest.mark.parametrize(
    ("keys", "root", "roots"),
    [
        ({"root": 1}, 2, (2, 3)),  # groups {0,2} and {1,3}: the second member of each
        ({"root": 0}, 0, (0, 1)),
        ({"root": 1, "root_space": "global"}, 1, ()),
    ],
)
def test_roots_are_positions_in_their_groups(keys: dict[str, Any], root: int, roots: tuple[int, ...]) -> None:
    spec = task_of({"kind": "collective", "coll": "broadcast", "axes": ["dp"], **keys}).body.spec
    assert isinstance(spec, Broadcast)
    assert (spec.root, spec.roots) == (root, roots)


def test_roots_that_do_not_exist_are_left_to_the_verifier() -> None:
    found = task_of({"kind": "collective", "coll": "broadcast", "axes": ["dp"], "root": 5})
    assert found.attributes["op.root"] == 5
    found = task_of({"kind": "collective", "coll": "broadcast", "axes": ["dp"]})
    assert "op.root" in found.attributes
    assert found.attributes["op.root"] is None


def test_bodies() -> None:
    transfer = task_of({"kind": "p2p", "src": 0, "dst": 2, "channel": "c", "bytes": 8})
    assert isinstance(transfer.body, PointToPoint)
    assert (transfer.ranks, transfer.body.spec.channel, transfer.body.spec.message_bytes) == ((0, 2), "c", 8)
    permute = task_of({"kind": "p2p", "pairs": [[0, 2], [1, 3]]}).body
    assert isinstance(permute.spec, CollectivePermute)
    assert permute.spec.pairs == ((0, 2), (1, 3))
    exchange = task_of({"kind": "collective", "coll": "moe_dispatch", "axes": ["tp"], "route": [0, 1, 0, 1]})
    assert isinstance(exchange.body.spec, AllToAll)
    assert (str(exchange.operation), exchange.attributes["op.route"]) == ("core.moe_dispatch", (0, 1, 0, 1))
    halo = task_of({"kind": "reshard", "op": "halo"})
    assert isinstance(halo.body, Reshard)
    assert halo.body.kind is ReshardKind.HALO
    regions = task_of({"kind": "reshard", "regions": [{"box": [[0, 2], [0, 5]], "from": [[2, 4], [0, 5]]}]}).body
    assert (regions.regions[0].box[0].stop, regions.regions[0].source[0].start) == (2, 2)
    groups = task_of(
        {"kind": "collective", "coll": "all_reduce", "groups": [[0, 1], [2, 3]], "reduction": "avg"}
    ).body.spec
    assert groups.groups == ((0, 1), (2, 3))
    control = task_of(
        {"kind": "control", "in": [], "out": [], "ranks": [1], "pp": {"stage": 0, "mb": 2, "phase": "F"}}, outputs=[]
    )
    assert isinstance(control.body, Control)
    assert (control.ranks, control.pipeline.microbatch) == ((1,), 2)


def test_effects_and_dependencies() -> None:
    found = task_of(
        {
            "kind": "local",
            "op": "identity",
            "deps": ["t1"],
            "effects": [{"kind": "alloc", "resource": "a"}],
            "sync": True,
        }
    )
    assert (found.effects[0].kind, found.effects[0].resource) == (EffectKind.ALLOC, "a")
    assert found.dependencies == (NodeId.derive("yaml", "base", "t1"),)
    assert found.attributes["op.sync"] is True


def test_program_keys() -> None:
    found = program(
        document(
            issue={0: ["t1", ["t2"]], 1: ["t1"]},
            limits={"inflight": 2, "peak_bytes": {0: 100}},
            assume=["B % 4 == 0"],
            bind={"B": 8},
            strict_order=True,
            note="why",
            oracle=[{"id": "o", "kind": "local", "op": "einsum", "spec": "bi,io->bo", "in": ["x", "w"], "out": ["y"]}],
        )
    )
    assert [len(item.steps) for item in found.issue] == [2, 1]
    assert [(item.name, item.value, item.rank) for item in found.limits] == [
        ("inflight", 2, None),
        ("peak_bytes", 100, 0),
    ]
    assert (found.assume, dict(found.bindings), found.strict_order) == (("B % 4 == 0",), {"B": 8}, True)
    assert found.attributes["note"] == "why"
    assert found.oracle is not None
    assert (found.oracle.inputs, found.oracle.outputs) == (
        (found.values[0].id, found.values[1].id),
        (found.values[3].id,),
    )


def test_control_flow() -> None:
    text = BASE.replace(
        "tasks:", "tasks:\n- {id: t0, kind: loop, body: step, trip_count: 3, in: [x], out: [z]}", 1
    ).replace("- {id: y,", "- {id: z, shape: [4, 6], dims: [[dp], [tp]]}\n- {id: y,") + (
        "regions:\n- id: step\n  values:\n  - {id: a, shape: [4, 6], dims: [[dp], [tp]]}\n  - {id: b, shape: [4, 6], dims: [[dp], [tp]]}\n"
        "  tasks:\n  - {id: r1, kind: local, op: relu, in: [a], out: [b]}\n  inputs: [a]\n  outputs: [b]\n"
    )
    found = program(text)
    assert found.diagnostics().ok
    assert found.tasks[0].body == Loop(found.regions[0].id, None, 3)
    assert found.regions[0].tasks[0].name == "r1"


def test_a_mesh_of_a_million_million_ranks_costs_nothing() -> None:
    found = program(
        BASE.replace("[dp, 2]", "[dp, 1000000]").replace("[tp, 2]", "[tp, 1000000]").replace("[4,", "[4000000,")
    )
    assert isinstance(found.values[0].owners, RankRange)
    assert isinstance(found.tasks[1].ranks, RankRange)
    assert found.mesh.size == 10**12
    confined = value_of({"dims": [[], []], "at": {"dp": 3}}, mesh=[["dp", 1000], ["tp", 1_000_000]])
    assert confined.owners == RankRange(3_000_000, 4_000_000, 1)


def test_a_confined_value_whose_owners_are_no_run_is_refused_when_they_are_too_many() -> None:
    mesh = [["a", 2000], ["dp", 2], ["tp", 2000]]
    values = [*document()["values"][:3], {"id": "y", "shape": [4, 5], "dims": [[], []], "at": {"dp": 1}}]
    assert [item[0] for item in faults(document(values=values, mesh={"axes": mesh}))] == ["yaml.limit"]


# -- what is said -----------------------------------------------------------------------------------------------------------


def test_a_mistyped_key_is_an_error_with_the_right_one() -> None:
    text = BASE.replace("axes: [tp], reduction", "axess: [tp], reduction")
    (found,) = faults(text)
    assert found == ("yaml.unknown_key", "documents.0.tasks.1.axess", "did you mean axes?")
    assert read(text).program is None
    assert "line 12: unknown key 'axess'" in read(text).diagnostics.errors[0].message


def test_another_unknown_key_is_kept_and_said() -> None:
    found = read(BASE.replace("reduction: sum,", "reduction: sum, colour: red,"))
    assert found.program is not None
    assert found.program.tasks[1].attributes["op.colour"] == "red"
    assert [(item.code, item.severity) for item in found.diagnostics] == [("yaml.unknown_key", Severity.WARNING)]
    assert "op.colour" in (found.diagnostics.warnings[0].hint or "")


def test_parameters_of_an_operator_of_ones_own_are_kept_without_a_word() -> None:
    found = task_of({"kind": "local", "op": "my_kernel", "colour": "red"})
    assert found.attributes["op.colour"] == "red"


def test_a_mistyped_operator_is_a_warning() -> None:
    found = read(BASE.replace("op: einsum", "op: enisum"))
    assert [(item.code, item.hint) for item in found.diagnostics] == [("yaml.operator", "did you mean einsum?")]
    assert found.program is not None


TASK = "documents.0.tasks.1"


@pytest.mark.parametrize(
    ("old", "new", "code", "path"),
    [
        ("schema: dtir-program/1", "schema: dtir-program/9", "yaml.schema", "documents.0.schema"),
        ("schema: dtir-program/1", "note: none", "yaml.missing_key", "documents.0"),
        ("name: base", "note: none", "yaml.missing_key", "documents.0"),
        ("mesh: {axes: [[dp, 2], [tp, 2]]}", "mesh: {axes: [[dp, 2], [tp, 0]]}", "yaml.type", "documents.0.mesh.axes.1"),
        ("mesh: {axes: [[dp, 2], [tp, 2]]}", "mesh: {axes: [[dp, 2], [dp, 2]]}", "yaml.value", "documents.0.mesh.axes"),
        ("shape: [6, 5]", "shape: [6, -5]", "yaml.type", "documents.0.values.1.shape.1"),
        ("shape: [6, 5]", "shape: 6x5", "yaml.type", "documents.0.values.1.shape"),
        ("shape: [6, 5]", "shape: [6, 'B +']", "yaml.type", "documents.0.values.1.shape.1"),
        ("partial: {tp: sum}", "partial: {tp: summ}", "yaml.value", "documents.0.values.2.partial"),
        ("partial: {tp: sum}", "scale: 0", "yaml.value", "documents.0.values.2.scale"),
        ("partial: {tp: sum}", "scale: 1e999999999", "yaml.value", "documents.0.values.2.scale"),
        ("partial: {tp: sum}", "at: {tp: 2}", "yaml.value", "documents.0.values.2.at"),
        ("partial: {tp: sum}", "at: {pp: 0}", "sharding.unknown_axis", "documents.0.values.2.at"),
        ("partial: {tp: sum}", "corners: true", "yaml.value", "documents.0.values.2.corners"),
        ("reduction: sum, in", "reduction: sun, in", "yaml.value", f"{TASK}.reduction"),
        ("reduction: sum, in", "in", "yaml.missing_key", TASK),
        ("coll: all_reduce", "coll: allreduce", "yaml.value", f"{TASK}.coll"),
        ("kind: collective", "kind: colective", "yaml.value", f"{TASK}.kind"),
        ("in: [p], out: [y]", "in: [q], out: [y]", "reference.unknown", f"{TASK}.in"),
        ("in: [p], out: [y]", "in: [p], out: [y], deps: [t9]", "reference.unknown", f"{TASK}.deps"),
        ("in: [p], out: [y]", "in: [p], out: [y], bytes: many much", "yaml.type", f"{TASK}.bytes"),
        ("in: [p], out: [y]", "in: [p], out: [y], effects: [{kind: writes, resource: a}]", "yaml.value", f"{TASK}.effects.0.kind"),
        ("in: [p], out: [y]", "in: [p], out: [y], pp: {stage: 0}", "yaml.missing_key", f"{TASK}.pp"),
        ("outputs: [y]", "outputs: [z]", "reference.unknown", "documents.0.outputs"),
        ("outputs: [y]", "outputs: [y]\nissue: {0: [t1, t7]}", "reference.unknown", "documents.0.issue"),
        ("outputs: [y]", "outputs: [y]\nbind: {B: many}", "yaml.type", "documents.0.bind"),
        ("outputs: [y]", "outputs: [y]\nlimits: {inflight: -1}", "yaml.type", "documents.0.limits"),
        ("kind: collective, coll: all_reduce, axes: [tp], reduction: sum", "kind: p2p, src: 1, dst: 1", "peer.endpoints", f"{TASK}.dst"),
        ("kind: collective, coll: all_reduce, axes: [tp], reduction: sum", "kind: p2p, src: 1", "yaml.missing_key", TASK),
        ("kind: collective, coll: all_reduce, axes: [tp], reduction: sum", "kind: local", "yaml.missing_key", TASK),
        ("axes: [tp], reduction: sum", "reduction: sum, ranks: [0, 0]", "yaml.value", TASK),
    ],
)  # fmt: skip
def test_one_case_for_each_way_to_be_wrong(old: str, new: str, code: str, path: str) -> None:
    text = BASE.replace(old, new)
    assert text != BASE
    found = [item for item in faults(text) if item[0] == code]
    assert {item[1] for item in found} == {path}
    assert read(text).program is None


def test_everything_wrong_is_reported_in_one_run() -> None:
    text = (
        BASE.replace("shape: [6, 5]", "shape: 6")
        .replace("reduction: sum, in", "reduction: sun, in")
        .replace("outputs: [y]", "outputs: [z]")
    )
    assert [item[0] for item in faults(text)] == ["yaml.type", "yaml.value", "reference.unknown"]


def test_several_documents_and_their_labels() -> None:
    loaded = load_bytes((BASE + "---" + BASE.replace("name: base", "name: second")).encode(), name="two.dtir.yaml")
    assert [one.label for one in (loaded, *loaded.others)] == ["two.dtir.yaml#base", "two.dtir.yaml#second"]
    assert all(one.ok for one in (loaded, *loaded.others))
    assert load_bytes(BASE.encode(), name="one.dtir.yaml").label == "one.dtir.yaml"


def test_a_broken_document_does_not_take_the_others_with_it() -> None:
    found = read_programs(BASE + "---\nschema: dtir-program/1\nname: [\n")
    assert [item.program is not None for item in found] == [True, False]
    found = read_programs(BASE.replace("name: base", "name: base\nname: other") + "---" + BASE)
    assert [item.program is not None for item in found] == [False, True]


def test_the_corpus_file_itself_can_be_opened() -> None:
    entry = {**document(name=None, schema=None), "id": "C1", "class": "demo", "expected_codes": ["a.b"],
             "fixed_variant": {"outputs": ["p"]}}  # fmt: skip
    text = yaml.safe_dump({"schema": "dtir-bug-corpus/1", "entries": [entry, {**entry, "id": "C2"}]}, sort_keys=False)
    found = read_programs(text)
    assert [item.name for item in found] == ["C1", "C2"]
    assert all(item.program is not None and not item.diagnostics for item in found)
    (fixed, _) = read_programs(text, fixed=True)
    assert fixed.program is not None
    assert fixed.program.outputs == (ValueId.derive("yaml", "C1", "p"),)
    assert load_bytes(text.encode(), name="corpus.yaml").format == "yaml"


def test_the_digest_follows_the_content_and_not_the_spelling() -> None:
    plain = program(BASE).source_model_digest
    assert program(yaml.safe_dump(yaml.safe_load(BASE), sort_keys=False)).source_model_digest == plain
    assert program(BASE.replace("[4, 5]", "[8, 5]").replace("[4, 6]", "[8, 6]")).source_model_digest != plain
