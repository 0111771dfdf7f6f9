"""Scalar bodies as hash-consed expressions: equal expressions are one object, so `is` compares them."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import TypeAlias

from xdsl.dialects import arith
from xdsl.dialects.builtin import FloatAttr, IndexType, IntAttr, IntegerAttr, i1, i64
from xdsl.ir import Attribute, Block, Operation, SSAValue

from compiler.affine.condition import Condition
from compiler.affine.linear import Linear
from compiler.dialects import loop, te
from compiler.dialects.access import AxisAttr
from compiler.dialects.upstream.arith import CmpiOp, SelectOp, kind_of


@dataclass(frozen=True, eq=False, slots=True)
class Read:
    """The value that read number `position` of a block loads. `type` is that of a scalar.

    >>> A = te.placeholder((4,), name="A")
    >>> (value,) = Schedule(te.function("f", [A], te.nn.exp(A, name="B"))).program.blocks["B"].body
    >>> value.operands[0].position
    0
    """

    position: int
    type: Attribute


@dataclass(frozen=True, eq=False, slots=True)
class Index:
    """The value of a block's axis number `axis`.

    >>> strata.program.Index(1).axis
    1
    """

    axis: int


@dataclass(frozen=True, eq=False, slots=True)
class Apply:
    """Result number `result` of the scalar operation `kind` on operands; `types` are those of all its results,
    `properties` sorted by name.

    >>> A = te.placeholder((4,), name="A")
    >>> (value,) = Schedule(te.function("f", [A], te.nn.exp(A, name="B"))).program.blocks["B"].body
    >>> value.kind.name, value.operands
    ('math.exp', (Read(position=0, type=Float32Type()),))
    """

    kind: type[Operation]
    operands: tuple[Scalar, ...]
    properties: tuple[tuple[str, Attribute], ...]
    types: tuple[Attribute, ...]
    result: int = 0


Scalar: TypeAlias = Read | Index | Apply

_expressions: dict[object, Scalar] = {}


def read(position: int, type: Attribute) -> Scalar:
    """Return the unique `Read` of a position and a type."""
    return _expressions.setdefault(("read", position, type), Read(position, type))


def index(axis: int) -> Scalar:
    """Return the unique `Index` of an axis."""
    return _expressions.setdefault(("index", axis), Index(axis))


def apply(
    kind: type[Operation],
    operands: Sequence[Scalar],
    properties: Mapping[str, Attribute],
    types: Sequence[Attribute],
    result: int = 0,
) -> Scalar:
    """Return the unique `Apply` for result number `result` of an operation, whose results have these types."""
    sorted_properties = tuple(sorted(properties.items()))
    key = (kind, tuple(map(id, operands)), sorted_properties, tuple(types), result)
    return _expressions.setdefault(key, Apply(kind, tuple(operands), sorted_properties, tuple(types), result))


def constant(value: FloatAttr | IntegerAttr) -> Scalar:
    """Return the expression of a literal."""
    return apply(arith.ConstantOp, (), {"value": value}, (value.type,))


def from_block(block: Block, labels: Sequence[str]) -> tuple[Scalar, ...]:
    """Translate a body to the expressions that it yields: argument n is read n, the axis labels[n] is axis n.
    Attributes and properties of an op are one map. Requires a body that ends with a yield."""
    values: dict[SSAValue, Scalar] = {arg: read(n, arg.type) for n, arg in enumerate(block.args)}
    for op in block.ops:
        if isinstance(op, loop.YieldOp | te.YieldOp):
            return tuple(values[v] for v in op.values)
        if isinstance(op, loop.IndexOp | te.IndexOp):
            values[op.value] = index(labels.index(op.label.data))
            continue
        operands = [values[v] for v in op.operands]
        types = [r.type for r in op.results]
        for number, value in enumerate(op.results):
            values[value] = apply(kind_of(op), operands, op.properties | op.attributes, types, number)
    raise AssertionError("a body ends with a yield")


def to_block(
    yields: Sequence[Scalar],
    types: Sequence[Attribute],
    axes: Sequence[AxisAttr],
    index_op: type[loop.IndexOp | te.IndexOp] = loop.IndexOp,
    yield_op: type[loop.YieldOp | te.YieldOp] = loop.YieldOp,
) -> Block:
    """Build a body that yields these expressions, one op for each distinct subexpression; argument n is read n.

    `types` are the types of the reads, `axes` the axes whose values occur; `index_op` and `yield_op` are the ops of the
    body's level, te or loop.
    """
    block = Block(arg_types=types)
    emitted: dict[tuple[object, ...], Operation] = {}

    def value(node: Scalar) -> SSAValue:
        if isinstance(node, Read):
            return block.args[node.position]
        if isinstance(node, Index):
            return operation((Index, node.axis), lambda: index_op(axes[node.axis].label)).results[0]
        operands = [value(operand) for operand in node.operands]
        key = (node.kind, *map(id, operands), node.properties, node.types)
        return operation(key, lambda: _create(node, operands)).results[node.result]

    def operation(key: tuple[object, ...], make: Callable[[], Operation]) -> Operation:
        if key not in emitted:
            emitted[key] = make()
            block.add_op(emitted[key])
        return emitted[key]

    block.add_op(yield_op(*map(value, yields)))
    return block


def _create(node: Apply, operands: Sequence[SSAValue]) -> Operation:
    return node.kind.create(operands=operands, result_types=node.types, properties=dict(node.properties))


def rewrite(node: Scalar, reads: Mapping[int, Scalar], axes: Mapping[int, Linear] | None = None) -> Scalar:
    """Return an expression with expressions substituted for reads, by position, and forms over axes for axes, by
    number; other leaves stay, and all axes if `axes` is None."""
    forms = axes or {}

    def leaf(node: Scalar) -> Scalar | None:
        if isinstance(node, Read):
            return reads.get(node.position, node)
        return from_linear(forms[node.axis]) if isinstance(node, Index) and node.axis in forms else None

    return _mapped(node, leaf)


def replaced(node: Scalar, old: Scalar, new: Scalar) -> Scalar:
    """Substitute `new` for the subexpression `old`, wherever it occurs."""
    return _mapped(node, lambda inner: new if inner is old else None)


def _mapped(node: Scalar, change: Callable[[Scalar], Scalar | None]) -> Scalar:
    """Replace each subexpression n by `change(n)`, outermost first; where that is None, visit the operands of n."""
    mapped: dict[int, Scalar] = {}

    def visit(node: Scalar) -> Scalar:
        if id(node) not in mapped:
            new = change(node)
            if new is None and isinstance(node, Apply):
                operands = [visit(operand) for operand in node.operands]
                new = apply(node.kind, operands, dict(node.properties), node.types, node.result)
            mapped[id(node)] = node if new is None else new
        return mapped[id(node)]

    return visit(node)


def leaves(nodes: Sequence[Scalar]) -> list[Read | Index]:
    """The reads and axis values in some expressions, each once, in no particular order."""
    return [node for node in reached(nodes) if not isinstance(node, Apply)]


def reached(nodes: Sequence[Scalar]) -> list[Scalar]:
    """The subexpressions of some expressions, these included, each once, in no particular order."""
    seen: dict[int, Scalar] = {}
    stack = list(nodes)
    while stack:
        node = stack.pop()
        if id(node) not in seen:
            seen[id(node)] = node
            stack += node.operands if isinstance(node, Apply) else ()
    return list(seen.values())


INDEX = IndexType()
"""The type of an axis value."""


def _literal(value: int) -> Scalar:
    return constant(IntegerAttr(IntAttr(value), INDEX))


def _binary(kind: type[Operation], lhs: Scalar, rhs: Scalar) -> Scalar:
    return apply(kind, (lhs, rhs), {}, (INDEX,))


def from_linear(form: Linear) -> Scalar:
    """Translate a form over axes to an expression of type index."""
    total: Scalar | None = None if form.terms else _literal(form.constant)
    for atom, factor in form.terms:
        if isinstance(atom, int):
            term = index(atom)
        else:  # f mod d is f - d*(f floordiv d), which is not negative
            inner, divisor = from_linear(atom.form), _literal(atom.divisor)
            floor = _binary(arith.FloorDivSIOp, inner, divisor)
            term = floor
            if atom.is_mod:
                term = _binary(arith.SubiOp, inner, _binary(arith.MuliOp, floor, divisor))
        term = term if factor == 1 else _binary(arith.MuliOp, term, _literal(factor))
        total = term if total is None else _binary(arith.AddiOp, total, term)
    assert total is not None
    return _binary(arith.AddiOp, total, _literal(form.constant)) if form.constant and form.terms else total


def select(tests: Sequence[Condition], then: Scalar, otherwise: Scalar, type: Attribute) -> Scalar:
    """Build the expression that is `then` if all conditions over axes hold, else `otherwise`, both of type `type`;
    without conditions it is `then`."""
    for test in reversed(tests):
        predicate = IntegerAttr(0 if test.equal else 5, i64)  # eq, sge
        truth = apply(CmpiOp, (from_linear(test.form), _literal(0)), {"predicate": predicate}, (i1,))
        then = apply(SelectOp, (truth, then, otherwise), {}, (type,))
    return then
