"""Declarations made into programs: two models equal their undivided computation; wrong declarations are shown wrong."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pytest

from dtir.check.runs import execute
from dtir.execute.assemble import assemble
from dtir.execute.data import Inputs, output_leaves, split
from dtir.execute.plan import make_plan
from dtir.ir.collectives import AllReduce
from dtir.ir.program import DistributedTaskIR
from dtir.ir.tasks import Collective, Reshard
from dtir.schema.diagnostics import Severity
from dtir.schema.result import Ok
from dtir.spec import (
    SPEC_HALO,
    DistributionSpec,
    GraphParallelPolicy,
    HaloPolicy,
    LocalPolicy,
    MLIPSpec,
    OpAdapter,
    OutputKind,
    RefreshHaloPolicy,
    ShardPolicy,
    SpecError,
    StoragePolicy,
)
from dtir.spec.lower import lower
from dtir.spec.outline import ModelOutline, lennard_jones, message_passing, model_outline
from dtir.spec.partition import Partition, block_partition, grid_for, spatial_partition
from dtir.spec.system import System
from dtir.verify import verify
from tests.spec.systems import CUTOFF, droplet, fluid

MODELS = [lennard_jones(cutoff=CUTOFF), message_passing(cutoff=CUTOFF)]
MODEL_IDS = [model.name for model in MODELS]


def outcome(program: DistributedTaskIR, system: System) -> dict[str, np.ndarray]:
    """Energy, forces of the atoms and stress of a run on numpy ranks."""
    planned = make_plan(program)
    assert isinstance(planned, Ok), planned.error
    plan, fields = planned.value, system.fields()
    ranks = tuple(range(plan.ranks))
    held = {slot: split(fields[plan.main.slots[slot].name], plan.main.slots[slot], ranks) for slot in plan.main.inputs}
    ran = execute(plan, Inputs(held, {}, {}), 0, "program")
    assert isinstance(ran, Ok), ran.error
    arrays = [item.array for item in assemble(plan, output_leaves(plan), ran.value.outputs)]
    assert all(array is not None for array in arrays)
    return {
        "energy": np.asarray(arrays[0]),
        "forces": system.rows(arrays[1:4]),
        "stress": np.array(arrays[4:10]),
        "atomic_energies": system.rows(arrays[10:11]),
    }


def apart(found: dict[str, np.ndarray], wanted: dict[str, np.ndarray]) -> float:
    """The greatest difference, relative to the greatest element of each result."""
    return max(
        float(np.abs(found[name] - wanted[name]).max() / max(1e-300, float(np.abs(wanted[name]).max())))
        for name in wanted
    )


def direct(model: ModelOutline, system: System) -> tuple[float, np.ndarray]:
    """Energy and forces by a double loop over atoms, with nothing of the bins."""
    cell, total, forces = np.array(system.cell), 0.0, np.zeros((system.atoms, 3))
    apart = system.positions[:, None, :] - system.positions[None, :, :]
    apart -= cell * np.round(apart / cell)
    square = (apart**2).sum(-1)
    there = (square > 0) & (square < CUTOFF**2)
    kinds = system.kinds.astype(float)
    safe = np.where(there, square, 1.0)
    if model.name == "lennard_jones":
        six = np.where(there, 1.0 / safe**3, 0.0)
        shift = model.stages[0].parameters["shift"]
        total = 0.5 * float(np.where(there, 4 * (six**2 - six) - shift, 0.0).sum())
        forces = (np.where(there, 24 * (2 * six**2 - six) / safe, 0.0)[..., None] * apart).sum(1)
        return total, forces
    inside = np.where(there, 1 - square / CUTOFF**2, 0.0)
    weight, slope = inside**3, -6 * inside**2 / CUTOFF**2
    h = weight @ kinds
    e = np.tanh(0.5 * (weight @ h) + 0.25 * h * kinds)
    p, q = 0.5 * (1 - e**2), 0.25 * kinds * (1 - e**2)
    g = q + weight @ p
    through = p[:, None] * h[None] + p[None] * h[:, None] + g[:, None] * kinds[None] + g[None] * kinds[:, None]
    return float(e.sum()), -((slope * through)[..., None] * apart).sum(1)


@pytest.mark.parametrize("model", MODELS, ids=MODEL_IDS)
def test_the_undivided_program_is_the_direct_sum(model: ModelOutline) -> None:
    system = fluid(1)
    found = outcome(lower(SPEC_HALO, spatial_partition(system, (1, 1, 1)), model), system)
    energy, forces = direct(model, system)
    assert float(found["energy"]) == pytest.approx(energy, rel=1e-12)
    np.testing.assert_allclose(found["forces"], forces, rtol=0, atol=1e-10 * np.abs(forces).max())
    assert float(found["atomic_energies"].sum()) == pytest.approx(energy, rel=1e-12)


@pytest.mark.parametrize("model", MODELS, ids=MODEL_IDS)
@pytest.mark.parametrize("seed", [0, 4])
def test_one_to_eight_ranks_give_the_same(model: ModelOutline, seed: int) -> None:
    """Seven ranks need a longer box; domains are uneven (5 bins over 2 and 3 domains)."""
    system = fluid(seed, stretch=(1, 1, 1.4))
    wanted = outcome(lower(SPEC_HALO, spatial_partition(system, (1, 1, 1)), model), system)
    for ranks in range(2, 9):
        cut = spatial_partition(system, grid_for(ranks, system.bins))
        assert apart(outcome(lower(SPEC_HALO, cut, model), system), wanted) < 1e-10


@pytest.mark.parametrize("model", MODELS, ids=MODEL_IDS)
def test_ranks_without_atoms(model: ModelOutline) -> None:
    system = droplet()
    wanted = outcome(lower(SPEC_HALO, spatial_partition(system, (1, 1, 1)), model), system)
    cut = spatial_partition(system, (4, 1, 1))
    assert 0 in cut.layout.sizes
    assert apart(outcome(lower(SPEC_HALO, cut, model), system), wanted) < 1e-10


@pytest.mark.parametrize("model", MODELS, ids=MODEL_IDS)
@pytest.mark.parametrize(
    "policy", [GraphParallelPolicy(), LocalPolicy(), RefreshHaloPolicy()], ids=lambda one: one.kind
)
def test_other_policies(model: ModelOutline, policy: StoragePolicy) -> None:
    system = fluid(2)
    wanted = outcome(lower(SPEC_HALO, spatial_partition(system, (1, 1, 1)), model), system)
    cuts: Sequence[Partition] = (
        [spatial_partition(system, (2, 1, 2))]
        if isinstance(policy, HaloPolicy)
        else [block_partition(system, n) for n in (2, 3, 5)]
    )
    for cut in cuts:
        program = lower(DistributionSpec(policy), cut, model)
        assert verify(program).ok
        assert apart(outcome(program, system), wanted) < 1e-10


def test_forces_are_the_slope_of_the_energy() -> None:
    system = fluid(5)
    for model in MODELS:
        forces = direct(model, system)[1]
        moved = [np.array(system.positions) for _ in range(2)]
        moved[0][7, 1] += 1e-5
        moved[1][7, 1] -= 1e-5
        ends = [direct(model, System(system.cell, one, system.kinds, CUTOFF))[0] for one in moved]
        assert -(ends[0] - ends[1]) / 2e-5 == pytest.approx(forces[7, 1], rel=1e-5)


def codes_of(program: DistributedTaskIR) -> set[str]:
    """Codes of both judges, remarks left out."""
    return {item.code for item in verify(program, judges=("static", "value")) if item.severity is Severity.ERROR}


# -- what is wrong is shown wrong -------------------------------------------------------------------------------------------


def halo(**modes: str) -> MLIPSpec:
    return MLIPSpec(DistributionSpec(HaloPolicy(**modes)))


@pytest.mark.parametrize(
    ("spec", "model", "codes"),
    [
        (SPEC_HALO, MODELS[0], set()),
        (SPEC_HALO, MODELS[1], set()),
        (halo(scatter_mode="local"), MODELS[1], {"halo.thin", "value.mismatch"}),
        (halo(scatter_mode="local"), MODELS[0], set()),
        (halo(gather_mode="local"), MODELS[0], {"halo.thin", "value.mismatch"}),
        (
            MLIPSpec(DistributionSpec(HaloPolicy()), system_reductions=False),
            MODELS[0],
            {"partial.dropped", "value.mismatch"},
        ),
    ],
    ids=["lj", "mp", "mp without correction", "lj without correction", "lj without refresh", "lj without all_reduce"],
)
def test_judges(spec: MLIPSpec, model: ModelOutline, codes: set[str]) -> None:
    """A Lennard-Jones fluid has one layer: nothing is contributed to ghosts, so that correcting them changes nothing."""
    program = lower(spec, spatial_partition(fluid(), (2, 2, 1)), model)
    assert codes_of(program) >= codes
    assert bool(codes_of(program)) == bool(codes)


def test_a_ghost_frame_without_corners_or_too_thin_is_found() -> None:
    from dataclasses import replace

    program = lower(SPEC_HALO, spatial_partition(fluid(), (2, 2, 1)), MODELS[0])
    for change, code in (({"corners": False}, "halo.corner"), ({"dims": None}, "halo.thin")):
        values = []
        for value in program.values:
            frame = value.sharding.halo
            if frame is not None:
                thinner = tuple(replace(item, before=0) for item in frame.dims)
                frame = replace(frame, corners=False) if "corners" in change else replace(frame, dims=thinner)
                value = replace(value, sharding=replace(value.sharding, halo=frame))
            values.append(value)
        assert code in {item.code for item in verify(replace(program, values=tuple(values)))}


# -- what becomes of each entry ----------------------------------------------------------------------------------------------


def test_every_task_says_which_entry_asked_for_it() -> None:
    adapter = OpAdapter("atoms::message", gather_inputs=[4], scatter_outputs=[0])
    spec = SPEC_HALO.with_adapters(adapter)
    program = lower(spec, spatial_partition(fluid(), (2, 1, 1)), MODELS[1])
    entries = {task.name: task.attributes["lowered.entry"] for task in program.tasks}
    assert entries["exchange x"] == "core.policy.gather_mode"
    assert entries["exchange h"] == "core.custom_ops.0.arg_transforms.4"
    assert entries["exchange m"] == "core.custom_ops.0.output_transforms.0"
    assert entries["exchange g"] == "core.policy.scatter_mode"
    assert entries["reduce energy"] == "system_reductions"
    assert all(task.lineage.sources for task in program.tasks)
    exchanged = [task for task in program.tasks if isinstance(task.body, Reshard)]
    assert {task.attributes["lowered.channel"] for task in exchanged} == {
        f"halo.{c}" for c in ("x", "y", "z", "kind", "h", "m", "p", "g")
    }
    reduced = [task for task in program.tasks if isinstance(task.body, Collective)]
    assert all(isinstance(task.body.spec, AllReduce) for task in reduced if isinstance(task.body, Collective))
    assert verify(program).ok


def test_a_column_is_exchanged_once_for_every_version() -> None:
    program = lower(SPEC_HALO, spatial_partition(fluid(), (2, 1, 1)), MODELS[1])
    names = [task.name for task in program.tasks if isinstance(task.body, Reshard)]
    assert sorted(names) == sorted(f"exchange {column}" for column in ("x", "y", "z", "kind", "h", "p", "g"))


def test_fields_that_are_not_stored_across_ranks_are_cut_where_they_are_used() -> None:
    system = fluid()
    spec = MLIPSpec(DistributionSpec(HaloPolicy(), shard_fields=("positions",)))
    program = lower(spec, spatial_partition(system, (2, 3, 1)), MODELS[0])
    kind = next(value for value in program.values if value.name == "kind")
    assert kind.sharding.split_axes == ()
    wanted = outcome(lower(SPEC_HALO, spatial_partition(system, (1, 1, 1)), MODELS[0]), system)
    assert apart(outcome(program, system), wanted) < 1e-10


GATHERS_TOO_MUCH = OpAdapter("atoms::lennard_jones", gather_inputs=[9])
SUMS_ATOMS = OpAdapter("atoms::lennard_jones", all_reduce_sum=[0])


@pytest.mark.parametrize(
    ("spec", "field", "said"),
    [
        (DistributionSpec(ShardPolicy()), "core.policy", "storage alone"),
        (
            MLIPSpec(DistributionSpec(HaloPolicy()), frozenset({"dipole"})),
            "owned_only_outputs",
            "no output 'dipole'",
        ),
        (
            MLIPSpec(DistributionSpec(HaloPolicy()), output_kinds={"forces": OutputKind.PER_GRAPH}),
            "output_kinds",
            "is per_node",
        ),
        (SPEC_HALO.with_adapters(GATHERS_TOO_MUCH), "core.custom_ops.0.arg_transforms", "has 4 operands, not 10"),
        (SPEC_HALO.with_adapters(SUMS_ATOMS), "core.custom_ops.0.output_transforms.0", "means nothing"),
    ],
)
def test_what_cannot_be_lowered_names_the_field(spec: MLIPSpec | DistributionSpec, field: str, said: str) -> None:
    with pytest.raises(SpecError, match=said) as caught:
        lower(spec, spatial_partition(fluid(), (2, 1, 1)), MODELS[0])
    assert caught.value.field == field


def test_models_by_name() -> None:
    assert model_outline("lennard_jones", CUTOFF, {"sigma": 1.1}).stages[0].parameters["sigma"] == 1.1
    with pytest.raises(SpecError, match="no model 'water'"):
        model_outline("water", CUTOFF, {})
    with pytest.raises(SpecError, match="no parameter 'mass'"):
        model_outline("message_passing", CUTOFF, {"mass": 1})
