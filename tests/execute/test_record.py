from __future__ import annotations

import gzip
import json
import os
from collections.abc import Callable
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from dtir.execute import RecordError, RunRecord, read_record, write_archive, write_record
from dtir.execute.archive import Archive, ArchiveError, pack
from dtir.execute.environment import environment
from dtir.execute.files import write_bytes
from dtir.execute.forecast import PlannedSpans
from dtir.execute.rank_runs import expanded, runs_of
from dtir.execute.record import Columns, StepEntry, ValueCheck, is_record
from dtir.execute.record_file import record_schema


def record(**fields: Any) -> RunRecord:
    columns = Columns()
    columns.add(0, None, 0, 100, 250)
    columns.add(1, 3, 0, 200, 300, 64, 2)
    given: dict[str, Any] = {
        "program": {"name": "p", "digest": "0" * 40, "ranks": 4},
        "backend": {"name": "numpy"},
        "options": {"seed": 0},
        "environment": environment(),
        "binding": {"processes": 1},
        "steps": (
            StepEntry(0, "node:0", "ar", "", "exchange", "core.all_reduce", 64, 384, 12.5, "by hand", 0, 0),
            StepEntry(1, "node:1", "f", "body", "local", "core.relu", 0, 0),
        ),
        "records": columns,
        "local_records": columns,
        "rank_sets": ((0, 1, 2, 3), (0, 3)),
        "group_sets": (((0, 1), (2, 3)),),
        "profile": {"id": "here", "standing": "measured", "makespan_us": 30.0},
        "planned": PlannedSpans(
            (0, 1), (0.0, 20.0), (20.0, 30.0), ((0.0, 5.0), None), (1, 10**90), ((0, 1), (0,)), ((0, 3), (1, 2))
        ),
        "totals": {"elapsed_ns": [5]},
        "values": (ValueCheck("value:0", "y", "undivided", float("inf"), 0.5, 3, 8),),
    }
    return RunRecord(**{**given, **fields})


def test_what_is_written_is_read(tmp_path: Path) -> None:
    path = tmp_path / "run.json"
    written = record(complete=False)
    write_record(path, written)
    again = read_record(path)
    assert again == written
    assert not again.complete
    assert list(tmp_path.iterdir()) == [path], "nothing temporary is left"


def test_a_packed_record_is_read_through(tmp_path: Path) -> None:
    path = tmp_path / "run.json.gz"
    write_record(path, record())
    assert path.read_bytes()[:2] == b"\x1f\x8b"
    assert read_record(path) == record()
    assert is_record(path)
    path.write_bytes(path.read_bytes()[:-9])
    with pytest.raises(RecordError, match="ends before it is complete"):
        read_record(path)
    path.write_bytes(b"\x1f\x8b" + b"x" * 20)
    with pytest.raises(RecordError, match="is damaged"):
        read_record(path)
    assert not is_record(path)


def test_what_unpacks_to_more_than_a_record_may_hold_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("dtir.execute.record.MOST_BYTES", 1000)
    path = tmp_path / "run.json.gz"
    path.write_bytes(gzip.compress(b" " * 100_000))
    with pytest.raises(RecordError, match="holds more than 1000 bytes"):
        read_record(path)


def test_the_schema_file_is_that_of_the_code() -> None:
    """Written again by: python -c 'from dtir.execute.record_file import *; print(record_schema(), end="")'."""
    import dtir.execute.record_file

    path = Path(dtir.execute.record_file.__file__).with_name("run-record.schema.json")
    assert path.read_text(encoding="utf-8") == record_schema()


def test_every_key_of_a_record_is_in_the_schema() -> None:
    schema = json.loads(record_schema())
    whole = json.loads(record().to_json())
    assert set(whole) == set(schema["properties"])
    for key, name in (("steps", "StepFile"), ("values", "ValueFile")):
        assert set(whole[key][0]) == set(schema["$defs"][name]["properties"])
    assert set(whole["records"]) == set(schema["$defs"]["ColumnsFile"]["properties"])
    assert set(whole["planned"]) == set(schema["$defs"]["PlannedFile"]["properties"])


