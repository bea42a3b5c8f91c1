"""YAML text to programs: authoring documents (``dtir-program/1``) and corpora of faulty programs (``dtir-bug-corpus/1``)."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from dtir.importers.yaml.document import Entries, Node, Scalar, read_documents
from dtir.importers.yaml.fields import Fields
from dtir.importers.yaml.problems import Problems
from dtir.importers.yaml.program import read_program
from dtir.importers.yaml.vocabulary import CORPUS_SCHEMA
from dtir.ir.program import DistributedTaskIR
from dtir.schema.diagnostics import DiagnosticSet


@dataclass(frozen=True, slots=True)
class ReadProgram:
    """One program of a file.

    Args:
        name: its name as far as the document tells one.
        program: None when it cannot be read.
        diagnostics: what was found in it.
    """

    name: str
    program: DistributedTaskIR | None
    diagnostics: DiagnosticSet


def read_programs(text: str, *, fixed: bool = False) -> tuple[ReadProgram, ...]:
    """Every program of a YAML text, in order; never empty: a text that cannot be read gives one entry with the reasons.

    Args:
        fixed: of a corpus, take the corrected variant of every entry.

    >>> read_programs("schema: dtir-program/1")[0].diagnostics.errors[0].message
    "line 1: key 'name' is missing"
    """
    problems = Problems()
    documents = read_documents(text, problems)
    faults = problems.by_document()
    found: list[ReadProgram] = []
    for index, node in enumerate(documents):
        wrong = faults.pop(index, DiagnosticSet())
        for name, part, path, entry in _parts(node, fixed):
            read = _read(name, part, path, index, entry)
            # What is wrong with the text of a document may concern any part of it.
            found.append(ReadProgram(name, read.program if wrong.ok else None, wrong.extend(read.diagnostics)))
    # A text that breaks off says nothing reliable about its last document, but the ones before it stand.
    found += [ReadProgram("", None, wrong) for wrong in faults.values()]
    return tuple(found) or (ReadProgram("", None, _nothing()),)


def _nothing() -> DiagnosticSet:
    problems = Problems()
    problems.error("yaml.missing_key", "the text holds no document", (), 0, "begin with schema: dtir-program/1")
    return problems.report()


def _parts(node: Node, fixed: bool) -> Iterator[tuple[str, Node, tuple[str, ...], bool]]:
    """Name, node and key path of every program of a document, and whether it is an entry of a corpus."""
    entries = node.entries if isinstance(node, Entries) else {}
    schema = entries.get("schema")
    if not isinstance(schema, Scalar) or schema.text != CORPUS_SCHEMA:
        yield _text(entries.get("name")), node, (), False
        return
    for index, entry in enumerate(Fields(Entries(entries, node.line), (), Problems()).items("entries") or []):
        path = ("entries", str(index))
        part = _corrected(entry) if fixed else entry
        yield _text(entry.entries.get("id") if isinstance(entry, Entries) else None), part, path, True


def _text(node: Node | None) -> str:
    return node.text if isinstance(node, Scalar) else ""


def _corrected(entry: Node) -> Node:
    """The entry with the keys of its ``fixed_variant`` in place of its own."""
    if not isinstance(entry, Entries):
        return entry
    variant = entry.entries.get("fixed_variant")
    if not isinstance(variant, Entries):
        return entry
    return Entries({**entry.entries, **variant.entries}, entry.line, {**entry.lines, **variant.lines})


def _read(name: str, node: Node, path: tuple[str, ...], document: int, entry: bool) -> ReadProgram:
    problems = Problems(document)
    program = read_program(node, problems, path=path, entry=entry)
    return ReadProgram(name, program, problems.report())
