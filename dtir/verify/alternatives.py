"""What would be cheaper than a communication, where a rule knows it.

| rule | saves |
|---|---|
| what the ``redundant.*`` rules find | see there |
| an all_reduce of which every reader keeps a block is a reduce_scatter | half of what a rank sends |
| communication inside a loop of something that no pass changes | all passes but one |
| what every reader converts to a narrower type is converted first | the ratio of the widths |
| what was converted to a wider type just before a gather or exchange is converted after it | the ratio of the widths |
| a gather of which every reader sums over the gathered dim is summed first | what the sum is smaller |
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from dtir.analysis.executions import region_executions
from dtir.analysis.flow import Flow
from dtir.analysis.groups import group_size_of, groups_of
from dtir.analysis.liveness import Liveness
from dtir.analysis.volume import counted, wire_bytes
from dtir.ir.collectives import AllGather, AllReduce, AllToAll, CollectiveKind, collective_kind
from dtir.ir.ids import ValueId
from dtir.ir.tasks import Collective, DistributedTask, LocalCompute
from dtir.ir.types import dtype_bits
from dtir.schema.diagnostics import Diagnostic
from dtir.verify import redundant
from dtir.verify.context import Context, task_name

_CONVERSIONS = frozenset({"convert", "cast"})
_SLICES = frozenset({"dynamic-slice", "shard", "slice_axis"})
_SUMS = frozenset({"sum", "reduce"})
_PURE_PASS = frozenset(
    {"get-tuple-element", "bitcast", "copy", "reshape", "transpose", "convert", "cast", "tuple", "broadcast"}
)


@dataclass(frozen=True, slots=True)
class Alternative:
    """Something cheaper.

    Args:
        text: what to do.
        sent_bytes: what a rank sends then in one run of the program, at least; None where that is not a number.
        instead_bytes: what it sends now.
        rule: which rule knows it.
    """

    text: str
    sent_bytes: float | None
    instead_bytes: float | None
    rule: str

    @property
    def saved_bytes(self) -> float | None:
        """What a rank sends less."""
        if self.sent_bytes is None or self.instead_bytes is None:
            return None
        return self.instead_bytes - self.sent_bytes


def cheaper(context: Context, scope: int, index: int, live: Liveness) -> Alternative | None:
    """The first alternative that a rule knows for a collective, the surest rule first."""
    flow = context.flows[scope]
    task = flow.scope.tasks[index]
    if not isinstance(task.body, Collective):
        return None
    found = _Finder(context, scope, flow, index, live)
    return next(iter(found.all()), None)


class _Finder:
    def __init__(self, context: Context, scope: int, flow: Flow, index: int, live: Liveness) -> None:
        self.context, self.number, self.flow, self.index, self.live = context, scope, flow, index, live
        self.task = flow.scope.tasks[index]
        assert isinstance(self.task.body, Collective)
        self.spec = self.task.body.spec
        groups = groups_of(self.spec, context.program.mesh)
        self.members = (group_size_of(groups) or 0) if groups else 0
        self.size = counted(self.spec.message_bytes, context.program.bindings)
        self.runs = self._executions()

    def all(self) -> Iterator[Alternative]:
        yield from self._redundant()
        yield from self._scatter()
        yield from self._hoist()
        yield from self._narrow_after()
        yield from self._wide_before()
        yield from self._sum_first()

    def _executions(self) -> int | None:
        program = self.context.program
        if self.number == 0:
            return 1
        regions = {region.id: region for region in program.regions}
        counts = self.context.remember("executions", lambda: region_executions(program.tasks, regions))
        return counts[program.regions[self.number - 1].id]

    def _sent(self, kind: CollectiveKind | None = None, size: float | None = None) -> float | None:
        """Bytes that a rank sends in all runs of a collective of a size."""
        size = self.size if size is None else size
        if size is None or self.members < 2 or self.runs is None:
            return None
        return wire_bytes(kind or collective_kind(self.spec), self.members, size) / self.members * self.runs

    # -- rules -----------------------------------------------------------------------------------------------------------

    def _redundant(self) -> Iterator[Alternative]:
        for item in redundant_findings(self.context):
            # A finding on two tasks stands at the one that could go; a sum of reductions names them all.
            here = item.path == (*self.flow.path, "tasks", str(self.index))
            if not here and not (item.code == "redundant.hoistable" and str(self.task.id) in item.subject):
                continue
            sent: float | None = 0.0
            now = self._sent()
            if item.code == "redundant.fusible":
                sent = self._sent(CollectiveKind.REDUCE_SCATTER) if isinstance(self.spec, AllReduce) else now
            elif item.code == "redundant.hoistable":
                parts = sum(1 for name in item.subject if name.startswith("node:")) - 1
                sent = now / parts if now is not None and parts > 1 else now
            yield Alternative(item.hint or item.message, sent, now, item.code)

    def _scatter(self) -> Iterator[Alternative]:
        """A reduction whose readers all keep a block of it."""
        if not isinstance(self.spec, AllReduce):
            return
        readers = self._readers()
        if readers and all(task.operation.name in _SLICES for task in readers):
            names = ", ".join(task_name(task) for task in readers[:3])
            text = f"reduce_scatter in place of {task_name(self.task)} and {names}: each rank keeps a block only"
            yield Alternative(text, self._sent(CollectiveKind.REDUCE_SCATTER), self._sent(), "reduce_scatter")

    def _hoist(self) -> Iterator[Alternative]:
        """Communication of what no pass of its loop changes."""
        if self.number == 0 or self.runs is None or self.runs < 2:
            return
        if all(self._invariant(item) for item in self.task.operand_values):
            now = self._sent()
            text = f"once before the loop in place of {self.runs} times in it: no pass changes what it sends"
            yield Alternative(text, now / self.runs if now is not None else None, now, "hoist")

    def _invariant(self, identifier: ValueId) -> bool:
        """Whether a value follows from inputs of the region that every pass hands on as they are."""
        scope = self.flow.scope
        kept = {one for one, other in zip(scope.inputs, scope.outputs, strict=False) if one == other}
        stack, seen = [identifier], set[ValueId]()
        while stack:
            item = stack.pop()
            if item in seen or item in kept:
                continue
            seen.add(item)
            maker = self.live.producer.get(item)
            if maker is None or len(seen) > 64:
                return False
            task = scope.tasks[maker]
            if not isinstance(task.body, LocalCompute) or task.operation.name not in _PURE_PASS:
                return False
            stack += task.operand_values
        return True

    def _narrow_after(self) -> Iterator[Alternative]:
        """A gather or exchange whose readers all convert to a narrower type."""
        if not isinstance(self.spec, (AllGather, AllToAll)):
            return
        readers = self._readers()
        own = self._bits(self.task.outputs[0]) if self.task.outputs else None
        widths = {
            self._bits(task.outputs[0]) for task in readers if task.operation.name in _CONVERSIONS and task.outputs
        }
        narrow = next(iter(widths), None)
        if not readers or len(widths) != 1 or own is None or narrow is None or narrow >= own:
            return
        if all(task.operation.name in _CONVERSIONS for task in readers):
            text = f"convert to {narrow} bits before {task_name(self.task)}, as {task_name(readers[0])} does after it"
            yield self._scaled(text, narrow / own, "convert first")

    def _wide_before(self) -> Iterator[Alternative]:
        """A gather or exchange of what was widened just before it."""
        if not isinstance(self.spec, (AllGather, AllToAll)) or not self.task.operand_values:
            return
        maker = self.live.producer.get(self.task.operand_values[0])
        task = self.flow.scope.tasks[maker] if maker is not None else None
        if task is None or task.operation.name not in _CONVERSIONS or not task.operand_values:
            return
        own, narrow = self._bits(self.task.operand_values[0]), self._bits(task.operand_values[0])
        if own is not None and narrow is not None and narrow < own:
            text = (
                f"send the {narrow} bits that {task_name(task)} converts from, and convert after {task_name(self.task)}"
            )
            yield self._scaled(text, narrow / own, "convert after")

    def _sum_first(self) -> Iterator[Alternative]:
        """A gather whose readers all sum over the gathered dim."""
        if not isinstance(self.spec, AllGather) or self.spec.dim is None or self.size is None:
            return
        readers = self._readers()
        if not readers or not all(_sums_over(task, self.spec.dim) for task in readers):
            return
        value = self.flow.scope.values[self.flow.position[self.task.outputs[0]]]
        extent = self.context.around.number(value.type.shape[self.spec.dim]) if value.type.shape else None
        if extent and extent > 2:
            text = f"sum each rank's part first ({task_name(readers[0])}), and all_reduce the sums"
            yield Alternative(
                text, self._sent(CollectiveKind.ALL_REDUCE, self.size / extent), self._sent(), "sum first"
            )

    # -- helpers ---------------------------------------------------------------------------------------------------------

    def _scaled(self, text: str, ratio: float, rule: str) -> Alternative:
        now = self._sent()
        return Alternative(text, now * ratio if now is not None else None, now, rule)

    def _readers(self) -> Sequence[DistributedTask]:
        """The tasks that read the result; none where it is returned too."""
        outputs = set(self.flow.scope.outputs)
        if any(item in outputs for item in self.task.outputs):
            return ()
        tasks = self.flow.scope.tasks
        return [tasks[user] for item in self.task.outputs for user in self.live.users.get(item, ())]

    def _bits(self, identifier: ValueId) -> int | None:
        return dtype_bits(self.flow.scope.values[self.flow.position[identifier]].type.dtype)


def _sums_over(task: DistributedTask, dim: int) -> bool:
    dims = task.attributes.get("hlo.dimensions", task.attributes.get("op.dims"))
    adds = task.operation.name == "sum" or str(task.attributes.get("hlo.to_apply", "")).startswith(("add", "sum"))
    return task.operation.name in _SUMS and adds and isinstance(dims, (tuple, list)) and dim in dims


def redundant_findings(context: Context) -> list[Diagnostic]:
    """What the ``redundant.*`` rules find, looked for once for all tasks."""
    return context.remember("redundant findings", lambda: [item for rule in redundant.RULES for item in rule(context)])
