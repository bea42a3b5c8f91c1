"""Reading one document: mesh, values, tasks, interface, oracle, order, limits."""

from __future__ import annotations

from typing import Any

from dtir.importers.yaml.document import Entries, Items, Node, Scalar, to_plain
from dtir.importers.yaml.fields import Fields, as_integer, as_word, as_words
from dtir.importers.yaml.problems import Problems, suggestion
from dtir.importers.yaml.scopes import ReadScope, read_regions, read_scope, region_ids
from dtir.importers.yaml.sealed import read_data, read_record
from dtir.importers.yaml.undivided import read_oracle
from dtir.importers.yaml.vocabulary import CORPUS_KEYS, CORPUS_SCHEMA, PROGRAM_KEYS, PROGRAM_SCHEMA
from dtir.ir import (
    EMPTY_SEMANTIC,
    BindingAxis,
    DistributedTaskIR,
    IRHeader,
    IssueList,
    Limit,
    LogicalMesh,
    MeshAxis,
    NodeId,
    ProgramSemantic,
    Region,
    Symbol,
    is_content_digest,
    make_header,
)
from dtir.schema.codec import content_digest
from dtir.schema.frozen import FrozenDict, freeze

DIGEST_DOMAIN = f"yaml:{PROGRAM_SCHEMA}"


def read_program(
    node: Node, problems: Problems, *, path: tuple[str, ...] = (), entry: bool = False
) -> DistributedTaskIR | None:
    """The program of one document; None when something of it cannot be read (which is then among the problems).

    Args:
        path: key path of the program within its document.
        entry: the program is an entry of a corpus, named by its ``id``.
    """
    before = problems.errors()
    if not isinstance(node, Entries):
        problems.error(
            "yaml.type", "a document must be a mapping", path, node.line, f"begin with schema: {PROGRAM_SCHEMA}"
        )
        return None
    fields = Fields(node, path, problems)
    if not entry:
        _check_schema(fields)
    known = PROGRAM_KEYS | CORPUS_KEYS
    other = {key: fields.kept(key, key, PROGRAM_KEYS) for key in fields.other_keys(known)}
    name = fields.text("id") if entry or not fields.has("name") else fields.text("name")
    if name is None:
        fields.missing("name", "name the program")
    mesh = _mesh(fields)
    if name is None or mesh is None:
        return None
    program = _Reader(fields, name, mesh, problems, other).read()
    return program if problems.errors() == before else None


def _check_schema(fields: Fields) -> None:
    schema = fields.text("schema", f"begin with schema: {PROGRAM_SCHEMA}")
    if schema is not None and schema != PROGRAM_SCHEMA:
        fields.value(
            "schema",
            f"schema {schema!r} is not read here",
            suggestion(schema, (PROGRAM_SCHEMA, CORPUS_SCHEMA)),
            "yaml.schema",
        )


def _mesh(fields: Fields) -> LogicalMesh | None:
    entries = fields.entries("mesh")
    if entries is None:
        if not fields.has("mesh"):
            fields.missing("mesh", "for example mesh: {axes: [[dp, 2], [tp, 4]]}")
        return None
    own = Fields(Entries(entries, fields.line("mesh")), (*fields.path, "mesh"), fields.problems)
    own.refuse({"name", "axes"})
    axes = own.each("axes", _axis, "an axis [name, size] with a size of at least 1")
    if not axes:
        if axes is not None or not own.has("axes"):
            own.problems.error("yaml.missing_key", "the mesh has no axes", own.path, own.node.line, "axes: [[tp, 2]]")
        return None
    names = [axis.name for axis in axes]
    if len(set(names)) != len(names):
        twice = next(name for name in names if names.count(name) > 1)
        own.value("axes", f"axis {twice!r} stands twice in the mesh", "name every axis once")
        return None
    return LogicalMesh(own.text("name") or "mesh", tuple(axes))


def _axis(node: Node) -> MeshAxis | None:
    if not isinstance(node, Items) or len(node.items) != 2:
        return None
    name, size = as_word(node.items[0]), as_integer(node.items[1])
    return MeshAxis(name, size) if name is not None and size is not None and size > 0 else None


