from __future__ import annotations

from collections.abc import Sequence

import pytest

from dtir.importers import Imported, open_set
from dtir.ir import Collective, PointToPoint
from dtir.verify import verify
from tests.helpers.traces import TRACES, chakra, entry, kept, node, recorder

AR, AG = {"comm_type": 0, "comm_size": 64}, {"comm_type": 2, "comm_size": 64}


def codes(found: Imported) -> list[str]:
    return [item.code for item in found.diagnostics]


def judged(found: Imported) -> dict[str, tuple[str, ...]]:
    """Errors of the static verifier by code, with their subjects."""
    assert found.program is not None
    assert found.program.diagnostics().ok
    return {item.code: item.subject for item in verify(found.program).errors}


def recorders(*ranks: Sequence[dict[str, object]], **options: object) -> Imported:
    everybody = list(range(len(ranks)))
    return open_set(
        [(f"job.rank{rank}.json", recorder(*own, ranks=everybody, **options)) for rank, own in enumerate(ranks)]  # type: ignore[arg-type]
    )


# -- matching --------------------------------------------------------------------------------------------------------------


def test_one_collective_for_one_call_of_every_rank() -> None:
    found = recorders(*[[entry("nccl:all_reduce", 1), entry("nccl:all_gather", 2)]] * 3)
    assert found.program is not None
    assert found.diagnostics.ok
    assert found.program.mesh.size == 3
    assert [task.name for task in found.program.tasks] == ["nccl:all_reduce", "nccl:all_gather"]
    assert all(task.ranks == (0, 1, 2) for task in found.program.tasks)
    assert [issue.rank for issue in found.program.issue] == [0, 1, 2]
    assert judged(found) == {}


def test_recorders_that_keep_the_last_calls_only() -> None:
    calls = [entry("nccl:all_reduce", number) for number in range(5, 10)]
    found = recorders(calls, calls[2:])
    assert "trace.window" in codes(found)
    assert judged(found) == {}
    short = recorders(calls, calls[2:4])
    assert "rank 1" in judged(short)["deadlock.missing_rank"]


def test_a_rank_that_calls_less_leaves_the_others_waiting() -> None:
    first, second = entry("nccl:all_reduce", 1), entry("nccl:all_reduce", 2)
    found = recorders([first, second], [first])
    assert "rank 1" in judged(found)["deadlock.missing_rank"]


def test_other_collectives_under_one_number_are_told_and_wait_in_a_circle() -> None:
    found = recorders([entry("nccl:all_reduce", 1)], [entry("nccl:all_gather", 1, (4,))])
    assert "trace.kinds_differ" in codes(found)
    assert {"rank 0", "rank 1"} <= set(judged(found)["deadlock.cycle"])


def test_the_same_calls_in_another_order_cross() -> None:
    one, other = entry("nccl:all_reduce", 1), entry("nccl:broadcast", 2)
    found = recorders([one, other], [entry("nccl:broadcast", 1), entry("nccl:all_reduce", 2)])
    assert {"order.mismatch", "deadlock.cycle"} <= judged(found).keys()


def test_ranks_that_bring_different_shapes() -> None:
    found = recorders([entry("nccl:all_reduce", 1, (4, 5))], [entry("nccl:all_reduce", 1, (3, 4))])
    assert "collective.shape_mismatch" in judged(found)


def test_parts_of_uneven_exchanges_may_differ() -> None:
    from dtir.importers.rank_set import RankTrace, join
    from dtir.importers.rank_set.events import Call, CallKind, Event, Tensor

    def trace(rank: int, rows: int, sends: tuple[int, ...], gets: tuple[int, ...]) -> RankTrace:
        operand, result = Tensor((rows,), "f32"), Tensor((sum(gets),), "f32")
        call = Call(CallKind.ALL_TO_ALL, "", None, operand, result, send_splits=sends, recv_splits=gets)
        return RankTrace("test", f"r{rank}", "v", "0" * 40, rank, "", (Event(call, "a2av", "0"),), world=2)

    right = join([trace(0, 5, (2, 3), (2, 1)), trace(1, 5, (1, 4), (3, 4))])
    assert judged(right) == {}
    assert "trace.split_mismatch" not in codes(right)
    wrong = join([trace(0, 5, (2, 3), (2, 1)), trace(1, 5, (1, 4), (2, 4))])
    (item,) = wrong.diagnostics.of_code("trace.split_mismatch")
    assert "rank 0 sends 3 to rank 1, which expects 2" in item.message


def test_sends_meet_receives_in_order_for_each_pair_and_tag() -> None:
    rank0 = chakra(
        *(node(i, 5, f"s{i}", comm_dst=1, comm_tag=tag, comm_size=8 * i) for i, tag in ((1, 7), (2, 7), (3, 9)))
    )
    rank1 = chakra(
        *(
            node(i, 6, f"r{i}", comm_src=0, comm_tag=tag, comm_size=size)
            for i, tag, size in ((1, 9, 24), (2, 7, 8), (3, 7, 16))
        )
    )
    found = open_set([("x.0.et", rank0), ("x.1.et", rank1)])
    assert found.program is not None
    moved = {
        (t.body.spec.channel, t.body.spec.message_bytes)
        for t in found.program.tasks
        if isinstance(t.body, PointToPoint)
    }
    assert moved == {("7", 8), ("7", 16), ("9", 24)}
    assert "trace.size_mismatch" not in codes(found)
    assert judged(found) == {}


