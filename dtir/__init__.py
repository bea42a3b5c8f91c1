"""Open, verify and explore distributed tensor programs."""

from __future__ import annotations

from dtir._version import __version__

__all__ = ["__version__"]
