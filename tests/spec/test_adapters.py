"""Adapters and their registry: what they change, that everything comes back, and that a file runs nothing."""

from __future__ import annotations

import subprocess
import sys
import types
from collections.abc import Iterator
from typing import Any

import pytest

from dtir.spec import (
    AdapterRegistry,
    ArgTransform,
    Callables,
    DistributionSpec,
    FunctionAdapter,
    JitAdapter,
    MethodAdapter,
    ModuleForwardAdapter,
    OpAdapter,
    OutputTransform,
    PythonAdapter,
    SpecError,
    Tools,
    op_qualname,
    resolve_op,
)
from dtir.spec.adapters import adapter_kinds, helper_from_dict, register_adapter_kind
from dtir.spec.callables import callable_name


@pytest.fixture
def library(monkeypatch: pytest.MonkeyPatch) -> Iterator[types.ModuleType]:
    """A third-party module with a function, a class and a static method."""
    module = types.ModuleType("third_party")
    exec(  # noqa: S102 - a module of our own text
        "def total(values):\n    return sum(values)\n\n"
        "class Base:\n    def shared(self):\n        return 'base'\n\n"
        "class Layer(Base):\n    def forward(self, x):\n        return x + 1\n\n"
        "    @staticmethod\n    def plain(x):\n        return x\n",
        module.__dict__,
    )
    for thing in ("total",):
        getattr(module, thing).__module__ = "third_party"
    for name in ("Base", "Layer"):
        getattr(module, name).__module__ = "third_party"
    monkeypatch.setitem(sys.modules, "third_party", module)
    return module


# -- positions and roles --------------------------------------------------------------------------------------------------


def test_roles_and_dicts_say_the_same() -> None:
    by_role = OpAdapter("ns::f", gather_inputs=[0], slice_owned=(1,), scatter_outputs=[0], slice_outputs_owned=[1])
    by_dict = OpAdapter(
        "ns::f",
        {0: ArgTransform.GATHER_INPUTS, 1: ArgTransform.SLICE_OWNED},
        {0: OutputTransform.SCATTER_OUTPUTS, 1: OutputTransform.SLICE_OUTPUTS_OWNED},
    )
    assert by_role == by_dict
    assert OpAdapter.from_dict(by_role.to_dict()) == by_role
    assert by_role.install_site.startswith(__file__)


def test_a_dict_wins_over_a_role_and_two_roles_are_refused() -> None:
    won = OpAdapter("ns::f", {0: ArgTransform.SLICE_OWNED}, gather_inputs=[0])
    assert won.arg_transforms == {0: ArgTransform.SLICE_OWNED}
    with pytest.raises(SpecError, match="position 0 has two roles"):
        OpAdapter("ns::f", gather_inputs=[0], slice_owned=[0])


@pytest.mark.parametrize(
    ("given", "field"),
    [
        ({"op": "ns::f", "arg_transforms": {"0": {"type": "gather"}}}, "arg_transforms.0"),
        ({"op": "ns::f", "arg_transforms": {"-1": {"type": "slice_owned"}}}, "arg_transforms"),
        ({"op": "ns::f", "output_transforms": {"0": {"type": "slice_owned"}}}, "output_transforms.0"),
        ({"op": "ns::f", "output_transforms": {"0": {"type": "all_reduce_sum", "op": "max"}}}, "output_transforms.0"),
        ({"op": "no name"}, "op"),
        ({"arg_transforms": {}}, "custom_ops.op"),
        ({"op": "ns::f", "extra": 1}, "custom_ops.extra"),
    ],
)
def test_op_forms_that_are_none(given: dict[str, Any], field: str) -> None:
    with pytest.raises(SpecError) as caught:
        OpAdapter.from_dict(given)
    assert caught.value.field == field


# -- what each changes ----------------------------------------------------------------------------------------------------


def test_a_function_is_replaced_and_comes_back(library: types.ModuleType) -> None:
    original = library.total
    with AdapterRegistry([PythonAdapter("third_party", "total", lambda values: -1)]):
        assert library.total([1, 2]) == -1
    assert library.total is original


def test_a_compiled_helper_is_replaced_or_marshalled(library: types.ModuleType) -> None:
    class Divided:
        def to_local(self) -> list[int]:
            return [1, 2, 3]

    with AdapterRegistry([JitAdapter("third_party", "total", mode="marshal")]):
        assert library.total(Divided()) == 6
        assert library.total([1]) == 1
    with AdapterRegistry([JitAdapter("third_party", "total", lambda values: "plain")]):
        assert library.total([]) == "plain"


def test_a_method_is_wrapped_with_its_original_first(library: types.ModuleType) -> None:
    adapter = MethodAdapter(library.Layer, "forward", lambda original, self, x: original(self, x) * 10)
    with AdapterRegistry([adapter]):
        assert library.Layer().forward(1) == 20
    assert library.Layer().forward(1) == 2
    assert adapter.target == "third_party.Layer.forward"


