"""Traces in miniature: Chakra streams and flight recorder dumps written by hand, and the real ones kept beside the tests."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

TRACES = Path(__file__).resolve().parents[1] / "data" / "traces"


def kept(name: str) -> list[Path]:
    """The files of one rank each of a set that lies beside the tests."""
    return [path for path in sorted((TRACES / name).iterdir()) if path.name != "comm_group.json"]


def varint(number: int) -> bytes:
    found = bytearray()
    number &= (1 << 64) - 1
    while number >= 0x80:
        found.append(number & 0x7F | 0x80)
        number >>= 7
    return bytes([*found, number])


def field(number: int, value: int | bytes) -> bytes:
    if isinstance(value, bytes):
        return varint(number << 3 | 2) + varint(len(value)) + value
    return varint(number << 3) + varint(value)


def attribute(name: str, value: int | str, member: int = 9) -> bytes:
    """An attribute of a node; `member` is the number of the value in its oneof (9: int64, 29: text)."""
    held = value.encode() if isinstance(value, str) else value
    return field(10, field(1, name.encode()) + field(29 if isinstance(value, str) else member, held))


def node(identifier: int, kind: int, name: str = "", needs: Sequence[int] = (), /, **attributes: int | str) -> bytes:
    """One Chakra node: its type, what it waits for, and attributes by name."""
    body = field(1, identifier) + field(2, name.encode()) + field(3, kind)
    body += field(5, b"".join(map(varint, needs))) if needs else b""
    return body + b"".join(attribute(key, value) for key, value in attributes.items())


def chakra(*nodes: bytes, version: str = "0.0.4") -> bytes:
    """A Chakra stream."""
    return b"".join(varint(len(item)) + item for item in (field(1, version.encode()), *nodes))


def entry(name: str, sequence: int, shape: Sequence[int] = (8,), group: str = "0", **more: Any) -> dict[str, Any]:
    """One entry of a flight recorder."""
    return {
        "record_id": sequence,
        "process_group": [group, "default_pg" if group == "0" else "undefined"],
        "pg_id": int(group),
        "collective_seq_id": sequence,
        "profiling_name": name,
        "input_sizes": [list(shape)],
        "input_dtypes": ["Float"],
        "output_sizes": [list(shape)],
        "output_dtypes": ["Float"],
        "state": "completed",
        "retired": True,
        **more,
    }


def recorder(
    *entries: Mapping[str, Any],
    ranks: Sequence[int] = (0, 1),
    version: str = "2.10",
    groups: Mapping[str, str] | None = None,
) -> bytes:
    """A flight recorder dump of a job of some ranks."""
    config = {"0": {"name": "0", "desc": "default_pg", "ranks": str(list(ranks))}}
    config |= {name: {"name": name, "desc": "undefined", "ranks": text} for name, text in (groups or {}).items()}
    return json.dumps({"version": version, "pg_config": config, "pg_status": {}, "entries": list(entries)}).encode()
