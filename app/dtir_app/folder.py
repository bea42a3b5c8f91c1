"""The folder whose programs links may open: a name leads to a file inside it, or nowhere.

A name comes from an address, so anybody can write it. It is taken apart here, never joined to a path and hoped for: no part may be
empty, hidden, ``.``, ``..`` or hold a separator or NUL. The file is then opened part by part from the folder, following
no link on the way, so that nothing that changes between looking and opening leads out.
"""

from __future__ import annotations

import os
import stat
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

NAME_CHARS = 500
LISTED = 500
VISITED = 20_000

_BY_LINK = "a link (?f=NAME) opens the others too"


def parts_of(name: str) -> tuple[str, ...] | None:
    """The parts of a name that may stand in an address; None when it may not.

    >>> parts_of("runs/a.hlo"), parts_of("../a.hlo"), parts_of("/etc/passwd"), parts_of("runs//a.hlo")
    (('runs', 'a.hlo'), None, None, None)
    """
    if not name or len(name) > NAME_CHARS:
        return None
    parts = tuple(name.split("/"))
    for part in parts:
        if not part or part.startswith(".") or any(letter in part for letter in ("\\", "\0", ":")):
            return None
    return parts


@dataclass(frozen=True, slots=True)
class Listing:
    """Names in a folder.

    Args:
        names: the first ones in order, with ``/`` between parts.
        total: how many were found.
        cut: whether looking ended before everything was seen.
    """

    names: tuple[str, ...]
    total: int
    cut: bool = False

    @property
    def note(self) -> str:
        """What is not listed, in one sentence; empty when everything is."""
        if self.cut:
            return f"The folder is large: {len(self.names)} of its first {self.total:,} files are listed; {_BY_LINK}."
        if self.total > len(self.names):
            return f"{len(self.names)} of {self.total:,} files are listed; {_BY_LINK}."
        return ""


@dataclass(frozen=True, slots=True)
class Folder:
    """A served folder.

    Args:
        root: the folder; made absolute, links to it followed once.
    """

    root: Path
    _real: Path = field(init=False, repr=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "_real", self.root.resolve())

    def listing(self, limit: int = LISTED, visited: int = VISITED) -> Listing:
        """The files that names lead to. Hidden ones and links are left out; a folder without end is not walked to its end."""
        names: list[str] = []
        cut = False
        for seen, name in enumerate(_walk(self._real)):
            if seen >= visited:
                cut = True
                break
            names.append(name)
        names.sort()
        return Listing(tuple(names[:limit]), len(names), cut)

    def open(self, name: str) -> int | None:
        """A descriptor of the file that a name leads to, for reading; None when it leads nowhere."""
        parts = parts_of(name)
        if parts is None:
            return None
        try:
            return _open_inside(self._real, parts)
        except (OSError, ValueError):
            return None

    def holds(self, name: str) -> bool:
        """Whether a name leads to a file here."""
        found = self.open(name)
        if found is None:
            return False
        os.close(found)
        return True


def _walk(root: Path) -> Iterator[str]:
    """Names of files below a folder, nearest folders first; no order within."""
    waiting: list[tuple[Path, str]] = [(root, "")]
    for folder, before in waiting:
        try:
            with os.scandir(folder) as entries:
                for entry in entries:
                    name = f"{before}{entry.name}"
                    if parts_of(name) is None or entry.is_symlink():
                        continue
                    if entry.is_dir(follow_symlinks=False):
                        if len(waiting) < VISITED:
                            waiting.append((Path(entry.path), f"{name}/"))
                    elif entry.is_file(follow_symlinks=False):
                        yield name
        except OSError:
            continue  # not ours to read


def _open_inside(root: Path, parts: tuple[str, ...]) -> int | None:
    """Walk from the folder to the file by descriptors, following no link."""
    if not hasattr(os, "O_NOFOLLOW"):  # Windows: no such flag; what the path really is must lie inside
        path = root.joinpath(*parts).resolve(strict=True)
        return os.open(path, os.O_RDONLY | getattr(os, "O_BINARY", 0)) if path.is_relative_to(root) else None
    held = os.open(root, os.O_RDONLY | os.O_DIRECTORY)
    try:
        for part in parts[:-1]:
            inner = os.open(part, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW, dir_fd=held)
            os.close(held)
            held = inner
        # Not blocking: a pipe in the folder would keep the reader waiting for a writer.
        made = os.open(parts[-1], os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK, dir_fd=held)
    finally:
        os.close(held)
    if not stat.S_ISREG(os.fstat(made).st_mode):
        os.close(made)
        return None
    return made
