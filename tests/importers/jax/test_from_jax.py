"""Live JAX functions: every form, static arguments, wrapped functions; in a process of its own, with eight host devices."""

from __future__ import annotations

import importlib
import importlib.util
import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

import dtir
from dtir.importers.jax import JaxMissingError, from_jax

ROOT = Path(__file__).parents[3]
needs_jax = pytest.mark.skipif(importlib.util.find_spec("jax") is None, reason="jax is not installed (extra: jax)")

SCRIPT = """
import os
os.environ["XLA_FLAGS"] = "--xla_force_host_platform_device_count=8"
import json
import jax, jax.numpy as jnp, numpy as np
from jax.sharding import Mesh, NamedSharding, PartitionSpec as P
import dtir
from dtir.analysis.summary import summarize

mesh = Mesh(np.array(jax.devices()).reshape(2, 4), ("dp", "tp"))
def like(shape, *spec):
    return jax.ShapeDtypeStruct(shape, jnp.float32, sharding=NamedSharding(mesh, P(*spec)))
def mlp(x, w1, w2, scale=1):
    return scale * (jnp.tanh(x @ w1) @ w2)
arguments = like((16, 32), "dp"), like((32, 64), None, "tp"), like((64, 32), "tp")

def told(found):
    program = found.program
    return {
        "label": found.label, "format": found.format,
        "errors": [item.code for item in found.diagnostics.errors],
        "ranks": program.mesh.size,
        "axes": [[axis.name, axis.size] for axis in program.mesh.axes],
        "collectives": [[row.kind, row.group_size, row.message_bytes] for row in summarize(program).collectives],
        "operations": [str(task.operation) for task in program.tasks],
        "inputs": len(program.inputs),
        "sources": sorted({str(task.attributes["source"]).rpartition(":")[0] for task in program.tasks if "source" in task.attributes}),
    }

def mapped(x):
    return jax.lax.psum(x, "tp")
run = jax.shard_map(mapped, mesh=mesh, in_specs=P("dp", "tp"), out_specs=P("dp"))
print(json.dumps({
    **{form: told(dtir.from_jax(mlp, *arguments, form=form)) for form in ("stablehlo", "sharded", "spmd", "optimized")},
    "wrapped": told(dtir.from_jax(jax.jit(mlp), *arguments, form="spmd")),
    "lowered": told(dtir.from_jax(jax.jit(mlp).lower(*arguments), form="spmd")),
    "static": told(dtir.from_jax(mlp, *arguments, 3, static_argnums=3, form="stablehlo")),
    "static by name": told(dtir.from_jax(mlp, *arguments, scale=3, static_argnames="scale", form="stablehlo")),
    "arrays": told(dtir.from_jax(lambda x: x + 1, np.ones((4,), np.float32))),
    "shard_map": told(dtir.from_jax(run, like((16, 32), "dp", "tp"), form="stablehlo")),
    "cache": jax.config.jax_enable_compilation_cache,
}))
"""


@pytest.fixture(scope="module")
def told() -> dict[str, Any]:
    done = subprocess.run(
        [sys.executable, "-c", SCRIPT], capture_output=True, text=True, timeout=250, check=False, cwd=ROOT
    )
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout.splitlines()[-1])


@needs_jax
def test_the_forms(told: dict[str, Any]) -> None:
    labels = {form: told[form]["label"] for form in ("stablehlo", "sharded", "spmd", "optimized")}
    assert labels == {
        "stablehlo": "mlp.stablehlo.mlir", "sharded": "mlp.sharded.hlo", "spmd": "mlp.spmd.hlo", "optimized": "mlp.post.hlo",
    }  # fmt: skip
    for form in labels:
        assert (told[form]["errors"], told[form]["ranks"], told[form]["inputs"]) == ([], 8, 3)
    assert told["stablehlo"]["axes"] == [["dp", 2], ["tp", 4]]
    assert told["stablehlo"]["collectives"] == told["sharded"]["collectives"] == []
    assert told["spmd"]["collectives"] == told["optimized"]["collectives"] == [["all_reduce", 4, 8 * 32 * 4]]
    assert told["sharded"]["operations"].count("hlo.dot") == 2


@needs_jax
def test_wrapped_and_lowered_functions(told: dict[str, Any]) -> None:
    assert told["wrapped"]["collectives"] == told["lowered"]["collectives"] == told["spmd"]["collectives"]


@needs_jax
def test_static_arguments(told: dict[str, Any]) -> None:
    assert told["static"]["inputs"] == told["static by name"]["inputs"] == 3
    assert told["static"]["operations"] == told["static by name"]["operations"]


