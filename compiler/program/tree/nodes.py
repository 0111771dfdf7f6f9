"""Nodes: loops, allocations and blocks, the buffers that they access, and the lookup tables of a nest.

A loop is identified by its number, which is also its variable in every form, a block by its label, a buffer by its
name. All three are unique in a program and survive rewrites.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import TypeAlias

from xdsl.dialects.builtin import UNKNOWN_LOC, FloatAttr, IntegerAttr, LocationAttr, StringAttr
from xdsl.ir import Attribute

from compiler.affine import linear as lin
from compiler.affine.condition import Condition
from compiler.affine.linear import Linear
from compiler.dialects.access import AxisAttr
from compiler.dialects.dense import DenseAttr
from compiler.dialects.loop import BOUND
from compiler.program.body import Scalar
from compiler.program.combiner import Combiner
from compiler.types.elements import scalar_type

CONCURRENT = frozenset(("parallel", "vectorized", *BOUND))
INTRINSIC = "intrinsic"
"""The attribute of the outermost loop of a tensorized nest that names its intrinsic."""


@dataclass(frozen=True, slots=True)
class Buffer:
    """A buffer: an argument of the function, a literal, or the buffer of an allocation.

    >>> A = te.placeholder((4, 8), name="A")
    >>> program = Schedule(te.function("f", [A], te.nn.exp(A, name="B"))).program
    >>> program.buffers["A"].shape, str(program.buffers["A"].element), program.buffers["A"].scope
    ((4, 8), 'f32', 'global')
    """

    name: str
    shape: tuple[int, ...]
    element: Attribute
    scope: str = "global"

    @property
    def scalar(self) -> Attribute:
        """The type of an element's value in a body: the element's type without signedness, i8 for ui8."""
        return scalar_type(self.element)


@dataclass(frozen=True, slots=True)
class Access:
    """A read or write of a buffer at an index over the block's axes; a read yields `otherwise` unless `where` holds.
    `otherwise` is None without conditions.

    >>> A = te.placeholder((4, 8), name="A")
    >>> program = Schedule(te.function("f", [A], te.nn.transpose(A, name="B"))).program
    >>> [read.buffer for read in program.blocks["B"].reads], program.blocks["B"].reads[0].index[0].variables()
    (['A'], {1})
    """

    buffer: str
    index: tuple[Linear, ...]
    where: tuple[Condition, ...] = ()
    otherwise: FloatAttr | IntegerAttr | None = None


@dataclass(frozen=True, slots=True)
class Table:
    """The table of a gather: an index is a form over axes, or the number of the read that loads the index; a gather
    outside the table yields `otherwise`.

    >>> W, I = te.placeholder((10, 4), name="W"), te.placeholder((3,), "i32", name="I")
    >>> B = te.gather((3, 4), lambda i, d: W.at(I[i], d), name="B")
    >>> table = Schedule(te.function("f", [W, I], B)).program.blocks["B"].table
    >>> table.buffer, len(table.index)
    ('W', 2)
    """

    buffer: str
    index: tuple[Linear | int, ...]
    otherwise: FloatAttr | IntegerAttr


@dataclass(frozen=True)
class Block:
    """One structured statement; `bindings` and `guard` are over loops, everything else over axes (by position).

    With a `table` the block is a gather: `reads` are the reads of the index, and its body is read number len(reads),
    the table's. `read_types` are the types of the values read. `combiners` has one for each target, and is empty
    without a reduction. `accumulate`: a reduction adds to its targets without an init. `origin`: the te result, and the
    index in it, that the block's write computes. `location` is the location of the op that the block comes from;
    equality ignores it.

    >>> A = te.placeholder((4, 8), name="A")
    >>> block = Schedule(te.function("f", [A], te.nn.sum(A, axis=1, name="B"))).program.blocks["B"]
    >>> block.label, [axis.label for axis in block.axes], block.combiners
    ('B', ['i0', 'k1'], ('add',))
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
    location: LocationAttr = field(default=UNKNOWN_LOC, compare=False)

    @cached_property
    def sources(self) -> tuple[str, ...]:
        """The names of the buffers that the block reads, each once, the table of a gather last."""
        table = () if self.table is None else (self.table.buffer,)
        return tuple(dict.fromkeys([*[access.buffer for access in self.reads], *table]))

    @cached_property
    def targets(self) -> tuple[str, ...]:
        """The names of the buffers that the block writes, each once."""
        return tuple(dict.fromkeys([access.buffer for access in self.writes]))

    @cached_property
    def spatial(self) -> int:
        """Number of spatial axes; they come first."""
        return sum([not axis.is_reduce for axis in self.axes])

    @cached_property
    def axis_ranges(self) -> dict[int, lin.Range]:
        """The inclusive range of each axis, by position."""
        return lin.box([axis.size for axis in self.axes])

    @property
    def has_init(self) -> bool:
        """Whether the targets are set to the identity before the reduction."""
        return bool(self.combiners) and not self.accumulate

    def loops_of(self, reduce: bool) -> set[int]:
        """The numbers of the loops to which the reduce axes are bound or, if `reduce` is false, the spatial axes."""
        bound = zip(self.axes, self.bindings, strict=True)
        return set().union(*(form.variables() for axis, form in bound if axis.is_reduce == reduce))

    @cached_property
    def loops(self) -> set[int]:
        """The numbers of the loops that occur in the bindings or the guard."""
        return set().union(*(f.variables() for f in self.bindings), *(c.form.variables() for c in self.guard))

    @cached_property
    def nest(self) -> Nest:
        """The lookup tables of this block alone."""
        return _nest(self)

    def at(self, form: Linear, ranges: lin.Ranges) -> Linear:
        """Substitute the bindings for axes in a form: the result is over loops, which have the given ranges."""
        return lin.substitute(form, dict(enumerate(self.bindings)), ranges)


