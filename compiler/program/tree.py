"""The tree: a program is a sequence of loops, allocations and blocks; every change makes a new tree.

Loops are known by a number, which their variable carries in every form; blocks by their label; buffers by their
name. All three are unique in a program and survive rewrites.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import TypeAlias

from xdsl.dialects.builtin import FloatAttr, IntegerAttr, StringAttr
from xdsl.ir import Attribute

from compiler.affine import linear as lin
from compiler.affine.condition import Condition
from compiler.affine.linear import Linear
from compiler.dialects.access import AxisAttr
from compiler.elements import scalar_type
from compiler.program.body import Scalar
from compiler.program.combiner import Combiner

CONCURRENT = frozenset(
    ("parallel", "vectorized", "block_x", "block_y", "block_z", "thread_x", "thread_y", "thread_z", "vthread")
)
INTRINSIC = "intrinsic"
"""The attribute of the outermost loop of a tensorized nest that names its intrinsic."""


@dataclass(frozen=True, slots=True)
class Buffer:
    """An argument of the function, or what an allocation makes."""

    name: str
    shape: tuple[int, ...]
    element: Attribute
    scope: str = "global"

    @property
    def scalar(self) -> Attribute:
        """The type of its elements' values."""
        return scalar_type(self.element)


@dataclass(frozen=True, slots=True)
class Access:
    """Where a block accesses a buffer: forms over its axes; for a read, conditions and the value otherwise."""

    buffer: str
    index: tuple[Linear, ...]
    where: tuple[Condition, ...] = ()
    otherwise: FloatAttr | IntegerAttr | None = None


@dataclass(frozen=True, slots=True)
class Table:
    """What a gather reads: in each dimension a form over its axes, or the number of the read that gives the index."""

    buffer: str
    index: tuple[Linear | int, ...]
    otherwise: FloatAttr | IntegerAttr


@dataclass(frozen=True)
class Block:
    """One structured statement; `bindings` and `guard` are over loops, everything else over axes (by position).

    With a `table` it is a gather: `reads` are those of the index, and its body is read number len(reads), the table's.
    """

    label: str
    axes: tuple[AxisAttr, ...]
    bindings: tuple[Linear, ...]
    guard: tuple[Condition, ...]
    reads: tuple[Access, ...]
    read_types: tuple[Attribute, ...]
    writes: tuple[Access, ...]
    body: tuple[Scalar, ...]
    combiners: tuple[Combiner, ...] = ()
    accumulate: bool = False
    origin: tuple[str, tuple[Linear, ...]] | None = None
    attributes: tuple[tuple[str, Attribute], ...] = ()
    table: Table | None = None

    @property
    def sources(self) -> list[str]:
        """The buffers that it reads, each once, its table last."""
        table = () if self.table is None else (self.table.buffer,)
        return list(dict.fromkeys((*(access.buffer for access in self.reads), *table)))

    @property
    def spatial(self) -> int:
        """How many axes are spatial; they come first."""
        return sum(not axis.is_reduce for axis in self.axes)

    @cached_property
    def axis_ranges(self) -> dict[int, lin.Range]:
        """The range of each axis."""
        return {n: (0, axis.size - 1) for n, axis in enumerate(self.axes)}

    @property
    def has_init(self) -> bool:
        """Whether the targets are set to the identity before the reduction."""
        return bool(self.combiners) and not self.accumulate

    def loops_of(self, reduce: bool) -> set[int]:
        """The loops that occur in the bindings of the reduce, or spatial, axes."""
        bound = zip(self.axes, self.bindings, strict=True)
        return set().union(*(form.variables() for axis, form in bound if axis.is_reduce == reduce))

    @cached_property
    def loops(self) -> set[int]:
        """The loops that occur in the bindings or in the guard."""
        return set().union(*(f.variables() for f in self.bindings), *(c.form.variables() for c in self.guard))

    def at(self, form: Linear, ranges: lin.Ranges) -> Linear:
        """A form over axes as one over loops."""
        return lin.substitute(form, dict(enumerate(self.bindings)), ranges)


