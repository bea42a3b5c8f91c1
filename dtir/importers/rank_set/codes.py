"""The codes of reading traces, and of joining the files of several ranks to one program."""

from __future__ import annotations

from dtir.schema.catalogue import CodeEntry
from dtir.schema.diagnostics import Severity

_FILES: tuple[CodeEntry, ...] = (
    CodeEntry(
        "trace.json",
        "The file looks like a trace, but its text is no JSON from some place on, so that nothing of it can be trusted.",
        "a trace whose copy was interrupted",
        "the trace as the profiler wrote it",
        "copy or write the file again",
    ),
    CodeEntry(
        "trace.malformed",
        "Some entries of the file lack what every such entry has, or hold something of another kind. They are left out, and "
        "counted; the rest is shown.",
        '{"traceEvents": [17, {"ph": "X"}]}',
        '{"traceEvents": [{"ph": "X", "name": "aten::mm", "ts": 1.0, "dur": 2.0}]}',
        "check what wrote the file",
        Severity.WARNING,
    ),
    CodeEntry(
        "trace.no_entries",
        "The file is a trace and records nothing; flight recorders leave their list of entries out then.",
        '{"version": "2.10", "pg_config": {}}',
        '{"version": "2.10", "pg_config": {}, "entries": [...]}',
        "nothing need be done if the rank did nothing; else record while it works",
        Severity.INFO,
    ),
    CodeEntry(
        "trace.no_program",
        "The file is a table that goes with traces and holds no program of its own.",
        "dtir show comm_group.json",
        "dtir show job.*.et comm_group.json",
        "open it together with the files of the ranks",
    ),
    CodeEntry(
        "trace.no_communication",
        "No collective and no transfer was found in the file: it may have been recorded on one rank, or without the "
        "events of the communication library.",
        "a trace of a single process",
        "a trace of a distributed job",
        "record with the events of the process groups switched on",
        Severity.INFO,
    ),
    CodeEntry(
        "trace.kind_unknown",
        "Calls of the communication library have a name that is no known collective. They are shown as local work, so that "
        "who meets whom in them is not judged.",
        'profiling_name "nccl:frobnicate"',
        'profiling_name "nccl:all_reduce"',
        "tell us the name; results about order are weaker until then",
        Severity.WARNING,
    ),
    CodeEntry(
        "trace.cpu_side",
        "Some nodes of a collective say neither its kind nor its size: they are the calls on the host of collectives whose "
        "kernels are nodes of their own. They are shown as local work, so that nothing is counted twice.",
        "c10d::allreduce_ beside ncclKernel_AllReduce",
        "one node a collective, with comm_type",
        "nothing need be done",
        Severity.INFO,
    ),
    CodeEntry(
        "trace.dangling",
        "Nodes depend on nodes that the file does not have (converters drop nodes and keep what named them). Such a "
        "dependency orders nothing; it is left out, and counted.",
        "data_deps: [17] without a node 17",
        "data_deps of nodes that are listed",
        "nothing need be done; convert again if the order matters",
        Severity.WARNING,
    ),
    CodeEntry(
        "trace.duplicate_node",
        "Two nodes of a file have one id, so that a dependency on it means two things. It is taken to mean the first.",
        "two nodes with id 3",
        "ids that are unique in the file",
        "convert the trace again",
        Severity.WARNING,
    ),
    CodeEntry(
        "trace.listed_late",
        "Dependencies are listed behind what needs them. Real converters do that; the nodes are put in order.",
        "node 5 needs node 9, which stands behind it",
        "nodes in an order in which they can run",
        "nothing need be done",
        Severity.INFO,
    ),
    CodeEntry(
        "trace.dependency_cycle",
        "Nodes of one rank depend on each other in a circle, so that none of them can run first.",
        "1 needs 2, 2 needs 1",
        "2 needs 1",
        "take one of the dependencies out",
    ),
    CodeEntry(
        "trace.truncated",
        "The stream of messages ends, or stops making sense, inside one of them. What stands before is shown.",
        "an .et file whose copy was interrupted",
        "the whole file",
        "copy or write the file again",
    ),
    CodeEntry(
        "trace.durations_only",
        "Nodes say how long they take and not when they began. In a run record they are laid end to end in the order of their "
        "issue: the durations are those of the file, the gaps between them are not known.",
        "duration_micros without start_time_micros",
        "-",
        "nothing need be done",
        Severity.INFO,
    ),
    CodeEntry(
        "trace.no_version",
        "The first message of a Chakra file holds the version of its schema; in this one it is empty, or missing.",
        "an .et file that begins with a node",
        "version 0.0.4",
        "nothing need be done; convert again if nodes look odd",
        Severity.INFO,
    ),
    CodeEntry(
        "trace.operations_joined",
        "A profiler records every small operation of the host. What lies between two communications of a rank is shown "
        "as one piece of local work with the number of its operations and their most frequent names.",
        "1,600 aten operations between 13 collectives",
        "13 collectives with local work between them",
        "nothing need be done; the trace itself has the operations",
        Severity.INFO,
    ),
)

