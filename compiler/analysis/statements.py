"""The polyhedral model of a program: statements with domains, uses of buffers, and places in time.

A block with combiners gives two statements: its init, which stands immediately before the outermost enclosing loop
that binds one of its reduce axes, and the block itself. The time of an instance is the sequence position, loop,
position, loop ... position from the outside in, compared lexicographically.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property, lru_cache
from itertools import product

from compiler.affine import linear as lin
from compiler.affine.condition import Condition
from compiler.affine.linear import Linear
from compiler.analysis.sets import Undecided, points, sample
from compiler.program.combiner import Combiner, Joint
from compiler.program.init import init_depth, init_guard
from compiler.program.tree import Access, Block, Place, Program, Table

Key = tuple[str, bool]
"""A statement: the label of its block, and whether it is the init."""

_MAIN = 1 << 30


@dataclass(frozen=True)
class Use:
    """One access of a statement, over its loops. `how` is read, write, or the combiner of an update; `partners` are
    all accesses that a joint combiner updates, none where it cannot be reordered.

    An index is None where any element along the dimension may be touched: a gather's read of its table."""

    buffer: str
    index: tuple[Linear | None, ...]
    where: tuple[Condition, ...]
    how: Combiner
    partners: tuple[Access, ...] = ()

    @property
    def forms(self) -> tuple[Linear, ...]:
        """The index of a use that touches one element."""
        assert None not in self.index
        return self.index  # type: ignore[return-value]

    def commutes(self, other: Use) -> bool:
        """Whether two instances may run in either order: two reads, or two updates by one combiner."""
        if isinstance(self.how, Joint) and not self.partners:
            return False
        return self.how == other.how and self.how != "write" and self.partners == other.partners


@dataclass(frozen=True)
class Statement:
    """A block, or its init, at its place."""

    block: Block
    is_init: bool
    loops: tuple[int, ...]
    positions: tuple[tuple[int, int], ...]
    ranges: lin.Ranges

    @property
    def key(self) -> Key:
        """What the statement is known by."""
        return self.block.label, self.is_init

    @cached_property
    def guard(self) -> tuple[Condition, ...]:
        """The conditions over loops under which it runs."""
        return init_guard(self.block) if self.is_init else self.block.guard

    @cached_property
    def uses(self) -> tuple[Use, ...]:
        """The accesses, reads first."""
        block = self.block
        if self.is_init:
            return tuple(self._use(a, "write") for a in block.writes)
        hows: Sequence[Combiner] = block.combiners or ["write"] * len(block.writes)
        reads = [self._use(a, "read") for a in block.reads]
        if block.table is not None:
            reads.append(self._table_use(block.table))
        return (*reads, *(self._use(a, how) for a, how in zip(block.writes, hows, strict=True)))

    def _table_use(self, table: Table) -> Use:
        values = dict(enumerate(self.block.bindings))
        index = [None if isinstance(f, int) else lin.substitute(f, values, self.ranges) for f in table.index]
        return Use(table.buffer, tuple(index), (), "read")

    def _use(self, access: Access, how: Combiner) -> Use:
        values = dict(enumerate(self.block.bindings))
        index = tuple(lin.substitute(f, values, self.ranges) for f in access.index)
        partners = self.block.writes if isinstance(how, Joint) and _paired(self.block) else ()
        where = tuple(c.substitute(values, self.ranges) for c in access.where)
        return Use(access.buffer, index, where, how, partners)

    def domain(self, names: Mapping[int, str], use: Use | None = None) -> list[str]:
        """The constraints of its instances, of those where a use happens, in isl's syntax."""
        ranges = [f"{self.ranges[n][0]} <= {names[n]} <= {self.ranges[n][1]}" for n in self.loops]
        return [*ranges, *(c.isl(names) for c in (*self.guard, *(use.where if use is not None else ())))]

    def common(self, other: Statement) -> int:
        """How many loops two statements share, counted from the outside."""
        depth = 0
        for mine, theirs, p, q in zip(self.loops, other.loops, self.positions, other.positions, strict=False):
            if mine != theirs or p != q:
                break
            depth += 1
        return depth

    def instance(self, point: dict[int, int]) -> str:
        """An instance in words: its spatial axes, then its reduce axes by name."""
        shown = []
        for axis, form in zip(self.block.axes, self.block.bindings, strict=True):
            if axis.is_reduce and self.is_init:
                continue
            value = lin.evaluate(form, point)
            shown.append(f"{axis.label}={value}" if axis.is_reduce else str(value))
        return f"{self.block.label}[{','.join(shown)}]"


