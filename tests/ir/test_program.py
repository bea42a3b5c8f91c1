"""The program object: walking it, and what is remembered of it."""

from __future__ import annotations

import copy
import pickle  # noqa: TID251 - only objects of this test
import subprocess
import sys
from dataclasses import fields, replace

import pytest

import dtir
from dtir.ir import DistributedTaskIR, make_header
from dtir.schema import IRVerificationError
from tests.helpers.programs import LocalCompute as Local
from tests.helpers.programs import call, mesh_of, program, region, task

MESH = mesh_of(tp=2)


def test_walking() -> None:
    body = region("body", MESH, (task("inner", MESH, Local()),))
    made = program(MESH, regions=(body,))
    made = replace(made, tasks=(*made.tasks, call("enter", MESH, "body")))
    assert [path for path, _ in made.scopes()] == [(), ("regions", "0")]
    assert [item.name for item in made.all_tasks()] == ["mul.0", "sum.1", "enter", "inner"]
    assert [item.name for item in made.all_values()] == ["x", "h", "y"]


def test_facts_are_remembered_and_are_no_content() -> None:
    made = program(MESH)
    calls: list[int] = []
    assert made.remember("own", lambda: calls.append(1)) is None
    made.remember("own", lambda: calls.append(1))
    assert calls == [1]
    assert made.digest == made.digest
    again = program(MESH)
    assert made == again
    assert hash(made) == hash(again)
    assert pickle.loads(pickle.dumps(made)) == made
    assert copy.deepcopy(made) == made
    changed = replace(made, name="other")
    assert changed.digest != made.digest


def test_a_program_without_a_header_has_no_parents() -> None:
    made = program(MESH)
    parts = {item.name: getattr(made, item.name) for item in fields(made) if item.name != "header"}
    bare = DistributedTaskIR(**parts)
    assert bare.header == make_header(DistributedTaskIR.SCHEMA_NAME, DistributedTaskIR.SCHEMA_VERSION)
    assert [item.code for item in bare.diagnostics()] == ["distributed.parent_digest"]


def test_an_invalid_program_is_not_written() -> None:
    faulty = replace(program(MESH), name="")
    for write in (faulty.to_json, faulty.to_upstream_json):
        with pytest.raises(IRVerificationError, match=r"distributed\.name"):
            write()
    assert len(faulty.digest) == 40


def test_the_public_names() -> None:
    assert dtir.DistributedTaskIR is DistributedTaskIR
    assert len(set(dtir.__all__)) == len(dtir.__all__)
    for name in dtir.__all__:
        assert getattr(dtir, name) is not None
    with pytest.raises(AttributeError, match="no attribute 'nothing'"):
        _ = dtir.nothing  # type: ignore[attr-defined]


@pytest.mark.parametrize("package", ["dtir.schema", "dtir.ir"])
def test_every_listed_name_exists(package: str) -> None:
    module = __import__(package, fromlist=["__all__"])
    assert len(set(module.__all__)) == len(module.__all__)
    assert all(hasattr(module, name) for name in module.__all__)


def test_importing_the_package_loads_nothing_heavy() -> None:
    script = (
        "import sys, dtir\n"
        "heavy = {'numpy', 'networkx', 'panel', 'bokeh', 'holoviews', 'param', 'yaml', 'hypothesis'}\n"
        "print(sorted(heavy & set(sys.modules)))\n"
        "print(sorted(name for name in sys.modules if name.startswith('dtir.importers')))"
    )
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
    assert done.stdout.splitlines() == ["[]", "[]"]
