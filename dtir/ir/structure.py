"""The structural verifier: what every reader of a program may rely on.

Checks, in the order in which they are reported: header and canonical form; name, emptiness and digests; unique ids;
ordered DAG of dependencies; program interface; per value its layout, owners and attributes; per task its ranks,
dialect, references, single definition, body and attributes; outputs defined; program attributes; then the same for
every region, and how regions are entered. All findings are made in one run, in time linear in the program; rank sets
are compared, never expanded by the size of the mesh.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from dtir.ir.canonical import canonical_obstacle
from dtir.ir.findings import (
    RESERVED_ATTRIBUTES,
    reject_reserved_attributes,
    verify_known_references,
    verify_nonnegative_scalar,
    verify_ordered_dag,
    verify_unique_ids,
)
from dtir.ir.header import REQUIRED_FEATURE, is_content_digest
from dtir.ir.ids import NodeId
from dtir.ir.regions import entered_regions, verify_issue, verify_region_order
from dtir.ir.scopes import ScopeVerifier
from dtir.ir.tasks import DistributedTask
from dtir.schema.diagnostics import DiagnosticBag, VerificationReport

if TYPE_CHECKING:
    from dtir.ir.program import DistributedTaskIR

__all__ = [
    "RESERVED_ATTRIBUTES",
    "entered_regions",
    "reject_reserved_attributes",
    "verify_known_references",
    "verify_nonnegative_scalar",
    "verify_ordered_dag",
    "verify_structure",
    "verify_unique_ids",
]


def verify_structure(program: DistributedTaskIR) -> VerificationReport:
    """Every structural finding about a program."""
    bag = DiagnosticBag()
    scopes = ScopeVerifier(program, bag)
    _verify_header(program, bag)
    _verify_canonical(program, bag)
    _verify_identity(program, bag)
    verify_unique_ids(bag, program.values, _id_of, "values")
    verify_unique_ids(bag, program.tasks, _id_of, "tasks")
    verify_ordered_dag(bag, program.tasks, _id_of, _dependencies_of, "tasks")
    scopes.verify(program, ())
    reject_reserved_attributes(bag, program.attributes, RESERVED_ATTRIBUTES, "attributes")
    _verify_regions(program, bag, scopes)
    verify_issue(program, bag)
    return bag.report()


def _verify_header(program: DistributedTaskIR, bag: DiagnosticBag) -> None:
    header = program.header
    wanted, version = program.SCHEMA_NAME, program.SCHEMA_VERSION
    hint = "build headers with make_header, for this schema"
    if header.schema_name != wanted:
        bag.error("schema.name", f"expected {wanted!r}, got {header.schema_name!r}", "header", "schema_name", hint=hint)
    if header.schema_version != version:
        found = f"expected {version}, got {header.schema_version}"
        bag.error("schema.version", found, "header", "schema_version", hint=hint)
    if REQUIRED_FEATURE not in header.feature_set:
        missing = f"missing required feature epoch(s): {REQUIRED_FEATURE}"
        bag.error("schema.feature_epoch", missing, "header", "feature_set", hint=hint)


def _verify_canonical(program: DistributedTaskIR, bag: DiagnosticBag) -> None:
    obstacle = canonical_obstacle(program)
    if obstacle is not None:
        bag.error(
            "serialization.unsupported",
            obstacle,
            "<snapshot>",
            hint="keep to null, bool, int, finite float, text, bytes, tuples, frozensets, maps and registered records",
        )


def _verify_identity(program: DistributedTaskIR, bag: DiagnosticBag) -> None:
    if not program.name:
        bag.error("distributed.name", "distributed program name must not be empty", "name", hint="name the program")
    if not program.tasks or not program.values:
        bag.error(
            "distributed.empty",
            "distributed program requires tasks and values",
            "tasks",
            hint=f"{len(program.values)} values and {len(program.tasks)} tasks: at least one of each is needed",
        )
    if not is_content_digest(program.source_model_digest):
        bag.error(
            "distributed.source_digest",
            "source_model_digest must be a canonical digest",
            "source_model_digest",
            hint="40 lower-case hex digits",
        )
    elif program.source_model_digest not in program.header.parent_digests:
        bag.error(
            "distributed.parent_digest",
            "source model digest must be retained in header.parent_digests",
            "header",
            "parent_digests",
            hint="build the header with parent_digests=(source_model_digest,)",
        )


def _verify_regions(program: DistributedTaskIR, bag: DiagnosticBag, scopes: ScopeVerifier) -> None:
    if not program.regions:
        return
    verify_unique_ids(bag, program.regions, _id_of, "regions")
    known_tasks = {task.id for task in program.tasks}
    for index, region in enumerate(program.regions):
        path = ("regions", str(index))
        verify_unique_ids(bag, region.values, _id_of, *path, "values")
        verify_unique_ids(bag, region.tasks, _id_of, *path, "tasks")
        for position, task in enumerate(region.tasks):
            if task.id in known_tasks:
                bag.error(
                    "id.duplicate",
                    f"duplicate identifier {task.id}",
                    *path,
                    "tasks",
                    str(position),
                    "id",
                    hint="a task id is unique in the whole program, regions included",
                    subject=(str(task.id),),
                )
        known_tasks.update(task.id for task in region.tasks)
        verify_ordered_dag(bag, region.tasks, _id_of, _dependencies_of, *path, "tasks")
        scopes.verify(region, path)
        reject_reserved_attributes(bag, region.attributes, RESERVED_ATTRIBUTES, *path, "attributes")
    verify_region_order(program, bag)


def _id_of(item: Any) -> Any:
    return item.id


def _dependencies_of(task: DistributedTask) -> tuple[NodeId, ...]:
    return task.dependencies
