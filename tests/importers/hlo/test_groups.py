"""Replica groups: the three forms, XLA's group modes, and faults."""

from __future__ import annotations

import json
from itertools import pairwise
from math import prod
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dtir.importers.hlo.groups import (
    Devices,
    GroupMode,
    MeshGroups,
    expand,
    group_mode,
    parse_groups,
    parse_pairs,
    rank_groups,
    rank_pairs,
)
from dtir.importers.hlo.lexing import HloSyntaxError
from dtir.importers.hlo.meshes import AxisRef, Iota, Mesh, refine


def test_known_answers(shared_data: Path) -> None:
    cases = json.loads((shared_data / "inputs/hlo_public/known_answers/replica_group_forms.json").read_text())["cases"]
    wrong: list[str] = []
    for case in cases:
        if case.get("jaxlib_plus_our_expansion_matches") == "parse error":
            with pytest.raises(HloSyntaxError):
                parse_groups(case["text"])
        elif [list(group) for group in expand(parse_groups(case["text"]))] != case["expected"]:
            wrong.append(case["text"])
        elif "equals_iota" in case and expand(parse_groups(case["equals_iota"])) != expand(parse_groups(case["text"])):
            wrong.append(case["equals_iota"])
    assert not wrong
    assert len(cases) == 31


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("{}", ()),
        ("{{}}", ()),
        ("{{0,1},{2,3}}", ((0, 1), (2, 3))),
        ("{{0, 2, 4}, {1}}", ((0, 2, 4), (1,))),
        ("{0,1,2}", ((0, 1, 2),)),
        ("{{0,1},/*second*/{3,2}}", ((0, 1), (3, 2))),
        ("[2,2]<=[4]", ((0, 1), (2, 3))),
        ("[2,2]<=[2,2]T(1,0)", ((0, 2), (1, 3))),
        ("mesh['x'=2,'y'=2] {'x'}", ((0, 2), (1, 3))),
        ("mesh['x'=2,'y'=2] {'y','x'}", ((0, 2, 1, 3),)),
        ("mesh['x'=2,'y'=2], device_ids=(3,2,1,0) {'x'}", ((3, 1), (2, 0))),
        ("mesh['x'=4,'y'=1], device_ids=([2,2]T(1,0)) {'x':(2)2}", ((0, 2), (1, 3))),
        ("mesh['<axis> d{e\\'f'=2,'y'=2] {'y'}", ((0, 1), (2, 3))),
        ("mesh['x'=2] {}", ((0,), (1,))),
    ],
)
def test_forms(text: str, expected: tuple[tuple[int, ...], ...]) -> None:
    assert expand(parse_groups(text)) == expected


@pytest.mark.parametrize(
    ("text", "code"),
    [
        ("{{0,1},{1,2}}", "hlo.replica_groups"),
        ("{{0,-1}}", "hlo.replica_groups"),
        ("{{0,1}", "hlo.syntax"),
        ("{{0 1}}", "hlo.syntax"),
        ("{{0},{1}},", "hlo.syntax"),
        ("[2,4]<=[4]", "hlo.replica_groups"),
        ("[2,2,2]<=[8]", "hlo.replica_groups"),
        ("[2,2]<=[4]T(1,0)", "hlo.syntax"),
        ("[2,2]<=[2,2]T(0,0)", "hlo.syntax"),
        ("[2,2]", "hlo.syntax"),
        ("mesh['x'=2] {'z'}", "hlo.unknown_axis"),
        ("mesh['x'=2,'x'=2] {'x'}", "hlo.axis_reuse"),
        ("mesh['x'=2] {'x','x'}", "hlo.axis_reuse"),
        ("mesh['x'=8] {'x':(1)4,'x':(2)4}", "hlo.axis_reuse"),
        ("mesh['x'=6] {'x':(4)2}", "hlo.sub_axis"),
        ("mesh['x'=12] {'x':(1)2,'x':(3)2}", "hlo.sub_axis"),
        ("mesh['x'=2], device_ids=(0,1,2) {'x'}", "hlo.device_ids"),
        ("mesh['x'=2], device_ids=(1,1) {'x'}", "hlo.device_ids"),
        ("mesh['x'=2, device_ids=(1,0)] {'x'}", "hlo.syntax"),
        ("mesh['x'=0] {'x'}", "hlo.syntax"),
        ("everybody", "hlo.syntax"),
    ],
)
def test_faults(text: str, code: str) -> None:
    with pytest.raises(HloSyntaxError) as caught:
        parse_groups(text)
    assert caught.value.code == code


@pytest.mark.parametrize("text", ["[1,2000000000]<=[2000000000]", "mesh['x'=2000000000] {'x'}"])
def test_a_number_in_the_text_costs_no_memory(text: str) -> None:
    groups = parse_groups(text)
    assert groups.size() == 2_000_000_000
    with pytest.raises(HloSyntaxError, match="more than the 131072"):
        expand(groups)


