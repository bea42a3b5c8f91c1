from __future__ import annotations

import numpy as np
import pytest
from dtir_app.frames.mesh import COLOURS, groups_text, mesh_frame
from dtir_app.frames.meshgrid import CELL_LIMIT, default_columns, mesh_grid
from dtir_app.selection import NOTHING, of_task, of_value
from hypothesis import given
from hypothesis import strategies as st

from dtir.analysis.groups import groups_of
from dtir.ir.collectives import Broadcast
from dtir.ir.ranks import RankRange, all_ranks
from dtir.ir.tasks import Collective
from tests.app.build import store_of, store_of_example
from tests.app.test_groups import MESHES
from tests.helpers.programs import all_reduce, mesh_of, permute, program


@given(MESHES, st.data())
def test_every_rank_has_a_place_of_its_own(mesh: object, data: st.DataObject) -> None:
    columns = data.draw(st.sets(st.sampled_from(mesh.axis_names)))
    grid = mesh_grid(mesh, columns)
    assert grid.ranks.tolist() == list(range(mesh.size))
    places = list(zip(grid.x.round(6).tolist(), grid.y.round(6).tolist(), strict=True))
    assert len(set(places)) == mesh.size
    assert grid.x.max() == pytest.approx(grid.width - 1)
    assert grid.y.max() == pytest.approx(grid.height - 1)
    # Ranks that share all coordinates along columns stand in one column.
    strides = {
        axis.name: int(np.prod([other.size for other in mesh.axes[place + 1 :]]))
        for place, axis in enumerate(mesh.axes)
    }
    for name in mesh.axis_names:
        step = strides[name]
        if mesh.axis_size(name) > 1:
            assert (grid.y[0] == grid.y[step]) == (name in columns)
            assert (grid.x[0] == grid.x[step]) == (name not in columns)


def test_axes_alternate_between_columns_and_rows() -> None:
    assert default_columns(("dp", "pp", "tp")) == {"tp", "dp"}
    assert default_columns(("tp",)) == {"tp"}


def test_a_large_mesh_is_shown_in_part_and_says_so() -> None:
    store = store_of(program(mesh_of(pod=1000, dp=1000, tp=8)))
    frame = mesh_frame(store, NOTHING, at={"pod": 7})
    assert frame.shown <= CELL_LIMIT
    assert frame.total == 8_000_000
    assert frame.fixed == {"pod": 7, "dp": 0} or frame.fixed == {"pod": 7}
    assert frame.cells["rank"][0] == str(7 * 8000)


def test_an_axis_that_alone_is_too_large_is_cut() -> None:
    grid = mesh_grid(mesh_of(dp=2_000_000_000), {"dp"})
    assert len(grid.ranks) == CELL_LIMIT
    assert grid.cut == {"dp": CELL_LIMIT}


@pytest.mark.parametrize("name", ["transformer_train", "transformer_64", "fsdp", "ulysses", "faults", "llama_block"])
def test_cells_have_the_group_that_the_program_gives_them(name: str) -> None:
    store = store_of_example(name)
    tasks = [row for row in range(len(store.tasks)) if isinstance(store.task_records[row].body, Collective)]
    for row in tasks[:12]:
        spec = store.task_records[row].body.spec
        if hasattr(spec, "pairs"):
            continue
        frame = mesh_frame(store, of_task(row))
        groups = groups_of(spec, store.mesh)
        owner = {rank: number for number, group in enumerate(groups) for rank in group}
        assert frame.cells["group"] == [owner[int(rank)] for rank in frame.cells["rank"]]
        assert frame.group_total == len(groups)


def test_groups_are_named_by_their_fixed_coordinates() -> None:
    store = store_of(program())
    frame = mesh_frame(store, of_task(1))
    assert [(item["name"], item["members"]) for item in frame.groups] == [
        ("tp group @ dp=0", "0–3"),
        ("tp group @ dp=1", "4–7"),
    ]
    assert groups_text(frame).splitlines() == ["all-reduce sum.1", "tp group @ dp=0: 0–3", "tp group @ dp=1: 4–7"]


def test_beyond_the_palette_the_hatch_differs() -> None:
    mesh = mesh_of(a=16, b=2)
    frame = mesh_frame(store_of(program(mesh, spec=all_reduce(mesh, axes=("b",)))), of_task(1))
    looks = {(colour, hatch) for colour, hatch in zip(frame.cells["colour"], frame.cells["hatch"], strict=True)}
    assert len(looks) == 16
    assert len({colour for colour, _ in looks}) == COLOURS


def test_a_permute_is_arrows() -> None:
    mesh = mesh_of(tp=4)
    frame = mesh_frame(store_of(program(mesh, spec=permute(mesh, ((0, 1), (1, 2), (3, 3))))), of_task(1))
    assert len(frame.arrows["x0"]) == 2  # a rank that sends to itself moves nothing
    assert frame.cells["group"] == [0, 0, 0, 0]
    assert frame.groups[0]["members"] == "0 → 1"


def test_a_root_is_marked() -> None:
    mesh = mesh_of(tp=4)
    frame = mesh_frame(store_of(program(mesh, spec=Broadcast(all_ranks(4), 64, 2, axes=("tp",)))), of_task(1))
    assert frame.cells["label"][2] == "root"


def test_owners_of_a_split_tensor_are_coloured_by_block() -> None:
    store = store_of_example("faults")
    values = {name: row for row, name in enumerate(store.values.name)}
    frame = mesh_frame(store, of_value(values["h"]))
    assert len(set(frame.cells["group"])) == 8
    assert mesh_frame(store, of_value(values["bias"])).groups[0]["members"] == "0–7"


def test_without_a_selection_the_groups_of_chosen_axes_are_shown() -> None:
    store = store_of(program())
    assert mesh_frame(store, NOTHING).title == "tp groups"
    assert mesh_frame(store, NOTHING, axes={"dp"}).group_total == 4
    assert mesh_frame(store, NOTHING, axes={"nowhere"}).title == "tp groups"


def test_a_collective_over_a_million_ranks_costs_what_is_shown() -> None:
    mesh = mesh_of(dp=1000, tp=1000)
    spec = all_reduce(mesh, axes=("tp",), participants=RankRange(0, 1_000_000))
    frame = mesh_frame(store_of(program(mesh, spec=spec)), of_task(1))
    assert frame.shown <= CELL_LIMIT
    assert frame.group_total == 1000
