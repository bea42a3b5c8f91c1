"""`import_mlir`: MLIR text to programs, with everything that was found on the way."""

from __future__ import annotations

import hashlib
import re
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field

from dtir.importers.hlo.lexing import HloSyntaxError
from dtir.importers.hlo.lowering import lower
from dtir.importers.hlo.problems import Level, Lines, Problem, Problems
from dtir.importers.stablehlo.builder import Skip
from dtir.importers.stablehlo.check import Checker
from dtir.importers.stablehlo.check_sharding import check_mesh
from dtir.importers.stablehlo.functions import Function, called, is_function, read_function, top_level
from dtir.importers.stablehlo.lists import entries, inside
from dtir.importers.stablehlo.operations import handler
from dtir.importers.stablehlo.program import assemble, facts, form_of
from dtir.importers.stablehlo.scan import Scanner
from dtir.importers.stablehlo.scope import MlirLowering, MlirScope
from dtir.importers.stablehlo.sdy import SdyMesh, parse_mesh
from dtir.importers.stablehlo.shardings import FRONTEND
from dtir.importers.stablehlo.syntax import Operation, Part, walk
from dtir.importers.stablehlo.text import parts, without_comments
from dtir.importers.stablehlo.translate import Translator
from dtir.importers.stablehlo.values import frontend
from dtir.importers.stablehlo.views import Dialects, View
from dtir.ir.program import DistributedTaskIR
from dtir.schema.diagnostics import Diagnostic, DiagnosticBag, DiagnosticSet, Severity

_DIGEST_SIZE_BYTES = 20
_FULL_NAMES = {"return": "func.return", "call": "func.call", "func": "func.func", "module": "builtin.module"}
_APPLIES = re.compile(r"\bapplies\s+([\w.]+)")
_CLUSTER = re.compile(r'#ttcore\.meshes<\[<"[^"]*"\s*=\s*(\d+(?:x\d+)*)')
_DECLARED = re.compile(r'@([\w.$\-]+|"(?:[^"\\\n]|\\.)*")')


@dataclass(frozen=True, slots=True)
class MlirProgram:
    """What came of one function that nothing calls.

    Args:
        name: of the function.
        program: the program; None when the function or what it calls has errors.
        diagnostics: what was found in its part of the text, in text order; the path is `("line", n, "column", m)`.
    """

    name: str
    program: DistributedTaskIR | None
    diagnostics: DiagnosticSet


@dataclass(frozen=True, slots=True)
class MlirPart:
    """What came of one part of the text: its programs, its meshes and how often each operation occurs.

    `operations` counts operations by full name as the generic form has them: a reduce that ``applies stablehlo.add`` counts
    an add and a return.
    """

    line: int
    programs: tuple[MlirProgram, ...]
    diagnostics: DiagnosticSet
    meshes: tuple[tuple[str, str], ...] = ()
    operations: Counter[str] = field(default_factory=Counter[str])


@dataclass(frozen=True, slots=True)
class MlirImport:
    """What came out of one text: a program per part and function that nothing calls; at least one entry."""

    parts: tuple[MlirPart, ...]

    @property
    def programs(self) -> tuple[MlirProgram, ...]:
        """The programs of all parts, in order."""
        return tuple(program for part in self.parts for program in part.programs)

    @property
    def diagnostics(self) -> DiagnosticSet:
        """Everything that was found, in text order."""
        return DiagnosticSet(tuple(item for part in self.parts for item in part.diagnostics))


def import_mlir(text: str, *, digest: str | None = None) -> MlirImport:
    """Import every part and function of an MLIR text. Nothing is raised for what the text holds.

    Args:
        text: MLIR as text, in generic or pretty form.
        digest: content digest of the source (40 hex digits); BLAKE2b-160 of the text as UTF-8 when not given.

    >>> found = import_mlir("func.func @f(%a: tensor<4xf32>) -> tensor<4xf32> {"
    ...                     " %0 = stablehlo.negate %a : tensor<4xf32>\\n return %0 : tensor<4xf32> }")
    >>> [str(task.operation) for task in found.programs[0].program.tasks]
    ['hlo.negate']
    """
    source = (
        digest or hashlib.blake2b(text.encode("utf-8", "surrogatepass"), digest_size=_DIGEST_SIZE_BYTES).hexdigest()
    )
    plain = without_comments(text)
    lines = Lines(text)
    found: list[MlirPart] = []
    spans = parts(text)
    # Without this flag the tool that a test file is for reads it as a whole: what stands above a line is known below it.
    cut = "split-input-file" in text
    meshes: dict[str, SdyMesh] = {}
    for start, end in spans:
        if len(spans) > 1 and not plain[start:end].strip():
            continue
        part = _Part(text, plain, start, end, lines, source, alone=len(spans) == 1, meshes={} if cut else meshes)
        found.append(part.run())
        meshes = part.meshes
    return MlirImport(tuple(found))


