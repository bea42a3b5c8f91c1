"""Ids and lineage of programs that were not written in this form: hex ids under ``uid``, and where a thing came from."""

from __future__ import annotations

from typing import TypeVar

from dtir.importers.yaml.document import Entries, Scalar
from dtir.importers.yaml.fields import Fields
from dtir.ir import InvalidIdError, Lineage, LineageKind, StableId
from dtir.ir.ids import BufferId, CommandId, InstructionId, NodeId, RegionId, TokenId, ValueId

I = TypeVar("I", bound=StableId)  # noqa: E741 - the usual letter of an id's type

_CLASSES: dict[str, type[StableId]] = {
    cls.PREFIX: cls for cls in (NodeId, ValueId, BufferId, CommandId, InstructionId, RegionId, TokenId)
}
WRITTEN_HERE = Lineage.root("yaml")


def read_label(fields: Fields, default: str) -> str:
    """The name of a thing: its id, unless ``name`` says another one (which may be empty)."""
    node = fields.get("name")
    return node.text if isinstance(node, Scalar) else default


def read_uid(fields: Fields, cls: type[I], key: str = "uid") -> I | None:
    """The id that a thing had before it was written in this form."""
    word = fields.text(key)
    if word is None:
        return None
    try:
        return cls.parse(f"{cls.PREFIX}:{word}")
    except InvalidIdError:
        fields.value(key, f"{key} {word!r} is not 32 lower-case hex digits")
        return None


def parse_source(word: str) -> StableId | None:
    """An id of any kind, written ``prefix:hex``."""
    prefix = word.partition(":")[0]
    try:
        return _CLASSES[prefix].parse(word)
    except (KeyError, InvalidIdError):
        return None


def read_lineage(fields: Fields) -> Lineage:
    """``lineage: {kind, transform, sources}``; without it the thing was written here."""
    node = fields.entries("lineage")
    if node is None:
        return WRITTEN_HERE
    own = Fields(Entries(node, fields.line("lineage")), (*fields.path, "lineage"), fields.problems)
    own.refuse({"kind", "transform", "sources"})
    kind = own.one_of("kind", [item.value for item in LineageKind], "how it came to be")
    transform = own.text("transform", "the name of the step")
    words = own.words("sources") or []
    sources = [parse_source(word) for word in words]
    if None in sources:
        own.value("sources", f"{words[sources.index(None)]!r} is no id: write prefix:hex")
        return WRITTEN_HERE
    known = tuple(dict.fromkeys(item for item in sources if item is not None))
    if kind is None or transform is None:
        return WRITTEN_HERE
    if kind == LineageKind.ROOT.value and known:
        own.value("sources", "a root has no sources")
        return WRITTEN_HERE
    return Lineage(LineageKind(kind), transform, known)