def test_ends_of_a_transfer_that_state_different_sizes() -> None:
    found = open_set(
        [
            ("x.0.et", chakra(node(1, 5, "s", comm_dst=1, comm_size=4096))),
            ("x.1.et", chakra(node(1, 6, "r", comm_src=0, comm_size=1024))),
        ]
    )
    (item,) = found.diagnostics.of_code("trace.size_mismatch")
    assert "4096" in item.message
    assert "1024" in item.message
    assert found.program is not None
    assert "p2p.bytes" in judged(found)


# -- the sets that lie beside the tests --------------------------------------------------------------------------------------


def test_a_real_hang_names_the_ranks_that_wait_for_each_other() -> None:
    found = open_set(kept("desync_deadlock"))
    assert found.program is not None
    assert found.program.mesh.size == 4
    (item,) = verify(found.program).of_code("deadlock.cycle")
    assert "gloo:all_reduce" in item.message
    assert "gloo:all_gather" in item.message
    assert "rank 3" in item.subject
    assert "trace.unfinished" in codes(found)


def test_a_send_that_nobody_receives() -> None:
    found = open_set(kept("p2p_unmatched"))
    assert judged(found).keys() == {"p2p.unmatched"}
    assert "trace.groups_from" in codes(found)


def test_a_schedule_that_works_only_while_sends_are_buffered() -> None:
    found = open_set(kept("pp4_1f1b_chain"))
    assert judged(found).keys() == {"deadlock.buffer_dependent"}


def test_a_rank_that_uses_its_communicators_in_another_order_than_its_like() -> None:
    found = open_set(kept("deadlock_pg_order"))
    (item,) = found.diagnostics.of_code("order.mismatch")
    assert item.subject == ("rank 3",)
    # Nobody waits in a circle here: it is a remark about the order, no claim of a hang.
    assert judged(found) == {}


def test_without_the_table_groups_are_those_who_call_them(tmp_path: object) -> None:
    files = [(path.name, path.read_bytes()) for path in kept("deadlock_pg_order")]
    found = open_set(files)
    assert found.program is not None
    groups = {tuple(task.ranks) for task in found.program.tasks}
    assert groups == {(0, 2), (1, 3), (0, 1), (2, 3)}
    assert codes(found).count("trace.group_inferred") == 4


def test_the_table_may_be_named_with_the_files() -> None:
    folder = TRACES / "deadlock_pg_order"
    files = [(path.name, path.read_bytes()) for path in kept("deadlock_pg_order")]
    found = open_set([*files, ("comm_group.json", (folder / "comm_group.json").read_bytes())])
    assert "trace.group_inferred" not in codes(found)
    assert "trace.groups_from" in codes(found)


# -- bad sets ----------------------------------------------------------------------------------------------------------------


def test_a_missing_rank_is_said_and_not_blamed() -> None:
    found = open_set([path for path in kept("p2p_unmatched") if ".3." not in path.name])
    (item,) = found.diagnostics.of_code("trace.rank_missing")
    assert item.subject == ("rank 3",)
    assert judged(found) == {}


def test_one_file_alone_is_one_rank_of_its_job() -> None:
    found = recorders([entry("nccl:all_reduce", 1)])
    assert found.program is not None
    alone = open_set([("job.rank2.json", recorder(entry("nccl:all_reduce", 1), ranks=range(4)))])
    assert alone.program is not None
    assert alone.program.mesh.size == 4
    assert alone.program.tasks[0].ranks == (0, 1, 2, 3)
    assert [issue.rank for issue in alone.program.issue] == [2]
    assert "trace.one_rank" in codes(alone)


def test_two_files_of_one_rank() -> None:
    first, second = recorder(entry("nccl:all_reduce", 1)), recorder(entry("nccl:all_gather", 1))
    found = open_set([("a.rank0.json", first), ("b.rank0.json", second), ("a.rank1.json", first)])
    (item,) = found.diagnostics.of_code("trace.rank_duplicate")
    assert "b.rank0.json" in item.message
    assert found.program is not None
    assert [task.name for task in found.program.tasks] == ["nccl:all_reduce"]


def test_a_file_that_does_not_say_whose_it_is() -> None:
    found = open_set(
        [
            ("dump.json", recorder(entry("nccl:all_reduce", 1))),
            ("dump.rank0.json", recorder(entry("nccl:all_reduce", 1))),
        ]
    )
    assert "trace.rank_unknown" in codes(found)
    assert found.program is not None
    assert len(found.program.issue) == 2


