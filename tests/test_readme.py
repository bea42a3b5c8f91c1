"""What the README shows is true: its commands run, its two lines of set-up are those that CI runs, its links lead somewhere."""

from __future__ import annotations

import re
import shlex
import shutil
from pathlib import Path

import pytest

from dtir.cli.arguments import COMMANDS
from tests.helpers.cli import runner
from tests.helpers.shared import ROOT

README = (ROOT / "README.md").read_text(encoding="utf-8")
FIRST_SCREEN = README.split("\n## ", 1)[0]
BLOCKS = re.findall(r"^```(\w+)\n(.*?)^```$", README, re.MULTILINE | re.DOTALL)


def blocks(language: str) -> list[str]:
    return [text for name, text in BLOCKS if name == language]


@pytest.fixture
def checkout(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder with the repository's assets, where commands may write."""
    shutil.copytree(ROOT / "assets", tmp_path / "assets")
    monkeypatch.chdir(tmp_path)
    return tmp_path


@pytest.mark.usefixtures("checkout")
@pytest.mark.parametrize(
    "line", [line[2:] for text in blocks("console") for line in text.splitlines() if line.startswith("$ ")]
)
def test_commands_run(line: str, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    wanted = re.search(r"# exit (\d)", line)
    program, *argv = shlex.split(line, comments=True)
    assert program == "dtir"
    done = runner(capsys, monkeypatch)(*argv)
    assert (done.code, done.err) == (int(wanted[1]) if wanted else 0, "")
    assert done.out


@pytest.mark.usefixtures("checkout")
@pytest.mark.parametrize("code", blocks("python"))
def test_python_runs(code: str, capsys: pytest.CaptureFixture[str]) -> None:
    exec(compile(code, "README.md", "exec"), {"__name__": "readme"})  # noqa: S102
    if "print(" in code:
        assert "all_reduce" in capsys.readouterr().out


def test_the_first_screen_is_one_sentence_a_picture_and_two_commands() -> None:
    title, sentence, picture = FIRST_SCREEN.split("\n\n")[:3]
    assert title == "# dtir"
    assert sentence.count(".") == 1
    assert sentence.endswith(".")
    assert picture.startswith("![")
    assert re.findall(r"^```sh\n(.*?)\n```$", FIRST_SCREEN, re.MULTILINE | re.DOTALL) == [
        "pip install -e '.[app]' && dtir explore",
        "pip install -e '.[test]' && pytest",
    ]
    assert len(FIRST_SCREEN.splitlines()) <= 30


def test_ci_runs_the_test_command() -> None:
    script = (ROOT / ".ci" / "run").read_text()
    position = 0
    for part in ["pip install -e '.[test]'", "pytest"]:
        position = script.index(f"\n{part}", position)


def test_every_command_is_in_the_table() -> None:
    assert set(re.findall(r"^\| `dtir (\w+)", README, re.MULTILINE)) == set(COMMANDS)


def test_links_lead_somewhere() -> None:
    links = re.findall(r"\]\(([^)]+)\)", README)
    assert links
    missing = [link for link in links if "://" not in link and not (ROOT / link).exists()]
    assert missing == []


def test_paths_that_are_named_exist() -> None:
    named = set(re.findall(r"`((?:dtir|app|assets|tests|benchmarks)/[\w./]+)`", README))
    assert named
    assert [path for path in sorted(named) if not (ROOT / path).exists()] == []
