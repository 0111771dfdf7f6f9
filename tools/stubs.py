"""The types of `strata.X`, which type checkers cannot know from a finder: a stub for each module that the documents
name, `from compiler.X import *`."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
PACKAGE, COMPILER = ROOT / "strata", ROOT / "compiler"
IMPORT = re.compile(r"^ *(?:from strata([\w.]*) import ([\w, ]+)|import strata([\w.]*))", re.MULTILINE)
"""An import, and its names."""
ALWAYS = ("autotune", "driver", "errors", "frontends", "interpret", "schedule", "targets", "te")
"""Modules that have a stub whatever the documents say."""


def imported(text: str) -> Iterator[str]:
    """The modules of the compiler that a text imports by the package's name, as `schedule.library`."""
    for match in IMPORT.finditer(text):
        module = (match[1] or match[3] or "").strip(".")
        names = re.findall(r"\w+", match[2] or "")
        yield from (
            module_name
            for module_name in (module, *(f"{module}.{name}".strip(".") for name in names))
            if _is_module(module_name)
        )


def _is_module(name: str) -> bool:
    path = COMPILER.joinpath(*name.split("."))
    return bool(name) and (path.is_dir() or path.with_suffix(".py").is_file())


def modules() -> set[str]:
    """The modules that have a stub: what the documents and examples import, and the packages that those are in."""
    pages = [ROOT / "README.md", *(ROOT / "docs").rglob("*.md"), *(ROOT / "examples").rglob("*.py")]
    named = {name for page in pages for name in imported(page.read_text())} | set(ALWAYS)
    return named | {name[: dot.start()] for name in named for dot in re.finditer(r"\.", name)}


def stubs() -> dict[Path, str]:
    """The text of each stub."""
    every = modules()
    return {_place(name): _stub(name, every) for name in sorted(every)}


def _place(name: str) -> Path:
    path = PACKAGE.joinpath(*name.split("."))
    return path / "__init__.pyi" if COMPILER.joinpath(*name.split(".")).is_dir() else path.with_suffix(".pyi")


def _stub(name: str, every: set[str]) -> str:
    inside = sorted(module.rpartition(".")[2] for module in every if module.rpartition(".")[0] == name)
    submodules = [f"from strata.{name} import {module} as {module}\n" for module in inside]
    return "".join([f"from compiler.{name} import *\n", *submodules])
