"""What the name of a trace file says: whose rank it is, and which files belong together.

Tracers write the rank into the file name in a few ways: ``job.3.et``, ``job.rank3.json``, ``rank-3.json``, ``worker3.pt.json``.

>>> rank_in_name("custom_allreduce.3.et"), rank_in_name("ddp.fr.rank12.json.gz"), rank_in_name("trace.json")
(3, 12, None)
>>> set_name("a/custom_allreduce.3.et"), set_name("ddp.fr.rank12.json.gz"), set_name("rank3.json")
('custom_allreduce.et', 'ddp.fr.json', 'json')
"""

from __future__ import annotations

import re
from pathlib import PurePath

# A number of more than seven digits is a time stamp, no rank.
_WORD = re.compile(
    r"(?:(?<=[^a-z])|^)(?:global_?rank|rank|worker|gpu|npu|node|proc)[-_]?(\d{1,7})(?!\d)[-_.]?", re.IGNORECASE
)
_BARE = re.compile(r"(?:^|\.)(\d{1,7})(?=\.[A-Za-z])|(?:^|[._-])(\d{1,7})$")
# "et_1.0.3.json" ends in a version.
_VERSION = re.compile(r"\d\.\d+$")
_PACKED = ".gz"


def rank_in_name(name: str) -> int | None:
    """The rank that a file name states; None when it states none."""
    found = _find(_plain(name))
    return found[0] if found else None


def set_name(name: str) -> str:
    """The file name without its rank: files of one set have it in common."""
    plain = _plain(name)
    found = _find(plain)
    if found is None:
        return plain
    _, start, stop = found
    left, right = plain[:start].rstrip("._-"), plain[stop:].lstrip("._-")
    return f"{left}.{right}" if left and right else left or right or plain


def program_name(name: str) -> str:
    """What to call the program of a file: its set's name without endings."""
    return set_name(name).split(".", 1)[0] or "trace"


def _plain(name: str) -> str:
    label = PurePath(name).name or name
    return label[: -len(_PACKED)] if label.endswith(_PACKED) else label


def _find(plain: str) -> tuple[int, int, int] | None:
    words = list(_WORD.finditer(plain))
    if words:
        return int(words[-1][1]), words[-1].start(), words[-1].end()
    bare = [found for found in _BARE.finditer(plain) if not _VERSION.search(plain, 0, found.start())]
    if not bare:
        return None
    return int(bare[-1][1] or bare[-1][2]), bare[-1].start(), bare[-1].end()
