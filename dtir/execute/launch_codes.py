"""The codes of runs in several processes."""

from __future__ import annotations

from dtir.schema.catalogue import CodeEntry

CODES: tuple[CodeEntry, ...] = (
    CodeEntry(
        "run.stalled",
        "A rank waited in one communication step for longer than the limit while nobody computed: some other rank never "
        "entered it, or a process hangs. The watchdog ended the run.",
        "rank 0 is in all_reduce a, rank 1 in all_reduce b",
        "all ranks enter the collectives of a group in one order",
        "look at where the other ranks are; --stall-after SECONDS sets the limit",
    ),
    CodeEntry(
        "run.killed",
        "A process of the run was ended by a signal or ended by itself without saying why; the others were stopped.",
        "the system ended a process that used too much memory",
        "start fewer processes, or a smaller program",
        "look at the system's log; out of memory is the most frequent reason",
    ),
    CodeEntry(
        "run.crashed",
        "A process of the run ended with an error that is no finding about the program.",
        "an internal error in one of the processes",
        "no such error",
        "report it with the lines that the process printed",
    ),
    CodeEntry(
        "run.timeout",
        "The run took longer than --timeout allows and was ended; the record holds the steps that were done.",
        "dtir run X --backend mpi --timeout 5 on a program that takes a minute",
        "dtir run X --backend mpi --timeout 120",
        "allow more time, or run fewer repetitions",
    ),
    CodeEntry(
        "run.launch",
        "The processes of a run could not be started, or they do not see each other.",
        "mpiexec of one MPI with mpi4py of another: every process is alone",
        "the launcher of the MPI that mpi4py loads",
        "see python -m mpi4py --mpi-library and DTIR_MPIEXEC",
    ),
)
