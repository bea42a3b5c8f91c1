"""The machine profiles that a server plans with: the presets, files it was started with, and what people dropped onto the page."""

from __future__ import annotations

import threading
from collections import OrderedDict
from collections.abc import Iterable
from pathlib import Path

from dtir.cost.presets import load_preset, preset_names
from dtir.cost.profile import SCHEMA, MachineProfile
from dtir.cost.profile_json import read_profile
from dtir.schema.result import Err

PRESETS = preset_names()
DEFAULT_PROFILE = "h100-nvlink-ib"
KEPT = 16
MOST_BYTES = 16 * 1024 * 1024
HEAD_BYTES = 4096


class ProfileError(ValueError):
    """A file is no machine profile; the text says why."""


def looks_like_profile(content: bytes) -> bool:
    """Whether bytes say that they are a machine profile."""
    return f'"{SCHEMA}"'.encode() in content[:HEAD_BYTES]


def apart(paths: Iterable[Path]) -> tuple[list[Path], list[Path]]:
    """Files that are something else, and files that say that they are machine profiles."""
    others: list[Path] = []
    profiles: list[Path] = []
    for path in paths:
        try:
            with path.open("rb") as stream:
                (profiles if looks_like_profile(stream.read(HEAD_BYTES)) else others).append(path)
        except OSError:
            others.append(path)
    return others, profiles


class Profiles:
    """Profiles by name.

    Args:
        paths: files to begin with; what cannot be read is noted in `problems`.
    """

    def __init__(self, paths: Iterable[Path] = ()) -> None:
        self._lock = threading.Lock()
        self._given: OrderedDict[str, MachineProfile] = OrderedDict()
        self.problems: list[str] = []
        for path in paths:
            try:
                with path.open("rb") as stream:
                    self.add(path.name, stream.read(MOST_BYTES + 1))
            except (OSError, ProfileError) as error:
                self.problems.append(
                    str(error) if isinstance(error, ProfileError) else f"{path.name}: {error.strerror}"
                )
        self.first = next(iter(self._given), DEFAULT_PROFILE)
        """What is planned with until somebody chooses another one."""

    @property
    def names(self) -> tuple[str, ...]:
        """Those that were given, then the presets."""
        with self._lock:
            return (*self._given, *PRESETS)

    def find(self, name: str) -> MachineProfile:
        """A profile.

        Raises:
            KeyError: there is none of this name.
        """
        with self._lock:
            given = self._given.get(name)
        return given if given is not None else load_preset(name)

    def add(self, file: str, content: bytes) -> str:
        """Keep a profile, and how it is called from then on; the oldest of more than `KEPT` is let go.

        Args:
            file: what to call the file in errors.
            content: of the file.

        Raises:
            ProfileError: it is no profile.
        """
        if len(content) > MOST_BYTES:
            raise ProfileError(
                f"{file} is larger than {MOST_BYTES // 2**20} MiB, the most that a machine profile may have"
            )
        try:
            text = content.decode("utf-8")
        except UnicodeDecodeError as error:
            raise ProfileError(f"{file} is no machine profile: it is not UTF-8 at byte {error.start}") from None
        found = read_profile(text)
        if isinstance(found, Err):
            reasons = [f"{item.message} [{item.code}]" for item in found.error]
            more = f" and {len(reasons) - 3} more" if len(reasons) > 3 else ""
            raise ProfileError(f"{file} is no machine profile: {'; '.join(reasons[:3])}{more}")
        return self.keep(found.value)

    def keep(self, profile: MachineProfile) -> str:
        """Keep a profile that was read already, and how it is called from then on."""
        with self._lock:
            number = 1
            name = profile.id
            while name in PRESETS or self._given.get(name, profile) != profile:
                number += 1
                name = f"{profile.id} ({number})"
            self._given[name] = profile
            self._given.move_to_end(name)
            while len(self._given) > KEPT:
                self._given.popitem(last=False)
        return name
