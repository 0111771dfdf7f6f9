"""logarithm: exp(x - max x - log sum exp(x - max x)) as a quotient, the softmax."""

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
from compiler.alternatives.law import Conditions, Form, Law, Scope, of_sums
from compiler.graph.tree import Compute, Graph
from compiler.program import body
from compiler.program.body import Apply, Read, Scalar
from compiler.program.tree import Access, Block, access_at

POWER = 12
"""The operations of an exponential, which the softmax computes once for an element."""


def _forms(graph: Graph, conditions: Conditions) -> Iterator[Form]:
    """Divide by a sum of powers instead of subtracting its logarithm in the exponent.

        %M = te.compute "M" [i = 64, reduce k = 1024] combine [max] (%x = %X[i, k] ...) { %x }
        %S = te.compute "S" [i = 64, reduce k = 1024] combine [add] (%x = %X[i, k] ..., %m = %M[i] ...) { exp(%x - %m) }
        %Y = te.compute "Y" [i = 64, j = 1024] (%x = %X[i, j] ..., %m = %M[i] ..., %s = %S[i] ...) {
            exp(%x - %m - log(%s)) }
      ->
        %Y = te.compute "Y" [i = 64, j = 1024] (%x = %X[i, j] ..., %m = %M[i] ..., %s = %S[i] ...) {
            exp(%x - %m) * (1.0 / %s) }

    The exponent may be written in any order, and in several elementwise computes. The powers are at most 1, and their
    sum is at least that and at most the number of terms: nothing overflows, and what is NaN or infinite in one form is
    in the other. f32 and f64, not under `strict`.

    Rounding, of N terms, over the largest result: N and two for the sum, its reciprocal and the product. As written N
    for the sum, whose relative error is the absolute one of its logarithm, one for the logarithm, and two for the
    differences.
    """
    for node in graph.nodes if conditions.policy != "strict" else ():
        found = _found(node, graph)
        if found is not None and isinstance(node, Compute):
            count = prod(axis.size for axis in found.sum.block.axes[found.sum.block.spatial :])
            unit = 2.0 ** -(24 if isinstance(found.sum.results[0].element, Float32Type) else 53)
            block = _divided(node.block, found)
            new = graph.with_nodes([replace(n, block=block) if n is node else n for n in graph.nodes])
            saved = POWER * prod(axis.size for axis in node.block.axes) / (4 * conditions.machine.lanes)
            written = cycles(graph, conditions)
            bounds = of_sums([count + 2], unit), of_sums([count + 3], unit)
            where = f"{node.block.label} divides by {found.sum.block.label}, not by the power of its logarithm"
            yield Form(new, written / max(written - saved, 1), *bounds, where=where)


@dataclass(frozen=True)
class _At:
    """An expression over reads at forms over the axes of a compute."""

    value: Scalar
    reads: Sequence[Access]

    def operand(self, number: int) -> _At:
        """An operand of an operation."""
        assert isinstance(self.value, Apply)
        return _At(self.value.operands[number], self.reads)


@dataclass(frozen=True)
class _Exponent:
    """The exponential of x - max x - log sum exp(x - max x) in a compute, the reads of the three, and the sum."""

    value: Apply
    x: Access
    maximum: Access
    total: Access
    sum: Compute


def _found(node: object, graph: Graph) -> _Exponent | None:
    """The first such exponential of an elementwise compute; None where there is none."""
    if not isinstance(node, Compute) or node.block.combiners or node.block.table is not None:
        return None
    for value in body.reached(node.block.body):
        if isinstance(value, Apply) and value.kind is math.ExpOp:
            terms = _terms(_At(value.operands[0], node.block.reads), graph, node.block, 1)
            found = terms and _softmax(value, terms, graph)
            if found:
                return found
    return None


_Term: TypeAlias = tuple[int, bool, Access]
"""A term of an exponent: its sign, whether it is a logarithm, and the read."""
_SIGNS: dict[type[Operation], tuple[int, ...]] = {arith.AddfOp: (1, 1), arith.SubfOp: (1, -1), arith.NegfOp: (-1,)}
"""The signs of the operands of sums."""


