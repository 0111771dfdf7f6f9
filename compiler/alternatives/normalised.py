"""normalised: divide the exponentials of a softmax by their sum before a product, instead of the product after it."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace

from xdsl.dialects import arith, math
from xdsl.dialects.builtin import Float32Type, Float64Type
from xdsl.ir import Operation

from compiler.affine import linear as lin
from compiler.affine.linear import Linear
from compiler.alternatives.cost import BYTES, cycles
from compiler.alternatives.law import Conditions, Form, Law, LawScope, rounding_of_sums
from compiler.dialects.access import axis_attribute
from compiler.dialects.upstream.arith import SelectOp
from compiler.graph.grouping.facts import Kind, kind_of, size
from compiler.graph.tree import Compute, Graph
from compiler.program import body
from compiler.program.body import Apply, Read, Scalar
from compiler.program.names import Names
from compiler.program.tree import Access, Block, Buffer

STEPS = 3
"""The number of values of the scores' shape that a group of attention keeps in the cache: scores, exp, weights."""


def _forms(graph: Graph, conditions: Conditions) -> Iterator[Form]:
    """Divide the exponentials of attention instead of its results, which gives a softmax between two products.

        %E = te.compute "E" [m = 256, n = 256] (%a = %A[m, n] ..., %t = %T[m] ...) { exp(%a - %t) }  // %T: maxima of %A
        %S = te.compute "S" [m = 256, reduce n = 256] combine [add] (%e = %E[m, n] ...) { %e }
        %P = te.compute "P" [m = 256, d = 64, reduce n = 256] combine [add] (%E[m, n], %V[n, d]) { mulf }
        %Y = te.compute "Y" [m = 256, d = 64] (%p = %P[m, d] ..., %s = %S[m] ...) { %p / %s }
      ->
        %W = te.compute "W" [m = 256, n = 256] (%e = %E[m, n] ..., %s = %S[m] ...) { %e / %s }
        %Y = te.compute "Y" [m = 256, d = 64, reduce n = 256] combine [add] (%W[m, n], %V[n, d]) { mulf }

    Exponents are differences from their maximum: exponentials are at most 1, and their sum is at least 1. So no
    quotient overflows, nor a sum that did not before. Each term of a result is rounded as often as before: N times in
    the product and the sum, and once by the division. It applies to f32 and f64, not under `strict`. Source: the
    softmax of Milakov and Gimelshein, 2018, and attention by rows (Rabe and Staats, 2021), which divide where it is
    cheap.
    """
    for node in graph.nodes:
        softmax = _normalised(node, graph) if conditions.policy != "strict" else None
        if softmax is not None:
            unit = 2.0 ** -(24 if isinstance(softmax.product.results[0].element, Float32Type) else 53)
            rounding = rounding_of_sums([softmax.product.block.axes[-1].size + 1], unit)
            written = cycles(graph, conditions)
            saved = 2 * STEPS * size(graph.values[softmax.powers.buffer]) / BYTES
            where = f"{softmax.scaled.block.label} divides the powers of {softmax.product.block.label}, not its results"
            gain = written / max(written - saved, 1)
            yield Form(_divided(graph, softmax), gain, rounding, rounding, where=where)


@dataclass(frozen=True)
class _Normalised:
    """A product that reads the exponentials `powers`, and the compute `scaled`, whose `operation` divides or multiplies
    the product's rows by `scale`."""

    product: Compute
    powers: Access
    scaled: Compute
    operation: Apply
    scale: Access


def _normalised(node: object, graph: Graph) -> _Normalised | None:
    if not isinstance(node, Compute) or node.block.combiners or len(node.results) != 1 or len(node.block.reads) != 2:
        return None
    operation = node.block.body[0]
    pair = _operands(operation, (arith.DivfOp, arith.MulfOp), node.block)
    if pair is None or not isinstance(operation, Apply):
        return None
    for products, scale in (pair, pair[::-1]) if operation.kind is arith.MulfOp else (pair,):
        product = graph.producers.get(products.buffer)
        if isinstance(product, Compute) and _is_only_read(product, products, node, graph):
            for powers in product.block.reads:
                if _is_softmax(powers, product, scale, operation.kind, graph):
                    return _Normalised(product, powers, node, operation, scale)
    return None


def _operands(value: Scalar, kinds: tuple[type[Operation], ...], block: Block) -> tuple[Access, Access] | None:
    """The two reads that are the operands of an operation of `kinds`; None for any other value."""
    if not isinstance(value, Apply) or value.kind not in kinds or len(value.operands) != 2:
        return None
    first, second = value.operands
    if not isinstance(first, Read) or not isinstance(second, Read):
        return None
    return block.reads[first.position], block.reads[second.position]


def _is_only_read(product: Compute, access: Access, reader: Compute, graph: Graph) -> bool:
    """Whether `product` is a product of floats that is no result, and whose only reader reads it by `access` at the
    index that it computes."""
    block = product.block
    plain = access.index == tuple(map(lin.variable, range(block.spatial))) and not access.where
    is_sole = graph.consumers[access.buffer] == [reader] and access.buffer not in graph.results
    is_product = kind_of(block) is Kind.CONTRACTION and len(block.axes) == block.spatial + 1
    floats = isinstance(product.results[0].element, Float32Type | Float64Type)
    return plain and is_sole and is_product and floats and _operands(block.body[0], (arith.MulfOp,), block) is not None


