"""chain: a chain of products in the order of the fewest operations."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise
from math import prod

from xdsl.dialects import arith
from xdsl.dialects.builtin import AnyFloat, Float32Type, Float64Type, IntegerType
from xdsl.ir import Attribute

from compiler.affine import linear as lin
from compiler.affine.linear import Linear
from compiler.alternatives.cost import constant_values, gain
from compiler.alternatives.law import Conditions, Form, Law, LawScope, Rounding, rounding_of_sums
from compiler.dialects.access import axis_attribute
from compiler.graph.tree import Compute, Graph
from compiler.program.body import Apply, Read
from compiler.program.names import Names
from compiler.program.tree import Access, Block, Buffer, index_at

MOST_FACTORS = 64
"""The most factors of a chain: the dynamic programming takes time cubic in their number."""


@dataclass(frozen=True)
class Factor:
    """A factor of a chain: the name of a value, and its index as forms over the axes of the chain."""

    value: str
    index: tuple[Linear, ...]

    @property
    def axes(self) -> frozenset[int]:
        """The axes of the chain that the factor's index depends on."""
        return frozenset().union(*(form.variables() for form in self.index))


@dataclass(frozen=True)
class Chain:
    """A product of factors, each of which shares a reduce axis with the next one.

    products: the computes of the program that compute it, the last one first; axes 0, 1, ... of the chain are those of
    the last product, and further axes are the reduce axes of the others. extents: by axis. batch: the axes of the
    result that all factors have. links: the first axis of each factor matrix, and the second of the last; None at an
    end that is a vector.
    """

    factors: tuple[Factor, ...]
    products: tuple[Compute, ...]
    extents: Mapping[int, int]
    batch: tuple[int, ...]
    links: tuple[int | None, ...]

    @property
    def sizes(self) -> list[int]:
        """The extents of the links; 1 for a link that is None."""
        return [1 if link is None else self.extents[link] for link in self.links]


def _forms(graph: Graph, conditions: Conditions) -> Iterator[Form]:
    """Multiply a chain of matrices or batches of matrices, with matrices or vectors at its ends, in another order.

        %P = te.compute "P" [m = 512, n = 512, reduce k = 8] combine [add] (%A[m, k], %B[k, n]) { mulf }
        %Q = te.compute "Q" [m = 512, reduce n = 512] combine [add] (%P[m, n], %X[n]) { mulf }
      ->
        %C = te.compute "C" [k = 8, reduce n = 512] combine [add] (%B[k, n], %X[n]) { mulf }
        %Q = te.compute "Q" [m = 512, reduce k = 8] combine [add] (%A[m, k], %C[k]) { mulf }

    The intermediate products have one reader each, the next product. Products of constants cost nothing: they are
    computed once. It applies to f32 and f64 under `fast` only; to integers, whose products wrap, under every policy.

    Each order adds up the same products of one element of each factor, so infinite or NaN operands make the same
    results infinite or NaN. But an intermediate product may overflow, or underflow to 0, in one order only. A guard
    would have to evaluate all orders, so `contract` does not permit it.

    Rounding: in every order a product of elements takes part in as many roundings as the extents of all axes that are
    summed, K. So |error| <= gamma(K) |A| |B| ... for each order (Higham, Accuracy and Stability of Numerical
    Algorithms, 2002, section 3.5), and the probable error is that of sums of K as well.
    Source: the matrix chain order problem (Godbole, 1973).
    """
    for node in graph.nodes:
        root = _product(node)
        if root is None or not _is_permitted(root.results[0].element, conditions):
            continue
        chain = _chain(root, graph)
        new = None if chain is None else _reordered(chain, graph, constant_values(graph, conditions.constants))
        if chain is None or new is None:
            continue
        rounding = _rounding(chain)
        where = f"the products {', '.join(product.block.label for product in reversed(chain.products))}"
        yield Form(
            new,
            gain(graph, new, conditions),
            rounding,
            rounding,
            where=f"{where} in the order of the fewest operations",
        )


def _is_permitted(element: Attribute, conditions: Conditions) -> bool:
    if isinstance(element, IntegerType):
        return True
    return conditions.policy == "fast" and isinstance(element, Float32Type | Float64Type)


