"""Floating-point arithmetic with literals, signs and equal operands: one spelling of each value."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from math import copysign, frexp
from typing import TypeAlias

from xdsl.dialects import arith
from xdsl.dialects.builtin import AnyFloat, FloatAttr
from xdsl.ir import Operation

from compiler.graph.tree import Compute, Graph, Node
from compiler.program import body
from compiler.program.body import Apply, Scalar
from compiler.types.elements import element_bits

EXPONENTS = {16: 13, 32: 125, 64: 1021}
"""Map the bits of a dtype to the largest frexp exponent of a power of two whose reciprocal is a normal number too."""


def simplify_arithmetic(graph: Graph) -> Graph:
    """Replace each expression of the first line by that of the second, which has the same bits.

        x / 4.0, x + x, x * -1.0, a + -b, a - -b, -(-x), x * 1.0, x / 1.0, x - 0.0, x + -0.0, -0.0 - x
      ->
        x * 0.25, x * 2.0, -x, a - b, a + b, x, x, x, x, x, -x

    x + 0.0 stays: it is 0.0 where x is -0.0. So does x / 3.0, which has no exact reciprocal.
    """
    nodes: list[Node] = []
    for node in graph.nodes:
        if isinstance(node, Compute) and node.block.table is None:
            values = tuple(map(_simplified, node.block.body))
            if values != node.block.body:
                node = replace(node, block=replace(node.block, body=values))
        nodes.append(node)
    return graph.with_nodes(nodes)


def _simplified(value: Scalar) -> Scalar:
    memo: dict[int, Scalar] = {}

    def visit(node: Scalar) -> Scalar:
        if not isinstance(node, Apply):
            return node
        if id(node) not in memo:
            operands = [visit(operand) for operand in node.operands]
            rebuilt = body.apply(node.kind, operands, dict(node.properties), node.types, node.result)
            assert isinstance(rebuilt, Apply)
            memo[id(node)] = _one(rebuilt)
        return memo[id(node)]

    return visit(value)


def _one(node: Apply) -> Scalar:
    """Simplify an operation whose operands are simplified already; return it as it is if no rule applies."""
    if node.kind is arith.NegfOp:
        return _inner(node.operands[0]) or node
    rule = _RULES.get(node.kind)
    return node if rule is None else rule(node, *node.operands) or node


def _sum(node: Apply, a: Scalar, b: Scalar) -> Scalar | None:
    if a is b:
        return _with(node, arith.MulfOp, a, _literal(node, 2.0))
    if _is(b, -0.0) or _is(a, -0.0):
        return a if _is(b, -0.0) else b
    first, second = _inner(a), _inner(b)
    if second is not None:
        return _with(node, arith.SubfOp, a, second)
    return None if first is None else _with(node, arith.SubfOp, b, first)


def _difference(node: Apply, a: Scalar, b: Scalar) -> Scalar | None:
    if _is(b, 0.0):
        return a
    if _is(a, -0.0):
        return _with(node, arith.NegfOp, b)
    second = _inner(b)
    return None if second is None else _with(node, arith.AddfOp, a, second)


def _product(node: Apply, a: Scalar, b: Scalar) -> Scalar | None:
    for factor, literal in ((a, b), (b, a)):
        if _is(literal, 1.0):
            return factor
        if _is(literal, -1.0):
            return _with(node, arith.NegfOp, factor)
    return None


def _quotient(node: Apply, a: Scalar, b: Scalar) -> Scalar | None:
    if _is(b, 1.0):
        return a
    divisor = _float(b)
    if divisor is None or abs(frexp(divisor)[0]) != 0.5:
        return None
    if abs(frexp(divisor)[1]) > EXPONENTS[element_bits(node.types[0])]:
        return None
    return _one(_with(node, arith.MulfOp, a, _literal(node, 1.0 / divisor)))


_Rule: TypeAlias = Callable[[Apply, Scalar, Scalar], Scalar | None]
_RULES: dict[type[Operation], _Rule] = {
    arith.AddfOp: _sum,
    arith.SubfOp: _difference,
    arith.MulfOp: _product,
    arith.DivfOp: _quotient,
}


def _with(node: Apply, kind: type[Operation], *operands: Scalar) -> Apply:
    """Return an operation of `kind` on new operands, with the fast-math flags and result types of `node`."""
    rebuilt = body.apply(kind, operands, dict(node.properties), node.types)
    assert isinstance(rebuilt, Apply)
    return rebuilt


def _inner(value: Scalar) -> Scalar | None:
    """The operand of a negation; None for any other value."""
    return value.operands[0] if isinstance(value, Apply) and value.kind is arith.NegfOp else None


def _literal(node: Apply, value: float) -> Scalar:
    (type,) = node.types
    assert isinstance(type, AnyFloat)
    return body.constant(FloatAttr(value, type))


def _float(value: Scalar) -> float | None:
    if not isinstance(value, Apply) or value.kind is not arith.ConstantOp:
        return None
    literal = dict(value.properties)["value"]
    return literal.value.data if isinstance(literal, FloatAttr) else None


def _is(value: Scalar, number: float) -> bool:
    """Whether a value is the literal `number`; 0.0 and -0.0 differ."""
    literal = _float(value)
    return literal is not None and literal == number and copysign(1, literal) == copysign(1, number)
