"""Operators of users, from Python modules that the person at the command line names, or from installed packages.

A module has a tuple ``OPS`` of (dialect, `OpDef`), as those of this package have; one that calls `register_op` itself does as
well. An installed package says so by an entry point of the group ``dtir.ops`` that names such a module. Nothing in a program
file ever leads to an import.

```toml
[project.entry-points."dtir.ops"]
mine = "my_package.operators"
```
"""

from __future__ import annotations

import sys
from collections.abc import Sequence
from functools import cache
from importlib import import_module
from importlib.util import module_from_spec, spec_from_file_location
from pathlib import Path
from types import ModuleType
from typing import Any, cast

from dtir.ir.types import OperationName
from dtir.ops.opdef import OpDef
from dtir.ops.registry import added_count, find_op, register_op

GROUP = "dtir.ops"
"""Entry points of installed packages with operators."""

_FOREIGN = (
    ImportError, SyntaxError, NameError, AttributeError, TypeError, ValueError, LookupError, ArithmeticError, OSError,
    RuntimeError, AssertionError,
)  # fmt: skip
"""What a module of somebody else may raise while it is loaded."""

_loaded: dict[str, str] = {}


class OpModuleError(ValueError):
    """A module of operators cannot be loaded; the message says why and what to do."""


def load_op_module(name: str) -> None:
    """Make the operators of a module known to this process.

    Args:
        name: as Python imports it (``my_package.operators``), or a file that ends in ``.py``.

    Raises:
        OpModuleError: there is no such module, it fails, or it has no operators.
    """
    if name in _loaded:
        return
    path = Path(name)
    before = added_count()
    try:
        module = _from_file(path) if name.endswith(".py") else import_module(name)
        _register(name, module)
    except _FOREIGN as error:
        if isinstance(error, OpModuleError):
            raise
        if isinstance(error, ModuleNotFoundError) and error.name is not None and name.startswith(error.name):
            raise OpModuleError(
                f"there is no module {name}: name a file that ends in .py, or put its folder into PYTHONPATH"
            ) from None
        raise OpModuleError(f"module {name} cannot be loaded: {type(error).__name__}: {error}") from error
    if not hasattr(module, "OPS") and added_count() == before:
        raise OpModuleError(f"module {name} has neither a tuple OPS of (dialect, OpDef) nor registers operators")
    # A file is named by its whole path: processes that are started elsewhere find it too.
    _loaded[name] = str(path.resolve()) if name.endswith(".py") else name


def loaded_op_modules() -> tuple[str, ...]:
    """The modules that were loaded, for processes that have to load the same."""
    return tuple(dict.fromkeys(_loaded.values()))


def _from_file(path: Path) -> ModuleType:
    if not path.is_file():
        raise OpModuleError(f"there is no file {path}")
    name = f"dtir_user_operators_{path.stem}"
    spec = spec_from_file_location(name, path)
    if spec is None or spec.loader is None:
        raise OpModuleError(f"{path} is no Python module")
    module = module_from_spec(spec)
    sys.modules[name] = module
    try:
        spec.loader.exec_module(module)
    except BaseException:
        del sys.modules[name]
        raise
    return module


def _register(name: str, module: Any) -> None:
    listed: object = getattr(module, "OPS", ())
    if not isinstance(listed, (tuple, list)):
        raise OpModuleError(f"OPS of module {name} is no tuple of (dialect, OpDef)")
    for item in cast("Sequence[object]", listed):
        match item:
            case (str(dialect), OpDef() as operator):
                if find_op(OperationName(dialect, operator.name)) is not operator:  # else it has registered itself
                    register_op(operator, dialect=dialect)
            case _:
                raise OpModuleError(f"OPS of module {name} holds {item!r:.80}, no pair of a dialect and an OpDef")


@cache
def load_installed() -> tuple[str, ...]:
    """Load the operators of installed packages, once.

    Returns:
        Why some could not be loaded.
    """
    from importlib.metadata import entry_points  # not needed by most programs

    problems: list[str] = []
    for entry in entry_points(group=GROUP):
        try:
            load_op_module(entry.value.partition(":")[0])
        except OpModuleError as error:
            problems.append(f"entry point {entry.name}: {error}")
    return tuple(problems)


__all__ = ["GROUP", "OpModuleError", "load_installed", "load_op_module", "loaded_op_modules"]
