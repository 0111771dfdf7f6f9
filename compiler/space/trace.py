"""Traced numbers: a run of Python code on the integers of one candidate records its computation for all candidates.

A `Traced` represents an integer that depends on the choices of a sketch. It has the value of one candidate, the
witness, so that plain Python code can compute with it, and it records its expression. Where code branches (`if a > b`),
the answer of the witness becomes a guard: the recorded run is valid for all candidates with the same answer. So the
primitives' own plans, run once, give the features of every candidate whose guards agree.

    graph = TraceGraph();  x = graph.input(0, witness=8, low=1, high=64)
    y = x * 2 if x > 4 else x                // one guard, x > 4; y is the expression x * 2
    graph.evaluate([y], columns)             // y of all candidates, as arrays

Source: tracing compilers and their guards (Bala et al., Dynamo, PLDI 2000); concolic execution (Godefroid et al., PLDI
2005), with arrays of candidates in the place of a solver.
"""

from __future__ import annotations

import operator
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

Number: TypeAlias = Any  # an int, a float or a Traced, which is none of these to the type checker
Array: TypeAlias = NDArray[Any]  # of int64 or float64


@dataclass(frozen=True)
class TraceNode:
    """A node of the graph: an operation, by its name, on earlier nodes `args`, a constant `value`, or the input of
    column `value`."""

    name: str
    args: tuple[int, ...] = ()
    value: float = 0


def _divisor(b: Array) -> Array:
    """Return divisors with 0 replaced by 1; quotients of such candidates are not used."""
    return np.where(b == 0, 1, b)


