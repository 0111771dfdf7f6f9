"""transpose-scatters: scatters of neighbouring elements become vector stores of a transposed tile."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import lru_cache
from math import prod
from typing import ClassVar

from xdsl.builder import Builder
from xdsl.context import Context
from xdsl.dialects import arith, vector
from xdsl.dialects.builtin import (
    DenseArrayBase,
    DenseIntOrFPElementsAttr,
    IndexType,
    IntegerAttr,
    MemRefType,
    ModuleOp,
    NoneAttr,
    VectorType,
    i1,
    i64,
)
from xdsl.ir import Block, Operation, SSAValue
from xdsl.passes import ModulePass
from xdsl.rewriter import InsertPoint, Rewriter

from compiler.affine.linear import Linear, constant
from compiler.analysis.index_forms import Forms
from compiler.dialects.levels import require
from compiler.dialects.upstream import builders
from compiler.dialects.upstream.vector import ScatterOp
from compiler.dialects.upstream.walk import ops_in
from compiler.passes.touches import accessed_buffers

_INDEX = IndexType()
MAX_ROWS = 32
"""The most scatters of a tile, whose vectors are all in registers at once."""


@dataclass(frozen=True)
class TransposeScattersPass(ModulePass):
    """Replace unrolled scatters of one stride by vector stores of a tile, transposed in registers.

        scatter a, T[0] [0, 2, 4, 6];  scatter b, T[1] [0, 2, 4, 6]
      ->
        store (a0 b0 a1 b1), T[0];  store (a2 b2 a3 b3), T[4]

    The scatters are in one block, with one mask and no other access to their buffer between them, and their first
    elements are neighbours. Other scatters do not change. The transposition takes log2(rows) perfect shuffles of each
    vector (Stone 1971), as in the packing of BLIS' and Eigen's kernels.

    `python -m benchmarks.price transposes`, times without over with: convolutions 1.10 to 1.53, matrix products 1.09 to
    1.14, attention 1.03, gradients of weights 1.06.
    """

    name = "transpose-scatters"
    anchor: ClassVar = "func.func"

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        require(op, "low", self.name)
        for block in [b for o in ops_in(op) for r in o.regions for b in r.blocks]:
            for tile in list(_tiles(block)):
                _TransposedStores(tile).build()


@dataclass(frozen=True)
class _Row:
    """A scatter, and the offset of its first element in the buffer, in elements."""

    op: ScatterOp
    offset: Linear


@dataclass(frozen=True)
class _Tile:
    """Scatters of one stride (in elements) and one mask with neighbouring first elements, in the order of memory.
    `last` is the last of them in the block; `lanes` is the number of elements of each."""

    rows: tuple[_Row, ...]
    last: ScatterOp
    stride: int
    lanes: int

    @property
    def width(self) -> int:
        """The number of shuffled vectors: the rows, padded to a power of two."""
        return 1 << (len(self.rows) - 1).bit_length()

    @property
    def is_dense(self) -> bool:
        """Whether the transposed rows are contiguous."""
        return len(self.rows) == self.width == self.stride

    @property
    def can_be_shuffled(self) -> bool:
        """Whether the number of lanes is even, and a multiple of the width or, in a dense tile, a divisor of it."""
        parts = self.is_dense and self.width % self.lanes == 0
        return self.lanes % 2 == 0 and (parts or self.lanes % self.width == 0)


def _tiles(block: Block) -> Iterator[_Tile]:
    """Yield the tiles of a block: runs of scatters without another access to their buffer."""
    forms = Forms()
    open_runs: dict[SSAValue, list[_Row]] = {}
    for op in block.ops:
        used = accessed_buffers(op, open_runs) if open_runs else ()
        for base in [base for base in open_runs if base in used and not _continues_run(open_runs[base][0].op, op)]:
            yield from _tile_of(open_runs.pop(base))
        if isinstance(op, ScatterOp) and _stride(op) is not None:
            open_runs.setdefault(op.base, []).append(_Row(op, _offset(forms, op)))
    for rows in open_runs.values():
        yield from _tile_of(rows)


def _continues_run(first: ScatterOp, op: Operation) -> bool:
    """Return whether an op is a scatter to the buffer of a run, with the run's mask, lane offsets and vector type."""
    if not isinstance(op, ScatterOp) or op.base is not first.base:
        return False
    return op.mask is first.mask and op.index_vec is first.index_vec and op.value.type == first.value.type


def _tile_of(rows: list[_Row]) -> Iterator[_Tile]:
    """Yield the tile of a run if its rows have consecutive offsets and number from 2 to min(stride, MAX_ROWS)."""
    last, stride = rows[-1].op, _stride(rows[0].op)
    assert stride is not None and isinstance(last.value.type, VectorType)
    ordered = tuple(sorted(rows, key=lambda row: row.offset.constant))
    first = ordered[0].offset
    if [row.offset - first for row in ordered] != [constant(number) for number in range(len(rows))]:
        return
    tile = _Tile(ordered, last, stride, last.value.type.get_shape()[0])
    if 2 <= len(rows) <= min(stride, MAX_ROWS) and tile.can_be_shuffled:
        yield tile


