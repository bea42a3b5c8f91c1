"""Codes of ghost regions and of symbolic sizes."""

from __future__ import annotations

from dtir.verify.catalogue.entry import Entry, Judge, mend

_STENCIL = """
mesh: {axes: [[px, 2], [py, 2]]}
values:
- {id: u, shape: [8, 8], dims: [[px], [py]]}
- {id: uh, shape: [8, 8], dims: [[px], [py]], halo: {0: 1, 1: 1}}
- {id: y, shape: [8, 8], dims: [[px], [py]]}
tasks:
- {id: swap, kind: reshard, op: halo, in: [u], out: [uh]}
- {id: step, kind: local, op: stencil, in: [uh], out: [y], radius: 1, points: box}
inputs: [u]
outputs: [y]
"""

_STEPS = """
mesh: {axes: [[px, 2]]}
values:
- {id: u, shape: [12], dims: [[px]]}
- {id: uh, shape: [12], dims: [[px]], halo: {0: 1}}
- {id: vh, shape: [12], dims: [[px]], halo: {0: 1}}
- {id: y, shape: [12], dims: [[px]]}
tasks:
- {id: swap, kind: reshard, op: halo, in: [u], out: [uh]}
- {id: one, kind: local, op: stencil, in: [uh], out: [vh], radius: 1}
- {id: two, kind: local, op: stencil, in: [vh], out: [y], radius: 1}
inputs: [u]
outputs: [y]
"""

_TOTAL = """
mesh: {axes: [[px, 2]]}
values:
- {id: e, shape: [8], dims: [[px]]}
- {id: eh, shape: [8], dims: [[px]], halo: {0: 1}}
- {id: s, shape: [], dims: [], partial: {px: sum}}
- {id: E, shape: [], dims: []}
tasks:
- {id: swap, kind: reshard, op: halo, in: [e], out: [eh]}
- {id: add, kind: local, op: sum, in: [eh], out: [s], dims: [0], include_halo: true}
- {id: ar, kind: collective, coll: all_reduce, in: [s], out: [E], axes: [px], reduction: sum}
inputs: [e]
outputs: [E]
"""

_BY_EXTENT = """
mesh: {axes: [[tp, 2]]}
values:
- {id: x, shape: [8, 8], dims: [[tp], []]}
- {id: y, shape: [8, 8], dims: [[], []]}
tasks:
- {id: ag, kind: collective, coll: all_gather, in: [x], out: [y], axes: [tp]}
inputs: [x]
outputs: [y]
"""

_SYMBOL = """
mesh: {axes: [[dp, 4]]}
bind: {B: 8}
values:
- {id: x, shape: [B, 6], dims: [[dp], []]}
- {id: y, shape: [B, 6], dims: [[dp], []]}
tasks:
- {id: t, kind: local, op: relu, in: [x], out: [y]}
inputs: [x]
outputs: [y]
"""

ENTRIES = (
    Entry(
        "halo.thin",
        Judge.BOTH,
        "halo narrower than the stencil",
        "The stencil reads further than the ghosts reach: at the edges of blocks it reads what happens to lie there.",
        mend(_STENCIL, ("radius: 1", "radius: 2")),
        _STENCIL,
        "widen the halo, or exchange after each step",
        "halo",
    ),
    Entry(
        "halo.corner",
        Judge.BOTH,
        "diagonal ghosts missing",
        "Edge neighbours were exchanged and diagonal ones were not: the corners of blocks are wrong, and only they.",
        mend(_STENCIL, ("halo: {0: 1, 1: 1}}", "halo: {0: 1, 1: 1}, corners: false}")),
        _STENCIL,
        "exchange dim by dim, ghosts already received included, or add diagonal peers",
        "halo",
    ),
    Entry(
        "halo.stale",
        Judge.STATIC,
        "ghosts older than interior",
        "After an update the interior is new and the ghosts are old. The next step mixes both.",
        _STEPS,
        mend(_STEPS, ("halo: {0: 1}}\n- {id: vh", "halo: {0: 2}}\n- {id: vh")),
        "exchange after each update, or start from a wider halo",
        "halo",
    ),
    Entry(
        "halo.narrow_shard",
        Judge.STATIC,
        "shard smaller than halo",
        "A neighbour does not own as many rows as its neighbour's ghosts need: they would have to come from further away.",
        mend(
            _STENCIL,
            ("{id: u, shape: [8, 8]", "{id: u, shape: [2, 8]"),
            (
                "{id: uh, shape: [8, 8], dims: [[px], [py]], halo: {0: 1,",
                "{id: uh, shape: [2, 8], dims: [[px], [py]], halo: {0: 2,",
            ),
            ("{id: y, shape: [8, 8]", "{id: y, shape: [2, 8]"),
        ),
        _STENCIL,
        "split over fewer ranks, or exchange over several hops",
        "halo",
    ),
    Entry(
        "halo.double_count",
        Judge.BOTH,
        "ghosts in a reduction",
        "Ghost cells belong to a neighbour, which counts them too.",
        _TOTAL,
        mend(_TOTAL, (", include_halo: true", "")),
        "reduce over owned cells only",
        "halo",
    ),
    Entry(
        "symbol.ambiguous",
        Judge.STATIC,
        "a size names two dimensions",
        "The dim is to be found by its extent, and two dims have it (or may, when symbols are bound): the wrong one is gathered.",
        _BY_EXTENT,
        mend(_BY_EXTENT, ("axes: [tp]}", "axes: [tp], dim: 0}")),
        "name dims by position",
        "symbol",
    ),
    Entry(
        "symbol.divisibility",
        Judge.STATIC,
        "divisibility not assumed",
        "The program is meant for every value of the symbol, and is right for some only.",
        _SYMBOL,
        mend(_SYMBOL, ("bind:", 'assume: ["B % 4 == 0"]\nbind:')),
        "add the assumption, or padding",
        "symbol",
    ),
)
