"""Figures, each built once from a source and given a name; nothing here knows the program behind the columns."""