@pytest.mark.parametrize(
    ("change", "said"),
    [
        (lambda whole: whole["records"]["step"].__setitem__(0, 7), "records.step names step 7"),
        (lambda whole: whole["local_records"]["step"].__setitem__(0, -1), "local_records.step names step -1"),
        (lambda whole: whole["planned"]["step"].__setitem__(0, 9), "planned.step names step 9"),
        (lambda whole: whole["planned"]["classes"].__setitem__(0, [5]), "planned.classes names a class"),
        (lambda whole: whole["planned"]["arrived_us"].__setitem__(0, [1.0]), "without its arrival"),
        (lambda whole: whole["planned"]["executions"].__setitem__(0, "9" * 400), "at most 300 digits"),
        (lambda whole: whole["planned"]["executions"].__setitem__(0, "-1"), "whole numbers"),
        (lambda whole: whole["planned"]["start_us"].pop(), "the columns of planned differ in length"),
        (lambda whole: whole["steps"][0].__setitem__("ranks", 9), "a set of ranks or groups that is not there"),
    ],
)
def test_what_is_named_by_number_is_there(change: Callable[[dict[str, Any]], object], said: str) -> None:
    whole = json.loads(record().to_json())
    change(whole)
    with pytest.raises(RecordError, match=said):
        RunRecord.from_json(json.dumps(whole))


@given(st.sets(st.integers(0, 300)))
def test_ranks_are_written_as_runs(ranks: set[int]) -> None:
    runs = runs_of(sorted(ranks))
    assert expanded([runs]) == (tuple(sorted(ranks)),)
    assert all(later[0] > earlier[1] + 1 for earlier, later in pairwise(runs))


def test_the_form_is_documented_keys() -> None:
    whole = json.loads(record().to_json())
    assert (whole["schema"], whole["version"]) == ("dtir.run-record", "1.0.0")
    assert whole["records"]["rank"] == [None, 3]
    assert whole["records"]["sent_bytes"] == [None, 64]
    assert whole["values"][0]["max_error"] == "inf"


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ({"schema": "x"}, "schema: Input should be 'dtir.run-record', found 'x'"),
        ({"version": "2.0.0"}, "version: Input should be '1.0.0', found '2.0.0'"),
        ({"records": []}, "records: .* object"),
        ({"records": {"step": []}}, "records.rank: Field required .and 5 more"),
        ({"steps": [{}]}, "steps.0.index: Field required"),
        ({"values": 3}, "values: Input should be a valid (list|array), found 3"),
        ({"complete": 1}, "complete: .* boolean, found 1"),
        ({"totals": None}, "totals: .* found None"),
        ({"surprise": 1}, "surprise: Extra inputs are not permitted"),
        ({"rank_sets": [[[0, 10**9]]]}, "the sets of ranks have more than 1000000 members"),
        ({"rank_sets": [[[0, 999]]] * 2000}, "the sets of ranks have more than 1000000 members"),
        ({"rank_sets": [[[0, 10**9], [10**9, 0]]]}, "more than 1000000 members"),
        ({"rank_sets": [[[3, 2]]]}, r"\[3, 2\] is no run of ranks"),
        ({"rank_sets": [[[-1, 2]]]}, r"\[-1, 2\] is no run of ranks"),
    ],
)
def test_what_is_no_record(change: dict[str, Any], said: str) -> None:
    whole = {**json.loads(record().to_json()), **change}
    with pytest.raises(RecordError, match=said):
        RunRecord.from_json(json.dumps(whole))


@pytest.mark.parametrize("column", ["step", "start_ns"])
@pytest.mark.parametrize("bad", [None, 1.5, "0", True])
def test_columns_hold_whole_numbers(column: str, bad: object) -> None:
    whole = json.loads(record().to_json())
    whole["records"][column][0] = bad
    with pytest.raises(RecordError, match=rf"records\.{column}\.0: .* integer"):
        RunRecord.from_json(json.dumps(whole))


def test_columns_are_equally_long() -> None:
    whole = json.loads(record().to_json())
    whole["records"]["end_ns"].pop()
    with pytest.raises(RecordError, match="differ in length"):
        RunRecord.from_json(json.dumps(whole))


def test_the_environment_names_no_person_or_host() -> None:
    text = json.dumps(environment())
    for private in (os.uname().nodename, str(Path.home())):
        assert len(private) < 3 or private not in text
    assert environment()["packages"]["numpy"] == np.__version__


# -- archives ----------------------------------------------------------------------------------------------------------------


def test_archives_are_numpys_own(tmp_path: Path) -> None:
    path = tmp_path / "x.npz"
    arrays = {"out0": np.arange(6.0).reshape(2, 3), "out1": np.asarray(3, np.int32), "out2": np.zeros((0, 2), bool)}
    write_archive(path, arrays)
    with np.load(path) as again:
        assert set(again) == set(arrays)
        assert all(
            np.array_equal(again[name], array) and again[name].dtype == array.dtype for name, array in arrays.items()
        )
    found = Archive.open(path)
    assert found.headers["out0"].shape == (2, 3)
    assert np.array_equal(found.read("out0"), arrays["out0"])
    assert pack(arrays) == pack(arrays), "the same arrays give the same bytes"


