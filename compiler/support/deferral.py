"""`lazy_names`: names of a package, imported at first use."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from importlib import import_module
from typing import Any


def lazy_names(package: str, modules: Mapping[str, str]) -> Callable[[str], Any]:
    """Return a package's `__getattr__` that imports names at first use; `modules` maps each name to its submodule.
    Names without a submodule raise AttributeError."""

    def load(name: str) -> Any:
        if name not in modules:
            raise AttributeError(f"module '{package}' has no attribute '{name}'")
        return getattr(import_module(f"{package}.{modules[name]}"), name)

    return load