def _rounding(chain: Chain) -> Rounding | None:
    """The bounds of the rounding error, equal for all orders of a chain; None for integers."""
    element = chain.products[0].results[0].element
    if not isinstance(element, AnyFloat):
        return None
    unit = 2.0 ** -(24 if isinstance(element, Float32Type) else 53)
    return rounding_of_sums(chain.sizes[1:-1], unit)


def _product(node: object) -> Compute | None:
    """The node itself, if it is a sum over one axis of products of elements of two operands of its dtype; else None."""
    if not isinstance(node, Compute) or node.block.combiners != ("add",) or len(node.block.reads) != 2:
        return None
    block, value = node.block, node.block.body[0]
    if block.table is not None or len(block.axes) != block.spatial + 1 or block.attributes:
        return None
    if not isinstance(value, Apply) or value.kind not in (arith.MulfOp, arith.MuliOp):
        return None
    if not all(isinstance(operand, Read) for operand in value.operands) or value.operands[0] is value.operands[1]:
        return None
    if any(type != node.results[0].element for type in block.read_types):
        return None
    return node if all(map(_is_plain, block.reads)) else None


def _is_plain(access: Access) -> bool:
    """Whether a read has no conditions and each of its indices is a constant or a different axis."""
    axes = [form for form in access.index if not form.is_constant]
    plain = all(form == lin.variable(min(form.variables(), default=0)) for form in axes)
    return plain and len(set(axes)) == len(axes) and not access.where


def _chain(root: Compute, graph: Graph) -> Chain | None:
    """The chain of 3 to MOST_FACTORS factors whose last product is `root`; None if there is none."""
    extents = {n: axis.size for n, axis in enumerate(root.block.axes)}
    products, factors = [root], list[Factor]()
    factors_reversed = [Factor(access.buffer, access.index) for access in reversed(root.block.reads)]
    while factors_reversed:
        factor = factors_reversed.pop()
        inner = _inner(factor, products[0], graph)
        if inner is None:
            factors.append(factor)
            continue
        summed = len(extents)
        extents[summed] = inner.block.axes[-1].size
        forms = dict(enumerate((*factor.index, lin.variable(summed))))
        ranges = {n: (0, extent - 1) for n, extent in extents.items()}
        factors_reversed += [Factor(a.buffer, index_at(a.index, forms, ranges)) for a in reversed(inner.block.reads)]
        products.append(inner)
    if not 3 <= len(factors) <= MOST_FACTORS:
        return None
    batch = tuple(n for n in range(root.block.spatial) if all(n in factor.axes for factor in factors))
    return _linked(Chain(tuple(factors), tuple(products), extents, batch, ()))


def _inner(factor: Factor, root: Compute, graph: Graph) -> Compute | None:
    """The product that computes a factor; None if it is no product, is a result, is read a second time, or has another
    body than `root`."""
    inner = _product(graph.producers.get(factor.value))
    if inner is None or factor.value in graph.results or len(graph.consumers[factor.value]) != 1:
        return None
    (reader,) = graph.consumers[factor.value]
    reads_twice = isinstance(reader, Compute) and len(reader.block.reads) != len(reader.operands)
    return None if reads_twice or inner.block.body[0] is not root.block.body[0] else inner


def _linked(chain: Chain) -> Chain | None:
    """The chain with its factors in order and links; None unless they are matrices, with matrices or vectors at the
    ends."""
    spatial = chain.products[0].block.spatial
    ends = [factor for factor in chain.factors if len([n for n in factor.axes if n >= spatial]) == 1]
    if len(ends) != 2:
        return None
    factor = min(ends, key=lambda end: sorted(end.axes))
    ordered, links = [factor], [_only(factor.axes - set(chain.batch), lambda n: n < spatial)]
    while len(ordered) < len(chain.factors):
        link = _only(ordered[-1].axes - {links[-1]}, lambda n: n >= spatial)
        following = [factor for factor in chain.factors if link in factor.axes and factor is not ordered[-1]]
        if link is None or len(following) != 1:
            return None
        ordered.append(following[0])
        links.append(link)
    links.append(_only(ordered[-1].axes - set(chain.batch), lambda n: n < spatial))
    pairs = zip(ordered, pairwise(links), strict=True)
    if any(factor.axes != {*chain.batch, *pair} - {None} for factor, pair in pairs):
        return None
    shown = {*chain.batch, links[0], links[-1]}
    if any(chain.extents[n] > 1 for n in range(spatial) if n not in shown):
        return None
    return replace(chain, factors=tuple(ordered), links=tuple(links))


