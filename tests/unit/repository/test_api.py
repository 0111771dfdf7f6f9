"""The public API: its names have docstrings, and docs, examples, plugins and recipes import nothing else."""

from __future__ import annotations

import ast
import doctest
import inspect
import re
import sys
from collections.abc import Iterator
from functools import cache
from importlib import import_module
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np
import pytest

import strata
from compiler import recipes
from tools import operator_examples, recipe_examples

ROOT = Path(__file__).parents[3]
API = {"strata": strata} | {f"strata.{name}": import_module(f"strata.{name}") for name in strata.MODULES}
COMMANDS = ("strata.__main__", "main")
EXTENDED = ("compiler.support.plugins", "Extended")
"""The sequence by which the table of rules takes in those of plugins."""

FOREIGN = {"strata.schedule.Handle": "a class of xDSL", "strata.targets.Array": "a class of numpy"}
"""The names whose docstrings are another package's."""
WITHOUT = FOREIGN | {
    "strata.autotune.RunFacts": "made by a tuning run",
    "strata.bench.measure": "its samples depend on the machine",
    "strata.database.Record": "made by a tuning run",
    "strata.database.replay": "takes a record",
    "strata.frontends.Report": "made by `explain`",
    "strata.frontends.explain": "compiles with torch, times, and runs the model five times",
    "strata.intrinsics.fit": "takes the nest of a tensorize step",
}
"""The names without an example, each with the reason."""
NEEDS = {
    "strata.frontends.from_jax": ("jax",),
    "strata.from_jax": ("jax",),
    "strata.from_onnx": ("onnx",),
    "strata.from_torch": ("torch",),
    "strata.frontends.from_onnx": ("onnx",),
    "strata.frontends.from_torch": ("torch",),
}
"""The packages that examples import, by name."""


def described() -> dict[str, object]:
    """The functions and classes of the API by their names."""
    values = {f"{module}.{name}": getattr(API[module], name) for module in API for name in API[module].__all__}
    return {name: v for name, v in values.items() if inspect.isclass(v) or inspect.isroutine(v)}


@cache
def examples() -> dict[str, list[doctest.DocTest]]:
    """The examples in the docstrings of the API's names and of te.nn's operators, those of a class with its methods."""
    names = {"np": np, "strata": strata, **{name: getattr(strata, name) for name in strata.__all__}}
    values = described() | {f"strata.te.nn.{name}": getattr(strata.te.nn, name) for name in strata.te.nn.__all__}
    found = {name: list(_examples(value, names)) for name, value in values.items() if name not in FOREIGN}
    return {name: tests for name, tests in found.items() if tests}


def _examples(value: object, names: dict[str, Any]) -> Iterator[doctest.DocTest]:
    bases = inspect.getmro(value) if inspect.isclass(value) else ()
    for part in [base for base in bases if base.__module__.startswith("compiler")] or [value]:
        tests = doctest.DocTestFinder().find(part, name=getattr(part, "__name__", ""), globs=dict(names))
        yield from (test for test in tests if test.examples)


def blocks() -> Iterator[tuple[str, str]]:
    """The Python code of docs and examples, each with its file."""
    pages = [ROOT / "README.md", *(ROOT / "docs").rglob("*.md")]
    for page in pages:
        for code in re.findall(r"^```python\n(.*?)^```", page.read_text("utf-8"), re.DOTALL | re.MULTILINE):
            yield str(page.relative_to(ROOT)), code
    for file in (ROOT / "examples").rglob("*.py"):
        yield str(file.relative_to(ROOT)), file.read_text("utf-8")


def imports(code: str) -> Iterator[tuple[str, str]]:
    """The imports of a text and of programs in its string literals: (module, name), or (module, "")."""
    for node in ast.walk(ast.parse(code)):
        if isinstance(node, ast.ImportFrom):
            yield from ((node.module or "", alias.name) for alias in node.names)
        elif isinstance(node, ast.Import):
            yield from ((alias.name, "") for alias in node.names)
        elif isinstance(node, ast.Constant) and isinstance(node.value, str) and "import" in node.value:
            try:
                yield from imports(node.value.strip())
            except SyntaxError:
                continue


def internal(code: str) -> set[tuple[str, str]]:
    """The imports of a text that are from the compiler and not in the API."""
    ours = {(m, n) for m, n in imports(code) if m.partition(".")[0] in ("strata", "compiler") and (m, n) != COMMANDS}
    return {
        (m, n) for m, n in ours if m not in API or (n and n not in (*API[m].__all__, *vars(API[m]).get("MODULES", ())))
    }


@pytest.mark.parametrize("module", API)
def test_each_module_has_its_names_sorted(module: str) -> None:
    public = API[module].__all__
    assert len(set(public)) == len(public) and all(hasattr(API[module], name) for name in public)
    assert str(API[module].__doc__).strip()