@dataclass(frozen=True, slots=True)
class Loop:
    """A loop; `number` is its variable in forms."""

    number: int
    label: str
    extent: int
    body: tuple[Node, ...]
    kind: str = "serial"
    attributes: tuple[tuple[str, Attribute], ...] = ()

    @property
    def intrinsic(self) -> str:
        """The name of the intrinsic that replaces the nest that begins here, or nothing."""
        value = dict(self.attributes).get(INTRINSIC)
        return value.data if self.kind == "tensorized" and isinstance(value, StringAttr) else ""


@dataclass(frozen=True, slots=True)
class Alloc:
    """The beginning of a buffer's lifetime."""

    buffer: Buffer


Node: TypeAlias = Loop | Alloc | Block


@dataclass(frozen=True, slots=True)
class Place:
    """Where a node stands: the loops around it, outermost first, and its position in each body."""

    loops: tuple[Loop, ...]
    positions: tuple[int, ...]


@dataclass(frozen=True)
class Program:
    """A loop function: arguments, of which the last `outputs` are results, and a body.

    `constants` are inputs that are the same in all calls: what is made of them alone need not be made in each.
    """

    name: str
    arguments: tuple[Buffer, ...]
    outputs: int
    body: tuple[Node, ...]
    constants: tuple[str, ...] = ()

    @cached_property
    def places(self) -> dict[int | str | tuple[str], Place]:
        """The place of each loop (by number), block (by label) and allocation (by a tuple of its buffer's name)."""
        return dict(_places(self.body, (), ()))

    @cached_property
    def blocks(self) -> dict[str, Block]:
        """The blocks by label, in the order of the program."""
        return {node.label: node for node in walk(self.body) if isinstance(node, Block)}

    @cached_property
    def loops(self) -> dict[int, Loop]:
        """The loops by number, in the order of the program."""
        return {node.number: node for node in walk(self.body) if isinstance(node, Loop)}

    @cached_property
    def allocs(self) -> dict[str, Alloc]:
        """The allocations by the name of their buffer."""
        return {node.buffer.name: node for node in walk(self.body) if isinstance(node, Alloc)}

    @cached_property
    def buffers(self) -> dict[str, Buffer]:
        """All buffers by name."""
        return {b.name: b for b in self.arguments} | {name: a.buffer for name, a in self.allocs.items()}

    @cached_property
    def ranges(self) -> dict[int, lin.Range]:
        """The range of each loop."""
        return {number: (0, loop.extent - 1) for number, loop in self.loops.items()}

    @cached_property
    def readers(self) -> dict[str, list[Block]]:
        """The blocks that read each buffer, in order."""
        found: dict[str, list[Block]] = {name: [] for name in self.buffers}
        for block in self.blocks.values():
            for name in block.sources:
                found[name].append(block)
        return found

    @cached_property
    def writers(self) -> dict[str, list[Block]]:
        """The blocks that write each buffer, in order."""
        found: dict[str, list[Block]] = {name: [] for name in self.buffers}
        for block in self.blocks.values():
            for name in dict.fromkeys(access.buffer for access in block.writes):
                found[name].append(block)
        return found

    def enclosing(self, key: int | str | tuple[str]) -> tuple[Loop, ...]:
        """The loops around a loop, block or allocation, outermost first."""
        return self.places[key].loops

    def fresh_number(self) -> int:
        """A number that no loop has."""
        return max(self.loops, default=-1) + 1

    def fresh_block(self, label: str) -> str:
        """The label, or a variation that no block has."""
        return fresh(label, self.blocks)

    def fresh_buffer(self, name: str) -> str:
        """The name, or a variation that no buffer has."""
        return fresh(name, self.buffers)

    def replaced(self, key: int | str | tuple[str], make: Callable[[Node], Sequence[Node]]) -> Program:
        """The program with one node replaced by others (none to delete it)."""
        place = self.places[key]
        return replace(self, body=_replaced(self.body, place.positions, make))

    def with_body(self, body: Iterable[Node]) -> Program:
        """The program with another body, loops without content removed."""
        return replace(self, body=pruned(body))

    def map_blocks(self, change: Callable[[Block], Block]) -> Program:
        """The program with every block changed."""
        return replace(self, body=map_blocks(self.body, change))


