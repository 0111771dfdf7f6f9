"""`Program`: a loop function, with the places of its nodes; every change makes a new one."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import TypeVar

from compiler.affine import linear as lin
from compiler.dialects.dense import DenseAttr
from compiler.program.names import fresh
from compiler.program.tree.nodes import Alloc, Block, Buffer, Key, Literal, Loop, Nest, Node, Place
from compiler.program.tree.walks import map_blocks, pruned

Name = TypeVar("Name")
Value = TypeVar("Value")


class Places(Mapping[Key, Place]):
    """A map from the keys of nodes to their places in a program, stored by nest, since programs share unchanged
    nests."""

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
        """The index, in the program's body, of the nest that contains a node."""
        return self._tops[key]

    def around(self, key: Key) -> tuple[Loop, ...]:
        """The loops around a node, outermost first."""
        return self._nests[self._tops[key]].places[key].loops


@dataclass(frozen=True)
class Program:
    """A loop function: arguments, the last `outputs` of which are results, and a body.

    `constants` are inputs that are the same in all calls: values computed from them alone need not be computed in each
    call. `values` has the elements of constants that are known. `literals` are read like inputs, but their elements are
    part of the program.

    >>> A = te.placeholder((4, 8), name="A")
    >>> program = Schedule(te.function("f", [A], te.nn.exp(A, name="B"))).program
    >>> program.name, program.outputs, list(program.loops), list(program.blocks)
    ('f', 1, [0, 1], ['B'])
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
        """The lookup tables of each node of the body."""
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
        external = (*self.arguments, *(literal.buffer for literal in self.literals))
        return {b.name: b for b in external} | {name: a.buffer for name, a in self.allocs.items()}

    @cached_property
    def stated(self) -> dict[str, DenseAttr]:
        """The elements of literals by name."""
        return {literal.buffer.name: literal.value for literal in self.literals}

    @cached_property
    def ranges(self) -> dict[int, lin.Range]:
        """The inclusive range of each loop, by number."""
        return _joined([nest.ranges for nest in self.nests])

    @cached_property
    def readers(self) -> dict[str, list[Block]]:
        """The blocks that read each buffer, in order, by the name of every buffer."""
        return _gathered(self.buffers, [nest.readers for nest in self.nests])

    @cached_property
    def writers(self) -> dict[str, list[Block]]:
        """The blocks that write each buffer, in order, by the name of every buffer."""
        return _gathered(self.buffers, [nest.writers for nest in self.nests])

    def enclosing(self, key: Key) -> tuple[Loop, ...]:
        """The loops around a loop, block or allocation, outermost first."""
        return self.places.around(key)

    def outer(self, key: Key) -> set[int]:
        """The numbers of the loops around a loop, block or allocation."""
        return {loop.number for loop in self.enclosing(key)}

    def private_loops(self, buffer: str) -> tuple[int, ...]:
        """The numbers of the loops that privatise a buffer, outermost first; empty for arguments and literals, and for
        a temporary outside all loops."""
        return tuple([loop.number for loop in self.enclosing((buffer,))]) if buffer in self.allocs else ()

    def ranges_with(self, *loops: Loop) -> dict[int, lin.Range]:
        """The inclusive range of each loop of the program and of `loops`, by number."""
        return self.ranges | {loop.number: (0, loop.extent - 1) for loop in loops}

    def fresh_number(self) -> int:
        """A number that no loop has."""
        return max(self.loops, default=-1) + 1

    def fresh_block(self, label: str) -> str:
        """The label or, if a block has it, the label with a number."""
        return fresh(label, self.blocks)

    def fresh_buffer(self, name: str) -> str:
        """The name or, if a buffer has it, the name with a number."""
        return fresh(name, self.buffers)

    def replaced(self, key: Key, make: Callable[[Node], Sequence[Node]]) -> Program:
        """Return the program with the node of a key replaced by the nodes that `make` returns for it; an empty sequence
        deletes it. Raises KeyError for a key that the program lacks."""
        place = self.places[key]
        return replace(self, body=_replaced(self.body, place.positions, make))

    def pruned(self) -> Program:
        """Remove the loops that contain no block, with the allocations in them."""
        return replace(self, body=pruned(self.body))

    def map_blocks(self, change: Callable[[Block], Block]) -> Program:
        """Apply a function to every block."""
        return replace(self, body=map_blocks(self.body, change))


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
