"""Hand-written schedules of the workloads: composites of `compiler.recipes`, and sizes.

Each takes the unscheduled program, the machine and the count of threads. Sizes follow from the extents and from the
machine's caches and registers; none is for a name.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import partial
from math import prod

from compiler import recipes
from compiler.bench.workload import Workload
from compiler.pipeline import lower
from compiler.recipes import sizes
from compiler.recipes.product import AHEAD
from compiler.recipes.sizes import depth, width
from compiler.schedule import Schedule
from compiler.schedule.schedule import Handle
from compiler.types.machines import Machine, host

Script = Callable[[Schedule, Machine, int], None]
"""Schedules a program for a machine and a number of threads."""


@dataclass(frozen=True)
class Tile:
    """A register tile of a product: rows, and columns in whole vectors of `lanes` elements."""

    rows: int
    columns: int
    lanes: int


def lanes(machine: Machine) -> int:
    """The f32 elements of a vector."""
    return machine.vector_bits // 32


def register_tile(machine: Machine, m: int, n: int) -> Tile:
    """The register tile with the least work for a product of m rows and n columns, also the tuner's first choice."""
    width = lanes(machine)
    rows, vectors = sizes.product_tile(machine, m, n, width)
    return Tile(rows, vectors * width, width)


def matmul(s: Schedule, machine: Machine, threads: int) -> None:
    """A matmul, packed."""
    (block,) = _blocks(s)
    _gebp(s, block, machine, threads)


def products(s: Schedule, machine: Machine, threads: int) -> None:
    """Matmuls one after another, each packed."""
    for block in _blocks(s):
        _gebp(s, block, machine, threads)


def batched(s: Schedule, machine: Machine, threads: int) -> None:
    """A matmul in a loop over the batch, whose iterations run on several threads."""
    (block,) = _blocks(s)
    batch = s.get_loops(block)[0]
    _gebp(s, block, machine, 1)
    if threads > 1:
        s.parallel(batch)


def mm_exp_mm(s: Schedule, machine: Machine, threads: int) -> None:
    """Two matmuls; the exponentials of the first are stored as the second reads them."""
    first, exp, second = _blocks(s)
    m, n = (s.extent(loop) for loop in s.get_loops(second)[:2])
    tile = register_tile(machine, m, n)
    done = _gebp(s, first, machine, threads, tile)
    recipes.store_packed(s, exp, done, tile.rows, tile.lanes)
    _gebp(s, second, machine, threads, tile, "b")


def mlp(s: Schedule, machine: Machine, threads: int, beforehand: bool = False) -> None:
    """Two layers, weights packed `beforehand` or not: bias and activation on each finished tile of the products."""
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
    """Pack and tile a matmul; on several threads, panels of columns are packed and rows are computed side by side.

    Operands that take less than half of L2 together are not packed, unless `pack` says which are.
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
    """X[m, k] * V[n, k], V in panels of the register tile's columns."""
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
    """A convolution with bias and activation: implicit GEMM, which packs weights inside the time or `beforehand`."""
    block, bias, relu = _blocks(s)
    s.inline(bias)
    done = recipes.implicit_gemm(s, block, relu, *_convolution_sizes(s, machine), lanes(machine), beforehand=beforehand)
    if threads > 1:
        s.parallel(done.panels if s.extent(done.panels) >= threads else done.rows)


def _convolution_sizes(s: Schedule, machine: Machine) -> tuple[int, int, int]:
    """Pixels and filters of a register tile, and channels whose weights take two fifths of L1."""
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
    """The gradient of the weights, in one reduction or in steps."""
    width = lanes(machine)
    tiles = recipes.GradientTiles(nr=2 * width, lanes=width, held=machine.l2_bytes // 4)
    recipes.conv_grad_weight(s, s.get_block(list(s.program.blocks)[-1]), tiles)


def attention(s: Schedule, machine: Machine, threads: int) -> None:
    """Attention by rows of queries; heads run on several threads."""
    heads = recipes.attention(s, s.get_block(list(s.program.blocks)[-1]), _attention_tiles(s, machine)).heads
    if threads > 1:
        s.parallel(heads[0])


def _attention_tiles(s: Schedule, machine: Machine) -> recipes.AttentionTiles | None:
    """The composite's own choice with 32 registers; half as many vectors with 16."""
    width = lanes(machine)
    return None if machine.registers > 16 else recipes.AttentionTiles(6, 2 * width, width)


def by_rows(s: Schedule, machine: Machine, threads: int) -> None:
    """Compute all values of a row just before it is written, with non-temporal stores for large results."""
    block = s.get_block(list(s.program.blocks)[-1])
    row = recipes.by_rows(s, block, lanes(machine), streamed=_is_large(s, machine))
    if threads > 1:
        s.parallel(row)


def swish(s: Schedule, machine: Machine, threads: int) -> None:
    """An elementwise function."""
    (label,) = s.program.blocks
    block = s.get_block(label)
    row = s.get_loops(block)[-2]
    recipes.elementwise(s, block, lanes(machine))
    if _is_large(s, machine):
        s.annotate(row, "nontemporal", s.program.blocks[label].writes[0].buffer)
    if threads > 1:
        s.parallel(row)


def _is_large(s: Schedule, machine: Machine) -> bool:
    """True if the result is larger than L2."""
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
"""The scripts by family."""
PACKED: dict[str, Script] = {"conv": partial(conv, beforehand=True), "mlp": partial(mlp, beforehand=True)}
"""The same for constant weights, which are packed whole, in a nest of its own that can run beforehand."""


def scheduled(workload: Workload, threads: int = 1, scripts: Mapping[str, Script] = SCRIPTS) -> Schedule | None:
    """The workload's program under its family's script, None without one; the scripts of `PACKED` pack weights."""
    script = scripts.get(workload.family)
    if script is None:
        return None
    schedule = Schedule(lower(workload.function()))
    script(schedule, host(), threads)
    return schedule
