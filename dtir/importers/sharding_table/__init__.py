"""Sharding tables of MaxText: named, logical and activation shardings of a model, one JSON file each."""

from dtir.importers.sharding_table.reader import FORMAT, read_sharding_table

__all__ = ["FORMAT", "read_sharding_table"]
