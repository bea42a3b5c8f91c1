"""``--system FILE``: a declaration and a system of atoms as a program; and what a declaration says without one."""

from __future__ import annotations

import argparse
import io
import os
import sys
import tempfile
from collections.abc import Generator, Sequence
from contextlib import contextmanager
from functools import lru_cache
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

from dtir.cli.command import Failure, failure
from dtir.cli.terminal import PLAIN, Style, printable, table

if TYPE_CHECKING:  # what a command needs is loaded when it runs
    from dtir.importers.base import Source
    from dtir.importers.spec_loader import Lowered
    from dtir.schema.diagnostics import DiagnosticSet
    from dtir.spec import DistributionSpec, MLIPSpec


def add_system(parser: argparse.ArgumentParser) -> None:
    """Add ``--system`` to a command that takes programs."""
    parser.add_argument(
        "--system",
        metavar="FILE",
        help="atoms (JSON: cell, positions, kinds, cutoff, model, ranks or grid) that make a program of a DistributionSpec",
    )


@lru_cache(maxsize=4)
def lowered(name: str, system: str) -> Lowered:
    """The program of a declaration and a system.

    Raises:
        Failure: the file cannot be read, or holds no declaration.
    """
    from dtir.importers.spec_loader import lower_source

    return lower_source(_source(name), system)


def _source(name: str) -> Source:
    from dtir.importers.base import DEFAULT_LIMITS, Source
    from dtir.importers.read import read_path, read_stream
    from dtir.schema.result import Err

    if name == "-":
        found = read_stream(cast("io.BufferedReader", sys.stdin.buffer), DEFAULT_LIMITS, _anything)
    else:
        found = read_path(Path(name), DEFAULT_LIMITS, _anything)
    if isinstance(found, Err):
        raise Failure(found.error)
    try:
        text = found.value.data.decode("utf-8")
    except UnicodeDecodeError:
        raise failure(
            "spec.value", f"{name} is no text", hint="--system goes with a DistributionSpec in JSON"
        ) from None
    return Source(name, found.value.data, text)


def _anything(head: bytes) -> DiagnosticSet | None:
    """The content decides; no beginning is refused."""
    del head


def declared(name: str) -> MLIPSpec | DistributionSpec:
    """The declaration of a file that was found to hold one.

    Raises:
        Failure: the file has changed since.
    """
    from dtir.importers.spec_loader import finding, read_spec
    from dtir.schema.diagnostics import DiagnosticSet
    from dtir.spec import SpecError

    try:
        return read_spec(_source(name))
    except SpecError as error:
        raise Failure(DiagnosticSet.of(finding(error))) from None


@contextmanager
def inputs_of(name: str, system: str) -> Generator[str]:
    """The atoms as an archive of inputs, for as long as the run lasts."""
    from dtir.execute.archive import pack

    handle, path = tempfile.mkstemp(suffix=".npz", prefix="dtir-system-")
    try:
        with os.fdopen(handle, "wb") as stream:
            stream.write(pack(dict(lowered(name, system).arrays)))
        yield path
    finally:
        Path(path).unlink(missing_ok=True)


@contextmanager
def programs_of(files: Sequence[Path], system: str | None) -> Generator[list[Path]]:
    """Files as they stand; with a system, the programs of declarations as files for as long as somebody looks at them.

    Raises:
        Failure: a declaration and the system make no program.
    """
    if system is None:
        yield list(files)
        return
    with tempfile.TemporaryDirectory(prefix="dtir-system-") as folder:
        made: list[Path] = []
        for path in files:
            found = lowered(str(path), system).imported
            if found.program is None:
                raise Failure(found.diagnostics)
            target = Path(folder) / f"{path.stem}.{Path(system).stem}.json"
            target.write_text(found.program.to_json(), encoding="utf-8")
            made.append(target)
        yield made


# -- a declaration alone ----------------------------------------------------------------------------------------------------


def declared_json(spec: MLIPSpec | DistributionSpec) -> dict[str, Any]:
    """What a declaration says, and how it stands with its adapters: none is installed by looking at it."""
    from dtir.spec import AdapterRegistry, MLIPSpec

    core = spec.distribution if isinstance(spec, MLIPSpec) else spec
    return {
        "spec": spec.to_dict(),
        "fields": list(core.shard_fields),
        "policy": core.storage.to_dict(),
        "placement": core.storage.placement,
        "partition_mode": core.storage.partition_mode,
        "adapters": [
            {"kind": one.kind, "target": one.target, "state": one.state, "error": one.error}
            for one in AdapterRegistry(core.installed_order).list_active()
        ],
    }


def declared_text(spec: MLIPSpec | DistributionSpec, style: Style = PLAIN) -> list[str]:
    """The same for a person."""
    from dtir.spec import MLIPSpec, OpAdapter

    core = spec.distribution if isinstance(spec, MLIPSpec) else spec
    modes = {key: value for key, value in core.storage.to_dict().items() if key != "kind"}
    told = ", ".join(f"{key} {value}" for key, value in modes.items())
    lines = [
        f"policy   {core.storage.kind}{f' ({told})' if told else ''}: {core.storage.placement}, {core.storage.partition_mode} partition",
        f"fields   {', '.join(map(printable, core.shard_fields)) or 'none is stored across ranks'}",
    ]
    if isinstance(spec, MLIPSpec):
        lines += _outputs(spec, style)
    if core.installed_order:
        rows = [
            (
                one.kind,
                printable(one.target),
                _does(one) if isinstance(one, OpAdapter) else str(getattr(one, "mode", "")),
            )
            for one in core.installed_order
        ]
        lines += [
            "",
            style.bold(f"adapters ({len(rows)}), all pending: a model installs them"),
            *table(("kind", "target", "does"), rows),
        ]
    lines += ["", "name a system of atoms with --system FILE to see, judge and run the program that this makes"]
    return lines


def _outputs(spec: MLIPSpec, style: Style) -> list[str]:
    names = sorted({*spec.output_kinds, *spec.owned_only_outputs, *spec.all_reduce_outputs})
    rows: list[tuple[str, str, str]] = []
    for name in names:
        kind = spec.output_kinds[name].value if name in spec.output_kinds else "unknown"
        how = (
            "owned rows" if name in spec.owned_only_outputs else "all_reduce" if name in spec.all_reduce_outputs else ""
        )
        rows.append((printable(name), kind, how))
    sums = "over all ranks" if spec.system_reductions else "left to the model"
    lines = [f"sums     {sums}"]
    return [*lines, "", style.bold("outputs"), *table(("output", "kind", "across ranks"), rows)] if rows else lines


def _does(adapter: Any) -> str:
    parts = [f"in{at} {item.value}" for at, item in adapter.arg_transforms.items()]
    parts += [f"out{at} {item.value}" for at, item in adapter.output_transforms.items()]
    return ", ".join(parts) or "passes through"
