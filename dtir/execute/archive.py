"""npz archives: headers are looked at before any data, nothing in them is ever unpickled.

A file may state any shape; arrays are read only after their shape was found to be the wanted one.
"""

from __future__ import annotations

import io
import lzma
import tokenize
import zipfile
import zlib
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, cast

import numpy as np

from dtir.execute.dtypes import Array, is_extended
from dtir.execute.files import write_bytes

_UNREADABLE = (
    ValueError, SyntaxError, tokenize.TokenError, EOFError, OSError, RuntimeError, NotImplementedError,
    zipfile.BadZipFile, zlib.error, lzma.LZMAError,
)  # fmt: skip
"""What damaged archives make the readers of zip members and npy headers raise."""


MOST_PACKED = 1040
"""Bytes that one byte of a deflated member can become (RFC 1951 gives 1032 at most): beyond it the sizes are made up."""


class ArchiveError(ValueError):
    """The file is no npz archive, or a part of it cannot be read."""


@dataclass(frozen=True, slots=True)
class Header:
    """What an archive says of one array."""

    shape: tuple[int, ...]
    dtype: np.dtype[Any]


@dataclass(frozen=True, slots=True)
class Archive:
    """Arrays of a file by name, read one by one.

    Args:
        path: the file.
        headers: shapes and types by name, in the order of the file.
    """

    path: str
    headers: Mapping[str, Header]

    @classmethod
    def open(cls, path: str | Path) -> Archive:
        """Read the headers of an archive.

        Raises:
            ArchiveError: no such file, no npz, or a header that cannot be understood.
        """
        headers: dict[str, Header] = {}
        try:
            with zipfile.ZipFile(path) as archive:
                for name in archive.namelist():
                    if name.endswith(".npy"):
                        with archive.open(name) as member:
                            headers[name.removesuffix(".npy")] = _header(member, name)
        except FileNotFoundError:
            raise ArchiveError(f"there is no file {path}") from None
        except _UNREADABLE as error:
            if isinstance(error, ArchiveError):
                raise
            raise ArchiveError(f"{path} is no npz archive: {error}") from None
        return cls(str(path), headers)

    def read(self, name: str) -> Array:
        """One array.

        Raises:
            ArchiveError: its data are cut or damaged, or it holds objects.
        """
        header = self.headers[name]
        try:
            with zipfile.ZipFile(self.path) as archive, archive.open(f"{name}.npy") as member:
                info = archive.getinfo(f"{name}.npy")
                whole = min(info.file_size, MOST_PACKED * min(info.compress_size, Path(self.path).stat().st_size))
                count = int(np.prod(header.shape, dtype=np.float64))
                if count * header.dtype.itemsize > whole:
                    raise ArchiveError(
                        f"{self.path}: {name} states {list(header.shape)} elements, its data are shorter"
                    )
                return cast("Array", np.lib.format.read_array(member, allow_pickle=False))
        except _UNREADABLE as error:
            if isinstance(error, ArchiveError):
                raise
            raise ArchiveError(f"{self.path}: {name} cannot be read: {error}") from None


def _header(member: Any, name: str) -> Header:
    try:
        version = np.lib.format.read_magic(member)
        read = np.lib.format.read_array_header_1_0 if version == (1, 0) else np.lib.format.read_array_header_2_0
        shape, _, dtype = read(member)
    except _UNREADABLE as error:
        raise ArchiveError(f"{name} has no header that can be understood: {error}") from None
    if dtype.hasobject:
        raise ArchiveError(f"{name} holds Python objects, which are never read")
    if any(extent < 0 for extent in shape):
        raise ArchiveError(f"{name} states shape {list(shape)}: extents are not negative")
    return Header(tuple(int(extent) for extent in shape), dtype)


def pack(arrays: Mapping[str, Array]) -> bytes:
    """Arrays as the bytes of an npz archive; the same arrays give the same bytes."""
    stream = io.BytesIO()
    with zipfile.ZipFile(stream, "w", zipfile.ZIP_STORED, allowZip64=True) as archive:
        for name, array in arrays.items():
            info = zipfile.ZipInfo(f"{name}.npy", (1980, 1, 1, 0, 0, 0))
            with archive.open(info, "w", force_zip64=True) as member:
                array = array.view(np.dtype((np.void, array.itemsize))) if is_extended(array.dtype) else array
                np.lib.format.write_array(member, np.asanyarray(array), allow_pickle=False)
    return stream.getvalue()


def write_archive(path: str | Path, arrays: Mapping[str, Array]) -> None:
    """Write an npz archive at once.

    ml_dtypes' types are stored as raw bytes of their size, as numpy itself does (but for float8_e5m2, to which it gives a
    type that it cannot read); `dtir.execute.data` reads them back.

    Raises:
        OSError: the folder does not exist or cannot be written.
    """
    write_bytes(path, pack(arrays))
