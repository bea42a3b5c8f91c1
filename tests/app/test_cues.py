"""Pictures of findings: every code has one, every faulty program gets one, and each says what the analysis derives."""

from __future__ import annotations

from pathlib import Path

import pytest
import yaml
from dtir_app.columns import open_imported
from dtir_app.cues import DRAWERS, Case, Picture, draw_cue, picture_of, picture_of_selection
from dtir_app.cues.case import known_of
from dtir_app.judging import judge
from dtir_app.store import Store

from dtir.explain import catalogue
from dtir.importers.base import Imported
from dtir.importers.yaml import read_programs
from dtir.presets.pipeline import PipelineKind, pipeline_program
from dtir.schema.diagnostics import DiagnosticSet
from dtir.verify.catalogue import TABLE, Entry, document
from dtir.verify.catalogue.cues import Cue, cue_of
from tests.app.build import store_of, store_of_example
from tests.app.corpus import corpus_store, corpus_stores


def row_of(store: Store, code: str) -> int:
    return next(row for row, finding in enumerate(store.findings) if finding.code == code)


def picture(store: Store, code: str, **options: object) -> Picture:
    return picture_of(store, row_of(store, code), options)


def facts(picture: Picture) -> dict[str, str]:
    return {fact.label: fact.text for fact in picture.facts}


def texts(picture: Picture) -> list[str]:
    """Every text in the picture itself, codes of tasks too."""
    return [str(mark[name]) for mark in picture.marks for name in ("text", "code") if mark.get(name)]


def test_every_code_has_a_kind_of_picture_and_every_kind_a_drawer(shared_data: Path) -> None:
    wanted = yaml.safe_load((shared_data / "codes.yaml").read_text(encoding="utf-8"))["codes"]
    assert {item["code"]: item["cue"] for item in wanted} == {
        item["code"]: cue_of(item["code"]).value for item in wanted
    }
    assert {cue_of(code) for code in catalogue()} == set(Cue)
    assert set(DRAWERS) == set(Cue)


def test_every_finding_of_the_corpus_has_a_picture(shared_data: Path) -> None:
    for name, store in corpus_stores(shared_data).items():
        for row, finding in enumerate(store.findings):
            drawn = picture_of(store, row, {})
            assert drawn.marks, (name, finding.code)
            assert drawn.says.endswith((".", "?")), (name, finding.code, drawn.says)
            assert drawn.fix.endswith((".", "?", "!")), (name, finding.code)
            assert drawn.cue == cue_of(finding.code).value, (name, finding.code, drawn.cue)
            assert drawn.width > 40, name
            assert drawn.height > 20, name
            assert all(mark.get("tone", "text") for mark in drawn.marks)


@pytest.mark.parametrize("entry", TABLE, ids=lambda entry: entry.code)
def test_every_example_of_the_catalogue_has_its_pictures(entry: Entry) -> None:
    for text in (entry.bad, entry.good):
        try:
            (read,) = read_programs(document(text))
        except ValueError:
            continue  # an example without a program of its own
        if read.program is None:
            continue
        imported = Imported(read.program, DiagnosticSet(tuple(read.diagnostics)), "yaml", "cd" * 20, "example.yaml")
        store = open_imported(imported, judge).store
        assert store is not None
        for row, finding in enumerate(store.findings):
            drawn = picture_of(store, row, {})
            assert drawn.marks, finding.code
            assert drawn.cue == cue_of(finding.code).value
        for task in range(min(len(store.tasks), 3)):
            for cue in Cue:
                drawn = draw_cue(cue, Case(store, None, (task,), ()))
                assert drawn.marks or drawn.busy, cue
            assert picture_of_selection(store, task, -1, {}).marks
        for value in range(min(len(store.values), 2)):
            assert picture_of_selection(store, -1, value, {}).marks


