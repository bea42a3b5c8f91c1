"""Ranks that hold a value beside those that work on it (``ownership.*``, random sources, structure)."""

from __future__ import annotations

from collections.abc import Sequence
from typing import cast

from dtir.analysis.deviations import Kind
from dtir.ir.ranks import rank_set
from dtir_app.cues import place
from dtir_app.cues.case import Case
from dtir_app.cues.marks import Picture
from dtir_app.cues.ranks import Cell, draw_ranks
from dtir_app.text import ranks_text

LETTERS = "abcdefghijklmnopqrstuvwxyz"


def draw(case: Case) -> Picture:
    """The mesh with the owners of the value filled and the ranks of the task outlined."""
    item = case.deviation
    value = _value(case)
    task = case.task if case.tasks else -1
    if value < 0 and task < 0:
        return place.whole(case, Picture("owner"))
    if case.known.context is None:
        picture = place.draw(case)
        picture.cue = "owner"
        picture.says = "The structure is broken here: nothing more can be derived."
        return picture
    picture = Picture("owner")
    if item is not None and item.kind in (Kind.REPLICA_DIVERGENCE, Kind.CORRELATED_RANDOM):
        return _copies(case, picture, value, task)
    owners = rank_set(case.value(value).owners) if value >= 0 else frozenset[int]()
    works = rank_set(case.record(task).ranks) if task >= 0 else frozenset[int]()
    receives = _receivers(case, task)
    valid = _stale(case, value)
    lacking: list[int] = []

    def look(rank: int) -> Cell:
        holds, runs = rank in owners, rank in works
        bad = False
        words = "holds" if holds else ""
        if valid is not None:
            bad = holds and rank not in valid
            words = "old copy" if bad else "current" if holds else ""
        elif receives is not None:
            bad = holds and rank not in receives
            words = "receives" if rank in receives else "nothing arrives" if bad else ""
        elif case.code == "ownership.absent":
            bad = runs and not holds
            words = "reads, lacks it" if bad else words
        elif case.code == "ownership.sharding" and task >= 0:
            bad = holds and not runs
            words = "never written" if bad else words
        if bad:
            lacking.append(rank)
        return Cell(
            "axis-0" if holds and not bad else "plain",
            "bad" if bad else "accent" if runs else "muted",
            words,
            3 if bad or runs else 1.2,
            not holds,
        )

    name = case.value_name(value) if value >= 0 else "the value"
    draw_ranks(case, picture, 0, 0, look, title=f"owners of {name}", width=96, height=44)
    picture.explain("box", "axis-0", f"holds {name}")
    if task >= 0:
        picture.explain("line", "accent", f"runs {case.task_name(task)}")
        picture.fact(case.task_name(task), f"runs on ranks {ranks_text(case.record(task).ranks)}", case.task_key(task))
    if value >= 0:
        picture.fact(
            name,
            f"owned by ranks {ranks_text(case.value(value).owners)}, {case.store.values.layout[value]}",
            case.value_key(value),
        )
        _shards(case, picture, value)
    if lacking:
        picture.fact("lacking", f"ranks {ranks_text(sorted(set(lacking)))}", tone="bad")
    picture.says = _says(case, name, bool(lacking))
    return picture


def _value(case: Case) -> int:
    item = case.deviation
    if item is not None and item.operand is not None and case.operand(item.operand) >= 0:
        return case.operand(item.operand)
    if case.values:
        return case.values[0]
    outputs = case.outputs(case.task) if case.task >= 0 else []
    return outputs[0] if outputs else -1


def _stale(case: Case, value: int) -> frozenset[int] | None:
    """The ranks with the current copy, for the finding that replicas part since others have an old one."""
    if case.code != "ownership.replica_divergence":
        return None
    for candidate in (*case.values, *(case.operands(case.task) if case.task >= 0 else ())):
        valid = case.value(candidate).valid_on
        if valid is not None:
            return frozenset(valid)
    return None


