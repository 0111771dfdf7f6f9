"""Hand-written schedules of the workloads: composites of `compiler.recipes`, and sizes.

Each takes the unscheduled program, the machine and the number of threads; with one no loop is parallel. Sizes follow
from the extents and from the machine's caches and registers, not from its name.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import partial
from math import prod

from compiler import recipes
from compiler.bench.workload import Workload
from compiler.pipeline.loops import lower
from compiler.recipes import sizes
from compiler.recipes.product import AHEAD
from compiler.recipes.sizes import depth, width
from compiler.schedule import Schedule
from compiler.schedule.schedule import Handle
from compiler.types.machines import Machine, host

Script = Callable[[Schedule, Machine, int], None]
"""Function that applies a schedule to a program, for a machine and a number of threads."""


@dataclass(frozen=True)
class Tile:
    """A register tile of a product: rows, and columns in whole vectors of `lanes` elements."""

    rows: int
    columns: int
    lanes: int


def lanes(machine: Machine) -> int:
    """The number of f32 elements of a vector register."""
    return machine.vector_bits // 32


def register_tile(machine: Machine, m: int, n: int) -> Tile:
    """The register tile with the least work for a product of m rows and n columns; the tuner's rules prefer it, too."""
    width = lanes(machine)
    rows, vectors = sizes.product_tile(machine, m, n, width)
    return Tile(rows, vectors * width, width)


def matmul(s: Schedule, machine: Machine, threads: int) -> None:
    """Tile a matmul, and pack its operands unless they fit half of L2; parallel over rows."""
    (block,) = _blocks(s)
    _gebp(s, block, machine, threads)


def products(s: Schedule, machine: Machine, threads: int) -> None:
    """Tile each of several matmuls, and pack its operands unless they fit half of L2; parallel over rows."""
    for block in _blocks(s):
        _gebp(s, block, machine, threads)


def batched(s: Schedule, machine: Machine, threads: int) -> None:
    """Tile a matmul, and pack its operands unless they fit half of L2, in each iteration of the batch's loop, which is
    parallel."""
    (block,) = _blocks(s)
    batch = s.get_loops(block)[0]
    _gebp(s, block, machine, 1)
    if threads > 1:
        s.parallel(batch)


def mm_exp_mm(s: Schedule, machine: Machine, threads: int) -> None:
    """Tile two matmuls, rows parallel with several threads. The first's operands are packed unless they fit half of L2.
    exp of the first result is stored in the packed layout that the second reads; the second's operand b is always
    packed."""
    first, exp, second = _blocks(s)
    m, n = (s.extent(loop) for loop in s.get_loops(second)[:2])
    tile = register_tile(machine, m, n)
    done = _gebp(s, first, machine, threads, tile)
    recipes.store_packed(s, exp, done, tile.rows, tile.lanes)
    _gebp(s, second, machine, threads, tile, "b")


def mlp(s: Schedule, machine: Machine, threads: int, beforehand: bool = False) -> None:
    """Tile two dense layers, bias and activation on each tile, parallel over rows; `beforehand`: weights are packed in
    a separate nest."""
    first, bias, relu, second, last = _blocks(s)
    s.inline(bias)
    for product, after in ((first, relu), (second, last)):
        gebp = _gebp_of_packed_weights if beforehand else _gebp
        recipes.apply_to_tiles(s, after, gebp(s, product, machine, threads))


def _blocks(s: Schedule) -> list[Handle]:
    return [s.get_block(label) for label in s.program.blocks]


def _gebp(
    s: Schedule, block: Handle, machine: Machine, threads: int, tile: Tile | None = None, pack: str | None = None
) -> recipes.Gebp:
    """Pack and tile a matmul, whose innermost loops are m, n and k, by default in the register tile of `register_tile`,
    and return the handles; with several threads the loops over panels of columns (packing) and over rows are parallel.

    `pack` names the operands to pack: "", "a", "b" or "ab"; None packs both unless they fit half of L2 together.
    """
    m, n, k = (s.extent(loop) for loop in s.get_loops(block)[-3:])
    if pack is None:
        pack = "ab" if 4 * k * (m + n) > machine.l2_bytes // 2 else ""
    tile = tile or register_tile(machine, m, n)
    kc = depth(machine, tile.rows)
    nc = width(machine, min(kc, k))
    done = recipes.gebp(s, block, tile.rows, kc, nc, tile.rows, tile.columns, tile.lanes, pack)
    if threads > 1:
        s.parallel(done.ic)
        if done.pack_b is not None:
            around = [s.label(h) for h in s.get_loops(block)]
            pack_loops = [h for h in s.get_loops(done.pack_b) if s.label(h) not in around]
            s.parallel(pack_loops[0])
    return done


