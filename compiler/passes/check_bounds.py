"""check-bounds: refuse low-level accesses that are certainly out of bounds."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import isinf
from typing import ClassVar

from xdsl.context import Context
from xdsl.dialects import memref, scf
from xdsl.dialects.builtin import DYNAMIC_INDEX, MemRefType, ModuleOp, NoneAttr
from xdsl.dialects.func import FuncOp
from xdsl.ir import BlockArgument, Operation, SSAValue
from xdsl.passes import ModulePass

from compiler.affine import linear as lin
from compiler.analysis.accesses import LowAccess, access
from compiler.analysis.index_forms import Forms, Ranges, bounds
from compiler.dialects.functions import functions
from compiler.dialects.levels import require
from compiler.support.errors import LoweringError


@dataclass(frozen=True)
class CheckBoundsPass(ModulePass):
    """Refuse a load, store or subview that is out of bounds in every call of the function.

        %c9 = arith.constant 9 : index
        %x = memref.load %A[%c9] : memref<4xf32>

    refused

    Indices are evaluated if they are constants, sums and products of them, or variables of loops with constant bounds.
    An access is refused if it certainly runs and is out of bounds in one of its iterations: accesses under an scf.if,
    in a loop that may be empty, or under a mask are accepted. Changes nothing. Raises LoweringError, at the access.
    """

    name = "check-bounds"
    anchor: ClassVar = "func.func"

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        require(op, "low", self.name)
        for function in functions(op):
            _Checker().check(function)


class _Checker:
    def __init__(self) -> None:
        self.ranges = Ranges()
        self.forms = Forms()

    def check(self, op: Operation) -> None:
        """Raise LoweringError for an access out of bounds in a region of an op that certainly runs when the op does."""
        for inner in (inner for region in op.regions for block in list(region.blocks)[:1] for inner in block.ops):
            accessed = access(inner)
            if accessed is not None and accessed.mask is None:
                self._check_access(accessed)
            elif isinstance(inner, memref.SubviewOp):
                _check_view(inner)
            elif isinstance(inner, scf.ForOp | scf.ParallelOp) and self.ranges.surely_runs(inner):
                self.check(inner)

    def _check_access(self, access: LowAccess) -> None:
        type = access.buffer.type
        assert isinstance(type, MemRefType)
        shape = type.get_shape()
        for dim, (index, size) in enumerate(zip(access.indices, shape, strict=False)):
            out_of_bounds_value = None if size == DYNAMIC_INDEX else self._out_of_bounds_value(index, size)
            if out_of_bounds_value is not None:
                raise _refusal(access.op, access.buffer, f"index {dim} is {out_of_bounds_value}")
        if len(shape) == 1 and isinstance(type.layout, NoneAttr) and shape[0] != DYNAMIC_INDEX:
            attained_range = self._attained_range(access.indices[0])
            if attained_range is not None and attained_range[1] + access.lanes > shape[0]:
                raise _refusal(access.op, access.buffer, f"its last lane is at {attained_range[1] + access.lanes - 1}")

    def _out_of_bounds_value(self, index: SSAValue, size: int) -> float | None:
        """Return a value outside [0, size) that an index certainly attains; None if there is none."""
        attained_range, (low, high) = self._attained_range(index), self.ranges.of(index)
        values: list[float] = [end for end in attained_range or () if not 0 <= end < size]
        values += [end for end in (low, high) if (low >= size or high < 0) and not isinf(end)]
        return values[0] if values else None

    def _attained_range(self, index: SSAValue) -> lin.Range | None:
        """Return the least and the largest value that an index attains; None if these are not constant. Example: 4*i +
        j with i < 8 and j < 4 attains 0 and 31."""
        form = self.forms.of(index)
        values = {
            atom: self._first_and_last(self.forms.values[atom]) for atom, _ in form.terms if isinstance(atom, int)
        }
        ranges = {atom: span for atom, span in values.items() if span is not None}
        if len(ranges) < len(form.terms):
            return None
        smallest, largest = lin.bounds(form, ranges)
        return (smallest, largest) if smallest >= -(2**63) and largest < 2**63 else None

    def _first_and_last(self, variable: SSAValue) -> lin.Range | None:
        """Return the first and last value of a loop variable; None unless bounds and step are constant and it runs."""
        if not isinstance(variable, BlockArgument):
            return None
        loop = variable.block.parent_op()
        if not isinstance(loop, scf.ForOp | scf.ParallelOp) or variable.index >= len(bounds(loop)):
            return None
        first, end, step = (self.forms.of(value) for value in bounds(loop)[variable.index])
        if not (first.is_constant and end.is_constant and step.is_constant and step.constant > 0):
            return None
        count = (end.constant - first.constant - 1) // step.constant
        return (first.constant, first.constant + count * step.constant) if count >= 0 else None


def _check_view(view: memref.SubviewOp) -> None:
    """Raise LoweringError for a subview that is out of bounds; dimensions with an offset, size, stride or extent that
    is not constant are not checked."""
    type = view.source.type
    assert isinstance(type, MemRefType)
    dimensions = zip(
        *(_integers(view, name) for name in ("offsets", "sizes", "strides")), type.get_shape(), strict=False
    )
    for dim, (offset, count, stride, size) in enumerate(dimensions):
        if DYNAMIC_INDEX in (offset, count, stride, size) or count < 1:
            continue
        ends = (offset, offset + (count - 1) * stride)
        if min(ends) < 0 or max(ends) >= size:
            worst = min(ends) if min(ends) < 0 else max(ends)
            raise _refusal(view, view.source, f"its index {dim} goes to {worst}")


def _integers(view: memref.SubviewOp, name: str) -> Sequence[int]:
    return view.properties[f"static_{name}"].get_values()  # type: ignore[attr-defined, no-any-return]


def _refusal(op: Operation, buffer: SSAValue, reason: str) -> LoweringError:
    function: Operation | None = op
    while function is not None and not isinstance(function, FuncOp):
        function = function.parent_op()
    prefix = f"@{function.sym_name.data}: " if function is not None else ""
    name = f"%{buffer.name_hint}, " if buffer.name_hint else ""
    return LoweringError(f"{prefix}'{op.name}' leaves {name}{buffer.type}: {reason}").at(op)
