"""The changes that the repair search tries for a bad value, smallest kind first."""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Sequence
from dataclasses import replace
from fractions import Fraction

from dtir.ir import ReductionKind
from dtir.ir.types import OperationName
from dtir.ops import Labels, OpCall, OpError, find_op
from dtir.verify.value.case import Case, CaseTask, CaseValue, Move
from dtir.verify.value.repair import Before, Change, Repair

_MOST_ROOTS = 16


def kinds_of_change(case: Case, task: CaseTask, value: CaseValue) -> Iterator[Iterator[Change]]:
    """Changes of a task, in groups of one kind, smallest change first."""
    made = _Candidates(case, task, value)
    yield made.deletions()
    yield made.parameters()
    yield made.replacements()
    yield made.scalings()
    yield made.insertions()
    yield made.preparations()


def _named(axes: Sequence[str]) -> str:
    return f"[{', '.join(axes)}]"


class _Candidates:
    """The changes of one task that concern one of its results."""

    def __init__(self, case: Case, task: CaseTask, value: CaseValue) -> None:
        self.case, self.task, self.value = case, task, value
        self.grid = case.grid
        self.operands = tuple(dict.fromkeys(task.operands))
        self.labels = self._labels()

    def _labels(self) -> Labels | None:
        if self.task.operator is None:
            return None
        shapes = tuple(self.case.values[item].shape for item in self.task.operands)
        results = tuple(self.case.values[item].shape for item in self.task.outputs)
        try:
            rule = self.task.operator.labels(OpCall(shapes, results, self.task.attributes))
        except OpError:
            return None
        return rule if isinstance(rule, Labels) else None

    # -- the task left out or changed ----------------------------------------------------------------------------------

    def deletions(self) -> Iterator[Change]:
        for operand in self.operands:
            text = f"without {self.task.name}, {self.value.name} = {self.case.values[operand].name}"
            yield Change(Repair("delete", self.task.id, text, operand), None, operand)

    def parameters(self) -> Iterator[Change]:
        attributes = self.task.attributes
        dropped = {
            "include_halo": "own cells only",
            "c_by_rank": "the same constant on every rank",
            "unpermute": "rows put back in the tokens' order",
            "recv_splits": "receive splits taken from the send splits",
            "send_splits": "send splits taken from the route",
        }
        for key, words in dropped.items():
            if key in attributes:
                left = {name: item for name, item in attributes.items() if name != key}
                yield self._with(left, f"{self.task.name} with {words} (no {key})")
        if attributes.get("offset") not in (None, "global"):
            yield self._with({**attributes, "offset": "global"}, f"{self.task.name} with offset: global")
        if "trim" in attributes or (self.task.move is not None and self.task.move.kind == "all_gather"):
            left = {name: item for name, item in attributes.items() if name != "trim"}
            yield self._with({**left, "vector": True}, f"{self.task.name} with the shard sizes (vector: true)")
        if "c_oracle" in attributes and attributes.get("c") != attributes["c_oracle"]:
            constant = attributes["c_oracle"]
            yield self._with(
                {**attributes, "c": constant}, f"{self.task.name} with the constant {constant} of the undivided program"
            )
        yield from self._ghosts()
        if self.task.regions:
            yield Change(
                Repair("parameter", self.task.id, f"{self.task.name} with regions that cover every block once"),
                replace(self.task, regions=()),
            )

    def _with(self, attributes: dict[str, object], text: str) -> Change:
        return Change(Repair("parameter", self.task.id, text), replace(self.task, attributes=attributes))

    def _ghosts(self) -> Iterator[Change]:
        """A wider frame, and corners, for an operator that reads around its elements."""
        if self.task.operator is None or not self.operands:
            return
        operand = self.case.values[self.operands[0]]
        try:
            reach = self.task.operator.reach(OpCall((operand.shape,), (self.value.shape,), self.task.attributes))
        except OpError:
            return
        if reach is None or not operand.halo:
            return
        widths = {
            dim: (max(before, reach.radius[dim]), max(after, reach.radius[dim]))
            for dim, (before, after) in operand.halo.items()
        }
        for halo, corners, words in (
            (operand.halo, True, "with its corners filled"),
            (widths, operand.corners, f"with a ghost frame of width {max(reach.radius)}"),
            (widths, True, f"with a ghost frame of width {max(reach.radius)}, corners filled"),
        ):
            other = replace(operand, halo=halo, corners=corners)
            text = f"{operand.name} {words}"
            yield Change(Repair("parameter", self.task.id, text, operand.id), self.task, values={operand.id: other})

    # -- a collective in its place, or behind it ----------------------------------------------------------------------

    def replacements(self) -> Iterator[Change]:
        if self.task.kind == "local" and len(self.task.operands) != 1:
            return
        if len(self.task.operands) != len(self.task.outputs):
            return
        source = self.case.values[self.task.operands[self.task.outputs.index(self.value.id)]]
        for move, repair in self._moves(source, set(source.folds), "replace", f"in place of {self.task.name}"):
            task = replace(self.task, kind="move", move=move, operator=None, attributes=self._sizes(source))
            yield Change(repair, replace(task, operands=(source.id,), outputs=(self.value.id,)))
        for axes in self._axis_sets():
            if set(axes) <= set(source.copied(self.grid)):
                for dim in range(len(source.shape)):
                    text = f"the rank's own block of dim {dim} over {_named(axes)} in place of {self.task.name}"
                    task = replace(
                        self.task,
                        kind="local",
                        move=None,
                        operator=find_op(OperationName("core", "shard")),
                        attributes={"axes": list(axes), "dim": dim},
                        operands=(source.id,),
                        outputs=(self.value.id,),
                        ranks=self.value.owners,
                    )
                    yield Change(Repair("replace", self.task.id, text, None, "shard", axes, dim=dim), task)

    def _sizes(self, source: CaseValue) -> dict[str, object]:
        return {"vector": True} if source.sizes or self.value.sizes else {}

    def insertions(self) -> Iterator[Change]:
        if self.task.kind != "local" and self.task.kind != "move":
            return
        for move, repair in self._moves(self.value, self._left_pending(), "insert", f"after {self.task.name}"):
            yield Change(repair, self.task, after=move)

    def _left_pending(self) -> set[str]:
        """Axes over which the result may be a sum of shares: pending in an operand, or splitting a contracted label."""
        found = {axis for operand in self.operands for axis in self.case.values[operand].folds}
        if self.labels is not None:
            for operand, labels in zip(self.task.operands, self.labels.operands, strict=True):
                for axes, label in zip(self.case.values[operand].dims, labels, strict=True):
                    if label in self.labels.folds:
                        found.update(axes)
        return found

    def scalings(self) -> Iterator[Change]:
        factors: dict[Fraction, str] = {}
        for axes in self._axis_sets():
            product = self.grid.members(axes)
            name = "·".join(f"|{axis}|" for axis in axes)
            factors.setdefault(Fraction(1, product), f"dividing {self.value.name} by {product} = {name}")
            factors.setdefault(Fraction(product), f"multiplying {self.value.name} by {product} = {name}")
        for factor, words in factors.items():
            text = f"{words} after {self.task.name}"
            yield Change(Repair("scale", self.task.id, text, factor=factor), self.task, factor=factor)

    # -- operands changed first ----------------------------------------------------------------------------------------

    def preparations(self) -> Iterator[Change]:
        for operand in self.operands:
            source = self.case.values[operand]
            yield from self._reduced_first(source)
            yield from self._masked_first(source)
            yield from self._broadcast_first(source)
            yield from self._resharded_first(source)

    def _reduced_first(self, source: CaseValue) -> Iterator[Change]:
        for axes in self._axis_sets():
            if not set(axes) <= set(source.folds):
                continue
            kind = source.folds[axes[0]]
            move = Move("all_reduce", self.grid.fibres(axes, source.owners), axes, kind)
            text = f"all-reduce({kind.value}, {_named(axes)}) of {source.name} before {self.task.name}"
            repair = Repair("reduce", self.task.id, text, source.id, "all_reduce", axes, kind)
            reduced = replace(source, folds={axis: op for axis, op in source.folds.items() if axis not in axes})
            yield Change(repair, self.task, values={source.id: reduced}, before={source.id: Before(move)})
            if set(axes) & set(self.value.folds):
                # What was declared pending is then complete.
                whole = replace(self.value, folds={a: op for a, op in self.value.folds.items() if a not in axes})
                text = f"{text}, {self.value.name} being replicated over {_named(axes)} then"
                yield Change(
                    replace(repair, text=text),
                    self.task,
                    values={source.id: reduced, self.value.id: whole},
                    before={source.id: Before(move)},
                )

    def _masked_first(self, source: CaseValue) -> Iterator[Change]:
        pending = {axis for operand in self.operands for axis in self.case.values[operand].folds}
        for axes in self._axis_sets():
            if set(axes) <= set(source.copied(self.grid)) and set(axes) <= pending | set(self.value.folds):
                text = f"{source.name} kept on coordinate 0 of {_named(axes)} alone (a mask) before {self.task.name}"
                repair = Repair("mask", self.task.id, text, source.id, axes=axes)
                yield Change(repair, self.task, before={source.id: Before(mask=axes)})

    def _broadcast_first(self, source: CaseValue) -> Iterator[Change]:
        if source.valid is None:
            return
        for axes in self._axis_sets():
            groups = self.grid.fibres(axes, source.owners)
            for root in range(min(len(groups[0]), _MOST_ROOTS) if groups else 0):
                roots = tuple(group[root] for group in groups)
                if all(source.is_valid(rank) for rank in roots):
                    text = f"broadcast({_named(axes)}, root {root}) of {source.name} before {self.task.name}"
                    repair = Repair("broadcast", self.task.id, text, source.id, "broadcast", axes, root=root)
                    move = Move("broadcast", groups, axes, roots=roots)
                    yield Change(
                        repair,
                        self.task,
                        values={source.id: replace(source, valid=None)},
                        before={source.id: Before(move)},
                    )

    def _resharded_first(self, source: CaseValue) -> Iterator[Change]:
        """The operand in the layout that the result and the other operands ask for, label by label."""
        if self.labels is None or source.folds or source.varying or source.halo:
            return
        asked: dict[str, tuple[str, ...]] = {}
        rows = zip(
            (*self.task.outputs, *self.task.operands), (*self.labels.results, *self.labels.operands), strict=True
        )
        for identifier, labels in rows:
            if identifier != source.id:
                for axes, label in zip(self.case.values[identifier].dims, labels, strict=True):
                    if label is not None:
                        asked.setdefault(label, axes)
        own = self.labels.operands[self.task.operands.index(source.id)]
        dims = tuple(asked.get(label, ()) if label is not None else () for label in own)
        if dims == source.dims:
            return
        other = replace(
            source, dims=dims, sizes={}, owners=tuple(sorted({*source.owners, *self.value.owners})), valid=None
        )
        layout = ", ".join(_named(axes) for axes in dims)
        text = f"{source.name} resharded to dims [{layout}] before {self.task.name}"
        repair = Repair("reshard", self.task.id, text, source.id)
        yield Change(repair, self.task, values={source.id: other}, before={source.id: Before(layout=other)})

    # -- collectives ---------------------------------------------------------------------------------------------------

    def _axis_sets(self) -> list[tuple[str, ...]]:
        axes = [axis for axis in self.grid.axes if self.grid.size[axis] > 1]
        most = len(axes) if len(axes) <= 4 else 2
        return [chosen for count in range(1, most + 1) for chosen in itertools.combinations(axes, count)]

    def _moves(self, source: CaseValue, pending: set[str], action: str, where: str) -> Iterator[tuple[Move, Repair]]:
        ranks = {*source.owners, *self.value.owners}
        for axes in self._axis_sets():
            groups = self.grid.fibres(axes, ranks)
            if groups:
                yield from self._reductions(source, pending, action, where, axes, groups)
                yield from self._broadcasts(source, action, where, axes, groups)
        # Blocks are joined in the order in which they were cut: the minor end of a dim's axes, as listed.
        for dim, listed in enumerate(source.dims):
            for start in range(len(listed)):
                axes = listed[start:]
                groups = self.grid.fibres(axes, ranks)
                if groups and self.grid.members(axes) > 1:
                    yield from self._gathers(source, action, where, axes, groups, dim)

    def _reductions(
        self,
        source: CaseValue,
        pending: set[str],
        action: str,
        where: str,
        axes: tuple[str, ...],
        groups: tuple[tuple[int, ...], ...],
    ) -> Iterator[tuple[Move, Repair]]:
        if not set(axes) <= pending:
            return
        kinds = {source.folds.get(axis, ReductionKind.SUM) for axis in axes}
        for kind in sorted(kinds, key=lambda item: item.value):
            text = f"all-reduce({kind.value}, {_named(axes)}) {where}"
            yield (
                Move("all_reduce", groups, axes, kind),
                Repair(action, self.task.id, text, None, "all_reduce", axes, kind),
            )
            for dim in range(len(source.shape)):
                text = f"reduce-scatter({kind.value}, {_named(axes)}, dim {dim}) {where}"
                yield (
                    Move("reduce_scatter", groups, axes, kind, dim=dim),
                    Repair(action, self.task.id, text, None, "reduce_scatter", axes, kind, dim),
                )

    def _broadcasts(
        self, source: CaseValue, action: str, where: str, axes: tuple[str, ...], groups: tuple[tuple[int, ...], ...]
    ) -> Iterator[tuple[Move, Repair]]:
        if not set(axes) <= {*source.copied(self.grid), *source.at}:
            return
        for root in range(min(len(groups[0]), _MOST_ROOTS)):
            text = f"broadcast({_named(axes)}, root {root}) {where}"
            yield (
                Move("broadcast", groups, axes, roots=tuple(group[root] for group in groups)),
                Repair(action, self.task.id, text, None, "broadcast", axes, root=root),
            )

    def _gathers(
        self,
        source: CaseValue,
        action: str,
        where: str,
        axes: tuple[str, ...],
        groups: tuple[tuple[int, ...], ...],
        dim: int,
    ) -> Iterator[tuple[Move, Repair]]:
        text = f"all-gather({_named(axes)}, dim {dim}) {where}"
        yield (
            Move("all_gather", groups, axes, dim=dim),
            Repair(action, self.task.id, text, None, "all_gather", axes, None, dim),
        )
        for split in range(len(source.shape)):
            if split != dim:
                text = f"all-to-all({_named(axes)}, split dim {split}, concat dim {dim}) {where}"
                yield (
                    Move("all_to_all", groups, axes, split=split, concat=dim),
                    Repair(action, self.task.id, text, None, "all_to_all", axes, None, split, dim),
                )
