"""Addresses of elements as linear forms: the varying part is shared between accesses, the constant part added last."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import gcd, prod

from xdsl.dialects import scf
from xdsl.dialects.builtin import IntegerAttr
from xdsl.ir import Attribute, BlockArgument, Operation, SSAValue

from compiler.affine import linear as lin
from compiler.affine.linear import Linear, Range
from compiler.lowering.low_to_llvm.function import BufferLayout, FunctionEmitter
from compiler.lowering.low_to_llvm.types import buffer_type, byte_size
from compiler.support.errors import LoweringError


@dataclass(frozen=True)
class Address:
    """The register of a pointer, and a known alignment of the pointer in bytes."""

    pointer: str
    alignment: int


def element_address(f: FunctionEmitter, op: Operation, buffer: SSAValue, indices: Sequence[SSAValue]) -> Address:
    """Emit the address of an op's access to a buffer; an `alignment` attribute of the op is trusted. Raises
    LoweringError for a buffer without a known alignment: one that is carried by a loop or chosen."""
    address = form_address(f, buffer, access_form(f, buffer, indices))
    return Address(address.pointer, max(_alignment_attribute(op), address.alignment))


def access_form(f: FunctionEmitter, buffer: SSAValue, indices: Sequence[SSAValue]) -> Linear:
    """Return the offset of an element in its buffer, in elements, as a linear form."""
    return _weighted_sum(f, indices, _layout_of(f, buffer).strides)


def form_address(f: FunctionEmitter, buffer: SSAValue, form: Linear) -> Address:
    """Emit the address of the element at offset `form`, in elements, of a buffer. Raises LoweringError for a buffer
    without a known alignment."""
    layout = _layout_of(f, buffer)
    pointer = _address(f, buffer, form, layout)
    factors = [factor * layout.size for factor in divisors(f, form)]
    return Address(pointer, gcd(_buffer_alignment(f, buffer), form.constant * layout.size, *factors))


def _layout_of(f: FunctionEmitter, buffer: SSAValue) -> BufferLayout:
    layout = f.layouts.get(buffer)
    if layout is None:
        layout = f.layouts[buffer] = _layout(buffer.type)
    return layout


def _layout(type: Attribute) -> BufferLayout:
    shape = buffer_type(type).get_shape()
    return BufferLayout(prod(shape), byte_size(buffer_type(type).element_type), lin.strides(shape))


def _weighted_sum(f: FunctionEmitter, indices: Sequence[SSAValue], factors: Sequence[int]) -> Linear:
    terms: dict[int, int] = {}
    constant = 0
    for index, factor in zip(indices, factors, strict=True):
        form = f.forms.of(index)
        constant += factor * form.constant
        for atom, coefficient in form.terms:
            assert isinstance(atom, int)
            terms[atom] = terms.get(atom, 0) + factor * coefficient
    return Linear(tuple(sorted((atom, sum) for atom, sum in terms.items() if sum)), constant)


def _alignment_attribute(op: Operation) -> int:
    attribute = op.properties.get("alignment", op.attributes.get("alignment"))
    return attribute.value.data if isinstance(attribute, IntegerAttr) else 1


def _buffer_alignment(f: FunctionEmitter, buffer: SSAValue) -> int:
    if buffer not in f.alignments:
        raise LoweringError("a buffer that is carried, chosen or passed on has no form in LLVM IR")
    return f.alignments[buffer]


def _address(f: FunctionEmitter, buffer: SSAValue, form: Linear, layout: BufferLayout) -> str:
    """Emit the pointer to the element at offset `form`. The varying part alone may be out of bounds until the constant
    is added: then its getelementptr is not inbounds."""
    varying, size, pointer = Linear(form.terms, 0), layout.size, f.use(buffer)
    flag = "inbounds" if _stays_inside(f, varying, layout.length) else "nusw"
    if varying.terms:
        step = f"getelementptr {flag} [{size} x i8], ptr {pointer}, i64 {offset(f, varying)}"
        pointer = f.once((buffer, varying, size), step)
    if form.constant:
        step = f"getelementptr {flag} [{size} x i8], ptr {pointer}, i64 {form.constant}"
        pointer = f.once((buffer, form, size), step)
    return pointer


def divisors(f: FunctionEmitter, form: Linear) -> list[int]:
    """Return a divisor of all values of each term of a form: its factor, times the known divisor of a loop's index."""
    multiples = []
    for atom, factor in form.terms:
        assert isinstance(atom, int)
        multiples.append(factor * _divisor(f, atom))
    return multiples


def offset(f: FunctionEmitter, form: Linear) -> str:
    """Emit the varying part of a form, without its constant, as an i64; return the operand, "" without terms."""
    roots = f.forms.values
    total = ""
    for atom, factor in form.terms:
        assert isinstance(atom, int)
        term = f.use(roots[atom])
        if factor != 1:
            term = f.once((term, factor), f"mul nsw i64 {term}, {factor}")
        total = f.once((total, term), f"add nsw i64 {total}, {term}") if total else term
    return total


def _stays_inside(f: FunctionEmitter, form: Linear, length: int) -> bool:
    """Return whether constant loop bounds prove that a form is within [0, length] for all values of loop indices."""
    ranges: dict[int, Range] = {}
    for atom, _ in form.terms:
        assert isinstance(atom, int)
        values = _range(f, atom)
        if values is None:
            return False
        ranges[atom] = values
    low, high = lin.bounds(form, ranges)
    return low >= 0 and high <= length


def _range(f: FunctionEmitter, atom: int) -> Range | None:
    """Return the range of the variable `atom` of a form if it is a loop's index with constant bounds; None for any
    other."""
    if atom not in f.ranges:
        f.ranges[atom] = _find_range(f, f.forms.values[atom])
    return f.ranges[atom]


def _find_range(f: FunctionEmitter, value: SSAValue) -> Range | None:
    loop = _loop_bounds(value)
    if loop is None:
        return None
    low, high = f.forms.of(loop.lower), f.forms.of(loop.upper)
    if not low.is_constant or not high.is_constant:
        return None
    return low.constant, max(low.constant, high.constant - 1)


def _divisor(f: FunctionEmitter, atom: int) -> int:
    """Return a divisor of all values of the variable `atom` of a form: for a loop's index the gcd of constant start and
    step, else 1."""
    if atom not in f.divisors:
        loop = _loop_bounds(f.forms.values[atom])
        start, step = (f.forms.of(loop.lower), f.forms.of(loop.step)) if loop else (lin.constant(1), lin.constant(1))
        is_fixed = start.is_constant and step.is_constant
        f.divisors[atom] = gcd(start.constant, step.constant) if is_fixed else 1
    return f.divisors[atom]


@dataclass(frozen=True)
class _LoopBounds:
    """The bounds and step of a loop, or of one index of a parallel loop; `upper` is exclusive."""

    lower: SSAValue
    upper: SSAValue
    step: SSAValue


def _loop_bounds(value: SSAValue) -> _LoopBounds | None:
    """Return the bounds of the loop that defines an index value; None for any other value."""
    if not isinstance(value, BlockArgument):
        return None
    match value.block.parent_op():
        case scf.ForOp() as loop if value.index == 0:
            return _LoopBounds(loop.lb, loop.ub, loop.step)
        case scf.ParallelOp() as loop:
            return _LoopBounds(loop.lowerBound[value.index], loop.upperBound[value.index], loop.step[value.index])
    return None
