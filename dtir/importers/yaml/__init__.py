"""The YAML authoring form: reading and writing programs as ``x.dtir.yaml``."""

from __future__ import annotations

from dtir.importers.yaml.load import ReadProgram, read_programs

__all__ = ["ReadProgram", "read_programs"]
