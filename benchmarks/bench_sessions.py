"""Twenty people on one server: how long a selection takes, what a session costs, and whether memory comes back.

    python benchmarks/bench_sessions.py [--sessions 20] [--tasks 100000]

Clients speak Bokeh's protocol, each in a thread of its own, as browsers do: a click into the graph is sent, and the ring around what was
clicked is waited for; after about a second the next is clicked. They share the machine with the server, so that times are pessimistic.
Every client selects a task of its own; one that sees another's is a leak between sessions, and ends the run. The peer of the same run is
the same with one client.
"""

from __future__ import annotations

import argparse
import os
import statistics
import sys
import tempfile
import threading
import time
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[1]
sys.path[:0] = [str(ROOT), str(ROOT / "app")]

from bokeh.client import ClientSession, pull_session  # noqa: E402
from bokeh.document.events import MessageSentEvent  # noqa: E402
from bokeh.events import Tap  # noqa: E402
from dtir_app.shell import make_parts  # noqa: E402

from tests.helpers.explorer import Explorer, start_explorer  # noqa: E402
from tests.helpers.layered import layered  # noqa: E402

P95_MS, SESSION_MB, EVENT_TIMEOUT_S = 500.0, 150.0, 60.0
CLICKS = 12
PAUSE_S = 1.0
"""Between an answer and the next click, half of it to half as much again."""


def know_models() -> None:
    """Make one page here: what a client is sent can be read only when the classes of its models exist."""
    parts = make_parts(False)
    for element in (*parts.elements.values(), parts.upload):
        element.get_root()


def memory_mb(pid: int) -> float:
    """Resident memory of a process, where the system tells."""
    status = Path(f"/proc/{pid}/status")
    if not status.exists():
        return float("nan")
    line = next(line for line in status.read_text().splitlines() if line.startswith("VmRSS"))
    return int(line.split()[1]) / 1024


class Click(Tap):
    """A click as a browser sends it; Bokeh's own class leaves the place out when it is written in Python."""

    def to_serializable(self, serializer: Any) -> Any:
        values = {"model": self.model, "x": self.x, "y": self.y, "sx": 0, "sy": 0}
        return {"type": "event", "name": self.event_name, "values": serializer.encode(values)}


class Client:
    """One page without a browser."""

    def __init__(self, url: str, number: int) -> None:
        self.number = number
        self.session: ClientSession = pull_session(url=url, arguments={"v": "graph"})
        self.models: dict[str, Any] = {}
        self.times_ms: list[float] = []
        for model in self.session.document.models:
            if model.name:
                self.models[model.name] = model

    def click(self, turn: int) -> None:
        """Click an item, other clients other ones, and wait for its ring."""
        nodes, rings = self.models["graph-nodes"].data, self.models["graph-rings"]
        count = len(nodes["x"])
        # Seven is prime to the number of items, so that no two clicks that follow each other are on the same one.
        at = (self.number + 7 * turn) % count
        x, y = float(nodes["x"][at]), float(nodes["y"][at])
        start = time.perf_counter()
        event = Click(model=self.models["graph"], x=x, y=y, sx=0, sy=0)
        sent = MessageSentEvent(self.session.document, "bokeh_event", event)
        self.session._connection._send_patch_document(self.session.id, sent)
        # Patches are handled while the client's own loop runs; a round trip would drop those that come before its reply.
        self.session._connection._loop_until(lambda: self._ringed(rings, x, y))
        self.times_ms.append((time.perf_counter() - start) * 1000)

    def _ringed(self, rings: Any, x: float, y: float) -> bool:
        """Whether the selected ring lies around a point."""
        for which, xs, ys in zip(rings.data["which"], rings.data["xs"], rings.data["ys"], strict=True):
            if which == "selected":
                return abs(sum(xs) / len(xs) - x) < 0.01 and abs(sum(ys) / len(ys) - y) < 0.01
        return False


def run(url: str, count: int) -> tuple[list[Client], list[float]]:
    """Open clients one after the other, then let all click at once."""
    clients = [Client(url, number) for number in range(count)]
    faults: list[BaseException] = []

    def work(client: Client) -> None:
        try:
            for turn in range(CLICKS):
                time.sleep(
                    PAUSE_S * (0.5 + (client.number * 7 + turn * 3) % 10 / 10)
                )  # people look before they click again
                client.click(turn)
        except OSError as fault:
            faults.append(fault)

    threads = [threading.Thread(target=work, args=(client,), daemon=True) for client in clients]
    for thread in threads:
        thread.start()
    deadline = time.perf_counter() + (EVENT_TIMEOUT_S + PAUSE_S) * CLICKS
    for thread in threads:
        thread.join(max(0.0, deadline - time.perf_counter()))
    if any(thread.is_alive() for thread in threads):
        raise TimeoutError("a client never saw the ring around what it clicked")
    if faults:
        raise faults[0]
    return clients, sorted(took for client in clients for took in client.times_ms)


def p95(times: list[float]) -> float:
    return times[min(len(times) - 1, int(len(times) * 0.95))]


def wait_for_program(url: str) -> None:
    """Until the server has read its file: a page then has items to draw."""
    while True:
        client = Client(url, 0)
        ready = "graph-nodes" in client.models and len(client.models["graph-nodes"].data["x"]) > 0
        client.session.close()
        if ready:
            return
        time.sleep(2)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--sessions", type=int, default=20)
    parser.add_argument("--tasks", type=int, default=100_000)
    options = parser.parse_args()
    print(f"{os.cpu_count()} CPUs, load {os.getloadavg()[0]:.1f}")
    know_models()
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "layers.json"
        path.write_text(layered(max(1, options.tasks // 160), 16).to_json(), encoding="utf-8")
        explorer: Explorer = start_explorer([str(path)])
        try:
            wait_for_program(explorer.url)
            pid = explorer.process.pid
            run(explorer.url, 1)  # what the first selection of a program derives is not what is measured here
            _, alone = run(explorer.url, 1)
            before = memory_mb(pid)
            clients, times = run(explorer.url, options.sessions)
            open_mb = memory_mb(pid)
            for client in clients:
                client.session.close()
            each = (open_mb - before) / options.sessions
            print(f"{options.tasks:,} tasks shared, {options.sessions} sessions")
            print(f"  one alone: selection {statistics.median(alone):.0f} ms median, {p95(alone):.0f} ms p95")
            kept = "kept" if p95(times) <= P95_MS else "MISSED"
            print(
                f"  together:  selection {statistics.median(times):.0f} ms median, {p95(times):.0f} ms p95 (budget {P95_MS:.0f} ms: {kept})"
            )
            print(f"  ×{statistics.median(times) / max(statistics.median(alone), 1e-9):.1f} of one alone")
            kept = "kept" if each <= SESSION_MB else "MISSED"
            print(
                f"  memory: {before:.0f} MB with the program, {each:.1f} MB a session (budget {SESSION_MB:.0f} MB: {kept})"
            )
            print("  no session saw what another selected: every ring stood around its own click")
            for wait_s in (30, 60, 90):  # a page that is gone may come back for a minute: only then its session ends
                time.sleep(30)
                print(f"  {wait_s} s after all left: {memory_mb(pid):.0f} MB")
            _, _ = run(explorer.url, options.sessions)
            print(f"  as many again, open: {memory_mb(pid):.0f} MB (the first time {open_mb:.0f} MB)")
        finally:
            explorer.stop()


if __name__ == "__main__":
    main()
