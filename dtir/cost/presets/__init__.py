"""The profiles that come with dtir: machines as their makers describe them, and one that was measured.

>>> [name for name in preset_names()]
['a100-nvlink-ib', 'h100-nvlink-ib', 'openmpi-shm-2core', 'tpu-v5p-torus']
"""

from __future__ import annotations

from difflib import get_close_matches
from functools import cache
from importlib.resources import files

from dtir.cost.profile import MachineProfile
from dtir.cost.profile_json import read_profile
from dtir.schema.result import Err

_SUFFIX = ".json"


def preset_names() -> tuple[str, ...]:
    """Names of the presets, sorted."""
    names = (item.name for item in files(__name__).iterdir())
    return tuple(sorted(name.removesuffix(_SUFFIX) for name in names if name.endswith(_SUFFIX)))


@cache
def load_preset(name: str) -> MachineProfile:
    """A preset by name.

    Raises:
        KeyError: there is none; similar names are given.
        ValueError: the file that comes with dtir is broken.
    """
    if name not in preset_names():
        close = get_close_matches(name, preset_names(), n=1)
        meant = f": did you mean {close[0]}?" if close else ""
        raise KeyError(f"no preset {name!r}{meant} (presets: {', '.join(preset_names())})")
    found = read_profile((files(__name__) / f"{name}{_SUFFIX}").read_text(encoding="utf-8"))
    if isinstance(found, Err):
        raise ValueError(f"preset {name}: " + "; ".join(item.render() for item in found.error))
    return found.value
