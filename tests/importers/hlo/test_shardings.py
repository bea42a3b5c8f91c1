"""Shardings: the printed forms of all three generations, and faults."""

from __future__ import annotations

import json
from math import prod
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from dtir.importers.hlo.lexing import HloSyntaxError
from dtir.importers.hlo.meshes import AxisRef, Iota
from dtir.importers.hlo.shardings import (
    Maximal,
    Named,
    Sharding,
    Subgroup,
    Tiled,
    TupleSharding,
    Uniform,
    parse_sharding,
    tiled,
    to_tiled,
)


def _v2(sharding: Sharding) -> str:
    match sharding:
        case Named():
            return to_tiled(sharding).text
        case Maximal(device=device):
            return f"{{maximal device={device}}}"
        case Uniform(state=state):
            return f"{{{state.value}}}"
        case Tiled() | TupleSharding():
            return sharding.text


def test_known_answers(shared_data: Path) -> None:
    cases = json.loads((shared_data / "inputs/hlo_public/known_answers/sharding_forms.json").read_text())
    assert len(cases) >= 20
    for case in cases:
        sharding = parse_sharding(case["text"])
        assert _v2(sharding) == case["v2"], case["text"]
        if case.get("tiled"):
            assert isinstance(sharding, Tiled)
            assert [list(sharding.tile_dims), list(sharding.devices())] == [case["dims"], case["devices"]]
            assert tiled(sharding.tile_dims, sharding.assignment, sharding.subgroups).text == case["printed"]


def test_iota_tiles_with_subgroups() -> None:
    sharding = parse_sharding("{devices=[1,2,2,2]<=[2,4]T(1,0) last_tile_dims={manual, replicated}}")
    assert isinstance(sharding, Tiled)
    assert sharding.data_dims == (1, 2)
    assert sharding.subgroups == (Subgroup.MANUAL, Subgroup.REPLICATED)
    assert sharding.devices() == (0, 4, 1, 5, 2, 6, 3, 7)


def test_named_with_every_option() -> None:
    text = "{mesh['x'=2,'y'=4,'z'=2,'w'=2], device_ids=([4,8]T(1,0)), [{'x'}, {'y':(1)2, ?}, {}], replicated={'z'}, unreduced=max{'w'}}"
    sharding = parse_sharding(text)
    assert isinstance(sharding, Named)
    assert sharding.mesh.device_ids == Iota((4, 8), (1, 0))
    assert sharding.dim_axes == ((AxisRef("x"),), (AxisRef("y", 1, 2),), ())
    assert sharding.open_dims == (False, True, False)
    assert (sharding.replicated, sharding.unreduced, sharding.reduction) == ((AxisRef("z"),), (AxisRef("w"),), "max")
    assert sharding.text == text


@pytest.mark.parametrize("text", ["{mesh['x'=2] [{'x'}]}", "{mesh['x'=2], [{'x'}]}"])
def test_the_comma_after_the_mesh_may_be_absent(text: str) -> None:
    sharding = parse_sharding(text)
    assert isinstance(sharding, Named)
    assert sharding.dim_axes == ((AxisRef("x"),),)


def test_tuples_are_flat() -> None:
    sharding = parse_sharding("{{replicated}, {devices=[2]<=[2]}, {{manual}, {maximal device=1}}}")
    assert isinstance(sharding, TupleSharding)
    assert [_v2(element) for element in sharding.elements] == [
        "{replicated}",
        "{devices=[2]<=[2]}",
        "{manual}",
        "{maximal device=1}",
    ]


@pytest.mark.parametrize(
    "text",
    [
        '{devices=[2,1]1,0 metadata={op_name="a}b"}}',
        "{replicated shard_as 1}",
        "{devices=[2]<=[2] shard_like 4}",
        '{manual metadata={{op_name="a"} {op_name="b"}}}',
    ],
)
def test_shard_groups_and_metadata_are_read_over(text: str) -> None:
    assert parse_sharding(text).text == text


@pytest.mark.parametrize(
    ("text", "code"),
    [
        ("replicated", "hlo.syntax"),
        ("{replicatedly}", "hlo.sharding"),
        ("{replicated", "hlo.syntax"),
        ("{devices=[2,2]0,1,2,3,4}", "hlo.sharding"),
        ("{devices=[2,2]0,1,2,2}", "hlo.sharding"),
        ("{devices=[2]<=[4]}", "hlo.sharding"),
        ("{devices=[2]<=[2] last_tile_dims={odd}}", "hlo.sharding"),
        ("{devices=[2]<=[2] and more}", "hlo.sharding"),
        ("{devices=[2]<=[2] last_tile_dims={manual,manual}}", "hlo.sharding"),
        ("{maximal device=3 last_tile_dim_replicate}", "hlo.sharding"),
        ("{mesh['x'=2], [{'y'}]}", "hlo.unknown_axis"),
        ("{mesh['x'=2], [{'x'}, {'x'}]}", "hlo.axis_reuse"),
        ("{mesh['x'=2], {'x'}}", "hlo.sharding"),
        ("{" * 50 + "}" * 50, "hlo.syntax"),
    ],
)
def test_faults(text: str, code: str) -> None:
    with pytest.raises(HloSyntaxError) as caught:
        parse_sharding(text)
    assert caught.value.code == code


def test_a_number_in_the_text_costs_no_memory() -> None:
    sharding = parse_sharding("{devices=[2000000000]<=[2000000000]}")
    assert isinstance(sharding, Tiled)
    with pytest.raises(HloSyntaxError, match="more than the 131072"):
        sharding.devices()


@given(st.permutations(["a", "b", "c"]), st.integers(0, 3))
def test_named_and_tiled_place_the_same_blocks(order: list[str], used: int) -> None:
    sizes = {"a": 2, "b": 3, "c": 2}
    axes = ", ".join("{'" + name + "'}" for name in order[:used])
    sharding = parse_sharding(f"{{mesh['a'=2,'b'=3,'c'=2], [{axes}]}}")
    assert isinstance(sharding, Named)
    tiles = to_tiled(sharding)
    if isinstance(tiles, Uniform):
        assert used == 0
        return
    ids = np.array(tiles.devices()).reshape(*tiles.data_dims, -1)
    assert tiles.data_dims == tuple(sizes[name] for name in order[:used])
    for device in range(12):
        coordinates = dict(zip("abc", np.unravel_index(device, (2, 3, 2)), strict=True))
        block = tuple(coordinates[name] for name in order[:used])
        assert device in ids[block]
    assert prod(tiles.tile_dims) == 12
