"""The native snapshot: schema ``dtir.distributed-task`` 1.0.0, plain JSON that a person can read.

``{"digest", "features", "payload", "producer_version", "schema", "version"}``. The payload is the program as
`dtir.schema.plain` writes records, with the tables of `dtir.ir.native_session` under ``tables``. Canonical text has sorted
keys, no white space and no defaults; the digest is BLAKE2b-160 over the canonical payload in the domain
``ir:dtir.distributed-task``. A reader accepts other white space, order of keys and use of tables: the digest is taken
over the canonical text of what was read.
"""

from __future__ import annotations

from typing import Any, cast

from dtir.ir.expr import ScalarExpr
from dtir.ir.header import REQUIRED_FEATURE
from dtir.ir.ids import Lineage
from dtir.ir.native_codecs import RankSetCodec, special_codec
from dtir.ir.native_session import ReadSession, TableCodec, WriteSession
from dtir.ir.program import NATIVE_SCHEMA, NATIVE_VERSION, DistributedTaskIR
from dtir.ir.semantics import DistributedTaskSemantic
from dtir.ir.sharding import ShardingSpec
from dtir.ir.tasks import TaskBodyVariant
from dtir.ir.types import OperationName, TensorType
from dtir.schema.envelope import digest_of_text
from dtir.schema.errors import SerializationError
from dtir.schema.jsontext import string_text
from dtir.schema.opendata import PlainError, plain_error
from dtir.schema.plain import PlainCodecs
from dtir.schema.plain_codecs import Codec

_TABLES: dict[Any, str] = {
    TensorType: "types",
    ShardingSpec: "shardings",
    Lineage: "lineages",
    DistributedTaskSemantic: "semantics",
    TaskBodyVariant: "bodies",
    OperationName: "operations",
}
_ENVELOPE_KEYS = ("digest", "features", "payload", "producer_version", "schema", "version")


def _in_table(annotation: Any, codec: Codec) -> Codec:
    table = "ranks" if isinstance(codec, RankSetCodec) else _TABLES.get(annotation)
    return codec if table is None else TableCodec(table, codec)


_CODECS = PlainCodecs(special_codec, _in_table)
_PROGRAM = _CODECS.record(DistributedTaskIR, None)
_SCALAR = _CODECS.codec(ScalarExpr)


def scalar_text(value: Any) -> str:
    """The native text of a scalar.

    Raises:
        SerializationError: it has none, or nests too deep.
    """
    return _SCALAR.write(value, WriteSession())


# -- writing -----------------------------------------------------------------------------------------------------


def write_native(program: DistributedTaskIR) -> str:
    """The canonical native snapshot of a program.

    Raises:
        SerializationError: something has no canonical form.
    """
    payload = _payload_text(program)
    header = program.header
    texts = {
        "digest": string_text(program.remember("digest", lambda: digest_of_text(NATIVE_SCHEMA, payload))),
        "features": f"[{','.join(sorted(map(string_text, header.feature_set)))}]",
        "payload": payload,
        "producer_version": string_text(header.producer_version),
        "schema": string_text(NATIVE_SCHEMA),
        "version": string_text(str(NATIVE_VERSION)),
    }
    return _object_text(texts)


def native_digest(program: DistributedTaskIR) -> str:
    """The content digest of a program's native form.

    Raises:
        SerializationError: something has no canonical form.
    """
    return digest_of_text(NATIVE_SCHEMA, _payload_text(program))


def _payload_text(program: DistributedTaskIR) -> str:
    session = WriteSession()
    texts, tables = session.finish(_PROGRAM.field_texts(program, session))
    if tables:
        texts["tables"] = _object_text({name: f"[{','.join(entries)}]" for name, entries in tables.items()})
    return _object_text(texts)


def _object_text(texts: dict[str, str]) -> str:
    return f"{{{','.join(f'{string_text(key)}:{texts[key]}' for key in sorted(texts))}}}"


# -- reading -----------------------------------------------------------------------------------------------------


def program_from_native_tree(tree: dict[str, Any], text_length: int = 0) -> DistributedTaskIR:
    """The program of a parsed native snapshot.

    Args:
        tree: the snapshot, envelope included.
        text_length: characters of its text; how many ranks its runs may stand for grows with it.

    Raises:
        SerializationError: the first thing that is wrong, with the path to it.
    """
    if tree.get("schema") != NATIVE_SCHEMA or tree.get("version") != str(NATIVE_VERSION):
        found = f"{_label(tree.get('schema'))}@{_label(tree.get('version'))}"
        raise SerializationError(f"snapshot schema {found} is not {NATIVE_SCHEMA}@{NATIVE_VERSION}")
    for key in tree:
        if key not in _ENVELOPE_KEYS:
            raise SerializationError(f"unknown key {key!r} of the envelope", hint=f"it has {', '.join(_ENVELOPE_KEYS)}")
    for key in _ENVELOPE_KEYS:
        if key not in tree:
            raise SerializationError(f"the envelope has no {key}")
    try:
        program = _read_payload(tree["payload"], text_length)
    except PlainError as error:
        raise plain_error(error) from error
    _check_envelope(tree, program)
    return program


def _label(value: Any) -> str:
    return value if isinstance(value, str) and value.isascii() and value.isprintable() else repr(value)


def _read_payload(payload: Any, text_length: int) -> DistributedTaskIR:
    place = (None, "payload")
    if not isinstance(payload, dict):
        raise PlainError(place, "expected an object")
    fields = dict(cast("dict[str, Any]", payload))
    tables = fields.pop("tables", {})
    if not isinstance(tables, dict):
        raise PlainError((place, "tables"), "expected an object")
    known = {*_TABLES.values(), "ranks"}
    for name, entries in cast("dict[str, Any]", tables).items():
        if name not in known:
            raise PlainError((place, "tables"), f"unknown table {name!r}; known are {', '.join(sorted(known))}")
        if not isinstance(entries, list):
            raise PlainError(((place, "tables"), name), "expected an array")
    session = ReadSession(cast("dict[str, list[Any]]", tables), text_length)
    program = _PROGRAM.read(fields, session, place)
    for unused in session.unused():
        raise PlainError(unused, "nothing refers to this entry")
    return program


def _check_envelope(tree: dict[str, Any], program: DistributedTaskIR) -> None:
    header = program.header
    if REQUIRED_FEATURE not in header.feature_set:
        raise SerializationError(f"snapshot is missing required feature epoch(s): {REQUIRED_FEATURE}")
    stated = (tree["schema"], tree["version"], tree["producer_version"], tree["features"])
    if stated != (
        header.schema_name,
        str(header.schema_version),
        header.producer_version,
        sorted(header.feature_set),
    ):
        raise SerializationError(
            "snapshot envelope metadata does not match its payload header",
            hint="schema, version, producer_version and features must be those of payload.header",
        )
    digest = native_digest(program)
    if digest != tree["digest"]:
        raise SerializationError(
            "canonical IR snapshot digest mismatch",
            hint=f"the envelope states {_label(tree['digest'])}, the payload has {digest}",
        )
    program.remember("digest", lambda: digest)
