"""Every code that the source can report is explained, and nothing is explained that cannot be reported."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from importlib import import_module
from pathlib import Path

import pytest

from dtir.explain import CATALOGUES, catalogue, explain, similar_codes
from dtir.schema.catalogue import CODE, CodeEntry
from tests.helpers.shared import ROOT

REPORTERS = {"error", "warning", "info", "Diagnostic", "problem", "failure", "fail", "add"}
"""Functions whose text arguments are looked at, whatever family the code has."""

NOT_CODES = {"dtir.verify", "dtir.distributed-task"}


READERS = {"get", "attribute", "fact", "find_spec", "import_module"}
"""Functions whose text arguments are keys or module names."""


def _name(call: ast.Call) -> str:
    return call.func.attr if isinstance(call.func, ast.Attribute) else getattr(call.func, "id", "")


def _keys(tree: ast.Module) -> set[int]:
    """Text that is looked up: an argument of a reader, a subscript, the left side of ``in``."""
    found: list[ast.expr] = []
    for node in ast.walk(tree):
        match node:
            case ast.Call(args=arguments) if _name(node) in READERS:
                found += arguments
            case ast.Subscript(slice=index):
                found.append(index)
            case ast.Compare(left=left, ops=[ast.In() | ast.NotIn()]):
                found.append(left)
            case _:
                pass
    return {id(item) for item in found}


def emitted(tree: ast.Module, families: set[str]) -> Iterator[tuple[str, int]]:
    """Codes in a module: text in the form of a code that is given to a reporter, or whose family is known."""
    reported = {
        id(argument)
        for node in ast.walk(tree)
        if isinstance(node, ast.Call) and _name(node) in REPORTERS
        for argument in (*node.args[:2], *(word.value for word in node.keywords if word.arg == "code"))
    }
    keys = _keys(tree)
    for node in ast.walk(tree):
        if not (isinstance(node, ast.Constant) and isinstance(node.value, str) and CODE.fullmatch(node.value)):
            continue
        known = node.value.split(".")[0] in families and id(node) not in keys
        if (id(node) in reported or known) and node.value not in NOT_CODES:
            yield node.value, node.lineno


def sources() -> list[Path]:
    folders = [ROOT / "dtir", ROOT / "app"]
    return [path for folder in folders for path in sorted(folder.rglob("*.py")) if path.name != "codes.py"]


DIALECTS = {"hlo": ROOT / "dtir" / "importers" / "hlo"}
"""Families that are also dialects: elsewhere ``hlo.dot`` is an operation, here it is a code."""


def families_in(path: Path) -> set[str]:
    """The families of codes that are looked for in a file."""
    families = {code.split(".")[0] for code in catalogue()}
    return {name for name in families if name not in DIALECTS or DIALECTS[name] in path.parents}


def test_every_code_of_the_source_is_explained() -> None:
    missing = [
        f"{path.relative_to(ROOT)}:{line}: {code}"
        for path in sources()
        for code, line in emitted(ast.parse(path.read_text()), families_in(path))
        if code not in catalogue()
    ]
    assert not missing, "codes without an entry in a codes.py:\n" + "\n".join(missing)


@pytest.mark.parametrize(
    "source",
    [
        'bag.error("made.up", "no")',
        'Diagnostic("made.up", "no")',
        'Diagnostic(code="made.up", message="no")',
        'problem("made.up", "no", hint="x")',
        'code = "rank.unheard_of"',
        'raise failure("made.up", "no", hint="x")',
    ],
)
def test_a_code_without_an_entry_would_be_found(source: str) -> None:
    assert [code for code, _ in emitted(ast.parse(source), {"rank"})] in (["made.up"], ["rank.unheard_of"])


@pytest.mark.parametrize(
    "source",
    [
        'attributes.get("rank.key")',
        'x = facts["rank.key"]',
        '"rank.key" in attributes',
        'open("x.json")',
        'name = "numpy.float32"',
        'bag.error("plain", "no")',
        'f("made.up")',
    ],
)
def test_other_dotted_text_is_no_code(source: str) -> None:
    assert list(emitted(ast.parse(source), {"rank"})) == []


def test_every_explained_code_is_used() -> None:
    text = "\n".join(path.read_text() for path in sources())
    unused = [code for code in catalogue() if f'"{code}"' not in text]
    assert set(unused) <= UNREACHABLE


UNREACHABLE = {
    # Constructors refuse these first, as upstream's do; the codes stand for readers of upstream's reports.
    "collective.root",
    "task.body.unknown",
    "scalar.invalid",
    "scalar.nonfinite",
}


@pytest.mark.parametrize("name", CATALOGUES)
def test_every_listed_module_has_entries_of_its_own(name: str) -> None:
    assert all(isinstance(entry, CodeEntry) for entry in import_module(CATALOGUES[name]).CODES)


def test_a_bad_example_differs_from_the_good_one() -> None:
    assert [code for code, entry in catalogue().items() if entry.bad == entry.good] == []


def test_looking_up() -> None:
    entry = explain("rank.unknown")
    assert entry is not None
    assert entry.code == "rank.unknown"
    assert explain("rank.unknwon") is None
    assert similar_codes("rank.unknwon")[0] == "rank.unknown"
    assert set(similar_codes("rank.qqqqqqqqqqqqqqqqq")) <= {"rank.unknown", "rank.invalid"}
    assert similar_codes("zzz.qqq") == []


@pytest.mark.parametrize("bad", [{"code": "Rank"}, {"code": "rank"}, {"code": "rank.A"}, {"why": " "}, {"hint": ""}])
def test_an_entry_is_complete(bad: dict[str, str]) -> None:
    whole = {"code": "a.b", "why": "w", "bad": "b", "good": "g", "hint": "h"}
    CodeEntry(**whole)
    with pytest.raises(ValueError, match=r"dotted|empty"):
        CodeEntry(**{**whole, **bad})
