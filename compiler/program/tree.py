"""The tree: a program is a sequence of loops, allocations and blocks; every change makes a new tree.

Loops are known by a number, which their variable carries in every form; blocks by their label; buffers by their
name. All three are unique in a program and survive rewrites.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import TypeAlias, TypeVar

from xdsl.dialects.builtin import FloatAttr, IntegerAttr, StringAttr
from xdsl.ir import Attribute

from compiler.affine import linear as lin
from compiler.affine.condition import Condition
from compiler.affine.linear import Linear
from compiler.dialects.access import AxisAttr
from compiler.dialects.dense import DenseAttr
from compiler.elements import scalar_type
from compiler.program.body import Scalar
from compiler.program.combiner import Combiner
from compiler.program.names import fresh

CONCURRENT = frozenset(
    ("parallel", "vectorized", "block_x", "block_y", "block_z", "thread_x", "thread_y", "thread_z", "vthread")
)
Name = TypeVar("Name")
Value = TypeVar("Value")
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

    @cached_property
    def sources(self) -> tuple[str, ...]:
        """The buffers that it reads, each once, its table last."""
        table = () if self.table is None else (self.table.buffer,)
        return tuple(dict.fromkeys([*[access.buffer for access in self.reads], *table]))

    @cached_property
    def spatial(self) -> int:
        """How many axes are spatial; they come first."""
        return sum([not axis.is_reduce for axis in self.axes])

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

    @cached_property
    def nest(self) -> Nest:
        """What is here, where no loop is around it."""
        return _nest(self)

    def at(self, form: Linear, ranges: lin.Ranges) -> Linear:
        """A form over axes as one over loops."""
        return lin.substitute(form, dict(enumerate(self.bindings)), ranges)


@dataclass(frozen=True)
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

    @cached_property
    def nest(self) -> Nest:
        """What is here and inside. It stays with the loop, which passes from a program to what is made of that."""
        return _nest(self)


@dataclass(frozen=True)
class Alloc:
    """The beginning of a buffer's lifetime."""

    buffer: Buffer

    @cached_property
    def nest(self) -> Nest:
        """What is here."""
        return _nest(self)


@dataclass(frozen=True, slots=True)
class Literal:
    """A buffer whose elements the program states: nothing writes it."""

    buffer: Buffer
    value: DenseAttr


Node: TypeAlias = Loop | Alloc | Block


@dataclass(frozen=True, slots=True)
class Place:
    """Where a node stands: the loops around it, outermost first, and its position in each body."""

    loops: tuple[Loop, ...]
    positions: tuple[int, ...]


Key: TypeAlias = int | str | tuple[str]
"""What a node is known by: a loop's number, a block's label, a tuple of the name of an allocation's buffer."""


@dataclass(frozen=True, eq=False)
class Nest:
    """What is at and inside a node of a body; places are counted from there. `is_full` tells that each loop contains a
    block."""

    loops: dict[int, Loop]
    blocks: dict[str, Block]
    allocs: dict[str, Alloc]
    ranges: dict[int, lin.Range]
    places: dict[Key, Place]
    is_full: bool

    @cached_property
    def readers(self) -> dict[str, list[Block]]:
        """The blocks that read each buffer, in order."""
        found: dict[str, list[Block]] = {}
        for block in self.blocks.values():
            for name in block.sources:
                found.setdefault(name, []).append(block)
        return found

    @cached_property
    def writers(self) -> dict[str, list[Block]]:
        """The blocks that write each buffer, in order."""
        found: dict[str, list[Block]] = {}
        for block in self.blocks.values():
            for name in dict.fromkeys(access.buffer for access in block.writes):
                found.setdefault(name, []).append(block)
        return found


class Places(Mapping[Key, Place]):
    """The place of each node of a body. What changes one nest looks at the places there only."""

    def __init__(self, nests: Sequence[Nest]) -> None:
        self._nests = nests
        self._tops = _joined([dict.fromkeys(nest.places, top) for top, nest in enumerate(nests)])

    def __getitem__(self, key: Key) -> Place:
        top = self._tops[key]
        place = self._nests[top].places[key]
        return Place(place.loops, (top, *place.positions))

    def __contains__(self, key: object) -> bool:
        return key in self._tops

    def __iter__(self) -> Iterator[Key]:
        return iter(self._tops)

    def __len__(self) -> int:
        return len(self._tops)

    def top(self, key: Key) -> int:
        """The position in the body of the nest that a node stands in."""
        return self._tops[key]

    def around(self, key: Key) -> tuple[Loop, ...]:
        """The loops around a node, outermost first."""
        return self._nests[self._tops[key]].places[key].loops


