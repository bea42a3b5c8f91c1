"""The codes of reading sharding tables."""

from __future__ import annotations

from dtir.schema.catalogue import CodeEntry
from dtir.schema.diagnostics import Severity

CODES: tuple[CodeEntry, ...] = (
    CodeEntry(
        "shardings.empty",
        "The file looks like a sharding table, and none of its entries is one.",
        '{"x": {"partition_spec": 3}}',
        '{"x": {"partition_spec": ["fsdp", null], "shape": [8, 4]}}',
        "check what wrote it",
    ),
    CodeEntry(
        "shardings.malformed",
        "Entries lack a shape or a partition spec, or the spec has more entries than the tensor has dims. They are left out.",
        'shape [8], partition_spec ["fsdp", "tensor"]',
        'shape [8, 4], partition_spec ["fsdp", "tensor"]',
        "a spec has at most one entry a dim",
        Severity.WARNING,
    ),
    CodeEntry(
        "shardings.meshes",
        "Entries of one table name different meshes. A program has one; that of the first entry is used.",
        "a.mesh {fsdp: 16}, b.mesh {fsdp: 4}",
        "a.mesh {fsdp: 16}, b.mesh {fsdp: 16}",
        "split the table by mesh",
        Severity.WARNING,
    ),
    CodeEntry(
        "shardings.mesh",
        "The mesh of the table has more ranks than any machine: a size is wrong.",
        "fsdp: 1000000000000000",
        "fsdp: 16",
        "check its shape",
    ),
    CodeEntry(
        "shardings.sizes",
        "The table names axes without their sizes (logical axes have none, activation tables leave them out). Each is shown "
        "with size 1, so that how a tensor is split is seen and into how many parts is not.",
        "P('fsdp', None) without a mesh",
        "a table of named shardings, whose entries have the mesh",
        "open the table of named shardings for sizes",
        Severity.INFO,
    ),
    CodeEntry(
        "shardings.dtypes",
        "Tables of parameters have no element types, so that no bytes are counted.",
        '{"shape": [8, 4]}',
        '"x: bfloat16[8,4]"',
        "nothing need be done",
        Severity.INFO,
    ),
    CodeEntry(
        "shardings.axis_twice",
        "A partition spec names an axis twice. It can split one dim only; its first place is kept, the attribute has the rest.",
        'partition_spec ["embed", "embed"]',
        'partition_spec ["embed", null]',
        "name every axis once",
        Severity.WARNING,
    ),
)
