"""The normal form of a compute: one block for all computes that differ only in an order that does not matter.

Reduce axes, reads, conditions and commutative operands are ordered by structure; equal reads are one read, and unused
reads are dropped.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from operator import is_

from xdsl.ir import Attribute

from compiler.affine import linear as lin
from compiler.affine.condition import Condition
from compiler.affine.linear import Linear
from compiler.dialects.access import AxisAttr
from compiler.graph.hashing import Colours, Digests, axis_colour, compute_digest
from compiler.graph.tree import Compute
from compiler.program import body
from compiler.program.body import Apply, Read, Scalar
from compiler.program.combiner import Combiner, Joint
from compiler.program.tree import Access, Block, renumbered


def node_digest(node: Compute, sources: Colours) -> bytes:
    """The digest of a compute, from the colours of its operands; equal for computes with the same normal form."""
    elements = [value.element for value in node.results]
    return compute_digest(node.block, elements, sources, _axis_colours(node.block, axis_order(node, sources)))


def axis_order(node: Compute, sources: Colours) -> list[int]:
    """The positions of a compute's axes in canonical order: from the colours of its operands, `sources`: spatial ones
    in place, then reduce axes, longer ones first.

    Axes of windows come last, in the order of the spatial axes that they slide along: channels, rows, columns, as the
    tuner's rules expect of convolutions. Of tied axes, the one with the least digest of the compute is next. Each
    placed axis changes the digests of the others, so that axes that still tie are interchangeable.
    """
    block = node.block
    order = list(range(block.spatial))
    remaining = list(range(block.spatial, len(block.axes)))
    elements = [value.element for value in node.results]
    ranks = {n: (_along(block, n), -block.axes[n].size) for n in remaining} if len(remaining) > 1 else {}
    while len(remaining) > 1:
        lowest = min(ranks[n] for n in remaining)
        tied = [n for n in remaining if ranks[n] == lowest]
        colours = {n: _axis_colours(block, [*order, n]) for n in tied}
        first = min(tied, key=lambda n: compute_digest(block, elements, sources, colours[n])) if tied[1:] else tied[0]
        order.append(first)
        remaining.remove(first)
    return order + remaining


def _along(block: Block, axis: int) -> list[int]:
    """The spatial axes, sorted, that occur in an index together with `axis`, as `i` with `r` in a window `i + r`."""
    forms = [form.variables() for access in block.reads for form in access.index]
    return sorted(n for n in set().union(*(used for used in forms if axis in used)) if n < block.spatial)


def _axis_colours(block: Block, placed: Sequence[int]) -> list[bytes]:
    """The colour of each axis of a block; `placed` are the axes with a decided position, in order."""
    ranks = {n: rank for rank, n in enumerate(placed)}
    return [axis_colour(axis.size, axis.is_reduce, ranks.get(n, "")) for n, axis in enumerate(block.axes)]


def normal_form(node: Compute, sources: Colours) -> Compute:
    """Order the reduce axes, reads, conditions and commutative operands of a compute by structure, and drop unused
    reads; the same object if nothing changes. `sources` has a different colour for each value."""
    order = axis_order(node, sources)
    block = _with_axes(node.block, order)
    digests = Digests(block.reads, sources, _axis_colours(block, range(len(order))), block.spatial)
    reads = [_sorted(access, block, digests) for access in block.reads]
    if block.table is not None:
        used = [d for d in block.table.index if isinstance(d, int)]  # one dimension each, in order
        numbers = iter(range(len(used)))
        table = replace(block.table, index=tuple(next(numbers) if isinstance(d, int) else d for d in block.table.index))
        values: tuple[Scalar, ...] = (body.read(len(used), _type_of(block.body[0])),)
        if table != block.table or values != block.body:
            block = replace(block, table=table, body=values)
    else:
        first_positions = (
            {access: position for position, access in reversed(list(enumerate(reads)))} if len(reads) > 1 else {}
        )
        merged = {n: first_positions.get(access, n) for n, access in enumerate(reads)}
        digests = Digests(reads, sources, digests.axes, block.spatial)
        values = tuple(_ordered(_moved(value, merged), digests) for value in block.body)
        used = _uses(values)
        values = tuple(_moved(value, {old: new for new, old in enumerate(used)}) for value in values)
        combiners = tuple(map(_combiner, block.combiners))
        if values != block.body or combiners != block.combiners:
            block = replace(block, body=values, combiners=combiners)
    used_reads = tuple(reads[n] for n in used)
    if used_reads != block.reads:
        types = tuple(block.read_types[position] for position in used)
        block = replace(block, reads=used_reads, read_types=types)
    return node if block is node.block else replace(node, block=block)


def _type_of(value: Scalar) -> Attribute:
    assert isinstance(value, Read)
    return value.type


def _with_axes(block: Block, order: Sequence[int]) -> Block:
    """Reorder the axes of a block: the new axis n is the old `order[n]`."""
    if list(order) == list(range(len(order))):
        return block
    axes = tuple(block.axes[n] for n in order)
    moved = {old: lin.variable(new) for new, old in enumerate(order)}
    return with_axes(block, axes, moved)


def with_axes(block: Block, axes: Sequence[AxisAttr], moved: Mapping[int, Linear]) -> Block:
    """The block over new `axes`; `moved` maps each old axis to a form over the new axes."""
    new = replace(block, axes=tuple(axes))
    return renumbered(new, moved, new.axis_ranges)


def _sorted(access: Access, block: Block, digests: Digests) -> Access:
    """Return a read with its conditions in canonical order, without those that are always true or implied by another
    one with the same terms, and without `otherwise` if no condition is left."""
    if not access.where and access.otherwise is None:
        return access
    # i in 0..7: of i + 2 >= 0, i - 1 >= 0 and i - 3 >= 0 the first always holds, and the last implies the second.
    strictest: dict[object, Condition] = {}
    for condition in access.where:
        key = (condition.form if condition.equal else condition.form.terms, condition.equal)
        if key not in strictest or condition.form.constant < strictest[key].form.constant:
            strictest[key] = condition
    where = sorted((c for c in strictest.values() if not c.always(block.axis_ranges)), key=digests.condition)
    return replace(access, where=tuple(where), otherwise=access.otherwise if where else None)


def _moved(value: Scalar, places: Mapping[int, int]) -> Scalar:
    """An expression with its reads renumbered; `places` maps old to new positions."""
    if all(old == new for old, new in places.items()):
        return value

    reads = {n.position: body.read(places[n.position], n.type) for n in body.leaves([value]) if isinstance(n, Read)}
    return body.rewrite(value, reads)


def _ordered(value: Scalar, digests: Digests) -> Scalar:
    """Return an expression with the operands of commutative operations in canonical order."""
    memo: dict[int, Scalar] = {}

    def visit(node: Scalar) -> Scalar:
        if not isinstance(node, Apply):
            return node
        if id(node) not in memo:
            new = digests.ordered(node)
            operands = tuple(map(visit, new.operands))
            memo[id(node)] = new
            if not all(map(is_, operands, new.operands)):
                memo[id(node)] = body.apply(new.kind, operands, dict(new.properties), new.types, new.result)
        return memo[id(node)]

    return visit(value)


def _combiner(combiner: Combiner) -> Combiner:
    if not isinstance(combiner, Joint):
        return combiner
    digests = Digests((), {}, ())
    return replace(combiner, body=tuple(_ordered(value, digests) for value in combiner.body))


def _uses(values: Sequence[Scalar]) -> list[int]:
    """The positions of the reads that expressions use, in the order of first use."""
    positions: dict[int, None] = {}
    visited: set[int] = set()
    stack = list(reversed(values))
    while stack:
        node = stack.pop()
        if id(node) in visited:
            continue
        visited.add(id(node))
        if isinstance(node, Read):
            positions[node.position] = None
        elif isinstance(node, Apply):
            stack += reversed(node.operands)
    return list(positions)