@pytest.mark.parametrize("name", sorted(described()))
def test_each_name_has_a_docstring(name: str) -> None:
    value = described()[name]
    doc = str(value.__doc__ or "")
    assert doc.strip() and not doc.startswith(f"{name.rpartition('.')[2]}("), name  # a dataclass's is its signature


def test_docs_and_examples_import_the_api_alone() -> None:
    faults = {(file, *name) for file, code in blocks() for name in internal(code)}
    assert faults == set()
    assert sum(1 for _ in blocks()) > 150


@pytest.mark.parametrize(
    "code",
    [
        "from compiler.schedule import Schedule",
        "import compiler.te",
        "import strata.schedule.plan",
        "from strata.schedule import Recorder",
        "from strata import space",
        "text = 'from strata.graph.tree import Compute'",
    ],
)
def test_another_import_is_seen(code: str) -> None:
    assert len(internal(code)) == 1


def public() -> set[tuple[str, int]]:
    """The names of the API with the identities of their values, also those of modules in it: loop.ForOp, warp.ROWS."""
    modules = [(module, module.__all__) for module in API.values()]
    values = [value for module in API.values() for value in map(vars(module).get, module.__all__)]
    modules += [(value, [*vars(value)]) for value in values if isinstance(value, ModuleType)]
    return {(name, id(getattr(module, name))) for module, names in modules for name in names if name[0] != "_"}


def foreign(code: str) -> set[tuple[str, str]]:
    """The names that a recipe imports and that are neither of the API nor public ones of another recipe."""
    ours = {(m, n) for m, n in imports(code) if m.startswith("compiler") and (m, n) != EXTENDED}
    others = {(m, n) for m, n in ours if not m.startswith("compiler.recipes") or n.startswith("_")}
    return {(m, n) for m, n in others if not n or (n, id(getattr(import_module(m), n))) not in public()}


def test_recipes_import_names_of_the_api_alone() -> None:
    room = Path(recipes.__file__).parent
    faults = {
        (str(file.relative_to(room)), *name) for file in room.rglob("*.py") for name in foreign(file.read_text("utf-8"))
    }
    assert faults == set()


@pytest.mark.parametrize(
    "code",
    [
        "from compiler.space.sketch import Sketch",
        "from compiler.recipes.rules import _CPU_RULES",
        "import compiler.schedule.plan",
        "def f():\n    from compiler.schedule.recorder import Recorder",
    ],
)
def test_another_import_of_a_recipe_is_seen(code: str) -> None:
    assert len(foreign(code)) == 1


@pytest.mark.parametrize("name", sorted(examples()))
def test_the_example_of_a_docstring_runs(name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)  # some write a file
    for package in NEEDS.get(name, ()):
        pytest.importorskip(package)
    assert [fault for test in examples()[name] for fault in faults(test)] == []


@pytest.mark.parametrize("name", strata.te.nn.__all__)
def test_the_example_of_an_operator_runs(name: str) -> None:
    text = operator_examples.example(name)
    test = doctest.DocTestParser().get_doctest(f"{text}\n", {"te": strata.te}, name, None, None)
    assert f">>> te.nn.{name}(" in text and faults(test) == []


@pytest.mark.sampled
@pytest.mark.parametrize("name", recipes.__all__)
def test_the_example_of_a_recipe_runs(name: str) -> None:
    text = recipe_examples.example(name)
    names = {"recipes": recipes, "Schedule": strata.Schedule, "strata": strata, "te": strata.te}
    assert faults(doctest.DocTestParser().get_doctest(f"{text}\n", names, name, None, None)) == []


def faults(test: doctest.DocTest) -> list[str]:
    """What an example prints instead of what stands there."""
    texts: list[str] = []
    doctest.DocTestRunner(verbose=False).run(test, out=texts.append)
    return texts


@pytest.mark.parametrize("name", sorted({*described()} - {*WITHOUT}))
def test_each_name_has_an_example(name: str) -> None:
    assert name in examples() or recipe_examples.example(name.removeprefix("strata.recipes.")), name


@pytest.mark.doors
def test_names_without_an_example_are_names_of_the_api_and_have_none() -> None:
    pytest.importorskip("torch", reason="names of its front end are among them")
    assert {*WITHOUT} <= {*described()} - {*examples()}


def test_former_paths_warn() -> None:
    with pytest.warns(DeprecationWarning, match=r"strata\.space\.sketch is internal .* compiler\.space\.sketch"):
        module = import_module("strata.space.sketch")
    assert module is sys.modules["compiler.space.sketch"] and module.__spec__.name == "compiler.space.sketch"


def test_a_name_of_the_api_hides_the_module_of_that_name() -> None:
    with pytest.raises(ModuleNotFoundError):
        import_module("strata.te.function")
    assert not isinstance(strata.te.function, ModuleType)
