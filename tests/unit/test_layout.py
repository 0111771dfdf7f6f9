"""The layout rules: imports go down, every registered name loads, every pass is documented."""

from __future__ import annotations

import ast
import re
import tomllib
from importlib import import_module
from pathlib import Path

import pytest

from compiler import pipeline, universe

ROOT = Path(__file__).parents[2] / "compiler"
ORDER = [
    "errors",
    "files",
    "printable",
    "command",
    "stated",
    "policies",
    "elements",
    "elementary",
    "scopes",
    "affine",
    "dialects",
    "program",
    "intrinsics",
    "te",
    "interpret",
    "analysis",
    "schedule",
    "passes",
    "lowering",
    "targets",
    "universe",
    "pipeline",
    "driver",
    "opt",
    "explain",
    "autotune",
    "cli",
    "__main__",
]
EXCEPTIONS = {
    ("lowering", "targets.machine"),  # the facts of a machine are data that emission reads
}


def imports_of(text: str) -> list[str]:
    """What a file imports of ours, wherever in it and under whatever condition, without `compiler.` in front."""
    found = []
    for node in ast.walk(ast.parse(text)):
        if isinstance(node, ast.ImportFrom) and node.module == "compiler":
            found += [f"compiler.{alias.name}" for alias in node.names]
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0 and node.module, "imports are absolute"
            found.append(node.module)
        elif isinstance(node, ast.Import):
            found += [alias.name for alias in node.names]
    return [name.removeprefix("compiler.") for name in found if name.startswith("compiler.")]


def upward(room: str, text: str) -> list[str]:
    """The imports of a file in a room that do not go down."""
    rank = ORDER.index(room)
    return [n for n in imports_of(text) if ORDER.index(n.split(".")[0]) > rank and (room, n) not in EXCEPTIONS]


@pytest.mark.parametrize("path", sorted(ROOT.rglob("*.py")), ids=lambda p: str(p.relative_to(ROOT)))
def test_imports_go_down(path: Path) -> None:
    room = path.relative_to(ROOT).parts[0].removesuffix(".py")
    if room == "__init__":
        return
    assert upward(room, path.read_text()) == []


@pytest.mark.parametrize(
    "text",
    [
        "from compiler.lowering.te_to_loop import TeToLoopPass",
        "from compiler import lowering",
        "import compiler.lowering",
        "def f():\n    from compiler import errors, lowering",
    ],
)
def test_an_upward_import_is_seen(text: str) -> None:
    assert len(upward("dialects", text)) == 1
    assert upward("targets", text) == []


STARTS = re.compile(r"subprocess|find_library|os\.(system|popen|exec|spawn|posix_spawn|fork)|shutil\.which")
STARTERS = {
    "autotune/measure/worker_process.py": "workers, which look for modules where their parent does",
}
"""The files that start processes, or look for programs, and what keeps those of the current folder out."""


def test_processes_are_started_in_known_places() -> None:
    found = {str(path.relative_to(ROOT)) for path in ROOT.rglob("*.py") if STARTS.search(path.read_text())}
    assert found == set(STARTERS)


def test_the_word_cuda_appears_in_targets_only() -> None:
    for path in ROOT.rglob("*.py"):
        assert "cuda" not in path.read_text() or "targets" in path.parts


@pytest.mark.parametrize("name", universe.DIALECTS | universe.UPSTREAM)
def test_dialects_load(name: str) -> None:
    assert universe.load((universe.DIALECTS | universe.UPSTREAM)[name]).name == name


@pytest.mark.parametrize("name", universe.our_passes())
def test_passes_load(name: str) -> None:
    found = universe.find_pass(name)
    assert found is not None
    assert found.name == name
    assert found.__doc__
    assert not found.__doc__.startswith(f"{found.__name__}("), "dataclass wrote this docstring"
    assert universe.our_passes()[name]


@pytest.mark.parametrize("name", pipeline.PIPELINES)
def test_pipelines_parse(name: str) -> None:
    assert [p.name for p in pipeline.parse_passes(name)] == pipeline.PIPELINES[name].split(",")


def test_the_stock_tool_finds_us() -> None:
    assert {kind().name for kind in universe.UNIVERSE.all_passes.values()} == set(universe.our_passes())
    assert {make().name for make in universe.UNIVERSE.all_dialects.values()} == set(universe.DIALECTS)


def test_the_package_says_its_version() -> None:
    project = tomllib.loads((ROOT.parent / "pyproject.toml").read_text())["project"]
    assert project["version"] == universe.VERSION
    module, _, name = project["entry-points"]["xdsl.universe"]["strata"].partition(":")
    assert getattr(import_module(module), name).all_passes
    for script in project["scripts"].values():
        assert callable(universe.load(script))


def test_docstring_examples_round_trip() -> None:
    """Every op of our dialects has an example, which parses, verifies, and prints to what it was parsed from."""
    from compiler.driver import parse

    for name in universe.DIALECTS:
        for op in universe.load(universe.DIALECTS[name]).operations:
            assert op.__doc__ and "```mlir" in op.__doc__, op.name
            text = op.__doc__.split("```mlir")[1].split("```")[0]
            module = parse(text)
            assert any(inner.name == op.name for inner in module.walk())
            assert str(parse(str(module))) == str(module)
