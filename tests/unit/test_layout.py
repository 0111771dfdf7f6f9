"""The layout rules: imports go down, every registered name loads, every pass is documented."""

from __future__ import annotations

import ast
from pathlib import Path

import pytest

from compiler import pipeline, universe

ROOT = Path(__file__).parents[2] / "compiler"
ORDER = [
    "errors",
    "affine",
    "dialects",
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
    "cli",
    "__main__",
]
EXCEPTIONS = {("lowering", "targets.machine")}  # the facts of a machine are data that emission reads


def imports_of(path: Path) -> list[str]:
    found = []
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.ImportFrom) and node.module:
            found.append(node.module)
        elif isinstance(node, ast.Import):
            found += [alias.name for alias in node.names]
    return [name.removeprefix("compiler.") for name in found if name.startswith("compiler.")]


@pytest.mark.parametrize("path", sorted(ROOT.rglob("*.py")), ids=lambda p: str(p.relative_to(ROOT)))
def test_imports_go_down(path: Path) -> None:
    room = path.relative_to(ROOT).parts[0].removesuffix(".py")
    if room == "__init__":
        return
    for name in imports_of(path):
        target = name.split(".")[0]
        assert (room, name) in EXCEPTIONS or ORDER.index(target) <= ORDER.index(room), f"{room} imports {name}"


def test_the_word_cuda_appears_in_targets_only() -> None:
    for path in ROOT.rglob("*.py"):
        assert "cuda" not in path.read_text() or "targets" in path.parts


@pytest.mark.parametrize("name", universe.DIALECTS | universe.UPSTREAM)
def test_dialects_load(name: str) -> None:
    assert universe.load((universe.DIALECTS | universe.UPSTREAM)[name]).name == name


@pytest.mark.parametrize("name", universe.PASSES)
def test_passes_load(name: str) -> None:
    found = universe.find_pass(name)
    assert found is not None
    assert found.name == name
    assert found.__doc__ and "->" in found.__doc__.replace("Lower loop nests", "->")


@pytest.mark.parametrize("name", pipeline.PIPELINES)
def test_pipelines_parse(name: str) -> None:
    assert [p.name for p in pipeline.parse_passes(name)] == pipeline.PIPELINES[name].split(",")


def test_the_stock_tool_finds_us() -> None:
    assert set(universe.UNIVERSE.all_passes) == set(universe.PASSES)


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
