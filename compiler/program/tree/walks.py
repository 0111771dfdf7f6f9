"""Walks over nodes, and rewrites of nodes."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace

from compiler.affine import linear as lin
from compiler.affine.condition import Condition
from compiler.affine.linear import Linear
from compiler.program.body import rewrite
from compiler.program.tree.nodes import Access, Block, Loop, Node, Table


def walk(nodes: Iterable[Node]) -> Iterator[Node]:
    """Yield all nodes in pre-order.

    >>> A = te.placeholder((4, 8), name="A")
    >>> program = Schedule(te.function("f", [A], te.nn.exp(A, name="B"))).program
    >>> [type(node).__name__ for node in strata.program.walk(program.body)]
    ['Loop', 'Loop', 'Block']
    """
    for node in nodes:
        yield node
        if isinstance(node, Loop):
            yield from walk(node.body)


def nested(loops: Iterable[Loop], inner: Node) -> Node:
    """Nest a node in perfectly nested loops, given outermost first; their bodies are replaced. Without loops it is the
    node itself."""
    for loop in reversed(list(loops)):
        inner = replace(loop, body=(inner,))
    return inner


def loops_in(*nodes: Node) -> list[Loop]:
    """Return the loops at or inside nodes, in pre-order.

    >>> A = te.placeholder((4, 8), name="A")
    >>> program = Schedule(te.function("f", [A], te.nn.exp(A, name="B"))).program
    >>> [loop.label for loop in strata.program.loops_in(*program.body)]
    ['i0', 'i1']
    """
    return [node for node in walk(nodes) if isinstance(node, Loop)]


def blocks_in(*nodes: Node) -> list[Block]:
    """Return the blocks at or inside nodes, in pre-order.

    >>> A = te.placeholder((4,), name="A")
    >>> s = Schedule(te.function("f", [A], te.nn.exp(te.nn.relu(A, name="B"), name="C")))
    >>> [block.label for block in strata.program.blocks_in(*s.program.body)]
    ['B', 'C']
    """
    return [node for node in walk(nodes) if isinstance(node, Block)]


def touched(nodes: Iterable[Node]) -> tuple[set[str], set[str]]:
    """The buffers read, and those written, by the blocks of some nodes."""
    inside = blocks_in(*nodes)
    return {name for b in inside for name in b.sources}, {name for b in inside for name in b.targets}


def map_blocks(nodes: Iterable[Node], change: Callable[[Block], Block]) -> tuple[Node, ...]:
    """Apply a function to every block; loops in which no block changes stay the same object.

    >>> from dataclasses import replace
    >>> A = te.placeholder((4, 8), name="A")
    >>> program = Schedule(te.function("f", [A], te.nn.exp(A, name="B"))).program
    >>> nodes = strata.program.map_blocks(program.body, lambda block: replace(block, label="C"))
    >>> [block.label for block in strata.program.blocks_in(*nodes)]
    ['C']
    """
    new: list[Node] = []
    for node in nodes:
        if isinstance(node, Loop):
            body = map_blocks(node.body, change)
            new.append(node if all(a is b for a, b in zip(body, node.body, strict=True)) else replace(node, body=body))
        else:
            new.append(change(node) if isinstance(node, Block) else node)
    return tuple(new)


def pruned(nodes: Iterable[Node]) -> tuple[Node, ...]:
    """Remove the loops that contain no block, with the allocations in them."""
    remaining: list[Node] = []
    for node in nodes:
        if isinstance(node, Loop) and not node.nest.is_full:
            if not node.nest.blocks:
                continue
            node = replace(node, body=pruned(node.body))
        remaining.append(node)
    return tuple(remaining)


def rebound(block: Block, values: Mapping[int, Linear], ranges: lin.Ranges) -> Block:
    """Substitute forms for loops, by number, in a block's bindings and guard; conditions that always hold are dropped.

    `ranges` are those of the loops in the new forms. A block that uses none of these loops is returned as it is.
    """
    if not block.loops & values.keys():
        return block
    guard = [c.substitute(values, ranges) for c in block.guard]
    return replace(
        block,
        bindings=tuple(lin.substitute(f, values, ranges) for f in block.bindings),
        guard=tuple(dict.fromkeys(c for c in guard if not c.always(ranges))),
    )


def rebind(
    nodes: Iterable[Node], values: Mapping[int, Linear], ranges: lin.Ranges, guards: Sequence[Condition] = ()
) -> tuple[Node, ...]:
    """Substitute forms for loops, by number, in nodes' blocks, and add `guards`, over the new loops, to each guard.
    `ranges` are those of the loops in the new forms."""

    def change(block: Block) -> Block:
        block = rebound(block, values, ranges)
        return replace(block, guard=tuple(dict.fromkeys((*block.guard, *guards)))) if guards else block

    return map_blocks(nodes, change)


def renumbered(block: Block, values: Mapping[int, Linear], ranges: lin.Ranges | None = None) -> Block:
    """Substitute forms for axes in a block's accesses, body, origin and table; `axes`, `bindings` and `guard` stay.

    `ranges` are those of the axes in the new forms; None suffices if each form is one axis of the same range.

    >>> A = te.placeholder((4,), name="A")
    >>> block = Schedule(te.function("f", [A], te.nn.exp(A, name="B"))).program.blocks["B"]
    >>> strata.program.renumbered(block, {0: strata.analysis.variable(3)}).reads[0].index[0].variables()
    {3}
    """
    if not values:
        return block
    if ranges is None:
        renamed = {new: block.axis_ranges[n] for n, form in values.items() for new in form.variables()}
        ranges = {**block.axis_ranges, **renamed}
    return replace(
        block,
        reads=tuple(access_at(access, values, ranges) for access in block.reads),
        writes=tuple(access_at(access, values, ranges) for access in block.writes),
        body=tuple(rewrite(node, {}, values) for node in block.body),
        origin=block.origin and (block.origin[0], index_at(block.origin[1], values, ranges)),
        table=block.table and _renumbered_table(block.table, values, ranges),
    )


def _renumbered_table(table: Table, values: Mapping[int, Linear], ranges: lin.Ranges) -> Table:
    index = tuple(f if isinstance(f, int) else lin.substitute(f, values, ranges) for f in table.index)
    return replace(table, index=index)


def index_at(index: Sequence[Linear], values: Mapping[int, Linear], ranges: lin.Ranges) -> tuple[Linear, ...]:
    """Substitute forms for axes in an index; `ranges` are those of the axes in the new forms."""
    return tuple(lin.substitute(form, values, ranges) for form in index)


def access_at(access: Access, values: Mapping[int, Linear], ranges: lin.Ranges) -> Access:
    """Substitute forms for axes in an access; `ranges` are those of the axes in the new forms."""
    where = tuple(condition.substitute(values, ranges) for condition in access.where)
    return replace(access, index=index_at(access.index, values, ranges), where=where)
