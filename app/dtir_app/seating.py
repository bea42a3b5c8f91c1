"""Which process each rank gets, as it is chosen in the form of a run."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from dtir.execute.binding import Binding, BindingError, from_groups, in_turn, require_fit, spread

WAYS = {"blocks": "in blocks", "turns": "in turn", "written": "as written"}
"""Ways to give ranks to processes, with what people read."""

LONGEST = 1 << 20
"""Characters of a binding that is written or pasted."""

SHOWN = 8
"""Processes and runs of ranks that are spelt out."""


@dataclass(frozen=True, slots=True)
class Seating:
    """A choice.

    Args:
        binding: of every rank; None where the choice is none.
        problem: what is wrong with it.
    """

    binding: Binding | None
    problem: str = ""

    @property
    def text(self) -> str:
        """Which ranks every process has, for people."""
        if self.binding is None:
            return ""
        count = self.binding.processes
        told = [f"process {one}: {ranks_text(self.binding.ranks_of(one))}" for one in range(min(count, SHOWN))]
        return " · ".join([*told, *([f"… {count - SHOWN} more"] if count > SHOWN else [])])


def seating(backend: str, way: str, written: str, ranks: int, processes: int, most: int) -> Seating:
    """What a choice comes to.

    Args:
        way: one of `WAYS`.
        written: groups of ranks such as ``0 1 | 2 3``, or a binding file's content; read only ``as written``.
        most: processes that may be started.
    """
    try:
        match way:
            case "turns":
                binding = in_turn(backend, ranks, processes)
            case "written" if written.lstrip().startswith("{"):
                binding = Binding.from_json(written)
                require_fit(binding, ranks)
                if binding.backend != backend:
                    raise BindingError(f"the binding is for the {binding.backend} back end, chosen is {backend}")
            case "written":
                binding = from_groups(backend, written, ranks)
            case _:
                binding = spread(backend, ranks, processes)
        if binding.processes > most:
            raise BindingError(f"{binding.processes} processes are more than the {most} that are started from here")
    except BindingError as error:
        return Seating(None, str(error))
    return Seating(binding)


def ranks_text(ranks: Sequence[int]) -> str:
    """Ranks, neighbours as a range.

    >>> ranks_text((0, 1, 2, 5))
    'ranks 0-2, 5'
    """
    runs: list[list[int]] = []
    for rank in ranks:
        if runs and rank == runs[-1][1] + 1:
            runs[-1][1] = rank
        else:
            runs.append([rank, rank])
    told = [str(low) if low == high else f"{low}-{high}" for low, high in runs[:SHOWN]]
    more = [f"… {len(ranks)} in all"] if len(runs) > SHOWN else []
    return f"rank{'s' if len(ranks) > 1 else ''} " + ", ".join([*told, *more])
