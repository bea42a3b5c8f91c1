"""The YAML authoring form: reading and writing programs as ``x.dtir.yaml``."""

from __future__ import annotations

from dtir.importers.yaml.load import ReadProgram, read_programs
from dtir.importers.yaml.writer import to_yaml

__all__ = ["ReadProgram", "read_programs", "to_yaml"]
