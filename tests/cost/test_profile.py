"""Machine profiles: reading and writing, everything wrong reported at once, presets."""

from __future__ import annotations

import copy
import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dtir.cost.algorithms import Shape
from dtir.cost.nccl import Generation, NcclMachine
from dtir.cost.presets import load_preset, preset_names
from dtir.cost.profile import (
    Curve,
    Level,
    MachineProfile,
    Noise,
    Rates,
    Segment,
    Source,
    Standing,
    dtype_class,
    rate_of,
)
from dtir.cost.profile_json import OPERATIONS, profile_json, profile_tree, read_profile
from dtir.schema.result import Err, Ok

SOURCE = Source(Standing.MEASURED, "a test", "2026-01-01")

times = st.floats(0, 1, allow_nan=False)
positive = st.floats(1e-6, 1e18)


@st.composite
def curves(draw: st.DrawFn) -> Curve:
    starts = sorted(draw(st.sets(st.integers(1, 1 << 30), max_size=2)))
    segments = tuple(Segment(start, draw(times), draw(times)) for start in (0, *starts))
    noise = tuple(
        Noise(draw(st.integers(0, 1 << 30)), draw(st.integers(1, 99)), draw(times), draw(times), draw(times))
        for _ in range(draw(st.integers(0, 2)))
    )
    return Curve(
        draw(st.sampled_from(OPERATIONS)),
        draw(st.integers(2, 4096)),
        draw(st.sampled_from(["native", "ring"])),
        draw(st.sampled_from(["any", "float32"])),
        draw(st.sampled_from(["", "nvlink"])),
        segments,
        draw(st.none() | st.just((8, 1 << 20))),
        draw(st.none() | positive),
        noise,
    )


@st.composite
def profiles(draw: st.DrawFn) -> MachineProfile:
    units = draw(st.sampled_from([(None,), (8, None), (4, 16, None), (8, 64)]))
    levels = tuple(
        Level(f"l{place}", unit, draw(times), draw(times), draw(st.sampled_from(Shape)), draw(st.none() | st.just(2)))
        for place, unit in enumerate(units)
    )
    rates = Rates({"bf16": draw(positive)}, {"any": draw(positive)}, draw(st.none() | positive), 1 << 30, 1e-6, 1e-10)
    rate = st.floats(1, 1e12)
    nccl = draw(st.none() | st.builds(NcclMachine, st.sampled_from(Generation), st.integers(1, 32), rate, rate))
    return MachineProfile(
        "id", "what", SOURCE, {"cores": 2, "cpu": "x"}, levels, tuple(draw(st.lists(curves(), max_size=3))), rates, nccl
    )


@given(profiles())
def test_a_profile_is_read_as_it_was_written(profile: MachineProfile) -> None:
    found = read_profile(profile_json(profile))
    assert isinstance(found, Ok), found
    assert found.value == profile


GOOD: dict[str, Any] = profile_tree(
    MachineProfile(
        "good",
        "a machine",
        SOURCE,
        levels=(Level("node", 8, 1e-6, 1e-11), Level("net", None, 1e-5, 1e-9, ports=8)),
        curves=(Curve("all_reduce", 4, segments=(Segment(0, 1e-6, 1e-9), Segment(4096, 2e-6, 1e-10))),),
        rates=Rates({"bf16": 1e15}, {"any": 1e13}, 1e12),
        nccl=NcclMachine(Generation.HOPPER, 16, 2e10, 2e10),
    )
)


def broken(path: str, value: object) -> str:
    """The good profile with one thing changed; a path ends in ``-`` to remove and ``+`` to add."""
    tree = copy.deepcopy(GOOD)
    place: Any = tree
    *steps, last = path.split(".")
    for step in steps:
        place = place[int(step) if step.isdecimal() else step]
    if last.endswith("-"):
        del place[last[:-1]]
    else:
        place[int(last) if last.isdecimal() else last] = value
    return json.dumps(tree)