def test_the_circle_of_a_deadlock_is_closed(shared_data: Path) -> None:
    drawn = picture(corpus_store(shared_data, "C068"), "deadlock.buffer_dependent")
    waits = [str(mark["says"]) for mark in drawn.marks if str(mark.get("says", "")).startswith("waits for rank")]
    assert waits == [f"waits for rank {rank}" for rank in (1, 2, 3, 0)]
    assert facts(drawn)["rank 3"] == "waits in h3 for rank 0"
    assert facts(drawn)["rank 2 issues"] == "h2 (stuck) → h1 (never reached)"
    assert "4 ranks wait for each other in a circle" in drawn.says


def test_the_switch_shows_that_buffers_break_the_circle(shared_data: Path) -> None:
    store = corpus_store(shared_data, "C068")
    drawn = picture(store, "deadlock.buffer_dependent", sends="buffered")
    assert drawn.says == "With sends that go on at once, everybody gets through."
    assert facts(drawn)["rank 2 issues"] == "h2 → h1"


def test_a_rank_that_never_comes_is_shown_where_others_wait(shared_data: Path) -> None:
    drawn = picture(corpus_store(shared_data, "C071"), "deadlock.missing_rank")
    assert facts(drawn)["g2"] == "never issued by rank 1"
    assert "never issues" in texts(drawn)


def test_a_pending_value_is_hatched_and_the_reduction_proposed_where_it_works(shared_data: Path) -> None:
    drawn = picture(corpus_store(shared_data, "C001"), "partial.add_replicated")
    ghosts = [(mark["code"], mark["text"]) for mark in drawn.marks if mark.get("ghost")]
    assert ghosts == [("AR(sum)", "tp")]
    assert facts(drawn)["becomes due in"] == "t1"
    assert "counted 2 times" in drawn.says
    hatched = [mark for mark in drawn.marks if mark.get("hatch") == "axis-0"]
    assert len(hatched) == 2


def test_a_dropped_reduction_runs_into_a_tile_that_is_not_hatched(shared_data: Path) -> None:
    drawn = picture(corpus_store(shared_data, "C014"), "partial.dropped")
    assert [mark["text"] for mark in drawn.marks if mark.get("ghost")] == ["edp"]
    assert facts(drawn)["ge"] == "follows as pending sum over edp, declared [ep, ·, ·]"


def test_a_reduction_of_a_dump_shows_inferred_shares() -> None:
    store = store_of_example("transformer_train")
    drawn = draw_cue(Cue.PENDING, Case(store, None, (store.tasks.name.index("all-reduce.1"),), ()))
    assert "inferred" in drawn.says
    assert facts(drawn)["dot.3"] == "pending sum per rank over axis1"
    assert any(mark.get("hatch") == "axis-1" for mark in drawn.marks)


def test_a_factor_travels_as_a_badge_with_the_axis_that_makes_it(shared_data: Path) -> None:
    drawn = picture(corpus_store(shared_data, "C024"), "scale.factor")
    assert [text for text in texts(drawn) if text.startswith("×")] == ["×2 dp", "×2 dp"]
    assert facts(drawn)["g0"] == "once its specification"


def test_parts_of_a_mean_say_what_each_element_counts(shared_data: Path) -> None:
    drawn = picture(corpus_store(shared_data, "C031"), "partial.uneven_mean")
    assert facts(drawn)["shard 1"] == "1 element, each counts 1/2 instead of 1/3"


def test_blocks_are_drawn_as_they_follow_beside_as_declared(shared_data: Path) -> None:
    drawn = picture(corpus_store(shared_data, "C034"), "sharding.mismatch")
    assert facts(drawn)["y, as it follows"] == "f32[4,6] [tp, ·]"
    assert facts(drawn)["y, as declared"] == "f32[4,6] replicated"


def test_uneven_blocks_are_drawn_to_scale(shared_data: Path) -> None:
    drawn = picture(corpus_store(shared_data, "C039"), "sharding.uneven", rank="3")
    widths = [float(str(mark["w"])) for mark in drawn.marks if "block" in str(mark.get("says", ""))]
    assert len(widths) == 4
    assert widths[0] == widths[1] == pytest.approx(2 * widths[3], rel=0.02)


