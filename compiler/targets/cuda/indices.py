"""The ranges of a kernel's indices, from which follows whether one is an `int` or a `long long`.

32-bit arithmetic is faster on GPUs, so an index is an `int` wherever its range is known to fit: that of a hardware
index is its extent, that of a loop variable its bounds, that of an integer from memory its type.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from math import prod

from xdsl.dialects import arith, gpu, scf
from xdsl.dialects.builtin import IndexType, IntegerAttr, IntegerType, MemRefType
from xdsl.ir import Operation, SSAValue

from compiler.dialects.upstream.arith import CMPI, CmpiOp

Range = tuple[int, int]
"""The least and the greatest value."""
INT: Range = (-(1 << 31), (1 << 31) - 1)
ANY: Range = (-(1 << 63), (1 << 63) - 1)
SIDES = ("x", "y", "z")


def needs_64_bits(type_: MemRefType) -> bool:
    """Whether the offset of an element of a buffer can exceed 32 bits."""
    return prod(type_.get_shape()) - 1 > INT[1]


def wide_indices(kernel: gpu.FuncOp, grid: tuple[int, int, int], block: tuple[int, int, int]) -> set[SSAValue]:
    """The indices of a kernel that need 64 bits, given its extents."""
    ranges: dict[SSAValue, Range] = {}
    extents = {gpu.BlockIdOp: grid, gpu.ThreadIdOp: block}
    for op in kernel.walk():
        if isinstance(op, gpu.BlockIdOp | gpu.ThreadIdOp):
            ranges[op.results[0]] = (0, extents[type(op)][SIDES.index(op.dimension.data.value)] - 1)
        elif isinstance(op, scf.ForOp):
            low, high, step = (ranges.get(value, ANY) for value in (op.lb, op.ub, op.step))
            # the variable holds the first value that is too large, too
            ranges[op.body.block.args[0]] = _bounded((low[0], max(low[1], high[1] + step[1] - 1)))
        else:
            for result in op.results:
                if isinstance(result.type, IndexType):
                    ranges[result] = _bounded(_range(op, ranges))
    carried = {
        value
        for op in kernel.walk()
        if isinstance(op, scf.ForOp)
        for value in (*op.body.block.args[1:], *op.results)
        if isinstance(value.type, IndexType)
    }
    return {value for value, found in ranges.items() if not _fits(found, INT)} | carried


def _range(op: Operation, ranges: Mapping[SSAValue, Range]) -> Range:
    """The range of an op's result, from those of its operands."""
    if isinstance(op, arith.ConstantOp) and isinstance(op.value, IntegerAttr):
        return op.value.value.data, op.value.value.data
    if op.name == "arith.index_cast":
        return _of_integer(op.operands[0])
    if op.name == "arith.select":
        yes, no = _where(op.operands[0], op.operands[1], ranges), ranges.get(op.operands[2], ANY)
        return min(yes[0], no[0]), max(yes[1], no[1])
    known = _RANGES.get(type(op))
    return known(*(ranges.get(value, ANY) for value in op.operands)) if known is not None else ANY


def _of_integer(value: SSAValue) -> Range:
    """The range of an integer's type; one extended without a sign has that of what it was."""
    owner = value.owner
    extended = owner.operands[0].type if isinstance(owner, Operation) and owner.name == "arith.extui" else None
    if isinstance(extended, IntegerType):
        return 0, (1 << extended.width.data) - 1
    if not isinstance(value.type, IntegerType):
        return ANY
    bits = value.type.width.data
    return -(1 << bits - 1), (1 << bits - 1) - 1


def _where(condition: SSAValue, value: SSAValue, ranges: Mapping[SSAValue, Range]) -> Range:
    """The range of a value where a condition holds: `value ult size` leaves none below zero."""
    test = condition.owner
    if isinstance(test, CmpiOp | arith.CmpiOp) and CMPI[test.predicate.value.data] == "ult" and test.lhs is value:
        low, high = ranges.get(test.rhs, ANY)
        if low >= 0:
            return 0, max(high - 1, 0)
    return ranges.get(value, ANY)


def _product(a: Range, b: Range) -> Range:
    corners = [x * y for x in a for y in b]
    return min(corners), max(corners)


def _quotient(a: Range, b: Range) -> Range:
    return (a[0] // b[1], a[1] // b[0]) if a[0] >= 0 and b[0] > 0 else ANY


def _floored(a: Range, b: Range) -> Range:
    corners = [x // y for x in a for y in b] if b[0] > 0 else []
    return (min(corners), max(corners)) if corners else ANY


def _remainder(a: Range, b: Range) -> Range:
    return (0, min(a[1], b[1] - 1)) if a[0] >= 0 and b[0] > 0 else ANY


def _signed_remainder(a: Range, b: Range) -> Range:
    return (0 if a[0] >= 0 else 1 - b[1], b[1] - 1) if b[0] > 0 else ANY


_RANGES: Mapping[type[Operation], Callable[..., Range]] = {
    arith.AddiOp: lambda a, b: (a[0] + b[0], a[1] + b[1]),
    arith.SubiOp: lambda a, b: (a[0] - b[1], a[1] - b[0]),
    arith.MuliOp: _product,
    arith.DivUIOp: _quotient,
    arith.DivSIOp: _quotient,
    arith.FloorDivSIOp: _floored,
    arith.RemUIOp: _remainder,
    arith.RemSIOp: _signed_remainder,
    arith.MinSIOp: lambda a, b: (min(a[0], b[0]), min(a[1], b[1])),
    arith.MaxSIOp: lambda a, b: (max(a[0], b[0]), max(a[1], b[1])),
}


def _bounded(found: Range) -> Range:
    """A range that 64 bits hold: beyond them indices wrap."""
    return found if _fits(found, ANY) else ANY


def _fits(found: Range, within: Range) -> bool:
    return within[0] <= found[0] and found[1] <= within[1]
