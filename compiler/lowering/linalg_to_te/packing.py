"""linalg.pack and unpack: a compute that reads a tensor in tiles, or one of tiles."""

from __future__ import annotations

from xdsl.ir import Operation

from compiler import te
from compiler.dialects.upstream.linalg.packing import PackOp, TiledLayoutOp, UnpackOp
from compiler.lowering.linalg_to_te.inlined import build, numbers
from compiler.lowering.linalg_to_te.values import TeValues
from compiler.te.expr import Expr
from compiler.te.index import Index
from compiler.te.tensor import Tensor


def _tiles(op: TiledLayoutOp, values: TeValues) -> list[int]:
    """Return the tile size of each dimension of the unpacked tensor; 1 for a dimension without tiles."""
    sizes = numbers(op, values, op.sizes, op.open_sizes)
    tiles = dict(zip(op.dims, sizes, strict=True))
    return [tiles.get(dim, 1) for dim in range(len(op.order))]


def convert_pack(op: Operation, values: TeValues) -> None:
    """Append a compute that reads the source in tiles, for a linalg.pack; elements beyond the source are the op's
    padding value, or 0. Raises LoweringError for a tile size of unknown number, and for an operand without a te
    value."""
    assert isinstance(op, PackOp)
    tiles, order, dims = _tiles(op, values), op.order, op.dims
    shape = values.shape(op.dest, op)

    def element(source: Tensor, *padding: Tensor) -> Tensor:
        def read(*i: Index) -> Expr:
            outer = dict(zip(order, i, strict=False))
            inner = dict(zip(dims, i[len(order) :], strict=True))
            at = [outer[dim] * tiles[dim] + inner[dim] if dim in inner else outer[dim] for dim in range(len(order))]
            padded = [dim for dim in dims if shape[order.index(dim)] * tiles[dim] > source.shape[dim]]
            if not padded:
                return source[tuple(at)]
            inside = te.all_of(*(at[dim] < source.shape[dim] for dim in padded))
            return te.select(inside, te.select(inside, source[tuple(at)], 0), padding[0][()] if padding else 0)

        return te.compute(shape, read)

    build(op, values, [op.source] if op.padding_value is None else [op.source, op.padding_value], element)


def convert_unpack(op: Operation, values: TeValues) -> None:
    """Append a compute that reads each element from its tile, for a linalg.unpack; padding is dropped. Raises
    LoweringError for a tile of unknown size, and for an operand without a te value."""
    assert isinstance(op, UnpackOp)
    tiles, order, dims = _tiles(op, values), op.order, op.dims
    shape = values.shape(op.dest, op)

    def element(source: Tensor) -> Tensor:
        def read(*i: Index) -> Expr:
            outer = [i[dim] // tiles[dim] if dim in dims else i[dim] for dim in order]
            return source[(*outer, *(i[dim] % tiles[dim] for dim in dims))]

        return te.compute(shape, read)

    build(op, values, [op.source], element)
