"""Writing a result so that a reader sees the whole of it or what was there before."""

from __future__ import annotations

import gzip
import os
import stat
import tempfile
from pathlib import Path

from dtir.cli.command import Console, failure


def write(name: str, text: str, console: Console) -> None:
    """Write text to a file, all or nothing; ``-`` is standard output; ``.gz`` is packed, the same way every time.

    Raises:
        Failure: it cannot be written; what was there before is unchanged.
    """
    if name == "-":
        console.out.write(text)
        return
    data = text.encode("utf-8")
    write_bytes(name, gzip.compress(data, mtime=0) if name.endswith(".gz") else data)


def write_bytes(name: str, data: bytes) -> None:
    """Write bytes to a file as they are, all or nothing.

    Raises:
        Failure: it cannot be written; what was there before is unchanged.
    """
    try:
        _replace(Path(os.path.realpath(name)), data)
    except OSError as error:
        raise failure(
            "cli.output",
            f"{name} cannot be written: {error.strerror or error}",
            hint="check that the folder exists and can be written",
        ) from error


def _replace(path: Path, data: bytes) -> None:
    if path.exists() and not path.is_file():
        if path.is_dir():
            raise IsADirectoryError(None, "it is a folder")
        path.write_bytes(data)  # a device or pipe: there is nothing to keep whole
        return
    # In the same folder: a rename is atomic within one file system only.
    handle, temporary = tempfile.mkstemp(prefix=f".{path.name}.", dir=path.parent)
    try:
        with os.fdopen(handle, "wb") as stream:
            stream.write(data)
            stream.flush()
            os.fsync(stream.fileno())
        os.chmod(temporary, stat.S_IMODE(path.stat().st_mode) if path.exists() else 0o666 & ~_umask())
        os.replace(temporary, path)
    except BaseException:
        Path(temporary).unlink(missing_ok=True)
        raise


def _umask() -> int:
    mask = os.umask(0)
    os.umask(mask)
    return mask
