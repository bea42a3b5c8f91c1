"""The codes of the command line itself."""

from __future__ import annotations

from dtir.schema.catalogue import CodeEntry
from dtir.schema.diagnostics import Severity

CODES: tuple[CodeEntry, ...] = (
    CodeEntry(
        "cli.usage",
        "The command or one of its options is not what the command line knows.",
        "dtir shwo mlp.hlo",
        "dtir show mlp.hlo",
        "dtir --help lists the commands, dtir COMMAND --help its options",
    ),
    CodeEntry(
        "cli.output",
        "The result could not be written; nothing was changed at that place.",
        "dtir convert mlp.hlo -o /read/only/mlp.json",
        "dtir convert mlp.hlo -o mlp.json",
        "check that the folder exists and can be written",
    ),
    CodeEntry(
        "cli.missing_extra",
        "The command needs packages that are not installed: they come with an extra.",
        "pip install dtir && dtir explore",
        "pip install 'dtir[app]' && dtir explore",
        "install the extra that the message names",
    ),
    CodeEntry(
        "cli.missing_browser",
        "A PNG is drawn by a Chromium that is on the machine already, and there is none, or it drew nothing. "
        "Nothing is installed by itself.",
        "dtir export x.hlo -o x.png, on a machine without a browser",
        "dtir export x.hlo -o x.svg, which needs none",
        "install Chromium or Chrome, name it with DTIR_CHROMIUM, or write .svg or .html",
    ),
    CodeEntry(
        "cli.port",
        "The explorer could not listen where it was told to.",
        "dtir explore --port 80",
        "dtir explore --port 0",
        "choose another port; 0 takes any free one",
    ),
    CodeEntry(
        "cli.unknown_code",
        "No diagnostic of this version has that code.",
        "dtir explain rank.unknwon",
        "dtir explain rank.unknown",
        "dtir explain --list names every code",
    ),
    CodeEntry(
        "show.groups_omitted",
        "The member lists of a collective are not written out: together they name more ranks than the limit. "
        "Their number and size are given all the same.",
        "dtir show --format json on a mesh of 2,000,000,000 ranks",
        "dtir show --format json --max-members 5000000 ...",
        "raise --max-members",
        Severity.INFO,
    ),
)
