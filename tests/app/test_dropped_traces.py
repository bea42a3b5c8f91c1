"""Traces of several ranks on the page: dropped together or one after the other, they are one program."""

from __future__ import annotations

from dtir_app.library import DroppedTraces, Library
from dtir_app.session import Session

from tests.helpers.traces import chakra, kept, node

HLO = b"HloModule own\n\nENTRY main {\n  ROOT p = f32[4]{0} parameter(0)\n}\n"


def drop(session: Session, **files: bytes) -> str:
    """Drop files in one go; what is open then."""
    session._parts.upload.value = {name.replace("__", "."): data for name, data in files.items()}
    opened = session._wanted.result()
    session._take(session._wanted, "", None)
    return opened.label


def test_ranks_that_come_one_after_the_other_join_those_before() -> None:
    session = Session(Library())
    labels: list[str] = []
    for path in kept("desync_deadlock"):
        session._parts.upload.value = {path.name: path.read_bytes()}
        labels.append(session._wanted.result().label)
    assert labels == ["desync_deadlock.fr.rank0.json", *(f"desync_deadlock ({count} ranks)" for count in (2, 3, 4))]
    session._take(session._wanted, "", None)
    assert "deadlock.cycle" in [item.code for item in session.state.store.findings]


def test_ranks_that_are_dropped_together_are_one_program() -> None:
    session = Session(Library())
    session._parts.upload.value = {path.name: path.read_bytes() for path in kept("p2p_unmatched")}
    assert session._wanted.result().label == "p2p_unmatched (4 ranks)"


def test_another_file_is_opened_alone_and_does_not_end_the_set() -> None:
    session = Session(Library())
    first, second, *_ = kept("desync_deadlock")
    assert drop(session, **{first.name: first.read_bytes()}) == first.name
    assert drop(session, own__hlo=HLO) == "own.hlo"
    assert drop(session, **{second.name: second.read_bytes()}) == "desync_deadlock (2 ranks)"


def test_what_is_remembered_is_bounded_and_replaced_by_name() -> None:
    rank0, rank1 = (chakra(node(1, 4, f"work {rank}")) for rank in range(2))
    held = DroppedTraces(len(rank0) + len(rank1))
    held.take("x.0.et", rank0)
    held.take("x.1.et", rank1)
    held.take("own.hlo", HLO)
    assert held.beside("x.1.et") == [("x.0.et", rank0)]
    assert held.beside("own.hlo") == []
    held.take("x.0.et", rank1)
    assert held.beside("x.1.et") == [("x.0.et", rank1)]
    held.take("x.2.et", rank0)
    assert [name for name, _ in held.beside("x.2.et")] == ["x.0.et"]