def test_owners_and_blocks_without_one_are_named(shared_data: Path) -> None:
    drawn = picture(corpus_store(shared_data, "C054"), "ownership.sharding")
    assert facts(drawn)["blocks without an owner"] == "3 of 4 (row-major over o)"


def test_expected_groups_are_the_fibres_of_what_is_pending(shared_data: Path) -> None:
    drawn = picture(corpus_store(shared_data, "C013"), "collective.group_split")
    assert facts(drawn)["declared"] == "groups {0} {1}"
    assert facts(drawn)["expected"] == "groups {0, 1}: fibres of tp"


def test_a_stale_root_has_a_grey_crown(shared_data: Path) -> None:
    drawn = picture(corpus_store(shared_data, "C060"), "collective.stale_root")
    assert [mark["tone"] for mark in drawn.marks if mark["t"] == "crown"] == ["muted"]
    assert facts(drawn)["root 0"] == "has an old copy"


def test_elements_that_a_reshard_never_writes_are_counted(shared_data: Path) -> None:
    drawn = picture(corpus_store(shared_data, "C047"), "reshard.coverage")
    assert facts(drawn)["never written"] == "12 elements"
    assert [text for text in texts(drawn) if text.startswith("never")] == ["never: 6", "never: 6"]


def test_declared_bytes_stand_beside_the_formula(shared_data: Path) -> None:
    drawn = picture(corpus_store(shared_data, "C104"), "collective.message_bytes")
    assert facts(drawn)["formula"] == "the full output y = 8 of f32 = 32 B"
    assert facts(drawn)["declared"] == "16 B"


def test_missing_ghosts_are_hatched(shared_data: Path) -> None:
    thin = picture(corpus_store(shared_data, "C099"), "halo.thin")
    assert sum(mark.get("says") == "missing ghost" for mark in thin.marks) == 2
    assert facts(thin)["dim 0"] == "1 ghost layers up to date, 2 read"
    corner = picture(corpus_store(shared_data, "C098"), "halo.corner")
    assert sum(mark.get("says") == "missing ghost" for mark in corner.marks) == 4


def test_a_pipeline_counts_live_microbatches_against_its_limit(shared_data: Path) -> None:
    drawn = picture(corpus_store(shared_data, "C093"), "pipeline.inflight")
    assert facts(drawn)["rank 0"] == "at most 4 live microbatches; the limit allows 2"
    assert [text for text in texts(drawn) if text[0] in "FB"] == ["F0", "F1", "F2", "F3", "B0", "B1", "B2", "B3"]


@pytest.mark.parametrize(
    ("kind", "chunks", "bubble"),
    [(PipelineKind.GPIPE, 1, 3 / 8), (PipelineKind.ONE_F_ONE_B, 1, 3 / 8), (PipelineKind.INTERLEAVED, 2, 3 / 16)],
)
def test_the_bubble_that_is_drawn_is_that_of_the_formula(kind: PipelineKind, chunks: int, bubble: float) -> None:
    store = store_of(pipeline_program(kind, stages=4, microbatches=8, chunks=chunks))
    drawn = draw_cue(Cue.PIPELINE, Case(store, None, (0,), ()))
    formula = "(p − 1)/m" if chunks == 1 else "(p − 1)/(v·m)"
    assert facts(drawn)["bubble"] == f"{bubble:.2f} of the work of the busiest rank; {formula} = {bubble:.2f} at best"
    assert not any(mark.get("stroke") == "bad" for mark in drawn.marks)


def test_a_race_names_where_the_accesses_meet(shared_data: Path) -> None:
    drawn = picture(corpus_store(shared_data, "C082"), "race.write_write")
    assert facts(drawn)["meet on"] == "ranks 0, 1"
    assert "missing order" in texts(drawn)


def test_a_leak_has_no_right_edge(shared_data: Path) -> None:
    drawn = picture(corpus_store(shared_data, "C083"), "memory.leak")
    assert facts(drawn)["act0"] == "alloc in m0"
    assert "never freed" in texts(drawn)


