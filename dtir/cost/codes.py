"""The codes of machine profiles, planned costs and calibration."""

from __future__ import annotations

from dtir.schema.catalogue import CodeEntry

CODES: tuple[CodeEntry, ...] = (
    CodeEntry(
        "profile.json",
        "The file is no machine profile: it is no JSON, repeats a key, or states another schema or version. Nothing in it "
        "can be relied upon, so no time is planned with it.",
        '{"schema": "dtir.run-record", ...}   given as --profile',
        '{"schema": "dtir.machine-profile", "version": "1.0.0", "id": "mine", ...}',
        "write a profile with dtir calibrate -o profile.json, or name a preset",
    ),
    CodeEntry(
        "profile.field",
        "A field of the profile is missing, unknown, or of another kind than the schema says. An unknown field may be a "
        "mistyped one, and ignoring it would change the times without a word.",
        '"levels": [{"name": "nvlink", "rank": 8, ...}]',
        '"levels": [{"name": "nvlink", "ranks": 8, "alpha_s": 1e-6, "beta_s_per_byte": 2.2e-12}]',
        "write the fields as the schema in the documentation of dtir.cost.profile_json lists them",
    ),
    CodeEntry(
        "profile.value",
        "A number of the profile cannot be: a negative time, segments that do not rise from 0, units of levels that do not "
        "grow by whole factors, no curve, level or rate at all.",
        '"segments": [{"from_bytes": 4096, ...}]   without a segment from 0',
        '"segments": [{"from_bytes": 0, ...}, {"from_bytes": 4096, ...}]',
        "correct the number; times are in seconds, sizes in bytes, rates a second",
    ),
    CodeEntry(
        "profile.unknown",
        "There is neither a preset nor a file of that name.",
        "dtir cost program.hlo --profile h100",
        "dtir cost program.hlo --profile h100-nvlink-ib",
        "name one of the presets (dtir cost --list-profiles), or a file",
    ),
    CodeEntry(
        "cost.order",
        "The per-rank issue orders and the dependencies contradict each other: some tasks wait for one another in a "
        "circle, so there is no time at which they could start.",
        "rank 0 issues a, b and rank 1 issues b, a, where both are collectives of the two",
        "both ranks issue a, b",
        "dtir verify shows the circle; issue the tasks in one order on all ranks",
    ),
    CodeEntry(
        "cost.too_large",
        "The ranks of the program do so many different things that their timelines would not fit into memory. Ranks that "
        "do the same cost nothing more; here too many differ.",
        "a pipeline of 100,000 stages with 10,000 microbatches",
        "the same schedule with fewer stages or microbatches: times follow from the formulas",
        "plan a smaller mesh or fewer microbatches of the same program",
    ),
)
