"""The codes of reading CommDebugMode trees."""

from __future__ import annotations

from dtir.schema.catalogue import CodeEntry
from dtir.schema.diagnostics import Severity

CODES: tuple[CodeEntry, ...] = (
    CodeEntry(
        "commdebug.malformed",
        "Counts of collectives are no pairs of a name and a plausible number. They are left out.",
        '["c10d.allreduce_", -3]',
        '["c10d.allreduce_", 3]',
        "dump the tree again",
        Severity.WARNING,
    ),
    CodeEntry(
        "commdebug.mesh",
        "No operation names a device mesh that could be read, so that nothing says who takes part in a collective.",
        'device_mesh ""',
        "device_mesh \"DeviceMesh((tp=4), 'cpu', stride=(1,))\"",
        "the trees of programs with DTensor operations name it",
        Severity.WARNING,
    ),
    CodeEntry(
        "commdebug.meshes",
        "Operations name several device meshes; a program has one.",
        "DeviceMesh((dp=2, tp=4)) and DeviceMesh((tp=4))",
        "DeviceMesh((dp=2, tp=4))",
        "nothing need be done",
        Severity.INFO,
    ),
    CodeEntry(
        "commdebug.sizes",
        "The tree counts calls. It says neither how many bytes they move, nor among which ranks, nor in which order exactly.",
        '["c10d.allreduce_", 7]',
        "an execution trace of the same program",
        "record an execution trace or a profile to see them",
        Severity.INFO,
    ),
    CodeEntry(
        "commdebug.kind_unknown",
        "Calls have a name that is no known collective; they are left out of the program and counted here.",
        "c10d.frobnicate_",
        "c10d.allreduce_",
        "tell us the name",
        Severity.WARNING,
    ),
    CodeEntry(
        "commdebug.too_many",
        "The counts add up to more calls than are shown.",
        "a tree with counts of a hundred thousand in every module",
        "the tree of one step",
        "watch one step",
    ),
    CodeEntry(
        "commdebug.placements",
        "The placements of a parameter cannot be read, or are not as many as the mesh has axes.",
        "(Shard(dim=0),) on a mesh of two axes",
        "(Shard(dim=0), Replicate())",
        "nothing need be done; the attribute keeps the text",
        Severity.WARNING,
    ),
)
