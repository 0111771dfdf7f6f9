"""What people read: links, the glossary, the core within its budget of lines, names that say what they hold."""

from __future__ import annotations

import re
from itertools import pairwise
from pathlib import Path

import pytest

from tools import vague

ROOT = Path(__file__).parents[2]
PAGES = [*sorted(ROOT.glob("*.md")), *sorted((ROOT / "docs").rglob("*.md"))]
README = ROOT / "README.md"
MOST_VAGUE = dict.fromkeys(("compiler", "tools", "benchmarks", "tests"), 0.01)
"""The largest share of the assigned names of a folder that may be vague."""


def broken_links(page: Path, text: str) -> list[str]:
    """The relative links of a page to files that do not exist."""
    links = re.findall(r"\]\(([^)#:\s]+)(?:#[^)]*)?\)", text)
    return [link for link in links if not (page.parent / link).exists()]


def unordered_terms(text: str) -> list[str]:
    """The terms of a glossary that do not stand in alphabetical order in their table."""
    tables = [re.findall(r"^\| (?!term |--)([^|]+?) \|", part, re.MULTILINE) for part in text.split("\n## ")]
    return [term for terms in tables for before, term in pairwise(terms) if before >= term]


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_links_lead_to_files(page: Path) -> None:
    assert broken_links(page, page.read_text()) == []


def test_a_broken_link_is_seen() -> None:
    assert broken_links(README, "[a](docs/glossary.md#terms) [b](docs/none.md)") == ["docs/none.md"]


def test_the_glossary_is_in_order() -> None:
    assert unordered_terms((ROOT / "docs" / "glossary.md").read_text()) == []
    assert unordered_terms("| term |\n|--|\n| b | x |\n| a | x |\n\n## next\n| a | x |") == ["a"]


def files_of(table: str) -> list[Path]:
    """The files that the paths of a table name. Raises AssertionError for a path without a file."""
    matches = {glob: sorted(ROOT.glob(glob)) for glob in re.findall(r"`(compiler/[^`]+)`", table)}
    assert [glob for glob, paths in matches.items() if not paths] == []
    return [path for paths in matches.values() for path in paths]


def core() -> tuple[list[Path], int]:
    """The files of the core, by the page that says how to read it, and the most lines that it allows."""
    text = (ROOT / "docs" / "reading.md").read_text()
    most = re.search(r"at\s+most ([\d,]+) lines", text)
    _, read, leave_out, *_ = re.split(r"(?=^\| \| read|^\| leave out|^## )", text, flags=re.MULTILINE)
    assert most is not None
    return sorted({*files_of(read)} - {*files_of(leave_out)}), int(most[1].replace(",", ""))


def test_the_core_is_read_in_a_weekend() -> None:
    paths, most = core()
    assert {"te.py", "legal.py", "state.py", "split.py"} <= {path.name for path in paths}
    assert 0.9 * most < sum(len(path.read_text().splitlines()) for path in paths) <= most


def test_a_path_without_files_is_seen() -> None:
    with pytest.raises(AssertionError):
        files_of("| `compiler/nowhere/*.py` |")


@pytest.mark.parametrize("folder", MOST_VAGUE)
def test_names_say_what_they_hold(folder: str) -> None:
    assert vague.share(path.read_text() for path in (ROOT / folder).rglob("*.py")) < MOST_VAGUE[folder]


@pytest.mark.parametrize(
    "line",
    ["found = 1", "self.found = 1", "def f(found): ...", "for found in x: ...", "[found for found in x]", "found: int"],
)
def test_a_vague_name_is_seen(line: str) -> None:
    assert vague.share([line]) > 0
    assert vague.share([line.replace("found", "found_axis")]) == 0