def test_numpys_archives_are_read(tmp_path: Path) -> None:
    path = tmp_path / "x.npz"
    np.savez_compressed(path, in0=np.ones((3, 2), np.float32), in1=np.asfortranarray(np.arange(6).reshape(2, 3)))
    found = Archive.open(path)
    assert found.read("in1").tolist() == [[0, 1, 2], [3, 4, 5]]


def test_a_header_may_state_anything(tmp_path: Path) -> None:
    """A size in a file costs nothing until data stand behind it."""
    import io
    import zipfile

    stream = io.BytesIO()
    np.lib.format.write_array_header_1_0(stream, {"descr": "<f8", "fortran_order": False, "shape": (10**9, 10**6)})
    path = tmp_path / "huge.npz"
    with zipfile.ZipFile(path, "w") as archive:
        archive.writestr("in0.npy", stream.getvalue() + b"1234")
    found = Archive.open(path)
    assert found.headers["in0"].shape == (10**9, 10**6)
    with pytest.raises(ArchiveError, match="its data are shorter"):
        found.read("in0")


def test_objects_are_never_read(tmp_path: Path) -> None:
    path = tmp_path / "objects.npz"
    np.savez(path, in0=np.asarray([{"a": 1}], dtype=object))
    with pytest.raises(ArchiveError, match="Python objects, which are never read"):
        Archive.open(path)


@pytest.mark.parametrize("content", [b"", b"PK\x03\x04 cut", b"\x93NUMPY", b"{}"])
def test_other_files(tmp_path: Path, content: bytes) -> None:
    path = tmp_path / "x.npz"
    path.write_bytes(content)
    with pytest.raises(ArchiveError, match="is no npz archive"):
        Archive.open(path)


def test_damaged_members(tmp_path: Path) -> None:
    path = tmp_path / "x.npz"
    np.savez(path, in0=np.ones(1000))
    data = bytearray(path.read_bytes())
    data[500] ^= 0xFF
    path.write_bytes(bytes(data))
    with pytest.raises(ArchiveError, match="in0 cannot be read"):
        Archive.open(path).read("in0")


def test_whatever_is_damaged_is_an_archive_error(tmp_path: Path) -> None:
    """Every byte of a packed archive changed: zip directories, deflated data and npy headers among them."""
    path = tmp_path / "x.npz"
    np.savez_compressed(path, in0=np.arange(20, dtype=np.float32))
    good = path.read_bytes()
    refused = 0
    for place in range(len(good)):
        for byte in (0, 0xFF, good[place] ^ 1):
            path.write_bytes(good[:place] + bytes([byte]) + good[place + 1 :])
            try:
                found = Archive.open(path)
                for name in found.headers:
                    found.read(name)
            except ArchiveError:
                refused += 1
    assert refused > len(good)


def test_sizes_in_the_directory_are_not_believed(tmp_path: Path) -> None:
    import io
    import struct
    import zipfile

    stream = io.BytesIO()
    np.lib.format.write_array_header_1_0(stream, {"descr": "|u1", "fortran_order": False, "shape": (4_000_000_000,)})
    path = tmp_path / "x.npz"
    with zipfile.ZipFile(path, "w") as archive:
        archive.writestr("in0.npy", stream.getvalue())
        size = archive.getinfo("in0.npy").file_size
    # Both sizes, in the header of the member and in the directory, say almost 4 GiB.
    path.write_bytes(path.read_bytes().replace(struct.pack("<LL", size, size), struct.pack("<LL", size, 2**32 - 16)))
    with pytest.raises(ArchiveError, match="its data are shorter"):
        Archive.open(path).read("in0")


def test_no_file() -> None:
    with pytest.raises(ArchiveError, match="there is no file"):
        Archive.open("no/such/file.npz")


# -- writing -------------------------------------------------------------------------------------------------------------------


def test_files_are_replaced_whole(tmp_path: Path) -> None:
    path = tmp_path / "x"
    write_bytes(path, b"one")
    path.chmod(0o640)
    write_bytes(path, b"two")
    assert path.read_bytes() == b"two"
    assert path.stat().st_mode & 0o777 == 0o640
    with pytest.raises(OSError, match="No such file"):
        write_bytes(tmp_path / "no" / "x", b"")
    with pytest.raises(IsADirectoryError):
        write_bytes(tmp_path, b"")


def test_rows_that_another_thread_is_still_writing_are_left_out() -> None:
    growing = Columns()
    growing.add(0, 0, 0, 1, 2)
    growing.step.append(0)
    growing.rank.append(1)
    read = RunRecord.from_json(record(records=growing).to_json())
    assert read.records.rank == [0]
    assert len(read.records.step) == len(read.records.messages) == 1