class _Part:
    """Imports one part of a text."""

    def __init__(
        self,
        text: str,
        plain: str,
        start: int,
        end: int,
        lines: Lines,
        digest: str,
        alone: bool,
        meshes: dict[str, SdyMesh],
    ) -> None:
        self._plain = plain
        self._start, self._end = start, end
        self._digest = digest
        self._alone = alone
        self.meshes = dict(meshes)
        self._own: list[str] = []
        self.problems = Problems(text)
        self.problems.lines = lines
        self._top: list[Problem] = []
        self._found: dict[str, list[Problem]] = {}
        self._later: list[Problem] = []

    def run(self) -> MlirPart:
        """Scan, check, translate, lower."""
        problems = self.problems
        part = Scanner(self._plain, self._start, self._end, problems).run()
        shared = Dialects.of(part)
        operations = count_operations(part)
        line, _ = problems.lines.position(self._first(part))
        meshes = self.meshes
        functions: dict[str, Function] = {}
        declared: set[str] = set()
        cluster: tuple[int, ...] | None = None
        for operation, module in top_level(part.region, {}, shared):
            try:
                self._define(operation, module, shared, meshes, functions, declared)
            except HloSyntaxError as error:
                problems.error(error.code, error.message, operation.offset)
            cluster = cluster or _cluster(module)
            for name, text in _carried_meshes(module):
                meshes.setdefault(name, text)
        programs: tuple[MlirProgram, ...] = ()
        if not functions and not problems.errors:
            note = problems.error if self._alone else problems.warning
            note("mlir.no_function", "there is no function with a body", self._first(part),
                 "a program is a function such as func.func @main")  # fmt: skip
        self._top = list(problems.items)
        if not problems.errors and functions:
            checker = Checker(shared, meshes, problems)
            for one in functions.values():
                self._checked(checker, one)
            translator = Translator(shared, functions, meshes, problems, handler, frozenset(declared), cluster)
            translator.shardings.faulty = checker.faulty
            programs = tuple(self._program(translator, one, operations) for one in _roots(functions))
        everything = [*self._top, *(item for found in self._found.values() for item in found), *self._later]
        if not programs:
            programs = (MlirProgram(next(iter(functions), ""), None, self._report(everything)),)
        stated = tuple((name, meshes[name].text()) for name in self._own if name in meshes)
        return MlirPart(line, programs, self._report(everything), stated, operations)

    def _checked(self, checker: Checker, function: Function) -> None:
        """Find what breaks a rule of Shardy in a function: it can be read all the same."""
        problems = self.problems
        before, errors = len(problems.items), problems.errors
        checker.function(function)
        self._found[function.name] = problems.items[before:]
        problems.errors = errors

    def _first(self, part: Part) -> int:
        first = next(part.region.operations(), None)
        return first.offset if first is not None else self._start

    def _define(
        self,
        operation: Operation,
        module: dict[str, str],
        shared: Dialects,
        meshes: dict[str, SdyMesh],
        functions: dict[str, Function],
        declared: set[str],
    ) -> None:
        """Take in one operation at the top of a module."""
        if operation.name in ("sdy.mesh", "stablehlo.mesh"):
            view = View(operation, shared)
            text = view.attribute("mesh") if operation.generic else operation.segments[0]
            name = (view.attribute("sym_name") or "").strip('"') if operation.generic else view.symbol()
            if name in self._own:
                raise HloSyntaxError(f"mesh @{name} is defined twice", 0, "mlir.duplicate_symbol")
            self._own.append(name)
            mesh = parse_mesh((text or "")[(text or "").find("=") + 1 if not operation.generic else 0 :])
            fault = check_mesh(mesh)
            if fault is not None:
                raise HloSyntaxError(f"mesh @{name}: {fault.message}", 0, fault.code)
            meshes[name] = mesh
        elif is_function(operation):
            function = read_function(operation, module, shared)
            if function.name in functions:
                raise HloSyntaxError(f"function @{function.name} is defined twice", 0, "mlir.duplicate_symbol")
            function.calls = called(function)
            functions[function.name] = function
        elif operation.name in ("func.func", "func"):
            match = _DECLARED.search(operation.segments[0])
            declared.add(match.group(1).strip('"') if match is not None else "")
        else:
            message = f"operation {operation.name} outside of a function is not read"
            self.problems.warning("mlir.outside_function", message, operation.offset)

    def _program(self, translator: Translator, function: Function, operations: Counter[str]) -> MlirProgram:
        first = len(self.problems.items)
        program = self._lowered(translator, function, operations)
        mine = self.problems.items[first:]
        self._later += mine
        used = [*self._top, *mine]
        for name in _reachable(function, translator.functions):
            used += self._found[name]
        return MlirProgram(function.name, program, self._report(used))

    def _lowered(
        self, translator: Translator, function: Function, operations: Counter[str]
    ) -> DistributedTaskIR | None:
        problems = self.problems
        before = problems.errors
        try:
            translator.function(function.name)
        except Skip:
            return None
        analysed = assemble(translator, function, problems) if problems.errors == before else None
        if analysed is None:
            return None
        named = (function.module.get("sym_name") or "").strip('"')
        try:
            program = lower(
                analysed,
                name=named if named and function.name == "main" else function.name,
                digest=self._digest,
                form=form_of(analysed),
                lowering_type=MlirLowering,
                scope_type=MlirScope,
                attributes=facts(function, operations, translator.meshes),
            )
        except HloSyntaxError as error:
            problems.error(error.code, error.message, error.offset, "name fewer ranks")
            return None
        if analysed.count.inferred and analysed.count.devices.ranks > 1:
            self._note_count(analysed.count.devices.replicas, analysed.count.devices.partitions, function)
        return program

    def _note_count(self, replicas: int, partitions: int, function: Function) -> None:
        message = (
            f"@{function.name}: the module does not state {replicas} replicas and {partitions} partitions; they are "
            "inferred from the ids in groups, pairs and shardings"
        )
        self.problems.warning(
            "mlir.device_count_inferred", message, function.operation.offset, "state mhlo.num_partitions"
        )

    def _report(self, items: list[Problem]) -> DiagnosticSet:
        bag = DiagnosticBag()
        bag.extend(_diagnostic(item) for item in sorted(items, key=lambda one: (one.line, one.column)))
        if self.problems.omitted:
            bag.error("mlir.omitted", f"{self.problems.omitted} further problems are not listed",
                      hint="repair those above first")  # fmt: skip
        return DiagnosticSet(tuple(bag.report()))


