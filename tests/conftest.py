"""Fixtures and settings for every test."""

from __future__ import annotations

import os
import signal
from pathlib import Path

import pytest
from hypothesis import settings

from tests.helpers.shared import absent_reason, shared_data_path

# No deadline: a time limit per example fails on a busy machine and says nothing. CI draws the same examples each time,
# so that a red run is about the change; everywhere else they are fresh.
# A shell that starts pytest in the background has it ignore interrupts, and what the tests start would inherit that.
if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
    signal.signal(signal.SIGINT, signal.default_int_handler)

settings.register_profile("local", deadline=None)
settings.register_profile("ci", deadline=None, derandomize=True, print_blob=True)
settings.load_profile("ci" if os.environ.get("CI") == "true" else "local")


@pytest.fixture(scope="session")
def shared_data() -> Path:
    """The folder of shared real files; skips with the reason when it is absent."""
    path = shared_data_path()
    if path is None:
        pytest.skip(absent_reason())
    return path
