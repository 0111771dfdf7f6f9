"""Reads of whole tensors inside of bodies at an index that data decide: a te.gather before the compute."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from xdsl.dialects.builtin import FloatAttr, IndexType, IntegerAttr, IntegerType, TensorType, i64
from xdsl.dialects.tensor import ExtractOp
from xdsl.ir import Attribute, Block, Operation, SSAValue
from xdsl.ir.affine import AffineExpr, AffineMap, AffineSymExpr

from compiler.dialects import te
from compiler.dialects.access import AccessAttr, axis_attribute
from compiler.dialects.gather import Gathered
from compiler.dialects.upstream.casts import IndexCastOp
from compiler.lowering.linalg_to_te.reads import ExtractedGather, affine_index
from compiler.lowering.linalg_to_te.values import Literal, refusal

if TYPE_CHECKING:
    from compiler.lowering.linalg_to_te.bodies import ComputeBody


def gather(body: ComputeBody, read: ExtractedGather, block: Block, dims: Sequence[AffineExpr]) -> SSAValue:
    """Append the te.gather of a tensor.extract over all axes of a body; return it as a scalar of the body.

    An index that is no expression of the axes is read from an integer tensor: that of the body, or one computed before.
    Without a guard an index outside the table, which linalg leaves undefined, reads 0.
    """
    op = read.op
    indices: list[tuple[SSAValue, AccessAttr]] = []
    exprs: list[AffineExpr] = []
    for value in read.index:
        expr = affine_index(value, dims)
        if expr is None:
            expr = AffineSymExpr(len(indices))
            indices.append(_index_tensor(body, op, value, block, dims))
        exprs.append(expr)
    table = body.values.tensor(op.tensor, op)
    axes = [axis_attribute(axis.label, axis.size) for axis in body.axes]
    assert isinstance(table.type, TensorType)
    element = table.type.get_element_type()
    otherwise = read.otherwise or _zero(element)
    map = AffineMap(len(axes), len(indices), tuple(exprs))
    gathered = Gathered(map, otherwise, table, [tensor for tensor, _ in indices], [access for _, access in indices])
    type = TensorType(element, [axis.size for axis in axes])
    result = body.values.add(te.GatherOp(body.values.label(body.source, ".gather"), axes, gathered, type), op)
    return body.read_te(result, AccessAttr(AffineMap.identity(len(axes))))


def _zero(element: Attribute) -> Literal:
    if isinstance(element, IntegerType | IndexType):
        return IntegerAttr(0, element)
    return FloatAttr(0.0, element)  # type: ignore[call-overload, no-any-return]


def _index_tensor(
    body: ComputeBody, op: ExtractOp, value: SSAValue, block: Block, dims: Sequence[AffineExpr]
) -> tuple[SSAValue, AccessAttr]:
    """The integer tensor that has an index, and its access."""
    owner = value.owner
    source = owner.operands[0] if isinstance(owner, Operation) and owner.name == "arith.index_cast" else value
    if source in body.arguments:
        operand, map = body.arguments[source]
        tensor = body.values.tensors.get(operand)
        if tensor is not None and tensor not in body.values.splats:
            return tensor, AccessAttr(map)
    if isinstance(source.owner, Block) and source not in body.arguments:
        raise refusal(op, "reads at an index that depends on an output")
    axes = [axis_attribute(axis.label, axis.size) for axis in body.axes]
    inner = body.like(axes)
    scalars: dict[SSAValue, SSAValue] = {}
    inner.copy(block, scalars, dims, [source])
    index = inner.value(source, scalars)
    if isinstance(index.type, IndexType):
        index = inner.add(IndexCastOp(index, i64))
    computed = inner.compute(body.values.label(body.source, ".index"), [index])
    return body.values.add(computed, op), AccessAttr(AffineMap.identity(len(axes)))
