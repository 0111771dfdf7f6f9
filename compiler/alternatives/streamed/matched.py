"""A group that is an attention: its computes, and its reads of queries, keys and values."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from xdsl.dialects import arith, math
from xdsl.dialects.builtin import Float32Type, FloatAttr

from compiler.affine import linear as lin
from compiler.dialects.upstream.arith import SelectOp
from compiler.dialects.upstream.casts import ExtFOp, TruncFOp
from compiler.graph.grouping.facts import Kind, kind_of
from compiler.graph.tree import Compute, Graph
from compiler.program.body import Apply, Read, Scalar, leaves
from compiler.program.index_values import affine_test
from compiler.program.tree import Access


@dataclass(frozen=True)
class Attention:
    """The computes of an attention: `top` is the maximum of the logits, `powers` the exponentials, `total` their sum,
    `weights` the quotients, `product` the weights times V, `cast` an elementwise compute of the product, or None.
    queries, keys: the reads of `scores`. values: the read of V by `product`. chain: the elementwise computes between
    the scores and the powers. axes: those of `product` over batches, queries and columns; its other axes have extent
    one."""

    scores: Compute
    chain: tuple[Compute, ...]
    top: Compute
    powers: Compute
    total: Compute
    weights: Compute
    product: Compute
    cast: Compute | None
    queries: Access
    keys: Access
    values: Access
    axes: tuple[int, ...]

    @property
    def offset(self) -> int | None:
        """The greatest n - m of a key n that a causal mask leaves to a query m; None without such a mask."""
        if not self.chain:
            return None
        block = self.chain[-1].block
        m, n = block.spatial - 2, block.spatial - 1
        axes = [lin.variable(axis) for axis in range(block.spatial)]
        value, offsets = block.body[0], []
        while isinstance(value, Apply) and value.kind is SelectOp:
            test, kept, hidden = value.operands
            condition = affine_test(test, axes, block.axis_ranges)
            if not _is_endless(hidden):
                return None
            if condition is not None and not condition.equal:
                gap = condition.form - lin.variable(m) + lin.variable(n)
                offsets += [gap.constant] if gap.is_constant else []
            value = kept
        return min(offsets, default=None)


def _is_endless(value: Scalar) -> bool:
    """Whether a value is the literal -inf."""
    literal = dict(value.properties).get("value") if isinstance(value, Apply) else None
    return isinstance(literal, FloatAttr) and literal.value.data == float("-inf")


def matched_attention(graph: Graph) -> Attention | None:
    """Return the computes of a group that consists of one attention; None for any other group."""
    computes = {value.name: node for node in graph.nodes if isinstance(node, Compute) for value in node.results}
    if len(graph.results) != 1 or len(computes) != len(graph.nodes):
        return None
    last = computes.get(graph.results[0])
    cast = last if last is not None and kind_of(last.block) is Kind.ELEMENTWISE else None
    if cast is not None:
        last = computes.get(cast.block.reads[0].buffer) if len(cast.block.reads) == 1 else None
    for weights_first in (True, False):
        found = _of_product(last, cast, computes, weights_first) if last is not None else None
        if found is not None and set(map(id, _parts(found))) == set(map(id, graph.nodes)):
            return found
    return None


def _parts(found: Attention) -> list[Compute]:
    single = [found.scores, found.top, found.powers, found.total, found.weights, found.product]
    return [*single, *found.chain, *([found.cast] if found.cast is not None else [])]


def _of_product(
    product: Compute, cast: Compute | None, computes: Mapping[str, Compute], weights_first: bool
) -> Attention | None:
    pair = _operands(product)
    if pair is None or product.block.spatial < 2:
        return None
    read, values = pair if weights_first else pair[::-1]
    k, e = product.block.spatial, product.block.spatial - 1
    weights = computes.get(read.buffer)
    *batch, m = [n for n in range(e) if n in axes_of(read)] or [e]
    single = all(product.block.axes[n].size == 1 for n in range(e) if n not in (*batch, m))
    if weights is None or not single or not _is_at(read, [*batch, m, k]) or m in axes_of(values) or values.where:
        return None
    powers, total = _normalised(weights, computes)
    if powers is None or total is None:
        return None
    exponents = [computes.get(access.buffer) for access in powers.block.reads]
    top = next((node for node in exponents if node is not None and node.block.combiners == ("max",)), None)
    if top is None or len(top.block.reads) != 1 or not _is_exponential(powers) or not _reads_row(powers, top):
        return None
    chain = _chain(top.block.reads[0].buffer, computes)
    if not chain or not _is_at(top.block.reads[0], range(top.block.spatial + 1)):
        return None
    scores, *elementwise = chain
    logits = top.block.reads[0].buffer
    inner = [access for access in powers.block.reads if access.buffer == logits]
    if len(inner) != 1 or not _is_at(inner[0], range(powers.block.spatial)):
        return None
    if not _is_difference(powers, logits, top.results[0].name):
        return None
    sides = _sides(scores)
    if sides is None or sides[0].where or sides[1].where:
        return None
    axes = (*batch, m, e)
    return Attention(scores, tuple(elementwise), top, powers, total, weights, product, cast, *sides, values, axes)


def _operands(node: Compute) -> tuple[Access, Access] | None:
    """Return the reads of a product of two reads, each at most widened, over one reduce axis; None for other blocks."""
    block = node.block
    if block.combiners != ("add",) or len(block.reads) != 2 or len(block.axes) != block.spatial + 1:
        return None
    value = block.body[0]
    if not isinstance(value, Apply) or value.kind is not arith.MulfOp:
        return None
    factors = [uncast(operand) for operand in value.operands]
    if not all(isinstance(factor, Read) for factor in factors) or factors[0] is factors[1]:
        return None
    return block.reads[0], block.reads[1]


def uncast(value: Scalar) -> Scalar:
    """Return a value without the casts between floats that are applied to it last."""
    while isinstance(value, Apply) and value.kind in (ExtFOp, TruncFOp):
        value = value.operands[0]
    return value


def _sides(scores: Compute) -> tuple[Access, Access] | None:
    """Return the reads of queries and keys of the scores [.., m, n] over d; None if both depend on m, or on n."""
    pair, m, n = _operands(scores), scores.block.spatial - 2, scores.block.spatial - 1
    for queries, keys in (pair, pair[::-1]) if pair is not None and m >= 0 else ():
        if n not in axes_of(queries) and m not in axes_of(keys) and m in axes_of(queries) and n in axes_of(keys):
            return queries, keys
    return None


def _normalised(weights: Compute, computes: Mapping[str, Compute]) -> tuple[Compute | None, Compute | None]:
    """Return the powers and their sum if the weights are powers / f(sum) or powers * f(sum); else (None, None)."""
    block = weights.block
    if block.combiners or block.table is not None:
        return None, None
    for access in block.reads:
        powers = computes.get(access.buffer)
        if powers is None or powers.block.combiners or not _is_at(access, range(block.spatial)):
            continue
        totals = [computes.get(read.buffer) for read in block.reads if read is not access]
        total = totals[0] if len(totals) == 1 else None
        if total is None or not _sums(total, powers) or not _reads_row(weights, total):
            continue
        position = block.reads.index(access)
        value = uncast(block.body[0])
        factors = [uncast(operand) for operand in value.operands] if isinstance(value, Apply) else []
        is_product = isinstance(value, Apply) and value.kind is arith.MulfOp
        is_quotient = isinstance(value, Apply) and value.kind is arith.DivfOp
        own = [n for n, factor in enumerate(factors) if isinstance(factor, Read) and factor.position == position]
        other = [leaf for n, factor in enumerate(factors) if n not in own for leaf in leaves([factor])]
        scales = all(isinstance(leaf, Read) and leaf.position != position for leaf in other)
        if scales and (own == [0] if is_quotient else is_product and len(own) == 1):
            return powers, total
    return None, None


def _sums(total: Compute, powers: Compute) -> bool:
    """Whether a compute is the sum of the powers along their last axis."""
    block = total.block
    return (
        block.combiners == ("add",)
        and [access.buffer for access in block.reads] == [powers.results[0].name]
        and len(block.axes) == block.spatial + 1
        and _is_at(block.reads[0], range(powers.block.spatial))
        and isinstance(uncast(block.body[0]), Read)
    )


def _is_exponential(powers: Compute) -> bool:
    value = uncast(powers.block.body[0])
    if powers.block.combiners or not isinstance(value, Apply) or value.kind is not math.ExpOp:
        return False
    difference = value.operands[0]
    return (
        isinstance(difference, Apply)
        and difference.kind is arith.SubfOp
        and all(operand_type == Float32Type() for operand_type in difference.types)
    )


def _is_difference(powers: Compute, logits: str, maximum: str) -> bool:
    """Whether the exponent of `powers`, of which `_is_exponential` holds, is a logit less the maximum, or less another
    value where the maximum is -inf."""
    power = uncast(powers.block.body[0])
    assert isinstance(power, Apply) and isinstance(power.operands[0], Apply)
    logit, greatest = map(uncast, power.operands[0].operands)
    if isinstance(greatest, Apply) and greatest.kind is SelectOp:
        test, _, greatest = greatest.operands
        if not isinstance(test, Apply) or not any(map(_is_endless, test.operands)):
            return False
    sides = [each for each in (logit, uncast(greatest)) if isinstance(each, Read)]
    return [powers.block.reads[each.position].buffer for each in sides] == [logits, maximum]


def _reads_row(node: Compute, row: Compute) -> bool:
    """Whether a compute over [.., m, n] reads a value over rows at [.., m]."""
    reads = [access for access in node.block.reads if access.buffer == row.results[0].name]
    return len(reads) == 1 and _is_at(reads[0], range(node.block.spatial - 1))


def _chain(name: str, computes: Mapping[str, Compute]) -> list[Compute]:
    """Return the scores and the elementwise computes that lead from them to a value, in order; empty if it is no value
    that is computed from one product, element by element."""
    nodes: list[Compute] = []
    while (node := computes.get(name)) is not None:
        nodes.insert(0, node)
        if node.block.combiners:
            return nodes if kind_of(node.block) is Kind.CONTRACTION else []
        inner = [access for access in node.block.reads if access.buffer in computes]
        if node.block.table is not None or len(inner) != 1 or not _is_at(inner[0], range(node.block.spatial)):
            return []
        name = inner[0].buffer
    return []


def _is_at(access: Access, axes: Sequence[int]) -> bool:
    """Whether a read has no conditions and its index, apart from zeros, is `axes` in their order."""
    forms = [form for form in access.index if form.terms or form.constant]
    return not access.where and forms == [lin.variable(axis) for axis in axes]


def axes_of(access: Access) -> set[int]:
    """Return the axes that occur in the index of an access."""
    return set().union(*(form.variables() for form in access.index))
