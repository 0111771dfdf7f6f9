"""Sizes derived from the caches and registers of a machine: the defaults of choices, and their options."""

from __future__ import annotations

from collections.abc import Sequence

from compiler.types.machines import Machine


def product_tile(machine: Machine, m: int, n: int, lanes: int) -> tuple[int, int]:
    """Return the rows, and the vectors of columns, of the register tile with the least estimated work for an m x n
    product in vectors of `lanes` elements.

    Candidates fit the registers: rows * vectors accumulators, the vectors of a row of B and one broadcast. They have at
    most 4 vectors, and rows of at least 3/4 of a power of two, the unit of transposes when A is packed. A machine needs
    at least 4 registers, else there is no candidate and `min` raises ValueError. The work includes padding, loads
    beyond the ports' rate of one for two multiplications, latency that fewer than ten accumulators leave idle, the
    start of each tile, and a penalty for leaving no register free.
    """
    tiles = []
    for vectors in range(1, 5):
        for rows in (r for r in rows_of(machine, vectors) if 4 * r >= 3 * (1 << (r - 1).bit_length())):
            padded = -(-m // rows) * rows * -(-n // (vectors * lanes)) * vectors * lanes
            loads = (rows + vectors) / (rows * vectors)
            idle = max(1.0, 10 / (rows * vectors))  # accumulators hide the latency of ten multiplications
            start = 1 + 2 / (rows * vectors)  # what a tile costs before and after its loop
            full = 1.1 if rows * vectors + vectors + 1 == machine.registers else 1.0
            tiles.append((padded * max(1.0, 0.72 + 0.55 * loads) * idle * start * full, rows, vectors))
    _, rows, vectors = min(tiles)
    return rows, vectors


def rows_of(machine: Machine, vectors: int) -> range:
    """Return the numbers of rows, from 2 to at most 14, of register tiles with `vectors` vectors in a row that fit the
    registers of a machine, beside a row of B and one broadcast; empty if none does."""
    return range(2, min((machine.registers - vectors - 1) // vectors, 14) + 1)


FEWEST_PIXELS, MOST_PIXELS = 3, 14
"""The fewest and the most pixels of a register tile, if a row has as many."""
LOAD, LATENCY = 0.58, 4
"""Cycles of a load in a loop of loads and multiply-adds, on two ports each; and cycles of latency of a multiply-add."""


def step_cycles(sums: int, loads: int) -> float:
    """Estimate the cycles of one reduction step of a register tile of `sums` accumulators: the largest of the
    multiply-adds at two a cycle, of the loads at LOAD cycles each, and of the latency of a multiply-add."""
    return max(sums / 2, LOAD * loads, LATENCY)


def pixels_of(w: int) -> range:
    """Return the numbers of pixels of register tiles for rows of w pixels: FEWEST_PIXELS to MOST_PIXELS, at most w;
    only w if w is less than FEWEST_PIXELS."""
    return range(min(FEWEST_PIXELS, w), min(w, MOST_PIXELS) + 1)


def pixel_tile(machine: Machine, w: int, counts: Sequence[int], vectors: int, steps: int) -> tuple[int, int]:
    """Return the pixels and the vectors of filters, one of `counts`, of the register tile with the fewest cycles for
    rows of w pixels and `vectors` vectors of filters; the fewest pixels of `pixels_of` and one vector if no tile fits
    the registers.

    A tile takes `steps` reduction steps, and loads and stores its sums. Padding of the last tile counts as work.
    """

    def cycles(tile: tuple[int, int]) -> float:
        pixels, filters = tile
        sums = pixels * filters
        rounds = -(-w // pixels) * -(-vectors // filters)
        return rounds * (steps * step_cycles(sums, pixels + filters) + 3 * sums)

    sizes = pixels_of(w)
    fitting = [(p, n) for n in counts for p in reversed(sizes) if (p + 1) * n + 1 <= machine.registers]
    return min(fitting, key=cycles, default=(sizes[0], 1))


def depth(machine: Machine, rows: int, bytes: int = 4) -> int:
    """Return the length at which `rows` rows of elements of `bytes` bytes fill half of L1, rounded down to a multiple
    of 64; 64 if half of L1 is less."""
    return max(64, machine.l1_bytes // (2 * bytes * rows) // 64 * 64)


def width(machine: Machine, depth: int, bytes: int = 4) -> int:
    """Return the number of columns at which `depth` rows of elements of `bytes` bytes fill half of L2, rounded down; 1
    if half of L2 is less."""
    return max(1, machine.l2_bytes // (2 * bytes * depth))


def evens(extent: int, step: int, shortest: int, longest: int) -> list[int]:
    """Return the lengths from `shortest` to `longest` of equal pieces of an extent, rounded up to multiples of `step`;
    each length is less than the extent, and they ascend; then the extent if it is at most `longest` or no length is
    left. evens(100, 8, 16, 64) is 24, 32, 40, 56."""
    pieces = {-(-extent // parts) for parts in range(2, extent // max(1, shortest) + 1)}
    cuts = {-(-piece // step) * step for piece in pieces}
    sizes = sorted(size for size in cuts if shortest <= size <= longest and size < extent)
    return [*sizes, extent] if extent <= longest or not sizes else sizes


def steps(most: int, options: Sequence[int] = (2, 3, 4, 6, 8, 12, 16, 24, 32, 48, 64)) -> list[int]:
    """Return the options up to `most`, in their order; if there are none, only the larger of `most` and 1."""
    return [option for option in options if option <= most] or [max(1, most)]
