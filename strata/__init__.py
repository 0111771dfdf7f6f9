"""Strata by its own name: `strata.X` is `compiler.X`, the same module, for every X.

from strata import te, build
from strata.schedule import Schedule
"""

from __future__ import annotations

import sys
from collections.abc import Sequence
from importlib import import_module
from importlib.abc import Loader, MetaPathFinder
from importlib.machinery import ModuleSpec
from importlib.util import find_spec
from types import ModuleType
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from compiler import build as build
    from compiler import from_onnx as from_onnx
    from compiler import from_torch as from_torch
    from compiler import lower as lower
    from compiler import te as te
    from compiler.autotune.options import TuningOptions as TuningOptions
    from compiler.autotune.task import SearchTask as SearchTask
    from compiler.autotune.workloads import workload as workload
    from compiler.schedule import Schedule as Schedule

_NAMES = {
    "build": "compiler",
    "from_onnx": "compiler",
    "from_torch": "compiler",
    "lower": "compiler",
    "Schedule": "compiler.schedule",
    "SearchTask": "compiler.autotune.task",
    "TuningOptions": "compiler.autotune.options",
    "workload": "compiler.autotune.workloads",
}
"""Where the names of the package are from."""

_PLACES = {"errors": "support.errors", "plugins": "support.plugins", "spans": "support.spans"}
"""The modules that users import of a room that is not theirs to know."""

_ELSEWHERE = {
    "compile": 'strata.build compiles; torch.compile(model, backend="strata") is there for torch',
    "create_schedule": "strata.Schedule(function) begins a schedule",
    "Kernel": "strata.targets.cpu.Kernel; strata.build makes one",
    "library": "strata.recipes has the composites",
    "Machine": "strata.types.machines.Machine",
    "outline": "strata.schedule.outline",
    "ScheduleError": "strata.errors.ScheduleError",
    "Target": 'a target is its name, as in strata.build(f, target="cuda")',
    "tune": "strata.SearchTask(program).tune(strata.TuningOptions(trials=64))",
}
"""Where else something is that people look for here."""

__all__ = ["__version__", "te", *_NAMES]


class _Same(MetaPathFinder, Loader):
    """The finder and loader of `strata.X` as the module `compiler.X`, which is loaded once."""

    def find_spec(
        self, fullname: str, path: Sequence[str] | None, target: ModuleType | None = None
    ) -> ModuleSpec | None:
        package, _, module = fullname.partition(".")
        if package != __name__ or not module or module.startswith("__") or find_spec(place_of(module)) is None:
            return None
        return ModuleSpec(fullname, self, is_package=True)

    def create_module(self, spec: ModuleSpec) -> ModuleType:
        module = import_module(place_of(spec.name.partition(".")[2]))
        spec.loader_state = module.__spec__
        return module

    def exec_module(self, module: ModuleType) -> None:
        spec = module.__spec__
        if spec is not None:
            module.__spec__ = spec.loader_state


def place_of(module: str) -> str:
    """The module that `strata.X` is, by its name there."""
    return f"compiler.{_PLACES.get(module, module)}"


sys.meta_path.insert(0, _Same())  # before what would load a second copy


def __getattr__(name: str) -> Any:
    if name == "__version__":
        return import_module("compiler").__version__
    if name in _NAMES:
        return getattr(import_module(_NAMES[name]), name)
    try:
        return import_module(f"{__name__}.{name}")
    except ModuleNotFoundError as error:
        if error.name not in (f"{__name__}.{name}", place_of(name)):
            raise
        hint = f": {_ELSEWHERE[name]}" if name in _ELSEWHERE else ""
        raise AttributeError(f"module '{__name__}' has no attribute '{name}'{hint}") from None


def __dir__() -> list[str]:
    return sorted(__all__)
