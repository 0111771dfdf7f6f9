"""Sizes of tiles, from extents and a machine's caches and registers."""

from __future__ import annotations

from dataclasses import dataclass

from compiler.targets.machine import Machine


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
    """The register tile with the least work for a product of m rows and n columns.

    Candidates keep rows * vectors accumulators, the vectors of a row of B and one broadcast in registers, and have rows
    that nearly fill a power of two, since that many are transposed where A is packed. Padding counts as work, and so do
    loads beyond one for each two multiplications, which is what the ports take.
    """
    width = lanes(machine)
    found = []
    for vectors in range(1, 5):
        most = (machine.registers - vectors - 1) // vectors
        for rows in (r for r in range(2, min(most, 14) + 1) if 4 * r >= 3 * (1 << (r - 1).bit_length())):
            padded = -(-m // rows) * rows * -(-n // (vectors * width)) * vectors * width
            loads = (rows + vectors) / (rows * vectors)
            idle = max(1.0, 10 / (rows * vectors))  # accumulators hide the latency of ten multiplications
            start = 1 + 2 / (rows * vectors)  # what a tile costs before and after its loop
            found.append((padded * max(1.0, 0.72 + 0.55 * loads) * idle * start, rows, vectors * width))
    _, rows, columns = min(found)
    return Tile(rows, columns, width)


def depth(machine: Machine, tile: Tile) -> int:
    """The length of k in a cache tile: a row panel of A takes a sixth of the first cache."""
    return max(64, machine.l1_bytes // (6 * 4 * tile.rows) // 64 * 64)


def width(machine: Machine, k: int) -> int:
    """The columns of a packed block of B of k rows: it takes half of the second cache."""
    return max(1, machine.l2_bytes // (2 * 4 * k))