_OPERATIONS: dict[str, tuple[Callable[[Number, Number], Number], Callable[[Array, Array], Array]]] = {
    "add": (operator.add, np.add),
    "sub": (operator.sub, np.subtract),
    "mul": (operator.mul, np.multiply),
    "floordiv": (operator.floordiv, lambda a, b: a // _divisor(b)),
    "mod": (operator.mod, lambda a, b: a % _divisor(b)),
    "truediv": (operator.truediv, lambda a, b: a / _divisor(b)),
    "least": (min, np.minimum),
    "greatest": (max, np.maximum),
    "lt": (operator.lt, lambda a, b: np.less(a, b).astype(np.int64)),
    "le": (operator.le, lambda a, b: np.less_equal(a, b).astype(np.int64)),
    "eq": (operator.eq, lambda a, b: np.equal(a, b).astype(np.int64)),
}
"""Each operation on two numbers, and on the arrays of all candidates."""


class TraceGraph:
    """A graph of expressions without duplicates, and the guards of the current run in order: nodes and answers."""

    def __init__(self) -> None:
        self.nodes: list[TraceNode] = []
        self.guards: list[tuple[int, bool]] = []
        self._numbers: dict[TraceNode, int] = {}
        self._answered: dict[int, bool] = {}

    def begin(self) -> None:
        """Begin a run: drop the guards of the previous one."""
        self.guards, self._answered = [], {}

    def input(self, column: int, witness: int, low: int, high: int) -> Number:
        """Return the number of an input column, with the witness's value and its bounds over all candidates; the int
        itself if the bounds are equal."""
        if low == high:
            return low
        return Traced(self, self._number(TraceNode("input", (), column)), witness, low, high)

    def _number(self, node: TraceNode) -> int:
        number = self._numbers.get(node)
        if number is None:
            number = self._numbers[node] = len(self.nodes)
            self.nodes.append(node)
        return number

    def number_of(self, value: Number) -> int:
        """The index of the node of a number; a constant gets a node if it has none."""
        return value.node if isinstance(value, Traced) else self._number(TraceNode("constant", (), value))

    def apply(self, name: str, *operands: Number) -> int:
        """Return the index of the node that applies the operation `name` to numbers; it is added if it is new."""
        return self._number(TraceNode(name, tuple(self.number_of(operand) for operand in operands)))

    def answer(self, node: int, of_witness: bool) -> bool:
        """Record the witness's answer to a condition as a guard, once a run, and return it."""
        if node not in self._answered:
            self._answered[node] = of_witness
            self.guards.append((node, of_witness))
        return of_witness

    def evaluate(self, nodes: Sequence[int], columns: Array, evaluated: dict[int, Array] | None = None) -> list[Array]:
        """Return the arrays (n,) of nodes for n candidates, whose inputs are the columns of an array (n, columns); the
        array of a constant is a scalar. `evaluated` caches arrays by node. Expressions are evaluated for all
        candidates, also those whose run does not reach them: such values are meaningless."""
        evaluated = {} if evaluated is None else evaluated
        return [evaluated[node] if node in evaluated else self._evaluated(node, columns, evaluated) for node in nodes]

    def _evaluated(self, number: int, columns: Array, arrays: dict[int, Array]) -> Array:
        stack = [number]
        while stack:
            node = self.nodes[stack[-1]]
            missing = [argument for argument in node.args if argument not in arrays]
            if missing:
                stack += missing
            else:
                top = stack.pop()
                if top not in arrays:
                    arrays[top] = self._array(node, columns, arrays)
        return arrays[number]

    def _array(self, node: TraceNode, columns: Array, evaluated: dict[int, Array]) -> Array:
        if node.name == "input":
            column: Array = columns[:, int(node.value)]
            return column
        if node.name == "constant":
            return np.asarray(node.value)
        a, b = (evaluated[argument] for argument in node.args)
        return _OPERATIONS[node.name][1](a, b)


class Traced:
    """A number that depends on choices: the witness's value, its expression as a node, and bounds over all
    candidates."""

    __slots__ = ("graph", "high", "low", "node", "value")

    def __init__(self, graph: TraceGraph, node: int, value: Number, low: Number, high: Number) -> None:
        self.graph, self.node, self.value, self.low, self.high = graph, node, value, low, high

    # --- arithmetic ---------------------------------------------------------------------------------------------

    def _apply(self, name: str, a: Number, b: Number, low: Number, high: Number) -> Number:
        value = _OPERATIONS[name][0](witness_value(a), witness_value(b))
        if low == high and name != "truediv":
            return low
        return Traced(self.graph, self.graph.apply(name, a, b), value, low, high)

    def __add__(self, other: Number) -> Number:
        if not _is_number(other):
            return NotImplemented
        if not isinstance(other, Traced) and other == 0:
            return self
        return self._apply("add", self, other, self.low + lower_bound(other), self.high + upper_bound(other))

    __radd__ = __add__

    def __sub__(self, other: Number) -> Number:
        if not isinstance(other, Traced):
            return self + -other if _is_number(other) else NotImplemented
        if other.node == self.node:
            return 0
        return self._apply("sub", self, other, self.low - other.high, self.high - other.low)

    def __rsub__(self, other: Number) -> Number:
        return self._apply("sub", other, self, other - self.high, other - self.low)

    def __neg__(self) -> Number:
        return self * -1

    def __abs__(self) -> Number:
        return -self if self < 0 else self

    def __mul__(self, other: Number) -> Number:
        if not _is_number(other):
            return NotImplemented
        if not isinstance(other, Traced) and other in (0, 1):
            return self if other == 1 else 0
        ends = [
            a * b if a and b else 0 for a in (self.low, self.high) for b in (lower_bound(other), upper_bound(other))
        ]
        return self._apply("mul", self, other, min(ends), max(ends))

    __rmul__ = __mul__

    def __floordiv__(self, other: Number) -> Number:
        cofactor = self._factor_without(other)
        if cofactor is not None:
            return cofactor
        return self._apply("floordiv", self, other, *_bounds("floordiv", self, other))

    def __rfloordiv__(self, other: Number) -> Number:
        return self._apply("floordiv", other, self, *_bounds("floordiv", other, self))

    def __mod__(self, other: Number) -> Number:
        if self._factor_without(other) is not None:
            return 0
        if lower_bound(other) > self.high and self.low >= 0:
            return self
        return self._apply("mod", self, other, 0, upper_bound(other) - 1)

    def __rmod__(self, other: Number) -> Number:
        if 0 <= other < self.low:
            return other
        return self._apply("mod", other, self, 0, self.high - 1 if other < 0 else min(self.high - 1, other))

    def __truediv__(self, other: Number) -> Number:
        return self._apply("truediv", self, other, *_bounds("truediv", self, other))

    def __rtruediv__(self, other: Number) -> Number:
        return self._apply("truediv", other, self, *_bounds("truediv", other, self))

    def _factor_without(self, divisor: Number) -> Number | None:
        """The quotient by a divisor that is a factor of this product, without a division; None for another number."""
        node = self.graph.nodes[self.node]
        if not isinstance(divisor, Traced):
            return self if divisor == 1 else self._scaled_down(node, divisor)
        if divisor.node == self.node:
            return 1
        if node.name != "mul" or divisor.node not in node.args:
            return None
        cofactor = node.args[1] if node.args[0] == divisor.node else node.args[0]
        factor = self.graph.nodes[cofactor]
        if factor.name == "constant":
            return int(factor.value)
        return Traced(self.graph, cofactor, self.value // divisor.value, self.low // divisor.high, self.high)

    def _scaled_down(self, node: TraceNode, divisor: int) -> Number | None:
        """The exact quotient of a product with a constant by a divisor of that constant; None for another number, and
        unless the divisor is positive and divides the constant."""
        if node.name != "mul" or self.graph.nodes[node.args[1]].name != "constant":
            return None
        factor = int(self.graph.nodes[node.args[1]].value)
        if divisor < 1 or factor % divisor:
            return None
        cofactor = Traced(self.graph, node.args[0], self.value // factor, self.low // factor, self.high // factor)
        return cofactor * (factor // divisor)

    # --- decisions ----------------------------------------------------------------------------------------------

    def _compare(self, name: str, a: Number, b: Number) -> bool:
        decided = _decided(name, a, b)
        if decided is not None:
            return decided
        return self.graph.answer(
            self.graph.apply(name, a, b), bool(_OPERATIONS[name][0](witness_value(a), witness_value(b)))
        )

    def __lt__(self, other: Number) -> bool:
        return self._compare("lt", self, other)

    def __gt__(self, other: Number) -> bool:
        return self._compare("lt", other, self)

    def __le__(self, other: Number) -> bool:
        return self._compare("le", self, other)

    def __ge__(self, other: Number) -> bool:
        return self._compare("le", other, self)

    def __eq__(self, other: object) -> bool:
        return self._compare("eq", self, other) if _is_number(other) else False

    def __hash__(self) -> int:
        return 0  # equal numbers must have one hash, and a guard decides which are equal

    def __bool__(self) -> bool:
        return not self._compare("eq", self, 0)

    def __index__(self) -> int:
        """The witness's value. A guard restricts the run to candidates with the same value."""
        self._compare("eq", self, self.value)
        return int(self.value)

    __int__ = __index__

    def __repr__(self) -> str:
        """The witness's value, for messages and for isl, which checks the legality of the witness."""
        return str(self.value)


def _is_number(value: object) -> bool:
    return isinstance(value, Traced | int | float)


def witness_value(number: Number) -> Number:
    """The number itself, or the witness's value of a traced one."""
    return number.value if isinstance(number, Traced) else number


def lower_bound(number: Number) -> Number:
    """A lower bound of a number over all candidates."""
    return number.low if isinstance(number, Traced) else number


def upper_bound(number: Number) -> Number:
    """An upper bound of a number over all candidates."""
    return number.high if isinstance(number, Traced) else number


def _bounds(name: str, a: Number, b: Number) -> tuple[Number, Number]:
    """The bounds of a / b over all candidates, `name` floordiv or truediv; infinite if b may be zero or negative."""
    if lower_bound(b) <= 0:
        return -np.inf, np.inf
    # floordiv of a in 8..64 by b in 2..4: the quotients of the ends are 4, 2, 32 and 16, so it is in 2..32.
    divide = _OPERATIONS[name][0]
    ends = [divide(x, y) for x in (lower_bound(a), upper_bound(a)) for y in (lower_bound(b), upper_bound(b))]
    return min(ends), max(ends)


def _decided(name: str, a: Number, b: Number) -> bool | None:
    """Return the answer to the comparison `name` (lt, le or eq) of a and b if it is the same for all candidates, by
    their bounds; else None."""
    # a < b for a in 1..8: with b in 9..64 True, with b = 1 False, with b in 4..64 None.
    if name == "eq":
        if isinstance(a, Traced) and isinstance(b, Traced) and a.node == b.node:
            return True
        return False if upper_bound(a) < lower_bound(b) or upper_bound(b) < lower_bound(a) else None
    less = operator.lt if name == "lt" else operator.le
    if less(upper_bound(a), lower_bound(b)):
        return True
    return None if less(lower_bound(a), upper_bound(b)) else False


def _joined(name: str, values: Sequence[Number]) -> Number:
    joined = values[0]
    for value in values[1:]:
        traced = next((v for v in (joined, value) if isinstance(v, Traced)), None)
        pick = _OPERATIONS[name][0]
        if traced is None:
            joined = pick(joined, value)
        elif _decided("le", joined, value) is not None or _decided("le", value, joined) is not None:
            first = _decided("le", joined, value) or _decided("le", value, joined) is False
            joined = (joined if first else value) if name == "least" else (value if first else joined)
        else:
            joined = traced._apply(
                name,
                joined,
                value,
                pick(lower_bound(joined), lower_bound(value)),
                pick(upper_bound(joined), upper_bound(value)),
            )
    return joined


def traced_min(*values: Number) -> Number:
    """The minimum of at least one number, for all candidates, without a guard; traced if it may differ between them."""
    return _joined("least", values)


def traced_max(*values: Number) -> Number:
    """The maximum of at least one number, for all candidates, without a guard; traced if it may differ between them."""
    return _joined("greatest", values)


def traced_comparison(name: str, a: Number, b: Number) -> Number:
    """Compare two numbers for all candidates, without a guard: 1 if a < b (name `lt`), a <= b (`le`) or a == b (`eq`),
    else 0; a traced number with bounds 0 and 1 if the result may differ between candidates."""
    decided = _decided(name, a, b)
    if decided is not None:
        return int(decided)
    traced = a if isinstance(a, Traced) else b
    if not isinstance(traced, Traced):
        return int(_OPERATIONS[name][0](a, b))
    return Traced(
        traced.graph,
        traced.graph.apply(name, a, b),
        int(_OPERATIONS[name][0](witness_value(a), witness_value(b))),
        0,
        1,
    )