def _places(
    nodes: Sequence[Node], loops: tuple[Loop, ...], positions: tuple[int, ...]
) -> Iterator[tuple[int | str | tuple[str], Place]]:
    for position, node in enumerate(nodes):
        yield key_of(node), Place(loops, (*positions, position))
        if isinstance(node, Loop):
            yield from _places(node.body, (*loops, node), (*positions, position))


def _replaced(
    nodes: tuple[Node, ...], positions: Sequence[int], make: Callable[[Node], Sequence[Node]]
) -> tuple[Node, ...]:
    first = positions[0]
    node = nodes[first]
    if len(positions) == 1:
        new: Sequence[Node] = make(node)
    else:
        assert isinstance(node, Loop)
        new = (replace(node, body=_replaced(node.body, positions[1:], make)),)
    return (*nodes[:first], *new, *nodes[first + 1 :])


def key_of(node: Node) -> int | str | tuple[str]:
    """What a node is known by."""
    match node:
        case Loop():
            return node.number
        case Block():
            return node.label
        case Alloc():
            return (node.buffer.name,)


def walk(nodes: Iterable[Node]) -> Iterator[Node]:
    """All nodes, each before what it contains."""
    for node in nodes:
        yield node
        if isinstance(node, Loop):
            yield from walk(node.body)


def nested(loops: Iterable[Loop], inner: Node) -> Node:
    """Perfectly nested loops, outermost first, around a node; what they contain is replaced."""
    for loop in reversed(list(loops)):
        inner = replace(loop, body=(inner,))
    return inner


def loops_in(*nodes: Node) -> list[Loop]:
    """The loops at or inside nodes, each before what it contains."""
    return [node for node in walk(nodes) if isinstance(node, Loop)]


def blocks_in(*nodes: Node) -> list[Block]:
    """The blocks at or inside nodes."""
    return [node for node in walk(nodes) if isinstance(node, Block)]


def touched(nodes: Iterable[Node]) -> tuple[set[str], set[str]]:
    """The buffers read, and those written, by the blocks of some nodes."""
    inside = blocks_in(*nodes)
    return {name for b in inside for name in b.sources}, {a.buffer for b in inside for a in b.writes}


def map_blocks(nodes: Iterable[Node], change: Callable[[Block], Block]) -> tuple[Node, ...]:
    """The nodes with every block changed; what does not change stays the same object."""
    made: list[Node] = []
    for node in nodes:
        if isinstance(node, Loop):
            body = map_blocks(node.body, change)
            made.append(node if all(a is b for a, b in zip(body, node.body, strict=True)) else replace(node, body=body))
        else:
            made.append(change(node) if isinstance(node, Block) else node)
    return tuple(made)


def pruned(nodes: Iterable[Node]) -> tuple[Node, ...]:
    """The nodes without loops that contain no block."""
    kept: list[Node] = []
    for node in nodes:
        if isinstance(node, Loop):
            body = pruned(node.body)
            if not any(isinstance(inner, Block) for inner in walk(body)):
                continue
            node = node if len(body) == len(node.body) and body == node.body else replace(node, body=body)
        kept.append(node)
    return tuple(kept)


def fresh(name: str, taken: Iterable[str]) -> str:
    """The name, or the first of name.1, name.2 ... that is not taken."""
    taken = set(taken)
    number, found = 0, name
    while found in taken:
        number += 1
        found = f"{name}.{number}"
    return found


def rebound(block: Block, values: Mapping[int, Linear], ranges: lin.Ranges) -> Block:
    """The block with loops replaced in its bindings and guard; conditions that always hold are dropped."""
    if not block.loops & values.keys():
        return block
    guard = [c.substitute(values, ranges) for c in block.guard]
    return replace(
        block,
        bindings=tuple(lin.substitute(f, values, ranges) for f in block.bindings),
        guard=tuple(dict.fromkeys(c for c in guard if not c.always(ranges))),
    )
