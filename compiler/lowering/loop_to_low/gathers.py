"""One gather: read the index values, clamp them to the table, load, select the default if out of bounds, write.

Only the guard masks the load: for an index value out of bounds element zero is loaded and dropped. Rows that are
contiguous along a vectorized axis are vector loads; with index values that differ between lanes, each lane loads.
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
from compiler.lowering.loop_to_low.blocks import emit_under_guard
from compiler.lowering.loop_to_low.context import Context
from compiler.lowering.loop_to_low.lanes import Element
from compiler.lowering.loop_to_low.scopes import INDEX
from compiler.program.tree import Block, Table
from compiler.support.errors import LoweringError
from compiler.types.elements import is_unsigned


def emit_gather(context: Context, block: Block, guard: Sequence[Condition]) -> None:
    """Emit the gather `block`, which has a table. guard: the conditions over loops that no test around checks, since
    they differ between lanes. Raises LoweringError for a table of which each lane has a copy, for lanes that write
    different elements to one place, and if lanes that load one by one exceed MAX_STATEMENTS."""
    table = block.table
    assert table is not None
    emit_under_guard(context, guard, lambda untested: _Gather(context, block, untested).gather(table))


@dataclass(frozen=True)
class _TableIndex:
    """Clamped index values by dimension of the table, and an i1: true if all values were in bounds."""

    values: dict[int, SSAValue]
    inside: SSAValue


class _Gather(Accessor):
    """The emitter of one gather block."""

    def gather(self, table: Table) -> None:
        """Emit the reads of the index values, the read of the table and the write. Raises LoweringError for a table
        of which each lane has a copy."""
        if table.buffer in self.context.private:
            raise LoweringError(f"block '{self.block.label}' gathers from a table that lives in a vectorized loop")
        self.table, self.default = self.context.buffers[table.buffer], table.otherwise
        values = [self._read(access) for access in self.block.reads]
        dims = {d: values[index] for d, index in enumerate(table.index) if isinstance(index, int)}
        affine = [lin.constant(0) if isinstance(index, int) else index for index in table.index]
        self._write(self.block.writes[0], self._elements(dims, self.context.substitute_axes(self.axes, affine)))

    @property
    def _type(self) -> Attribute:
        assert isinstance(self.table.type, MemRefType)
        element: Attribute = self.table.type.element_type
        return element

    def _elements(self, dims: dict[int, SSAValue], forms: Sequence[Linear]) -> SSAValue:
        has_vector_index = any(scalars.lanes_of(value) is not None for value in dims.values())
        if not has_vector_index and not self._varies(forms):
            return self._element_or_default(self._clamp(dims), forms)
        if has_vector_index or not self.contiguous(Element(self.table, forms)) or len(forms) - 1 in dims:
            return self._elements_by_lane(dims, forms)
        table_index = self._clamp(dims)
        lanes = self.context.lanes
        loaded = self._load_row(self._indices(table_index, [self.context.at_lane(form, 0) for form in forms]))
        in_bounds = scalars.broadcast_to_lanes(self.scopes, table_index.inside, lanes)
        default = self.scopes.constant(scalars.splat(self.default, lanes))
        return self.scopes.add(SelectOp(in_bounds, loaded, default))

    def _load_row(self, indices: Sequence[SSAValue]) -> SSAValue:
        type = VectorType(self._type, [self.context.lanes])
        if self.mask is None:
            return self.scopes.add(vector.LoadOp(self.table, indices, type))
        pass_through = self.scopes.constant(scalars.splat(self.default, self.context.lanes))
        return self.scopes.add(vector.MaskedLoadOp(self.table, indices, self.mask, pass_through))

    def _elements_by_lane(self, dims: dict[int, SSAValue], forms: Sequence[Linear]) -> SSAValue:
        self._count_lanes()
        values = []
        for lane in range(self.context.lanes):
            lane_forms = [self.context.at_lane(form, lane) for form in forms]
            tests = self._conditions_of_lane(lane, self.guard)
            values.append(
                self._tested(
                    tests,
                    partial(self._element_of_lane, self._index_values_of_lane(dims, lane), lane_forms),
                    self.default,
                )
            )
        return self._vector_of(values, self._type)

    def _element_of_lane(self, dims: dict[int, SSAValue], forms: Sequence[Linear]) -> SSAValue:
        return self._element_or_default(self._clamp(dims), forms)

    def _index_values_of_lane(self, dims: dict[int, SSAValue], lane: int) -> dict[int, SSAValue]:
        scalars_of_lane = {}
        for dim, value in dims.items():
            if isinstance(value.type, VectorType):
                value = self.scopes.add(ExtractOp(value, [lane], value.type.element_type))
            scalars_of_lane[dim] = value
        return scalars_of_lane

    def _element_or_default(self, table_index: _TableIndex, forms: Sequence[Linear]) -> SSAValue:
        loaded = self.scopes.add(memref.LoadOp.get(self.table, self._indices(table_index, forms)))
        return self.scopes.add(SelectOp(table_index.inside, loaded, self.scopes.constant(self.default)))

    def _indices(self, table_index: _TableIndex, forms: Sequence[Linear]) -> list[SSAValue]:
        return [
            table_index.values[d] if d in table_index.values else self.scopes.index(form)
            for d, form in enumerate(forms)
        ]

    def _clamp(self, dims: dict[int, SSAValue]) -> _TableIndex:
        """Emit the scalar index values `dims`, by dimension of the table, with 0 in place of a value out of bounds; an
        unsigned comparison finds these, negative values included."""
        assert isinstance(self.table.type, MemRefType)
        values: dict[int, SSAValue] = {}
        inside: SSAValue | None = None
        unsigned = [is_unsigned(self._buffer(access).element) for access in self.block.reads]
        for (dim, value), is_unsigned_value in zip(dims.items(), unsigned, strict=True):
            index = self._as_index(value, is_unsigned_value)
            size = self.scopes.index_constant(self.table.type.get_shape()[dim])
            in_bounds_ = self.scopes.add(CmpiOp(index, size, "ult"))
            values[dim] = self.scopes.add(SelectOp(in_bounds_, index, self.scopes.index_constant(0)))
            inside = in_bounds_ if inside is None else self.scopes.add(AndIOp(inside, in_bounds_))
        assert inside is not None
        return _TableIndex(values, inside)

    def _as_index(self, value: SSAValue, unsigned: bool) -> SSAValue:
        if isinstance(value.type, IndexType):
            return value
        if unsigned and isinstance(value.type, IntegerType) and value.type.width.data < 64:
            value = self.scopes.add(ExtUIOp(value, i64))
        return self.scopes.add(IndexCastOp(value, INDEX))