_SETS: tuple[CodeEntry, ...] = (
    CodeEntry(
        "trace.empty_set",
        "None of the files that were to be opened together is the trace of a rank.",
        "open_set([])",
        'open_set(["job.0.et", "job.1.et"])',
        "name the files of all ranks",
    ),
    CodeEntry(
        "trace.not_of_set",
        "A file that was to be opened together with traces of ranks is none. It is left out.",
        "job.0.et, job.1.et and a module in HLO text",
        "job.0.et, job.1.et",
        "open it alone",
    ),
    CodeEntry(
        "trace.rank_missing",
        "Files of some ranks of the job are not there. What these ranks issue is unknown: the others are judged as if they "
        "came to everything that they are members of.",
        "dtir verify job.0.et job.1.et job.3.et",
        "dtir verify job.0.et job.1.et job.2.et job.3.et",
        "open the files of all ranks together",
        Severity.WARNING,
    ),
    CodeEntry(
        "trace.one_rank",
        "One file is one rank's view. Its collectives are shown with their groups; what the other members issue is unknown.",
        "dtir verify job.rank0.json",
        "dtir verify job.rank*.json",
        "open the files of all ranks together",
        Severity.INFO,
    ),
    CodeEntry(
        "trace.rank_duplicate",
        "Two files say that they are of one rank. Which of them is right cannot be known; the first is used, the other left "
        "out.",
        "dtir verify run1/job.0.et run2/job.0.et",
        "dtir verify run1/job.0.et run1/job.1.et",
        "open files of one run only, each rank once",
    ),
    CodeEntry(
        "trace.rank_unknown",
        "Neither the content nor the name of a file says which rank it is of. It is shown as the lowest rank that is free.",
        "trace.json",
        "trace.rank3.json",
        "name the file after its rank: x.rank3.json, x.3.et",
        Severity.WARNING,
    ),
    CodeEntry(
        "trace.rank_conflict",
        "A file's content and its name say different ranks; the content is believed.",
        "x.rank1.json with distributedInfo.rank 3",
        "x.rank3.json with distributedInfo.rank 3",
        "rename the file",
        Severity.WARNING,
    ),
    CodeEntry(
        "trace.rank_range",
        "A rank number, or the size of the job, is larger than any machine. It is left out: memory must not grow with a "
        "number in a file.",
        "comm_dst 999999999999",
        "comm_dst 7",
        "check what wrote the file",
    ),
    CodeEntry(
        "trace.mixed_versions",
        "The files of a set have different schema versions. They are joined all the same; what one version does not record "
        "is missing for its ranks.",
        "rank 0 of schema 1.0.1, rank 1 of schema 1.1.1",
        "files of one version",
        "record all ranks with one version",
        Severity.WARNING,
    ),
    CodeEntry(
        "trace.world_conflict",
        "The files of a set state different numbers of ranks: they are not of one run.",
        "world_size 4 in one file, 8 in another",
        "world_size 4 in all",
        "open files of one run only",
        Severity.WARNING,
    ),
    CodeEntry(
        "trace.kinds_differ",
        "Ranks call different collectives under one number of one process group. Real runtimes hang here, or mix the data.",
        "rank 0: call 2 is an all_reduce; rank 1: call 2 is an all_gather",
        "call 2 is an all_reduce on all ranks",
        "let all ranks issue the same calls in the same order",
        Severity.WARNING,
    ),
    CodeEntry(
        "trace.window",
        "Recorders keep the last calls only, and not equally many on all ranks. Calls are numbered, so that a rank whose file "
        "begins later has issued the earlier ones.",
        "rank 0 has calls 5 to 9, rank 1 has calls 7 to 9",
        "all ranks have calls 5 to 9",
        "let recorders keep more calls",
        Severity.INFO,
    ),
    CodeEntry(
        "trace.size_mismatch",
        "The two ends of a transfer, or the members of a collective, state different sizes: data are cut off or read from "
        "behind a buffer, or the call hangs.",
        "rank 0 sends 4096 bytes, rank 1 receives 1024",
        "both ends state 4096 bytes",
        "derive the size on both sides from one value",
        Severity.WARNING,
    ),
    CodeEntry(
        "trace.split_mismatch",
        "In an uneven exchange, what one rank sends to another is not what the other expects from it.",
        "rank 0 sends 3 rows to rank 1, which expects 2 from rank 0",
        "recv_splits of rank 1 are the column of all send_splits",
        "exchange the counts first",
        Severity.WARNING,
    ),
)

