"""`BODIES`: the scalar bodies of named linalg ops, by name; those of products, pooling and copies convert operands."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TypeAlias

from xdsl.dialects import arith, math
from xdsl.dialects.builtin import AnyFloat, FloatAttr, IndexType, IntegerType
from xdsl.ir import Attribute, Block, Operation, Region, SSAValue

from compiler.dialects.upstream.arith import SelectOp
from compiler.dialects.upstream.casts import (
    ExtFOp,
    ExtSIOp,
    ExtUIOp,
    FPToSIOp,
    FPToUIOp,
    SIToFPOp,
    TruncFOp,
    TruncIOp,
    UIToFPOp,
)
from compiler.types.elements import element_bits

Rule: TypeAlias = "Callable[[Scalars, Sequence[SSAValue]], SSAValue]"
"""Appends the ops of a body to its block, from the block's arguments, the output's last; returns the yielded value."""


class Scalars:
    """A scalar body under construction; its methods choose the op by the type: floats, integers or i1. `unsigned`:
    conversions take integers as unsigned."""

    def __init__(self, block: Block, unsigned: bool) -> None:
        self.block = block
        self.unsigned = unsigned

    def add(self, op: Operation) -> SSAValue:
        """Append an op, and return its result."""
        self.block.add_op(op)
        return op.results[0]

    def cast(self, value: SSAValue, type: Attribute) -> SSAValue:
        """Convert a value to a type as MLIR's named ops do; integers are signed unless the op casts unsigned."""
        source = value.type
        if source == type:
            return value
        is_float = isinstance(source, AnyFloat), isinstance(type, AnyFloat)
        if is_float == (True, True):
            return self.add((ExtFOp if element_bits(source) < element_bits(type) else TruncFOp)(value, type))
        if is_float == (True, False):
            return self.add((FPToUIOp if self.unsigned else FPToSIOp)(value, type))
        if is_float == (False, True):
            return self.add((UIToFPOp if self.unsigned else SIToFPOp)(value, type))
        if element_bits(source) > element_bits(type):
            return self.add(TruncIOp(value, type))
        return self.add((ExtUIOp if self.unsigned else ExtSIOp)(value, type))

    def apply(self, name: str, *values: SSAValue) -> SSAValue:
        """Append the op of a binary function, such as add, for the type of the last operand; return its result. Raises
        ValueError if the function has no op for this type."""
        row = 0 if isinstance(values[-1].type, AnyFloat) else 2 if values[-1].type == IntegerType(1) else 1
        kind = _BINARY[name][row]
        if kind is None:
            raise ValueError(f"{name} is not for elements of type {values[-1].type}")
        return self.add(kind(*values))


_BINARY: dict[str, tuple[Callable[..., Operation] | None, ...]] = {
    "add": (arith.AddfOp, arith.AddiOp, arith.OrIOp),
    "sub": (arith.SubfOp, arith.SubiOp, None),
    "mul": (arith.MulfOp, arith.MuliOp, arith.AndIOp),
    "div": (arith.DivfOp, arith.DivSIOp, None),
    "div_unsigned": (None, arith.DivUIOp, None),
    "max": (arith.MaximumfOp, arith.MaxSIOp, arith.MaxSIOp),
    "min": (arith.MinimumfOp, arith.MinSIOp, arith.MinSIOp),
    "max_unsigned": (arith.MaximumfOp, arith.MaxUIOp, arith.MaxUIOp),
    "min_unsigned": (arith.MinimumfOp, arith.MinUIOp, arith.MinUIOp),
    "powf": (math.PowFOp, None, None),
}
"""Map each binary function to its ops on floats, on integers and on i1; None if it has none."""

_UNARY: dict[str, Callable[..., Operation]] = {
    "exp": math.ExpOp,
    "log": math.LogOp,
    "abs": math.AbsFOp,
    "ceil": math.CeilOp,
    "floor": math.FloorOp,
    "negf": arith.NegfOp,
    "round": math.RoundOp,
    "sqrt": math.SqrtOp,
    "rsqrt": math.RsqrtOp,
    "tanh": math.TanhOp,
    "erf": math.ErfOp,
}


def _mul_add(body: Scalars, values: Sequence[SSAValue]) -> SSAValue:
    a, b, out = values
    return body.apply("add", out, body.apply("mul", body.cast(a, out.type), body.cast(b, out.type)))


def _mul_add_shifted(body: Scalars, values: Sequence[SSAValue]) -> SSAValue:
    out = values[-1]
    a, b, a_zero, b_zero = (body.cast(value, out.type) for value in values[:-1])
    product = body.apply("mul", body.apply("sub", a, a_zero), body.apply("sub", b, b_zero))
    return body.apply("add", out, product)


def _pool(name: str) -> Rule:
    def build(body: Scalars, values: Sequence[SSAValue]) -> SSAValue:
        body.unsigned = body.unsigned or name.endswith("unsigned")
        return body.apply(name, values[-1], body.cast(values[0], values[-1].type))

    return build


def _unary(name: str) -> Rule:
    def build(body: Scalars, values: Sequence[SSAValue]) -> SSAValue:
        _check_float(name, values[0].type)
        return body.add(_UNARY[name](values[0]))

    return build


def _check_float(name: str, type: Attribute) -> AnyFloat:
    if not isinstance(type, AnyFloat):
        raise ValueError(f"{name} is not for elements of type {type}")
    return type


def _binary(name: str) -> Rule:
    return lambda body, values: body.apply(name, values[0], values[1])


def _reciprocal(body: Scalars, values: Sequence[SSAValue]) -> SSAValue:
    type = _check_float("reciprocal", values[0].type)
    return body.apply("div", body.add(arith.ConstantOp(FloatAttr(1.0, type))), values[0])


def _square(body: Scalars, values: Sequence[SSAValue]) -> SSAValue:
    return body.apply("mul", values[0], values[0])


def _select(body: Scalars, values: Sequence[SSAValue]) -> SSAValue:
    return body.add(SelectOp(*values[:3]))


def _copy(body: Scalars, values: Sequence[SSAValue]) -> SSAValue:
    return body.cast(values[0], values[-1].type)


BODIES: dict[str, Rule] = {
    "mul_add": _mul_add,
    "mul_add_shifted": _mul_add_shifted,
    **{name: _unary(name) for name in _UNARY},
    **{name: _binary(name) for name in _BINARY},
    **{f"pool_{name}": _pool(name) for name in ("max", "max_unsigned", "min", "min_unsigned")},
    "pool_sum": _pool("add"),
    "reciprocal": _reciprocal,
    "square": _square,
    "select": _select,
    "copy": _copy,
}
"""Map the name of each body to the rule that builds it."""


def build_body(name: str, types: Sequence[Attribute], unsigned: bool, end: Callable[..., Operation]) -> Region:
    """Build the body `name` of BODIES of a named op, for scalars of the types of its operands, the output's last; its
    terminator is of the class `end`. With `unsigned`, conversions of integers are unsigned. Raises ValueError for types
    that the op does not accept."""
    if not all(isinstance(type, AnyFloat | IntegerType | IndexType) for type in types):
        raise ValueError(f"its elements are of type {', '.join(map(str, types))}, not numbers")
    operands = types[1:-1] if name == "select" else types[:-1]
    if name in (*_UNARY, *_BINARY, "reciprocal", "square", "select") and {*operands} != {types[-1]}:
        raise ValueError(f"its operands are of type {', '.join(map(str, types))}: it converts none")
    block = Block(arg_types=types)
    block.add_op(end(BODIES[name](Scalars(block, unsigned), block.args)))
    return Region(block)
