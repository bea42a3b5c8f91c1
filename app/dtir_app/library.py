"""The programs that a server knows: files it was started with, the gallery, and what people dropped onto the page.

A program is read and judged once, in a worker thread, and shared by all sessions. What is kept is bounded by number and by memory; the
least recently used one is let go first. The same content under several names is kept once.
"""

from __future__ import annotations

import os
import threading
from collections import OrderedDict
from collections.abc import Callable, Iterable, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import TypeVar

from dtir.importers import DEFAULT_LIMITS, Limits, load_bytes, load_path, load_stream, open_set
from dtir.importers.base import Imported, refused
from dtir.importers.read import problem
from dtir.importers.several import RANK_FORMATS, Sniffed, group, sniff, sniff_bytes
from dtir_app.columns import open_imported
from dtir_app.folder import Folder, Listing
from dtir_app.gallery import Example
from dtir_app.judging import judge
from dtir_app.preparing import prepare
from dtir_app.profiles import Profiles
from dtir_app.profiles import apart as apart_profiles
from dtir_app.runs import Runs, apart
from dtir_app.store import Opened
from dtir_app.text import bytes_text

T = TypeVar("T")

KEPT = 12
WORKERS = 2
UPLOAD_LIMIT_BYTES = 64 * 1024 * 1024
UNPACKED_LIMIT_BYTES = 256 * 1024 * 1024

CACHE_BYTES = 1024 * 1024 * 1024
"""Memory for programs that were opened, as `weight_bytes` counts it."""

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


ITEM_BYTES = 2500
"""Memory of a task or tensor with its columns, pictures included. Measured with tracemalloc on the bundled programs: 1,000 to 1,500
bytes when just opened (2,800 for the first one, which brings what all share), the rest is room for scenes and table columns."""


def weight_bytes(opened: Opened) -> int:
    """About how much memory an open program takes."""
    store = opened.store
    items = len(store.tasks) + len(store.values) if store is not None else 0
    return 65_536 + ITEM_BYTES * items


def _size_text(path: Path) -> str:
    try:
        return bytes_text(path.stat().st_size)
    except OSError:
        return "cannot be read"


def _nothing() -> None:
    """Nothing has to be done."""


def open_program(imported: Imported) -> Opened:
    """An import, judged, as columns, with what its first picture needs."""
    return prepare(open_imported(imported, judge))


def _holds(future: Future[Opened], opened: Opened) -> bool:
    """Whether a finished reading holds the same content in the same format under the same label."""
    if not future.done() or future.cancelled() or future.exception() is not None:
        return False
    other = future.result()
    return (other.digest, other.format, other.label) == (opened.digest, opened.format, opened.label)


def _together(paths: Sequence[Path]) -> list[tuple[Path, ...]]:
    """Files that are opened as one program: traces of the ranks of one job; any other file stands alone."""
    if len(paths) < 2:
        return [(path,) for path in paths]
    by_name = {str(path): path for path in paths}
    return [tuple(by_name[name] for name in one.files) for one in group([(str(path), sniff(path)) for path in paths])]


class DroppedTraces:
    """The traces of ranks that were dropped onto one page, so that those that come later are opened with them.

    Args:
        most_bytes: of all together; beyond that the oldest are forgotten.
    """

    def __init__(self, most_bytes: int) -> None:
        self._most_bytes = most_bytes
        self._files: dict[str, tuple[bytes, Sniffed]] = {}

    def take(self, name: str, data: bytes) -> None:
        """Remember a file, in place of an earlier one of its name; one that is no trace of a rank is not."""
        self._files.pop(name, None)
        seen = sniff_bytes(data)
        if seen.format in RANK_FORMATS and len(data) <= self._most_bytes:
            self._files[name] = data, seen
        while sum(len(held) for held, _ in self._files.values()) > self._most_bytes:
            del self._files[next(iter(self._files))]

    def beside(self, name: str) -> list[tuple[str, bytes]]:
        """The files that belong to the same job as one that was taken."""
        sets = group([(known, seen) for known, (_, seen) in self._files.items()])
        own = next((one.files for one in sets if name in one.files and one.joined), ())
        return [(known, self._files[known][0]) for known in own if known != name]