_UNKNOWNS: tuple[CodeEntry, ...] = (
    CodeEntry(
        "trace.group_unknown",
        "The members of a process group stand in no file, so that who is waited for in its calls is not known.",
        'pg_name "3" without a comm_group.json',
        '{"3": [2, 3]} beside the traces',
        "open the files of all ranks, and the table of groups",
        Severity.WARNING,
    ),
    CodeEntry(
        "trace.group_inferred",
        "No file lists the members of a process group; they are taken to be the ranks that call it, since all files are here.",
        "a gloo flight recorder, whose pg_config is empty",
        "pg_config with ranks",
        "nothing need be done; a rank that never called it is not seen",
        Severity.INFO,
    ),
    CodeEntry(
        "trace.group_conflict",
        "Files disagree about the members of a process group, or a rank calls a group that it is not listed in.",
        'one file says group "1" is 0, 1, another 0, 2',
        "files of one run",
        "open files of one run only",
        Severity.WARNING,
    ),
    CodeEntry(
        "trace.groups_from",
        "The table of process groups that lies beside the traces was used.",
        "-",
        "job.0.et and comm_group.json in one folder",
        "nothing need be done",
        Severity.INFO,
    ),
    CodeEntry(
        "trace.peer_unknown",
        "A send or receive does not say who is at its other end (or names its own rank), so that it cannot be matched.",
        "recv from any source",
        "recv from rank 2",
        "record the peer of every send and receive",
        Severity.WARNING,
    ),
    CodeEntry(
        "trace.order_open",
        "The dependencies leave it open in which order a rank issues its communication; in the order of the file the ranks "
        "would not get through. Shown is an order in which they do.",
        "rank 0 lists A, B; rank 1 lists B, A; nothing depends on anything",
        "B depends on A on both ranks",
        "order communication by dependencies where a runtime must not choose",
        Severity.INFO,
    ),
    CodeEntry(
        "trace.waits_unrecorded",
        "The trace says when sends and receives were issued, not when the rank waits for them; they are taken to be waited "
        "for at the end, so that a wait in between is not judged.",
        "c10d::send without its wait",
        "-",
        "judge the schedule itself where waits matter",
        Severity.INFO,
    ),
    CodeEntry(
        "trace.reduction_unknown",
        "The trace does not say how values are combined; a sum is assumed, as frameworks do when nothing is said.",
        "c10d::allreduce_ with an opaque ReduceOp",
        "reduce_op: sum",
        "nothing need be done unless it matters which",
        Severity.INFO,
    ),
    CodeEntry(
        "trace.root_unknown",
        "The trace does not say which rank is the root; the first member is shown as the root and marked as assumed.",
        "a broadcast in a flight recorder",
        "root_rank: 1",
        "nothing need be done unless it matters which",
        Severity.INFO,
    ),
    CodeEntry(
        "trace.shown_as",
        "The IR has no barrier, reduce, gather or scatter. They are shown as the collective in which the same ranks wait for "
        "each other: an all_reduce of nothing, an all_reduce or all_gather whose result the root alone has, a broadcast. "
        "The attribute trace.kind keeps what it is.",
        "a barrier of ranks 0 to 3, which no task of the IR can be",
        "an all_reduce of 0 bytes of ranks 0 to 3, with trace.kind: barrier",
        "nothing need be done",
        Severity.INFO,
    ),
    CodeEntry(
        "trace.unfinished",
        "The recorder was written while some calls were not over: they are what the job hangs in, or what it was doing.",
        "an entry that is not retired",
        "-",
        "look at what verify says about these calls",
        Severity.INFO,
    ),
)

CODES: tuple[CodeEntry, ...] = (*_FILES, *_SETS, *_UNKNOWNS)
