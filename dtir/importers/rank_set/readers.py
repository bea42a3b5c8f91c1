"""The readers of formats whose files hold one rank each, by format name; loaded when the first file of a format comes."""

from __future__ import annotations

from collections.abc import Callable

from dtir.importers.rank_set.sources import RankReader


def _chakra() -> RankReader:
    from dtir.importers.chakra import read_chakra

    return read_chakra


def _chakra_json() -> RankReader:
    from dtir.importers.chakra import read_chakra_json

    return read_chakra_json


def _flight_recorder() -> RankReader:
    from dtir.importers.flight_recorder import read_flight_recorder

    return read_flight_recorder


def _execution_trace() -> RankReader:
    from dtir.importers.execution_trace import read_execution_trace

    return read_execution_trace


def _kineto() -> RankReader:
    from dtir.importers.kineto import read_kineto

    return read_kineto


READERS: dict[str, Callable[[], RankReader]] = {
    "chakra": _chakra,
    "chakra-json": _chakra_json,
    "flight-recorder": _flight_recorder,
    "kineto": _kineto,
    "pytorch-et": _execution_trace,
}
