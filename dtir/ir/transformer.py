"""Semantic records of Transformer programs, as the upstream format defines them.

Tags, fields and invariants are facts of that format.

Counts are plain integers: operations in flop, sizes in bytes.
"""

from __future__ import annotations

from enum import Enum
from typing import Literal, TypeAlias

from dtir.ir.collectives import CollectiveKind
from dtir.ir.semantics import DistributedTaskSemantic, ModelOperationSemantic, ProgramSemantic
from dtir.schema.authoring import adt, enum, record, seal_adt, variant
from dtir.schema.refinements import AtLeastTwoInt, NonEmptyText, NonNegativeInt, PositiveInt

TransformerDataType: TypeAlias = Literal["float8", "float16", "bfloat16", "float32"]


@enum("blueprinting.analysis.transformer.engine-kind")
class EngineKind(Enum):
    """Which unit of a device does the work."""

    MATRIX = "matrix"
    VECTOR = "vector"
    COLLECTIVE = "collective"


@enum("blueprinting.analysis.transformer.training-phase")
class TrainingPhase(Enum):
    """Which part of a training step."""

    FORWARD = "forward"
    RECOMPUTE = "recompute"
    ACTIVATION_GRADIENT = "activation_gradient"
    WEIGHT_GRADIENT = "weight_gradient"
    OPTIMIZER = "optimizer"
    RECOMMUNICATION = "recommunication"


@enum("blueprinting.binding.inference-phase")
class InferencePhase(Enum):
    """Which part of inference."""

    PREFILL = "prefill"
    DECODE = "decode"


@enum("blueprinting.mapping.recompute-policy")
class RecomputePolicy(Enum):
    """Which activations are computed again in the backward pass."""

    NONE = "none"
    ATTENTION = "attn_only"
    FULL = "full"


@enum("blueprinting.mapping.tensor-parallel-communication")
class TensorParallelCommunication(Enum):
    """How tensor-parallel blocks are joined: all-reduce, or reduce-scatter and all-gather."""

    ALL_REDUCE = "ar"
    REDUCE_SCATTER_ALL_GATHER = "rs_ag"


@record("blueprinting.analysis.transformer.phase-work")
class PhaseWork:
    """Work of one invocation on one rank."""

    operations: NonNegativeInt = 0
    read_bytes: NonNegativeInt = 0
    write_bytes: NonNegativeInt = 0
    message_bytes: NonNegativeInt = 0


def _check_engine(engine: EngineKind, collective: CollectiveKind | None) -> None:
    if (engine is EngineKind.COLLECTIVE) != (collective is not None):
        raise ValueError("an invocation names a collective exactly when its engine is the collective engine")


@record("blueprinting.ir.semantic.transformer.primitive-invocation")
class PrimitiveInvocation:
    """One primitive of a training block."""

    name: NonEmptyText
    source_layer: NonEmptyText
    primitive: NonEmptyText
    phase: TrainingPhase
    engine: EngineKind
    work: PhaseWork
    collective: CollectiveKind | None = None

    def __post_init__(self) -> None:
        _check_engine(self.engine, self.collective)


@record("blueprinting.ir.semantic.transformer.inference-invocation")
class InferenceInvocation:
    """One primitive of an inference block."""

    name: NonEmptyText
    source_layer: NonEmptyText
    primitive: NonEmptyText
    phase: InferencePhase
    engine: EngineKind
    work: PhaseWork
    collective: CollectiveKind | None = None

    def __post_init__(self) -> None:
        _check_engine(self.engine, self.collective)


@record("blueprinting.ir.semantic.transformer.training-distributed-task-semantic")
class TransformerTrainingDistributedTaskSemantic(DistributedTaskSemantic):
    """A task of a training block."""

    invocation: PrimitiveInvocation


@record("blueprinting.ir.semantic.transformer.inference-distributed-task-semantic")
class TransformerInferenceDistributedTaskSemantic(DistributedTaskSemantic):
    """A task of an inference block."""

    invocation: InferenceInvocation


@record("blueprinting.workload.transformer-model")
class TransformerModelSpec:
    """A dense Transformer by its sizes; heads times head size is the hidden size."""

    name: NonEmptyText
    hidden_size: PositiveInt
    feedforward_size: PositiveInt
    sequence_length: PositiveInt
    attention_heads: PositiveInt
    attention_head_size: PositiveInt
    block_count: PositiveInt

    def __post_init__(self) -> None:
        if self.attention_heads * self.attention_head_size != self.hidden_size:
            raise ValueError(
                f"attention_heads * attention_head_size must equal hidden_size: "
                f"{self.attention_heads} * {self.attention_head_size} != {self.hidden_size}"
            )


@record("blueprinting.ir.semantic.transformer.model-operation-semantic")
class TransformerModelOperationSemantic(ModelOperationSemantic):
    """A whole Transformer as one operation of a model."""

    model: TransformerModelSpec


