"""One gather: read the index values, clamp them to the table, load, select the value outside, write.

The load is unconditional but for the guard: where an index value is outside, element zero is loaded and dropped. Rows
that are contiguous in a vectorized axis are vector loads; where index values differ from lane to lane, each lane loads.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from xdsl.dialects import memref, vector
from xdsl.dialects.arith import AndIOp, ExtUIOp, IndexCastOp
from xdsl.dialects.builtin import IndexType, IntegerType, MemRefType, VectorType, i64
from xdsl.dialects.vector import ExtractOp
from xdsl.ir import Attribute, SSAValue
from xdsl.ir.affine import AffineSymExpr

from compiler.affine import linear as lin
from compiler.affine.condition import Condition
from compiler.affine.linear import Linear
from compiler.dialects import loop
from compiler.dialects.checks import element_type
from compiler.dialects.gather import affine_part
from compiler.dialects.upstream.arith import CmpiOp, SelectOp
from compiler.elements import is_unsigned
from compiler.errors import LoweringError
from compiler.lowering.loop_to_low import scalars
from compiler.lowering.loop_to_low.blocks import Emitter, under_guard
from compiler.lowering.loop_to_low.context import Context
from compiler.lowering.loop_to_low.scopes import INDEX


def emit_gather(context: Context, block: loop.GatherOp, guard: Sequence[Condition]) -> None:
    """Emit a gather; `guard` holds the conditions that differ between lanes, all others are settled."""
    under_guard(context, guard, lambda open: _Gather(context, block, open).emit())


@dataclass(frozen=True)
class _Place:
    """Clamped index values, by dimension of the table, and whether all of them were inside."""

    values: dict[int, SSAValue]
    inside: SSAValue


class _Gather(Emitter):
    """The emission of one gather."""

    def emit(self) -> None:
        """Index values, the element or the value outside, the write."""
        block: loop.GatherOp = self.block
        if block.table in self.context.private:
            raise LoweringError(f"block '{block.label.data}' gathers from a table that lives in a vectorized loop")
        values = [self._read(v, access) for v, access in zip(block.indices, block.reads, strict=True)]
        results = block.table_map.data.results
        dims = {d: values[e.position] for d, e in enumerate(results) if isinstance(e, AffineSymExpr)}
        forms = [lin.linear(affine_part(e), self.axes, self.scopes.ranges) for e in results]
        self._write(block.targets[0], block.writes.data[0], self._elements(dims, forms))

    @property
    def _table(self) -> SSAValue:
        return self.context.buffers[self.block.table]

    @property
    def _type(self) -> Attribute:
        assert isinstance(self._table.type, MemRefType)
        element: Attribute = self._table.type.element_type
        return element

    def _elements(self, dims: dict[int, SSAValue], forms: Sequence[Linear]) -> SSAValue:
        """The element read, a vector where it differs from lane to lane."""
        wide = any(scalars.lanes_of(value) is not None for value in dims.values())
        if not wide and not self._varies(forms):
            return self._chosen(self._clamped(dims), forms)
        if wide or not self.contiguous(self._table, forms) or len(forms) - 1 in dims:
            return self._lanes(dims, forms)
        place = self._clamped(dims)
        lanes = self.context.lanes
        loaded = self._load_row(self._indices(place, [self.context.at_lane(form, 0) for form in forms]))
        inside = scalars.widen(self.scopes, place.inside, lanes)
        outside = self.scopes.constant(scalars.splat(self.block.outside, lanes))
        return self.scopes.add(SelectOp(inside, loaded, outside))

    def _load_row(self, places: Sequence[SSAValue]) -> SSAValue:
        type = VectorType(self._type, [self.context.lanes])
        if self.mask is None:
            return self.scopes.add(vector.LoadOp(self._table, places, type))
        through = self.scopes.constant(scalars.splat(self.block.outside, self.context.lanes))
        return self.scopes.add(vector.MaskedLoadOp(self._table, places, self.mask, through))

    def _lanes(self, dims: dict[int, SSAValue], forms: Sequence[Linear]) -> SSAValue:
        """Each lane by itself."""
        self._count_lanes()
        found = []
        for lane in range(self.context.lanes):
            at = [self.context.at_lane(form, lane) for form in forms]
            tests = self._at(lane, self.guard)
            found.append(self._lane(self._of_lane(dims, lane), at, tests))
        return self._gathered(found, self._type)

    def _lane(self, dims: dict[int, SSAValue], forms: Sequence[Linear], tests: Sequence[Condition]) -> SSAValue:
        outside = self.block.outside
        if any(test.never(self.scopes.ranges) for test in tests):
            return self.scopes.constant(outside)
        open = [test for test in tests if not test.always(self.scopes.ranges)]
        if not open:
            return self._chosen(self._clamped(dims), forms)
        return self._either(open, False, lambda: self._chosen(self._clamped(dims), forms), outside)

    def _of_lane(self, dims: dict[int, SSAValue], lane: int) -> dict[int, SSAValue]:
        found = {}
        for dim, value in dims.items():
            if isinstance(value.type, VectorType):
                value = self.scopes.add(ExtractOp(value, [lane], value.type.element_type))
            found[dim] = value
        return found

    def _chosen(self, place: _Place, forms: Sequence[Linear]) -> SSAValue:
        """One element, or the value outside."""
        loaded = self.scopes.add(memref.LoadOp.get(self._table, self._indices(place, forms)))
        return self.scopes.add(SelectOp(place.inside, loaded, self.scopes.constant(self.block.outside)))

    def _indices(self, place: _Place, forms: Sequence[Linear]) -> list[SSAValue]:
        return [place.values[d] if d in place.values else self.scopes.index(form) for d, form in enumerate(forms)]

    def _clamped(self, dims: dict[int, SSAValue]) -> _Place:
        """Scalar index values, zero where one is outside; negative ones are great as unsigned."""
        assert isinstance(self._table.type, MemRefType)
        values: dict[int, SSAValue] = {}
        inside: SSAValue | None = None
        unsigned = [is_unsigned(element_type(value)) for value in self.block.indices]
        for (dim, value), plain in zip(dims.items(), unsigned, strict=True):
            at = self._as_index(value, plain)
            size = self.scopes.index_constant(self._table.type.get_shape()[dim])
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
