"""Pictures of findings: every code has one, every faulty program gets one, and each says what the analysis derives."""

from __future__ import annotations

from pathlib import Path

import yaml
from dtir_app.cues import DRAWERS, Picture, picture_of
from dtir_app.store import Store

from dtir.explain import catalogue
from dtir.verify.catalogue.cues import Cue, cue_of
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
    assert set(DRAWERS) <= set(Cue)


def test_every_finding_of_the_corpus_has_a_picture(shared_data: Path) -> None:
    for name, store in corpus_stores(shared_data).items():
        for row, finding in enumerate(store.findings):
            drawn = picture_of(store, row, {})
            assert drawn.marks, (name, finding.code)
            assert drawn.says.endswith((".", "?")), (name, finding.code, drawn.says)
            assert drawn.fix.endswith((".", "?", "!")), (name, finding.code)
            assert drawn.width > 40, name
            assert drawn.height > 20, name
            assert all(mark.get("tone", "text") for mark in drawn.marks)


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
