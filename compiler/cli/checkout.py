"""What a checkout of Strata has beside the package, and a wheel has not: `strata bench` and its workloads by name."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from importlib import import_module
from pathlib import Path
from types import ModuleType
from typing import TYPE_CHECKING, Protocol

from compiler.errors import InputError

if TYPE_CHECKING:
    from compiler.targets.arguments import Array
    from compiler.te import Function

ROOT = Path(__file__).resolve().parents[2]


class Workload(Protocol):
    """A program that `strata bench` measures."""

    @property
    def name(self) -> str:
        """The name under which it was found."""

    def function(self) -> Function:
        """The te function."""

    def draw(self, seed: int) -> Sequence[Array]:
        """Random inputs."""


def benchmarks() -> ModuleType:
    """The module that has the command, `workload` and `scheduled`. Raises InputError where there is no checkout."""
    if not (ROOT / "benchmarks" / "command.py").is_file():
        raise InputError("the benchmarks are not installed with the compiler: run this from a checkout of Strata")
    if str(ROOT) not in sys.path:
        sys.path.insert(0, str(ROOT))
    return import_module("benchmarks.command")
