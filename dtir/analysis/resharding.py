"""What a transfer, a permute or a reshard makes of the state of its operand (SEMANTICS 2.2).

| task | operand | result |
|---|---|---|
| transfer, permute | anything | the same, elsewhere |
| reshard | nothing pending that the result lacks | as declared |
"""

from __future__ import annotations

from dataclasses import replace

from dtir.analysis.abstract import Abstract, Declared, Surroundings, given
from dtir.analysis.deviations import Deviation, Kind
from dtir.analysis.local import Step, unknown_step
from dtir.analysis.settle import settle
from dtir.analysis.states import Pending, letter_text


def transfer_step(value: Abstract, declared: Declared, around: Surroundings) -> Step:
    """Judge a transfer or a permute as far as layouts are concerned: the value is the same, elsewhere."""
    if not value.known:
        return unknown_step((declared,), around)
    base = replace(given(declared, around), scale=value.scale, weighted=value.weighted)
    if around.infer and (value.state.varying or declared.state.varying):
        return Step((base,))
    loose = set(declared.state.varying)
    state = replace(
        value.state,
        dims=tuple(tuple(axis for axis in axes if axis not in loose) for axes in value.state.dims),
        varying=around.space.ordered({*value.state.varying, *loose}),
    ).without_pending(loose)
    if any(isinstance(value.state.letter(axis), Pending) for axis in loose):
        lost = tuple(axis for axis in value.state.partial if axis in loose)
        return Step((base,), (Deviation(Kind.DROPPED, lost, 0, 0, (), note="transfer"),))
    outcome = settle(state, declared.state, around)
    if outcome.deviations:
        return Step((base,), tuple(replace(item, operand=0, note="transfer") for item in outcome.deviations))
    return Step((replace(base, state=outcome.state),))


def reshard_step(value: Abstract, declared: Declared, around: Surroundings, *, exchanges_ghosts: bool) -> Step:
    """Judge a reshard as far as pending reductions and ghosts are concerned; its regions are judged by themselves."""
    if not value.known:
        return unknown_step((declared,), around)
    base = replace(given(declared, around), scale=value.scale, weighted=value.weighted)
    if around.infer and (value.state.varying or declared.state.varying):
        return Step((base,))
    before, after = value.state, declared.state
    found: list[Deviation] = []
    if lost := tuple(axis for axis in before.partial if axis not in after.partial):
        found.append(Deviation(Kind.RESHARD_PARTIAL, lost, 0, 0, (), letter_text(before.letter(lost[0]))))
    elif made := tuple(axis for axis in after.partial if axis not in before.partial):
        found.append(Deviation(Kind.FABRICATED, made, 0, 0, (), "nothing pending", letter_text(after.letter(made[0]))))
    elif before.op is not after.op:
        words = letter_text(before.letter(before.partial[0])), letter_text(after.letter(after.partial[0]))
        found.append(Deviation(Kind.MIXED_OPS, before.partial, 0, 0, (), *words))
    elif exchanges_ghosts and (before.dims, before.varying) != (after.dims, after.varying):
        found += [replace(item, operand=0) for item in settle(before, after, around).deviations]
    return Step((base,), tuple(found))