@dataclass(frozen=True)
class Loop:
    """A loop; `number` is its variable in forms, `kind` one of KINDS, `attributes` are sorted by name.

    >>> A = te.placeholder((4, 8), name="A")
    >>> (outer,) = Schedule(te.function("f", [A], te.nn.exp(A, name="B"))).program.body
    >>> outer.label, outer.extent, outer.kind
    ('i0', 4, 'serial')
    """

    number: int
    label: str
    extent: int
    body: tuple[Node, ...]
    kind: str = "serial"
    attributes: tuple[tuple[str, Attribute], ...] = ()

    @property
    def variable(self) -> Linear:
        """The form of the loop's value: its variable, or zero if it has one iteration."""
        return lin.variable(self.number) if self.extent > 1 else lin.constant(0)

    @property
    def intrinsic(self) -> str:
        """The name of the intrinsic that replaces the nest of this loop; empty if there is none."""
        value = dict(self.attributes).get(INTRINSIC)
        return value.data if self.kind == "tensorized" and isinstance(value, StringAttr) else ""

    @cached_property
    def nest(self) -> Nest:
        """The lookup tables of this loop and the nodes in it; programs that share the loop share them."""
        return _nest(self)


@dataclass(frozen=True)
class Alloc:
    """The allocation of a buffer, where its lifetime begins.

    >>> A = te.placeholder((4,), name="A")
    >>> s = Schedule(te.function("f", [A], te.nn.exp(te.nn.relu(A, name="B"), name="C")))
    >>> s.program.allocs["B"].buffer.scope
    'global'
    """

    buffer: Buffer

    @cached_property
    def nest(self) -> Nest:
        """The lookup tables of this allocation alone."""
        return _nest(self)


@dataclass(frozen=True, slots=True)
class Literal:
    """A buffer that no block writes, and its elements, which are part of the program."""

    buffer: Buffer
    value: DenseAttr


Node: TypeAlias = Loop | Alloc | Block
"""A loop, an allocation or a block."""


@dataclass(frozen=True, slots=True)
class Place:
    """Position of a node in a tree: the loops around it and the index to follow in each body, outermost first."""

    loops: tuple[Loop, ...]
    positions: tuple[int, ...]


Key: TypeAlias = int | str | tuple[str]
"""The key of a node: a loop's number, a block's label, a tuple of the name of an allocation's buffer."""


@dataclass(frozen=True, eq=False)
class Nest:
    """Lookup tables of a node and the nodes in it; places are relative to it. `is_full`: each loop contains a block.

    `loops` and `ranges`, which are inclusive, are by the number of the loop, `blocks` by label, `allocs` by buffer.

    >>> A = te.placeholder((4, 8), name="A")
    >>> (outer,) = Schedule(te.function("f", [A], te.nn.exp(A, name="B"))).program.body
    >>> list(outer.nest.loops), list(outer.nest.blocks)
    ([0, 1], ['B'])
    """

    loops: dict[int, Loop]
    blocks: dict[str, Block]
    allocs: dict[str, Alloc]
    ranges: dict[int, lin.Range]
    places: dict[Key, Place]
    is_full: bool

    @cached_property
    def readers(self) -> dict[str, list[Block]]:
        """The blocks that read each buffer, in order, by the buffer's name; no entry for a buffer that none reads."""
        readers: dict[str, list[Block]] = {}
        for block in self.blocks.values():
            for name in block.sources:
                readers.setdefault(name, []).append(block)
        return readers

    @cached_property
    def writers(self) -> dict[str, list[Block]]:
        """The blocks that write each buffer, in order, by the buffer's name; no entry for a buffer that none writes."""
        writers: dict[str, list[Block]] = {}
        for block in self.blocks.values():
            for name in block.targets:
                writers.setdefault(name, []).append(block)
        return writers


def _nest(node: Node) -> Nest:
    nest = Nest({}, {}, {}, {}, {}, False)
    return replace(nest, is_full=_collect(nest, node, (), ()))


def _collect(nest: Nest, node: Node, loops: tuple[Loop, ...], positions: tuple[int, ...]) -> bool:
    """Add a node and the nodes below it to a nest; return whether every loop among them contains a block."""
    nest.places[key_of(node)] = Place(loops, positions)
    if isinstance(node, Alloc):
        nest.allocs[node.buffer.name] = node
    elif isinstance(node, Block):
        nest.blocks[node.label] = node
    else:
        before = len(nest.blocks)
        nest.loops[node.number] = node
        nest.ranges[node.number] = (0, node.extent - 1)
        inner = (*loops, node)
        full = [_collect(nest, below, inner, (*positions, n)) for n, below in enumerate(node.body)]
        return len(nest.blocks) > before and all(full)
    return True


def key_of(node: Node) -> Key:
    """The key of a node: a loop's number, a block's label, a tuple of the name of an allocation's buffer."""
    match node:
        case Loop():
            return node.number
        case Block():
            return node.label
        case Alloc():
            return (node.buffer.name,)