class _Reader:
    """Reads what stands beside mesh and name."""

    def __init__(
        self, fields: Fields, name: str, mesh: LogicalMesh, problems: Problems, attributes: dict[str, object]
    ) -> None:
        self.fields = fields
        self.name = name
        self.mesh = mesh
        self.problems = problems
        self.attributes = attributes

    def read(self) -> DistributedTaskIR | None:
        fields, before = self.fields, self.problems.errors()
        symbols = self._symbols()
        regions = region_ids(fields, self.name)
        scope = read_scope(fields, self.name, (), self.mesh, symbols, regions)
        bodies, inner = read_regions(fields, self.name, self.mesh, symbols, regions)
        oracle = read_oracle(fields, self.name, self.mesh, scope.values, symbols, scope.declared)
        ids = {**inner, **scope.ids}
        issue, limits = self._issue(ids), self._limits()
        assume, bindings = fields.words("assume") or [], self._bindings()
        strict = fields.truth("strict_order") or False
        digest = self._digest()
        self._keep_rest()
        if self.problems.errors() > before:
            return None
        return self._program(scope, bodies, oracle, issue, limits, tuple(assume), bindings, strict, digest)

    def _program(
        self,
        scope: ReadScope,
        regions: tuple[Region, ...],
        oracle: Region | None,
        issue: tuple[IssueList, ...],
        limits: tuple[Limit, ...],
        assume: tuple[str, ...],
        bindings: dict[str, int | float],
        strict: bool,
        digest: str,
    ) -> DistributedTaskIR | None:
        usual = make_header(DistributedTaskIR.SCHEMA_NAME, DistributedTaskIR.SCHEMA_VERSION, parent_digests=(digest,))
        header = read_record(self.fields, "header", IRHeader)
        semantic = read_record(self.fields, "semantic", ProgramSemantic)
        try:
            return DistributedTaskIR(
                name=self.name,
                source_model_digest=digest,
                mesh=self.mesh,
                values=scope.listed,
                tasks=scope.tasks,
                inputs=scope.inputs,
                outputs=scope.outputs,
                semantic=EMPTY_SEMANTIC if semantic is None else semantic,
                attributes=FrozenDict(self.attributes),
                header=usual if header is None else header,
                regions=regions,
                issue=issue,
                limits=limits,
                assume=assume,
                bindings=FrozenDict(bindings),
                oracle=oracle,
                strict_order=strict,
            )
        except (TypeError, ValueError) as error:
            # Every field was checked on the way; this is the net below, for a file must never end in a traceback.
            self.problems.error(
                "yaml.value", f"the program cannot be built: {error}", self.fields.path, self.fields.node.line
            )
            return None

    def _symbols(self) -> dict[str, Symbol]:
        found: dict[str, Symbol] = {}
        for index, node in enumerate(self.fields.items("symbols") or []):
            path = (*self.fields.path, "symbols", str(index))
            if not isinstance(node, Entries):
                self.problems.error(
                    "yaml.type", "a symbol must be a mapping", path, node.line, "write {name: B, positive: true}"
                )
                continue
            own = Fields(node, path, self.problems)
            own.refuse({"name", "axis", "integer", "positive"})
            name = own.text("name", "name the symbol")
            axis = own.one_of("axis", [item.value for item in BindingAxis]) or BindingAxis.WORKLOAD.value
            integer, positive = own.truth("integer"), own.truth("positive")
            if name is not None and all(character == "_" or character.isalnum() for character in name):
                symbol = Symbol(name, BindingAxis(axis), integer is not False, positive is True)
                found[f"{axis}.{name}"] = symbol
            elif name is not None:
                own.value("name", f"symbol {name!r} must consist of letters, digits and '_'")
        return found

    # -- order, limits, symbols ----------------------------------------------------------------------------------------

    def _issue(self, ids: dict[str, NodeId]) -> tuple[IssueList, ...]:
        steps = self.fields.keyed("issue", _steps, "a list of tasks, or of lists of tasks issued together")
        found: list[IssueList] = []
        for rank, items in sorted((steps or {}).items()):
            for name in (name for step in items for name in step):
                if name not in ids:
                    self.fields.value("issue", f"rank {rank} issues task {name!r}, which the document does not declare",
                                      suggestion(name, ids), "reference.unknown")  # fmt: skip
            found.append(IssueList(rank, tuple(tuple(ids[name] for name in step if name in ids) for step in items)))
        return tuple(found)

    def _limits(self) -> tuple[Limit, ...]:
        found: list[Limit] = []
        for name, node in (self.fields.entries("limits") or {}).items():
            number = as_integer(node)
            if number is not None and number >= 0:
                found.append(Limit(name or "''", number))
                continue
            entries = node.entries if isinstance(node, Entries) else {}
            by_rank = {rank: as_integer(item) for rank, item in entries.items() if rank.isascii() and rank.isdigit()}
            if (
                not entries
                or len(by_rank) != len(entries)
                or any(item is None or item < 0 for item in by_rank.values())
            ):
                self.fields.value(
                    "limits", f"limit {name} must be a whole number, or one a rank: {{0: 100}}", None, "yaml.type"
                )
                continue
            found += [Limit(name or "''", item, int(rank)) for rank, item in by_rank.items() if item is not None]
        return tuple(found)

    def _bindings(self) -> dict[str, int | float]:
        found: dict[str, int | float] = {}
        for name, node in (self.fields.entries("bind") or {}).items():
            number = node.value if isinstance(node, Scalar) else None
            if isinstance(number, bool) or not isinstance(number, (int, float)):
                self.fields.value("bind", f"symbol {name} must be bound to a number", None, "yaml.type")
            else:
                found[name] = number
        return found

    # -- what the document says beside the program ----------------------------------------------------------------------

    def _digest(self) -> str:
        given = self.fields.text("source_digest")
        if given is None:
            return content_digest(freeze(to_plain(self.fields.node)), DIGEST_DOMAIN)
        if not is_content_digest(given):
            self.fields.value("source_digest", f"source_digest {given!r} must be 40 lower-case hex digits")
        return given

    def _keep_rest(self) -> None:
        self.attributes.update(read_data(self.fields, "attributes"))
        if (note := self.fields.get("note")) is not None:
            self.attributes["note"] = to_plain(note)
        expected: dict[str, Any] = {
            key: to_plain(node)
            for key, node in self.fields.node.entries.items()
            if key in CORPUS_KEYS and key not in _OTHER
        }
        if expected:
            self.attributes["corpus"] = expected


_OTHER = frozenset({"id", "fixed_variant"})
"""Keys of a corpus entry that are no statement about the program: its name, and another program."""


def _steps(node: Node) -> list[list[str]] | None:
    if not isinstance(node, Items):
        return None
    found = [as_words(item) for item in node.items]
    return None if any(step is None for step in found) else [step for step in found if step is not None]
