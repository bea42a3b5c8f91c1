"""The programs that a server knows: files it was started with, the gallery, and what people dropped onto the page.

A program is read and judged once, in a worker thread, and shared by all sessions. A few are kept; the least recently used one
that can be read again is let go first.
"""

from __future__ import annotations

import itertools
import threading
from collections import OrderedDict
from collections.abc import Callable, Iterable, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass
from functools import partial
from pathlib import Path

from dtir.importers import Limits, load_bytes, load_path
from dtir.importers.base import Imported
from dtir_app.columns import open_imported
from dtir_app.gallery import Example
from dtir_app.judging import judge
from dtir_app.store import Opened
from dtir_app.text import bytes_text

KEPT = 12
WORKERS = 2
UPLOAD_LIMIT_BYTES = 64 * 1024 * 1024
UNPACKED_LIMIT_BYTES = 256 * 1024 * 1024

FOLDER_LIMIT = 500

UPLOAD_LIMITS = Limits(size_bytes=UNPACKED_LIMIT_BYTES)


@dataclass(frozen=True, slots=True)
class Entry:
    """A program that can be opened.

    Args:
        key: what the page asks for it by.
        name: short name.
        title, text, meta: what the gallery shows.
        kind: ``file``, ``folder``, ``gallery`` or ``upload``.
        digest: of its content; empty until it was read.
    """

    key: str
    name: str
    title: str
    text: str
    meta: str
    kind: str
    digest: str = ""


def listed(folder: Path) -> list[Path]:
    """The files below a folder that links may open: at most `FOLDER_LIMIT`, hidden ones and links out of it left out."""
    root = folder.resolve()
    found = (
        path
        for path in sorted(folder.rglob("*"))
        if path.is_file()
        and path.resolve().is_relative_to(root)
        and not any(part.startswith(".") for part in path.relative_to(folder).parts)
    )
    return list(itertools.islice(found, FOLDER_LIMIT))


def _size_text(path: Path) -> str:
    try:
        return bytes_text(path.stat().st_size)
    except OSError:
        return "cannot be read"


def _opened(imported: Imported) -> Opened:
    return open_imported(imported, judge)


class Library:
    """Programs by key and by digest."""

    def __init__(
        self,
        paths: Sequence[Path] = (),
        gallery: Iterable[Example] = (),
        *,
        folder: Path | None = None,
        kept: int = KEPT,
        read_path: Callable[[Path], Imported] = load_path,
        read_bytes: Callable[..., Imported] = load_bytes,
    ) -> None:
        self._pool = ThreadPoolExecutor(WORKERS, thread_name_prefix="dtir-open")
        self._lock = threading.Lock()
        self._kept = kept
        self._read_bytes = read_bytes
        self._readers: dict[str, Callable[[], Imported]] = {}
        self._futures: OrderedDict[str, Future[Opened]] = OrderedDict()
        self._entries: dict[str, Entry] = {}
        self._by_digest: dict[str, str] = {}
        for number, path in enumerate(paths):
            key = f"file:{number}"
            self._entries[key] = Entry(key, path.name, path.name, "", _size_text(path), "file")
            self._readers[key] = partial(read_path, path)
        for path in listed(folder) if folder is not None else ():
            name = path.relative_to(folder).as_posix()
            self._entries[f"folder:{name}"] = Entry(f"folder:{name}", name, name, "", _size_text(path), "folder")
            self._readers[f"folder:{name}"] = partial(read_path, path)
        for example in gallery:
            key = f"gallery:{example.name}"
            self._entries[key] = Entry(
                key, example.name, example.title, example.text, example.meta, "gallery", example.digest
            )
            self._readers[key] = partial(read_path, example.path)
            self._by_digest.setdefault(example.digest, key)

    def entries(self, kind: str) -> list[Entry]:
        """The programs of a kind, in the order in which they came."""
        with self._lock:
            return [entry for entry in self._entries.values() if entry.kind == kind]

    def entry(self, key: str) -> Entry | None:
        return self._entries.get(key)

    @property
    def first(self) -> str:
        """The program to open when nobody asked for one; empty when there is none."""
        order = ("file", "gallery", "folder")
        return next((entry.key for kind in order for entry in self._entries.values() if entry.kind == kind), "")

    def key_of(self, digest: str) -> str:
        """The program with a digest, or an empty text."""
        with self._lock:
            return self._by_digest.get(digest, "")

    def key_starting(self, digest: str) -> str:
        """The one program whose digest begins so, or an empty text."""
        with self._lock:
            found = [key for known, key in self._by_digest.items() if known.startswith(digest)]
        return found[0] if len(found) == 1 else ""

    def open(self, key: str) -> Future[Opened]:
        """The program, being read or read.

        Raises:
            KeyError: no such program.
        """
        with self._lock:
            if key in self._futures:
                self._futures.move_to_end(key)
                return self._futures[key]
            reader = self._readers[key]
            future = self._futures[key] = self._pool.submit(lambda: _opened(reader()))
        future.add_done_callback(partial(self._note, key))
        self._let_go()
        return future

    def upload(self, name: str, data: bytes) -> Future[Opened]:
        """Read what somebody dropped. It is known by its digest from then on; the same content is kept once."""
        future = self._pool.submit(lambda: _opened(self._read_bytes(data, name=name, limits=UPLOAD_LIMITS)))
        future.add_done_callback(self._keep_upload)
        return future

    def _keep_upload(self, future: Future[Opened]) -> None:
        if future.cancelled() or future.exception() is not None:
            return
        opened = future.result()
        if opened.store is None or self.key_of(opened.digest):
            return
        key = f"upload:{opened.digest}"
        with self._lock:
            self._entries[key] = Entry(
                key, opened.label, opened.label, "", f"{opened.format}, dropped onto the page", "upload", opened.digest
            )
            self._by_digest[opened.digest] = key
            self._futures[key] = future
        self._let_go()

    def _note(self, key: str, future: Future[Opened]) -> None:
        if not future.cancelled() and future.exception() is None and future.result().digest:
            with self._lock:
                self._by_digest.setdefault(future.result().digest, key)

    def _let_go(self) -> None:
        with self._lock:
            for key in list(self._futures):
                if len(self._futures) <= self._kept:
                    return
                if not self._futures[key].done():
                    continue
                opened = self._futures.pop(key)
                if key.startswith("upload:"):
                    # It cannot be read again: a link to it will say so.
                    self._entries.pop(key, None)
                    if opened.exception() is None:
                        self._by_digest.pop(opened.result().digest, None)

    def close(self) -> None:
        """Let the workers end."""
        self._pool.shutdown(wait=False, cancel_futures=True)
