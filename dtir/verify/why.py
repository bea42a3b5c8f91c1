"""Why a communication is there: what forced it, who asked for it, what it costs a rank, and what would cost less.

A layout forces communication where a task makes what the next one cannot read as it lies: shares that nobody has summed,
blocks of a dim that is wanted whole. In checked programs the states say so; in partitioned dumps, whose values are
per-rank data, the collective and the operators around it do.

>>> why(context, 0, 3).sentence  # doctest: +SKIP
'mm contracts a dim that tp (4) splits: every rank has a share of h, and gelu needs the sum.'
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from dtir.analysis.exchanges import ExchangeReader
from dtir.analysis.flow import Flow
from dtir.analysis.groups import group_size_of, groups_of
from dtir.analysis.liveness import Liveness
from dtir.analysis.states import Pending, Split, State, declared_state, letter_text
from dtir.analysis.summary import source_of
from dtir.analysis.volume import counted, wire_bytes
from dtir.ir.collectives import (
    AllGather,
    AllReduce,
    AllToAll,
    Broadcast,
    CollectivePermute,
    CollectiveSpecVariant,
    ReduceScatter,
    collective_kind,
)
from dtir.ir.ids import ValueId
from dtir.ir.tasks import Collective, LocalCompute, PointToPoint, Reshard
from dtir.verify.alternatives import Alternative, cheaper
from dtir.verify.asked import EXPLICIT_NAMES, Asked, asked_for
from dtir.verify.context import Context, task_name, value_name
from dtir.verify.why_words import needs, on_dim, shift_words, spec_words, state_words

__all__ = ["EXPLICIT_NAMES", "Asked", "End", "Moved", "Why", "why"]

MOST_STEPS = 12
"""Operators that only rearrange or convert, looked through on the way to the task that matters."""

_PASSED = frozenset(
    {
        "bitcast", "bitcast-convert", "broadcast", "cast", "convert", "copy", "get-tuple-element", "identity", "neg", "negate",
        "optimization-barrier", "reshape", "scale", "transpose", "tuple", "view",
    }
)  # fmt: skip
_CONTRACTIONS = frozenset({"dot", "dot-general", "convolution", "einsum", "matmul", "conv", "linear"})
_REDUCTIONS = frozenset({"reduce", "sum", "mean", "max", "min", "reduce-window", "norm"})
_LOOKUPS = frozenset({"gather", "embedding", "take"})
_SLICES = frozenset({"dynamic-slice", "slice", "shard"})
_CHOICES = frozenset({"select", "select-n", "where"})


@dataclass(frozen=True, slots=True)
class End:
    """One side of a communication.

    Args:
        task: index of the task in its scope; None for an input or output of the scope.
        name: of the task, or of the input.
        operation: its operator; empty for an input.
        layout: how the value lies on this side.
    """

    task: int | None
    name: str
    operation: str
    layout: str


@dataclass(frozen=True, slots=True)
class Moved:
    """What happens to one mesh axis (or a part of one): its state before and after, in words."""

    axis: str
    before: str
    after: str


@dataclass(frozen=True, slots=True)
class Why:
    """The reasons of one communication.

    Args:
        sentence: what forced it.
        producers, consumers: the tasks on both sides; rearranging ones are looked through.
        moved: axes whose state changes.
        message_bytes: the nccl-tests size S of a group; None while symbolic.
        sent_bytes: what a rank sends at least; None while symbolic.
        asked: whether a person wrote it, or a partitioner put it in.
        because: how that is known.
        source: operation and line of the source program; None where nothing is noted.
        alternative: something cheaper that a rule knows; None where no rule does.
    """

    sentence: str
    producers: tuple[End, ...]
    consumers: tuple[End, ...]
    moved: tuple[Moved, ...]
    message_bytes: int | float | None
    sent_bytes: int | float | None
    asked: Asked
    because: str
    source: str | None
    alternative: Alternative | None


def why(context: Context, scope: int, index: int) -> Why | None:
    """The reasons of one task; None when it does not communicate.

    Args:
        context: of the program.
        scope: number of the scope, in the order of `DistributedTaskIR.scopes`.
        index: position of the task in the scope.
    """
    flow = context.flows[scope]
    task = flow.scope.tasks[index]
    if not isinstance(task.body, (Collective, PointToPoint, Reshard)):
        return None
    return _Reader(context, scope, flow, index).read()


class _Reader:
    def __init__(self, context: Context, number: int, flow: Flow, index: int) -> None:
        self.context, self.number, self.flow, self.index = context, number, flow, index
        self.task = flow.scope.tasks[index]
        self.live: Liveness = context.liveness(number)
        self.reader: ExchangeReader = context.reader

    def read(self) -> Why:
        size, sent = self._sizes()
        asked, because = self._asked()
        moved = self._moved()
        producers, consumers = self._producers(), self._consumers()
        return Why(
            self._sentence(moved, producers, consumers), producers, consumers, moved, size, sent, asked, because,
            source_of(self.task), cheaper(self.context, self.number, self.index, self.live),
        )  # fmt: skip

    # -- both sides ------------------------------------------------------------------------------------------------------

    def _layout(self, identifier: ValueId) -> str:
        value = self.flow.scope.values[self.flow.position[identifier]]
        state = declared_state(value.sharding, self.context.around.space)
        known = self.flow.values.get(identifier)
        if known is not None and known.known:
            state = known.state
        return state_words(state)

    def _passes(self, index: int) -> bool:
        task = self.flow.scope.tasks[index]
        return isinstance(task.body, LocalCompute) and task.operation.name in _PASSED and len(task.operand_values) == 1

    def _producers(self) -> tuple[End, ...]:
        found: list[End] = []
        for identifier in self.task.operand_values[:4]:
            maker = self._maker(identifier)
            layout = self._layout(identifier)
            if maker is None:
                value = self.flow.scope.values[self.flow.position[identifier]]
                found.append(End(None, f"the input {value_name(value)}", "", layout))
            else:
                task = self.flow.scope.tasks[maker]
                found.append(End(maker, task_name(task), task.operation.name, layout))
        return tuple(dict.fromkeys(found))

    def _maker(self, identifier: ValueId) -> int | None:
        """The task that made a value, rearranging ones looked through."""
        current = self.live.producer.get(identifier)
        for _ in range(MOST_STEPS):
            if current is None or not self._passes(current):
                return current
            before = self.live.producer.get(self.flow.scope.tasks[current].operand_values[0])
            if before is None:
                return current if self.live.producer.get(identifier) == current else None
            current = before
        return current

    def _consumers(self) -> tuple[End, ...]:
        found: list[End] = []
        outputs = set(self.flow.scope.outputs)
        for identifier in self.task.outputs[:4]:
            for user in self._users(identifier)[:4]:
                task = self.flow.scope.tasks[user]
                found.append(End(user, task_name(task), task.operation.name, self._layout(identifier)))
            if identifier in outputs:
                found.append(End(None, "the output", "", self._layout(identifier)))
        return tuple(dict.fromkeys(found))

    def _users(self, identifier: ValueId) -> list[int]:
        """Tasks that read a value, rearranging ones looked through where they have readers."""
        found: dict[int, None] = {}
        queue = list(self.live.users.get(identifier, ()))
        for _ in range(MOST_STEPS * 4):
            if not queue:
                break
            user = queue.pop(0)
            outputs = self.flow.scope.tasks[user].outputs
            after = [reader for item in outputs for reader in self.live.users.get(item, ())]
            if self._passes(user) and after:
                queue += after
            else:
                found.setdefault(user)
        return list(found)

    # -- what moves ------------------------------------------------------------------------------------------------------

    def _states(self) -> tuple[State, State] | None:
        if not self.task.operand_values or not self.task.outputs:
            return None
        space = self.context.around.space
        first = self.flow.scope.values[self.flow.position[self.task.operand_values[0]]]
        last = self.flow.scope.values[self.flow.position[self.task.outputs[0]]]
        known = self.flow.values.get(first.id)
        before = known.state if known is not None and known.known else declared_state(first.sharding, space)
        return before, declared_state(last.sharding, space)

    def _moved(self) -> tuple[Moved, ...]:
        spec = self.task.body.spec if isinstance(self.task.body, Collective) else None
        states = self._states()
        if states is None:
            return ()
        before, after = states
        axes = self._axes(spec)
        if isinstance(spec, CollectivePermute):
            return ()  # blocks change places, and no axis its state
        loose = [axis for axis in axes if axis in before.varying or axis in after.varying]
        if spec is not None and loose:
            words = spec_words(spec)
            return tuple(Moved(axis, *words) for axis in axes) if words is not None else ()
        found: list[Moved] = []
        for axis in self.context.around.space.axes:
            one, other = before.letter(axis), after.letter(axis)
            if one != other and not (
                isinstance(one, Split) and isinstance(other, Split) and one.dim == other.dim and axis not in axes
            ):
                found.append(Moved(axis, letter_text(one), letter_text(other)))
        return tuple(found)

    def _axes(self, spec: CollectiveSpecVariant | None) -> tuple[str, ...]:
        if spec is None or isinstance(spec, CollectivePermute):
            return ()
        return self.reader.axes(spec) or ()

    def _axes_text(self, axes: Sequence[str]) -> str:
        return self.context.axes_text(axes) if axes else "its group"

    # -- the reason --------------------------------------------------------------------------------------------------------

    def _sentence(self, moved: Sequence[Moved], producers: Sequence[End], consumers: Sequence[End]) -> str:
        who = consumers[0].name if consumers else "nothing"
        value = self._operand_name()
        match self.task.body:
            case Collective(spec=spec):
                return self._collective_sentence(spec, value, who, producers)
            case PointToPoint(spec=spec):
                need = needs(who, f"it on rank {spec.destination_rank}")
                return f"{value} lives on rank {spec.source_rank}, and {need}."
            case _:
                changes = "; ".join(f"{item.axis}: {item.before} → {item.after}" for item in moved) or "other owners"
                return f"{value} lies in another layout than {who} reads ({changes})."

    def _collective_sentence(self, spec: CollectiveSpecVariant, value: str, who: str, producers: Sequence[End]) -> str:
        axes = self._axes_text(self._axes(spec))
        if not self.task.operand_values and not self.task.outputs:
            return f"it joins the ranks along {axes}; the program names no values for it, so that what it serves is not said."
        match spec:
            case AllReduce(reduction=reduction) | ReduceScatter(reduction=reduction):
                block = "its own block of the " if isinstance(spec, ReduceScatter) else "the "
                need = needs(who, f"{block}{reduction.value}")
                return f"{self._share(axes, producers)}: every rank has a share of {value}, and {need}."
            case AllGather():
                return f"{value} is split{on_dim(self._split_dim(spec))} over {axes}, and {needs(who, 'it whole')}."
            case AllToAll(split_dim=split, concat_dim=concat) if split == concat:
                return f"every rank hands a block of {value}{on_dim(split)} to every other over {axes}, and {needs(who, 'those of all')}."
            case AllToAll(split_dim=split, concat_dim=concat):
                want = f"that dim whole and dim {split} split" if split is not None else "it split elsewhere"
                return f"{value} is split{on_dim(concat)} over {axes}, and {needs(who, want)}."
            case Broadcast():
                need = needs(who, f"it on all ranks along {axes}")
                return f"the root alone has the copy of {value} that counts, and {need}."
            case CollectivePermute(pairs=pairs):
                return f"every rank hands its block of {value} on ({shift_words(pairs)}), and {needs(who, 'that of its neighbour')}."

    def _split_dim(self, spec: AllGather) -> int | None:
        """The dim that the axes split, where the state says it; else the dim that the task names."""
        states, axes = self._states(), self._axes(spec)
        if states is not None and axes:
            letter = states[0].letter(axes[0])
            if isinstance(letter, Split):
                return letter.dim
        return spec.dim

    def _operand_name(self) -> str:
        if not self.task.operand_values:
            return "the operand"
        value = self.flow.scope.values[self.flow.position[self.task.operand_values[0]]]
        return value.name or "the operand"

    def _share(self, axes: str, producers: Sequence[End]) -> str:
        """How the operand became a share: the task that folds a split dim, or looks into a split table."""
        origin = self._origin()
        if origin is None:
            return f"{producers[0].name if producers else 'its producer'} leaves one share on each rank along {axes}"
        task = self.flow.scope.tasks[origin]
        name, operation = task_name(task), task.operation.name
        if operation in _CONTRACTIONS:
            return f"{name} ({operation}) contracts a dim that is split over {axes}"
        if operation in _REDUCTIONS:
            return f"{name} ({operation}) reduces over a dim that is split over {axes}"
        if operation in _LOOKUPS:
            return f"{name} ({operation}) looks into a table of which each rank along {axes} has a part"
        if operation in _CHOICES:
            return f"{name} ({operation}) keeps on each rank along {axes} what that rank has of it"
        return f"{name} ({operation}) leaves one share on each rank along {axes}"

    def _origin(self) -> int | None:
        """The task in which the operand becomes a share."""
        if not self.task.operand_values:
            return None
        identifier = self.task.operand_values[0]
        maker = self._maker(identifier)
        seen: set[int] = set()
        for _ in range(MOST_STEPS):
            if maker is None or maker in seen:
                return maker
            seen.add(maker)
            task = self.flow.scope.tasks[maker]
            if task.operation.name in _CONTRACTIONS | _REDUCTIONS | _LOOKUPS | _CHOICES:
                return maker
            reduces = isinstance(task.body, Collective) and isinstance(task.body.spec, (AllReduce, ReduceScatter))
            if task.operand_values and (reduces or task.operation.name in _SLICES):
                # One of several reductions of one sum, axis by axis: the shares are made before all of them.
                before = self._maker(task.operand_values[0])
                if before is not None:
                    maker = before
                    continue
            pending = [item for item in task.operand_values if self._pending(item)]
            if pending:
                maker = self._maker(pending[0])
                continue
            return maker
        return maker

    def _pending(self, identifier: ValueId) -> bool:
        known = self.flow.values.get(identifier)
        return known is not None and any(isinstance(known.state.letter(axis), Pending) for axis in known.state.partial)

    # -- bytes -------------------------------------------------------------------------------------------------------------

    def _sizes(self) -> tuple[int | float | None, int | float | None]:
        bindings = self.context.program.bindings
        match self.task.body:
            case Collective(spec=spec):
                size = counted(spec.message_bytes, bindings)
                groups = groups_of(spec, self.context.program.mesh)
                if size is None or not groups:
                    return size, None
                if isinstance(spec, CollectivePermute):
                    return size, size
                members = group_size_of(groups) or max(len(group) for group in groups[:64])
                return size, wire_bytes(collective_kind(spec), members, size) / members if members else None
            case PointToPoint(spec=spec):
                size = counted(spec.message_bytes, bindings)
                return size, size
            case _:
                return None, None

    # -- who asked -----------------------------------------------------------------------------------------------------------

    def _asked(self) -> tuple[Asked, str]:
        tasks = self.flow.scope.tasks
        makers = [self.live.producer.get(item) for item in self.task.operand_values]
        readers = [tasks[user] for item in self.task.outputs for user in self.live.users.get(item, ())]
        return asked_for(self.task, [tasks[maker] for maker in makers if maker is not None], readers)