def _receivers(case: Case, task: int) -> frozenset[int] | None:
    """Who receives in a permute or transfer, for the finding that somebody does not."""
    if task < 0 or case.code != "p2p.unfilled":
        return None
    spec = getattr(case.record(task).body, "spec", None)
    pairs = getattr(spec, "pairs", None)
    if pairs is not None:
        return frozenset(destination for _, destination in pairs)
    destination = getattr(spec, "destination_rank", None)
    return frozenset((destination,)) if isinstance(destination, int) else None


def _says(case: Case, name: str, lacking: bool) -> str:
    if case.finding is None:
        return f"Filled ranks hold {name}; every rank that works on it does."
    match case.code:
        case "ownership.absent":
            return f"Outlined ranks work on {name}, and hollow ones do not hold it."
        case "ownership.replica_divergence":
            return f"Some ranks have an old copy of {name}, and every rank works on its own."
        case "p2p.unfilled":
            return f"Some owners of {name} receive nothing."
        case "ownership.sharding":
            return (
                f"Some owners of {name} do not run the task that makes it."
                if lacking
                else f"Some blocks of {name} have no owner."
            )
        case _:
            return f"Filled ranks hold {name}."


def _shards(case: Case, picture: Picture, value: int) -> None:
    """Positions that no owner has."""
    context, state = case.known.context, case.declared(value)
    if context is None or state is None:
        return
    space = context.around.space
    axes = (*state.split, *state.partial)
    count = space.count(axes)
    owners = case.value(value).owners
    if count > 4096 or len(owners) > 65_536:
        return
    there = {space.position(rank, axes) for rank in owners}
    gone = [place for place in range(count) if place not in there]
    if gone:
        where = ", ".join(map(str, gone[:8]))
        picture.fact("blocks without an owner", f"{where} of {count} (row-major over {', '.join(axes)})", tone="bad")


def _copies(case: Case, picture: Picture, value: int, task: int) -> Picture:
    """Copies that should be equal (or differ): one letter for one content."""
    item, context = case.deviation, case.known.context
    assert item is not None
    assert context is not None
    space = context.around.space
    outputs = case.outputs(task) if task >= 0 else []
    value = outputs[item.result or 0] if outputs else value
    state = case.declared(value) if value >= 0 else None
    split = state.split if state is not None else ()
    random = item.kind is Kind.CORRELATED_RANDOM
    keys = [name for name in _keys(case, task) if name in space.sizes]
    differ = tuple(item.axes)

    def look(rank: int) -> Cell:
        if random:
            shard, seed = space.position(rank, split), space.position(rank, keys)
            return Cell(
                "plain",
                "bad",
                f"shard {shard} · seed {LETTERS[seed % 26]}",
                2,
                hatch="warn",
                says=f"rank {rank}: shard {shard}, seed {seed}",
            )
        place = space.position(rank, differ)
        return Cell(f"axis-{place % 6}", "bad", f"copy {LETTERS[place % 26]}", 2, says=f"rank {rank}: copy {place}")

    name = case.value_name(value) if value >= 0 else "the result"
    draw_ranks(case, picture, 0, 0, look, title=name, width=116 if random else 84, height=44)
    over = ", ".join(differ)
    if random:
        picture.says = (
            f"Ranks that hold different shards along {over} draw the same random numbers (one letter is one seed)."
        )
    else:
        picture.says = f"Ranks along {over} should hold equal copies of {name}, and hold different ones (one letter is one content)."
    picture.fact("axes", over, tone="bad")
    if random:
        picture.fact("seed depends on", ", ".join(keys) or "no axis")
        picture.fact("split along", ", ".join(split) or "no axis")
    if task >= 0:
        picture.fact("made by", case.task_name(task), case.task_key(task))
    return picture


def _keys(case: Case, task: int) -> list[str]:
    names = case.record(task).attributes.get("op.key_axes") if task >= 0 else None
    return [str(name) for name in cast("Sequence[object]", names)] if isinstance(names, (list, tuple)) else []