def _gebp_of_packed_weights(s: Schedule, block: Handle, machine: Machine, threads: int) -> recipes.Gebp:
    """Tile the product X[m, k] * V[n, k]; V is packed whole, in panels of the register tile's columns, and prefetched,
    and X is packed as well. With several threads the loop over rows is parallel."""
    m, n, k = (s.extent(loop) for loop in s.get_loops(block))
    tile = register_tile(machine, m, n)
    _, weights = recipes.operands(s, block)
    pack = s.pack(block, weights, [tile.columns, 1])
    recipes.copy_in_vectors(s, pack, tile.lanes)
    kc = depth(machine, tile.rows)
    nc = width(machine, min(kc, k))
    done = recipes.gebp(s, block, tile.rows, kc, nc, tile.rows, tile.columns, tile.lanes, pack="a")
    s.prefetch(done.k, s.program.blocks[s.label(pack)].writes[0].buffer, AHEAD)
    if threads > 1:
        s.parallel(done.ic)
    return done


def conv(s: Schedule, machine: Machine, threads: int, beforehand: bool = False) -> None:
    """Tile a convolution, bias and activation as implicit GEMM; `beforehand`: weights are packed in a separate nest.
    The loop over panels is parallel if it has an iteration for each thread, else that over rows."""
    block, bias, relu = _blocks(s)
    s.inline(bias)
    done = recipes.implicit_gemm(s, block, relu, *_convolution_sizes(s, machine), lanes(machine), beforehand=beforehand)
    if threads > 1:
        s.parallel(done.panels if s.extent(done.panels) >= threads else done.rows)


def _convolution_sizes(s: Schedule, machine: Machine) -> tuple[int, int, int]:
    """The pixels and filters of a register tile, and the number of channels whose weights fit two fifths of L1."""
    label = next(iter(s.program.blocks))
    _, o, _, w, c, r, q = (s.extent(loop) for loop in s.get_loops(s.get_block(label)))
    width = lanes(machine)
    filters = min(2, -(-o // width)) * width
    most = (machine.registers - 3) // 2
    pixels = min(range(min(5, w), min(most, w) + 1), key=lambda p: (-(-w // p) * p, -p))
    weights = 4 * r * q * filters
    channels = 2 * machine.l1_bytes // 5 // weights
    if channels > width:
        channels -= channels % width  # so that taps are whole vectors where they are packed
    return pixels, filters, max(1, min(c, channels))


def conv_grad_weight(s: Schedule, machine: Machine, threads: int) -> None:
    """Schedule the gradient of a convolution's weights, written as one reduction or in steps; no loop is parallel."""
    width = lanes(machine)
    tiles = recipes.GradientTiles(nr=2 * width, lanes=width, held=machine.l2_bytes // 4)
    recipes.conv_grad_weight(s, s.get_block(list(s.program.blocks)[-1]), tiles)


def attention(s: Schedule, machine: Machine, threads: int) -> None:
    """Schedule attention by rows of queries; the loop over heads is parallel."""
    heads = recipes.attention(s, s.get_block(list(s.program.blocks)[-1]), _attention_tiles(s, machine)).heads
    if threads > 1:
        s.parallel(heads[0])


def _attention_tiles(s: Schedule, machine: Machine) -> recipes.AttentionTiles | None:
    """The tiles of the attention composite: None, for its defaults, with 32 registers; half as many vectors with 16."""
    width = lanes(machine)
    return None if machine.registers > 16 else recipes.AttentionTiles(6, 2 * width, width)


def by_rows(s: Schedule, machine: Machine, threads: int) -> None:
    """Compute a row's values just before it is written, by non-temporal stores beyond L2's size; parallel over rows."""
    block = s.get_block(list(s.program.blocks)[-1])
    row = recipes.by_rows(s, block, lanes(machine), streamed=_is_large(s, machine))
    if threads > 1:
        s.parallel(row)


def swish(s: Schedule, machine: Machine, threads: int) -> None:
    """Vectorize an elementwise function, with non-temporal stores for results larger than L2; rows are parallel with
    several threads."""
    (label,) = s.program.blocks
    block = s.get_block(label)
    row = s.get_loops(block)[-2]
    recipes.elementwise(s, block, lanes(machine))
    if _is_large(s, machine):
        s.annotate(row, "nontemporal", s.program.blocks[label].writes[0].buffer)
    if threads > 1:
        s.parallel(row)


def _is_large(s: Schedule, machine: Machine) -> bool:
    """Whether the program's result is larger than L2."""
    return 4 * prod(s.program.arguments[-1].shape) > machine.l2_bytes


SCRIPTS: dict[str, Script] = {
    "matmul": matmul,
    "batched": batched,
    "mm_exp_mm": mm_exp_mm,
    "mlp": mlp,
    "conv": conv,
    "conv_grad_weight": conv_grad_weight,
    "conv_grad_weight_steps": conv_grad_weight,
    "attention": attention,
    "softmax": by_rows,
    "layernorm": by_rows,
    "swish": swish,
}
"""Map each family of workloads to its script."""
PACKED: dict[str, Script] = {"conv": partial(conv, beforehand=True), "mlp": partial(mlp, beforehand=True)}
"""Scripts for constant weights: they are packed whole, in a nest of its own that can run before the timing."""


def scheduled(workload: Workload, threads: int = 1, scripts: Mapping[str, Script] = SCRIPTS) -> Schedule | None:
    """Apply the script of a workload's family in `scripts` to its program, for `threads` threads of this machine; None
    if the family has no script."""
    script = scripts.get(workload.family)
    if script is None:
        return None
    schedule = Schedule(lower(workload.function()))
    script(schedule, host(), threads)
    return schedule
