"""Docs are executed: the README, the walk, and the pages of the primitives."""

from __future__ import annotations

import re
import shlex
from importlib import import_module
from pathlib import Path
from typing import Any

import pytest

from compiler.__main__ import main
from compiler.examples import FILES as EXAMPLES
from compiler.opt import main as strata_opt
from compiler.pipeline.source import parse
from compiler.schedule import Schedule, replay
from compiler.schedule.primitives import PRIMITIVES
from examples import primitives as examples
from examples import walk
from tests.scheduled import check, lacks
from tools import docs, document

ROOT = Path(__file__).parents[1]
README = (ROOT / "README.md").read_text("utf-8")
SHELL = "".join((ROOT / "docs" / name).read_text("utf-8") for name in ("shell.md", "schedules.md", "opt.md"))
ALONE = [path for path in (ROOT / "README.md", *sorted((ROOT / "docs").glob("*.md"))) if path not in document.PAGES]
"""Documents each of whose blocks stands alone."""


@pytest.fixture(autouse=True)
def _one_builder(monkeypatch: pytest.MonkeyPatch) -> None:
    """Tasks that pages tune take few trials, which one process builds."""
    monkeypatch.setattr("compiler.autotune.measure.local.cores", lambda: 1)


def python_blocks(path: Path) -> list[str]:
    return re.findall(r"^```python\n(.*?)^```", path.read_text("utf-8"), re.DOTALL | re.MULTILINE)


