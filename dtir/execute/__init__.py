"""Executing programs and comparing what was measured with what was planned."""
