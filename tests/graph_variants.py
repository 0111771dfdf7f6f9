"""The same program in other words: graphs that differ from one by names and by the order of what has none."""

from __future__ import annotations

import random
from collections.abc import Callable, Mapping
from dataclasses import replace

from compiler.affine import linear as lin
from compiler.dialects.access import AxisAttr
from compiler.graph.hashing import swapped
from compiler.graph.normal_form import with_axes
from compiler.graph.rename import with_operands
from compiler.graph.tree import Compute, Graph, Node
from compiler.program import body
from compiler.program.body import Apply, Read, Scalar
from compiler.program.tree import Block


def variant(graph: Graph, rng: random.Random) -> Graph:
    """Another text of a program: renamed, its computes, reads, reductions and commutative operands shuffled."""
    return renamed(shuffled(replace(graph, nodes=tuple(_reordered(node, rng) for node in graph.nodes)), rng), rng)


def shuffled(graph: Graph, rng: random.Random) -> Graph:
    """The nodes in another order that their dependences allow."""
    known = {value.name for value in graph.inputs}
    left, nodes = list(graph.nodes), list[Node]()
    while left:
        node = rng.choice([n for n in left if all(name in known for name in n.operands)])
        left.remove(node)
        nodes.append(node)
        known.update(value.name for value in node.results)
    return replace(graph, nodes=tuple(nodes))


def with_inputs(graph: Graph, order: list[int]) -> Graph:
    return replace(graph, inputs=tuple(graph.inputs[n] for n in order))


def renamed(graph: Graph, rng: random.Random) -> Graph:
    """Everything under names of no meaning."""
    numbers = rng.sample(range(10 * len(graph.values)), len(graph.values))
    names = {name: f"v{number}" for name, number in zip(graph.values, numbers, strict=True)}

    def node(given: Node) -> Node:
        outputs = tuple(replace(value, name=names[value.name]) for value in given.results)
        given = with_operands(given, names)
        if isinstance(given, Compute):
            axes = tuple(
                AxisAttr(f"x{rng.randrange(1000)}_{n}", a.size, a.is_reduce) for n, a in enumerate(given.block.axes)
            )
            given = replace(given, block=replace(given.block, label=f"L{rng.randrange(10**6)}", axes=axes))
        return replace(given, results=outputs)  # type: ignore[arg-type]

    inputs = tuple(replace(value, name=names[value.name]) for value in graph.inputs)
    outputs = tuple(names[name] for name in graph.results)
    return Graph(graph.name, inputs, tuple(map(node, graph.nodes)), outputs, graph.private, graph.attributes)


def _reordered(node: Node, rng: random.Random) -> Node:
    if not isinstance(node, Compute):
        return node
    block = node.block
    reduces = list(range(block.spatial, len(block.axes)))
    order = [*range(block.spatial), *rng.sample(reduces, len(reduces))]
    block = with_axes(block, [block.axes[n] for n in order], {old: lin.variable(new) for new, old in enumerate(order)})
    if block.table is None:
        places = rng.sample(range(len(block.reads)), len(block.reads))
        block = replace(
            block,
            reads=tuple(block.reads[n] for n in places),
            read_types=tuple(block.read_types[n] for n in places),
            body=tuple(_swapped(_moved(v, {old: new for new, old in enumerate(places)}), rng) for v in block.body),
        )
    return replace(node, block=block)


def _moved(value: Scalar, places: Mapping[int, int]) -> Scalar:
    reads = {n.position: body.read(places[n.position], n.type) for n in body.leaves([value]) if isinstance(n, Read)}
    return body.rewrite(value, reads)


def _swapped(value: Scalar, rng: random.Random) -> Scalar:
    if not isinstance(value, Apply):
        return value
    operands = [_swapped(operand, rng) for operand in value.operands]
    new = body.apply(value.kind, operands, dict(value.properties), value.types, value.result)
    assert isinstance(new, Apply)
    return (swapped(new) if len(operands) > 1 and rng.random() < 0.5 else None) or new


Change = Callable[[Block, random.Random], Block | None]


def _constant(block: Block, rng: random.Random) -> Block | None:
    """Another literal in a body."""
    from xdsl.dialects.builtin import FloatAttr, IntegerAttr

    changed = False

    def visit(node: Scalar) -> Scalar:
        nonlocal changed
        if not isinstance(node, Apply):
            return node
        properties = dict(node.properties)
        literal = properties.get("value")
        if not changed and isinstance(literal, FloatAttr):
            properties["value"], changed = FloatAttr(literal.value.data + 0.5, literal.type), True
        elif not changed and isinstance(literal, IntegerAttr) and literal.type != body.INDEX:
            properties["value"], changed = IntegerAttr(literal.value.data ^ 1, literal.type), True
        return body.apply(node.kind, list(map(visit, node.operands)), properties, node.types, node.result)

    values = tuple(map(visit, block.body))
    return replace(block, body=values) if changed else None


def _combiner(block: Block, rng: random.Random) -> Block | None:
    """Another combiner."""
    if not block.combiners or not isinstance(block.combiners[0], str):
        return None
    first = rng.choice([name for name in ("add", "max", "min", "mul") if name != block.combiners[0]])
    return replace(block, combiners=(first, *block.combiners[1:]))


def _map(block: Block, rng: random.Random) -> Block | None:
    """Another element read: at zero along a dimension of the first read that has an axis."""
    for n, access in enumerate(block.reads):
        for d, form in enumerate(access.index):
            if (
                not form.is_constant
                and not access.where
                and body.read(n, block.read_types[n]) in body.leaves(block.body)
            ):
                index = (*access.index[:d], lin.constant(0), *access.index[d + 1 :])
                return replace(block, reads=(*block.reads[:n], replace(access, index=index), *block.reads[n + 1 :]))
    return None


CHANGES: tuple[Change, ...] = (_constant, _combiner, _map)


def changed(graph: Graph, rng: random.Random) -> Graph | None:
    """Another program: one literal, combiner or map of it is another; None where a random choice finds none."""
    n = rng.randrange(len(graph.nodes))
    node = graph.nodes[n]
    if not isinstance(node, Compute) or node.block.table is not None:
        return None
    block = rng.choice(CHANGES)(node.block, rng)
    if block is None:
        return None
    return replace(graph, nodes=(*graph.nodes[:n], replace(node, block=block), *graph.nodes[n + 1 :]))