def _terms(at: _At, graph: Graph, block: Block, sign: int) -> list[_Term] | None:
    """The terms of an exponent, through elementwise computes, but for what a maximum is taken of; None where it has
    others than reads and their logarithms."""
    seen = _resolved(at, graph, block)
    value = seen.value
    if isinstance(value, Read):
        return [(sign, False, seen.reads[value.position])]
    if not isinstance(value, Apply):
        return None
    if value.kind is math.LogOp:
        inner = _resolved(seen.operand(0), graph, block)
        return [(sign, True, inner.reads[inner.value.position])] if isinstance(inner.value, Read) else None
    terms: list[_Term] = []
    for number, factor in enumerate(_SIGNS.get(value.kind, ())):
        more = _terms(seen.operand(number), graph, block, sign * factor)
        if more is None:
            return None
        terms += more
    if terms or not isinstance(at.value, Read):
        return terms or None
    return [(sign, False, at.reads[at.value.position])]


def _resolved(at: _At, graph: Graph, block: Block) -> _At:
    """An expression, or what the elementwise computes compute that it reads."""
    while isinstance(at.value, Read):
        access = at.reads[at.value.position]
        made = graph.producers.get(access.buffer)
        if not isinstance(made, Compute) or made.block.combiners or made.block.table is not None:
            break
        maxima = any(isinstance(c, Compute) and c.block.combiners == ("max",) for c in graph.consumers[access.buffer])
        if maxima or access.where or len(made.results) != 1:
            break
        forms = dict(enumerate(access.index))
        at = _At(made.block.body[0], [access_at(each, forms, block.axis_ranges) for each in made.block.reads])
    return at


def _softmax(value: Apply, terms: Sequence[_Term], graph: Graph) -> _Exponent | None:
    """An exponential with these terms; None where they are not those of a softmax."""
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
    parts = {(sign, is_log): access for sign, is_log, access in summed}
    if len(summed) != 2 or set(parts) != {(1, False), (-1, False)}:
        return None
    element, shift = parts[1, False], parts[-1, False]
    is_read = isinstance(largest.block.body[0], Read) and shift.buffer == maximum.buffer
    along = _reduced(x, maximum, largest.block.reads[0], largest.block)
    same = _reduced(x, total, element, added.block)
    inside = _reduced(element, shift, largest.block.reads[0], largest.block)
    if not is_read or along is None or along != same or inside != along:
        return None
    return _Exponent(value, x, maximum, total, added)


def _reduced(x: Access, at: Access, element: Access, block: Block) -> set[int] | None:
    """The dimensions along which a block reduces a value whose elements it reads, if its result, read at `at`, is that
    of the row of the element `x`; None where it is another row, or not a whole one."""
    if x.buffer != element.buffer or element.where or at.where:
        return None
    reduced, seen = set[int](), set[int]()
    for dimension, (form, own) in enumerate(zip(element.index, x.index, strict=True)):
        if form.is_constant and own == form:
            continue
        axis = min(form.variables(), default=-1)
        if form != lin.variable(axis) or axis in seen:
            return None
        seen.add(axis)
        if axis >= block.spatial:
            reduced.add(dimension)
        elif at.index[axis] != own:
            return None
    whole = all(n in seen or axis.size == 1 for n, axis in enumerate(block.axes))
    return reduced if whole else None


def _divided(block: Block, found: _Exponent) -> Block:
    """A block with a quotient in the place of an exponential."""
    position, (element,) = len(block.reads), found.value.types
    assert isinstance(element, Float32Type | Float64Type)
    x, maximum, total = (body.read(position + n, element) for n in range(3))
    flags = dict(found.value.properties)

    def applied(kind: type[Operation], *operands: Scalar) -> Scalar:
        return body.apply(kind, operands, flags, (element,))

    power = applied(math.ExpOp, applied(arith.SubfOp, x, maximum))
    reciprocal = applied(arith.DivfOp, body.constant(FloatAttr(1.0, element)), total)
    new = applied(arith.MulfOp, power, reciprocal)
    values = tuple(body.replaced(value, found.value, new) for value in block.body)
    reads = (*block.reads, found.x, found.maximum, found.total)
    return replace(block, body=values, reads=reads, read_types=(*block.read_types, *[element] * 3))


LOGARITHM = Law("logarithm", Scope.PROGRAM, _forms)
