"""The polyhedral model of a program: statements with domains, uses of buffers, and positions in time.

A block with combiners gives two statements: its init, which stands immediately before the outermost enclosing loop
that binds one of its reduce axes, and the block itself. The time of an instance is the sequence position, loop,
position, loop ... position from the outside in, compared lexicographically.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property, lru_cache
from itertools import product

from compiler.affine import linear as lin
from compiler.affine.condition import Condition
from compiler.affine.linear import Linear
from compiler.analysis.sets import Undecided, points, sample
from compiler.program.combiner import Combiner, Joint
from compiler.program.init import init_depth, init_guard
from compiler.program.tree import Access, Alloc, Block, Loop, Nest, Node, Program, Table

Key = tuple[str, bool]
"""A statement: the label of its block, and whether it is the init."""

_MAIN = 1 << 30


@dataclass(frozen=True)
class Use:
    """One access of a statement, over its loops. `how` is read, write, or the combiner of an update; `partners` are
    all accesses that a joint combiner updates, empty if its updates cannot be reordered.

    An index is None where any element along the dimension may be touched: a gather's read of its table."""

    buffer: str
    index: tuple[Linear | None, ...]
    where: tuple[Condition, ...]
    how: Combiner
    partners: tuple[Access, ...] = ()

    @property
    def forms(self) -> tuple[Linear, ...]:
        """The index of a use without data-dependent dimensions."""
        assert None not in self.index
        return self.index  # type: ignore[return-value]

    def commutes(self, later: Use) -> bool:
        """Whether two instances may run in either order: two reads, or two updates by one combiner."""
        if isinstance(self.how, Joint) and not self.partners:
            return False
        return self.how == later.how and self.how != "write" and self.partners == later.partners


@dataclass(frozen=True)
class Statement:
    """A block, or its init, with the loops around it, outermost first. `positions`: the position in each body around
    it, with the order of inits at that position; `ranges`: of the loops' variables."""

    block: Block
    is_init: bool
    loops: tuple[int, ...]
    positions: tuple[tuple[int, int], ...]
    ranges: lin.Ranges

    @property
    def key(self) -> Key:
        """The key of the statement: its block's label, and whether it is the init."""
        return self.block.label, self.is_init

    @cached_property
    def guard(self) -> tuple[Condition, ...]:
        """The conditions over loops under which the statement runs."""
        return init_guard(self.block) if self.is_init else self.block.guard

    @cached_property
    def uses(self) -> tuple[Use, ...]:
        """The accesses as forms over the loops, reads first; an init only writes."""
        return _uses(_Same(self.block), self.is_init, tuple(self.ranges.items()))

    def domain(self, names: Mapping[int, str], use: Use | None = None) -> list[str]:
        """The constraints, in isl's syntax with `names` for the loops, of the instances or, with `use`, of the
        instances that perform this use."""
        ranges = [f"{self.ranges[n][0]} <= {names[n]} <= {self.ranges[n][1]}" for n in self.loops]
        return [*ranges, *(c.isl(names) for c in (*self.guard, *(use.where if use is not None else ())))]

    def common(self, second: Statement) -> int:
        """Number of outer loops that two statements have in common."""
        depth = 0
        for mine, theirs, p, q in zip(self.loops, second.loops, self.positions, second.positions, strict=False):
            if mine != theirs or p != q:
                break
            depth += 1
        return depth

    def instance(self, point: dict[int, int]) -> str:
        """Return an instance, from its loop values by number, as text: `C[0,2,k=1]` for a reduce axis k."""
        shown = []
        for axis, form in zip(self.block.axes, self.block.bindings, strict=True):
            if axis.is_reduce and self.is_init:
                continue
            value = lin.evaluate(form, point)
            shown.append(f"{axis.label}={value}" if axis.is_reduce else str(value))
        return f"{self.block.label}[{','.join(shown)}]"


@lru_cache(maxsize=4096)
def _uses(same: _Same, is_init: bool, spans: tuple[tuple[int, lin.Range], ...]) -> tuple[Use, ...]:
    """The uses of a block, or with `is_init` the writes of its init, in loops with the ranges `spans`; shared by
    programs with the block."""
    block, ranges = same.node, dict(spans)
    assert isinstance(block, Block)
    if is_init:
        return tuple(_use(block, a, "write", ranges) for a in block.writes)
    hows: Sequence[Combiner] = block.combiners or ["write"] * len(block.writes)
    reads = [_use(block, a, "read", ranges) for a in block.reads]
    if block.table is not None:
        reads.append(_table_use(block, block.table, ranges))
    return (*reads, *(_use(block, a, how, ranges) for a, how in zip(block.writes, hows, strict=True)))


def _table_use(block: Block, table: Table, ranges: lin.Ranges) -> Use:
    values = dict(enumerate(block.bindings))
    index = [None if isinstance(f, int) else lin.substitute(f, values, ranges) for f in table.index]
    return Use(table.buffer, tuple(index), (), "read")


def _use(block: Block, access: Access, how: Combiner, ranges: lin.Ranges) -> Use:
    values = dict(enumerate(block.bindings))
    index = tuple(lin.substitute(f, values, ranges) for f in access.index)
    partners = block.writes if isinstance(how, Joint) and _paired(block) else ()
    where = tuple(c.substitute(values, ranges) for c in access.where)
    return Use(access.buffer, index, where, how, partners)