@pytest.mark.parametrize(
    ("opcode", "channel", "flag", "mode"),
    [
        ("all-reduce", False, False, GroupMode.REPLICAS),
        ("all-to-all", False, False, GroupMode.REPLICAS),
        ("all-reduce", True, True, GroupMode.FLATTENED),
        ("all-reduce", True, False, GroupMode.REPLICAS_ALL_PARTITIONS),
        ("reduce-scatter", True, False, GroupMode.REPLICAS_ALL_PARTITIONS),
        ("all-gather", True, False, GroupMode.REPLICAS_ALL_PARTITIONS),
        ("all-to-all", True, False, GroupMode.PARTITIONS),
        ("collective-permute", True, False, GroupMode.PARTITIONS),
        ("collective-broadcast", True, False, GroupMode.PARTITIONS),
    ],
)
def test_group_mode(opcode: str, channel: bool, flag: bool, mode: GroupMode) -> None:
    assert group_mode(opcode, channel, flag) is mode


def test_the_same_ids_in_every_mode() -> None:
    devices = Devices(replicas=2, partitions=3)
    assert rank_groups(((0, 1),), GroupMode.REPLICAS, devices) == ((0, 3), (1, 4), (2, 5))
    assert rank_groups(((0, 2), (1,)), GroupMode.PARTITIONS, devices) == ((0, 2), (3, 5), (1,), (4,))
    assert rank_groups(((0,), (1,)), GroupMode.REPLICAS_ALL_PARTITIONS, devices) == ((0, 1, 2), (3, 4, 5))
    assert rank_groups(((0, 5),), GroupMode.FLATTENED, devices) == ((0, 5),)


def test_group_of_replica_zero_is_everybody_on_partitions() -> None:
    # openxla/xla#5655: `{{0}}` with a channel and no global ids spans all partitions of replica 0.
    assert rank_groups(((0,),), GroupMode.REPLICAS_ALL_PARTITIONS, Devices(1, 4)) == ((0, 1, 2, 3),)


def test_no_group_is_everybody_of_a_kind() -> None:
    assert rank_groups((), GroupMode.FLATTENED, Devices(2, 2)) == (range(4),)
    assert rank_groups((), GroupMode.REPLICAS, Devices(2, 2)) == ((0, 2), (1, 3))
    assert rank_groups((), GroupMode.PARTITIONS, Devices(2, 2)) == ((0, 1), (2, 3))
    assert rank_groups((), GroupMode.FLATTENED, Devices(1, 2_000_000_000)) == (range(2_000_000_000),)


def test_too_many_ranks_to_list() -> None:
    with pytest.raises(HloSyntaxError, match="more than the 131072"):
        rank_groups(((0, 1),), GroupMode.REPLICAS, Devices(2, 2_000_000_000))
    with pytest.raises(HloSyntaxError, match="more than the 131072"):
        rank_pairs(((0, 1),), GroupMode.REPLICAS, Devices(2, 2_000_000_000))


def test_pairs_in_every_mode() -> None:
    devices = Devices(replicas=2, partitions=2)
    assert rank_pairs(((0, 1),), GroupMode.REPLICAS, devices) == ((0, 2), (1, 3))
    assert rank_pairs(((0, 1),), GroupMode.PARTITIONS, devices) == ((0, 1), (2, 3))
    assert rank_pairs(((0, 3),), GroupMode.FLATTENED, devices) == ((0, 3),)


def test_pairs() -> None:
    assert parse_pairs("{{0,1},{2, 3}}") == ((0, 1), (2, 3))
    assert parse_pairs("{}") == ()
    with pytest.raises(HloSyntaxError, match="expected pairs"):
        parse_pairs("{{0,1,2}}")


@st.composite
def _meshes(draw: st.DrawFn) -> tuple[Mesh, tuple[AxisRef, ...]]:
    """A mesh whose axes are products of small factors, and references to disjoint parts of them."""
    axes: list[tuple[str, int]] = []
    refs: list[AxisRef] = []
    for number in range(draw(st.integers(1, 3))):
        factors = draw(st.lists(st.sampled_from([1, 2, 3]), min_size=1, max_size=3))
        axes.append((f"a{number}", prod(factors)))
        cuts = [prod(factors[:end]) for end in range(len(factors) + 1)]
        refs += [AxisRef(f"a{number}", low, high // low) for low, high in pairwise(cuts) if high > low]
    chosen = draw(st.lists(st.sampled_from(refs), unique=True) if refs else st.just([]))
    return Mesh(tuple(axes)), tuple(draw(st.permutations(chosen)))


@given(_meshes())
def test_mesh_groups_partition_the_devices(case: tuple[Mesh, tuple[AxisRef, ...]]) -> None:
    mesh, refs = case
    groups = expand(MeshGroups(mesh, refs, ""))
    assert sorted(rank for group in groups for rank in group) == list(range(mesh.count))
    assert {len(group) for group in groups} == {prod(ref.size or 1 for ref in refs)}
    assert prod(refine(mesh, refs).dims) == mesh.count


@given(
    st.lists(st.integers(1, 4), min_size=1, max_size=4).flatmap(
        lambda dims: st.tuples(st.just(dims), st.permutations(range(len(dims))))
    )
)
def test_iota_is_numpy_transpose(case: tuple[list[int], list[int]]) -> None:
    import numpy as np

    dims, perm = case
    expected = np.arange(prod(dims)).reshape(dims).transpose(perm).reshape(-1).tolist()
    assert list(Iota(tuple(dims), tuple(perm)).expand()) == expected
