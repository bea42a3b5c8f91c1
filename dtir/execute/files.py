"""Writing files at once: a reader sees the old file or the whole new one."""

from __future__ import annotations

import os
import stat
import tempfile
from contextlib import suppress
from pathlib import Path


def write_bytes(path: str | Path, data: bytes) -> None:
    """Write a file, all or nothing.

    Raises:
        OSError: the folder does not exist or cannot be written; what was there before is unchanged.
    """
    target = Path(os.path.realpath(path))
    if target.is_dir():
        raise IsADirectoryError(None, "it is a folder")
    if target.exists() and not target.is_file():
        target.write_bytes(data)  # a device or pipe: there is nothing to keep whole
        return
    handle, temporary = tempfile.mkstemp(prefix=f".{target.name}.", dir=target.parent)
    try:
        with os.fdopen(handle, "wb") as stream:
            stream.write(data)
        mode = stat.S_IMODE(target.stat().st_mode) if target.exists() else 0o666 & ~_umask()
        Path(temporary).chmod(mode)
        Path(temporary).replace(target)
    except BaseException:
        with suppress(OSError):
            Path(temporary).unlink()
        raise


def _umask() -> int:
    mask = os.umask(0)
    os.umask(mask)
    return mask
