"""Sizes of tiles, from extents and a machine's caches and registers."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from compiler.schedule import Schedule
from compiler.space.rules import sizes as suggested
from compiler.types.machines import Machine

Script = Callable[[Schedule, Machine, int], None]
"""Schedules a program for a machine and so many threads."""


@dataclass(frozen=True)
class Tile:
    """A register tile of a product: rows, and columns in whole vectors of `lanes` elements."""

    rows: int
    columns: int
    lanes: int


def lanes(machine: Machine, bits: int = 32) -> int:
    """The elements of a vector."""
    return machine.vector_bits // bits


def register_tile(machine: Machine, m: int, n: int) -> Tile:
    """The register tile with the least work for a product of m rows and n columns, where the tuner begins as well."""
    width = lanes(machine)
    rows, vectors = suggested.register_tile(machine, m, n, width)
    return Tile(rows, vectors * width, width)
