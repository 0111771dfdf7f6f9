"""Former import paths: up to 0.1 `strata.X.Y` was the module `compiler.X.Y`. Their use warns; 0.2 removes them."""

from __future__ import annotations

import sys
import warnings
from collections.abc import Sequence
from importlib import import_module
from importlib.abc import Loader, MetaPathFinder
from importlib.machinery import ModuleSpec
from importlib.util import find_spec, spec_from_file_location
from pathlib import Path
from types import ModuleType


class FormerPaths(MetaPathFinder, Loader):
    """Import hook that finds the modules of the API as packages without files of their own, and `strata.X.Y` as
    `compiler.X.Y`, with a DeprecationWarning.

    A name of the API wins: `strata.te.function` is the function, so the module of that name is not imported.
    """

    def find_spec(
        self, fullname: str, path: Sequence[str] | None, target: ModuleType | None = None
    ) -> ModuleSpec | None:
        package, _, inside = fullname.partition(".")
        if package != "strata" or not inside or inside.startswith("_"):
            return None
        file = Path(__file__).parent / f"{inside}.py"
        if file.is_file():
            return spec_from_file_location(fullname, file, submodule_search_locations=[])
        parent, _, name = fullname.rpartition(".")
        if name == "__main__":  # python -m strata.opt
            spec = find_spec(f"compiler.{inside}")
            return None if spec is None else spec_from_file_location(fullname, spec.origin)
        if name in getattr(sys.modules.get(parent), "__all__", ()) or find_spec(f"compiler.{inside}") is None:
            return None
        return ModuleSpec(fullname, self, is_package=True)

    def create_module(self, spec: ModuleSpec) -> ModuleType:
        inside = spec.name.partition(".")[2]
        advice = f"{spec.name} is internal and may change: docs/api.md lists the API; compiler.{inside} is the module"
        warnings.warn(advice, DeprecationWarning, stacklevel=2)
        module = import_module(f"compiler.{inside}")
        spec.loader_state = module.__spec__
        return module

    def exec_module(self, module: ModuleType) -> None:
        spec = module.__spec__
        if spec is not None:
            module.__spec__ = spec.loader_state
