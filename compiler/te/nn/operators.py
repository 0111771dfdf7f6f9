"""Python's operators on tensors: a table from symbols to named operators."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from compiler.support.errors import TeError
from compiler.te.expr import Expr
from compiler.te.index import Condition, Index
from compiler.te.nn import division, elementwise
from compiler.te.nn.contraction import broadcast_matmul
from compiler.te.tensor import OPERATORS, Tensor


def _power(base: object, exponent: object) -> Tensor:
    """Build base^exponent; exponent 2 is a product."""
    if isinstance(base, Tensor) and isinstance(exponent, int | float) and exponent == 2:
        return elementwise.square(base)
    return elementwise.pow(base, exponent)  # type: ignore[arg-type]


def _product(a: object, b: object) -> Tensor:
    """Build numpy's matmul of two tensors. Raises TeError for an operand that is a number."""
    if not isinstance(a, Tensor) or not isinstance(b, Tensor):
        raise TeError("@ is the product of two tensors; * multiplies by a number")
    return broadcast_matmul(a, b, "matmul")


BINARY: dict[str, Callable[..., Tensor]] = {
    "+": elementwise.add,
    "-": elementwise.sub,
    "*": elementwise.mul,
    "/": elementwise.div,
    "//": division.floor_divide,
    "%": division.remainder,
    "**": _power,
    "@": _product,
    "&": elementwise.bitwise_and,
    "|": elementwise.bitwise_or,
    "^": elementwise.bitwise_xor,
    "<<": elementwise.left_shift,
    ">>": elementwise.right_shift,
    "<": elementwise.less,
    "<=": elementwise.less_equal,
    ">": elementwise.greater,
    ">=": elementwise.greater_equal,
}


def _checked(symbol: str, build: Callable[..., Tensor]) -> Callable[[object, object], Tensor]:
    """Wrap an operator so that it raises TeError for an operand that is neither tensor nor number, and, except for @,
    for mixed dtypes."""

    def operate(left: object, right: object) -> Tensor:
        a, b = _operand(symbol, left, right), _operand(symbol, right, left)
        if symbol != "@" and isinstance(a, Tensor) and isinstance(b, Tensor) and a.dtype != b.dtype:
            raise TeError(
                f"'{a.name}' {symbol} '{b.name}': {a.dtype} and {b.dtype} do not mix; te.nn.cast converts one of them"
            )
        return build(a, b)

    return operate


def _operand(symbol: str, x: object, other_operand: object) -> Tensor | float:
    """Return an operand, a numpy scalar as Python's number. Raises TeError unless it is a tensor or a number; the
    message names the other operand."""
    number = x.item() if isinstance(x, np.generic) else x
    if isinstance(number, Tensor | int | float):
        return number
    name = other_operand.name if isinstance(other_operand, Tensor) else "?"
    if isinstance(x, Expr | Index | Condition):
        raise TeError(f"tensor '{name}' is used whole with {symbol}; index it, or use te.nn")
    description = "an array: te.constant makes a tensor of it" if isinstance(x, np.ndarray | list | tuple) else f"{x!r}"
    raise TeError(f"tensor '{name}' {symbol} {description}")


OPERATORS.update({symbol: _checked(symbol, build) for symbol, build in BINARY.items()})
OPERATORS.update({"neg": elementwise.neg, "abs": elementwise.abs, "~": elementwise.bitwise_not})