def _reachable(function: Function, functions: Mapping[str, Function]) -> list[str]:
    """A function and what it calls, directly or not."""
    found: dict[str, None] = {}
    waiting = [function.name]
    while waiting:
        name = waiting.pop()
        if name in functions and name not in found:
            found[name] = None
            waiting += functions[name].calls
    return list(found)


def _roots(functions: dict[str, Function]) -> list[Function]:
    """Functions that nothing calls, ``main`` first; where all are called in a circle, the first one."""
    called_names = {name for function in functions.values() for name in function.calls if name != function.name}
    roots = [function for name, function in functions.items() if name not in called_names]
    if "main" in functions and functions["main"] not in roots:
        roots.append(functions["main"])
    roots = roots or list(functions.values())[:1]
    return sorted(roots, key=lambda function: function.name != "main")


def _carried_meshes(module: dict[str, str]) -> list[tuple[str, SdyMesh]]:
    """Meshes that XLA carries through passes as a string: ``xla.sdy.meshes = "{mesh = #sdy.mesh<...>}"``."""
    text = dict(frontend(module.get(FRONTEND))).get("xla.sdy.meshes")
    found: list[tuple[str, SdyMesh]] = []
    for name, mesh in entries(inside(text)).items() if text else ():
        try:
            found.append((name, parse_mesh(mesh.removeprefix("#sdy.mesh"))))
        except HloSyntaxError:
            continue
    return found


def _cluster(module: dict[str, str]) -> tuple[int, ...] | None:
    match = _CLUSTER.search(module.get("ttcore.meshes", ""))
    return tuple(int(size) for size in match.group(1).split("x")) if match is not None else None


def count_operations(part: Part) -> Counter[str]:
    """How often each operation occurs, by full name."""
    found: Counter[str] = Counter()
    for operation in walk(part.region):
        name = operation.name
        found[_FULL_NAMES.get(name, name)] += 1
        if name.endswith(".reduce") and not operation.regions and (match := _APPLIES.search(operation.segments[0])):
            found[match.group(1)] += 1
            found[f"{operation.dialect}.return"] += 1
    return found


def _diagnostic(problem: Problem) -> Diagnostic:
    severity = Severity.ERROR if problem.level is Level.ERROR else Severity.WARNING
    path = ("line", str(problem.line), "column", str(problem.column))
    return Diagnostic(problem.code, problem.message, path, severity, problem.hint)
