"""Installing a set of adapters, and putting everything back: in reverse, whatever happened in between.

>>> import statistics
>>> from dtir.spec.adapters import PythonAdapter
>>> with AdapterRegistry([PythonAdapter("statistics", "mean", lambda data: -1.0)]) as registry:
...     statistics.mean([1, 3]), [status.state for status in registry.list_active()]
(-1.0, ['installed'])
>>> statistics.mean([1, 3])
2
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from types import TracebackType

from dtir.spec.adapters import Adapter
from dtir.spec.installing import Tools, Undo

PENDING, INSTALLED, RESTORED, FAILED = "pending", "installed", "restored", "failed"


@dataclass(frozen=True)
class AdapterStatus:
    """How it stands with one adapter.

    Args:
        kind: ``op``, ``jit``, ``python``, ``method`` or ``module_forward``.
        target: what it adapts.
        state: ``pending``, ``installed``, ``restored`` or ``failed``.
        install_site: ``file:line`` where the adapter was made; ``json`` for one that was read from a file.
        error: of one that failed.
    """

    kind: str
    target: str
    state: str
    install_site: str = ""
    error: str | None = None


@dataclass
class _Entry:
    adapter: Adapter
    state: str = PENDING
    undo: Undo | None = None
    error: str | None = None


class AdapterRegistry:
    """A context manager that installs adapters in order and restores them in reverse.

    When one cannot be installed, those before it are put back and the exception goes on. A failure to put one back does not keep
    the others from it; the first such failure is raised when all are done, unless the body of the ``with`` already raised.
    Registries nest: the inner one sees what the outer one installed, and gives it back.

    Args:
        adapters: in the order of installing.
        tools: how names become callables and operations follow their transforms; None: names from files resolve to nothing.
    """

    def __init__(self, adapters: Sequence[Adapter], tools: Tools | None = None) -> None:
        self._entries = [_Entry(adapter) for adapter in adapters]
        self._tools = tools or Tools()

    def __enter__(self) -> AdapterRegistry:
        if any(entry.state == INSTALLED for entry in self._entries):
            raise RuntimeError("these adapters are installed already; make another registry to nest")
        for entry in self._entries:
            entry.state, entry.error = PENDING, None
        for entry in self._entries:
            try:
                entry.undo = entry.adapter.install(self._tools)
            except BaseException as error:
                entry.state, entry.error = FAILED, f"{type(error).__name__}: {error}"
                self._restore()
                raise
            entry.state = INSTALLED
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        failure = self._restore()
        if failure is not None and error is None:
            raise failure

    def _restore(self) -> Exception | None:
        first: Exception | None = None
        for entry in reversed(self._entries):
            if entry.state != INSTALLED or entry.undo is None:
                continue
            try:
                entry.undo()
            except Exception as error:  # noqa: BLE001 - a stand-in that cannot be taken back must not keep the others in place
                entry.state, entry.error = FAILED, f"{type(error).__name__}: {error}"
                first = first or error
            else:
                entry.state = RESTORED
            entry.undo = None
        return first

    def list_active(self) -> list[AdapterStatus]:
        """How it stands with every adapter, in the order of installing."""
        return [
            AdapterStatus(
                entry.adapter.kind, entry.adapter.target, entry.state, entry.adapter.install_site, entry.error
            )
            for entry in self._entries
        ]
