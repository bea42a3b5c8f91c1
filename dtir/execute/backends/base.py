"""What a back end has to offer: a probe, and sessions over a fabric.

A back end runs the same plan as every other one. What differs is who holds which ranks, the array module, and the
*fabric* that carries exchanges; steps, control flow and local computation are shared (`dtir.execute.session`).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Protocol, TypeAlias

from dtir.execute.dtypes import Array
from dtir.execute.exchange import Exchange, Moves
from dtir.execute.values import Held
from dtir.schema.diagnostics import Diagnostic

if TYPE_CHECKING:
    from dtir.execute.binding import Binding
    from dtir.execute.session import Observer, Options, Session
    from dtir.execute.steps import ExecPlan, Step

Combine: TypeAlias = Callable[[Array, Array], Array]


@dataclass(frozen=True, slots=True)
class Traffic:
    """What this process sent in one step.

    Args:
        sent_bytes: to all processes.
        messages: to all processes.
        peers: process, bytes and messages, for those that were sent something.
    """

    sent_bytes: int
    messages: int
    peers: tuple[tuple[int, int, int], ...] = ()


@dataclass(frozen=True, slots=True)
class Capabilities:
    """What a back end can do on this machine.

    Args:
        dtypes: element types that it computes with; empty: all that numpy and ml_dtypes have.
        wire_bytes: whether it can count what crosses the wire.
        clock: what its times are taken with.
        devices: the devices it found, by name.
        processes: whether it spreads ranks over processes.
    """

    dtypes: tuple[str, ...] = ()
    wire_bytes: bool = False
    clock: str = "perf_counter"
    devices: tuple[str, ...] = ()
    processes: bool = False


@dataclass(frozen=True, slots=True)
class Probe:
    """Whether a back end can run here.

    Args:
        ok: it can.
        reason: why not; where it can, what it is (library and version).
        capabilities: what it can do.
    """

    ok: bool
    reason: str
    capabilities: Capabilities = field(default_factory=Capabilities)


class Fabric(Protocol):
    """Communication among the ranks of a run, as seen by one process.

    Exchanges are issued in the plan's order on every process; each process passes the parts of its own ranks and gets
    the results of its own ranks.
    """

    @property
    def ranks(self) -> tuple[int, ...]:
        """The ranks of this process, ascending."""
        ...

    def now_ns(self) -> int:
        """The clock, in nanoseconds; common to the processes of a host."""
        ...

    def sync(self) -> None:
        """Wait until everything that was enqueued is done."""
        ...

    def start(self) -> None:
        """A repetition begins: processes begin it together."""
        ...

    def barrier(self, step: Step) -> None:
        """Wait for the processes that take part in a step."""
        ...

    def begin(self, step: Step) -> None:
        """Told before every step that has ranks here: what the process does now, and where counting begins."""
        ...

    def end(self, step: Step) -> Traffic | None:
        """Told after every communication step: what was sent in it; None where that cannot be counted."""
        ...

    def enter(self, step: Step) -> None:
        """Control flow begins in which the data decide how ranks go on; `leave` ends it."""
        ...

    def part(self, step: Step, ranks: Sequence[int], choices: Sequence[int]) -> None:
        """Told what the ranks of this process chose: the number of a branch, 1 or 0 for another turn of a loop or none.

        Raises:
            ExchangeError: the data contradict what the program states.
        """
        ...

    def follow(self, step: Step, choice: int) -> None:
        """What comes next is done by the ranks that chose so, until the next of these calls."""
        ...

    def leave(self, step: Step) -> None:
        """Control flow is over: all who entered it go on together."""
        ...

    def exchange(
        self, request: Exchange, operands: Sequence[Held], ranks: Sequence[int], combine: Combine | None
    ) -> tuple[Held, ...]:
        """The results of a collective, one an operand.

        Args:
            request: the collective.
            operands: parts of `ranks`.
            ranks: who takes part, of this process.
            combine: the computation of a custom reduction.

        Raises:
            ExchangeError: shapes do not fit, or a member never arrives.
        """
        ...

    def move(self, request: Moves, operand: Held, ranks: Sequence[int]) -> Held:
        """The results of transfers, on those ranks of this process that have one."""
        ...

    def close(self) -> None:
        """Give back what the fabric holds."""
        ...


class Backend(Protocol):
    """One way to run plans."""

    @property
    def name(self) -> str:
        """Its name on the command line."""
        ...

    def probe(self) -> Probe:
        """Whether it can run here; never raises, and starts nothing that stays."""
        ...

    def default_binding(self, plan: ExecPlan, processes: int | None = None) -> Binding:
        """Which process and device each rank gets when nobody says so."""
        ...

    def obstacles(self, plan: ExecPlan, binding: Binding) -> list[Diagnostic]:
        """What stands against a run that only the back end knows: its devices' memory, element types that they lack."""
        ...

    def prepare(self, plan: ExecPlan, binding: Binding, options: Options, observer: Observer | None = None) -> Session:
        """A session for the ranks of this process: communicators, kernels and buffers, made in one global order.

        Raises:
            UnknownOperation: a local step has no evaluation.
        """
        ...


Loader: TypeAlias = Callable[[], Any]