def _is_softmax(powers: Access, product: Compute, scale: Access, kind: type[Operation], graph: Graph) -> bool:
    """Whether a factor `powers` of a product is exp(x - max x) for rows x, and `scale`, by which the operation `kind`
    divides or multiplies the product, is the sum of each row or its reciprocal."""
    block = product.block
    depth, rows = lin.variable(block.spatial), powers.index[:-1]
    if powers.where or not rows or powers.index[-1] != depth or any(form.depends_on(block.spatial) for form in rows):
        return False
    if any(form.depends_on(block.spatial - 1) for form in rows):
        return False
    total = _sum_of(scale, rows, kind, graph)
    if total is None or not _reduces(total, "add", powers.buffer):
        return False
    return _is_of_differences(powers.buffer, graph)


def _sum_of(scale: Access, rows: tuple[Linear, ...], kind: type[Operation], graph: Graph) -> Compute | None:
    """The compute of the sums by which `scale` divides a product: its producer or, if `kind` multiplies, the divisor s
    of its reciprocal 1 / s; None for any other scale or rows."""
    producer = graph.producers.get(scale.buffer)
    if tuple(form for form in scale.index if not form.is_constant) != rows or not isinstance(producer, Compute):
        return None
    if kind is arith.DivfOp:
        return producer
    value = producer.block.body[0]
    if producer.block.combiners or not isinstance(value, Apply) or value.kind is not arith.DivfOp:
        return None
    numerator, divisor = value.operands
    if not isinstance(divisor, Read) or not _is_one(numerator):
        return None
    read = producer.block.reads[divisor.position]
    total = graph.producers.get(read.buffer)
    straight = read.index == tuple(map(lin.variable, range(producer.block.spatial)))
    return total if straight and isinstance(total, Compute) else None


def _is_one(value: Scalar) -> bool:
    literal = dict(value.properties).get("value") if isinstance(value, Apply) else None
    return getattr(getattr(literal, "value", None), "data", None) == 1.0


def _reduces(node: Compute, combiner: str, buffer: str) -> bool:
    """Whether a compute reduces `buffer` along its last dimension by `combiner`."""
    block = node.block
    straight = [tuple(map(lin.variable, range(len(block.axes))))] == [access.index for access in block.reads]
    is_rows = (
        block.combiners == (combiner,) and len(block.axes) == block.spatial + 1 and isinstance(block.body[0], Read)
    )
    return is_rows and straight and not block.reads[0].where and block.reads[0].buffer == buffer


def _is_of_differences(buffer: str, graph: Graph) -> bool:
    """Whether a value is exp(x - max x) for the rows x of another value; at x = max x it may be a literal 1."""
    powers = graph.producers.get(buffer)
    if not isinstance(powers, Compute) or powers.block.combiners:
        return False
    value, block = powers.block.body[0], powers.block
    if isinstance(value, Apply) and value.kind is SelectOp and _is_one(value.operands[1]):
        value = value.operands[2]
    if not isinstance(value, Apply) or value.kind is not math.ExpOp:
        return False
    (difference,) = value.operands
    if isinstance(difference, Read):
        read = block.reads[difference.position]
        producer = graph.producers.get(read.buffer)
        if not isinstance(producer, Compute) or producer.block.combiners or not _is_straight(read, block):
            return False
        difference, block = producer.block.body[0], producer.block
    pair = _operands(difference, (arith.SubfOp,), block)
    if pair is None or not _is_straight(pair[0], block):
        return False
    largest = graph.producers.get(pair[1].buffer)
    rows = tuple(form for form in pair[1].index if not form.is_constant)
    is_row = rows == tuple(map(lin.variable, range(block.spatial - 1)))
    return is_row and isinstance(largest, Compute) and _reduces(largest, "max", pair[0].buffer)


def _is_straight(access: Access, block: Block) -> bool:
    return access.index == tuple(map(lin.variable, range(block.spatial))) and not access.where


def _divided(graph: Graph, softmax: _Normalised) -> Graph:
    """The graph with the exponentials scaled before the product, which then computes the results of `scaled`."""
    labels = [node.block.label for node in graph.nodes if isinstance(node, Compute)]
    name = Names([*graph.values, *labels]).fresh(f"{softmax.product.block.label}.weights")
    powers = graph.values[softmax.powers.buffer]
    axes = [axis_attribute(f"i{n}", extent) for n, extent in enumerate(powers.shape)]
    rows = iter(map(lin.variable, range(len(axes) - 1)))
    scale = replace(softmax.scale, index=tuple(f if f.is_constant else next(rows) for f in softmax.scale.index))
    reads = (Access(powers.name, tuple(map(lin.variable, range(len(axes))))), scale)
    types = powers.scalar, graph.values[scale.buffer].scalar
    first, second = (body.read(n, type) for n, type in enumerate(types))
    operation = softmax.operation
    value = body.apply(operation.kind, (first, second), dict(operation.properties), operation.types)
    location = softmax.scaled.block.location
    weights = Block(name, tuple(axes), (), (), reads, types, (), (value,), location=location)
    value_buffer = Buffer(name, powers.shape, powers.element)
    factors = tuple(replace(a, buffer=name) if a is softmax.powers else a for a in softmax.product.block.reads)
    product = replace(softmax.product.block, reads=factors, label=softmax.scaled.block.label)
    nodes = [node for node in graph.nodes if node is not softmax.product]
    position = nodes.index(softmax.scaled)
    new = [Compute(weights, (value_buffer,)), Compute(product, softmax.scaled.results)]
    return graph.with_nodes([*nodes[:position], *new, *nodes[position + 1 :]])


NORMALISED = Law("normalised", LawScope.PROGRAM, _forms)
