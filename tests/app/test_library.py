from __future__ import annotations

import threading
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
from dtir_app.gallery import examples
from dtir_app.library import Library, weight_bytes

from dtir.importers import Limits, load_path
from tests.app.build import example, opened_example
from tests.helpers.traces import kept


def test_a_program_is_read_once_however_many_ask() -> None:
    reads: list[Path] = []
    lock = threading.Lock()

    def read(path: Path) -> object:
        with lock:
            reads.append(path)
        return load_path(path)

    library = Library([example("ulysses").path], read_path=read)
    with ThreadPoolExecutor(8) as pool:
        stores = list(pool.map(lambda _: library.open("file:0").result().store, range(8)))
    assert len(reads) == 1
    assert len({id(store) for store in stores}) == 1


def test_whoever_asked_is_told_when_something_was_read_or_worked_out() -> None:
    told: list[int] = []
    library = Library((), examples(), settled=lambda: told.append(threading.get_ident()))
    library.open("gallery:faults").result()
    assert len(told) == 1
    library.upload("x.json", b"{}").result()
    assert library.work(lambda: 7).result() == 7
    assert len(told) == 3
    assert threading.get_ident() not in told, "not in the event loop's thread"


def test_nothing_is_read_before_it_is_asked_for() -> None:
    def read(path: Path) -> object:
        raise AssertionError(path)

    library = Library((), examples(), read_path=read)
    assert len(library.entries("gallery")) >= 6
    assert library.key_of(example("fsdp").digest) == "gallery:fsdp"


def test_a_file_is_known_by_its_digest_once_read() -> None:
    library = Library([example("ulysses").path])
    assert library.key_of(example("ulysses").digest) == ""
    library.open("file:0").result()
    assert library.key_of(example("ulysses").digest) == "file:0"
    assert library.key_starting(example("ulysses").digest[:6]) == "file:0"
    assert library.key_starting("ffffff") == ""


def test_the_least_recently_used_are_let_go() -> None:
    paths = [example(name).path for name in ("ulysses", "fsdp", "halo")]
    library = Library(paths, kept=2)
    first = library.open("file:0").result().store
    library.open("file:1").result()
    assert library.open("file:0").result().store is first
    library.open("file:2").result()
    assert library.open("file:0").result().store is first
    assert len(library._futures) == 2


def test_an_upload_that_was_let_go_is_no_longer_offered() -> None:
    library = Library((), kept=1)
    one = library.upload("one.yaml", example("faults").path.read_bytes()).result()
    assert [entry.name for entry in library.entries("upload")] == ["one.yaml"]
    other = example("faults").path.read_bytes().replace(b"name: parallel", b"name: other")
    library.upload("two.yaml", other).result()
    assert [entry.name for entry in library.entries("upload")] == ["two.yaml"]
    assert library.key_of(one.digest) == ""


def test_the_same_content_is_kept_once() -> None:
    library = Library((), examples())
    data = example("faults").path.read_bytes()
    library.upload("mine.yaml", data).result()
    assert library.entries("upload") == []
    assert library.key_of(example("faults").digest) == "gallery:faults"


def test_a_file_that_is_not_there_is_findings() -> None:
    library = Library([Path("no/such/file.hlo")])
    opened = library.open("file:0").result()
    assert opened.store is None
    assert opened.findings[0].code == "input.not_found"


def test_an_unknown_key_is_a_mistake_of_ours() -> None:
    with pytest.raises(KeyError):
        Library().open("file:9")


@pytest.mark.parametrize("item", examples(), ids=lambda item: item.name)
def test_the_gallery_says_what_is_true(item: object) -> None:
    opened = opened_example(item.name)
    assert opened.digest == item.digest
    assert opened.store is not None
    assert item.meta.startswith(opened.store.mesh_text)
    assert f"{len(opened.store.tasks):,} tasks" in item.meta
    assert item.text.endswith(".")
    if item.name != "faults":
        assert opened.store.counts()["error"] == 0


def test_only_files_of_the_served_folder_can_be_opened_by_name(tmp_path: Path) -> None:
    folder = tmp_path / "served"
    (folder / "inner").mkdir(parents=True)
    (folder / ".hidden").mkdir()
    outside = tmp_path / "secret.hlo"
    outside.write_text("HloModule secret")
    for name in ("b.yaml", "inner/a.yaml", ".hidden/c.yaml", ".d.yaml"):
        (folder / name).write_bytes(example("faults").path.read_bytes())
    (folder / "link.hlo").symlink_to(outside)
    library = Library(folder=folder)
    assert [entry.name for entry in library.entries("folder")] == ["b.yaml", "inner/a.yaml"]
    assert library.entry("folder:../secret.hlo") is None
    assert library.open("folder:inner/a.yaml").result().store is not None


def test_the_same_content_under_two_names_of_a_file_is_one_program(tmp_path: Path) -> None:
    (tmp_path / "a").mkdir()
    for name in ("x.yaml", "a/x.yaml"):
        (tmp_path / name).write_bytes(example("faults").path.read_bytes())
    library = Library([tmp_path / "x.yaml", tmp_path / "a" / "x.yaml"])
    one = library.open("file:0").result()
    library.open("file:1").result()
    library._pool.shutdown(wait=True)  # what a worker notes after the result is there
    assert library.open("file:1").result() is one


def test_memory_is_bounded_whatever_the_number() -> None:
    paths = [example(name).path for name in ("ulysses", "fsdp", "halo")]
    fits = sum(weight_bytes(opened_example(name)) for name in ("fsdp", "halo"))
    library = Library(paths, cache_bytes=fits)
    for key in ("file:0", "file:1", "file:2"):
        library.open(key).result()
        library._let_go()  # as the worker does, perhaps a moment later
    assert list(library._futures) == ["file:1", "file:2"]
    one = Library(paths, cache_bytes=1)
    one.open("file:0").result()
    one._let_go()
    assert list(one._futures) == ["file:0"], "what somebody looks at stays"


@pytest.mark.parametrize(
    ("limits", "code"),
    [
        (Limits(size_bytes=100), "input.too_large"),
        (Limits(items=5), "input.too_many_items"),
    ],
)
def test_caps_hold_before_anything_is_parsed(limits: Limits, code: str) -> None:
    faults = example("faults").path
    for opened in (
        Library([faults], limits=limits).open("file:0").result(),
        Library(upload_limits=limits).upload("x.yaml", faults.read_bytes()).result(),
        Library(folder=faults.parent, limits=limits).open(f"folder:{faults.name}").result(),
    ):
        assert opened.store is None
        assert [item.code for item in opened.findings] == [code]


def test_traces_of_the_ranks_of_one_job_are_one_program() -> None:
    ranks = kept("desync_deadlock")
    library = Library([ranks[0], example("ulysses").path, *ranks[1:]])
    joined, alone = library.entries("file")
    assert (joined.name, joined.meta) == (ranks[0].name, "4 files, one program")
    assert alone.name == example("ulysses").path.name
    opened = library.open(joined.key).result()
    assert opened.label == "desync_deadlock (4 ranks)"
    assert "deadlock.cycle" in [item.code for item in opened.findings]
