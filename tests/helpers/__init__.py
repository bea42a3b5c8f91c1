"""What tests share; plain functions and classes, no fixtures (those are in the nearest conftest.py)."""
