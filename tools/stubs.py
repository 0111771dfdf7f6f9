"""The types of `strata.X`, which type checkers cannot know from a finder: a stub for each module that users import,
`from compiler.X import *`."""

from __future__ import annotations

import re
from pathlib import Path

import strata

ROOT = Path(__file__).resolve().parent.parent
PACKAGE, COMPILER = ROOT / "strata", ROOT / "compiler"
PUBLIC = (
    "alternatives.law",
    "alternatives.program",
    "analysis.cost",
    "database.replay",
    "autotune.options",
    "autotune.search.supply",
    "space.candidates",
    "space.derivation",
    "autotune.task",
    "autotune.tell.facts",
    "dialects.functions",
    "driver",
    "errors",
    "frontends.torch",
    "graph.canonical",
    "graph.grouping",
    "graph.read",
    "graph.whole",
    "interpret.te",
    "driver.units.unit",
    "pipeline",
    "opt",
    "plugins",
    "program.tree",
    "recipes.rules",
    "schedule.parameters",
    "schedule.plan",
    "schedule.primitive",
    "schedule.primitives.split",
    "spans",
    "targets.c.kernel",
    "targets.cpu.presence",
    "targets.cuda",
    "targets.simt",
    "targets.target",
    "te",
    "types.machines",
)
"""The modules that users import; the packages that they are in have stubs as well."""


def stubs() -> dict[Path, str]:
    """The text of each stub."""
    every = {*PUBLIC, *(name[: dot.start()] for name in PUBLIC for dot in re.finditer(r"\.", name))}
    return {_place(name): _stub(name, every) for name in sorted(every)}


def _place(name: str) -> Path:
    path = PACKAGE.joinpath(*name.split("."))
    return path / "__init__.pyi" if COMPILER.joinpath(*name.split(".")).is_dir() else path.with_suffix(".pyi")


def _stub(name: str, every: set[str]) -> str:
    inside = sorted(module.rpartition(".")[2] for module in every if module.rpartition(".")[0] == name)
    submodules = [f"from strata.{name} import {module} as {module}\n" for module in inside]
    return "".join([f"from {strata.place_of(name)} import *\n", *submodules])
