"""Copies of scalar bodies: their ops, reads of whole tensors, and a te.gather where data decide the index of one."""

from __future__ import annotations

from collections.abc import Container, Sequence

from xdsl.dialects.builtin import FloatAttr, IndexType, IntegerAttr, IntegerType, TensorType, i64
from xdsl.dialects.tensor import DimOp, ExtractOp
from xdsl.ir import Attribute, Block, Operation, SSAValue
from xdsl.ir.affine import AffineDimExpr, AffineExpr, AffineMap, AffineSet, AffineSymExpr

from compiler.dialects import te
from compiler.dialects.access import AccessAttr, axis_attribute
from compiler.dialects.gather import Gathered
from compiler.dialects.upstream.casts import IndexCastOp
from compiler.dialects.upstream.linalg.special import IndexOp
from compiler.lowering.linalg_to_te.bodies import ComputeBody, check_scalar_op
from compiler.lowering.linalg_to_te.reads import (
    ExtractedGather,
    ExtractedRead,
    affine_index,
    gathers_in,
    reads_in,
    static_extent,
)
from compiler.lowering.linalg_to_te.values import Literal


def copy_body(
    body: ComputeBody,
    block: Block,
    values: dict[SSAValue, SSAValue],
    dims: Sequence[AffineExpr],
    wanted: Sequence[SSAValue],
) -> None:
    """Copy the ops of `block` on which the values `wanted` depend into a body, and add their scalars to `values`.
    `dims` are the dimensions of linalg.index as expressions over the axes. Raises LoweringError for an op without a te
    form."""
    reads, gathers = reads_in(block, dims), gathers_in(block, dims)
    for op in _needed(block, reads | gathers, wanted):
        if op in reads:
            values[op.results[0]] = _extracted(body, reads[op], op)
        elif isinstance(op, IndexOp):
            values[op.result] = _index(body, dims[op.dim.value.data])
        elif op in gathers:
            values[op.results[0]] = _gather(body, gathers[op], block, dims)
        elif isinstance(op, DimOp) and (extent := static_extent(op)) is not None:
            values[op.result] = body.literal(IntegerAttr(extent, IndexType()))
        else:
            check_scalar_op(op)
            operands = [body.value(operand, values) for operand in op.operands]
            values |= zip(op.results, body.copied(op, operands).results, strict=True)


def _needed(block: Block, reads: Container[Operation], wanted: Sequence[SSAValue]) -> list[Operation]:
    """Return the ops on which the values `wanted` depend, in order; not those of the indices of ops in `reads`."""
    values, ops = set(wanted), []
    for op in reversed(list(block.ops)):
        if not values.isdisjoint(op.results):
            ops.append(op)
            values.update(() if op in reads else op.operands)
    return ops[::-1]


def _index(body: ComputeBody, expr: AffineExpr) -> SSAValue:
    """Return the value of an axis, or 0 for an expression that is no axis: a dimension of extent 1."""
    if isinstance(expr, AffineDimExpr):
        return body.add(te.IndexOp(body.axes[expr.position].label))
    return body.literal(IntegerAttr(0, IndexType()))


def _extracted(body: ComputeBody, read: ExtractedRead, op: Operation) -> SSAValue:
    """Return the scalar that a tensor.extract reads, under its condition if it has one. op: the location of errors."""
    map = AffineMap(len(body.axes), 0, read.index)
    tensor = body.values.tensor(read.source, op)
    if not read.constraints:
        return body.read_te(tensor, AccessAttr(map))
    return body.read_te(tensor, AccessAttr(map, AffineSet(len(body.axes), 0, read.constraints), read.otherwise))


def _gather(body: ComputeBody, read: ExtractedGather, block: Block, dims: Sequence[AffineExpr]) -> SSAValue:
    """Append a te.gather over all axes of a body for a tensor.extract with data-dependent indices; return the gathered
    element.

    An index that is not affine in the axes is read from an integer tensor: one that the body reads it from, or a new
    compute. Without a guard an index outside the table, undefined in linalg, reads 0.
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
    otherwise = _zero(element) if read.otherwise is None else read.otherwise
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
    """Return the integer tensor that has an index value at each iteration, and its access: the tensor that the body
    reads it from, perhaps through an index_cast, unless that is a splat; else a new te.compute over all axes."""
    owner = value.owner
    source = owner.operands[0] if isinstance(owner, Operation) and owner.name == "arith.index_cast" else value
    if source in body.arguments:
        operand, map = body.arguments[source]
        tensor = body.values.tensors.get(operand)
        if tensor is not None and tensor not in body.values.splats:
            return tensor, AccessAttr(map)
    axes = [axis_attribute(axis.label, axis.size) for axis in body.axes]
    inner = body.like(axes)
    scalars: dict[SSAValue, SSAValue] = {}
    copy_body(inner, block, scalars, dims, [source])
    index = inner.value(source, scalars)
    if isinstance(index.type, IndexType):
        index = inner.add(IndexCastOp(index, i64))
    computed = inner.compute(body.values.label(body.source, ".index"), [index])
    return body.values.add(computed, op), AccessAttr(AffineMap.identity(len(axes)))
