from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from dtir.execute import RecordError, RunRecord, read_record, write_archive, write_record
from dtir.execute.archive import Archive, ArchiveError, pack
from dtir.execute.files import write_bytes
from dtir.execute.record import Columns, StepEntry, ValueCheck, environment


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
        "steps": (StepEntry(0, "node:0", "ar", "", "exchange", "core.all_reduce", 64, 384),),
        "records": columns,
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


def test_the_form_is_documented_keys() -> None:
    whole = json.loads(record().to_json())
    assert (whole["schema"], whole["version"]) == ("dtir.run-record", "1.0.0")
    assert whole["records"]["rank"] == [None, 3]
    assert whole["records"]["sent_bytes"] == [None, 64]
    assert whole["values"][0]["max_error"] == "inf"


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ({"schema": "x"}, "found x 1.0.0, wanted dtir.run-record 1.0.0"),
        ({"records": []}, "records must be an object"),
        ({"records": {"step": []}}, "records has the columns"),
        ({"steps": [{}]}, "an entry of steps has"),
        ({"values": 3}, "values must be a list"),
        ({"complete": 1}, "complete must be true or false"),
        ({"totals": None}, "totals must be an object"),
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
    with pytest.raises(RecordError, match=f"records.{column} must hold whole numbers"):
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
