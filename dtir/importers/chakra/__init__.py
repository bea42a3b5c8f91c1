"""Chakra execution traces (MLCommons): the protobuf stream ``x.3.et`` and the JSON form of its feeder."""

from dtir.importers.chakra.feeder_json import JSON_FORMAT, read_chakra_json
from dtir.importers.chakra.group_table import TABLE_FORMAT, read_group_table
from dtir.importers.chakra.reader import FORMAT, read_chakra

__all__ = ["FORMAT", "JSON_FORMAT", "TABLE_FORMAT", "read_chakra", "read_chakra_json", "read_group_table"]
