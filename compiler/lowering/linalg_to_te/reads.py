"""Reads of whole tensors inside of bodies, at indices that are quasi-affine in the dimensions, or under a condition."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from xdsl.dialects import arith
from xdsl.dialects.affine import ApplyOp
from xdsl.dialects.builtin import FloatAttr, IntegerAttr, TensorType
from xdsl.dialects.tensor import DimOp, ExtractOp
from xdsl.ir import Block, Operation, SSAValue
from xdsl.ir.affine import AffineConstantExpr, AffineConstraintExpr, AffineConstraintKind, AffineExpr

from compiler.dialects.upstream.arith import CmpiOp, SelectOp
from compiler.dialects.upstream.linalg.special import IndexOp
from compiler.lowering.linalg_to_te.values import Literal

_KINDS = {
    "sge": (AffineConstraintKind.ge, 0),
    "sgt": (AffineConstraintKind.ge, 1),
    "sle": (AffineConstraintKind.le, 0),
    "slt": (AffineConstraintKind.le, -1),
    "eq": (AffineConstraintKind.eq, 0),
}
"""Map each predicate to a kind of constraint and a number that is added to its right side."""


@dataclass(frozen=True)
class ExtractedRead:
    """A read of a tensor, `source`, at an index over the axes. If any of the constraints fails, its value is
    `otherwise`; without constraints that is None."""

    source: SSAValue
    index: tuple[AffineExpr, ...]
    constraints: tuple[AffineConstraintExpr, ...] = ()
    otherwise: Literal | None = None


def reads_in(block: Block, dims: Sequence[AffineExpr]) -> dict[Operation, ExtractedRead]:
    """Map each op of a body whose result is an affine read to the read: a tensor.extract, or the select that guards
    one, as in

        %i = arith.select %inside, %index, %zero    %a = tensor.extract %A[%i]    %b = arith.select %inside, %a, %else

    `dims` are the dimensions of linalg.index over the axes. Other extracts are left out. A guarded index may itself be
    a select by the guard's condition, whose first value is then the index.
    """
    reads: dict[Operation, ExtractedRead] = {}
    for op in block.ops:
        if not isinstance(op, ExtractOp):
            continue
        index = [affine_index(value, dims) for value in op.indices]
        plain = tuple(expr for expr in index if expr is not None)
        if len(plain) == len(index):
            reads[op] = ExtractedRead(op.tensor, plain)
        elif (guard := _guard(op)) is not None and (read := _guarded(op, guard, dims)) is not None:
            reads[guard] = read
    return reads


@dataclass(frozen=True)
class ExtractedGather:
    """A read of a tensor by `op` at the data-dependent indices `index`; `otherwise` is its value if one of them is out
    of bounds, None if that is not stated."""

    op: ExtractOp
    index: tuple[SSAValue, ...]
    otherwise: Literal | None = None


def gathers_in(block: Block, dims: Sequence[AffineExpr]) -> dict[Operation, ExtractedGather]:
    """Map each op of a body whose result is a gather to the gather: each tensor.extract, and the select that guards one
    by exactly the bounds of all its data-dependent indices. Affine reads are included: callers look in `reads_in`
    first. dims: the expression of each dimension of linalg.index over the axes."""
    gathers: dict[Operation, ExtractedGather] = {}
    for op in block.ops:
        if not isinstance(op, ExtractOp):
            continue
        gathers[op] = ExtractedGather(op, tuple(op.indices))
        if (guard := _guard(op)) is not None:
            index = tuple(_unguarded(value, guard) for value in op.indices)
            sizes = op.tensor.type.get_shape()  # type: ignore[attr-defined]
            decided = [pair for pair in zip(index, sizes, strict=True) if affine_index(pair[0], dims) is None]
            bounds = {bound for value, size in decided for bound in ((value, "sge", 0), (value, "slt", size))}
            if bounds == set(_bounds(guard.cond)):
                gathers[guard] = ExtractedGather(op, index, _literal(guard.rhs))
    return gathers


def _unguarded(value: SSAValue, guard: SelectOp) -> SSAValue:
    """Return the value that a select by the guard's condition passes on if the condition holds; any other index value
    unchanged."""
    owner = value.owner
    return owner.lhs if isinstance(owner, SelectOp) and owner.cond is guard.cond else value


def _bounds(value: SSAValue) -> list[tuple[SSAValue, str, int] | None]:
    """Return the comparisons (value, predicate, number) of values with constants in a conjunction; None in the list for
    any other term."""
    owner = value.owner
    match owner:
        case arith.AndIOp():
            return [bound for operand in owner.operands for bound in _bounds(operand)]
        case CmpiOp() if isinstance(number := _literal(owner.rhs), IntegerAttr):
            return [(owner.lhs, owner.predicate_name, number.value.data)]
    return [None]


def _guard(op: ExtractOp) -> SelectOp | None:
    """Return the select that yields an extract's result if its condition holds, else a literal, if it is the only use
    of the result; else None."""
    users = [use.operation for use in op.result.uses]
    if len(users) != 1 or not isinstance(users[0], SelectOp) or users[0].lhs is not op.result:
        return None
    return users[0] if _literal(users[0].rhs) is not None else None


def _guarded(op: ExtractOp, guard: SelectOp, dims: Sequence[AffineExpr]) -> ExtractedRead | None:
    constraints = _constraints(guard.cond, dims)
    index: list[AffineExpr | None] = []
    for value in op.indices:
        index.append(affine_index(_unguarded(value, guard), dims))
    plain = tuple(expr for expr in index if expr is not None)
    if constraints is None or len(plain) != len(index):
        return None
    return ExtractedRead(op.tensor, plain, tuple(constraints), _literal(guard.rhs) if constraints else None)


def _literal(value: SSAValue) -> Literal | None:
    owner = value.owner
    is_literal = isinstance(owner, arith.ConstantOp) and isinstance(owner.value, FloatAttr | IntegerAttr)
    return owner.value if is_literal else None  # type: ignore[union-attr]


def static_extent(op: DimOp) -> int | None:
    """Return the extent that a tensor.dim of a constant dimension reads, from the type; None if unknown."""
    literal = _literal(op.index)
    shape = op.source.type.get_shape() if isinstance(op.source.type, TensorType) else ()
    dim = literal.value.data if isinstance(literal, IntegerAttr) else -1
    return shape[dim] if 0 <= dim < len(shape) and shape[dim] >= 0 else None


def affine_index(value: SSAValue, dims: Sequence[AffineExpr]) -> AffineExpr | None:
    """Return an index as an expression over the axes; None if it is not quasi-affine; a floordiv needs a positive
    constant divisor, and casts are not looked through. `dims`: the expression of each dimension of linalg.index."""
    owner = value.owner
    match owner:
        case IndexOp():
            return dims[owner.dim.value.data]
        case arith.ConstantOp(value=IntegerAttr() as number):
            return AffineConstantExpr(number.value.data)
        case DimOp():
            extent = static_extent(owner)
            return None if extent is None else AffineConstantExpr(extent)
        case ApplyOp() | arith.AddiOp() | arith.SubiOp() | arith.MuliOp() | arith.FloorDivSIOp():
            operands = [affine_index(operand, dims) for operand in owner.operands]
            stated = [operand for operand in operands if operand is not None]
            return _applied(owner, stated) if len(stated) == len(operands) else None
    return None


def _applied(op: Operation, operands: Sequence[AffineExpr]) -> AffineExpr | None:
    if isinstance(op, ApplyOp):
        map = op.map.data
        return map.results[0].replace_dims_and_symbols(operands[: map.num_dims], operands[map.num_dims :])
    lhs, rhs = operands
    numbers = [isinstance(operand, AffineConstantExpr) for operand in operands]
    match op:
        case arith.AddiOp():
            return lhs + rhs
        case arith.SubiOp():
            return lhs + rhs * -1
        case arith.MuliOp() if any(numbers):
            return lhs * rhs if numbers[1] else rhs * lhs
        case arith.FloorDivSIOp() if isinstance(rhs, AffineConstantExpr) and rhs.value > 0:
            return lhs // rhs
    return None


def _constraints(value: SSAValue, dims: Sequence[AffineExpr]) -> list[AffineConstraintExpr] | None:
    """Return a conjunction of signed comparisons (not `ne`) of affine indices as constraints over the axes, empty for
    the constant true; None for any other condition."""
    owner = value.owner
    match owner:
        case arith.AndIOp():
            sides = [_constraints(operand, dims) for operand in owner.operands]
            return None if None in sides else [c for side in sides for c in side or ()]
        case CmpiOp() if owner.predicate_name in _KINDS:
            kind, offset = _KINDS[owner.predicate_name]
            lhs, rhs = (affine_index(operand, dims) for operand in owner.operands)
            return None if lhs is None or rhs is None else [AffineConstraintExpr(kind, lhs, rhs + offset)]
        case arith.ConstantOp(value=IntegerAttr() as truth) if truth.value.data:
            return []
    return None
