"""Builders of programs of well-known families, to look at, to plan, to run, and to test with."""
