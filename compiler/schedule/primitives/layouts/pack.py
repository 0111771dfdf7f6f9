"""The primitive pack."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from compiler.affine import linear as lin
from compiler.affine.condition import Condition
from compiler.affine.linear import Linear
from compiler.program.tree import Access, Buffer, Program
from compiler.schedule.copies import read_copy
from compiler.schedule.layouts import blocked_shape, dimension_order, in_blocks, tiled_dimensions
from compiler.schedule.parameters import BLOCK, INTS, SIZES, TEXT
from compiler.schedule.plan import Plan, block_place, no_table, require_read
from compiler.schedule.primitive import primitive
from compiler.schedule.region import conditional, with_accesses


@primitive(
    "$block $buffer `tiles` custom<DynamicIndexList>($params, $tiles) (`order` $order^)?",
    '%p = sched.pack %c "B" tiles [1, 48]',
    "pack{block=C buffer=B tiles=1,48 order=1,0,2 at=C.l}",
    gives={"packing": "block"},
    placed_by="compute_at",
    block=BLOCK,
    buffer=TEXT,
    tiles=SIZES,
    order=INTS.or_else([]),
)
def pack(program: Program, block: str, buffer: str, tiles: Sequence[int], order: Sequence[int] = ()) -> Plan:
    """Read a buffer through a blocked, padded copy with a tile size for each dimension (1 for none).

        S[i, j] = f(B[j, i])                     // pack B by tiles [1, 16], B is 5 x 20
      ->
        alloc B.pack[5, 2, 16];  B.pack[a, b, c] = B[a, 16*b + c] or 0;  S[i, j] = f(B.pack[j, i floordiv 16, i mod 16])

    The dimensions of the copy are the dimensions of the blocks, then the dimensions inside a block; `order` permutes
    them. Elements beyond the buffer are zero. Requires a buffer that the block reads and does not write. Elsewhere:
    MLIR linalg.pack, BLIS packing, TVM cache_read with transform_layout.
    """
    reader = program.blocks[block]
    no_table(block_place(block), [reader], buffer)
    require_read(reader, buffer)
    source = program.buffers[buffer]
    order = dimension_order(block, buffer, source, tiles, order)
    shape, tiled = blocked_shape(source, tiles), tiled_dimensions(tiles)
    name = program.fresh_buffer(f"{buffer}.pack")
    inner = {d: len(source.shape) + n for n, d in enumerate(tiled)}
    position = {dim: axis for axis, dim in enumerate(order)}
    ranges = {position[d]: (0, n - 1) for d, n in enumerate(shape)}
    index: list[Linear] = []
    in_bounds: list[Condition] = []
    for d, (tile, size) in enumerate(zip(tiles, source.shape, strict=True)):
        form = lin.variable(position[d]).scaled(tile)
        form = form + lin.variable(position[inner[d]]) if d in inner else form
        index.append(form)
        in_bounds.append(Condition(lin.constant(size - 1) - form))
    read = conditional(Access(buffer, tuple(index)), [c for c in in_bounds if not c.always(ranges)], source.element)
    copy = Buffer(name, tuple(shape[d] for d in order), source.element)

    def redirect(access: Access) -> Access:
        index = in_blocks(access.index, tiles, order, reader.axis_ranges)
        return replace(access, buffer=name, index=tuple(index))

    through = with_accesses(reader, buffer, redirect)
    return read_copy(program, reader, through, read, copy)