@needs_jax
def test_arrays_on_one_device(told: dict[str, Any]) -> None:
    assert told["arrays"]["ranks"] == 1
    assert "hlo.add" in told["arrays"]["operations"]


@needs_jax
def test_a_part_that_is_written_per_rank(told: dict[str, Any]) -> None:
    assert told["shard_map"]["collectives"] == [["all_reduce", 4, 8 * 8 * 4]]


@needs_jax
def test_settings_are_as_before(told: dict[str, Any]) -> None:
    assert told["cache"] is True


@needs_jax
def test_the_notebook_runs(tmp_path: Path) -> None:
    cells = json.loads((ROOT / "examples" / "jax_live.ipynb").read_text())["cells"]
    source = "\n\n".join("".join(cell["source"]) for cell in cells if cell["cell_type"] == "code")
    done = subprocess.run(
        [sys.executable, "-c", source], capture_output=True, text=True, timeout=250, check=False, cwd=tmp_path
    )
    assert done.returncode == 0, done.stderr
    assert "all_reduce sum over groups of 4" in done.stdout
    assert not any(cell.get("outputs") for cell in cells)


PARSE = """
import collections, json, sys
from jax._src.interpreters import mlir as jm
from jaxlib.mlir import ir
counts = []
for path in sys.argv[1:]:
    with jm.make_ir_context() as context, open(path) as text:
        module = ir.Module.parse(text.read())
        found = collections.Counter()
        def see(operation):
            found[operation.name] += 1
            return ir.WalkResult.ADVANCE
        module.operation.walk(see)
        counts.append(found)
print(json.dumps(counts))
"""


@needs_jax
def test_mlirs_own_parser_finds_the_same_operations() -> None:
    """Cross-check with the bindings of jaxlib, in a process of its own: they are private, and may end the process."""
    from dtir.importers.stablehlo.importer import import_mlir

    paths = sorted((ROOT / "tests/importers/stablehlo/fixtures").glob("*.mlir"))
    done = subprocess.run(
        [sys.executable, "-c", PARSE, *map(str, paths)], capture_output=True, text=True, timeout=250, check=False
    )
    assert done.returncode == 0, done.stderr
    for path, counted in zip(paths, json.loads(done.stdout), strict=True):
        assert dict(import_mlir(path.read_text()).parts[0].operations) == counted


# -- without JAX ---------------------------------------------------------------------------------------------------------


def test_without_jax_it_is_said_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    def missing(name: str) -> None:
        raise ModuleNotFoundError(f"No module named {name!r}")

    monkeypatch.setattr("dtir.importers.jax.import_module", missing)
    with pytest.raises(JaxMissingError, match=r"pip install 'dtir\[jax\]'"):
        from_jax(abs, 1)


def test_an_unknown_form_is_refused_before_anything_else() -> None:
    with pytest.raises(ValueError, match=r"form='hlo' \(str\) must be one of stablehlo, sharded, spmd, optimized"):
        from_jax(abs, 1, form="hlo")  # type: ignore[arg-type]


def test_the_name_at_the_top_is_this_function() -> None:
    assert dtir.from_jax is importlib.import_module("dtir.importers.jax").from_jax


class _Config:
    jax_enable_compilation_cache = True

    def __init__(self) -> None:
        self.updates: list[bool] = []

    def update(self, name: str, value: bool) -> None:
        assert name == "jax_enable_compilation_cache"
        self.updates.append(value)


class _Silent:
    """A lowered function whose compiler writes nothing."""

    def compile(self, compiler_options: dict[str, Any]) -> None:
        assert Path(compiler_options["xla_dump_to"]).is_dir()


class _Jax:
    class stages:
        Lowered = _Silent

    def __init__(self) -> None:
        self.config = _Config()


def test_a_compiler_that_writes_nothing_is_a_finding(monkeypatch: pytest.MonkeyPatch) -> None:
    jax = _Jax()
    monkeypatch.setattr("dtir.importers.jax.import_module", lambda name: jax)
    found = from_jax(_Silent(), form="spmd")
    assert found.program is None
    assert [item.code for item in found.diagnostics] == ["jax.no_dump"]
    assert jax.config.updates == [False, True]


def test_a_lowered_function_has_its_arguments(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("dtir.importers.jax.import_module", lambda name: _Jax())
    with pytest.raises(ValueError, match="lowered already"):
        from_jax(_Silent(), 1)
