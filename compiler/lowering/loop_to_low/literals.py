"""Constants of a program: globals of the module, and folding of elements at constant indices.

Operations on such elements alone are folded, rounded in their type. A zero element also folds its products to zero if
the policy allows it (docs/policies.md).
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

from compiler.dialects.dense import DenseAttr
from compiler.dialects.dense_elements import Dense
from compiler.dialects.numbers import array_of, dtype_of
from compiler.dialects.upstream.casts import ExtFOp, TruncFOp
from compiler.dialects.upstream.memref import GlobalOp
from compiler.lowering.loop_to_low.scopes import Scopes
from compiler.program.body import Apply, Read, Scalar
from compiler.program.names import fresh
from compiler.program.tree import Literal
from compiler.program.write import memref_type
from compiler.types.elements import scalar_type

Number = FloatAttr | IntegerAttr


class ConstantGlobals:
    """The globals of constant buffers, with symbols `TITLE_BUFFER` that avoid `taken`; unused globals are dropped.
    names: the symbol of each constant buffer, by the buffer's name. references: each constant with an op that reads its
    global."""

    def __init__(self, title: str, taken: Iterable[str]) -> None:
        self.title, self.taken = title, set(taken)
        self.names: dict[str, str] = {}
        self.references: list[tuple[Literal, GetGlobalOp]] = []

    def get(self, literals: Sequence[Literal], scopes: Scopes) -> dict[str, SSAValue]:
        """Emit a memref.get_global for each constant; map the buffers' names to the memrefs. One buffer name is one
        global in all calls."""
        return {literal.buffer.name: scopes.add(self._get(literal)) for literal in literals}

    def _get(self, literal: Literal) -> GetGlobalOp:
        buffer = literal.buffer
        if buffer.name not in self.names:
            identifier = re.sub(r"\W", "_", f"{self.title}_{buffer.name}", flags=re.ASCII)
            self.names[buffer.name] = fresh(identifier, self.taken).replace(".", "_")
            self.taken.add(self.names[buffer.name])
        op = GetGlobalOp(self.names[buffer.name], memref_type(buffer.scalar, buffer.shape))
        op.memref.name_hint = buffer.name if SSAValue.is_valid_name(buffer.name) else None
        self.references.append((literal, op))
        return op

    def declarations(self) -> list[Operation]:
        """Return declarations of the globals in use; erase the references to all others."""
        used: dict[str, Literal] = {}
        for literal, op in self.references:
            if op.memref.uses:
                used[self.names[literal.buffer.name]] = literal
            else:
                op.detach()
                op.erase()
        return [GlobalOp.private_constant(name, _signless(literal.value)) for name, literal in used.items()]


def module_symbols(function: FuncOp) -> list[str]:
    """Return the symbols of a function's module; none without a module."""
    module = function.parent
    names = [op.properties.get("sym_name") for op in module.ops] if module is not None else []
    return [name.data for name in names if isinstance(name, StringAttr)]


def declare_constants(constants: ConstantGlobals, function: FuncOp) -> None:
    """Insert the declarations of the globals in use before a function in its module; erase unused references."""
    declarations = constants.declarations()
    if declarations:
        assert function.parent is not None
        function.parent.insert_ops_before(declarations, function)


def _signless(value: DenseAttr) -> DenseAttr:
    dense = value.data
    return DenseAttr(Dense(TensorType(scalar_type(dense.type.element_type), dense.shape), dense.data, dense.name))


def constant_element(value: DenseAttr, index: Sequence[int]) -> Number | None:
    """Return the element at an index, clamped into the shape; None for NaN, whose bits a number would lose. The index
    has a number for each dimension."""
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
class KnownNumber:
    """The constant value of an expression, and whether it depends on an element of a constant buffer."""

    value: Number
    of_constant: bool

    @property
    def number(self) -> float:
        """The value as a Python float."""
        return float(self.value.value.data)

    @property
    def is_zero(self) -> bool:
        """Whether the number is 0 or -0."""
        return self.number == 0

    @property
    def adds_nothing(self) -> bool:
        """Whether adding the number is the identity: -0.0, and the integer 0."""
        return self.is_zero and (isinstance(self.value, IntegerAttr) or copysign(1, self.number) < 0)


def known_number(
    node: Scalar, reads: Mapping[int, Number], numbers: dict[int, KnownNumber | None]
) -> KnownNumber | None:
    """Return the value of a literal, an element of a constant, or a sum, difference, product, negation or conversion of
    such values with at least one element; None for other expressions, and where the element or result is NaN. `reads`:
    the elements of constants, by the number of the read; `numbers` caches results by the id of the node."""
    if id(node) not in numbers:
        numbers[id(node)] = _compute_known(node, reads, numbers)
    return numbers[id(node)]


def _compute_known(
    node: Scalar, reads: Mapping[int, Number], cache: dict[int, KnownNumber | None]
) -> KnownNumber | None:
    if isinstance(node, Read):
        return KnownNumber(reads[node.position], True) if node.position in reads else None
    if not isinstance(node, Apply):
        return None
    if node.kind is arith.ConstantOp:
        value = dict(node.properties)["value"]
        return KnownNumber(value, False) if isinstance(value, FloatAttr | IntegerAttr) else None
    operands = [known_number(operand, reads, cache) for operand in node.operands]
    numbers = [operand for operand in operands if operand is not None]
    if len(numbers) < len(operands) or not any(n.of_constant for n in numbers) or node.kind not in _FOLDED:
        return None
    folded = _folded(node, [n.value for n in numbers])
    return None if folded is None else KnownNumber(folded, True)


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
"""Operations that are folded, rounded once in the type of their result, as machines do."""


def _folded(node: Apply, numbers: Sequence[Number]) -> Number | None:
    type = node.types[0]
    dtype = dtype_of(type)
    with np.errstate(all="ignore"):
        values = [_value(n).astype(dtype) for n in numbers]
        return _number(dtype.type(_FOLDED[node.kind](*values)), type)


def _value(number: Number) -> np.generic:
    dtype = dtype_of(number.type)
    widest = np.float64(number.value.data) if isinstance(number, FloatAttr) else np.int64(number.value.data)
    rounded: np.generic = widest.astype(dtype)
    return rounded
