"""The codes of specs."""

from __future__ import annotations

from dtir.schema.catalogue import CodeEntry

CODES: tuple[CodeEntry, ...] = (
    CodeEntry(
        "spec.version",
        "The spec is of a version that this reader does not know.",
        '{"version": 1, "policy": "halo"}',
        '{"version": 2, "core": {"policy": {"kind": "halo"}}}',
        "write it anew with the library that made it: version 2 is read",
    ),
    CodeEntry(
        "spec.value",
        "The file holds no spec: it is no JSON object, or a value has another form.",
        "[1, 2]",
        '{"version": 2, "core": {"policy": {"kind": "local"}}}',
        "check that the file is what MLIPSpec.save wrote",
    ),
    CodeEntry(
        "spec.field",
        "A field of the spec is missing, unknown or of another type; the message names it.",
        '{"version": 2}',
        '{"version": 2, "core": {"policy": {"kind": "local"}}}',
        "add the field, or take it out",
    ),
    CodeEntry(
        "spec.policy",
        "The storage policy is of an unknown kind, has a mode that it does not know, or cannot do what is asked of it.",
        '{"kind": "sharded"}',
        '{"kind": "shard"}',
        "kinds: local, shard, graph_parallel, halo, refresh_halo; others through register_policy_kind",
    ),
    CodeEntry(
        "spec.adapter",
        "An adapter is of an unknown kind, or names a position, a transform or a mode that there is not.",
        '{"op": "ns::f", "arg_transforms": {"0": {"type": "gather"}}}',
        '{"op": "ns::f", "arg_transforms": {"0": {"type": "gather_inputs"}}}',
        "the message lists what is known",
    ),
    CodeEntry(
        "spec.callable",
        "A name in a file stands for code that nobody allowed: names resolve to what was registered, or inside allowed modules.",
        '"replacement": "os:system"',
        'Callables(allow={"model.sums"}) and "replacement": "model.sums:by_molecule"',
        "register the callable under that name, or allow its module, in Python",
    ),
    CodeEntry(
        "spec.missing_attribute",
        "What an adapter is to change is not there: another version of the library, or a misspelt name.",
        'PythonAdapter("statistics", "maen", stand_in)',
        'PythonAdapter("statistics", "mean", stand_in)',
        "check the library's version and the name",
    ),
    CodeEntry(
        "spec.output",
        "An output has an unknown kind or two kinds, or is both taken from its owner and summed over ranks.",
        '"output_kinds": [["energy", "per_atom"]]',
        '"output_kinds": [["energy", "per_graph"]]',
        "kinds: per_node, per_graph, global, unknown; an output is owned only, or all reduced, or neither",
    ),
    CodeEntry(
        "spec.owners",
        "The rows of a field have no owner, several owners, or ghosts that are no rows of others.",
        "rank 0 owns rows 0 to 5, rank 1 owns rows 5 to 9",
        "rank 0 owns rows 0 to 4, rank 1 owns rows 5 to 9",
        "every row has one owner; a ghost is a row of another rank, once",
    ),
    CodeEntry(
        "spec.shape",
        "Arrays do not fit the ranks and rows of a layout.",
        "three arrays for two ranks",
        "one array a rank, with as many rows as it owns",
        "give one array a rank",
    ),
    CodeEntry(
        "spec.system",
        "The system of atoms cannot be: a field is missing or has another form, or the box is too small for the cutoff.",
        '{"cell": [4, 4, 4], "positions": [[1, 1, 1]], "kinds": [1], "cutoff": 2}',
        '{"cell": [9, 9, 9], "positions": [[1, 1, 1]], "kinds": [1], "cutoff": 2}',
        "a box is at least three cutoffs long; kinds are whole numbers from 1 on",
    ),
    CodeEntry(
        "spec.partition",
        "Atoms cannot be dealt out so: more domains than bins, or sizes that do not add up.",
        "grid [8, 1, 1] for a box of 6 bins along x",
        "grid [4, 2, 1]",
        "fewer ranks, or a larger box",
    ),
    CodeEntry(
        "spec.ghost_width",
        "The ghost width is no positive length, or reaches beyond the domain next to it.",
        "ghost_width 3.0 for domains 2.5 wide",
        "ghost_width 2.5",
        "fewer domains along that axis, or a smaller width",
    ),
    CodeEntry(
        "spec.lower",
        "The spec and the outline of the model do not go together.",
        "an output that the model does not have",
        "outputs of the model",
        "name outputs and operations that the model has",
    ),
    CodeEntry(
        "spec.no_system",
        "A declaration says how fields are stored and what is adapted; what ranks do follows from a system of atoms.",
        "dtir run lj.json",
        "dtir run lj.json --system fluid.json",
        "name a system with --system FILE: cell, positions, kinds, cutoff, model, ranks",
    ),
)
