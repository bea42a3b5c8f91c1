"""Versions of schemas."""

from __future__ import annotations

import pytest

from dtir.schema import SchemaVersion


def test_defaults_order_and_text() -> None:
    assert str(SchemaVersion(1)) == "1.0.0"
    assert SchemaVersion(1, 2, 3) < SchemaVersion(1, 10) < SchemaVersion(2)
    assert SchemaVersion.parse("0.12.3") == SchemaVersion(0, 12, 3)


@pytest.mark.parametrize("text", ["", "1", "1.2", "1.2.3.4", "01.0.0", "1.-2.3", "a.b.c", "1.2.3 ", "1.2.٣", "1٣.0.0"])
def test_other_text_is_no_version(text: str) -> None:
    with pytest.raises(ValueError, match=r"must be major\.minor\.patch"):
        SchemaVersion.parse(text)


def test_numbers_are_not_negative() -> None:
    with pytest.raises(TypeError, match=r"SchemaVersion\.patch must match"):
        SchemaVersion(0, 0, -1)
