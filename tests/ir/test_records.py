"""Values, tasks, headers, models and the Transformer records: defaults and invariants."""

from __future__ import annotations

from typing import Any

import pytest

from dtir.ir import (
    EMPTY_SEMANTIC,
    Branch,
    Call,
    CollectiveKind,
    DataParallel,
    DistributedTask,
    DistributedValue,
    EngineKind,
    ForwardOnly,
    InferenceInvocation,
    InferencePhase,
    InterleavedOneForwardOneBackward,
    IRHeader,
    IRSnapshot,
    Lineage,
    LocalCompute,
    Loop,
    ModelIR,
    ModelOperation,
    ModelValue,
    NodeId,
    OperationName,
    PhaseWork,
    PipelineParallel,
    PrimitiveInvocation,
    RegionId,
    SchemaVersion,
    ShardingSpec,
    SingleStage,
    TaskBody,
    TensorType,
    TrainingPhase,
    TransformerModelSpec,
    TransformerTrainingWorkloadSpec,
    ValueId,
    ValueRole,
    is_content_digest,
    make_header,
)
from dtir.schema import adt_closure, adt_manifest, record_spec

VALUE, NODE, ROOT = ValueId.derive("v"), NodeId.derive("n"), Lineage.root()
REGION = RegionId.derive("r")


def task(**fields: Any) -> DistributedTask:
    given: dict[str, Any] = {
        "id": NODE,
        "body": LocalCompute(),
        "operation": OperationName("core", "op"),
        "ranks": (0,),
        "inputs": (VALUE,),
        "outputs": (),
        "dependencies": (),
        "lineage": ROOT,
    }
    return DistributedTask(**{**given, **fields})


def test_task_bodies() -> None:
    assert {item.local_tag: item.extension for item in adt_manifest(TaskBody)} == {
        "branch": True,
        "call": True,
        "collective": False,
        "control": False,
        "local-compute": False,
        "loop": True,
        "point-to-point": False,
        "reshard": False,
    }
    assert len(adt_closure(TaskBody)) == 8
    assert task().body_tag == "local-compute"
    assert task(body=Call(REGION)).body_tag == "call"
    assert task(body=Loop(REGION)).body == Loop(REGION, None, None)
    with pytest.raises(ValueError, match="branch has 1 regions but 2 operand counts"):
        Branch((REGION,), (1, 2))
    with pytest.raises(TypeError, match=r"DistributedTask\.body must match"):
        task(body=TaskBody.__new__(TaskBody))


def test_task_defaults_and_operands() -> None:
    made = task()
    assert (made.effects, made.semantic, made.operands, made.name) == ((), EMPTY_SEMANTIC, (), "")
    assert made.operand_values == (VALUE,)
    assert task(operands=(0, 0)).operand_values == (VALUE, VALUE)
    with pytest.raises(ValueError, match="operand position 1 is outside 1 inputs"):
        task(operands=(0, 1))
    for field, value in (("ranks", [0]), ("ranks", (-1,)), ("inputs", (NODE,)), ("semantic", None), ("id", VALUE)):
        with pytest.raises(TypeError, match=rf"DistributedTask\.{field} must match"):
            task(**{field: value})


def test_value_defaults() -> None:
    made = DistributedValue(VALUE, TensorType((1,), "f32"), ValueRole.INPUT, ShardingSpec(((),)), (0,), ROOT)
    assert (made.source_value, made.grad_of, made.valid_on, made.scale.numerator) == (None, None, None, 1)
    assert ShardingSpec.replicated(2, ("tp",)) == ShardingSpec(((), ()), ("tp",))


