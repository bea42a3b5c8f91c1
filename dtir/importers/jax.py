"""Live JAX functions as programs: lowered and compiled, never run.

| form | what it is |
|---|---|
| ``stablehlo`` | what JAX hands to the compiler: whole values, with the shardings that were asked for |
| ``sharded`` | HLO just before the SPMD partitioner: whole values, a sharding on every operation |
| ``spmd`` | HLO just after it: what one rank holds, with the collectives that the partitioner put in |
| ``optimized`` | the HLO that would run: fused and scheduled |

The two in the middle are no results of JAX's own: XLA writes them when it is told where to (``xla_dump_to``,
``xla_dump_hlo_pass_re``: the public debug options, handed over as ``compiler_options``). They go into a folder of their own,
which is removed again.

JAX is imported when a function is imported; without it every text dump can still be read. A mesh over devices in another order
lowers to the same text: ranks are logical partitions, and which device is which is no part of the program.
"""

from __future__ import annotations

import re
import tempfile
from collections.abc import Callable, Sequence
from importlib import import_module
from pathlib import Path
from typing import Any, Literal, TypeAlias, get_args

from dtir.importers.base import Imported, refused
from dtir.schema.diagnostics import Diagnostic

JaxForm: TypeAlias = Literal["stablehlo", "sharded", "spmd", "optimized"]
"""Which text of a function is imported."""

_DUMPED = {
    "sharded": re.compile(r"before_spmd-partitioning\.txt$"),
    "spmd": re.compile(r"after_spmd-partitioning\.[^/]*txt$"),
}
_WHOLE = re.compile(r"\.before_optimizations\.txt$")
_OPTIONS: dict[str, str | bool] = {
    "xla_dump_hlo_as_text": True,
    "xla_dump_large_constants": True,
    "xla_dump_hlo_pass_re": "spmd-partitioning",
}


class JaxMissingError(ImportError):
    """JAX is not installed: live functions need the ``jax`` extra."""


def from_jax(
    fn: Callable[..., Any] | Any,
    *args: Any,
    form: JaxForm = "sharded",
    static_argnums: int | Sequence[int] | None = None,
    static_argnames: str | Sequence[str] | None = None,
    **kwargs: Any,
) -> Imported:
    """Lower and compile a JAX function for arguments of these shapes and shardings, and import it. Nothing is run.

    Args:
        fn: a function, one wrapped by ``jax.jit``, or what its ``lower`` gave (then without arguments).
        args: what it is called with: arrays, or ``jax.ShapeDtypeStruct`` with shapes, types and shardings.
        form: which text of it to import, see the table above.
        static_argnums: positions of arguments that are constants of the program, as for ``jax.jit``.
        static_argnames: names of such arguments.
        kwargs: what it is called with by name.

    Returns:
        the program, labelled with the function's name and the form. A program on one device is not partitioned: ``sharded``
        and ``spmd`` are then what comes before all optimisation.

    Raises:
        JaxMissingError: JAX is not installed.
        ValueError: the form is unknown, or a lowered function is given arguments.
        Exception: whatever JAX raises for a function that it cannot trace.

    >>> from_jax(print, form="assembly")
    Traceback (most recent call last):
    ValueError: form='assembly' (str) must be one of stablehlo, sharded, spmd, optimized
    """
    if form not in get_args(JaxForm):
        raise ValueError(f"form={form!r} ({type(form).__name__}) must be one of {', '.join(get_args(JaxForm))}")
    jax = _jax()
    lowered = _lower(jax, fn, args, kwargs, static_argnums, static_argnames)
    name = _name(fn)
    match form:
        case "stablehlo":
            return _load(_stablehlo(lowered), f"{name}.stablehlo.mlir")
        case "optimized":
            return _load(str(lowered.compile().as_text()), f"{name}.post.hlo")
        case "sharded" | "spmd":
            text = _dumped(jax, lowered, form)
            if text is None:
                return refused(
                    f"{name}.{form}.hlo",
                    Diagnostic(
                        "jax.no_dump",
                        f"the compiler wrote no text of the {form} form",
                        hint="import form='stablehlo', or dump with XLA_FLAGS=--xla_dump_to=DIR --xla_dump_hlo_pass_re=spmd",
                    ),
                    format="hlo",
                )
            return _load(text, f"{name}.{form}.hlo")


def _jax() -> Any:
    try:
        return import_module("jax")
    except ImportError as error:
        raise JaxMissingError(
            f"live functions need JAX, which cannot be imported ({error}): pip install 'dtir[jax]'"
        ) from error


def _lower(
    jax: Any,
    fn: Any,
    args: tuple[Any, ...],
    kwargs: dict[str, Any],
    static_argnums: int | Sequence[int] | None,
    static_argnames: str | Sequence[str] | None,
) -> Any:
    if isinstance(fn, jax.stages.Lowered):
        if args or kwargs:
            raise ValueError(f"args={args!r} ({type(args).__name__}) must be empty: the function is lowered already")
        return fn
    if hasattr(fn, "lower"):
        if static_argnums is not None or static_argnames is not None:
            raise ValueError("static_argnums and static_argnames are those that the function was wrapped with")
        return fn.lower(*args, **kwargs)
    static = {"static_argnums": static_argnums, "static_argnames": static_argnames}
    return jax.jit(fn, **{key: value for key, value in static.items() if value is not None}).lower(*args, **kwargs)


def _name(fn: Any) -> str:
    inner = getattr(fn, "__wrapped__", fn)
    name = getattr(inner, "__name__", None) or type(fn).__name__.lower()
    return re.sub(r"\W+", "_", str(name)).strip("_") or "function"


def _stablehlo(lowered: Any) -> str:
    try:
        return str(lowered.as_text(debug_info=True))
    except TypeError:  # JAX before 0.4.36 prints no locations
        return str(lowered.as_text())


def _dumped(jax: Any, lowered: Any, form: str) -> str | None:
    """The text that XLA writes around its partitioner; None where it wrote none."""
    cached = jax.config.jax_enable_compilation_cache
    with tempfile.TemporaryDirectory(prefix="dtir-jax-") as folder:
        # What comes from a cache is not compiled, and nothing is written of it.
        jax.config.update("jax_enable_compilation_cache", False)
        try:
            lowered.compile(compiler_options={**_OPTIONS, "xla_dump_to": folder})
        finally:
            jax.config.update("jax_enable_compilation_cache", cached)
        files = sorted(path for path in Path(folder).iterdir() if path.suffix == ".txt")
        found = [path for path in files if _DUMPED[form].search(path.name)]
        chosen = found or [path for path in files if _WHOLE.search(path.name)]
        return chosen[-1].read_text() if chosen else None


def _load(text: str, name: str) -> Imported:
    from dtir.importers import load_bytes

    return load_bytes(text.encode(), name=name)
