"""A scheduled program in isl: instances, the cells (elements of buffer copies) they touch, order, claims of blocks."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import NamedTuple, NoReturn

import islpy as isl

from compiler.affine import linear as lin
from compiler.affine.condition import Condition
from compiler.affine.linear import Linear
from compiler.analysis.sets import union_map, union_set
from compiler.analysis.shared_element import orders
from compiler.analysis.statements import Key, Use, statements
from compiler.analysis.verify.content import Refuted
from compiler.analysis.verify.equations import Equation
from compiler.program.tree import Block, Program


class Origin(NamedTuple):
    """The original block that a statement's block claims to compute, and the original's axes as forms over loops."""

    block: Block
    at: tuple[Linear, ...]


class Claim(NamedTuple):
    """The original buffer that a result claims to be, and the map from instances to the iterations that compute it."""

    buffer: str
    points: isl.UnionMap


class Spaces:
    """The instances, cells and order of a scheduled program, and the claims of its blocks, as isl sets and maps.
    original, equations: the program that it has to equal, and the value of each buffer there. statements: of the
    scheduled program. names: isl's variable of each loop, by number."""

    def __init__(self, program: Program, original: Program, equations: Mapping[str, Equation]) -> None:
        self.program = program
        self.original = original
        self.equations = equations
        self.statements = statements(program)
        self.names = {n: f"l{n}" for n in program.loops}
        self._blocks = {e.block.label: e.block for e in equations.values()}
        self._numbers = {key: n for n, key in enumerate(self.statements)}
        self._cells = {name: n for n, name in enumerate(program.buffers)}
        self._elements = {name: n for n, name in enumerate(sorted(original.buffers))}
        self._to_values: dict[str, isl.UnionMap] = {}
        self._orders: dict[tuple[Key, Key], isl.UnionMap] = {}
        self._sets: dict[str, isl.UnionSet] = {}
        self._maps: dict[str, isl.UnionMap] = {}

    def space(self, key: Key) -> str:
        """The isl tuple of a statement's instances, such as `S0[l1, l2]`."""
        return f"S{self._numbers[key]}[{', '.join(self.names[n] for n in self.statements[key].loops)}]"

    def value_space(self, buffer: str) -> str:
        """The isl tuple name of the elements of an original buffer."""
        return f"V{self._elements[buffer]}"

    def points_space(self, buffer: str) -> str:
        """The isl tuple name of the contributions to the elements of an original buffer."""
        return f"K{self._elements[buffer]}"

    def cell_space(self, buffer: str) -> str:
        """The isl tuple name of the cells of a scheduled buffer."""
        return f"M{self._cells[buffer]}"

    def domain_text(self, key: Key, use: Use | None = None) -> str:
        """The constraints of a statement's domain and, with `use`, of the use's conditions, in isl's syntax."""
        return " and ".join(self.statements[key].domain(self.names, use)) or "true"

    def instances(self, key: Key, *constraints: str) -> isl.UnionSet:
        """The instances of a statement under constraints in isl's syntax, such as { S0[l0] : l0 >= 2 }."""
        text = f"{self.space(key)} : {' and '.join(constraints) or 'true'}"
        if text not in self._sets:
            self._sets[text] = union_set(text)
        return self._sets[text]

    def domain(self, key: Key, use: Use | None = None) -> isl.UnionSet:
        """The instances of a statement or, with `use`, the instances that perform this use."""
        return self.instances(key, self.domain_text(key, use))

    def holds(self, key: Key, *conditions: Condition) -> isl.UnionSet:
        """The instances of a statement at which conditions over loops hold."""
        return self.instances(key, *(c.isl(self.names) for c in conditions))

    def within(self, origin: Origin) -> str:
        """The constraint that the axes of the original block are within their extents, in isl's syntax."""
        pairs = zip(origin.at, origin.block.axes, strict=True)
        inside = [f"0 <= {lin.to_isl(form, self.names)} < {axis.size}" for form, axis in pairs]
        return " and ".join(inside) or "true"

    def map(
        self, key: Key, target: str, index: Iterable[Linear], use: Use | None = None, more: str = "true"
    ) -> isl.UnionMap:
        """The map from a statement's instances, with `use` those that perform it, to target[index], under `more`."""
        forms = ", ".join(lin.to_isl(f, self.names) for f in index)
        condition = f"{self.domain_text(key, use)} and {more}"
        text = f"{self.space(key)} -> {target}[{forms}] : {condition}"
        if text not in self._maps:
            self._maps[text] = union_map(text)
        return self._maps[text]

    def around(self, buffer: str) -> tuple[Linear, ...]:
        """The variables of the loops that privatise a buffer, outermost first; empty for arguments and literals."""
        enclosing = self.program.enclosing((buffer,)) if buffer in self.program.allocs else ()
        return tuple(lin.variable(loop.number) for loop in enclosing)

    def cell(self, key: Key, use: Use) -> isl.UnionMap:
        """The map from a statement's instances to the cell that a use touches."""
        # T[l1 + 1], private to loop l0: { S[l0, l1] -> M[l0, l1 + 1] : 0 <= l0 < 4 and 0 <= l1 < 8 }.
        return self.map(key, self.cell_space(use.buffer), (*self.around(use.buffer), *use.forms), use)

    def outside(self, key: Key) -> Iterator[tuple[str, int, isl.UnionSet]]:
        """The accesses of a statement outside a buffer's shape, as (buffer, dimension, instances)."""
        # A[i + 1] of shape [8], i in [0, 8): (A, 0, { S[i] : 0 <= i <= 7 and (i + 1 < 0 or i + 1 >= 8) }), i.e. S[7]
        for use in self.statements[key].uses:
            for dim, (form, size) in enumerate(zip(use.index, self.program.buffers[use.buffer].shape, strict=True)):
                low, high = (0, 0) if form is None else lin.bounds(form, self.program.ranges)
                if form is None or (low >= 0 and high < size):
                    continue  # None: a gather's index value, which lowering clamps to the table
                index = lin.to_isl(form, self.names)
                beyond = self.instances(key, self.domain_text(key, use), f"({index} < 0 or {index} >= {size})")
                if not beyond.is_empty():
                    yield use.buffer, dim, beyond

    def before(self, key: Key, earlier: Key) -> isl.UnionMap:
        """The map from the instances of a statement to those of the statement `earlier` that run before.

        Of S[i, k] to its own: { S[i, k] -> S[i', k'] : i' < i or i' = i and k' < k }.
        """
        if (key, earlier) not in self._orders:
            self._orders[key, earlier] = self._order(key, earlier)
        return self._orders[key, earlier]

    def _order(self, key: Key, earlier: Key) -> isl.UnionMap:
        s, t = self.statements[key], self.statements[earlier]
        names = {n: f"m{n}" for n in t.loops}
        pairs, union = f"{self.space(key)} -> S{self._numbers[earlier]}[{', '.join(names.values())}]", union_map()
        for way in orders(t, s, names, self.names):
            union = union.union(union_map(f"{pairs} : {' and '.join(way) or 'true'}"))
        return union

    def sample(self, instances: isl.UnionSet, key: Key) -> str:
        """The lexicographically first instance of a statement in a set, as text; "an instance" if isl finds none."""
        point = instances.lexmin().sample_point()
        if point.is_void():
            return "an instance"
        statement = self.statements[key]
        place = point.get_multi_val()
        return statement.instance({n: int(place.get_val(d).to_python()) for d, n in enumerate(statement.loops)})

    def refute(self, key: Key, instances: isl.UnionSet, what: str) -> NoReturn:
        """Raise Refuted with a sentence: one of the instances, then `what`."""
        raise Refuted(f"{self.sample(instances, key)} {what}")

    def targets(self, key: Key) -> tuple[Use, ...]:
        """The uses that write a statement's results, in their order."""
        statement = self.statements[key]
        return statement.uses[len(statement.uses) - len(statement.block.writes) :]

    def origin(self, key: Key) -> Origin | None:
        """The origin of a statement's block; None for an init, or if no original block has its label and axis count."""
        statement = self.statements[key]
        block = statement.block
        if statement.is_init or block.origin is None or block.origin[0] not in self._blocks:
            return None
        name, forms = block.origin
        source = self._blocks[name]
        if len(forms) != len(source.axes):
            return None
        return Origin(source, tuple(block.at(f, self.program.ranges) for f in forms))

    def claimed(self, key: Key, number: int) -> Claim | None:
        """The claim of a block about its result `number`; None without an origin that has this result."""
        origin = self.origin(key)
        if origin is None or number >= len(origin.block.writes):
            return None
        buffer = origin.block.writes[number].buffer
        return Claim(buffer, self.map(key, self.points_space(buffer), origin.at, more=self.within(origin)))

    def claims(self) -> Iterator[tuple[Key, Use, Claim]]:
        """All claims of blocks, each with the statement and the use that writes the result."""
        for key in self.statements:
            for number, use in enumerate(self.targets(key)):
                claim = self.claimed(key, number)
                if claim is not None:
                    yield key, use, claim

    def _values(self, name: str) -> isl.UnionMap:
        # C[i] = sum over k: { K[i0, i1] -> V[i0] : 0 <= i0 < 4 and 0 <= i1 < 8 }.
        equation = self.equations[name]
        axes = [f"i{n}" for n in range(len(equation.block.axes))]
        index = ["0" if d is None else axes[d] for d in equation.dims]
        inside = [f"0 <= i{n} < {axis.size}" for n, axis in enumerate(equation.block.axes)]
        return union_map(
            f"{self.points_space(name)}[{', '.join(axes)}] -> {self.value_space(name)}[{', '.join(index)}] : "
            f"{' and '.join(inside) or 'true'}"
        )

    def to_values(self, buffer: str) -> isl.UnionMap:
        """The map from the iteration space of a buffer's equation to the buffer's elements."""
        if buffer not in self._to_values:
            self._to_values[buffer] = self._values(buffer)
        return self._to_values[buffer]

    def to_points(self, buffer: str) -> isl.UnionMap:
        """The map from the elements of a buffer to the iteration space of its equation."""
        return self.to_values(buffer).reverse()
