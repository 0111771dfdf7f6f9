"""The site: its menu has every page, the API reference every public name, and MkDocs builds it without a warning."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import pytest

import strata
from compiler import te
from tools import docs, pages, reference

ROOT = Path(__file__).parents[3]


def test_the_menu_has_every_page() -> None:
    menu = set(re.findall(r"^ *- (?:[^\n]*: )?(\S+\.md)$", (ROOT / "mkdocs.yml").read_text("utf-8"), re.MULTILINE))
    written = {"index.md", *(f"api/{name}.md" for name in reference.PAGES)}
    assert menu == written | {str(path.relative_to(ROOT / "docs")) for path in (ROOT / "docs").rglob("*.md")}


@pytest.mark.doors
def test_the_reference_has_every_public_name() -> None:
    pytest.importorskip("torch", reason="names of its front end are on the page")
    texts = {name: page.text() for name, page in reference.PAGES.items()}
    operators = {name for names in reference.operators().values() for name in names}
    assert len(operators) > 150 and "conv2d" in operators
    assert {name for name in operators if f"### {name}\n" not in texts["nn"]} == set()
    assert {name for name in te.__all__ if name != "nn" and f"## {name}\n" not in texts["te"]} == set()
    every = "".join(texts.values())
    assert {n for n in strata.__all__ if n not in ("te", "__version__") and f"# {n}\n" not in every} == set()


@pytest.mark.doors
def test_the_list_of_the_api_is_up_to_date() -> None:
    pytest.importorskip("torch", reason="names of its front end are on the page")
    assert reference.listing() == (ROOT / "docs" / "api.md").read_text("utf-8"), "run python tools/docs.py"


@pytest.mark.doors
def test_constants_are_listed_with_their_types_and_docstrings() -> None:
    pytest.importorskip("torch", reason="names of its front end are on the page")
    text = reference.listing()
    undescribed = re.findall(r"^- `(\w+)` \(\w+\)$", text, re.MULTILINE)
    assert undescribed == [] and "- `LOOP` (HandleParameter): A loop; in a pass, one around its block.\n" in text
    assert re.search(r"^- `loop`, a module: .* It has `AllocOp`, `BlockOp`", text, re.MULTILINE)


def test_the_types_of_methods_are_up_to_date() -> None:
    assert docs.stub() == docs.STUB.read_text("utf-8"), "run python tools/docs.py"


def test_a_property_is_no_call() -> None:
    page = reference.PAGES["schedule"].text()
    assert "\nSchedule.program: Program\n" in page and "\nSchedule.verify() -> Verdict\n" in page


def test_a_docstring_becomes_markdown() -> None:
    shown = reference.prose("Y[i*s] of `a*b`.\n\n    loop.for\n      S\n\nThen.")
    assert shown == "Y\\[i\\*s\\] of `a*b`.\n\n```text\nloop.for\n  S\n```\n\nThen."
    assert reference.prose("Sum.\n\n>>> f([1])\n1") == "Sum.\n\n```pycon\n>>> f([1])\n1\n```"


def test_links_out_of_the_pages_become_text() -> None:
    text = "[a](../examples/x.py) [b](../README.md#c) [d](gpu.md) [x.py](../examples/x.py)"
    assert pages.inside(text, ROOT / "docs") == "a [b](index.md#c) [d](gpu.md) `examples/x.py`"
    assert pages.inside(pages.home("[e](SECURITY.md) [f](docs/gpu.md)"), ROOT / "docs").endswith("\ne [f](gpu.md)")
    assert pages.inside("[d](../gpu.md)", ROOT / "docs" / "walks") == "[d](../gpu.md)"


def test_mkdocs_builds_the_site(tmp_path: Path) -> None:
    pytest.importorskip("mkdocs", reason="the extra docs is not installed")
    pytest.importorskip("material", reason="the extra docs is not installed")
    command = [sys.executable, "-m", "mkdocs", "build", "--strict", "-d", str(tmp_path)]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    assert "conv2d" in (tmp_path / "api" / "nn.html").read_text("utf-8")