def _stride(op: ScatterOp) -> int | None:
    """Return the distance between lanes of a scatter, in elements; None unless it is a positive constant, and the
    buffer is static and row-major."""
    type = op.base.type
    assert isinstance(type, MemRefType)
    if not type.has_static_shape() or not isinstance(type.layout, NoneAttr):
        return None
    match op.index_vec.owner:
        case arith.ConstantOp(value=DenseIntOrFPElementsAttr() as literal):
            steps = [int(v) for v in literal.get_values()]
            if len(steps) > 1 and steps[1] > 0 and steps == [steps[1] * n for n in range(len(steps))]:
                return steps[1]
    return None


def _strides(op: ScatterOp) -> list[int]:
    """Return the row-major stride of each dimension of a scatter's buffer, in elements."""
    assert isinstance(op.base.type, MemRefType)
    shape = op.base.type.get_shape()
    return [prod(shape[d + 1 :]) for d in range(len(shape))]


def _offset(forms: Forms, op: ScatterOp) -> Linear:
    total = Linear()
    for index, size in zip(op.indices, _strides(op), strict=True):
        total = total + forms.of(index).scaled(size)
    return total


class _TransposedStores:
    """The shuffles and stores that replace the scatters of a tile, at the last of them. base, indices, mask: of the
    tile's first scatter. dim, step: the dimension of the buffer along which lanes advance, and by how many elements of
    it."""

    def __init__(self, tile: _Tile) -> None:
        self.tile = tile
        first = tile.rows[0].op
        self.base, self.indices, self.mask = first.base, list(first.indices), first.mask
        self.dim = next(d for d, size in enumerate(_strides(first)) if tile.stride % size == 0)
        self.step = tile.stride // _strides(first)[self.dim]
        self._insert = Builder(InsertPoint.before(tile.last)).insert

    def build(self) -> None:
        """Store the transposed tile: in whole vectors if it is dense, else row by row."""
        tile = self.tile
        size = tile.lanes if tile.is_dense else tile.width
        for number, value in enumerate(self._pieces(size)):
            elements = range(number * size, (number + 1) * size)
            lanes = [n // tile.width if n % tile.width < len(tile.rows) else None for n in elements]
            self._store(value, *divmod(number * size, tile.width), lanes)
        for row in tile.rows:
            Rewriter.erase_op(row.op)

    def _pieces(self, size: int) -> Iterator[SSAValue]:
        """Yield the tile's elements in the order of memory, in vectors of `size`."""
        for value in self._transposed():
            for start in range(0, self.tile.lanes, size):
                yield value if size == self.tile.lanes else self._shuffle(value, value, range(start, start + size))

    def _transposed(self) -> list[SSAValue]:
        """Transpose by perfect shuffles; return the tile's elements in the order of memory."""
        values = [row.op.value for row in self.tile.rows]
        values += values[-1:] * (self.tile.width - len(values))
        count, half = self.tile.lanes, self.tile.lanes // 2
        low = [n // 2 + n % 2 * count for n in range(count)]
        high = [pick + half for pick in low]
        for _ in range(self.tile.width.bit_length() - 1):
            pairs = zip(values[: len(values) // 2], values[len(values) // 2 :], strict=True)
            values = [self._shuffle(a, b, picks) for a, b in pairs for picks in (low, high)]
        return values

    def _store(self, value: SSAValue, row: int, column: int, lanes: Sequence[int | None]) -> None:
        """Store a vector at a row and column of the transposed tile. lanes: for each element the lane of the scatters
        whose mask it has, None for padding, which is not stored."""
        indices = list(self.indices)
        if row:
            indices[self.dim] = self._add_constant(indices[self.dim], row * self.step)
        if column:
            indices[-1] = self._add_constant(indices[-1], column)
        is_full = None not in lanes
        if _is_true(self.mask) and is_full:
            self._insert(builders.store_lanes(value, self.base, indices))
            return
        if _is_true(self.mask):
            mask = self._mask_constant([int(lane is not None) for lane in lanes])
        else:
            no_lanes = self._mask_constant([0] * self.tile.lanes)
            mask = self._shuffle(self.mask, no_lanes, [self.tile.lanes if lane is None else lane for lane in lanes])
        self._insert(builders.store_masked(self.base, indices, mask, value))

    def _shuffle(self, a: SSAValue, b: SSAValue, lanes: Sequence[int]) -> SSAValue:
        assert isinstance(a.type, VectorType)
        type, mask = builders.vector_type(a.type.element_type, len(lanes)), _shuffle_mask(tuple(lanes))
        shuffle = vector.ShuffleOp.create(operands=[a, b], result_types=[type], properties={"mask": mask})
        return self._insert(shuffle).results[0]

    def _add_constant(self, index: SSAValue, number: int) -> SSAValue:
        shift = self._insert(builders.constant(IntegerAttr(number, _INDEX)))
        return self._insert(builders.added(index, shift.result)).result

    def _mask_constant(self, values: Sequence[int]) -> SSAValue:
        type = builders.vector_type(i1, len(values))
        return self._insert(builders.constant(DenseIntOrFPElementsAttr.from_list(type, list(values)))).result


@lru_cache(maxsize=256)
def _shuffle_mask(picks: tuple[int, ...]) -> DenseArrayBase:
    return DenseArrayBase.from_list(i64, picks)


def _is_true(mask: SSAValue) -> bool:
    """Return whether a mask is a constant that is true in all lanes."""
    match mask.owner:
        case arith.ConstantOp(value=DenseIntOrFPElementsAttr() as literal):
            return all(literal.get_values())
    return False
