"""The form of a run record's file: what is written down once, for readers, for its JSON schema, and for checking.

`record_schema` gives the JSON schema (draft 2020-12); ``dtir/execute/run-record.schema.json`` is that text, and a test
holds the two together.
"""

from __future__ import annotations

import json
from typing import Annotated, Any, Literal

from pydantic import BaseModel, ConfigDict, Field, ValidationError, model_validator

SCHEMA, VERSION = "dtir.run-record", "1.0.0"

Number = Annotated[float, Field(allow_inf_nan=False)]
Unbounded = Number | Literal["nan", "inf", "-inf"]
"""JSON has no infinities: they are written as text."""

Index = Annotated[int, Field(ge=0)]
Run = Annotated[list[int], Field(min_length=2, max_length=2)]
"""First and last of consecutive ranks."""

Ranks = list[Run]


class _Strict(BaseModel):
    model_config = ConfigDict(extra="forbid", strict=True, frozen=True)


class _Open(BaseModel):
    """Facts that may grow: keys that are not named here are kept."""

    model_config = ConfigDict(extra="allow", strict=True, frozen=True)


class ProgramFile(_Open):
    """What was run."""

    name: str
    digest: str = Field(description="content digest of the program")
    ranks: int = Field(description="virtual ranks")


class StepFile(_Strict):
    """A step of the plan; records name it by its index."""

    index: Index
    task: str = Field(description="id of the task")
    name: str = Field(description="what people call it")
    region: str = Field(description="the region that holds it, empty for the program's own list")
    kind: Literal["local", "exchange", "move", "order", "call", "loop", "branch"]
    operation: str
    message_bytes: int = Field(description="S of one group, as nccl-tests counts it")
    planned_bytes: int = Field(description="bytes that all ranks send at least in one execution")
    planned_us: Number | None = Field(
        default=None,
        description="by the cost model of `profile`, of one execution: one rank of a local step, the dearest group of a "
        "communication step; null: there is no profile, or it does not say",
    )
    model: str = Field(default="", description="where planned_us comes from")
    ranks: int = Field(default=-1, description="who takes part: a place in rank_sets; -1: not stated")
    groups: int = Field(default=-1, description="of a communication step: a place in group_sets; -1: none")
    wrong: int | None = Field(
        default=None,
        description="elements of the results of all ranks that differ from the reference, in the repetition that was "
        "checked; null: not checked",
    )


class ColumnsFile(_Strict):
    """Executions of steps in measured repetitions, column by column; times in nanoseconds of one clock, of which only
    differences mean something."""

    step: list[int] = Field(description="index of the step")
    rank: list[int | None] = Field(description="null: all ranks of the step together, in one process")
    repetition: list[int]
    start_ns: list[int]
    end_ns: list[int]
    sent_bytes: list[int | None] = Field(description="null: not measured; of a process, noted with its first rank")
    messages: list[int | None]

    @model_validator(mode="after")
    def _equal(self) -> ColumnsFile:
        lengths = {len(getattr(self, name)) for name in type(self).model_fields}
        if len(lengths) > 1:
            raise ValueError(f"the columns differ in length: {sorted(lengths)}")
        return self


class PlannedFile(_Strict):
    """The planned schedule, column by column: a step on ranks that do the same, or one group of a collective."""

    step: list[int]
    start_us: list[Number]
    end_us: list[Number]
    arrived_us: list[list[Number] | None] = Field(description="when each class came to a collective; null elsewhere")
    executions: list[str] = Field(description="for how many executions it stands, in decimal digits: they may be many")
    classes: list[list[int]] = Field(description="who takes part: places in ranks")
    ranks: list[Ranks] = Field(description="classes of ranks that do the same, as first and last of consecutive ranks")


class ProfileFile(_Open):
    """The machine profile of the planned times."""

    id: str
    standing: Literal["measured", "published", "model"]
    makespan_us: Number = Field(description="planned, from the first start to the last end")


class WireFile(_Strict):
    """What one process sent to another in a step, over all measured repetitions."""

    step: int
    process: int
    peer: int
    sent_bytes: int
    messages: int


class ValueFile(_Strict):
    """One output compared with what it should be."""

    value: str
    name: str
    source: Literal["expected", "undivided", "copies"] = Field(
        description="an array of the input file, the program run on one rank, or the other copies"
    )
    max_error: Unbounded
    bound: Unbounded = Field(description="the greatest difference that rounding explains")
    wrong: int = Field(description="elements beyond the bound")
    elements: int


class FindingFile(_Open):
    """A diagnostic."""

    code: str
    severity: Literal["error", "warning", "info"]
    message: str


class RecordFile(_Strict):
    """What was run, with what, and when every step began and ended."""

    model_config = ConfigDict(extra="forbid", strict=True, frozen=True, title="A run record of dtir")

    schema_: Literal["dtir.run-record"] = Field(alias="schema")
    version: Literal["1.0.0"]
    complete: bool = Field(description="false: the run was interrupted or failed, and what was done until then is here")
    program: ProgramFile
    backend: dict[str, Any] = Field(description="name, library, clock, wire_bytes (whether bytes can be counted)")
    options: dict[str, Any] = Field(
        description="seed (null: data from a file), repetitions, warmup, timing (free or isolated), algorithm, skip_local"
    )
    environment: dict[str, Any] = Field(description="versions, machine, load: enough to tell two runs apart")
    binding: dict[str, Any] = Field(description="which rank lived in which process, on which device")
    steps: list[StepFile]
    rank_sets: list[Ranks] = Field(default_factory=list[Ranks], description="as first and last of consecutive ranks")
    group_sets: list[list[list[int]]] = Field(
        default_factory=list[list[list[int]]], description="groups in order; of transfers (source, destination) pairs"
    )
    records: ColumnsFile = Field(description="communication steps")
    local_records: ColumnsFile | None = Field(
        default=None, description="the other steps; totals.local_left_out says how many had no more room"
    )
    totals: dict[str, Any] = Field(
        description="elapsed_ns of the repetitions, local_ns, communication_ns, local_left_out"
    )
    wire: list[WireFile] = Field(default_factory=list[WireFile])
    values: list[ValueFile]
    findings: list[FindingFile]
    profile: ProfileFile | None = None
    planned: PlannedFile | None = None


def read_file(text: str | bytes) -> RecordFile:
    """The file, checked.

    Raises:
        ValueError: it is no run record; the message says where and what was wanted.
    """
    try:
        return RecordFile.model_validate_json(text)
    except ValidationError as error:
        raise ValueError(_said(error)) from None


def _said(error: ValidationError) -> str:
    first, *more = error.errors(include_url=False, include_context=False)
    place = ".".join(str(part) for part in first["loc"]) or "the file"
    rest = f" (and {len(more)} more)" if more else ""
    found: object = first["input"]
    shown = f", found {found!r:.60}" if isinstance(found, str | int | float | bool) or found is None else ""
    return f"{place}: {first['msg']}{shown}{rest}"


def record_schema() -> str:
    """The JSON schema of a run record, as text."""
    schema = RecordFile.model_json_schema(by_alias=True)
    whole = {"$schema": "https://json-schema.org/draft/2020-12/schema", "$id": f"{SCHEMA}/{VERSION}", **schema}
    return json.dumps(whole, indent=1, ensure_ascii=False) + "\n"
