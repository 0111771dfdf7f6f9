"""One gather: read the index values, clamp them to the table, load, select the value outside, write.

The load is unconditional but for the guard: where an index value is outside, element zero is loaded and dropped. Rows
that are contiguous in a vectorized axis are vector loads; where index values differ from lane to lane, each lane loads.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial

from xdsl.dialects import memref, vector
from xdsl.dialects.arith import AndIOp, ExtUIOp, IndexCastOp
from xdsl.dialects.builtin import IndexType, IntegerType, MemRefType, VectorType, i64
from xdsl.dialects.vector import ExtractOp
from xdsl.ir import Attribute, SSAValue

from compiler.affine import linear as lin
from compiler.affine.condition import Condition
from compiler.affine.linear import Linear
from compiler.dialects.upstream.arith import CmpiOp, SelectOp
from compiler.lowering.loop_to_low import scalars
from compiler.lowering.loop_to_low.accesses import Accessor
from compiler.lowering.loop_to_low.blocks import under_guard
from compiler.lowering.loop_to_low.context import Context
from compiler.lowering.loop_to_low.lanes import Element
from compiler.lowering.loop_to_low.scopes import INDEX
from compiler.program.tree import Block, Table
from compiler.support.errors import LoweringError
from compiler.types.elements import is_unsigned


def emit_gather(context: Context, block: Block, guard: Sequence[Condition]) -> None:
    """Emit a gather; `guard` holds the conditions that differ between lanes, all others are settled."""
    table = block.table
    assert table is not None
    under_guard(context, guard, lambda open: _Gather(context, block, open).gather(table))


@dataclass(frozen=True)
class _Place:
    """Clamped index values, by dimension of the table, and whether all of them were inside."""

    values: dict[int, SSAValue]
    inside: SSAValue


class _Gather(Accessor):
    """The emission of one gather."""

    def gather(self, table: Table) -> None:
        """Index values, the element or the value outside, the write."""
        if table.buffer in self.context.private:
            raise LoweringError(f"block '{self.block.label}' gathers from a table that lives in a vectorized loop")
        self.table, self.outside = self.context.buffers[table.buffer], table.otherwise
        values = [self._read(access) for access in self.block.reads]
        dims = {d: values[index] for d, index in enumerate(table.index) if isinstance(index, int)}
        affine = [lin.constant(0) if isinstance(index, int) else index for index in table.index]
        self._write(self.block.writes[0], self._elements(dims, self.context.over(self.axes, affine)))

    @property
    def _type(self) -> Attribute:
        assert isinstance(self.table.type, MemRefType)
        element: Attribute = self.table.type.element_type
        return element

    def _elements(self, dims: dict[int, SSAValue], forms: Sequence[Linear]) -> SSAValue:
        """The element read, a vector where it differs from lane to lane."""
        wide = any(scalars.lanes_of(value) is not None for value in dims.values())
        if not wide and not self._varies(forms):
            return self._chosen(self._clamped(dims), forms)
        if wide or not self.contiguous(Element(self.table, forms)) or len(forms) - 1 in dims:
            return self._lanes(dims, forms)
        place = self._clamped(dims)
        lanes = self.context.lanes
        loaded = self._load_row(self._indices(place, [self.context.at_lane(form, 0) for form in forms]))
        inside = scalars.widen(self.scopes, place.inside, lanes)
        outside = self.scopes.constant(scalars.splat(self.outside, lanes))
        return self.scopes.add(SelectOp(inside, loaded, outside))

    def _load_row(self, places: Sequence[SSAValue]) -> SSAValue:
        type = VectorType(self._type, [self.context.lanes])
        if self.mask is None:
            return self.scopes.add(vector.LoadOp(self.table, places, type))
        through = self.scopes.constant(scalars.splat(self.outside, self.context.lanes))
        return self.scopes.add(vector.MaskedLoadOp(self.table, places, self.mask, through))

    def _lanes(self, dims: dict[int, SSAValue], forms: Sequence[Linear]) -> SSAValue:
        """Each lane by itself."""
        self._count_lanes()
        values = []
        for lane in range(self.context.lanes):
            at = [self.context.at_lane(form, lane) for form in forms]
            tests = self._at(lane, self.guard)
            values.append(self._tested(tests, partial(self._lane, self._of_lane(dims, lane), at), self.outside))
        return self._gathered(values, self._type)

    def _lane(self, dims: dict[int, SSAValue], forms: Sequence[Linear]) -> SSAValue:
        return self._chosen(self._clamped(dims), forms)

    def _of_lane(self, dims: dict[int, SSAValue], lane: int) -> dict[int, SSAValue]:
        scalars_of_lane = {}
        for dim, value in dims.items():
            if isinstance(value.type, VectorType):
                value = self.scopes.add(ExtractOp(value, [lane], value.type.element_type))
            scalars_of_lane[dim] = value
        return scalars_of_lane

    def _chosen(self, place: _Place, forms: Sequence[Linear]) -> SSAValue:
        """One element, or the value outside."""
        loaded = self.scopes.add(memref.LoadOp.get(self.table, self._indices(place, forms)))
        return self.scopes.add(SelectOp(place.inside, loaded, self.scopes.constant(self.outside)))

    def _indices(self, place: _Place, forms: Sequence[Linear]) -> list[SSAValue]:
        return [place.values[d] if d in place.values else self.scopes.index(form) for d, form in enumerate(forms)]

    def _clamped(self, dims: dict[int, SSAValue]) -> _Place:
        """Scalar index values, zero where one is outside; negative ones are great as unsigned."""
        assert isinstance(self.table.type, MemRefType)
        values: dict[int, SSAValue] = {}
        inside: SSAValue | None = None
        unsigned = [is_unsigned(self._buffer(access).element) for access in self.block.reads]
        for (dim, value), plain in zip(dims.items(), unsigned, strict=True):
            at = self._as_index(value, plain)
            size = self.scopes.index_constant(self.table.type.get_shape()[dim])
            truth = self.scopes.add(CmpiOp(at, size, "ult"))
            values[dim] = self.scopes.add(SelectOp(truth, at, self.scopes.index_constant(0)))
            inside = truth if inside is None else self.scopes.add(AndIOp(inside, truth))
        assert inside is not None
        return _Place(values, inside)

    def _as_index(self, value: SSAValue, unsigned: bool) -> SSAValue:
        if isinstance(value.type, IndexType):
            return value
        if unsigned and isinstance(value.type, IntegerType) and value.type.width.data < 64:
            value = self.scopes.add(ExtUIOp(value, i64))
        return self.scopes.add(IndexCastOp(value, INDEX))