def test_headers() -> None:
    version = SchemaVersion(1)
    made = make_header("a.b", version, parent_digests=["0" * 40], features=["x"], producer_version="9")
    assert made == IRHeader("a.b", version, "9", frozenset({"typed-semantics", "x"}), ("0" * 40,))
    assert make_header("a.b", version).parent_digests == ()
    assert made.with_parents("1" * 40, "2" * 40).parent_digests == ("1" * 40, "2" * 40)
    assert made.with_parents().parent_digests == ()
    assert made.under("c.d", SchemaVersion(2)).with_parents("0" * 40).schema_name == "c.d"
    with pytest.raises(TypeError, match=r"IRHeader\.parent_digests must match"):
        make_header("a.b", version, parent_digests=["0"])
    with pytest.raises(TypeError, match=r"IRHeader\.producer_version must match"):
        make_header("a.b", version, producer_version="")


@pytest.mark.parametrize(("text", "is_digest"), [("0" * 40, True), ("A" * 40, False), ("0" * 39, False), (None, False)])
def test_content_digests(text: Any, is_digest: bool) -> None:
    assert is_content_digest(text) is is_digest


def test_models() -> None:
    value = ModelValue(VALUE, TensorType((1,), "f32"), ValueRole.INPUT, ROOT)
    operation = ModelOperation(NODE, OperationName("core", "op"), (VALUE,), (), ROOT)
    model = ModelIR("m", (value,), (operation,), (VALUE,), ())
    assert model.header == make_header("blueprinting.model", SchemaVersion(0))
    assert is_content_digest(model.digest)
    assert ModelIR("n", (value,), (operation,), (VALUE,), ()).digest != model.digest
    assert record_spec(ModelIR).tag == "blueprinting.ir.model"
    assert operation.semantic is EMPTY_SEMANTIC
    header = model.header
    envelope = IRSnapshot(
        header.schema_name, header.schema_version, header.producer_version, header.feature_set, model.digest, model
    )
    assert envelope.matches_header(header)
    assert not envelope.matches_header(make_header("blueprinting.model", SchemaVersion(0), producer_version="x"))


# -- Transformer records -----------------------------------------------------------------------------------------

INVOCATION = {"name": "a", "source_layer": "b", "primitive": "c", "work": PhaseWork()}


@pytest.mark.parametrize(
    ("cls", "phase"),
    [(PrimitiveInvocation, TrainingPhase.FORWARD), (InferenceInvocation, InferencePhase.DECODE)],
)
def test_an_invocation_names_a_collective_with_its_engine(cls: Any, phase: Any) -> None:
    collective = CollectiveKind.ALL_REDUCE
    cls(**INVOCATION, phase=phase, engine=EngineKind.MATRIX)
    cls(**INVOCATION, phase=phase, engine=EngineKind.COLLECTIVE, collective=collective)
    for engine, named in ((EngineKind.MATRIX, collective), (EngineKind.COLLECTIVE, None)):
        with pytest.raises(ValueError, match="exactly when its engine is the collective engine"):
            cls(**INVOCATION, phase=phase, engine=engine, collective=named)


def test_heads_make_up_the_hidden_size() -> None:
    TransformerModelSpec("m", 8, 32, 16, 2, 4, 1)
    with pytest.raises(ValueError, match=r"2 \* 3 != 8"):
        TransformerModelSpec("m", 8, 32, 16, 2, 3, 1)


def test_batches() -> None:
    TransformerTrainingWorkloadSpec(4, 4, "bfloat16")
    with pytest.raises(ValueError, match="5 > 4"):
        TransformerTrainingWorkloadSpec(4, 5, "bfloat16")
    with pytest.raises(TypeError, match=r"\.datatype must match"):
        TransformerTrainingWorkloadSpec(4, 4, "f32")  # type: ignore[arg-type]


def test_pipelines_and_data_parallelism() -> None:
    PipelineParallel(1, SingleStage())
    PipelineParallel(2, ForwardOnly())
    for degree, schedule in ((2, SingleStage()), (1, ForwardOnly())):
        with pytest.raises(ValueError, match="go together"):
            PipelineParallel(degree, schedule)
    with pytest.raises(TypeError, match=r"\.virtual_stages must match"):
        InterleavedOneForwardOneBackward(1)
    DataParallel(2, True)
    with pytest.raises(ValueError, match="degree above 1"):
        DataParallel(1, True)
