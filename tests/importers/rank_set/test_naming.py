from __future__ import annotations

import gzip

import pytest

from dtir.importers import load_several
from dtir.importers.rank_set.naming import program_name, rank_in_name, set_name
from dtir.importers.several import Sniffed, group, sniff_bytes
from tests.helpers.traces import kept


@pytest.mark.parametrize(
    ("name", "rank", "common"),
    [
        ("custom_allreduce.3.et", 3, "custom_allreduce.et"),
        ("a/b/ddp.fr.rank12.json.gz", 12, "ddp.fr.json"),
        ("rank3.json", 3, "json"),
        ("trace_rank-0007.json", 7, "trace.json"),
        ("worker5.1694128201545.pt.trace.json", 5, "1694128201545.pt.trace.json"),
        ("chakra.0.json.gz", 0, "chakra.json"),
        ("dump_3", 3, "dump"),
        ("trace.json", None, "trace.json"),
        ("step.1694128201545.json", None, "step.1694128201545.json"),
        ("resnet_et_1.0.3.json.gz", None, "resnet_et_1.0.3.json"),
        ("all_reduce_8.3.et", 3, "all_reduce_8.et"),
        ("v2.0.4-notes.json", None, "v2.0.4-notes.json"),
    ],
)
def test_ranks_in_names(name: str, rank: int | None, common: str) -> None:
    assert (rank_in_name(name), set_name(name)) == (rank, common)


def test_programs_are_named_without_rank_and_endings() -> None:
    assert program_name("x/ddp.fr.rank0.json") == "ddp"


def groups(*files: tuple[str, str]) -> list[tuple[str, ...]]:
    return [one.files for one in group([(name, Sniffed(format)) for name, format in files])]


def test_files_of_one_job_are_one_program() -> None:
    assert groups(("a.0.et", "chakra"), ("m.hlo", "hlo"), ("a.1.et", "chakra"), ("comm_group.json", "comm-group")) == [
        ("a.0.et", "a.1.et", "comm_group.json"),
        ("m.hlo",),
    ]


def test_files_of_two_jobs_are_two_programs() -> None:
    files = [(f"{job}.rank{rank}.json", "flight-recorder") for job in "ab" for rank in range(2)]
    assert groups(*files) == [("a.rank0.json", "a.rank1.json"), ("b.rank0.json", "b.rank1.json")]


def test_names_that_have_nothing_in_common_are_one_job() -> None:
    assert groups(("first.rank0.json", "kineto-less"), ("x.0.et", "chakra"), ("y.1.et", "chakra")) == [
        ("first.rank0.json",),
        ("x.0.et", "y.1.et"),
    ]


def test_time_stamps_do_not_part_a_job() -> None:
    files = [(f"{word}/worker{rank}.169412820150{rank}.pt.json", "kineto") for word in "ab" for rank in range(2)]
    assert len(groups(*files)) == 1
    assert (
        len(groups(*[(f"{word}.rank{rank}.1694128201{rank}.json", "kineto") for word in "ab" for rank in range(2)]))
        == 2
    )


def test_profiles_whose_names_say_nothing_are_told_by_the_size_of_their_job() -> None:
    def seen(world: int | None) -> Sniffed:
        info = "" if world is None else f'"distributedInfo": {{"backend": "nccl", "rank": 1, "world_size": {world}}}, '
        return sniff_bytes(gzip.compress(f'{{"schemaVersion": 1, {info}"traceEvents": []}}'.encode()))

    files = [
        ("a.json", seen(2)),
        ("b.json", seen(300)),
        ("c.json", seen(None)),
        ("d.json", seen(2)),
        ("e.json", seen(None)),
    ]
    assert [one.files for one in group(files)] == [("a.json", "d.json"), ("b.json",), ("c.json",), ("e.json",)]


def test_files_dropped_together() -> None:
    hlo = b"ENTRY e { ROOT a = f32[2] parameter(0) }"
    upload = [(path.name, path.read_bytes()) for path in kept("desync_deadlock")]
    found = load_several([*upload[:2], ("e.hlo", hlo), *upload[2:], ("e.hlo", hlo)])
    assert [name for name, _ in found] == [upload[0][0], "e.hlo", "e.hlo"]
    joined = found[0][1].program
    assert joined is not None
    assert joined.mesh.size == 4
    (same,) = load_several(kept("desync_deadlock"))
    assert same[1].digest == found[0][1].digest


def test_another_format_is_another_program() -> None:
    assert groups(("a.0.et", "chakra"), ("a.rank0.json", "flight-recorder")) == [("a.0.et",), ("a.rank0.json",)]
