"""Writing the upstream payload: every distinct part is encoded once, however often the program refers to it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, cast

from dtir.ir.ids import StableId
from dtir.ir.tasks import DistributedTask
from dtir.ir.values import DistributedValue
from dtir.schema.codec import canonical_json, record_frame

if TYPE_CHECKING:
    from dtir.ir.header import IRHeader
    from dtir.ir.program import DistributedTaskIR


def payload_text(program: DistributedTaskIR, header: IRHeader) -> str:
    """Canonical text of the payload with the given header; the program must be free of extensions.

    Raises:
        SerializationError: something has no canonical form.
    """
    # By identity: the program keeps its parts alive while they are written.
    known: dict[int, str] = {}

    def text(part: Any) -> str:
        found = known.get(id(part))
        if found is None:
            found = known[id(part)] = _encode(part)
        return found

    def _encode(part: Any) -> str:
        if isinstance(part, StableId):
            return f'{record_frame(type(part))[0]}"value":"{part.value}"}}}}'
        if type(part) is tuple:
            return _tuple_text([text(item) for item in cast("tuple[Any, ...]", part)])
        return canonical_json(part)

    def record_text(record: DistributedTask | DistributedValue) -> str:
        opening, fields = record_frame(type(record))
        return "".join([opening, *(before + text(getattr(record, name)) for before, name in fields), "}}"])

    opening, fields = record_frame(type(program))
    parts = [opening]
    for before, name in fields:
        if name == "header":
            body = canonical_json(header)
        elif name in ("values", "tasks"):
            body = _tuple_text([record_text(item) for item in getattr(program, name)])
        else:
            body = text(getattr(program, name))
        parts += (before, body)
    parts.append("}}")
    return "".join(parts)


def _tuple_text(items: list[str]) -> str:
    return f'{{"$tuple":[{",".join(items)}]}}'


def envelope_text(payload: str, digest: str, header: IRHeader) -> str:
    """The whole snapshot around a payload's text; the metadata is the header's."""
    fields = (
        ("content_digest", canonical_json(digest)),
        ("feature_set", canonical_json(header.feature_set)),
        ("payload", payload),
        ("producer_version", canonical_json(header.producer_version)),
        ("schema_name", canonical_json(header.schema_name)),
        ("schema_version", canonical_json(header.schema_version)),
    )
    inner = ",".join(f'"{name}":{text}' for name, text in fields)
    return f'{{"$type":"blueprinting.ir.snapshot","fields":{{{inner}}}}}'
