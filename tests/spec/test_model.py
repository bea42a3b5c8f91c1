"""Specs: construction, JSON, files, merging; every real file comes back or is refused as its truth says."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import pytest

from dtir.spec import (
    SHARD_FIELDS,
    SPEC_HALO,
    DistributionSpec,
    GraphParallelPolicy,
    HaloPolicy,
    LocalPolicy,
    MLIPSpec,
    OpAdapter,
    OutputKind,
    OutputSpec,
    PythonAdapter,
    Reduce,
    SpecError,
)


def test_adapters_are_lowered_by_type_behind_the_direct_ones() -> None:
    first, second = OpAdapter("ns::a"), OpAdapter("ns::b")
    helper, other = PythonAdapter("m", "f"), PythonAdapter("m", "g")
    spec = DistributionSpec(HaloPolicy(), (first,), (helper,), adapters=(other, second))
    assert spec.custom_ops == (first, second)
    assert spec.third_party_helpers == (helper, other)
    assert spec.adapters == ()
    assert spec == DistributionSpec(HaloPolicy(), (first, second), (helper, other))


def test_no_policy_is_local_and_no_fields_are_none() -> None:
    assert DistributionSpec().storage == LocalPolicy()
    assert "shard_fields" not in DistributionSpec().to_dict()
    none = DistributionSpec(shard_fields=())
    assert none.to_dict()["shard_fields"] == []
    assert DistributionSpec.from_dict(none.to_dict()).shard_fields == ()
    assert DistributionSpec.from_dict(DistributionSpec().to_dict()).shard_fields == SHARD_FIELDS


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        ({"policy": "halo"}, "policy is str, not a storage policy"),
        ({"policy": HaloPolicy}, "policy is the class HaloPolicy"),
        ({"custom_ops": (PythonAdapter("m", "f"),)}, "custom_ops[0] is PythonAdapter, not OpAdapter"),
        ({"third_party_helpers": (OpAdapter("ns::a"),)}, "third_party_helpers[0] is OpAdapter"),
        ({"adapters": (OpAdapter("ns::a"), 3)}, "adapters[1] is int"),
        ({"adapters": "op"}, "adapters is str"),
        ({"shard_fields": "positions"}, "shard_fields is 'positions', not a tuple"),
        ({"shard_fields": (1,)}, "shard_fields is (1,), not a tuple of names"),
    ],
)
def test_wrong_types_name_the_field(arguments: dict[str, Any], said: str) -> None:
    with pytest.raises(TypeError, match=re.escape(said)):
        DistributionSpec(**arguments)


def test_field_names_are_different() -> None:
    with pytest.raises(SpecError, match="must be different names"):
        DistributionSpec(shard_fields=("a", "a"))


def test_outputs_are_lowered_onto_the_three_fields() -> None:
    spec = MLIPSpec(
        DistributionSpec(HaloPolicy()),
        all_reduce_outputs=frozenset({"charge"}),
        outputs={
            "stress": OutputSpec(OutputKind.PER_GRAPH, Reduce.ALL_REDUCE),
            "forces": OutputSpec(OutputKind.PER_NODE, Reduce.OWNED_ONLY),
            "mystery": OutputSpec(OutputKind.UNKNOWN),
        },
    )
    assert spec.all_reduce_outputs == {"charge", "stress"}
    assert spec.owned_only_outputs == {"forces"}
    assert spec.output_kinds == {"stress": OutputKind.PER_GRAPH, "forces": OutputKind.PER_NODE}
    assert spec.outputs == {}
    assert MLIPSpec.from_dict(spec.to_dict()) == spec


def test_an_output_is_owned_or_summed() -> None:
    with pytest.raises(SpecError, match="'e' is taken from its owner and summed"):
        MLIPSpec(DistributionSpec(), frozenset({"e"}), frozenset({"e"}))


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        ({"distribution": None}, "distribution is NoneType"),
        ({"output_kinds": {"e": "per_node"}}, "output_kinds['e'] is str"),
        ({"outputs": {"e": OutputKind.GLOBAL}}, "outputs['e'] is OutputKind"),
        ({"system_reductions": 1}, "system_reductions is int"),
        ({"node_energy_key": 1}, "node_energy_key is int"),
        ({"owned_only_outputs": "forces"}, "owned_only_outputs is 'forces'"),
    ],
)
def test_wrong_types_of_a_model_name_the_field(arguments: dict[str, Any], said: str) -> None:
    with pytest.raises(TypeError, match=re.escape(said)):
        MLIPSpec(**{"distribution": DistributionSpec(), **arguments})


def test_merging_keeps_what_both_say() -> None:
    left = SPEC_HALO.with_adapters(OpAdapter("ns::a"))
    right = MLIPSpec(
        DistributionSpec(HaloPolicy("local", "local"), (OpAdapter("ns::b"),), shard_fields=("spins",)),
        outputs={"magnetisation": OutputSpec(OutputKind.GLOBAL, Reduce.ALL_REDUCE)},
        node_energy_key="atomic_energies",
    )
    merged = left.merge(right)
    assert [one.target for one in merged.distribution.custom_ops] == ["ns::a", "ns::b"]
    assert merged.distribution.policy == HaloPolicy()
    assert merged.distribution.shard_fields == (*SHARD_FIELDS, "spins")
    assert merged.output_kinds["magnetisation"] is OutputKind.GLOBAL
    assert merged.output_kinds["forces"] is OutputKind.PER_NODE
    assert merged.node_energy_key == "atomic_energies"
    other = MLIPSpec(DistributionSpec(), output_kinds={"forces": OutputKind.GLOBAL})
    with pytest.raises(SpecError, match="output 'forces' is per_node in one spec and global in the other"):
        left.merge(other)
    with pytest.raises(SpecError, match="cannot be merged"):
        left.merge(MLIPSpec(DistributionSpec(GraphParallelPolicy())))


def test_files(tmp_path: Path) -> None:
    path = tmp_path / "spec.json"
    SPEC_HALO.save(path)
    assert MLIPSpec.load(path) == SPEC_HALO
    assert path.read_text() == json.dumps(SPEC_HALO.to_dict(), indent=2)
    assert [item.name for item in tmp_path.iterdir()] == ["spec.json"]
    for text, said in (("{", "is no JSON text"), ("[1]", "holds list, not an object")):
        path.write_text(text)
        with pytest.raises(SpecError, match=said):
            MLIPSpec.load(path)


@pytest.mark.parametrize(
    ("change", "field", "said"),
    [
        ({"version": 1}, "version", "unsupported version 1"),
        ({"version": True}, "version", "unsupported version True"),
        ({"version": None}, "version", "unsupported version None"),
        ({"core": 3}, "core", "core holds int, not an object"),
        ({"core": {}}, "core.policy", "core lacks 'policy'"),
        ({"core": {"policy": "halo"}}, "core.policy", "core.policy is str"),
        ({"core": {"policy": {"kind": "local"}, "custom_ops": {}}}, "core.custom_ops", "not a list"),
        ({"core": {"policy": {"kind": "local"}, "shard_fields": "x"}}, "core.shard_fields", "not a list of names"),
        (
            {"core": {"policy": {"kind": "local"}, "third_party_helpers": [1]}},
            "third_party_helpers.kind",
            "unknown third-party",
        ),
        ({"system_reductions": "yes"}, "system_reductions", "is 'yes', not bool"),
        ({"node_energy_key": 3}, "node_energy_key", "is 3, not text or null"),
        ({"owned_only_outputs": "forces"}, "owned_only_outputs", "not a list of names"),
        ({"output_kinds": [["e"]]}, "output_kinds", "neither a list of pairs nor a table"),
        ({"output_kinds": [["e", "per_atom"]]}, "output_kinds", "unknown OutputKind value 'per_atom' for output 'e'"),
        ({"output_kinds": [["e", ["x"]]]}, "output_kinds", "unknown OutputKind value"),
        ({"output_kinds": [["e", "global"], ["e", "global"]]}, "output_kinds", "stands twice"),
        ({"extra": 1}, "spec.extra", "has no field 'extra'"),
    ],
)
def test_json_that_is_no_spec(change: dict[str, Any], field: str, said: str) -> None:
    with pytest.raises(SpecError, match=re.escape(said)) as caught:
        MLIPSpec.from_dict({**SPEC_HALO.to_dict(), **change})
    assert caught.value.field == field


def test_every_real_file_comes_back_or_is_refused_as_its_truth_says(shared_data: Path) -> None:
    folder = shared_data / "inputs" / "specs"
    truth = {item["file"]: item for item in json.loads((folder / "specs.truth.json").read_text())["files"]}
    seen = 0
    for path in sorted(folder.glob("*.json")):
        if path.name not in truth:
            continue
        seen += 1
        wanted, text = truth[path.name], path.read_text()
        given = json.loads(text)
        if wanted.get("upstream_from_dict", "accepted") != "accepted":
            with pytest.raises(SpecError) as caught:
                MLIPSpec.from_dict(given)
            assert wanted["upstream_from_dict"].removeprefix("ValueError: ") in str(caught.value), path.name
            continue
        spec = MLIPSpec.from_dict(given) if "version" in given else DistributionSpec.from_dict(given)
        core = spec.distribution if isinstance(spec, MLIPSpec) else spec
        if isinstance(given.get("output_kinds", []), list) and len(given) > 2:
            assert json.dumps(spec.to_dict(), indent=2) == text, path.name
        assert type(spec).from_dict(spec.to_dict()) == spec
        for key, found in (
            ("policy", core.storage.kind),
            ("n_custom_ops", len(core.custom_ops)),
            ("n_helpers", len(core.third_party_helpers)),
            ("helper_kinds", sorted({one.kind for one in core.third_party_helpers})),
            ("has_shard_fields", core.shard_fields != SHARD_FIELDS),
        ):
            if key in wanted:
                assert wanted[key] == found, (path.name, key)
    assert seen >= 10
