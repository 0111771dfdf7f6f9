"""Where buffers live and how their elements lie: lift_alloc, set_scope, transform_layout, pack, storage_align,
swizzle."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from math import gcd, prod

from xdsl.ir.affine import AffineBinaryOpExpr, AffineBinaryOpKind, AffineConstantExpr, AffineExpr, AffineMap

from compiler.affine import linear as lin
from compiler.affine.condition import Condition
from compiler.affine.linear import Linear
from compiler.analysis.fold import clash, is_injective
from compiler.analysis.legal import Step
from compiler.dialects.combiner import identity
from compiler.program.tree import Access, Alloc, Block, Buffer, Program
from compiler.schedule.plan import Plan, block_place, loop_place, no_table, only_target, refuse
from compiler.schedule.primitives.cache import before_reads, copy_nest
from compiler.schedule.region import moved_alloc, with_buffer


def lift_alloc(program: Program, buffer: str, loop: int | None) -> Plan:
    """Move the beginning of a buffer's lifetime out: to a loop that encloses it, or to the function.

        loop.for "i" { loop.for "j" { alloc T;  S } }                  // lift T to i
      ->
        loop.for "i" { alloc T;  loop.for "j" { S } }

    Requires a temporary that lives inside the loop. Refused where iterations of a concurrent loop would then share
    it. Elsewhere: Exo lift_alloc, Halide store_at, MLIR buffer-hoisting.
    """
    if buffer not in program.allocs:
        refuse("lift_alloc", f"buffer '{buffer}'", _no_temporary(program, buffer))
    around = [n.number for n in program.enclosing((buffer,))]
    if loop is not None and loop not in around:
        refuse("lift_alloc", f"buffer '{buffer}'", f"it does not live inside {loop_place(program, loop)}")
    if (around[-1] if around else None) == loop:
        refuse("lift_alloc", f"buffer '{buffer}'", "it lives there already")
    return Plan(Step(moved_alloc(program, buffer, loop), keeps_order=True))


def _no_temporary(program: Program, buffer: str) -> str:
    return "it is an argument, not a temporary" if buffer in program.buffers else "there is no such buffer"


def set_scope(program: Program, block: str, scope: str) -> Plan:
    """Set the scope of the buffer that a block writes.

        alloc T : memref<8xf32>                  // set_scope "shared"
      ->
        alloc T shared : memref<8xf32>

    Requires a temporary. Elsewhere: TVM set_scope, Exo set_memory, MLIR memory spaces.
    """
    buffer = _temporary("set_scope", program, block)
    return Plan(Step(with_buffer(program, buffer.name, replace(buffer, scope=scope)), keeps_order=True))


def _temporary(primitive: str, program: Program, block: str, name: str | None = None) -> Buffer:
    name = name if name is not None else only_target(primitive, program.blocks[block])
    if name not in program.allocs:
        refuse(primitive, f"buffer '{name}'", _no_temporary(program, name))
    return program.buffers[name]


@dataclass(frozen=True)
class Blocks:
    """A layout in blocks: a tile size a dimension (1 for none), and the order of the dimensions of the blocks, then
    those inside a block; none is that order."""

    tiles: Sequence[int]
    order: Sequence[int] = ()


def transform_layout(program: Program, block: str, buffer: str, layout: AffineMap | Blocks) -> Plan:
    """Index a temporary buffer through a map: its elements are stored where the map says.

        alloc T[8, 6];  T[i, j] ...              // by (i, j) -> (j, i mod 3)
      ->
        alloc T[6, 3];  T[j, i mod 3] ...

    A script says a layout in blocks by tiles and order as well, which are those of `pack`: one size a dimension, 1 for
    none, and the order of the dimensions of the blocks, then those inside a block.

        alloc T[8, 6];  T[i, j] ...              // tiles [4, 1] order [0, 2, 1]
      ->
        alloc T[2, 6, 4];  T[i floordiv 4, j, i mod 4] ...

    Several elements may share a place (storage folding, rolling windows) as long as none is overwritten before its last
    use. Requires a temporary that the block touches, and a map with one dimension for each of its own and results that
    are not negative. Refused where two elements that live at the same time would share a place, and for the table of a
    gather. Elsewhere: TVM transform_layout, Halide fold_storage and reorder_storage, Exo rearrange_dim.
    """
    old = _laid(program, block, buffer)
    if isinstance(layout, Blocks):
        return _in_block_layout(program, block, old, layout)
    place = f"buffer '{buffer}'"
    if layout.num_dims != len(old.shape):
        reason = f"the layout is of {layout.num_dims} dimensions, the buffer has {len(old.shape)}"
        refuse("transform_layout", place, reason)
    if layout.num_symbols or not layout.results:
        refuse("transform_layout", place, "the layout has symbols, or no results")
    if any(_divides_badly(e) for result in layout.results for e in result.dfs()):
        refuse("transform_layout", place, "the layout divides by what is not a positive integer")
    ranges = {d: (0, n - 1) for d, n in enumerate(old.shape)}
    dims = [lin.variable(d) for d in range(len(old.shape))]
    forms = [lin.linear(e, dims, ranges) for e in layout.results]
    spans = [lin.bounds(form, ranges) for form in forms]
    if any(low < 0 for low, _ in spans):
        refuse("transform_layout", place, "the layout has negative places")
    after = _relaid(program, old, _shaped(old, spans), forms)
    if not is_injective(forms, old.shape):
        found = clash(program, buffer, forms)
        if found is not None:
            refuse("transform_layout", place, found)
    return Plan(Step(after, keeps_order=True))


def _in_block_layout(program: Program, block: str, old: Buffer, layout: Blocks) -> Plan:
    """A layout in blocks: no two elements share a place."""
    ranges = {d: (0, n - 1) for d, n in enumerate(old.shape)}
    order = _order("transform_layout", block, old.name, old, layout.tiles, layout.order)
    forms = _in_blocks([lin.variable(d) for d in range(len(old.shape))], layout.tiles, order, ranges)
    shape = _blocked_shape(old, layout.tiles)
    new = replace(old, shape=tuple(shape[d] for d in order))
    return Plan(Step(_relaid(program, old, new, forms), keeps_order=True))


def _laid(program: Program, block: str, buffer: str) -> Buffer:
    """The temporary that a block touches and that is laid out anew."""
    old = _temporary("transform_layout", program, block, buffer)
    node = program.blocks[block]
    no_table("transform_layout", f"buffer '{buffer}'", program.blocks.values(), buffer)
    if all(a.buffer != buffer for a in (*node.reads, *node.writes)):
        refuse("transform_layout", f"buffer '{buffer}'", f"{block_place(block)} does not touch it")
    return old


def _shaped(old: Buffer, spans: Sequence[lin.Range]) -> Buffer:
    return replace(old, shape=tuple(high + 1 for _, high in spans))


def _tiled(tiles: Sequence[int]) -> list[int]:
    """The dimensions that are cut into blocks."""
    return [d for d, tile in enumerate(tiles) if tile > 1]


def _blocked_shape(buffer: Buffer, tiles: Sequence[int]) -> list[int]:
    """The extents of the dimensions of the blocks, then of those inside a block."""
    return [-(-n // t) for n, t in zip(buffer.shape, tiles, strict=True)] + [tiles[d] for d in _tiled(tiles)]


def _in_blocks(index: Sequence[Linear], tiles: Sequence[int], order: Sequence[int], ranges: lin.Ranges) -> list[Linear]:
    """Where an element lies in blocks."""
    outer = [lin.floordiv(form, tile, ranges) for form, tile in zip(index, tiles, strict=True)]
    every = [*outer, *(lin.mod(index[d], tiles[d], ranges) for d in _tiled(tiles))]
    return [every[d] for d in order]


def _order(
    primitive: str, block: str, buffer: str, source: Buffer, tiles: Sequence[int], order: Sequence[int]
) -> list[int]:
    """The order of the dimensions of a blocked buffer. Raises ScheduleError where it, or the tiles, do not fit."""
    if len(tiles) != len(source.shape):
        reason = f"{len(tiles)} tiles do not fit the {len(source.shape)} dimensions of '{buffer}'"
        refuse(primitive, block_place(block), reason)
    rank = len(tiles) + len(_tiled(tiles))
    if order and sorted(order) != list(range(rank)):
        refuse(primitive, block_place(block), f"the order {list(order)} is no permutation of {rank} dimensions")
    return list(order) or list(range(rank))


def _divides_badly(expr: AffineExpr) -> bool:
    """Whether an expression is a division, or remainder, by something else than a positive integer."""
    if not isinstance(expr, AffineBinaryOpExpr) or expr.kind in (AffineBinaryOpKind.Add, AffineBinaryOpKind.Mul):
        return False
    return not (isinstance(expr.rhs, AffineConstantExpr) and expr.rhs.value > 0)


def _relaid(program: Program, old: Buffer, new: Buffer, forms: Sequence[Linear]) -> Program:
    def change(block: Block) -> Block:
        ranges = block.axis_ranges

        def access(a: Access) -> Access:
            if a.buffer != old.name:
                return a
            return replace(a, index=tuple(lin.substitute(f, dict(enumerate(a.index)), ranges) for f in forms))

        return replace(block, reads=tuple(map(access, block.reads)), writes=tuple(map(access, block.writes)))

    def touches(block: Block) -> bool:
        return any(a.buffer == old.name for a in (*block.reads, *block.writes))

    return with_buffer(program.map_blocks(lambda b: change(b) if touches(b) else b), old.name, new)


def pack(program: Program, block: str, buffer: str, tiles: Sequence[int], order: Sequence[int] = ()) -> Plan:
    """Read a buffer through a blocked, padded copy with one tile size a dimension (1 for none).

        S[i, j] = f(B[j, i])                     // pack B by tiles [1, 16], B is 5 x 20
      ->
        alloc B.pack[5, 2, 16];  B.pack[a, b, c] = B[a, 16*b + c] or 0;  S[i, j] = f(B.pack[j, i floordiv 16, i mod 16])

    The dimensions of the copy are those of the blocks, then those inside a block; `order` permutes them. What lies
    beyond the buffer is zero. Requires a buffer that the block reads and does not write. Elsewhere: MLIR linalg.pack,
    BLIS packing, TVM cache_read with transform_layout.
    """
    reader = program.blocks[block]
    no_table("pack", block_place(block), [reader], buffer)
    if all(access.buffer != buffer for access in reader.reads):
        refuse("pack", block_place(block), f"it does not read '{buffer}'")
    if any(access.buffer == buffer for access in reader.writes):
        refuse("pack", block_place(block), f"it writes '{buffer}' as well")
    source = program.buffers[buffer]
    order = _order("pack", block, buffer, source, tiles, order)
    shape, tiled = _blocked_shape(source, tiles), _tiled(tiles)
    name = program.fresh_buffer(f"{buffer}.pack")
    inner = {d: len(source.shape) + n for n, d in enumerate(tiled)}
    position = {dim: axis for axis, dim in enumerate(order)}
    ranges = {position[d]: (0, n - 1) for d, n in enumerate(shape)}
    index: list[Linear] = []
    beyond: list[Condition] = []
    for d, (tile, size) in enumerate(zip(tiles, source.shape, strict=True)):
        form = lin.variable(position[d]).scaled(tile)
        form = form + lin.variable(position[inner[d]]) if d in inner else form
        index.append(form)
        beyond.append(Condition(lin.constant(size - 1) - form))
    where = tuple(c for c in beyond if not c.always(ranges))
    otherwise = identity("add", source.element) if where else None
    place = before_reads(program, block, buffer)
    copy = Buffer(name, tuple(shape[d] for d in order), source.element)
    source_access = Access(buffer, tuple(index), where, otherwise)
    label, nest = copy_nest(program, name, copy.shape, [(source_access, copy)], place)

    def redirect(access: Access) -> Access:
        if access.buffer != buffer:
            return access
        index = _in_blocks(access.index, tiles, order, reader.axis_ranges)
        return replace(access, buffer=name, index=tuple(index))

    after = program.replaced(block, lambda _: [replace(reader, reads=tuple(map(redirect, reader.reads)))])
    after = after.replaced(place, lambda node: [Alloc(copy), nest, node])
    return Plan(Step(after), blocks=(label,))


def storage_align(program: Program, block: str, dim: int, factor: int, offset: int) -> Plan:
    """Pad a block's buffer so that the stride of a dimension is `offset` beyond a multiple of `factor`, in elements.

        alloc T[8, 32]                           // dim 0 factor 32 offset 8: stride 40
      ->
        alloc T[8, 40]

    Requires a temporary and a dimension whose stride can be had by making the next one longer. Elsewhere: TVM
    storage_align.
    """
    buffer = _temporary("storage_align", program, block)
    no_table("storage_align", f"buffer '{buffer.name}'", program.blocks.values(), buffer.name)
    if not 0 <= dim < len(buffer.shape) - 1:
        refuse(
            "storage_align", f"buffer '{buffer.name}'", f"dimension {dim} has no dimension inside it that could grow"
        )
    inner, length = prod(buffer.shape[dim + 2 :]), buffer.shape[dim + 1]
    common = gcd(inner, factor)
    if offset % common:
        refuse("storage_align", f"buffer '{buffer.name}'", f"no length of dimension {dim + 1} gives that stride")
    period = factor // common  # length * inner = offset modulo factor holds for one length in each period
    wanted = offset // common * pow(inner // common, -1, period)
    shape = (*buffer.shape[: dim + 1], length + (wanted - length) % period, *buffer.shape[dim + 2 :])
    return Plan(Step(with_buffer(program, buffer.name, replace(buffer, shape=shape)), keeps_order=True))


def swizzle(program: Program, block: str, width: int) -> Plan:
    """Rotate the columns of a block's buffer by the row, within groups of `width`, against bank conflicts.

        T[r, c]                                  // width 8
      ->
        T[r, (c floordiv 8) * 8 + (c + r) mod 8]

    Requires a temporary of at least two dimensions whose last is a multiple of the width. Elsewhere: CUTLASS
    Swizzle (an exclusive or), Triton's swizzled shared layouts.
    """
    buffer = _temporary("swizzle", program, block)
    no_table("swizzle", f"buffer '{buffer.name}'", program.blocks.values(), buffer.name)
    rank = len(buffer.shape)
    if rank < 2 or buffer.shape[-1] % width:
        refuse("swizzle", f"buffer '{buffer.name}'", f"its last dimension is no multiple of the width {width}")
    ranges = {d: (0, n - 1) for d, n in enumerate(buffer.shape)}
    row, column = lin.variable(rank - 2), lin.variable(rank - 1)
    turned = lin.floordiv(column, width, ranges).scaled(width) + lin.mod(column + row, width, ranges)
    forms = [*(lin.variable(d) for d in range(rank - 1)), turned]
    return Plan(Step(_relaid(program, buffer, buffer, forms), keeps_order=True))
