"""SARIF for ``dtir export``: what was found while reading a program and judging it."""

from __future__ import annotations

import argparse

from dtir.cli.command import Console, Failure


def make_sarif(options: argparse.Namespace, console: Console) -> bytes:
    """The findings of one program.

    Raises:
        Failure: the input could not be read at all.
    """
    from dtir._version import __version__
    from dtir.cli import render_json, render_sarif
    from dtir.cli.inputs import load_one, merged
    from dtir.cli.judges import DEFAULT_JUDGES, judge

    imported = load_one(options.file, options.program, console)
    if imported.program is None:
        raise Failure(imported.diagnostics)
    found = merged(imported.diagnostics, judge(imported.program, DEFAULT_JUDGES).diagnostics)
    log = render_sarif.report([render_sarif.Judged(options.file, found)], version=__version__)
    return render_json.text(log).encode()
