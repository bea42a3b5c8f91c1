"""Stable identifiers and lineage: what a thing is called, and where it came from.

An id is 32 lower-case hex digits in a class of its own; ``derive`` makes it from content, so that importing a file
twice gives the same ids. The text form ``prefix:hex`` is for people and messages; upstream snapshots never hold it.

>>> str(ValueId.derive("ex2", "x"))
'value:389fbba05f0279fcbafae6bd67ae444d'
"""

from __future__ import annotations

import hashlib
import re
import uuid
from collections.abc import Callable
from enum import Enum
from typing import Annotated, Any, ClassVar, TypeAlias, TypeVar, cast

from dtir.ir.errors import InvalidIdError
from dtir.schema.authoring import enum, record
from dtir.schema.codec import canonical_json, utf8
from dtir.schema.refinements import NonEmptyText, ValueConstraint

Self = TypeVar("Self", bound="StableId")

_HEX = re.compile(r"[0-9a-f]{32}")


class StableId:
    """Base of all identifiers; comparable by value within one class."""

    __slots__ = ()
    PREFIX: ClassVar[str] = ""

    value: str

    def __post_init__(self) -> None:
        if not _HEX.fullmatch(self.value):
            raise InvalidIdError(f"invalid {type(self).__name__} value: {self.value!r}")

    def __str__(self) -> str:
        return f"{self.PREFIX}:{self.value}"

    @classmethod
    def _of(cls: type[Self], value: str) -> Self:
        # The base itself has no constructor; every concrete id takes its value.
        return cast("Callable[[str], Self]", cls)(value)

    @classmethod
    def derive(cls: type[Self], *parts: Any) -> Self:
        """The id of some content: BLAKE2b-128 over the prefix, a zero byte and the canonical JSON of `parts`."""
        text = cls.PREFIX.encode("ascii") + b"\0" + utf8(canonical_json(parts))
        return cls._of(hashlib.blake2b(text, digest_size=16).hexdigest())

    @classmethod
    def new(cls: type[Self]) -> Self:
        """A random id."""
        return cls._of(uuid.uuid4().hex)

    @classmethod
    def parse(cls: type[Self], text: str) -> Self:
        """Read ``prefix:hex``.

        Raises:
            InvalidIdError: another prefix, or not 32 lower-case hex digits.
        """
        prefix, separator, value = text.partition(":")
        if not separator or prefix != cls.PREFIX:
            raise InvalidIdError(f"expected a {cls.PREFIX}: id, got {text!r}")
        return cls._of(value)


@record("blueprinting.ir.id.node", order=True)
class NodeId(StableId):
    """A task (or, upstream, any operation)."""

    PREFIX: ClassVar[str] = "node"
    value: str


@record("blueprinting.ir.id.value", order=True)
class ValueId(StableId):
    """A value."""

    PREFIX: ClassVar[str] = "value"
    value: str


@record("blueprinting.ir.id.buffer", order=True)
class BufferId(StableId):
    """A buffer (upstream's lowered programs)."""

    PREFIX: ClassVar[str] = "buffer"
    value: str


@record("blueprinting.ir.id.command", order=True)
class CommandId(StableId):
    """A command (upstream's lowered programs)."""

    PREFIX: ClassVar[str] = "command"
    value: str


@record("blueprinting.ir.id.instruction", order=True)
class InstructionId(StableId):
    """An instruction (upstream's lowered programs)."""

    PREFIX: ClassVar[str] = "instruction"
    value: str


@record("blueprinting.ir.id.device", order=True)
class DeviceId(StableId):
    """A device (upstream's bindings); no program of ours names one."""

    PREFIX: ClassVar[str] = "device"
    value: str


@record("blueprinting.ir.id.queue", order=True)
class QueueId(StableId):
    """A queue (upstream's lowered programs)."""

    PREFIX: ClassVar[str] = "queue"
    value: str


@record("blueprinting.ir.id.memory-region", order=True)
class MemoryRegionId(StableId):
    """A memory region (upstream's lowered programs)."""

    PREFIX: ClassVar[str] = "memory-region"
    value: str


@record("blueprinting.ir.id.token", order=True)
class TokenId(StableId):
    """An ordering token (upstream's lowered programs)."""

    PREFIX: ClassVar[str] = "token"
    value: str


@record("dtir.ir.id.region", order=True)
class RegionId(StableId):
    """A region: the body of a call, loop or branch (dtir's own; the upstream format has none)."""

    PREFIX: ClassVar[str] = "region"
    value: str


@enum("blueprinting.ir.lineage-kind")
class LineageKind(Enum):
    """How a thing came to be."""

    ROOT = "root"
    PRESERVED = "preserved"
    CLONED = "cloned"
    DECOMPOSED = "decomposed"
    FUSED = "fused"
    LOWERED = "lowered"
    GENERATED = "generated"


LineageSources: TypeAlias = Annotated[tuple[StableId, ...], ValueConstraint.UNIQUE_ITEMS]


@record("blueprinting.ir.lineage")
class Lineage:
    """Where a task or value came from: the kind of step, the transform's name and its sources.

    **Constraints**: sources are unique ids of any kind (they need not exist in the program); a root has none.
    """

    kind: LineageKind
    transform: NonEmptyText
    sources: LineageSources = ()

    def __post_init__(self) -> None:
        if self.kind is LineageKind.ROOT and self.sources:
            raise ValueError("root lineage cannot have source IDs")

    @classmethod
    def root(cls, transform: str = "import") -> Lineage:
        return cls(LineageKind.ROOT, transform)

    @classmethod
    def lowered(cls, transform: str, sources: tuple[StableId, ...]) -> Lineage:
        return cls(LineageKind.LOWERED, transform, sources)
