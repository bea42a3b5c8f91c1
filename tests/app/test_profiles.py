"""Machine profiles of the explorer: given with the files, dropped, or handed over in a notebook."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import pytest
from dtir_app.library import Library
from dtir_app.notebook import explore
from dtir_app.notebook.opening import kernel_library
from dtir_app.panels.sides import plan_of, profile_of
from dtir_app.profiles import DEFAULT_PROFILE, KEPT, MOST_BYTES, PRESETS, ProfileError, Profiles

from dtir.cost.presets import load_preset
from dtir.cost.profile import MachineProfile
from dtir.cost.profile_json import profile_json
from tests.app.build import example
from tests.app.test_session import Page


def mine(name: str = "my-cluster", slower: float = 10.0) -> MachineProfile:
    """The default machine with links so many times slower."""
    preset = load_preset(DEFAULT_PROFILE)
    levels = tuple(replace(level, alpha_s=level.alpha_s * slower) for level in preset.levels)
    return replace(preset, id=name, levels=levels, curves=(), nccl=None)


def content(profile: MachineProfile) -> bytes:
    return profile_json(profile).encode()


def test_files_that_say_so_are_profiles_and_the_first_is_planned_with(tmp_path: Path) -> None:
    path = tmp_path / "machine.json"
    path.write_bytes(content(mine()))
    library = Library([example("fsdp").path, path])
    assert [entry.name for entry in library.entries("file")] == [example("fsdp").path.name]
    assert library.profiles.first == "my-cluster"
    assert library.profiles.names == ("my-cluster", *PRESETS)
    assert library.profiles.problems == []


def test_a_profile_that_cannot_be_read_is_told_and_the_others_stay(tmp_path: Path) -> None:
    broken, good = tmp_path / "broken.json", tmp_path / "good.json"
    broken.write_text('{"schema": "dtir.machine-profile", "version": "1.0.0", "id": 7}', encoding="utf-8")
    good.write_bytes(content(mine()))
    profiles = Profiles([broken, good, tmp_path / "gone.json"])
    assert profiles.first == "my-cluster"
    assert [text.split(" is no machine profile")[0] for text in profiles.problems[:1]] == ["broken.json"]
    assert "gone.json" in profiles.problems[1]


def test_the_same_profile_is_kept_once_and_another_of_its_name_beside_it() -> None:
    profiles = Profiles()
    assert profiles.add("a.json", content(mine())) == "my-cluster"
    assert profiles.add("b.json", content(mine())) == "my-cluster"
    assert profiles.add("c.json", content(mine(slower=3))) == "my-cluster (2)"
    assert profiles.add("d.json", content(mine(DEFAULT_PROFILE))) == f"{DEFAULT_PROFILE} (2)"
    assert profiles.find(DEFAULT_PROFILE) == load_preset(DEFAULT_PROFILE)
    for number in range(KEPT):
        profiles.keep(mine(f"m{number}"))
    assert len(profiles.names) == KEPT + len(PRESETS)
    assert "my-cluster" not in profiles.names


@pytest.mark.parametrize("bad", [b"", b"{", b"\xff\xfe", b"[]", b" " * (MOST_BYTES + 1)])
def test_what_is_no_profile_is_refused(bad: bytes) -> None:
    with pytest.raises(ProfileError, match=r"^x\.json is "):
        Profiles().add("x.json", bad)


def test_a_dropped_profile_is_planned_with_from_then_on() -> None:
    page = Page("fsdp")
    desk = page.session.painter.desk
    assert profile_of(desk) == DEFAULT_PROFILE
    page.send("view", view="timeline")
    before = plan_of(desk)
    page.session._read("machine.json", content(mine(slower=1000)))
    assert page.state.notice.tone == "info"
    assert page.state.notice.text.startswith("my-cluster (")
    assert profile_of(desk) == "my-cluster"
    after = plan_of(desk)
    assert after.makespan_s > before.makespan_s
    assert [
        item["name"] for item in json.loads(page.parts.elements["timelinesides"].payload)["profiles"] if item["on"]
    ] == ["my-cluster"]
    page.session._read("broken.json", b'{"schema": "dtir.machine-profile"}')
    assert page.state.notice.tone == "error"
    assert "broken.json is no machine profile" in page.state.notice.text
    assert profile_of(desk) == "my-cluster"


def test_a_profile_in_a_notebook_is_a_name_a_file_or_an_object(tmp_path: Path) -> None:
    path = tmp_path / "machine.json"
    path.write_bytes(content(mine("from-file")))
    for given, name in ((path, "from-file"), (mine("as-object"), "as-object"), ("tpu-v5p-torus", "tpu-v5p-torus")):
        made = explore(example("fsdp").path, profile=given)
        assert profile_of(made.session.painter.desk) == name
    with pytest.raises(ValueError, match="there is no such file, and the presets are"):
        explore(example("fsdp").path, profile="no-such-machine")
    assert "no-such-machine" not in kernel_library().profiles.names
