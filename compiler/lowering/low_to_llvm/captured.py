"""The values that outlined ops capture from the function around them."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from xdsl.dialects import arith, memref
from xdsl.dialects.builtin import IndexType, MemRefType
from xdsl.ir import Operation, SSAValue, Use

from compiler.dialects.upstream.arith import kind_of
from compiler.lowering.low_to_llvm.function import FunctionEmitter
from compiler.lowering.low_to_llvm.signature import buffer_parameter, is_view, may_write
from compiler.lowering.low_to_llvm.types import llvm_type
from compiler.support.errors import LoweringError


class Captured:
    """The values of `outer` that ops use: each is a parameter of the function that `inner` emits, or recomputed there.
    `values` are the captured values, without recomputed ones, `parameters` their declarations, both in the order of
    first use."""

    def __init__(self, ops: Sequence[Operation], outer: FunctionEmitter, inner: FunctionEmitter) -> None:
        self.values: list[SSAValue] = []
        self.parameters: list[str] = []
        self._written = _written(ops)
        self._outer = outer
        self._inner = inner
        for value in _from_outside(ops):
            self._capture(value)

    @property
    def arguments(self) -> list[str]:
        """The captured values as typed arguments of a call in the outer function."""
        return [self._outer.typed(value) for value in self.values]

    def _capture(self, value: SSAValue) -> None:
        """Make an outer value available inside: recompute constants, index arithmetic and views; pass other values as
        parameters. Raises LoweringError for a buffer whose alignment is unknown."""
        inner = self._inner
        if value in inner.names:
            return
        match value.owner:
            case arith.ConstantOp():
                inner.names[value] = self._outer.use(value)
            case Operation() as op if is_recomputed(op):
                for operand in op.operands:
                    self._capture(operand)
                inner.handlers[kind_of(op)](inner, op)
            case _:
                self.parameters.append(self._parameter(value, f"x{len(self.values)}"))
                self.values.append(value)

    def _parameter(self, value: SSAValue, name: str) -> str:
        self._inner.names[value] = f"%{name}"
        if not isinstance(value.type, MemRefType):
            return f"{llvm_type(value.type)} %{name}"
        if value not in self._outer.alignments:
            raise LoweringError("a buffer that is carried, chosen or passed on has no form in LLVM IR")
        self._inner.alignments[value] = self._outer.alignments[value]
        return buffer_parameter(self._inner, value, name, value in self._written)


def is_recomputed(op: Operation) -> bool:
    """Return whether an op is recomputed where it is used: a sum, difference or product of type index, a view, or the
    memref.get_global of a constant. Constants are not among them: their text is used again."""
    if isinstance(op, arith.AddiOp | arith.SubiOp | arith.MuliOp):
        return isinstance(op.results[0].type, IndexType)
    return is_view(op) or isinstance(op, memref.GetGlobalOp)


def _from_outside(ops: Sequence[Operation]) -> Iterator[SSAValue]:
    """Yield the values that ops and their regions use and that are defined outside, once for each use."""
    inside = [inner for op in ops for inner in op.walk()]
    defined = {value for op in inside for value in op.results}
    defined |= {value for op in inside for region in op.regions for block in region.blocks for value in block.args}
    return (value for op in inside for value in op.operands if value not in defined)


def _written(ops: Sequence[Operation]) -> set[SSAValue]:
    uses = (Use(op, n) for top in ops for op in top.walk() for n in range(len(op.operands)))
    return {_root(use.operation.operands[use.index]) for use in uses if _is_buffer(use) and may_write(use)}


def _is_buffer(use: Use) -> bool:
    return isinstance(use.operation.operands[use.index].type, MemRefType) and not is_view(use.operation)


def _root(buffer: SSAValue) -> SSAValue:
    while isinstance(buffer.owner, Operation) and is_view(buffer.owner):
        buffer = buffer.owner.operands[0]
    return buffer