def _only(axes: Iterable[int], fits: Callable[[int], bool]) -> int | None:
    """The only one of `axes` for which `fits` is true; None if there is none, or several."""
    fitting = [n for n in axes if fits(n)]
    return fitting[0] if len(fitting) == 1 else None


def _cuts(sizes: Sequence[int], constant: Sequence[bool]) -> tuple[int, dict[tuple[int, int], int]]:
    """The fewest multiplications for a chain of matrices, where matrix n is sizes[n] x sizes[n + 1], and for each range
    (start, end) of factors the position of its last product. A range of constant factors needs no multiplications.

    For (10, 100, 5, 50), none constant: 7500, {(0, 2): 1, (1, 3): 2, (0, 3): 2}. For (4, 32, 64, 16), the last two
    constant: 2048, {(0, 2): 1, (1, 3): 2, (0, 3): 1}.
    """
    count = len(sizes) - 1
    best = {(n, n + 1): 0 for n in range(count)}
    cuts: dict[tuple[int, int], int] = {}
    for length in range(2, count + 1):
        for start in range(count + 1 - length):
            end = start + length
            outer = 0 if all(constant[start:end]) else sizes[start] * sizes[end]
            costs = {cut: best[start, cut] + best[cut, end] + outer * sizes[cut] for cut in range(start + 1, end)}
            cuts[start, end] = min(costs, key=lambda cut: costs[cut])
            best[start, end] = costs[cuts[start, end]]
    return best[0, count], cuts


def _reordered(chain: Chain, graph: Graph, constants: Collection[str]) -> Graph | None:
    """The graph with a chain in the order of the fewest multiplications; None if the written order has no more.
    `constants` are the values that depend on constants only."""
    multiplications, cuts = _cuts(chain.sizes, [factor.value in constants for factor in chain.factors])
    running = [product for product in chain.products if product.results[0].name not in constants]
    written = sum(prod(axis.size for axis in product.block.axes) for product in running)
    if multiplications * prod(chain.extents[n] for n in chain.batch) >= written:
        return None
    root, computes = chain.products[0], list[Compute]()
    names = Names([*graph.values, *(node.block.label for node in graph.nodes if isinstance(node, Compute))])

    def multiplied(start: int, end: int) -> Factor:
        if end - start == 1:
            return chain.factors[start]
        cut = cuts[start, end]
        factors, summed = (multiplied(start, cut), multiplied(cut, end)), chain.links[cut]
        assert summed is not None
        if (start, end) == (0, len(chain.factors)):
            computes.append(Compute(_sum(root.block, range(root.block.spatial), factors, summed, chain), root.results))
            return Factor(root.results[0].name, ())
        axes = [*chain.batch, *(n for n in (chain.links[start], chain.links[end]) if n is not None)]
        name = names.fresh(root.block.label)
        value = Buffer(name, tuple(chain.extents[n] for n in axes), root.results[0].element)
        computes.append(Compute(replace(_sum(root.block, axes, factors, summed, chain), label=name), (value,)))
        return Factor(name, tuple(map(lin.variable, axes)))

    multiplied(0, len(chain.factors))
    nodes = [node for node in graph.nodes if node is root or node not in chain.products]
    position = nodes.index(root)
    return graph.with_nodes([*nodes[:position], *computes, *nodes[position + 1 :]])


def _sum(like: Block, axes: Sequence[int], factors: Sequence[Factor], summed: int, chain: Chain) -> Block:
    """Return a block over `axes` that sums, over the axis `summed`, the products of two factors; other properties are
    those of `like`."""
    positions = {n: lin.variable(position) for position, n in enumerate((*axes, summed))}
    ranges = {n: (0, extent - 1) for n, extent in chain.extents.items()}
    reads = tuple(Access(factor.value, index_at(factor.index, positions, ranges)) for factor in factors)
    new = [axis_attribute(f"x{n}", chain.extents[n], n == summed) for n in (*axes, summed)]
    return replace(like, axes=tuple(new), reads=reads)


CHAIN = Law("chain", LawScope.PROGRAM, _forms)
