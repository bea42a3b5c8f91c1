"""Migrations: from the raw tree of an older snapshot to that of a newer one, step by step, digests checked.

A step goes from one version of a schema to a later one, or to another schema. Which steps are taken is never a choice:
there must be exactly one way. Every step runs twice, on copies, so that one that depends on anything but its input is
found out; the digests of the source and of every step are checked over the raw payload.

>>> v1, v2 = SchemaVersion(0, 1), SchemaVersion(0, 2)
>>> registry = SchemaMigrationRegistry()
>>> registry.register(SchemaMigration("doc.schema", v1, v2, "doc.first", lambda tree: tree))
>>> [step.migration_id for step in registry.path("doc.schema", v1, v2)]
['doc.first']
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Any, TypeAlias

from dtir.schema.envelope import Envelope, read_envelope
from dtir.schema.errors import SerializationError
from dtir.schema.jsontext import parse_json, raw_json
from dtir.schema.version import SchemaVersion

Transform: TypeAlias = Callable[[Any], Any]
"""From the raw tree of a snapshot (envelope included) to the raw tree of the migrated one."""

_Point: TypeAlias = tuple[str, SchemaVersion]


@dataclass(frozen=True, slots=True)
class SchemaMigration:
    """One step.

    Args:
        schema_name: the schema that it reads.
        from_version: the version that it reads.
        to_version: the version that it writes.
        migration_id: a name, unique in its schema; results list the names of the steps that were taken.
        transform: see `Transform`. It must set versions in envelope and header, and the digest.
        to_schema: the schema that it writes; None means the same.

    Raises:
        ValueError: the version does not advance within one schema.
    """

    schema_name: str
    from_version: SchemaVersion
    to_version: SchemaVersion
    migration_id: str
    transform: Transform
    to_schema: str | None = None

    def __post_init__(self) -> None:
        if self.target_schema == self.schema_name and self.to_version <= self.from_version:
            raise ValueError(
                f"schema migrations must advance the version: {self.migration_id} goes from {self.from_version} to "
                f"{self.to_version}"
            )

    @property
    def target_schema(self) -> str:
        """The schema that the step writes."""
        return self.to_schema or self.schema_name


@dataclass(frozen=True, slots=True)
class MigrationResult:
    """A migrated snapshot and how it came about.

    Args:
        payload: canonical text of the migrated snapshot, envelope included.
        schema_name: its schema.
        source_version: version of the snapshot that was read.
        target_version: version of the migrated one.
        source_digest: content digest of the snapshot that was read.
        target_digest: content digest of the migrated one.
        migration_ids: the steps that were taken, in order; empty when there was nothing to do.
    """

    payload: str
    schema_name: str
    source_version: SchemaVersion
    target_version: SchemaVersion
    source_digest: str
    target_digest: str
    migration_ids: tuple[str, ...]


class SchemaMigrationRegistry:
    """The known steps; they form a graph without cycles whose nodes are versions of schemas."""

    def __init__(self, steps: Iterable[SchemaMigration] = ()) -> None:
        self._steps: dict[_Point, dict[_Point, SchemaMigration]] = {}
        for step in steps:
            self.register(step)

    @property
    def steps(self) -> tuple[SchemaMigration, ...]:
        """Every step, in the order in which they were registered from each version."""
        return tuple(step for following in self._steps.values() for step in following.values())

    def register(self, migration: SchemaMigration) -> None:
        """Add a step.

        Raises:
            ValueError: the edge exists, the id is taken in its schema, or the step would close a cycle.
        """
        source = (migration.schema_name, migration.from_version)
        target = (migration.target_schema, migration.to_version)
        if target in self._steps.get(source, {}):
            raise ValueError(f"duplicate schema migration edge: {_point_text(source)} -> {_point_text(target)}")
        for step in self.steps:
            if (step.schema_name, step.migration_id) == (migration.schema_name, migration.migration_id):
                raise ValueError(f"duplicate schema migration id: {migration.migration_id!r}")
        if source in self._ways_from(target):
            raise ValueError(f"schema migration cycle: {_point_text(source)} -> {_point_text(target)} leads back")
        self._steps.setdefault(source, {})[target] = migration

    def starts_from(self, schema_name: str) -> bool:
        """True when some step reads this schema."""
        return any(name == schema_name for name, _ in self._steps)

    def path(
        self, schema_name: str, source: SchemaVersion, target: SchemaVersion, *, target_schema: str | None = None
    ) -> tuple[SchemaMigration, ...]:
        """The one way from a version to another; empty when they are the same.

        Args:
            schema_name: the schema to start from.
            source: the version to start from.
            target: the version to reach.
            target_schema: the schema to reach; None means the same.

        Raises:
            SerializationError: there is no way, or more than one.
        """
        start, goal = (schema_name, source), (target_schema or schema_name, target)
        ways = self._ways_to(goal)
        label = f"{_point_text(start)} -> {target if goal[0] == schema_name else _point_text(goal)}"
        if not ways.get(start):
            raise SerializationError(f"no migration path for {label}", hint=self._known_text(schema_name))
        if ways[start] > 1:
            raise SerializationError(f"ambiguous migration path for {label}", hint=f"there are {ways[start]} ways")
        found: list[SchemaMigration] = []
        here = start
        while here != goal:
            here, step = next((point, step) for point, step in self._steps[here].items() if ways.get(point))
            found.append(step)
        return tuple(found)

    def migrate_json(
        self, text: str, *, schema_name: str, target_version: SchemaVersion, target_schema: str | None = None
    ) -> MigrationResult:
        """Migrate the text of a snapshot.

        Raises:
            SerializationError: the text is no snapshot of this schema, a digest is wrong, there is not exactly one way,
                or a step is nondeterministic or does not yield what it says.
        """
        tree = parse_json(text)
        envelope = read_envelope(tree)
        if envelope.schema_name != schema_name:
            raise SerializationError(f"snapshot schema {envelope.schema_name} is not {schema_name}")
        check_raw_digest(envelope)
        steps = self.path(schema_name, envelope.version, target_version, target_schema=target_schema)
        migrated = raw_json(tree)
        reached = envelope
        for step in steps:
            migrated = _run(step, migrated)
            reached = _checked_step(step, migrated)
        return MigrationResult(
            migrated,
            reached.schema_name,
            envelope.version,
            reached.version,
            envelope.digest,
            reached.digest,
            tuple(step.migration_id for step in steps),
        )

    # the graph

    def _ways_from(self, start: _Point) -> set[_Point]:
        seen = {start}
        stack = [start]
        while stack:
            following = [point for point in self._steps.get(stack.pop(), {}) if point not in seen]
            seen.update(following)
            stack += following
        return seen

    def _ways_to(self, goal: _Point) -> dict[_Point, int]:
        """For every version from which the goal can be reached: in how many ways (counted, not listed)."""
        ways = {goal: 1}
        stack = list(self._steps)
        while stack:
            point = stack[-1]
            following = self._steps.get(point, {})
            waiting = [] if point in ways else [item for item in following if item not in ways]
            if waiting:
                stack += waiting
                continue
            stack.pop()
            if point not in ways:
                ways[point] = sum(ways[item] for item in following)
        return ways

    def _known_text(self, schema_name: str) -> str:
        known = [
            f"{_point_text((step.schema_name, step.from_version))} -> "
            f"{_point_text((step.target_schema, step.to_version))}"
            for step in self.steps
            if step.schema_name == schema_name
        ]
        return f"known steps: {', '.join(known)}" if known else f"no step reads {schema_name}"


def check_raw_digest(envelope: Envelope) -> None:
    """Refuse a snapshot whose raw payload does not have the digest that its envelope states.

    Raises:
        SerializationError: it does not.
    """
    found = envelope.raw_digest()
    if found != envelope.digest:
        raise SerializationError(
            "canonical IR snapshot digest mismatch during migration",
            hint=f"the envelope states {envelope.digest}, the raw payload has {found}",
        )


def _run(step: SchemaMigration, text: str) -> str:
    # Each run gets a tree of its own: a step may change what it is given.
    first, second = raw_json(step.transform(parse_json(text))), raw_json(step.transform(parse_json(text)))
    if first != second:
        raise SerializationError(f"schema migration {step.migration_id!r} is nondeterministic")
    return first


def _checked_step(step: SchemaMigration, text: str) -> Envelope:
    envelope = read_envelope(parse_json(text))
    wanted, found = (step.target_schema, step.to_version), (envelope.schema_name, envelope.version)
    if found != wanted:
        raise SerializationError(
            f"schema migration {step.migration_id!r} yields {_point_text(found)} instead of {_point_text(wanted)}"
        )
    check_raw_digest(envelope)
    return envelope


def _point_text(point: _Point) -> str:
    return f"{point[0]}@{point[1]}"


DEFAULT_SCHEMA_MIGRATIONS = SchemaMigrationRegistry()
"""Steps for every reader of this process. Empty: no released schema has a history yet."""
