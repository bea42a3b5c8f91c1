"""Machine profiles as files: schema ``dtir.machine-profile`` 1.0.0, plain JSON.

| key | what it is |
|---|---|
| `schema`, `version` | as above |
| `id`, `summary` | what reports call it; one line |
| `source` | `standing` (measured, published, model), `text`, `date` |
| `host` | facts: text or numbers by name |
| `levels` | innermost first: `name`, `ranks` (of one unit; null: all), `alpha_s`, `beta_s_per_byte`, `shape` (switch, ring), `ports` |
| `curves` | `op`, `group_size`, `algorithm`, `dtype`, `transport`, `segments`, `measured_bytes`, `fit_error`, `noise` |
| `curves[].segments` | rising: `from_bytes`, `alpha_s`, `beta_s_per_byte` |
| `curves[].noise` | `size_bytes`, `samples`, `p10_s`, `p50_s`, `iqr_s` |
| `rates` | `matrix_flops_per_s`, `vector_flops_per_s` (by dtype), `memory_bytes_per_s`, `memory_bytes`, `start_s`, `reduce_s_per_byte` |
| `nccl` | `generation`, `channels`, `intra_bytes_per_s`, `inter_bytes_per_s`, `intra_link`; null: not used |

Only `schema`, `version`, `id` and `source` are required. Everything wrong is reported in one go, with its place.
"""

from __future__ import annotations

import json
from itertools import pairwise
from typing import Any, cast

from dtir.cost.algorithms import Shape
from dtir.cost.fields import Fields, as_list, as_object, kind_of, shown, whole_number
from dtir.cost.nccl import Generation, NcclMachine
from dtir.cost.profile import (
    ANY,
    SCHEMA,
    SENDRECV,
    VERSION,
    Curve,
    Level,
    MachineProfile,
    Noise,
    Rates,
    Segment,
    Source,
    Standing,
)
from dtir.ir.collectives import CollectiveKind
from dtir.schema.diagnostics import DiagnosticBag, DiagnosticSet
from dtir.schema.errors import SerializationError
from dtir.schema.jsontext import parse_json
from dtir.schema.result import Checked, Err, Ok

OPERATIONS = (*(kind.value for kind in CollectiveKind), SENDRECV)
"""What a curve may be of."""


def read_profile(text: str) -> Checked[MachineProfile]:
    """A profile from its file's text, or everything that is wrong with it."""
    bag = DiagnosticBag()
    try:
        tree: object = parse_json(text)
    except SerializationError as error:
        bag.error("profile.json", f"the profile is no JSON: {error}", hint=error.hint or "write it with dtir calibrate")
        return Err(DiagnosticSet(bag.report().diagnostics))
    fields = as_object(tree) or {}
    found = (fields.get("schema"), fields.get("version"))
    if found != (SCHEMA, VERSION):
        stated = " ".join(shown(item) for item in found)
        bag.error("profile.json", f"found schema {stated}, wanted {SCHEMA} {VERSION}",
                  hint="give a machine profile: dtir calibrate -o profile.json writes one")  # fmt: skip
        return Err(DiagnosticSet(bag.report().diagnostics))
    profile = _profile(Fields(tree, (), bag))
    report = bag.report()
    return Ok(profile) if report.ok else Err(DiagnosticSet(report.diagnostics))


def _profile(fields: Fields) -> MachineProfile:
    for known in ("schema", "version"):
        fields.raw(known)
    levels = tuple(_level(row) for row in fields.rows("levels"))
    curves = tuple(_curve(row) for row in fields.rows("curves"))
    rates = fields.child("rates")
    nccl = fields.child("nccl")
    profile = MachineProfile(
        fields.text("id", "?"),
        fields.text("summary", required=False),
        _source(fields.child("source"), fields),
        _host(fields.child("host")),
        levels,
        curves,
        _rates(rates) if rates is not None else Rates(),
        _nccl(nccl) if nccl is not None else None,
    )
    fields.done()
    _check_levels(levels, fields)
    if not levels and not curves and rates is None:
        fields.wrong("the profile has no level, no curve and no rates: nothing can be planned with it")
    if nccl is not None and fields.raw("levels") in (None, []):
        fields.wrong("nccl needs levels, which say how many ranks a node has", "nccl")
    return profile