@pytest.mark.parametrize(
    ("path", "value", "code", "where", "says"),
    [
        ("schema", "dtir.run-record", "profile.json", (), "dtir.run-record"),
        ("version", "9.0.0", "profile.json", (), "9.0.0"),
        ("id-", None, "profile.field", (), "id is missing"),
        ("source-", None, "profile.field", (), "source is missing"),
        ("source.standing", "guessed", "profile.field", ("source", "standing"), "measured, published, model"),
        ("levels.0.rank", 8, "profile.field", ("levels", "0"), "did you mean ranks?"),
        ("levels.0.alpha_s-", None, "profile.field", ("levels", "0"), "alpha_s is missing"),
        ("levels.0.alpha_s", -1e-6, "profile.value", ("levels", "0", "alpha_s"), "found -1e-06"),
        ("levels.0.alpha_s", "fast", "profile.field", ("levels", "0", "alpha_s"), '"fast"'),
        ("levels.0.alpha_s", True, "profile.field", ("levels", "0", "alpha_s"), "found true"),
        ("levels.0.ranks", None, "profile.value", ("levels", "0", "ranks"), "outermost"),
        ("levels.0.ranks", 1, "profile.value", ("levels", "0", "ranks"), "no multiple"),
        ("levels.0.shape", "star", "profile.field", ("levels", "0", "shape"), "switch, ring"),
        ("levels.1.ports", 0, "profile.value", ("levels", "1", "ports"), "at least 1"),
        ("levels", {}, "profile.field", ("levels",), "a list"),
        ("levels.0", [], "profile.field", ("levels", "0"), "found a list, wanted an object"),
        ("curves.0.op", "all_sum", "profile.field", ("curves", "0", "op"), "all_reduce"),
        ("curves.0.group_size", 1, "profile.value", ("curves", "0", "group_size"), "at least 2"),
        ("curves.0.segments", [], "profile.value", ("curves", "0", "segments"), "from_bytes 0"),
        ("curves.0.segments.0.from_bytes", 8, "profile.value", ("curves", "0", "segments"), "from_bytes 0"),
        ("curves.0.segments.1.from_bytes", 0, "profile.value", ("curves", "0", "segments"), "rise"),
        ("curves.0.measured_bytes", [8], "profile.value", ("curves", "0", "measured_bytes"), "[smallest, largest]"),
        ("curves.0.measured_bytes", [8, 4], "profile.value", ("curves", "0", "measured_bytes"), "[8, 4]"),
        ("curves.0.noise", [8], "profile.field", ("curves", "0", "noise", "0"), "found a number, wanted an object"),
        ("rates.memory_bytes_per_s", 0, "profile.value", ("rates", "memory_bytes_per_s"), "positive"),
        ("rates.matrix_flops_per_s.bf16", "much", "profile.value", ("rates", "matrix_flops_per_s", "bf16"), '"much"'),
        ("nccl.generation", "turing", "profile.field", ("nccl", "generation"), "hopper"),
        ("nccl.intra_link", "smoke", "profile.field", ("nccl", "intra_link"), "nvlink or pci"),
        ("host", {"cpu": ["a"]}, "profile.value", ("host", "cpu"), "found a list"),
        ("colour", "red", "profile.field", (), 'unknown field "colour"'),
    ],
)
def test_what_is_wrong_is_said_with_its_place(
    path: str, value: object, code: str, where: tuple[str, ...], says: str
) -> None:
    found = read_profile(broken(path, value))
    assert isinstance(found, Err)
    (finding,) = found.error
    assert (finding.code, finding.path) == (code, where)
    assert says in finding.message
    assert finding.hint


def test_the_good_profile_is_good() -> None:
    assert isinstance(read_profile(json.dumps(GOOD)), Ok)


def test_everything_wrong_is_said_at_once() -> None:
    tree = copy.deepcopy(GOOD)
    tree["levels"][0]["alpha_s"] = -1
    tree["curves"][0]["group_size"] = "four"
    tree["what"] = 1
    found = read_profile(json.dumps(tree))
    assert isinstance(found, Err)
    assert [item.code for item in found.error] == ["profile.value", "profile.field", "profile.field"]


@pytest.mark.parametrize("text", ["", "{", "[]", "null", '{"schema": 1}', '{"a": 1, "a": 2}', "NaN", "[" * 3000])
def test_what_is_no_profile_is_refused(text: str) -> None:
    found = read_profile(text)
    assert isinstance(found, Err)
    assert [item.code for item in found.error] == ["profile.json"]


def test_a_profile_of_nothing_is_refused() -> None:
    head = {key: GOOD[key] for key in ("schema", "version", "id", "source")}
    found = read_profile(json.dumps(head))
    assert isinstance(found, Err)
    assert "nothing can be planned" in found.error.diagnostics[0].message


def test_huge_numbers_are_refused() -> None:
    text = json.dumps(GOOD).replace('"ranks": 8', '"ranks": 1' + "0" * 400)
    found = read_profile(text)
    assert isinstance(found, Err)
    assert found.error.diagnostics[0].path == ("levels", "0", "ranks")


# -- presets ----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", preset_names())
def test_presets_name_themselves_and_their_sources(name: str) -> None:
    profile = load_preset(name)
    assert profile.id == name
    assert profile.summary
    assert len(profile.source.text) > 40
    assert len(profile.source.date) == 10
    assert profile.levels


def test_an_unknown_preset_is_answered_with_a_similar_one() -> None:
    with pytest.raises(KeyError, match="did you mean h100-nvlink-ib"):
        load_preset("h100-nvlink")


# -- curves -----------------------------------------------------------------------------------------------------------


def test_a_size_falls_into_the_segment_that_begins_before_it() -> None:
    curve = Curve("all_reduce", 4, segments=(Segment(0, 1.0, 0.0), Segment(100, 2.0, 0.0), Segment(200, 3.0, 0.0)))
    assert [curve.seconds(size) for size in (0, 99, 100, 199, 200, 1 << 40)] == [1, 1, 2, 2, 3, 3]


def test_noise_is_that_of_the_nearest_size() -> None:
    noise = (Noise(8, 10, 1.0, 2.0, 1.0), Noise(1024, 10, 4.0, 5.0, 0.5))
    curve = Curve("all_reduce", 4, segments=(Segment(0, 1.0, 0.0),), noise=noise)
    assert curve.relative_noise(9) == 0.5
    assert curve.relative_noise(1 << 20) == 0.1
    assert Curve("all_reduce", 4, segments=(Segment(0, 1.0, 0.0),)).relative_noise(8) is None


def test_dtypes_have_classes_and_rates() -> None:
    assert [dtype_class(name) for name in ("float64", "f32", "bf16", "f8e5m2", "u4", "pred", "c64")] == [
        "float64",
        "float32",
        "float16",
        "float8",
        "integer",
        "integer",
        "any",
    ]
    rates = {"f8": 4.0, "bf16": 2.0, "any": 1.0}
    assert [rate_of(rates, name) for name in ("f8e4m3fn", "bfloat16", "f32")] == [4.0, 2.0, 1.0]
    assert rate_of({"f32": 1.0}, "f64") is None