def test_mixed_versions_are_joined_and_said() -> None:
    calls = [entry("nccl:all_reduce", 1)]
    found = open_set([("j.rank0.json", recorder(*calls)), ("j.rank1.json", recorder(*calls, version="2.5"))])
    assert "trace.mixed_versions" in codes(found)
    assert judged(found) == {}


def test_members_that_no_file_lists() -> None:
    found = open_set([("j.rank1.json", recorder(entry("nccl:all_reduce", 1, group="7"), ranks=range(4)))])
    assert "trace.group_unknown" in codes(found)
    assert found.program is not None
    assert found.program.tasks[0].ranks == (1,)


def test_groups_of_one_name_are_told_apart_by_their_members() -> None:
    def file(rank: int, members: str) -> tuple[str, bytes]:
        sent = entry("nccl:send 0->1" if rank % 2 == 0 else "nccl:recv 1<-0", 0, group="9", is_p2p=True)
        return f"j.rank{rank}.json", recorder(
            entry("nccl:all_reduce", 1, group="9"), sent, ranks=range(4), groups={"9": members}
        )

    found = open_set([file(0, "[0, 1]"), file(1, "[0, 1]"), file(2, "[2, 3]"), file(3, "[2, 3]")])
    assert found.program is not None
    assert "trace.group_conflict" not in codes(found)
    groups = {tuple(task.ranks) for task in found.program.tasks if isinstance(task.body, Collective)}
    pairs = {task.ranks for task in found.program.tasks if isinstance(task.body, PointToPoint)}
    assert groups == pairs == {(0, 1), (2, 3)}
    assert judged(found) == {}


def test_a_group_as_large_as_the_job_has_all_ranks() -> None:
    gathered = entry("gloo:all_gather", 1, (4,), group="2", output_sizes=[[4, 4]])
    found = open_set([("j.rank1.json", recorder(gathered, ranks=range(4)))])
    assert found.program is not None
    assert found.program.tasks[0].ranks == (0, 1, 2, 3)


@pytest.mark.parametrize("number", [2**20, 2**31, 2**62])
def test_memory_does_not_grow_with_a_rank_number(number: int) -> None:
    found = open_set([("x.0.et", chakra(node(1, 5, "send", comm_dst=number), node(2, 7, "ar", **AR)))])
    assert "trace.rank_range" in codes(found)
    assert found.program is not None
    assert found.program.mesh.size == 1
    assert len(found.program.tasks) == 2


def test_files_that_are_no_traces_are_left_out_and_named() -> None:
    found = open_set([("a.0.et", chakra(node(1, 7, "ar", **AR))), ("m.hlo", b"HloModule m"), ("empty.json", b"")])
    assert {"trace.not_of_set", "input.empty"} <= set(codes(found))
    assert found.program is not None
    assert len(found.program.tasks) == 1


def test_a_pickle_is_refused_by_name() -> None:
    found = open_set([("dump.rank0", b"\x80\x04\x95" + b"0" * 64)])
    assert found.program is None
    assert "pickle" in found.diagnostics.errors[0].message


# -- order where only dependencies bind ------------------------------------------------------------------------------------------


def crossing(*, chained: bool) -> Imported:
    needs = [1] if chained else []
    rank0 = chakra(node(1, 7, "a", pg_name="0", **AR), node(2, 7, "b", needs, pg_name="1", **AG))
    rank1 = chakra(node(1, 7, "b", pg_name="1", **AG), node(2, 7, "a", needs, pg_name="0", **AR))
    return open_set([("x.0.et", rank0), ("x.1.et", rank1), ("comm_group.json", b'{"0": [0, 1], "1": [0, 1]}')])


def test_dependencies_that_cross_hang() -> None:
    assert {"order.mismatch", "deadlock.cycle"} <= judged(crossing(chained=True)).keys()


def test_an_order_that_nothing_fixes_is_chosen_so_that_all_get_through() -> None:
    found = crossing(chained=False)
    assert "trace.order_open" in codes(found)
    assert judged(found) == {}


def test_nodes_listed_behind_their_users_are_put_in_order() -> None:
    found = open_set([("x.0.et", chakra(node(1, 4, "late", [9]), node(9, 4, "early"), node(10, 7, "ar", [1], **AR)))])
    assert found.program is not None
    assert [task.name for task in found.program.tasks] == ["early", "late", "ar"]
    assert "trace.listed_late" in codes(found)
    assert isinstance(found.program.tasks[2].body, Collective)
    assert found.program.tasks[2].dependencies == (found.program.tasks[1].id,)


def test_nodes_that_wait_for_each_other_are_all_shown() -> None:
    found = open_set([("x.0.et", chakra(node(1, 4, "a", [2]), node(2, 4, "b", [1]), node(3, 4, "c", [2])))])
    assert "trace.dependency_cycle" in codes(found)
    assert found.program is not None
    assert {task.name for task in found.program.tasks} == {"a", "b", "c"}
    assert found.program.diagnostics().ok
