"""What people read: links, the glossary, the core within its budget of lines, names that say what they hold."""

from __future__ import annotations

import re
from itertools import pairwise
from pathlib import Path

import pytest

from tools import doc_names, lines, vague

ROOT = Path(__file__).parents[3]
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
    assert broken_links(page, page.read_text("utf-8")) == []


def test_a_broken_link_is_seen() -> None:
    assert broken_links(README, "[a](docs/glossary.md#terms) [b](docs/none.md)") == ["docs/none.md"]


@pytest.mark.parametrize("page", doc_names.PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_names_in_backticks_are_there(page: Path) -> None:
    assert page.name in doc_names.LISTS or doc_names.faults(page.read_text("utf-8")) == []


@pytest.mark.parametrize(
    ("right", "wrong"),
    [
        ("compiler/te/nn/", "compiler/te/n/"),
        ("compiler/targets/NAME/", "compiler/NAME/target.pyx.py"),
        ("tree/nodes.py", "tree/knots.py"),
        ("strata.build(f)", "strata.bild(f)"),
        ("strata.recipes.rules", "strata.recipes.rulers"),
        ("te.nn.equal", "te.nn.equals"),
        ("Kernel.groups", "Kernel.grouped"),
        ("kernel.time(a, b)", "kernel.tempo(a, b)"),
        ("cover.covered", "cover.covers"),
        ("copies._before_reads", "cache.before_reads"),
        ("decompose_reduction._first_rounds", "reduce._first_rounds"),
        ("loop.for", "loop.four"),
        ("dot.i32.u8i8x4", "dot.i32.u8i8x5"),
        ("plan-buffers", "plan-buffer"),
        ("print_best", "print_worst"),
        ("TuningOptions", "TunerOptions"),
        ("STRATA_CACHE_DIR", "STRATA_CACHE_FOLDER"),
        ("strata db best FILE --names PROGRAM", "strata db worst FILE"),
        ("strata tune NAME --trials 8", "strata tune NAME --trails 8"),
        ("strata-opt -p te-to-loop", "strata-opt --lists"),
        ("make test-all", "make test-some"),
        ("python -m tests.fuzz.literals", "python -m tests.fuzz.letters"),
        ("--print-ir-after-all", "--print-ir-after-some"),
    ],
)
def test_a_name_that_nothing_has_is_seen(right: str, wrong: str) -> None:
    assert [fault.split("`")[1] for fault in doc_names.faults(f"A `{right}` and a `{wrong}`.")] == [wrong]


def test_blocks_of_the_shell_are_read() -> None:
    block = "```sh\n$ strata tune x \\\n  --trails 8\npip install x\n```\n"
    assert doc_names.faults(block) == ["`strata tune x --trails 8`: no option --trails of strata tune"]


def test_the_glossary_is_in_order() -> None:
    assert unordered_terms((ROOT / "docs" / "glossary.md").read_text("utf-8")) == []
    assert unordered_terms("| term |\n|--|\n| b | x |\n| a | x |\n\n## next\n| a | x |") == ["a"]


def test_the_core_is_read_in_a_weekend() -> None:
    paths, most = lines.core()
    assert {"te.py", "legal.py", "state.py", "split.py"} <= {path.name for path in paths}
    assert 0.9 * most < lines.count(paths) <= most
    every, most = lines.opened(paths)
    assert {"dense.py", "pack.py", "arith.py"} <= {path.name for path in every}
    assert 0.9 * most < lines.count(every) <= most


def test_a_path_without_files_is_seen() -> None:
    with pytest.raises(AssertionError):
        lines.files_of("| `compiler/nowhere/*.py` |")


def test_a_room_above_its_budget_is_seen(tmp_path: Path) -> None:
    (tmp_path / "compiler" / "te").mkdir(parents=True)
    (tmp_path / "compiler" / "te" / "a.py").write_text("1\n2\n")
    (tmp_path / "compiler" / "b.py").write_text("1\n")
    assert lines.rooms(tmp_path) == {"compiler": 1, "compiler/te": 2}
    assert list(lines.above(lines.rooms(tmp_path), {"compiler": 1, "compiler/te": 2})) == []
    assert list(lines.above(lines.rooms(tmp_path), {"compiler/te": 1, "docs": 1})) == [
        "compiler has no budget",
        "compiler/te has 2 lines, 1 more than its budget",
        "docs has a budget and no lines",
    ]


@pytest.mark.parametrize("folder", MOST_VAGUE)
def test_names_say_what_they_hold(folder: str) -> None:
    assert vague.share(path.read_text("utf-8") for path in (ROOT / folder).rglob("*.py")) < MOST_VAGUE[folder]


@pytest.mark.parametrize(
    "line",
    ["found = 1", "self.found = 1", "def f(found): ...", "for found in x: ...", "[found for found in x]", "found: int"],
)
def test_a_vague_name_is_seen(line: str) -> None:
    assert vague.share([line]) > 0
    assert vague.share([line.replace("found", "found_axis")]) == 0
