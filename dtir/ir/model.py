"""`ModelIR`: the undivided model that a distributed program was derived from, as the upstream format defines it.

dtir reads and writes these records (tags, fields and defaults are facts of that format) and names a program's parent by
their digest; it does not judge models.
"""

from __future__ import annotations

from dataclasses import field
from typing import Any, ClassVar

from dtir.ir.header import IRHeader, make_header
from dtir.ir.ids import Lineage, NodeId, ValueId
from dtir.ir.semantics import EMPTY_SEMANTIC, ModelOperationSemantic
from dtir.ir.types import Effect, OperationName, TensorType
from dtir.ir.values import ValueRole
from dtir.schema.authoring import record
from dtir.schema.codec import content_digest
from dtir.schema.frozen import EMPTY_MAP, FrozenDict
from dtir.schema.refinements import ContentDigest, NonEmptyText, StableName
from dtir.schema.version import SchemaVersion

MODEL_SCHEMA = "blueprinting.model"
MODEL_VERSION = SchemaVersion(0, 0, 0)


def _default_header() -> IRHeader:
    return make_header(MODEL_SCHEMA, MODEL_VERSION)


@record("blueprinting.ir.model.value")
class ModelValue:
    """One value of a model: a tensor without a layout."""

    id: ValueId
    type: TensorType
    role: ValueRole
    lineage: Lineage
    name: str = ""
    attributes: FrozenDict[Any] = EMPTY_MAP


@record("blueprinting.ir.model.operation")
class ModelOperation:
    """One operation of a model."""

    id: NodeId
    operation: OperationName
    inputs: tuple[ValueId, ...]
    outputs: tuple[ValueId, ...]
    lineage: Lineage
    control_dependencies: tuple[NodeId, ...] = ()
    effects: tuple[Effect, ...] = ()
    semantic: ModelOperationSemantic = EMPTY_SEMANTIC
    attributes: FrozenDict[Any] = EMPTY_MAP


@record("blueprinting.ir.model")
class ModelIR:
    """A model: values, operations and interface."""

    SCHEMA_NAME: ClassVar[str] = MODEL_SCHEMA
    SCHEMA_VERSION: ClassVar[SchemaVersion] = MODEL_VERSION

    name: str
    values: tuple[ModelValue, ...]
    operations: tuple[ModelOperation, ...]
    inputs: tuple[ValueId, ...]
    outputs: tuple[ValueId, ...]
    attributes: FrozenDict[Any] = EMPTY_MAP
    header: IRHeader = field(default_factory=_default_header)

    @property
    def digest(self) -> str:
        """Content digest (40 hex digits): what a derived program lists among its parents.

        Raises:
            SerializationError: the model holds something that has no canonical form.
        """
        return content_digest(self, f"ir:{MODEL_SCHEMA}")


@record("blueprinting.ir.snapshot")
class IRSnapshot:
    """The upstream envelope: metadata that repeats the payload's header, the payload's digest, and the payload."""

    schema_name: StableName
    schema_version: SchemaVersion
    producer_version: NonEmptyText
    feature_set: frozenset[StableName]
    content_digest: ContentDigest
    payload: Any

    def matches_header(self, header: IRHeader) -> bool:
        """True when the metadata says what the payload's header says."""
        return all(
            getattr(self, name) == getattr(header, name)
            for name in ("schema_name", "schema_version", "producer_version", "feature_set")
        )