@dataclass(frozen=True)
class Program:
    """A loop function: arguments, of which the last `outputs` are results, and a body.

    `constants` are inputs that are the same in all calls: what is made of them alone need not be made in each. `values`
    has the elements of those that are known. `literals` are read like inputs that nobody gives.
    """

    name: str
    arguments: tuple[Buffer, ...]
    outputs: int
    body: tuple[Node, ...]
    constants: tuple[str, ...] = ()
    literals: tuple[Literal, ...] = ()
    values: tuple[tuple[str, DenseAttr], ...] = ()

    @cached_property
    def nests(self) -> tuple[Nest, ...]:
        """What is in each node of the body."""
        return tuple([node.nest for node in self.body])

    @cached_property
    def places(self) -> Places:
        """The place of each loop, block and allocation."""
        return Places(self.nests)

    @cached_property
    def blocks(self) -> dict[str, Block]:
        """The blocks by label, in the order of the program."""
        return _joined([nest.blocks for nest in self.nests])

    @cached_property
    def loops(self) -> dict[int, Loop]:
        """The loops by number, in the order of the program."""
        return _joined([nest.loops for nest in self.nests])

    @cached_property
    def allocs(self) -> dict[str, Alloc]:
        """The allocations by the name of their buffer."""
        return _joined([nest.allocs for nest in self.nests])

    @cached_property
    def buffers(self) -> dict[str, Buffer]:
        """All buffers by name."""
        given = (*self.arguments, *(literal.buffer for literal in self.literals))
        return {b.name: b for b in given} | {name: a.buffer for name, a in self.allocs.items()}

    @cached_property
    def stated(self) -> dict[str, DenseAttr]:
        """The elements of literals by name."""
        return {literal.buffer.name: literal.value for literal in self.literals}

    @cached_property
    def ranges(self) -> dict[int, lin.Range]:
        """The range of each loop."""
        return _joined([nest.ranges for nest in self.nests])

    @cached_property
    def readers(self) -> dict[str, list[Block]]:
        """The blocks that read each buffer, in order."""
        return _gathered(self.buffers, [nest.readers for nest in self.nests])

    @cached_property
    def writers(self) -> dict[str, list[Block]]:
        """The blocks that write each buffer, in order."""
        return _gathered(self.buffers, [nest.writers for nest in self.nests])

    def enclosing(self, key: Key) -> tuple[Loop, ...]:
        """The loops around a loop, block or allocation, outermost first."""
        return self.places.around(key)

    def fresh_number(self) -> int:
        """A number that no loop has."""
        return max(self.loops, default=-1) + 1

    def fresh_block(self, label: str) -> str:
        """The label, or a variation that no block has."""
        return fresh(label, self.blocks)

    def fresh_buffer(self, name: str) -> str:
        """The name, or a variation that no buffer has."""
        return fresh(name, self.buffers)

    def replaced(self, key: Key, make: Callable[[Node], Sequence[Node]]) -> Program:
        """The program with one node replaced by others (none to delete it)."""
        place = self.places[key]
        return replace(self, body=_replaced(self.body, place.positions, make))

    def with_body(self, body: Iterable[Node]) -> Program:
        """The program with another body, loops without content removed."""
        return replace(self, body=pruned(body))

    def map_blocks(self, change: Callable[[Block], Block]) -> Program:
        """The program with every block changed."""
        return replace(self, body=map_blocks(self.body, change))


def _nest(node: Node) -> Nest:
    found = Nest({}, {}, {}, {}, {}, False)
    return replace(found, is_full=_collect(found, node, (), ()))


def _joined(parts: Iterable[Mapping[Name, Value]]) -> dict[Name, Value]:
    joined: dict[Name, Value] = {}
    for part in parts:
        joined.update(part)
    return joined


def _gathered(names: Iterable[str], parts: Iterable[Mapping[str, Sequence[Block]]]) -> dict[str, list[Block]]:
    gathered: dict[str, list[Block]] = {name: [] for name in names}
    for part in parts:
        for name, blocks in part.items():
            gathered[name] += blocks
    return gathered


def _collect(found: Nest, node: Node, loops: tuple[Loop, ...], positions: tuple[int, ...]) -> bool:
    """Put a node and what is in it into a nest; whether each loop there contains a block."""
    found.places[key_of(node)] = Place(loops, positions)
    if isinstance(node, Alloc):
        found.allocs[node.buffer.name] = node
    elif isinstance(node, Block):
        found.blocks[node.label] = node
    else:
        before = len(found.blocks)
        found.loops[node.number] = node
        found.ranges[node.number] = (0, node.extent - 1)
        inner = (*loops, node)
        full = [_collect(found, below, inner, (*positions, n)) for n, below in enumerate(node.body)]
        return len(found.blocks) > before and all(full)
    return True


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


def key_of(node: Node) -> Key:
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
        if isinstance(node, Loop) and not node.nest.is_full:
            if not node.nest.blocks:
                continue
            node = replace(node, body=pruned(node.body))
        kept.append(node)
    return tuple(kept)


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
