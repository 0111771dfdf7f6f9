"""Scalar bodies of linalg.generic, made of te's, with reads under conditions and at data-dependent indices."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from xdsl.dialects import arith
from xdsl.dialects.affine import ApplyOp
from xdsl.dialects.builtin import AffineMapAttr, IndexType, IntegerAttr, TensorType, i64
from xdsl.dialects.tensor import ExtractOp
from xdsl.ir import Attribute, Block, Operation, SSAValue
from xdsl.ir.affine import AffineConstraintKind, AffineExpr, AffineMap, AffineSet, AffineSymExpr

from compiler.dialects import te
from compiler.dialects.checks import element_type
from compiler.dialects.upstream.arith import CmpiOp, SelectOp
from compiler.dialects.upstream.casts import ExtUIOp, IndexCastOp
from compiler.dialects.upstream.linalg.special import IndexOp
from compiler.types.elements import is_unsigned, scalar_type

_PREDICATES = {AffineConstraintKind.ge: "sge", AffineConstraintKind.le: "sle", AffineConstraintKind.eq: "eq"}


class GenericBody:
    """The body of a linalg.generic under construction, over `count` dimensions."""

    def __init__(self, block: Block, count: int) -> None:
        self.block = block
        self.count = count
        self._indices: dict[int, SSAValue] = {}
        self._literals: dict[Attribute, SSAValue] = {}

    def add(self, op: Operation) -> SSAValue:
        """Append an op, and return its first result."""
        self.block.add_op(op)
        return op.results[0]

    def index(self, dim: int) -> SSAValue:
        """Emit the value of a dimension, a linalg.index, once; return it."""
        if dim not in self._indices:
            op = IndexOp.build(properties={"dim": IntegerAttr(dim, i64)}, result_types=[IndexType()])
            self._indices[dim] = self.add(op)
        return self._indices[dim]

    def literal(self, value: Attribute) -> SSAValue:
        """Emit a constant, once; return its value."""
        if value not in self._literals:
            self._literals[value] = self.add(arith.ConstantOp(value))  # type: ignore[arg-type]
        return self._literals[value]

    def expression(self, expr: AffineExpr) -> SSAValue:
        """Emit the value of an affine expression of the dimensions, an index; return it."""
        map = AffineMap(self.count, 0, (expr,))
        return self.add(ApplyOp([self.index(dim) for dim in range(self.count)], AffineMapAttr(map)))

    def condition(self, condition: AffineSet) -> SSAValue:
        """Emit the conjunction of a set's constraints on the dimensions, an i1, and return it; the constant true
        without constraints."""
        zero = IntegerAttr(0, IndexType())
        truths = [
            self.add(CmpiOp(self.expression(c.lhs - c.rhs), self.literal(zero), _PREDICATES[c.kind]))
            for c in condition.constraints
        ]
        return self.all_of(truths)

    def all_of(self, truths: Sequence[SSAValue]) -> SSAValue:
        """Emit the conjunction of values of type i1; the constant true without any. Return it."""
        if not truths:
            return self.literal(IntegerAttr(1, 1))
        joined = truths[0]
        for truth in truths[1:]:
            joined = self.add(arith.AndIOp(joined, truth))
        return joined

    def guarded(self, source: SSAValue, indices: Sequence[SSAValue], holds: SSAValue, otherwise: Attribute) -> SSAValue:
        """Emit the element of a tensor at `indices` if the i1 `holds` is true, else `otherwise`, and return it; where
        `holds` is false, the element at index 0 is read and dropped."""
        zero = self.literal(IntegerAttr(0, IndexType()))
        inside = [self.add(SelectOp(holds, index, zero)) for index in indices]
        element = source.type.get_element_type()  # type: ignore[attr-defined]
        value = self.add(ExtractOp(source, inside, element))
        return self.add(SelectOp(holds, value, self.literal(otherwise)))

    def conditional(self, source: SSAValue, access: te.AccessAttr) -> SSAValue:
        """Emit the element that an access with a condition reads; the access's `otherwise` where the condition fails.
        Return it. Requires a condition."""
        assert access.condition is not None and access.otherwise is not None
        holds = self.condition(access.condition)
        indices = [self.expression(expr) for expr in access.affine_map.results]
        return self.guarded(source, indices, holds, access.otherwise)

    def gathered(self, op: te.GatherOp, table: SSAValue, values: Sequence[SSAValue]) -> SSAValue:
        """Emit the element that a gather reads from its table; the op's literal `outside` where an index is out of
        bounds. `values` are the elements of its index tensors, by their number. Return it."""
        zero, truths, indices = self.literal(IntegerAttr(0, IndexType())), [], []
        for expr, size in zip(op.table_map.data.results, table.type.get_shape(), strict=True):  # type: ignore[attr-defined]
            if not isinstance(expr, AffineSymExpr):
                indices.append(self.expression(expr))
                continue
            index = self._as_index(values[expr.position], is_unsigned(element_type(op.indices[expr.position])))
            end = self.literal(IntegerAttr(size, IndexType()))
            truths += [self.add(CmpiOp(index, zero, "sge")), self.add(CmpiOp(index, end, "slt"))]
            indices.append(index)
        return self.guarded(table, indices, self.all_of(truths), op.outside)

    def _as_index(self, value: SSAValue, unsigned: bool) -> SSAValue:
        """Convert an integer to an index; an unsigned one of 2^63 or more becomes negative, out of bounds."""
        if unsigned and value.type != i64:
            value = self.add(ExtUIOp(value, i64))
        return self.add(IndexCastOp(value, IndexType()))

    def copy(self, block: Block, scalars: dict[SSAValue, SSAValue], dims: Mapping[str, int]) -> list[SSAValue]:
        """Copy the ops of a te body; `scalars` maps its arguments, and is extended by the results of its ops; `dims`
        maps each axis to its dimension. Return the yielded values."""
        for op in block.ops:
            if isinstance(op, te.YieldOp):
                return [scalars[value] for value in op.values]
            if isinstance(op, te.IndexOp):
                scalars[op.value] = self.index(dims[op.label.data])
                continue
            new = op.clone(scalars)
            self.block.add_op(new)
            scalars |= zip(op.results, new.results, strict=True)
        raise AssertionError("a body ends with a yield")


def signless(type: Attribute) -> TensorType:
    """Return a tensor type with a signless element type in place of a signed or unsigned one."""
    assert isinstance(type, TensorType)
    return TensorType(scalar_type(type.get_element_type()), type.get_shape())