@pytest.mark.parametrize(
    ("path", "code"),
    [
        pytest.param(path, code, id=f"{path.stem}-{number}")
        for path in ALONE
        for number, code in enumerate(python_blocks(path))
    ],
)
def test_python(
    path: Path, code: str, capsys: pytest.CaptureFixture[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    if "from_onnx" in code:
        pytest.importorskip("onnx")
    if re.search(r"^(import|from) jax\b", code, re.MULTILINE):
        pytest.importorskip("jax")
    if re.search(r"^(import|from) torch\b", code, re.MULTILINE):
        pytest.importorskip("torch")
        import_module("compiler.torch_backend")  # as the entry point of an installed package would
    monkeypatch.chdir(tmp_path)  # some write a file
    monkeypatch.delenv("STRATA_SCHEDULE")
    exec(compile(code, path.name, "exec"), {})
    document.check_claims(code, capsys.readouterr().out)


@pytest.mark.parametrize("command", re.findall(r"^strata-opt (.*)$", SHELL, re.MULTILINE))
def test_commands(command: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    monkeypatch.chdir(ROOT)
    assert strata_opt(shlex.split(command)) == 0
    assert capsys.readouterr().out


def test_the_first_example_needs_the_plain_install() -> None:
    first = python_blocks(ROOT / "README.md")[0]
    assert "import strata" in first and not re.search(r"\b(torch|onnx|jax)\b", first)


def test_the_files_that_pages_use_come_with_the_package() -> None:
    """Commands and Python of a page name files of examples/ that `strata examples` writes, and no module of it."""
    for path in (ROOT / "README.md", *(ROOT / "docs").rglob("*.md")):
        shown = re.findall(r"^```(?:sh|console|python)\n(.*?)^```", path.read_text("utf-8"), re.DOTALL | re.MULTILINE)
        for block in [*shown, *re.findall(r"`(strata[^`\n]*)`", path.read_text("utf-8"))]:
            assert set(re.findall(r"\bexamples/(\w[\w./]*)", block)) <= EXAMPLES.keys(), path
            assert not re.search(r"^(from|import) (examples|tests|tools)\b", block, re.MULTILINE), path


def test_every_primitive_has_a_page() -> None:
    names = [primitive.name for primitive in docs.found()]
    assert {path.stem for path in docs.PAGES.glob("*.md")} == {*names, "README"}
    assert set(examples.PROGRAMS) == {*names, *(f"{name}_refused" for name in names)}
    assert len(set(names)) == len(names) >= 32


def test_every_op_of_a_script_is_on_a_page_or_in_the_index() -> None:
    from compiler.schedule.dialect import SCHED

    index = docs.index()
    for op in SCHED.operations:
        name = op.name.removeprefix("sched.")
        assert f"[{name}]" in index or f"`{name}`" in index


@pytest.mark.parametrize("primitive", docs.found(), ids=lambda p: p.name)
def test_pages_are_what_their_examples_give(primitive: docs.Primitive) -> None:
    assert docs.page(primitive) == (docs.PAGES / f"{primitive.name}.md").read_text("utf-8"), "run python tools/docs.py"


def test_the_index_is_up_to_date() -> None:
    assert docs.index() == (docs.PAGES / "README.md").read_text("utf-8"), "run python tools/docs.py"


@pytest.mark.parametrize("name", [p.name for p in docs.found()])
def test_examples_are_right(name: str) -> None:
    native = name != "bind" and (name != "tensorize" or lacks("dot.i32.u8i8x4") == "")
    check(examples.PROGRAMS[name](), getattr(examples, name), native)


def test_the_walk_shows_what_it_does_and_is_right() -> None:
    checked = []

    def after(step: document.Step, names: dict[str, Any]) -> None:
        schedule = names.get("s")
        if isinstance(schedule, Schedule):
            assert walk.right(names["f"], schedule), step.title
            assert str(replay(parse(str(schedule)), schedule).module) == str(schedule.module)
            checked.append(step.title)

    text = document.WALK.read_text("utf-8")
    assert document.refreshed(text, after) == text, "run python tools/docs.py"
    assert len(checked) >= 10


@pytest.mark.parametrize("path", [path for path in document.PAGES if path != document.WALK], ids=lambda path: path.stem)
def test_a_page_shows_what_it_does(path: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    text = path.read_text("utf-8")
    monkeypatch.chdir(tmp_path)  # some write a file
    assert document.refreshed(text) == text, "run python tools/docs.py"


RESULTS = (ROOT / "docs" / "results.md").read_text("utf-8")


def lacking_evidence(text: str) -> list[str]:
    """The sections of a page of results that have no command, no machine or no date."""
    sections = {part.partition("\n")[0]: part for part in re.split(r"^## ", text, flags=re.MULTILINE)[1:]}
    needed = (r"`(python -m|strata bench) ", r"\b2-vCPU\b", r"\b2026-\d\d-\d\d\b")
    return [title for title, part in sections.items() if not all(re.search(pattern, part) for pattern in needed)]


def test_each_result_says_how_where_and_when() -> None:
    assert lacking_evidence(RESULTS) == []
    assert lacking_evidence("## A\n`python -m benchmarks.x`, 2-vCPU\n") == ["A"]


def test_the_readme_is_short() -> None:
    """A page of what and why: the long version of each part is a page of docs/."""
    assert len(README.splitlines()) <= 150


def test_the_walk_as_a_table() -> None:
    actual = list(walk.rows())
    assert all(row.right and row.proved == "proved" for row in actual)
    assert sum(line.startswith("refused") for row in actual for line in row.said) >= 6


@pytest.mark.parametrize(
    "text",
    [
        "```python refused\nx = 1\n```\n",
        "```sh\nstrata-opt no_such_file.mlir\n```\n",
        "```python\nprint('measured', 1 == 2)\n```\n",
        "```python\nimport compiler\ncompiler.build(open('examples/mm_exp_mm.mlir').read())\n```\n",
        "```python\nassert 1 + 1 == 3\n```\n",
    ],
)
def test_a_document_that_is_wrong_is_seen(text: str) -> None:
    with pytest.raises(AssertionError):
        document.refreshed(text)


@pytest.mark.parametrize(
    ("code", "printed", "right"),
    [
        ("print(1)", "1", True),
        ("print(1)", "measured False", False),
        ("print(1)", "Falsework", True),
        ("kernel(a)", "", False),
        ("assert kernel(a)", "", True),
        ("s.verify()", "proved", False),
        ("y = compiler.build(f)(x)\nnp.testing.assert_allclose(y, x)", "", True),
        ("s.split(i, [None, 4])", "", True),
    ],
)
def test_what_a_block_claims_it_asserts(code: str, printed: str, right: bool) -> None:
    if right:
        document.check_claims(code, printed)
    else:
        with pytest.raises(AssertionError, match="the block"):
            document.check_claims(code, printed)


def test_outputs_are_refreshed() -> None:
    stale = "```python\nprint(1 + 1)\n```\n\n```text\n3\n```\n\nmore\n\n```python\nx = 1\n```\n"
    assert document.refreshed(stale) == stale.replace("3", "2")


@pytest.mark.parametrize("name", [p.name for p in docs.found()])
def test_the_pass_on_a_page_has_these_options(name: str) -> None:
    from compiler.pipeline.parser import parse_passes

    shown = re.search(r"\*\*Shell\*\* `strata-opt -p '(.*)'`", (docs.PAGES / f"{name}.md").read_text("utf-8"))
    if shown is None:
        assert name in ("multiple", "product") or name.startswith("sample_")
    else:
        (entry,) = parse_passes(shown[1])
        assert entry.name == PRIMITIVES[name].pass_name


def test_the_gpu_page_shows_what_it_does(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    page = (ROOT / "docs/gpu.md").read_text("utf-8")
    monkeypatch.chdir(ROOT)
    assert main(["check", "examples/gpu_matmul.mlir"]) == 0
    assert f"```\n{capsys.readouterr().out}```" in page


@pytest.mark.doors
def test_the_list_of_onnxs_operators_is_up_to_date() -> None:
    assert docs.onnx_operators() == (docs.DOCS / "onnx_operators.md").read_text("utf-8"), "run python tools/docs.py"


def test_the_list_of_torchs_operators_is_up_to_date() -> None:
    assert docs.torch_operators() == (docs.DOCS / "torch_operators.md").read_text("utf-8"), "run python tools/docs.py"
