"""The public API of Strata. Its modules import what is in `compiler`; docs/api.md says what is stable.

te            the language of tensor expressions, and the operators of `nn`
schedule      schedules, scripts, and the declaration of primitives
recipes       schedules by family, and the rules of the search space
autotune      tuning: tasks, options, facts, search spaces
database      records on disk
targets       targets, kernels, facts of machines
intrinsics    instructions that nests are matched with
passes        text to IR, and pipelines of passes
dialects      te, loop and sched
program       the tree of a loop function
graph         te functions as graphs: canonical form, groups
alternatives  laws that are choices
analysis      proofs, costs, orders of loops
interpret     interpreters of te functions and loops
driver        builds by the caller's plan
frontends     torch, ONNX and JAX
plugins       parts of other packages
errors        the errors that a caller can cause
examples      files of example programs
bench         measurements in turns
opt           `strata-opt` as a function
"""

from __future__ import annotations

import sys
from importlib import import_module
from typing import TYPE_CHECKING, Any

from strata._former_paths import FormerPaths

if TYPE_CHECKING:
    from compiler import __version__ as __version__
    from compiler import build, from_jax, from_onnx, from_torch, lower
    from compiler.autotune.options import TuningOptions
    from compiler.autotune.task import SearchTask
    from compiler.autotune.workloads import workload
    from compiler.driver.exporting import export
    from compiler.pipeline.verify import verify
    from compiler.schedule import Schedule
    from compiler.targets.cpu import Kernel
    from compiler.targets.cpu.library import load
    from compiler.targets.target import Target
    from compiler.types.machines import Machine
    from strata import te

_NAMES = {
    "Kernel": "compiler.targets.cpu",
    "Machine": "compiler.types.machines",
    "Schedule": "compiler.schedule",
    "SearchTask": "compiler.autotune.task",
    "Target": "compiler.targets.target",
    "TuningOptions": "compiler.autotune.options",
    "__version__": "compiler",
    "build": "compiler",
    "export": "compiler.driver.exporting",
    "from_jax": "compiler",
    "from_onnx": "compiler",
    "from_torch": "compiler",
    "load": "compiler.targets.cpu.library",
    "lower": "compiler",
    "verify": "compiler.pipeline.verify",
    "workload": "compiler.autotune.workloads",
}
"""The module of each name of the package, which is imported when the name is first used."""

MODULES = (
    "te", "schedule", "recipes", "autotune", "database", "targets", "intrinsics", "passes", "dialects", "program",
    "graph", "alternatives", "analysis", "interpret", "driver", "frontends", "plugins", "errors", "examples", "bench",
    "opt",
)  # fmt: skip
"""The modules of the API."""

_ELSEWHERE = {
    "compile": 'strata.build compiles; torch.compile(model, backend="strata") is there for torch',
    "create_schedule": "strata.Schedule(function) begins a schedule",
    "library": "strata.recipes has the composites",
    "nn": "strata.te.nn has the operators",
    "outline": "strata.schedule.outline",
    "ScheduleError": "strata.errors.ScheduleError",
    "tune": "strata.SearchTask(program).tune(strata.TuningOptions(trials=64))",
}
"""Names that users of other compilers try, each with its equivalent."""

__all__ = [
    "Kernel",
    "Machine",
    "Schedule",
    "SearchTask",
    "Target",
    "TuningOptions",
    "__version__",
    "build",
    "export",
    "from_jax",
    "from_onnx",
    "from_torch",
    "load",
    "lower",
    "te",
    "verify",
    "workload",
]

sys.meta_path.insert(0, FormerPaths())  # before the finder of files, which would make plain modules of the API's


def __getattr__(name: str) -> Any:
    if name in _NAMES:
        return getattr(import_module(_NAMES[name]), name)
    if name in MODULES:
        return import_module(f"{__name__}.{name}")
    hint = f": {_ELSEWHERE[name]}" if name in _ELSEWHERE else ""
    raise AttributeError(f"module '{__name__}' has no attribute '{name}'{hint}")


def __dir__() -> list[str]:
    return sorted({*__all__, *MODULES})
