from __future__ import annotations

import gzip
import io
import os
import stat
from pathlib import Path

import pytest

from dtir.cli.command import Console, Failure
from dtir.cli.writing import write


@pytest.fixture
def console() -> Console:
    return Console(io.StringIO(), io.StringIO(), {})


def test_a_file_is_replaced_as_a_whole_and_nothing_stays_behind(tmp_path: Path, console: Console) -> None:
    path = tmp_path / "x.json"
    path.write_text("old")
    path.chmod(0o640)
    write(str(path), "nytt å", console)
    assert path.read_text(encoding="utf-8") == "nytt å"
    assert stat.S_IMODE(path.stat().st_mode) == 0o640
    assert list(tmp_path.iterdir()) == [path]


def test_a_new_file_has_the_usual_permissions(tmp_path: Path, console: Console) -> None:
    old = os.umask(0o027)
    try:
        write(str(tmp_path / "x"), "x", console)
    finally:
        os.umask(old)
    assert stat.S_IMODE((tmp_path / "x").stat().st_mode) == 0o640


def test_a_failed_write_leaves_what_was_there(
    tmp_path: Path, console: Console, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "x"
    path.write_text("old")

    def full(*args: object) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "fsync", full)
    with pytest.raises(Failure, match="No space left"):
        write(str(path), "new", console)
    assert path.read_text() == "old"
    assert list(tmp_path.iterdir()) == [path]


def test_a_link_stays_a_link(tmp_path: Path, console: Console) -> None:
    target = tmp_path / "target"
    target.write_text("old")
    (tmp_path / "link").symlink_to(target)
    write(str(tmp_path / "link"), "new", console)
    assert (tmp_path / "link").is_symlink()
    assert target.read_text() == "new"


def test_packed_output_is_the_same_every_time(tmp_path: Path, console: Console) -> None:
    for name in ("a.gz", "b.gz"):
        write(str(tmp_path / name), "text", console)
    assert gzip.decompress((tmp_path / "a.gz").read_bytes()) == b"text"
    assert (tmp_path / "a.gz").read_bytes() == (tmp_path / "b.gz").read_bytes()


def test_standard_output(console: Console) -> None:
    write("-", "text", console)
    assert isinstance(console.out, io.StringIO)
    assert console.out.getvalue() == "text"


@pytest.mark.parametrize("name", ["missing/x", "."])
def test_what_cannot_be_written_is_said(tmp_path: Path, console: Console, name: str) -> None:
    with pytest.raises(Failure) as raised:
        write(str(tmp_path / name), "x", console)
    assert [item.code for item in raised.value.diagnostics] == ["cli.output"]


def test_a_device_is_written_to(console: Console) -> None:
    write(os.devnull, "x", console)
    assert not Path(os.devnull).is_file()