def test_one_task_stands_for_two_and_says_what_it_saves(shared_data: Path) -> None:
    drawn = picture(corpus_store(shared_data, "C085"), "redundant.fusible")
    assert [mark["code"] for mark in drawn.marks if mark.get("ghost")] == ["RS(sum)"]
    assert facts(drawn)["saves"] == "48 B sent by a rank"


def test_splits_that_disagree_are_marked(shared_data: Path) -> None:
    drawn = picture(corpus_store(shared_data, "C095"), "moe.split_mismatch")
    assert [mark["says"] for mark in drawn.marks if mark["t"] == "rect" and mark.get("stroke") == "bad"][:1] == [
        "1 → 0: 3 rows"
    ]


def test_a_missing_assumption_is_a_formula(shared_data: Path) -> None:
    drawn = picture(corpus_store(shared_data, "C052"), "symbol.divisibility")
    assert "B % 4 = 0 ?" in texts(drawn)


def test_the_first_wrong_value_offers_repairs_that_the_judge_tries(shared_data: Path) -> None:
    store = corpus_store(shared_data, "C001")
    waiting = picture(store, "partial.add_replicated", picture="value")
    assert waiting.wants == [()]
    verdicts = known_of(store).verdicts
    verdicts.judge()
    drawn = picture(store, "partial.add_replicated", picture="value")
    (first, *_) = drawn.buttons
    assert first.label.startswith("all-reduce(sum, [tp]) of r before t2")
    verdicts.judge((first.label,))
    tried = picture(store, "partial.add_replicated", picture="value", tried=(first.label,))
    assert tried.buttons[0].note == "q is right; next y is wrong: the value is 2 times the specification (2 = |tp|)"
    after = picture(store, "partial.add_replicated", picture="value", made=(first.label,))
    assert after.says.startswith("t3 makes y of operands that are right")


def test_a_repaired_program_is_right_as_a_whole(shared_data: Path) -> None:
    store = corpus_store(shared_data, "C006")
    known_of(store).verdicts.judge(("all-reduce(sum, [tp]) after t1",))
    drawn = picture(store, "partial.dropped", picture="value", tried=("all-reduce(sum, [tp]) after t1",))
    assert drawn.buttons[0].state == "good"
    assert drawn.buttons[0].note == "gw is right, and so are all 3 compared values"


def test_what_is_right_has_the_same_marks(shared_data: Path) -> None:
    store = corpus_store(shared_data, "C006", fixed=True)
    assert not store.findings
    reduce = next(task for task, record in enumerate(store.task_records) if record.operation.name == "all_reduce")
    drawn = picture_of_selection(store, reduce, -1, {})
    assert drawn.says == "Every hatch ends at a task that reduces it."
    assert any(mark.get("hatch") == "axis-0" for mark in drawn.marks)
    assert not any(mark.get("stroke") == "bad" or mark.get("tone") == "bad" for mark in drawn.marks)


WIDE = """
schema: dtir-program/1
name: wide
mesh: {axes: [[dp, 1000000000000000], [tp, 4]]}
values:
- {id: x, shape: [8, 16], dims: [[], [tp]]}
- {id: w, shape: [16, 4], dims: [[tp], []]}
- {id: p, shape: [8, 4], dims: [[], []], partial: {tp: sum}}
- {id: y, shape: [8, 4], dims: [[], []]}
tasks:
- {id: mm, kind: local, op: matmul, in: [x, w], out: [p]}
- {id: ar, kind: collective, coll: all_reduce, in: [p], out: [y], axes: [tp], reduction: sum}
inputs: [x, w]
outputs: [y]
"""


@pytest.mark.parametrize("cue", list(Cue))
def test_a_mesh_of_any_size_is_drawn_in_part(cue: Cue) -> None:
    (read,) = read_programs(WIDE)
    assert read.program is not None
    store = store_of(read.program)
    for task in (0, 1):
        drawn = draw_cue(cue, Case(store, None, (task,), ()))
        assert drawn.busy or len(drawn.marks) < 2_000
