"""The polyhedral model of a program: statements with domains, uses of buffers, and places in time.

A block with combiners gives two statements: its init, which stands immediately before the outermost enclosing loop
that binds one of its reduce axes, and the block itself. The time of an instance is the sequence position, loop,
position, loop ... position from the outside in, compared lexicographically.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property, lru_cache

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
        found[block.label, False] = _statement(
            block, False, tuple(loop.number for loop in place.loops), _mains(place.positions), program.ranges
        )
    return found


@lru_cache(maxsize=1024)
def _cached(key: tuple[int, bool, tuple[int, ...], tuple[tuple[int, int], ...]], ranges: _Ranges) -> Statement:
    return Statement(ranges.block, key[1], key[2], key[3], ranges.ranges)


@dataclass(frozen=True)
class _Ranges:
    block: Block
    of: tuple[tuple[int, lin.Range], ...]

    @property
    def ranges(self) -> lin.Ranges:
        return dict(self.of)

    def __hash__(self) -> int:
        return hash(self.block.label)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, _Ranges) and self.block is other.block and self.of == other.of


def _statement(
    block: Block,
    is_init: bool,
    loops: tuple[int, ...],
    positions: tuple[tuple[int, int], ...],
    ranges: lin.Ranges,
) -> Statement:
    """A statement; the same object for the same block at the same place, so that its uses are computed once."""
    used = tuple((n, ranges[n]) for n in loops) + tuple((n, ranges[n]) for n in sorted(block.loops - set(loops)))
    return _cached((id(block), is_init, loops, positions), _Ranges(block, used))


def forget() -> None:
    """Empty the cache of statements."""
    _cached.cache_clear()


def _mains(positions: Sequence[int]) -> tuple[tuple[int, int], ...]:
    return tuple((p, _MAIN) for p in positions)


def _init(program: Program, block: Block, place: Place, order: int) -> Statement:
    depth = init_depth(block, place.loops)
    draft = Statement(block, True, (), (), program.ranges)
    used = set().union(*(f.variables() for f in block.bindings[: block.spatial]))
    used = used.union(*(c.form.variables() for c in draft.guard))
    inner = [loop.number for loop in place.loops[depth:] if loop.number in used]
    loops = (*(loop.number for loop in place.loops[:depth]), *inner)
    outside = _mains(place.positions[:depth])
    positions = (*outside, (place.positions[depth], order), *[(0, 0)] * len(inner))
    return _statement(block, True, loops, positions, program.ranges)
