"""The codes of what breaks a rule of Shardy's dialect."""

from __future__ import annotations

from dtir.schema.catalogue import CodeEntry

SDY_CODES: tuple[CodeEntry, ...] = ()
