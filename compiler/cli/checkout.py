"""What a checkout of Strata has beside the package, and a wheel has not: `strata bench` and its workloads by name."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence
from fractions import Fraction
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Protocol, cast

from compiler.errors import InputError

if TYPE_CHECKING:
    from compiler.schedule import Schedule
    from compiler.targets.cpu.arguments import Array
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


class Benchmarks(Protocol):
    """The benchmarks of a checkout: the command, and workloads with their hand-written schedules."""

    HELP: str

    def add_arguments(self, parser: argparse.ArgumentParser) -> None:
        """State the command's arguments."""

    def run(self, options: argparse.Namespace) -> int:
        """Run the command."""

    def workload(self, name: str, scale: Fraction) -> Workload:
        """The workload of a name, its extents scaled. Raises InputError for an unknown one."""

    def scheduled(self, workload: Workload) -> Schedule | None:
        """The workload under its hand-written schedule; None where it has none."""


def benchmarks() -> Benchmarks:
    """The benchmarks. Raises InputError where there is no checkout around the package."""
    if not (ROOT / "benchmarks" / "command.py").is_file():
        raise InputError("the benchmarks are not installed with the compiler: run this from a checkout of Strata")
    if str(ROOT) not in sys.path:
        sys.path.insert(0, str(ROOT))
    return cast(Benchmarks, import_module("benchmarks.command"))