def _source(fields: Fields | None, above: Fields) -> Source:
    if fields is None:
        above.need("source", None, lambda _: None, "an object with standing, text and date")
        return Source(Standing.MODEL, "", "")
    source = Source(
        fields.one_of("standing", Standing, Standing.MODEL, required=True), fields.text("text"), fields.text("date")
    )
    fields.done()
    return source


def _host(fields: Fields | None) -> dict[str, str | int | float]:
    found: dict[str, str | int | float] = {}
    for name in fields.names() if fields is not None else ():
        assert fields is not None
        value = fields.raw(name)
        if isinstance(value, (str, int, float)) and not isinstance(value, bool):
            found[name] = value
        else:
            fields.wrong(f"found {kind_of(value)}, wanted a text or a number", name)
    return found


def _level(fields: Fields) -> Level:
    level = Level(
        fields.text("name", "?"),
        fields.maybewhole_number("ranks"),
        fields.number("alpha_s", 0.0),
        fields.number("beta_s_per_byte", 0.0),
        fields.one_of("shape", Shape, Shape.SWITCH),
        fields.maybewhole_number("ports"),
    )
    fields.done()
    return level


def _check_levels(levels: tuple[Level, ...], fields: Fields) -> None:
    if any(level.name == "?" for level in levels):
        return  # already reported
    before = 1
    for place, level in enumerate(levels):
        if level.ranks is None:
            if place < len(levels) - 1:
                fields.wrong("only the outermost level may join all ranks", "levels", str(place), "ranks")
            return
        if level.ranks % before or level.ranks <= before:
            fields.wrong(f"a unit of {level.ranks} ranks is no multiple of the {before} of the level below",
                         "levels", str(place), "ranks")  # fmt: skip
            return
        before = level.ranks


def _curve(fields: Fields) -> Curve:
    op = fields.need("op", "all_reduce", lambda value: value if value in OPERATIONS else None,
                     f"one of {', '.join(OPERATIONS)}")  # fmt: skip
    rows = fields.rows("segments")
    segments = tuple(_segment(row) for row in rows)
    if (
        not segments
        or segments[0].from_bytes != 0
        or any(later.from_bytes <= earlier.from_bytes for earlier, later in pairwise(segments))
    ):
        fields.wrong("segments must begin at from_bytes 0 and rise", "segments")
        segments = segments or (Segment(0, 0.0, 0.0),)
    curve = Curve(
        cast("str", op),
        fields.whole("group_size", 2, least=2),
        fields.text("algorithm", "native", required=False) or "native",
        fields.text("dtype", ANY, required=False) or ANY,
        fields.text("transport", required=False),
        segments,
        _span(fields),
        fields.maybe("fit_error") if fields.raw("fit_error") else None,
        tuple(_noise(row) for row in fields.rows("noise")),
    )
    fields.done()
    return curve


def _span(fields: Fields) -> tuple[int, int] | None:
    value = fields.raw("measured_bytes")
    if value is None:
        return None
    pair = as_list(value) or []
    sizes = [size for item in pair if (size := whole_number(item, 0)) is not None]
    if len(pair) != 2 or len(sizes) != 2 or sizes[0] > sizes[1]:
        fields.wrong(f"found {shown(value)}, wanted [smallest, largest] in bytes", "measured_bytes")
        return None
    return sizes[0], sizes[1]


def _segment(fields: Fields) -> Segment:
    segment = Segment(
        fields.number("from_bytes", 0.0), fields.number("alpha_s", 0.0), fields.number("beta_s_per_byte", 0.0)
    )
    fields.done()
    return segment


def _noise(fields: Fields) -> Noise:
    noise = Noise(
        fields.whole("size_bytes", 0),
        fields.whole("samples", 1, least=1),
        fields.number("p10_s", 0.0),
        fields.number("p50_s", 0.0),
        fields.number("iqr_s", 0.0),
    )
    fields.done()
    return noise


