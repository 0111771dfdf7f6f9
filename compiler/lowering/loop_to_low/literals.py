"""Constants of a program: buffers of the module, and numbers where the index is known.

A number that the program states is exact, and what is computed of such numbers alone is computed here, in their type. A
zero of a constant takes the products that it is part of along where the policy allows it (docs/policies.md).
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from math import copysign

import numpy as np
from xdsl.dialects import arith
from xdsl.dialects.builtin import AnyFloat, FloatAttr, IntegerAttr, IntegerType, StringAttr, TensorType
from xdsl.dialects.func import FuncOp
from xdsl.dialects.memref import GetGlobalOp
from xdsl.ir import Attribute, Operation, SSAValue

from compiler.dialects.dense import Dense, DenseAttr
from compiler.dialects.numbers import array_of, dtype_of
from compiler.dialects.upstream.arith import ExtFOp, TruncFOp
from compiler.dialects.upstream.memref import GlobalOp
from compiler.lowering.loop_to_low.scopes import Scopes
from compiler.program.body import Apply, Read, Scalar
from compiler.program.names import fresh
from compiler.program.tree import Literal
from compiler.program.write import memref_type
from compiler.types.elements import scalar_type

Number = FloatAttr | IntegerAttr


class Globals:
    """The buffers of a module that constants become; the used ones are declared at the end."""

    def __init__(self, title: str, taken: Iterable[str]) -> None:
        self.title, self.taken = title, set(taken)
        self.names: dict[str, str] = {}
        self.made: list[tuple[Literal, GetGlobalOp]] = []

    def get(self, literals: Sequence[Literal], scopes: Scopes) -> dict[str, SSAValue]:
        """The buffers of some constants, in a function that is begun."""
        return {literal.buffer.name: scopes.add(self._get(literal)) for literal in literals}

    def _get(self, literal: Literal) -> GetGlobalOp:
        buffer = literal.buffer
        if buffer.name not in self.names:
            word = re.sub(r"\W", "_", f"{self.title}_{buffer.name}", flags=re.ASCII)
            self.names[buffer.name] = fresh(word, self.taken).replace(".", "_")
            self.taken.add(self.names[buffer.name])
        op = GetGlobalOp(self.names[buffer.name], memref_type(buffer.scalar, buffer.shape))
        op.memref.name_hint = buffer.name if SSAValue.is_valid_name(buffer.name) else None
        self.made.append((literal, op))
        return op

    def declarations(self) -> list[Operation]:
        """Declare the buffers that are read; remove the ops of others."""
        used: dict[str, Literal] = {}
        for literal, op in self.made:
            if op.memref.uses:
                used[self.names[literal.buffer.name]] = literal
            else:
                op.detach()
                op.erase()
        return [GlobalOp.private_constant(name, _low(literal.value)) for name, literal in used.items()]


def symbols(function: FuncOp) -> list[str]:
    """The symbols of a function's module."""
    module = function.parent
    names = [op.properties.get("sym_name") for op in module.ops] if module is not None else []
    return [name.data for name in names if isinstance(name, StringAttr)]


def declare(constants: Globals, function: FuncOp) -> None:
    """Declare the constants of a function before it."""
    made = constants.declarations()
    if made:
        assert function.parent is not None
        function.parent.insert_ops_before(made, function)


def _low(value: DenseAttr) -> DenseAttr:
    """Elements as the low level has them, where integers have no sign."""
    dense = value.data
    return DenseAttr(Dense(TensorType(scalar_type(dense.type.element_type), dense.shape), dense.data, dense.name))


def element(value: DenseAttr, index: Sequence[int]) -> Number | None:
    """The element at an index, moved inside; None for a NaN, whose bits a number would not keep."""
    dense = value.data
    number = array_of(dense)[tuple(min(max(i, 0), size - 1) for i, size in zip(index, dense.shape, strict=True))]
    type = scalar_type(dense.type.element_type)
    return _number(number, type)


def _number(value: np.generic, type: Attribute) -> Number | None:
    number = value.item() if value.dtype.kind in "iub" else float(value)
    if isinstance(type, IntegerType):
        return IntegerAttr(int(number), type)
    assert isinstance(type, AnyFloat)
    return None if np.isnan(number) else FloatAttr(number, type)


@dataclass(frozen=True)
class Known:
    """A number that an expression has, and whether a constant's element is part of it."""

    value: Number
    of_constant: bool

    @property
    def number(self) -> float:
        """The value."""
        return float(self.value.value.data)

    @property
    def is_zero(self) -> bool:
        """Whether it is either zero."""
        return self.number == 0

    @property
    def adds_nothing(self) -> bool:
        """Whether adding it changes no number: -0.0, and 0 as an integer."""
        return self.is_zero and (isinstance(self.value, IntegerAttr) or copysign(1, self.number) < 0)


def known(node: Scalar, reads: Mapping[int, Number], numbers: dict[int, Known | None]) -> Known | None:
    """The number that an expression has, if it has one: an element read, a number of the program, or made of these.

    `reads` are the elements of the constants read, by the number of the read; `numbers` caches the answers.
    """
    if id(node) not in numbers:
        numbers[id(node)] = _known(node, reads, numbers)
    return numbers[id(node)]


def _known(node: Scalar, reads: Mapping[int, Number], cache: dict[int, Known | None]) -> Known | None:
    if isinstance(node, Read):
        return Known(reads[node.position], True) if node.position in reads else None
    if not isinstance(node, Apply):
        return None
    if node.kind is arith.ConstantOp:
        value = dict(node.properties)["value"]
        return Known(value, False) if isinstance(value, FloatAttr | IntegerAttr) else None
    operands = [known(operand, reads, cache) for operand in node.operands]
    numbers = [operand for operand in operands if operand is not None]
    if len(numbers) < len(operands) or not any(n.of_constant for n in numbers) or node.kind not in _FOLDED:
        return None
    folded = _folded(node, [n.value for n in numbers])
    return None if folded is None else Known(folded, True)


_FOLDED = {
    arith.AddfOp: np.add,
    arith.AddiOp: np.add,
    arith.SubfOp: np.subtract,
    arith.SubiOp: np.subtract,
    arith.MulfOp: np.multiply,
    arith.MuliOp: np.multiply,
    arith.NegfOp: np.negative,
    ExtFOp: np.positive,
    TruncFOp: np.positive,
}
"""The operations that are computed here, each rounded once in the type of its result, as machines do."""


def _folded(node: Apply, numbers: Sequence[Number]) -> Number | None:
    type = node.types[0]
    dtype = dtype_of(type)
    with np.errstate(all="ignore"):
        values = [_value(n).astype(dtype) for n in numbers]
        return _number(dtype.type(_FOLDED[node.kind](*values)), type)


def _value(number: Number) -> np.generic:
    dtype = dtype_of(number.type)
    wide = np.float64(number.value.data) if isinstance(number, FloatAttr) else np.int64(number.value.data)
    rounded: np.generic = wide.astype(dtype)
    return rounded
