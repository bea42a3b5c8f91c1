"""Layouts that nobody stated and that follow all the same: what per-rank data of a partitioned program hold, axis by axis.

Three things are read, and each is marked as inferred wherever it is shown; the program itself stays as it is:

- copies that are equal on all ranks along an axis (`dtir.analysis.uniform`): replicated;
- what a collective says of its operand and result: an all_reduce sums what is pending along its axes, an all_gather joins what is split,
  a reduce_scatter leaves a split; through copies and conversions, which change no layout;
- what the verifier derives where a document cannot say that a reduction is pending (infer mode).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import assert_never

from dtir.analysis.exchanges import ExchangeReader
from dtir.analysis.states import Confined, Equal, Letter, Pending, PerRank, Split, State, declared_state
from dtir.analysis.uniform import uniform_axes
from dtir.ir.collectives import AllGather, AllReduce, ReduceScatter
from dtir.ir.tasks import Collective
from dtir_app.cues.case import known_of
from dtir_app.store import Store

PASSES = frozenset({"copy", "convert", "optimization-barrier"})
"""Operators that give what they get, as far as layouts go."""
REPLICATED = "replicated"

States = Mapping[int, Mapping[str, str]]


@dataclass(frozen=True, slots=True)
class Inferred:
    """What follows for values.

    Args:
        states: by value, then by axis, the state in words: ``replicated``, ``partial sum``, ``split 0``.
        reasons: by value and axis, how that is known.
    """

    states: States
    reasons: Mapping[tuple[int, str], str]

    def of(self, value: int) -> Mapping[str, str]:
        """The inferred states of a value; empty where nothing follows that is not declared."""
        return self.states.get(value, {})

    def text(self, value: int) -> str:
        """They in one line: ``dp: replicated, tp: partial sum``."""
        by_state: dict[str, list[str]] = {}
        for axis, state in self.of(value).items():
            by_state.setdefault(state, []).append(axis)
        return ", ".join(f"{'×'.join(axes)}: {state}" for state, axes in by_state.items())

    def replicated(self, value: int) -> frozenset[str]:
        """Axes along which a value is the same on all ranks, though it does not say so."""
        return frozenset(axis for axis, state in self.of(value).items() if state == REPLICATED)


def inferred(store: Store) -> Inferred:
    """What follows for the values of a program; found once, which takes as long as a walk through its tasks."""
    return store.memo.made("inferred", lambda: _Finder(store).find())


def at_hand(store: Store) -> Inferred | None:
    """What follows, if that was found already."""
    found = store.memo.get("inferred")
    return found if isinstance(found, Inferred) else None


class _Finder:
    def __init__(self, store: Store) -> None:
        self.store = store
        self.states: dict[int, dict[str, str]] = {}
        self.reasons: dict[tuple[int, str], str] = {}

    def find(self) -> Inferred:
        if any(record.sharding.varying for record in self.store.value_records):
            self._copies()
            self._collectives()
        self._derived()
        return Inferred(self.states, self.reasons)

    def _say(self, value: int, axis: str, state: str, reason: str) -> None:
        if axis in self.store.value_records[value].sharding.varying:
            self.states.setdefault(value, {}).setdefault(axis, state)
            self.reasons.setdefault((value, axis), reason)

    def _copies(self) -> None:
        """Equal copies along whole axes of the mesh."""
        program = self.store.program
        reader = ExchangeReader(program)
        found = uniform_axes(program, reader)
        if found is None:
            return
        bits = {
            axis.name: sum(
                1 << found.axes.index(part)
                for part in reader.space.parts.get(axis.name, (axis.name,))
                if part in found.axes
            )
            for axis in program.mesh.axes
        }
        for (_, scope), known, span in zip(program.scopes(), found.scopes, self.store.scopes, strict=True):
            for position, value in enumerate(scope.values, start=span.first_value):
                own = known.get(value.id, 0)
                for axis in value.sharding.varying if own else ():
                    if bits.get(axis, 0) and own & bits[axis] == bits[axis]:
                        self._say(position, axis, REPLICATED, "every rank computes it from equal data")

    def _collectives(self) -> None:
        """What reductions and gathers over whole axes say of their operands and results."""
        store = self.store
        for index, how in store.tasks.group_axes.items():
            record = store.task_records[index]
            if not isinstance(record.body, Collective) or not how.whole:
                continue
            scope = int(store.tasks.scope[index])
            operands = [store.value_at(scope, name.value) for name in record.operand_values]
            results = [store.value_at(scope, name.value) for name in record.outputs]
            name = store.tasks.name[index]
            before, after = "", ""
            match record.body.spec:
                case AllReduce(reduction=reduction):
                    before = f"partial {reduction.value}"
                case ReduceScatter(reduction=reduction, dim=dim):
                    before, after = f"partial {reduction.value}", "" if dim is None else f"split {dim}"
                case AllGather(dim=dim):
                    before = "" if dim is None else f"split {dim}"
                case _:
                    continue
            for axis in how.axes:
                for value in operands if before else ():
                    self._back(value, axis, before, f"{name} takes it so")
                for value in results if after and len(how.axes) == 1 else ():
                    if value >= 0:
                        self._say(value, axis, after, f"{name} leaves it so")

    def _back(self, value: int, axis: str, state: str, reason: str) -> None:
        """Say it of a value, and of what it is a mere copy of."""
        store = self.store
        for _ in range(8):
            if value < 0 or self.states.get(value, {}).get(axis) == REPLICATED:
                return
            self._say(value, axis, state, reason)
            maker = int(store.values.producer[value])
            if maker < 0 or store.tasks.operation[maker].rsplit(".", 1)[-1] not in PASSES:
                return
            inputs = store.task_records[maker].operand_values
            value = store.value_at(int(store.tasks.scope[maker]), inputs[0].value) if len(inputs) == 1 else -1

    def _derived(self) -> None:
        """What the verifier's walk finds pending where a document cannot say it."""
        known = known_of(self.store)
        if known.context is None or known.context.mode != "infer":
            return
        space = known.context.reader.space
        for flow, span in zip(known.flows, self.store.scopes, strict=True):
            for position, value in enumerate(flow.scope.values, start=span.first_value):
                abstract = flow.values.get(value.id)
                if abstract is None or not abstract.known:
                    continue
                declared = declared_state(value.sharding, space)
                for axis in _differing(declared, abstract.state, space.axes):
                    words = _words(abstract.state.letter(axis))
                    self.states.setdefault(position, {}).setdefault(axis, words)
                    self.reasons.setdefault(
                        (position, axis), "it follows from the tasks before it; the document cannot say it"
                    )


def _words(letter: Letter) -> str:
    """One letter as `dtir_app.layouts.axis_states` says it."""
    match letter:
        case Split(dim=dim):
            return f"split {dim}"
        case Equal():
            return REPLICATED
        case Pending(op=op):
            return f"partial {op.value}"
        case PerRank():
            return "per rank"
        case Confined(coordinate=coordinate):
            return f"at {coordinate}"
        case _:
            assert_never(letter)


def _differing(declared: State, derived: State, axes: tuple[str, ...]) -> list[str]:
    return [axis for axis in axes if declared.letter(axis) != derived.letter(axis)]