@record("blueprinting.workload.transformer-training")
class TransformerTrainingWorkloadSpec:
    """Batch sizes and element type of training."""

    global_batch_size: PositiveInt
    microbatch_size: PositiveInt
    datatype: TransformerDataType

    def __post_init__(self) -> None:
        if self.microbatch_size > self.global_batch_size:
            raise ValueError(
                f"microbatch_size must not exceed global_batch_size: {self.microbatch_size} > {self.global_batch_size}"
            )


@adt(wire="blueprinting.mapping.pipeline-schedule")
class PipelineSchedule:
    """How microbatches flow through pipeline stages."""


@variant("single-stage")
class SingleStage(PipelineSchedule):
    """No pipeline."""


@variant("forward-only")
class ForwardOnly(PipelineSchedule):
    """Inference through stages."""


@variant("one-f-one-b")
class OneForwardOneBackward(PipelineSchedule):
    """1F1B."""


@variant("interleaved-one-f-one-b")
class InterleavedOneForwardOneBackward(PipelineSchedule):
    """1F1B with several chunks a rank."""

    virtual_stages: AtLeastTwoInt


PipelineScheduleVariant: TypeAlias = (
    ForwardOnly | InterleavedOneForwardOneBackward | OneForwardOneBackward | SingleStage
)
seal_adt(PipelineSchedule, PipelineScheduleVariant)


@record("blueprinting.mapping.pipeline-parallel")
class PipelineParallel:
    """Number of pipeline stages and their schedule."""

    degree: PositiveInt
    schedule: PipelineScheduleVariant

    def __post_init__(self) -> None:
        if (self.degree == 1) != isinstance(self.schedule, SingleStage):
            schedule = type(self.schedule).__name__
            raise ValueError(
                f"pipeline degree 1 and the single-stage schedule go together: degree {self.degree}, {schedule}"
            )


@record("blueprinting.mapping.data-parallel")
class DataParallel:
    """Number of data-parallel replicas, and whether they share the optimizer state."""

    degree: PositiveInt
    optimizer_sharding: bool = False

    def __post_init__(self) -> None:
        if self.optimizer_sharding and self.degree == 1:
            raise ValueError("optimizer_sharding needs a data-parallel degree above 1")


@record("blueprinting.mapping.replica-parallel")
class ReplicaParallel:
    """Number of independent replicas."""

    degree: PositiveInt


@record("blueprinting.mapping.tensor-parallel")
class TensorParallel:
    """Number of tensor-parallel ranks and how they communicate."""

    degree: PositiveInt
    communication: TensorParallelCommunication


@record("blueprinting.mapping.transformer-training-strategy")
class TransformerTrainingParallelism:
    """How training is divided."""

    tensor: TensorParallel
    pipeline: PipelineParallel
    data: DataParallel
    recompute: RecomputePolicy


@record("blueprinting.mapping.transformer-training")
class TransformerTrainingMappingSpec:
    """Parallelism and choices of a training program."""

    parallelism: TransformerTrainingParallelism
    fused_activation: bool = False
    sequence_parallel_all_gather_redo: bool = False


@record("blueprinting.mapping.transformer-inference-strategy")
class TransformerInferenceParallelism:
    """How inference is divided."""

    tensor: TensorParallel
    pipeline: PipelineParallel
    replicas: ReplicaParallel


@record("blueprinting.mapping.transformer-inference")
class TransformerInferenceMappingSpec:
    """Parallelism of an inference program."""

    parallelism: TransformerInferenceParallelism


@record("blueprinting.ir.semantic.transformer.training-block-memory")
class BlockMemoryFacts:
    """Bytes of one training block on one rank."""

    weights: NonNegativeInt
    activation_working: NonNegativeInt
    activation_storage: NonNegativeInt
    activation_checkpoint: NonNegativeInt
    weight_gradients: NonNegativeInt
    weight_gradients_unsharded: NonNegativeInt
    activation_gradients: NonNegativeInt
    optimizer: NonNegativeInt


@record("blueprinting.ir.semantic.transformer.inference-block-memory")
class InferenceBlockMemoryFacts:
    """Bytes of one inference block on one rank."""

    weights: NonNegativeInt
    kv_cache: NonNegativeInt
    working_upper_bound: NonNegativeInt
    boundary: NonNegativeInt


@record("blueprinting.ir.semantic.transformer.training-program-semantic")
class TransformerTrainingProgramSemantic(ProgramSemantic):
    """What a training program was derived from."""

    model: TransformerModelSpec
    workload: TransformerTrainingWorkloadSpec
    mapping: TransformerTrainingMappingSpec
    scope: str
    block_memory: BlockMemoryFacts


@record("blueprinting.ir.semantic.transformer.inference-program-semantic")
class TransformerInferenceProgramSemantic(ProgramSemantic):
    """What an inference program was derived from; token counts are per sequence."""

    model: TransformerModelSpec
    mapping: TransformerInferenceMappingSpec
    phase: InferencePhase
    batch_size: int
    query_tokens: int
    context_tokens: int
    datatype: TransformerDataType
    scope: str
    block_memory: InferenceBlockMemoryFacts
