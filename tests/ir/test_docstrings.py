"""The examples in the docstrings of the schema and IR layers run."""

from __future__ import annotations

import doctest
import pkgutil
from importlib import import_module

import pytest

import dtir.ir
import dtir.schema

MODULES = [
    found.name
    for package in (dtir.schema, dtir.ir)
    for found in pkgutil.iter_modules(package.__path__, f"{package.__name__}.")
]


@pytest.mark.parametrize("name", MODULES)
def test_examples(name: str) -> None:
    failed, _ = doctest.testmod(import_module(name), raise_on_error=False)
    assert failed == 0


def test_there_are_examples() -> None:
    finder = doctest.DocTestFinder()
    counts = [sum(len(test.examples) for test in finder.find(import_module(name))) for name in MODULES]
    assert sum(map(bool, counts)) >= 15