def _rates(fields: Fields) -> Rates:
    rates = Rates(
        fields.numbers("matrix_flops_per_s"),
        fields.numbers("vector_flops_per_s"),
        fields.maybe("memory_bytes_per_s"),
        fields.maybewhole_number("memory_bytes"),
        fields.number("start_s", 0.0, required=False),
        fields.number("reduce_s_per_byte", 0.0, required=False),
    )
    fields.done()
    return rates


def _nccl(fields: Fields) -> NcclMachine:
    link = fields.get("intra_link", "nvlink", lambda value: value if value in ("nvlink", "pci") else None,
                      "nvlink or pci")  # fmt: skip
    machine = NcclMachine(
        fields.one_of("generation", Generation, Generation.HOPPER, required=True),
        fields.whole("channels", 1, least=1),
        fields.number("intra_bytes_per_s", 1.0, least=1.0),
        fields.number("inter_bytes_per_s", 1.0, least=1.0),
        link,
    )
    fields.done()
    return machine


# -- writing ----------------------------------------------------------------------------------------------------------


def profile_tree(profile: MachineProfile) -> dict[str, Any]:
    """A profile as plain data, in the order of the schema; what is empty is left out."""
    tree: dict[str, Any] = {
        "schema": SCHEMA,
        "version": VERSION,
        "id": profile.id,
        "summary": profile.summary,
        "source": {
            "standing": profile.source.standing.value,
            "text": profile.source.text,
            "date": profile.source.date,
        },
        "host": dict(profile.host),
        "levels": [_level_tree(level) for level in profile.levels],
        "curves": [_curve_tree(curve) for curve in profile.curves],
        "rates": _rates_tree(profile.rates),
    }
    if profile.nccl is not None:
        tree["nccl"] = {
            "generation": profile.nccl.generation.value,
            "channels": profile.nccl.channels,
            "intra_bytes_per_s": profile.nccl.intra_bytes_per_s,
            "inter_bytes_per_s": profile.nccl.inter_bytes_per_s,
            "intra_link": profile.nccl.intra_link,
        }
    return {key: value for key, value in tree.items() if value not in ({}, [])}


def profile_json(profile: MachineProfile) -> str:
    """A profile as its file holds it."""
    return json.dumps(profile_tree(profile), indent=1, allow_nan=False) + "\n"


def _level_tree(level: Level) -> dict[str, Any]:
    return {
        "name": level.name,
        "ranks": level.ranks,
        "alpha_s": level.alpha_s,
        "beta_s_per_byte": level.beta_s_per_byte,
        "shape": level.shape.value,
        "ports": level.ports,
    }


def _curve_tree(curve: Curve) -> dict[str, Any]:
    return {
        "op": curve.op,
        "group_size": curve.group_size,
        "algorithm": curve.algorithm,
        "dtype": curve.dtype,
        "transport": curve.transport,
        "segments": [
            {"from_bytes": item.from_bytes, "alpha_s": item.alpha_s, "beta_s_per_byte": item.beta_s_per_byte}
            for item in curve.segments
        ],
        "measured_bytes": list(curve.measured_bytes) if curve.measured_bytes else None,
        "fit_error": curve.fit_error,
        "noise": [
            {
                "size_bytes": item.size_bytes,
                "samples": item.samples,
                "p10_s": item.p10_s,
                "p50_s": item.p50_s,
                "iqr_s": item.iqr_s,
            }
            for item in curve.noise
        ],
    }


def _rates_tree(rates: Rates) -> dict[str, Any]:
    return {
        "matrix_flops_per_s": dict(rates.matrix_flops_per_s),
        "vector_flops_per_s": dict(rates.vector_flops_per_s),
        "memory_bytes_per_s": rates.memory_bytes_per_s,
        "memory_bytes": rates.memory_bytes,
        "start_s": rates.start_s,
        "reduce_s_per_byte": rates.reduce_s_per_byte,
    }
