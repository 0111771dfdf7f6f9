"""Addresses of elements: linear forms, whose varying part is shared and whose constant part is added last."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from math import gcd, prod

from xdsl.dialects import scf
from xdsl.dialects.builtin import IntegerAttr
from xdsl.ir import Attribute, BlockArgument, Operation, SSAValue

from compiler.affine import linear as lin
from compiler.affine.linear import Atom, Linear, Range
from compiler.lowering.low_to_llvm.function import FunctionEmitter, Root
from compiler.lowering.low_to_llvm.types import buffer_type, byte_size, strides
from compiler.support.errors import LoweringError


@dataclass(frozen=True)
class Address:
    """An address, and how many bytes it is surely a multiple of."""

    pointer: str
    alignment: int


def place(f: FunctionEmitter, op: Operation, buffer: SSAValue, indices: Sequence[SSAValue]) -> Address:
    """Where an op accesses a buffer; its `alignment` attribute, if any, is taken at its word."""
    layout = _layout(buffer.type)
    form = _total(f, indices, layout.strides)
    pointer = _address(f, buffer, form, layout)
    factors = [factor * layout.size for factor in divisors(f, form)]
    return Address(pointer, max(_stated(op), gcd(_base(f, buffer), form.constant * layout.size, *factors)))


@dataclass(frozen=True)
class _Layout:
    """The elements of a buffer: how many, the bytes of each, and the strides of the dimensions in elements."""

    length: int
    size: int
    strides: Sequence[int]


@lru_cache(maxsize=256)
def _layout(type: Attribute) -> _Layout:
    shape = buffer_type(type).get_shape()
    return _Layout(prod(shape), byte_size(buffer_type(type).element_type), strides(shape))


def _total(f: FunctionEmitter, indices: Sequence[SSAValue], factors: Sequence[int]) -> Linear:
    """The sum of the forms of indices, each times a factor, in one go."""
    terms: dict[int, int] = {}
    constant = 0
    for index, factor in zip(indices, factors, strict=True):
        form = f.forms.of(index)
        constant += factor * form.constant
        for atom, coefficient in form.terms:
            assert isinstance(atom, int)
            terms[atom] = terms.get(atom, 0) + factor * coefficient
    return Linear(tuple(sorted((atom, sum) for atom, sum in terms.items() if sum)), constant)


def _stated(op: Operation) -> int:
    attribute = op.properties.get("alignment", op.attributes.get("alignment"))
    return attribute.value.data if isinstance(attribute, IntegerAttr) else 1


def _base(f: FunctionEmitter, buffer: SSAValue) -> int:
    if buffer not in f.alignments:
        raise LoweringError("a buffer that is carried, chosen or passed on has no form in LLVM IR")
    return f.alignments[buffer]


def _address(f: FunctionEmitter, buffer: SSAValue, form: Linear, layout: _Layout) -> str:
    """The varying part alone may leave the buffer, until the constant is added: then it is not inbounds."""
    varying, size, pointer = Linear(form.terms, 0), layout.size, f.use(buffer)
    flag = "inbounds" if _stays(f, varying, layout.length) else "nusw"
    if varying.terms:
        step = f"getelementptr {flag} [{size} x i8], ptr {pointer}, i64 {offset(f, varying)}"
        pointer = f.once((buffer, varying, size), step)
    if form.constant:
        step = f"getelementptr {flag} [{size} x i8], ptr {pointer}, i64 {form.constant}"
        pointer = f.once((buffer, form, size), step)
    return pointer


def divisors(f: FunctionEmitter, form: Linear) -> list[int]:
    """A known divisor of each varying term of a form: its factor, times the step of a loop's index."""
    return [factor * _root(f, atom).divisor for atom, factor in form.terms]


def offset(f: FunctionEmitter, form: Linear) -> str:
    """The value of a form's varying part."""
    roots = f.forms.values
    total = ""
    for atom, factor in form.terms:
        assert isinstance(atom, int)
        term = f.use(roots[atom])
        if factor != 1:
            term = f.once((term, factor), f"mul nsw i64 {term}, {factor}")
        total = f.once((total, term), f"add nsw i64 {total}, {term}") if total else term
    return total


def _stays(f: FunctionEmitter, form: Linear, length: int) -> bool:
    """Whether a form is surely within a buffer's elements, by the ranges of the loops."""
    ranges: dict[int, Range] = {}
    for atom, _ in form.terms:
        assert isinstance(atom, int)
        values = _root(f, atom).range
        if values is None:
            return False
        ranges[atom] = values
    low, high = lin.bounds(form, ranges)
    return low >= 0 and high <= length


def _root(f: FunctionEmitter, atom: Atom) -> Root:
    """The facts of the value that an atom of a form is."""
    assert isinstance(atom, int)
    value = f.forms.values[atom]
    if value not in f.roots:
        f.roots[value] = _facts(f, value)
    return f.roots[value]


def _facts(f: FunctionEmitter, value: SSAValue) -> Root:
    bounds = _bounds(value)
    if bounds is None:
        return Root(None, 1)
    lower, upper, step = map(f.forms.of, bounds)
    divisor = gcd(lower.constant, step.constant) if lower.is_constant and step.is_constant else 1
    if not lower.is_constant or not upper.is_constant:
        return Root(None, divisor)
    return Root((lower.constant, max(lower.constant, upper.constant - 1)), divisor)


def _bounds(value: SSAValue) -> tuple[SSAValue, SSAValue, SSAValue] | None:
    """The first value, the end and the step of the loop whose index a value is."""
    if not isinstance(value, BlockArgument):
        return None
    match value.block.parent_op():
        case scf.ForOp() as loop if value.index == 0:
            return loop.lb, loop.ub, loop.step
        case scf.ParallelOp() as loop:
            return loop.lowerBound[value.index], loop.upperBound[value.index], loop.step[value.index]
    return None
