"""The served folder: hostile names lead nowhere, and nothing that changes meanwhile leads out."""

from __future__ import annotations

import os
import sys
from pathlib import Path
from urllib.parse import quote

import pytest
from dtir_app.folder import Folder, parts_of
from dtir_app.library import Library
from dtir_app.session import Session
from hypothesis import given
from hypothesis import strategies as st

from tests.app.build import example

SECRET = b"HloModule secret"


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A served folder beside a file that must stay out of reach, with every way out of it that a folder can hold."""
    made = tmp_path / "served"
    (made / "inner").mkdir(parents=True)
    (tmp_path / "secret.hlo").write_bytes(SECRET)
    (tmp_path / "beside").mkdir()
    (tmp_path / "beside" / "secret.hlo").write_bytes(SECRET)
    (tmp_path / "served-too").mkdir()
    (tmp_path / "served-too" / "secret.hlo").write_bytes(SECRET)
    (made / "good.yaml").write_bytes(example("faults").path.read_bytes())
    (made / "inner" / "good.yaml").write_bytes(example("faults").path.read_bytes())
    (made / ".hidden.hlo").write_bytes(SECRET)
    (made / "link.hlo").symlink_to(tmp_path / "secret.hlo")
    (made / "near.yaml").symlink_to(made / "good.yaml")
    (made / "out").symlink_to(tmp_path / "beside", target_is_directory=True)
    if hasattr(os, "mkfifo"):
        os.mkfifo(made / "pipe")
    return made


HOSTILE = [
    "../secret.hlo",
    "inner/../../secret.hlo",
    "./good.yaml",
    "inner/./good.yaml",
    "/etc/passwd",
    "//etc/passwd",
    "inner//good.yaml",
    "good.yaml/",
    "..",
    ".",
    "",
    "../served-too/secret.hlo",
    "..\\secret.hlo",
    "%2e%2e/secret.hlo",
    "%2e%2e%2fsecret.hlo",
    "good.yaml\0",
    "good.yaml\0.hlo",
    "C:/secret.hlo",
    "\\\\server\\share\\x",
    ".hidden.hlo",
    "link.hlo",
    "out/secret.hlo",
    "out",
    "inner",
    "pipe",
    "~/secret.hlo",
    "good.yaml" + "/x" * 1000,
    "no-such-file",
    "\ud800",
]


@pytest.mark.parametrize("name", HOSTILE, ids=range(len(HOSTILE)))
def test_no_name_leads_out_of_the_folder(folder: Path, name: str) -> None:
    assert Folder(folder).open(name) is None
    assert Library(folder=folder).entry(f"folder:{name}") is None


@pytest.mark.parametrize("twice", [False, True])
@pytest.mark.parametrize("name", ["../secret.hlo", "/etc/passwd", "good.yaml\0", "link.hlo", "out/secret.hlo"])
def test_no_address_leads_out_of_the_folder(folder: Path, name: str, twice: bool) -> None:
    library = Library(folder=folder)
    library.open(library.first).result()
    text = quote(name, safe="")
    session = Session(library, query=f"?f={quote(text) if twice else text}")
    assert session.state.notice.tone == "warning"
    assert "there is no file" in session.state.notice.text
    assert session.state.opened.label == "good.yaml"


@given(st.text(max_size=60))
def test_the_parts_of_a_name_are_plain_names(name: str) -> None:
    for part in parts_of(name) or ():
        assert part not in ("", ".", "..")
        assert not set(part) & set("/\\\0:")


def test_a_file_that_came_later_opens_by_its_name(folder: Path) -> None:
    library = Library(folder=folder)
    (folder / "inner" / "later.yaml").write_bytes(example("faults").path.read_bytes())
    assert [entry.name for entry in library.entries("folder")] == ["good.yaml", "inner/good.yaml"]
    assert library.entry("folder:inner/later.yaml") is not None
    assert library.open("folder:inner/later.yaml").result().store is not None


@pytest.mark.skipif(sys.platform == "win32", reason="links need a privilege there")
def test_a_link_that_takes_the_place_of_a_listed_file_leads_nowhere(folder: Path) -> None:
    library = Library(folder=folder)
    (folder / "good.yaml").unlink()
    (folder / "good.yaml").symlink_to(folder.parent / "secret.hlo")
    (folder / "inner" / "good.yaml").unlink()
    (folder / "inner").rmdir()
    (folder / "inner").symlink_to(folder.parent / "beside", target_is_directory=True)
    (folder.parent / "beside" / "good.yaml").write_bytes(SECRET)
    for name in ("good.yaml", "inner/good.yaml"):
        opened = library.open(f"folder:{name}").result()
        assert opened.store is None
        assert [item.code for item in opened.findings] == ["input.not_found"]


def test_a_large_folder_is_listed_in_part_and_says_so(tmp_path: Path) -> None:
    for number in range(30):
        (tmp_path / f"{number:02}.hlo").write_text("HloModule m")
    whole = Folder(tmp_path).listing(limit=30)
    assert (len(whole.names), whole.total, whole.note) == (30, 30, "")
    part = Folder(tmp_path).listing(limit=10)
    assert part.names == tuple(f"{number:02}.hlo" for number in range(10))
    assert "10 of 30 files" in part.note
    cut = Folder(tmp_path).listing(visited=7)
    assert (len(cut.names), cut.cut) == (7, True)
    assert "large" in cut.note


def test_the_folder_itself_may_be_a_link(tmp_path: Path, folder: Path) -> None:
    (tmp_path / "alias").symlink_to(folder, target_is_directory=True)
    assert Library(folder=tmp_path / "alias").open("folder:good.yaml").result().store is not None
