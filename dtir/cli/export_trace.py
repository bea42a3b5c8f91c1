"""Chrome traces for ``dtir export``."""

from __future__ import annotations

import argparse
import gzip

from dtir.cli.command import Console, Failure, failure


def make_trace(options: argparse.Namespace, console: Console) -> bytes:
    """The planned schedule of a program, as a trace.

    Raises:
        Failure: the input is no program, or no profile was named.
    """
    from dtir.cli.cost import load_profile
    from dtir.cli.inputs import load_one
    from dtir.cost.schedule import make_schedule
    from dtir.cost.trace import chrome_trace
    from dtir.schema.result import Err

    imported = load_one(options.file, options.program, console)
    if imported.program is None:
        raise Failure(imported.diagnostics)
    if options.profile is None:
        raise failure(
            "cli.usage",
            "a program has planned times only on a machine, and none was named",
            hint="--profile P (dtir cost --list-profiles), or export the run record of dtir run -o run.json",
        )
    made = make_schedule(imported.program, load_profile(options.profile))
    if isinstance(made, Err):
        raise Failure(made.error)
    data = chrome_trace(made.value).encode()
    return gzip.compress(data, mtime=0) if options.output.lower().endswith(".gz") else data