class Library:
    """Programs by key and by digest."""

    def __init__(
        self,
        paths: Sequence[Path] = (),
        gallery: Iterable[Example] = (),
        *,
        folder: Path | None = None,
        kept: int = KEPT,
        cache_bytes: int = CACHE_BYTES,
        limits: Limits = DEFAULT_LIMITS,
        upload_limits: Limits = UPLOAD_LIMITS,
        upload_bytes: int = UPLOAD_LIMIT_BYTES,
        read_path: Callable[[Path], Imported] | None = None,
        read_bytes: Callable[..., Imported] = load_bytes,
        settled: Callable[[], None] = _nothing,
    ) -> None:
        read_path = read_path or partial(load_path, limits=limits)
        self._pool = ThreadPoolExecutor(WORKERS, thread_name_prefix="dtir-open")
        paths, records = apart(paths)
        paths, profiles = apart_profiles(paths)
        self.runs, self.profiles = Runs(records), Profiles(profiles)
        self._settled = settled
        self._planners = ThreadPoolExecutor(1, thread_name_prefix="dtir-plan")
        self._lock = threading.Lock()
        self._kept, self._cache_bytes = kept, cache_bytes
        self._upload_limits = upload_limits
        self._read_bytes = partial(read_bytes, limits=upload_limits)
        self.upload_bytes = upload_bytes
        self._folder, self._limits = Folder(folder) if folder is not None else None, limits
        self.listing = self._folder.listing() if self._folder is not None else Listing((), 0)
        self._readers: dict[str, Callable[[], Imported]] = {}
        self._futures: OrderedDict[str, Future[Opened]] = OrderedDict()
        self._entries: dict[str, Entry] = {}
        self._by_digest: dict[str, str] = {}
        for number, files in enumerate(_together(paths)):
            key, path = f"file:{number}", files[0]
            size = _size_text(path) if len(files) == 1 else f"{len(files)} files, one program"
            self._entries[key] = Entry(key, path.name, path.name, "", size, "file")
            self._readers[key] = (
                partial(read_path, path) if len(files) == 1 else partial(open_set, files, limits=limits)
            )
        for name in self.listing.names:
            self._offer(name)
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

    def _offer(self, name: str) -> None:
        """Offer a file of the served folder."""
        key = f"folder:{name}"
        size = _size_text(self._folder.root / name) if self._folder is not None else ""
        self._entries[key] = Entry(key, name, name, "", size, "folder")
        self._readers[key] = partial(self._read_inside, name)

    def _read_inside(self, name: str) -> Imported:
        """Import a file of the served folder, opened so that it cannot be one outside."""
        found = self._folder.open(name) if self._folder is not None else None
        if found is None:
            gone = problem("input.not_found", f"there is no file {name} in the served folder", hint="check the name")
            return refused(name, *gone)
        with os.fdopen(found, "rb") as stream:
            return load_stream(stream, name=name, limits=self._limits)

    def entry(self, key: str) -> Entry | None:
        """What is known by a key; a file of the served folder also when it came later or is not listed."""
        if key not in self._entries and key.startswith("folder:") and self._folder is not None:
            name = key.removeprefix("folder:")
            if self._folder.holds(name):
                with self._lock:
                    self._offer(name)
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
            future = self._futures[key] = self._pool.submit(lambda: self._settle(open_program(reader())))
        future.add_done_callback(partial(self._note, key))
        self._let_go()
        return future

    def upload(self, name: str, data: bytes, beside: Sequence[tuple[str, bytes]] = ()) -> Future[Opened]:
        """Read what somebody dropped. It is known by its digest from then on; the same content is kept once.

        Args:
            name: of the file.
            data: its content.
            beside: traces of other ranks of the same job, dropped before: together they are one program.
        """

        def read() -> Imported:
            if beside:
                return open_set([*beside, (name, data)], limits=self._upload_limits)
            return self._read_bytes(data, name=name)

        future = self._pool.submit(lambda: self._settle(open_program(read())))
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
        if future.cancelled() or future.exception() is not None or not future.result().digest:
            return
        opened = future.result()
        with self._lock:
            known = self._by_digest.setdefault(opened.digest, key)
            same = self._futures.get(known)
            if same is not None and same is not future and _holds(same, opened):
                self._futures[key] = same  # the same content under another name
        self._let_go()

    def _weight(self) -> int:
        """Memory of what is kept, each program once."""
        done = {id(future): future for future in self._futures.values() if future.done() and not future.cancelled()}
        return sum(weight_bytes(future.result()) for future in done.values() if future.exception() is None)

    def _let_go(self) -> None:
        with self._lock:
            for key in list(self._futures):
                # The last one stays whatever its size: somebody looks at it.
                fits = len(self._futures) == 1 or self._weight() <= self._cache_bytes
                if len(self._futures) <= self._kept and fits:
                    return
                if not self._futures[key].done():
                    continue
                opened = self._futures.pop(key)
                if key.startswith("upload:"):
                    # It cannot be read again: a link to it will say so.
                    self._entries.pop(key, None)
                    if opened.exception() is None:
                        self._by_digest.pop(opened.result().digest, None)

    def work(self, task: Callable[[], T]) -> Future[T]:
        """Do something that takes long, off the event loop; one after the other."""
        return self._planners.submit(lambda: self._settle(task()))

    def _settle(self, made: T) -> T:
        self._settled()
        return made

    def close(self) -> None:
        """Let the workers end."""
        self._planners.shutdown(wait=False, cancel_futures=True)
        self._pool.shutdown(wait=False, cancel_futures=True)