def test_an_inherited_method_is_inherited_again_and_a_static_one_stays_static(library: types.ModuleType) -> None:
    with AdapterRegistry(
        [
            MethodAdapter("third_party", "Layer", "shared", lambda original, self: "mine"),
            MethodAdapter("third_party", "Layer", "plain", mode="marshal"),
        ]
    ):
        assert library.Layer().shared() == "mine"
        assert library.Base().shared() == "base"
    assert "shared" not in vars(library.Layer)
    assert isinstance(vars(library.Layer)["plain"], staticmethod)


def test_forward_of_one_object(library: types.ModuleType) -> None:
    mine, other = library.Layer(), library.Layer()
    adapter = ModuleForwardAdapter(mine, lambda x: "stand-in", "layer")
    with AdapterRegistry([adapter]):
        assert mine.forward(1) == "stand-in"
        assert other.forward(1) == 2
    assert "forward" not in vars(mine)
    mine.forward = lambda x: "its own"
    with AdapterRegistry([adapter]):
        assert mine.forward(1) == "stand-in"
    assert mine.forward(1) == "its own"
    declared = ModuleForwardAdapter.from_dict(adapter.to_dict())
    assert declared.to_dict() == adapter.to_dict()
    with AdapterRegistry([declared]):
        assert other.forward(1) == 2


def test_a_function_adapter_refuses_what_is_exported_again(library: types.ModuleType) -> None:
    assert FunctionAdapter(library.total).target == "third_party.total"
    again = types.ModuleType("again")
    again.total = library.total  # type: ignore[attr-defined]
    library.total.__module__ = "again_not_there"
    sys.modules["again_not_there"] = types.ModuleType("again_not_there")
    try:
        with pytest.raises(ValueError, match="exported again"):
            FunctionAdapter(library.total)
    finally:
        del sys.modules["again_not_there"]
    with pytest.raises(TypeError, match="not a function"):
        FunctionAdapter(3)  # type: ignore[arg-type]


def test_an_operation_is_handed_to_who_dispatches() -> None:
    seen: list[tuple[str, object]] = []

    def wrap(adapter: OpAdapter, op: object) -> Any:
        seen.append((adapter.target, op))
        return lambda: seen.append(("undone", op))

    tools = Tools(op_resolver=lambda name: f"live {name}", wrap_op=wrap)
    with AdapterRegistry([OpAdapter("ns::f", scatter_outputs=[0])], tools):
        pass
    assert seen == [("ns::f", "live ns::f"), ("undone", "live ns::f")]


# -- the registry -----------------------------------------------------------------------------------------------------------


def test_restored_in_reverse_even_after_an_exception(library: types.ModuleType) -> None:
    original = library.total
    registry = AdapterRegistry(
        [
            PythonAdapter("third_party", "total", lambda values: "first"),
            PythonAdapter("third_party", "total", lambda values: "second"),
        ]
    )

    def body() -> None:
        with registry:
            assert library.total([]) == "second"
            assert [status.state for status in registry.list_active()] == ["installed", "installed"]
            raise KeyError

    with pytest.raises(KeyError):
        body()
    assert library.total is original
    assert [status.state for status in registry.list_active()] == ["restored", "restored"]


def test_a_half_installed_set_is_rolled_back(library: types.ModuleType) -> None:
    original = library.total
    registry = AdapterRegistry(
        [
            PythonAdapter("third_party", "total", lambda values: "first"),
            PythonAdapter("third_party", "absent", lambda values: "second"),
            PythonAdapter("third_party", "total", lambda values: "third"),
        ]
    )
    with pytest.raises(SpecError, match=r"third_party\.absent is not there"), registry:
        pytest.fail("the body does not run")
    assert library.total is original
    found = registry.list_active()
    assert [status.state for status in found] == ["restored", "failed", "pending"]
    assert found[1].error is not None
    assert found[1].error.startswith("SpecError: ")
    assert found[1].install_site.startswith(__file__)


def test_nested_registries_unwind(library: types.ModuleType) -> None:
    original = library.total
    outer = AdapterRegistry([PythonAdapter("third_party", "total", lambda values: "outer")])
    with outer:
        with AdapterRegistry([PythonAdapter("third_party", "total", lambda values: "inner")]):
            assert library.total([]) == "inner"
        assert library.total([]) == "outer"
        with pytest.raises(RuntimeError, match="installed already"), outer:
            pytest.fail("the body does not run")
    assert library.total is original


def test_a_failure_to_restore_does_not_keep_the_others(library: types.ModuleType) -> None:
    def wrap(adapter: OpAdapter, op: object) -> Any:
        def undo() -> None:
            raise OSError("gone")

        return undo

    original = library.total
    registry = AdapterRegistry(
        [PythonAdapter("third_party", "total", lambda values: 0), OpAdapter("ns::f")], Tools(wrap_op=wrap)
    )
    with pytest.raises(OSError, match="gone"), registry:
        pass
    assert library.total is original
    assert [status.state for status in registry.list_active()] == ["restored", "failed"]


