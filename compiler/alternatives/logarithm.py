"""logarithm: write exp(x - max x - log sum exp(x - max x)), a softmax, as a quotient."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from math import prod
from typing import TypeAlias

from xdsl.dialects import arith, math
from xdsl.dialects.builtin import Float32Type, Float64Type, FloatAttr
from xdsl.ir import Operation

from compiler.affine import linear as lin
from compiler.alternatives.cost import cycles
from compiler.alternatives.law import Conditions, Form, Law, LawScope, rounding_of_sums
from compiler.graph.tree import Compute, Graph
from compiler.program import body
from compiler.program.body import Apply, Read, Scalar
from compiler.program.tree import Access, Block, access_at

POWER = 12
"""The estimated operations of an exponential, which the quotient saves for each element."""


def _forms(graph: Graph, conditions: Conditions) -> Iterator[Form]:
    """Divide by a sum of exponentials instead of subtracting its logarithm in the exponent.

        %M = te.compute "M" [i = 64, reduce k = 1024] combine [max] (%x = %X[i, k] ...) { %x }
        %S = te.compute "S" [i = 64, reduce k = 1024] combine [add] (%x = %X[i, k] ..., %m = %M[i] ...) { exp(%x - %m) }
        %Y = te.compute "Y" [i = 64, j = 1024] (%x = %X[i, j] ..., %m = %M[i] ..., %s = %S[i] ...) {
            exp(%x - %m - log(%s)) }
      ->
        %Y = te.compute "Y" [i = 64, j = 1024] (%x = %X[i, j] ..., %m = %M[i] ..., %s = %S[i] ...) {
            exp(%x - %m) * (1.0 / %s) }

    The exponent may be written in any order, and in several elementwise computes. Exponentials are at most 1, and their
    sum is between 1 and the number of terms: nothing overflows, and both forms have the same NaN and infinite results.
    It applies to f32 and f64, not under `strict`.

    Rounding, of N terms, over the largest result: N for the sum, and two for its reciprocal and the product. As written
    N for the sum, whose relative error is the absolute error of its logarithm, one for the logarithm, and two for the
    differences.
    """
    for node in graph.nodes if conditions.policy != "strict" else ():
        exponent = _softmax_exponent(node, graph)
        if exponent is not None and isinstance(node, Compute):
            count = prod(axis.size for axis in exponent.sum.block.axes[exponent.sum.block.spatial :])
            unit = 2.0 ** -(24 if isinstance(exponent.sum.results[0].element, Float32Type) else 53)
            block = _divided(node.block, exponent)
            new = graph.with_nodes([replace(n, block=block) if n is node else n for n in graph.nodes])
            saved = POWER * prod(axis.size for axis in node.block.axes) / (4 * conditions.machine.lanes)
            written = cycles(graph, conditions)
            bounds = rounding_of_sums([count + 2], unit), rounding_of_sums([count + 3], unit)
            where = f"{node.block.label} divides by {exponent.sum.block.label}, not by the power of its logarithm"
            yield Form(new, written / max(written - saved, 1), *bounds, where=where)


@dataclass(frozen=True)
class _At:
    """An expression and its reads, whose indices are forms over the axes of the compute under inspection."""

    value: Scalar
    reads: Sequence[Access]

    def operand(self, number: int) -> _At:
        """The operand of the expression at position `number`, over the same reads."""
        assert isinstance(self.value, Apply)
        return _At(self.value.operands[number], self.reads)


@dataclass(frozen=True)
class _Exponent:
    """An exponential `value` of x - max x - log sum exp(x - max x): its reads of x, of the maximum and of the sum, and
    the compute of the sum."""

    value: Apply
    x: Access
    maximum: Access
    total: Access
    sum: Compute


def _softmax_exponent(node: object, graph: Graph) -> _Exponent | None:
    """The first exponential of the form of `_Exponent` in an elementwise compute; None if there is none."""
    if not isinstance(node, Compute) or node.block.combiners or node.block.table is not None:
        return None
    for value in body.reached(node.block.body):
        if isinstance(value, Apply) and value.kind is math.ExpOp:
            terms = _terms(_At(value.operands[0], node.block.reads), graph, node.block, 1)
            exponent = terms and _softmax(value, terms, graph)
            if exponent:
                return exponent
    return None


_Term: TypeAlias = tuple[int, bool, Access]
"""A term of an exponent: its sign, whether it is the logarithm of the read, and the read."""
_SIGNS: dict[type[Operation], tuple[int, ...]] = {arith.AddfOp: (1, 1), arith.SubfOp: (1, -1), arith.NegfOp: (-1,)}
"""Map a sum, difference or negation to the signs of its operands."""


def _terms(at: _At, graph: Graph, block: Block, sign: int) -> list[_Term] | None:
    """The terms of an exponent times `sign`, with elementwise producers inlined up to the operand of a maximum; None
    unless all are reads or logarithms of reads."""
    resolved = _resolved(at, graph, block)
    value = resolved.value
    if isinstance(value, Read):
        return [(sign, False, resolved.reads[value.position])]
    if not isinstance(value, Apply):
        return None
    if value.kind is math.LogOp:
        inner = _resolved(resolved.operand(0), graph, block)
        return [(sign, True, inner.reads[inner.value.position])] if isinstance(inner.value, Read) else None
    terms: list[_Term] = []
    for number, factor in enumerate(_SIGNS.get(value.kind, ())):
        more = _terms(resolved.operand(number), graph, block, sign * factor)
        if more is None:
            return None
        terms += more
    if terms or not isinstance(at.value, Read):
        return terms or None
    return [(sign, False, at.reads[at.value.position])]


def _resolved(at: _At, graph: Graph, block: Block) -> _At:
    """Inline the elementwise producer of an expression that is a read, repeatedly, while the read is unconditional and
    no maximum reads the same value."""
    while isinstance(at.value, Read):
        access = at.reads[at.value.position]
        producer = graph.producers.get(access.buffer)
        if not isinstance(producer, Compute) or producer.block.combiners or producer.block.table is not None:
            break
        has_max = any(isinstance(c, Compute) and c.block.combiners == ("max",) for c in graph.consumers[access.buffer])
        if has_max or access.where or len(producer.results) != 1:
            break
        forms = dict(enumerate(access.index))
        at = _At(producer.block.body[0], [access_at(each, forms, block.axis_ranges) for each in producer.block.reads])
    return at


def _softmax(value: Apply, terms: Sequence[_Term], graph: Graph) -> _Exponent | None:
    """Match an exponential whose exponent has `terms` as that of a softmax; None if it is not one."""
    by_kind = {(sign, is_log): access for sign, is_log, access in terms}
    if len(terms) != 3 or set(by_kind) != {(1, False), (-1, False), (-1, True)}:
        return None
    x, maximum, total = by_kind[1, False], by_kind[-1, False], by_kind[-1, True]
    largest, added = graph.producers.get(maximum.buffer), graph.producers.get(total.buffer)
    if not isinstance(largest, Compute) or not isinstance(added, Compute):
        return None
    if largest.block.combiners != ("max",) or added.block.combiners != ("add",) or len(largest.block.reads) != 1:
        return None
    if x.where or not isinstance(added.results[0].element, Float32Type | Float64Type):
        return None
    power = _resolved(_At(added.block.body[0], added.block.reads), graph, added.block)
    if not isinstance(power.value, Apply) or power.value.kind is not math.ExpOp:
        return None
    summed = _terms(power.operand(0), graph, added.block, 1) or []
    access_of = {(sign, is_log): access for sign, is_log, access in summed}
    if len(summed) != 2 or set(access_of) != {(1, False), (-1, False)}:
        return None
    element, shift = access_of[1, False], access_of[-1, False]
    is_read = isinstance(largest.block.body[0], Read) and shift.buffer == maximum.buffer
    along = _reduced(x, maximum, largest.block.reads[0], largest.block)
    same = _reduced(x, total, element, added.block)
    inside = _reduced(element, shift, largest.block.reads[0], largest.block)
    if not is_read or along is None or along != same or inside != along:
        return None
    return _Exponent(value, x, maximum, total, added)


def _reduced(x: Access, at: Access, element: Access, block: Block) -> set[int] | None:
    """The dimensions along which a block reduces a value that it reads at `element`. None unless its result at `at` is
    the reduction of the whole row that has the element `x`."""
    if x.buffer != element.buffer or element.where or at.where:
        return None
    # %S[i, reduce k] of X[i, k], read as %S[i] for the element %X[i, j]: {1}. Read as %S[j], of another row: None.
    reduced, visited = set[int](), set[int]()
    for dimension, (form, own_form) in enumerate(zip(element.index, x.index, strict=True)):
        if form.is_constant and own_form == form:
            continue
        axis = min(form.variables(), default=-1)
        if form != lin.variable(axis) or axis in visited:
            return None
        visited.add(axis)
        if axis >= block.spatial:
            reduced.add(dimension)
        elif at.index[axis] != own_form:
            return None
    has_whole_row = all(n in visited or axis.size == 1 for n, axis in enumerate(block.axes))
    return reduced if has_whole_row else None


def _divided(block: Block, exponent: _Exponent) -> Block:
    """Replace the exponential of a block by exp(x - max x) times the reciprocal of the sum."""
    position, (element,) = len(block.reads), exponent.value.types
    assert isinstance(element, Float32Type | Float64Type)
    x, maximum, total = (body.read(position + n, element) for n in range(3))
    flags = dict(exponent.value.properties)

    def applied(kind: type[Operation], *operands: Scalar) -> Scalar:
        return body.apply(kind, operands, flags, (element,))

    power = applied(math.ExpOp, applied(arith.SubfOp, x, maximum))
    reciprocal = applied(arith.DivfOp, body.constant(FloatAttr(1.0, element)), total)
    new = applied(arith.MulfOp, power, reciprocal)
    values = tuple(body.replaced(value, exponent.value, new) for value in block.body)
    reads = (*block.reads, exponent.x, exponent.maximum, exponent.total)
    return replace(block, body=values, reads=reads, read_types=(*block.read_types, *[element] * 3))


LOGARITHM = Law("logarithm", LawScope.PROGRAM, _forms)