@lru_cache(maxsize=256)
def _paired(block: Block) -> bool:
    """Whether updates commute: instances that share an element of one target share those of all. False if undecided."""
    # Targets P[i], Q[j]: a0 = b0 and not a1 = b1 at (a0, a1, b0, b1) = (0, 0, 0, 1), so False.
    mine, theirs = ({n: f"{v}{n}" for n in range(len(block.axes))} for v in "ab")
    domain = [f"0 <= {names[n]} < {axis.size}" for names in (mine, theirs) for n, axis in enumerate(block.axes)]

    def meets(access: Access) -> str:
        return " and ".join(f"{lin.to_isl(f, mine)} = {lin.to_isl(f, theirs)}" for f in access.index) or "true"

    same, different = (" or ".join(f"{part} ({meets(a)})" for a in block.writes) for part in ("", "not"))
    try:
        return sample(points([*mine.values(), *theirs.values()], [*domain, f"({same})", f"({different})"])) is None
    except Undecided:
        return False


class Statements(Mapping[Key, Statement]):
    """The statements of a program. Those of a nest are computed on first use, once for all programs that share it."""

    def __init__(self, program: Program) -> None:
        self._program = program

    def __getitem__(self, key: Key) -> Statement:
        if key[0] not in self._program.places:
            raise KeyError(key)
        return self.of(self._program.places.top(key[0]))[key]

    def __contains__(self, key: object) -> bool:
        return isinstance(key, tuple) and key[0] in self._program.blocks and self.get(key) is not None

    def __iter__(self) -> Iterator[Key]:
        return (key for top in range(len(self._program.body)) for key in self.of(top))

    def __len__(self) -> int:
        return sum(1 for _ in self)

    def of_block(self, label: str) -> list[Statement]:
        """The statements of a block: its init, if it has one, then the block."""
        return [self[key] for key in ((label, True), (label, False)) if key in self]

    def of(self, top: int) -> dict[Key, Statement]:
        """The statements of the node at position `top` of the program's body."""
        return _statements(_Same(self._program.body[top]), top)


def statements(program: Program) -> Statements:
    """All statements of a program by key, in its order; they are computed on first use."""
    return Statements(program)


@lru_cache(maxsize=1024)
def _statements(same: _Same, top: int) -> dict[Key, Statement]:
    by_key: dict[Key, Statement] = {}
    if isinstance(same.node, Alloc):
        return by_key
    if top:
        return {key: _moved(statement, top) for key, statement in _statements(same, 0).items()}
    nest = same.node.nest
    for order, block in enumerate(nest.blocks.values()):
        place = nest.places[block.label]
        positions = (0, *place.positions)
        if block.has_init:
            by_key[block.label, True] = _init(nest, block, place.loops, positions, order)
        numbers = [loop.number for loop in place.loops]
        by_key[block.label, False] = _statement(nest, block, False, numbers, _mains(positions))
    return by_key


def _moved(statement: Statement, top: int) -> Statement:
    """The statement with its nest at position `top` of the program's body."""
    (_, second), *inner = statement.positions
    return replace(statement, positions=((top, second), *inner))


def meetings(first: Statement, second: Statement) -> Iterator[tuple[Use, Use]]:
    """Return pairs of uses of two statements that are of the same buffer, so that they may touch one element."""
    return ((use, later) for use, later in product(first.uses, second.uses) if use.buffer == later.buffer)


def uses_of(program: Program, buffer: str) -> list[tuple[Statement, Use]]:
    """The uses of a buffer, each with its statement, in the order of the program."""
    touching = {block.label for block in (*program.readers[buffer], *program.writers[buffer])}
    all_statements = statements(program)
    touching_statements = [s for label in program.blocks if label in touching for s in all_statements.of_block(label)]
    return [(s, use) for s in touching_statements for use in s.uses if use.buffer == buffer]


@dataclass(frozen=True, eq=False)
class _Same:
    """A key that compares nodes by identity, which is cheaper than by content."""

    node: Node

    def __hash__(self) -> int:
        return id(self.node)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, _Same) and self.node is other.node


def _statement(
    nest: Nest, block: Block, is_init: bool, loops: Sequence[int], positions: tuple[tuple[int, int], ...]
) -> Statement:
    ranges = {n: nest.ranges[n] for n in (*loops, *sorted(block.loops.difference(loops)))}
    return Statement(block, is_init, tuple(loops), positions, ranges)


def forget() -> None:
    """Empty the caches of statements and uses."""
    _statements.cache_clear()
    _uses.cache_clear()


def _mains(positions: Sequence[int]) -> tuple[tuple[int, int], ...]:
    return tuple((p, _MAIN) for p in positions)


def _init(nest: Nest, block: Block, loops: tuple[Loop, ...], positions: Sequence[int], order: int) -> Statement:
    """The init statement, before the outermost reduce loop, in copies of the inner loops that the init uses.
    `positions` are the block's; `order` counts the inits at one position."""
    depth = init_depth(block, loops)
    forms = [*block.bindings[: block.spatial], *(c.form for c in init_guard(block))]
    used = set().union(*(form.variables() for form in forms))
    numbers = [loop.number for loop in loops]
    inner = [number for number in numbers[depth:] if number in used]
    schedule_dims = (*_mains(positions[:depth]), (positions[depth], order), *[(0, 0)] * len(inner))
    return _statement(nest, block, True, [*numbers[:depth], *inner], schedule_dims)