# -- names that come from files -----------------------------------------------------------------------------------------------

HOSTILE = {
    "policy": {"kind": "local"},
    "custom_ops": [{"op": "os::system", "arg_transforms": {}, "output_transforms": {}}],
    "third_party_helpers": [
        {"kind": "python", "module_path": "hostile_module", "attr_name": "f", "replacement": "hostile_module:g"},
        {"kind": "jit", "module_path": "hostile_module", "attr_name": "f", "replacement": None, "mode": "marshal"},
        {
            "kind": "method",
            "module_path": "hostile_module",
            "class_name": "C",
            "method_name": "m",
            "replacement": "os:system",
            "mode": "wrap",
        },
    ],
}


def test_loading_a_hostile_spec_runs_and_imports_nothing(tmp_path: Any) -> None:
    """In a process of its own: the module it names would leave a trace, and is never imported."""
    trace = tmp_path / "ran"
    (tmp_path / "hostile_module.py").write_text(f"open({str(trace)!r}, 'w').close()\ndef f(): pass\ng = f\n")
    code = (
        "import sys, json\n"
        f"sys.path.insert(0, {str(tmp_path)!r})\n"
        "from dtir.spec import AdapterRegistry, DistributionSpec, SpecError\n"
        f"spec = DistributionSpec.from_dict(json.loads({__import__('json').dumps(HOSTILE)!r}))\n"
        "for adapter in spec.installed_order[1:]:\n"
        "    try:\n"
        "        AdapterRegistry([adapter]).__enter__()\n"
        "    except SpecError as error:\n"
        "        assert error.code == 'spec.callable', error\n"
        "    else:\n"
        "        raise SystemExit('it was installed')\n"
        "assert 'hostile_module' not in sys.modules and 'torch' not in sys.modules\n"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=60, check=False)
    assert done.returncode == 0, done.stderr
    assert not trace.exists()


def test_names_resolve_where_somebody_allowed_it(library: types.ModuleType) -> None:
    adapter = helper_from_dict(
        {"kind": "python", "module_path": "third_party", "attr_name": "total", "replacement": "mine:stand_in"}
    )
    callables = Callables(allow=["third_party"])
    with pytest.raises(SpecError, match="'mine:stand_in' is neither registered nor in an allowed module"):
        AdapterRegistry([adapter], Tools(callables)).__enter__()
    callables.register("mine:stand_in", lambda values: "allowed")
    with AdapterRegistry([adapter], Tools(callables)):
        assert library.total([]) == "allowed"


@pytest.mark.parametrize(
    "name", ["os", "os:", ":system", "os:__class__", "os:path.__init__", "a b:c", "os;x:y", 3, None]
)
def test_names_of_another_form_are_refused(name: object) -> None:
    with pytest.raises(SpecError):
        Callables(allow=["os"]).resolve(name)  # type: ignore[arg-type]


def test_only_callables_of_allowed_modules() -> None:
    with pytest.raises(SpecError, match="has no callable 'sep'"):
        Callables(allow=["os"]).resolve("os:sep")
    with pytest.raises(SpecError, match="cannot be imported"):
        Callables(allow=["no_such_module_here"]).resolve("no_such_module_here:f")
    with pytest.raises(TypeError, match="not a callable"):
        Callables().register("a:b", 3)  # type: ignore[arg-type]


def test_names_of_operations() -> None:
    class Schema:
        name = "aten::add"

    class Overload:
        _schema = Schema()

    assert op_qualname("ns::f") == "ns::f"
    assert op_qualname(Overload()) == "aten::add"
    assert op_qualname(callable_name) == "callables::callable_name"
    assert resolve_op("ns::f", {"ns::f": 7}.__getitem__) == 7
    with pytest.raises(LookupError, match="torch is not imported"):
        resolve_op("ns::f")
    for wrong in ("f", "a::b; import os", object()):
        with pytest.raises(SpecError):
            op_qualname(wrong)


def test_kinds_of_helpers_can_be_added(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("dtir.spec.adapters._KINDS", {})
    register_adapter_kind("mine", lambda given: PythonAdapter("a", given["name"], None, False, "json"))
    assert adapter_kinds() == ("mine",)
    assert helper_from_dict({"kind": "mine", "name": "b"}).target == "a.b"
    with pytest.raises(SpecError, match="unknown third-party helper kind 'python'; expected one of mine"):
        helper_from_dict({"kind": "python"})


def test_a_spec_of_text_alone_needs_no_library() -> None:
    spec = DistributionSpec.from_dict(HOSTILE)
    assert spec.to_dict() == HOSTILE
    assert [adapter.install_site for adapter in spec.installed_order] == ["json"] * 4
