from __future__ import annotations

import gzip
import io
import os
from pathlib import Path

import pytest

from dtir.importers.base import Limits
from dtir.importers.read import PIECE_BYTES, Unpacked, read_path, read_stream
from dtir.schema.diagnostics import Diagnostic, DiagnosticSet
from dtir.schema.result import Err, Ok

SMALL = Limits(size_bytes=1000, json_depth=10)


def nothing_refused(head: bytes) -> DiagnosticSet | None:
    return None


def read(data: bytes, limits: Limits = SMALL) -> Unpacked | Diagnostic:
    match read_stream(io.BytesIO(data), limits, nothing_refused):
        case Ok(unpacked):
            return unpacked
        case Err(error):
            (found,) = error
            return found


def code(data: bytes, limits: Limits = SMALL) -> str:
    found = read(data, limits)
    assert isinstance(found, Diagnostic), "it was accepted"
    assert found.hint
    return found.code


def test_plain_and_packed_bytes_are_the_same() -> None:
    assert read(b"HloModule m") == read(gzip.compress(b"HloModule m")) == Unpacked(b"HloModule m")


def test_a_packed_file_of_several_members_is_read_to_the_end() -> None:
    assert read(gzip.compress(b"ab") + gzip.compress(b"cd")) == Unpacked(b"abcd")


@pytest.mark.parametrize("data", [b"", b" \n\t ", gzip.compress(b""), gzip.compress(b"\n")])
def test_nothing_but_white_space_is_empty(data: bytes) -> None:
    assert code(data) == "input.empty"


def test_the_limit_counts_unpacked_bytes() -> None:
    assert code(b"x" * 1001) == "input.too_large"
    assert code(gzip.compress(b"x" * 1001)) == "input.too_large"
    assert isinstance(read(b"x" * 1000), Unpacked)


def test_a_bomb_is_refused_while_it_unpacks() -> None:
    bomb = gzip.compress(b" " * 50_000_000)
    assert len(bomb) < 60_000
    assert code(bomb, Limits(size_bytes=3 * PIECE_BYTES)) == "input.too_large"


def test_lines_and_commas_are_counted_before_anything_is_parsed() -> None:
    few = Limits(size_bytes=1000, items=10)
    assert code(b"[" + b"0," * 11, few) == "input.too_many_items"
    assert code(gzip.compress(b"x\n" * 11), few) == "input.too_many_items"
    assert isinstance(read(b"x\n" * 10, few), Unpacked)


def test_depth_is_refused_before_the_rest_is_read() -> None:
    class Endless(io.RawIOBase):
        def readable(self) -> bool:
            return True

        def readinto(self, buffer: bytearray) -> int:
            buffer[:] = b"[" * len(buffer)
            return len(buffer)

    match read_stream(Endless(), Limits(), nothing_refused):
        case Err(error):
            assert [item.code for item in error] == ["input.too_deep"]
        case Ok():
            pytest.fail("it was accepted")


def test_depth_counts_for_json_alone() -> None:
    assert isinstance(read(b"f { " + b"[" * 50), Unpacked)
    assert code(b"\n  " + b"[" * 50) == "input.too_deep"


def test_what_json_text_leaves_open_is_told() -> None:
    assert read(b'{"a": ["b') == Unpacked(b'{"a": ["b', json_open=2, in_string=True)


def test_a_cut_archive_is_truncated_and_a_changed_one_damaged() -> None:
    packed = gzip.compress(os.urandom(400))
    assert code(packed[:-30]) == "input.truncated"
    assert code(packed[:200] + bytes([packed[200] ^ 255]) + packed[201:]) == "input.unreadable"
    assert code(gzip.compress(b"x") + b"rubbish") == "input.unreadable"


def test_what_the_first_piece_refuses_is_not_read_on() -> None:
    refusal = DiagnosticSet.of(Diagnostic("input.encoding", "no"))
    heads: list[int] = []

    def refuse(head: bytes) -> DiagnosticSet | None:
        heads.append(len(head))
        return refusal

    assert read_stream(io.BytesIO(b"x" * 5 * PIECE_BYTES), Limits(), refuse) == Err(refusal)
    assert heads == [PIECE_BYTES]


def path_problem(path: Path) -> Diagnostic:
    match read_path(path, SMALL, nothing_refused):
        case Err(error):
            (found,) = error
            return found
        case Ok():
            raise AssertionError("it was accepted")


def test_paths_that_are_no_files(tmp_path: Path) -> None:
    (tmp_path / "mlp.hlo").write_text("HloModule m")
    assert path_problem(tmp_path).code == "input.directory"
    missing = path_problem(tmp_path / "mlp.hol")
    assert missing.code == "input.not_found"
    assert missing.hint == f"did you mean {tmp_path / 'mlp.hlo'}?"
    assert path_problem(tmp_path / "no" / "x").code == "input.not_found"
    assert path_problem(Path("a\0b")).code == "input.unreadable"


@pytest.mark.skipif(not hasattr(os, "geteuid") or os.geteuid() == 0, reason="root may read everything")
def test_a_file_without_permission(tmp_path: Path) -> None:
    path = tmp_path / "x"
    path.write_text("x")
    path.chmod(0)
    assert path_problem(path).code == "input.unreadable"


@pytest.mark.parametrize("bad", [{"size_bytes": 0}, {"json_depth": -1}, {"size_bytes": 1.5}])
def test_limits_are_positive_whole_numbers(bad: dict[str, int]) -> None:
    with pytest.raises(ValueError, match=next(iter(bad))):
        Limits(**bad)