@lru_cache(maxsize=256)
def _paired(block: Block) -> bool:
    """Whether instances that share an element of one target share those of all targets, so that updates commute."""
    mine, other = ({n: f"{v}{n}" for n in range(len(block.axes))} for v in "ab")
    domain = [f"0 <= {names[n]} < {axis.size}" for names in (mine, other) for n, axis in enumerate(block.axes)]

    def meets(access: Access) -> str:
        return " and ".join(f"{lin.to_isl(f, mine)} = {lin.to_isl(f, other)}" for f in access.index) or "true"

    one, two = (" or ".join(f"{part} ({meets(a)})" for a in block.writes) for part in ("", "not"))
    try:
        return sample(points([*mine.values(), *other.values()], [*domain, f"({one})", f"({two})"])) is None
    except Undecided:
        return False


def statements(program: Program) -> dict[Key, Statement]:
    """All statements of a program."""
    found: dict[Key, Statement] = {}
    for order, block in enumerate(program.blocks.values()):
        place = program.places[block.label]
        if block.has_init:
            found[block.label, True] = _init(program, block, place, order)
        numbers = [loop.number for loop in place.loops]
        found[block.label, False] = _statement(program, block, False, numbers, _mains(place.positions))
    return found


def meetings(first: Statement, second: Statement) -> Iterator[tuple[Use, Use]]:
    """The uses of two statements that may touch one element, those of one buffer."""
    return ((one, two) for one, two in product(first.uses, second.uses) if one.buffer == two.buffer)


def uses_of(program: Program, buffer: str) -> list[tuple[Statement, Use]]:
    """The uses of a buffer, each with the statement that it is of."""
    return [(s, use) for s in statements(program).values() for use in s.uses if use.buffer == buffer]


@dataclass(frozen=True, eq=False)
class _Same:
    """A block that equals only itself, which is cheaper to tell than whether two are alike."""

    block: Block

    def __hash__(self) -> int:
        return id(self.block)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, _Same) and self.block is other.block


@lru_cache(maxsize=1024)
def _cached(
    same: _Same,
    is_init: bool,
    loops: tuple[int, ...],
    positions: tuple[tuple[int, int], ...],
    ranges: tuple[tuple[int, lin.Range], ...],
) -> Statement:
    return Statement(same.block, is_init, loops, positions, dict(ranges))


def _statement(
    program: Program, block: Block, is_init: bool, loops: Sequence[int], positions: Sequence[tuple[int, int]]
) -> Statement:
    """A statement; the same object for the same block at the same place, so that its uses are computed once."""
    used = tuple((n, program.ranges[n]) for n in (*loops, *sorted(block.loops.difference(loops))))
    return _cached(_Same(block), is_init, tuple(loops), tuple(positions), used)


def forget() -> None:
    """Empty the cache of statements."""
    _cached.cache_clear()


def _mains(positions: Sequence[int]) -> tuple[tuple[int, int], ...]:
    return tuple((p, _MAIN) for p in positions)


def _init(program: Program, block: Block, place: Place, order: int) -> Statement:
    """The init, before the loops of the reduction: of these it has copies of those that it needs."""
    depth = init_depth(block, place.loops)
    forms = [*block.bindings[: block.spatial], *(c.form for c in init_guard(block))]
    used = set().union(*(form.variables() for form in forms))
    numbers = [loop.number for loop in place.loops]
    inner = [number for number in numbers[depth:] if number in used]
    positions = (*_mains(place.positions[:depth]), (place.positions[depth], order), *[(0, 0)] * len(inner))
    return _statement(program, block, True, [*numbers[:depth], *inner], positions)
