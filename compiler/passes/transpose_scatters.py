"""Scatters that together write neighbouring elements become vector stores of a transposed tile."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from math import prod

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

from compiler.affine.linear import Linear
from compiler.analysis.accesses import touched
from compiler.analysis.index_forms import Forms
from compiler.dialects.levels import require
from compiler.dialects.upstream.vector import ScatterOp

MOST_ROWS = 32
"""The most scatters that become one tile: its vectors live in registers at once."""


@dataclass(frozen=True)
class TransposeScattersPass(ModulePass):
    """Store what unrolled scatters of one stride write side by side as rows of a tile, transposed in registers.

        scatter a, T[0] [0, 2, 4, 6];  scatter b, T[1] [0, 2, 4, 6]
      ->
        store (a0 b0 a1 b1), T[0];  store (a2 b2 a3 b3), T[4]

    The scatters stand in one block, with one mask, nothing between them touches their buffer, and the first elements
    of their lanes are neighbours. Where that is not so they stay as they are. The transposition takes log2(rows)
    perfect shuffles of each vector (Stone 1971), as packing in BLIS' and Eigen's kernels does.
    """

    name = "transpose-scatters"

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        require(op, "low", self.name)
        for block in [b for o in op.walk() for r in o.regions for b in r.blocks]:
            for tile in list(_tiles(block)):
                _store(tile)


@dataclass(frozen=True)
class _Row:
    """One scatter: where it starts, in elements of its buffer."""

    op: ScatterOp
    offset: Linear


@dataclass(frozen=True)
class _Tile:
    """Scatters of one stride and one mask whose places are neighbours, in the order of memory."""

    rows: tuple[_Row, ...]
    last: ScatterOp
    stride: int
    lanes: int

    @property
    def width(self) -> int:
        """How many vectors are shuffled: the rows, filled up to a power of two."""
        return 1 << (len(self.rows) - 1).bit_length()

    @property
    def is_dense(self) -> bool:
        """Whether the transposed rows follow each other without a gap."""
        return len(self.rows) == self.width == self.stride

    @property
    def can_be_shuffled(self) -> bool:
        """Whether vectors can be halved, and each holds whole rows or is a whole part of one."""
        parts = self.is_dense and self.width % self.lanes == 0
        return self.lanes % 2 == 0 and (parts or self.lanes % self.width == 0)


def _tiles(block: Block) -> Iterator[_Tile]:
    """The tiles of a block; the scatters of each follow each other with no other access to their buffer."""
    forms = Forms()
    open: dict[SSAValue, list[_Row]] = {}
    for op in block.ops:
        used = touched(op) if open else set()
        for base in [base for base, rows in open.items() if base in used and not _may_join(rows[0].op, op)]:
            yield from _cut(open.pop(base))
        if isinstance(op, ScatterOp) and _stride(op) is not None:
            open.setdefault(op.base, []).append(_Row(op, _offset(forms, op)))
    for rows in open.values():
        yield from _cut(rows)


def _may_join(first: ScatterOp, op: Operation) -> bool:
    """Whether an op that touches the buffer of a run of scatters is one of them."""
    if not isinstance(op, ScatterOp) or op.base is not first.base:
        return False
    return op.mask is first.mask and op.index_vec is first.index_vec and op.value.type == first.value.type


def _cut(rows: list[_Row]) -> Iterator[_Tile]:
    """The tiles of a run: those whose places differ by one, in the order of memory."""
    apart: dict[tuple[object, ...], list[_Row]] = {}
    for row in rows:
        apart.setdefault(row.offset.terms, []).append(row)
    last = rows[-1].op
    for group in apart.values():
        group.sort(key=lambda row: row.offset.constant)
        start = group[0].offset.constant
        stride = _stride(group[0].op)
        assert stride is not None
        if [row.offset.constant - start for row in group] != list(range(len(group))):
            continue
        tile = _Tile(tuple(group), last, stride, _lanes(group[0].op))
        if 2 <= len(group) <= min(stride, MOST_ROWS) and len(apart) == 1 and tile.can_be_shuffled:
            yield tile


def _stride(op: ScatterOp) -> int | None:
    """By how many elements a scatter steps from lane to lane, if that is a constant above zero; its buffer is static
    and row-major."""
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


def _lanes(op: ScatterOp) -> int:
    assert isinstance(op.value.type, VectorType)
    return op.value.type.get_shape()[0]


def _sizes(op: ScatterOp) -> list[int]:
    assert isinstance(op.base.type, MemRefType)
    shape = op.base.type.get_shape()
    return [prod(shape[d + 1 :]) for d in range(len(shape))]


def _offset(forms: Forms, op: ScatterOp) -> Linear:
    total = Linear()
    for index, size in zip(op.indices, _sizes(op), strict=True):
        total = total + forms.of(index).scaled(size)
    return total


def _store(tile: _Tile) -> None:
    """Replace the scatters of a tile by shuffles and stores in the place of the last."""
    _Builder(tile).build()
    for row in tile.rows:
        row.op.detach()
        row.op.erase()


class _Builder:
    """Inserts what stands in the place of a tile's scatters."""

    def __init__(self, tile: _Tile) -> None:
        self.tile = tile
        block = tile.last.parent
        assert block is not None
        self.block = block
        first = tile.rows[0].op
        self.base, self.indices, self.mask = first.base, list(first.indices), first.mask
        self.all_lanes = _is_true(first.mask)
        self.dim = next(d for d, size in enumerate(_sizes(first)) if tile.stride % size == 0)
        self.step = tile.stride // _sizes(first)[self.dim]

    def build(self) -> None:
        tile = self.tile
        vectors = self._transposed()
        if tile.is_dense and tile.lanes % tile.width == 0:
            per_vector = tile.lanes // tile.width
            for number, value in enumerate(vectors):
                picks = [number * per_vector + lane // tile.width for lane in range(tile.lanes)]
                self._write(value, number * per_vector, picks)
            return
        if tile.is_dense:
            per_row = tile.width // tile.lanes
            for number, value in enumerate(vectors):
                self._write(value, number // per_row, [number // per_row] * tile.lanes, number % per_row * tile.lanes)
            return
        per_vector = tile.lanes // tile.width
        for lane in range(tile.lanes):
            value, start = vectors[lane // per_vector], lane % per_vector * tile.width
            row = value if per_vector == 1 else self._shuffled(value, value, range(start, start + tile.width))
            none = tile.lanes
            picks = [lane if n < len(tile.rows) else none for n in range(tile.width)]
            self._write(row, lane, picks)

    def _transposed(self) -> list[SSAValue]:
        """The tile's elements in the order of memory, by perfect shuffles of all vectors."""
        values = [row.op.value for row in self.tile.rows]
        values += values[-1:] * (self.tile.width - len(values))
        count, half = self.tile.lanes, self.tile.lanes // 2
        low = [n // 2 + n % 2 * count for n in range(count)]
        high = [pick + half for pick in low]
        rounds = self.tile.width.bit_length() - 1
        for _ in range(rounds):
            pairs = zip(values[: len(values) // 2], values[len(values) // 2 :], strict=True)
            values = [self._shuffled(a, b, picks) for a, b in pairs for picks in (low, high)]
        return values

    def _write(self, value: SSAValue, row: int, picks: Sequence[int], behind: int = 0) -> None:
        """Store a vector at a transposed row; `picks` says of each lane which lane of the mask it is of."""
        places = list(self.indices)
        if row:
            places[self.dim] = self._plus(places[self.dim], row * self.step)
        if behind:
            places[-1] = self._plus(places[-1], behind)
        cut = any(pick == self.tile.lanes for pick in picks)
        if self.all_lanes and not cut:
            self._add(vector.StoreOp(value, self.base, places))
            return
        if self.all_lanes:
            mask = self._truths([int(pick < self.tile.lanes) for pick in picks])
        else:
            none = self._truths([0] * self.tile.lanes)
            mask = self._shuffled(self.mask, none, picks)
        self._add(vector.MaskedStoreOp.build(operands=[self.base, places, mask, value]))

    def _shuffled(self, one: SSAValue, other: SSAValue, picks: Sequence[int]) -> SSAValue:
        assert isinstance(one.type, VectorType)
        type = VectorType(one.type.element_type, [len(picks)])
        return self._add(vector.ShuffleOp(one, other, DenseArrayBase.from_list(i64, list(picks)), result_type=type))

    def _plus(self, index: SSAValue, constant: int) -> SSAValue:
        return self._add(arith.AddiOp(index, self._add(arith.ConstantOp(IntegerAttr(constant, IndexType())))))

    def _truths(self, values: Sequence[int]) -> SSAValue:
        type = VectorType(i1, [len(values)])
        return self._add(arith.ConstantOp(DenseIntOrFPElementsAttr.from_list(type, list(values))))

    def _add(self, op: Operation) -> SSAValue:
        self.block.insert_op_before(op, self.tile.last)
        return op.results[0] if op.results else self.base


def _is_true(mask: SSAValue) -> bool:
    """Whether a mask is the constant that is true in each lane."""
    match mask.owner:
        case arith.ConstantOp(value=DenseIntOrFPElementsAttr() as literal):
            return all(literal.get_values())
    return False
