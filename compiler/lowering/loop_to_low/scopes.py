"""Insertion points. A scope is a region under construction; each variable is bound in one scope.

An index expression is emitted once, in the scope of its innermost variable, outer terms first. An inner region's op is
appended only when the region is complete, so that appending to an outer scope hoists.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field

from xdsl.dialects import arith
from xdsl.dialects.arith import ConstantOp
from xdsl.dialects.builtin import UNKNOWN_LOC, IndexType, IntegerAttr, LocationAttr
from xdsl.ir import Attribute, Block, Operation, SSAValue

from compiler.affine import linear as lin
from compiler.affine.linear import Atom, Linear
from compiler.dialects.upstream.arith import CmpiOp
from compiler.dialects.upstream.builders import Constant, added, constant, multiplied
from compiler.support.errors import LoweringError
from compiler.support.spans import of_location

INDEX = IndexType()


@dataclass
class InsertionScope:
    """A block under construction, and the values computed in it by key."""

    block: Block
    values: dict[object, SSAValue] = field(default_factory=dict)


@dataclass
class Scopes:
    """The stack of scopes, the outermost first. bound: the value of each variable that is bound in them. home: by
    variable, the level of its scope: an index in the stack. ranges: of the variables. constants: the constants emitted
    at the top; numbers: those of type index, by number. location: of new ops."""

    stack: list[InsertionScope]
    bound: dict[int, SSAValue] = field(default_factory=dict)
    home: dict[int, int] = field(default_factory=dict)
    ranges: dict[int, lin.Range] = field(default_factory=dict)
    constants: dict[Attribute, ConstantOp] = field(default_factory=dict)
    numbers: dict[int, SSAValue] = field(default_factory=dict)
    """Index constants by value."""
    location: LocationAttr = UNKNOWN_LOC
    """The location of the block that is being lowered, for new ops."""

    def add(self, op: Operation) -> SSAValue:
        """Append an op to the innermost scope; return its first result."""
        self.run(op)
        return op.results[0]

    def run(self, op: Operation) -> None:
        """Append an op to the innermost scope, with the current location."""
        op.location = self.location
        self.stack[-1].block.add_op(op)

    @contextmanager
    def at(self, location: LocationAttr) -> Iterator[None]:
        """Set the location of new ops, and of LoweringErrors without one, in the `with` body."""
        location_before, self.location = self.location, location
        try:
            yield
        except LoweringError as error:
            error.span = error.span or of_location(location)
            raise
        finally:
            self.location = location_before

    @contextmanager
    def region(self) -> Iterator[Block]:
        """Open a region of one block, without terminator, to which ops are appended in the `with` body; the caller puts
        it into an op."""
        body = Block()
        self.stack.append(InsertionScope(body))
        yield body
        self.stack.pop()

    def bind(self, variable: int, value: SSAValue) -> None:
        """Bind a variable to an SSA value in the innermost scope."""
        self.bound[variable] = value
        self.home[variable] = len(self.stack) - 1

    def constant(self, value: Constant) -> SSAValue:
        """Return a constant, which is emitted once, at the function's top."""
        if value not in self.constants:
            op, top = constant(value), self.stack[0].block
            last_constant = next(reversed(self.constants.values()), None)
            if last_constant is not None:
                top.insert_op_after(op, last_constant)
            elif top.first_op is not None:
                top.insert_op_before(op, top.first_op)
            else:
                top.add_op(op)
            self.constants[value] = op
        return self.constants[value].result

    def index_constant(self, value: int) -> SSAValue:
        """Return an index constant, at the function's top."""
        if value not in self.numbers:
            number = self.numbers[value] = self.constant(IntegerAttr(value, INDEX))
            number.name_hint = f"c{value}" if value >= 0 else f"c.{-value}"
        return self.numbers[value]

    def index(self, form: Linear) -> SSAValue:
        """Emit a form over bound variables, once, in the scope of its innermost variable; return its value. Forms that
        it divides must not be negative, since the division is unsigned."""
        if form.is_constant:
            return self.index_constant(form.constant)
        level = self.level(form)
        cached = self._cached(level, form)
        if cached is not None:
            return cached
        value = self._sum(form)
        self.stack[level].values[form] = value
        return value

    def indices(self, forms: Iterable[Linear]) -> list[SSAValue]:
        """Emit several forms, each once, in the scope of its innermost variable."""
        return [self.index(form) for form in forms]

    def at_least_zero(self, form: Linear) -> SSAValue:
        """Emit form >= 0, as a comparison of two sums without negative terms; return the i1."""
        return self._compare(form, "sge")

    def is_zero(self, form: Linear) -> SSAValue:
        """Emit form == 0; return the i1."""
        return self._compare(form, "eq")

    def clamped(self, form: Linear, size: int) -> SSAValue:
        """Emit a form, clamped into [0, size) at the ends that its range exceeds; return the value."""
        low, high = lin.bounds(form, self.ranges)
        value, level = self.index(form), self.level(form)
        if high >= size:
            unclamped, last_index = value, self.index_constant(size - 1)
            value = self.once(level, (unclamped, "min", size), lambda: arith.MinSIOp(unclamped, last_index))
        if low < 0:
            possibly_negative, zero = value, self.index_constant(0)
            value = self.once(level, (possibly_negative, "max", 0), lambda: arith.MaxSIOp(possibly_negative, zero))
        return value

    def level(self, form: Linear) -> int:
        """Return the level of the innermost scope that binds a variable of a form; 0, the outermost, for a constant.
        All its variables must be bound."""
        return max((self.home[v] for v in form.variables()), default=0)

    def _compare(self, form: Linear, predicate: str) -> SSAValue:
        left = Linear(tuple(t for t in form.terms if t[1] > 0), max(form.constant, 0))
        right = left - form
        lhs, rhs = self.index(left), self.index(right)
        return self.once(self.level(form), (form, predicate), lambda: CmpiOp(lhs, rhs, predicate))

    def _sum(self, form: Linear) -> SSAValue:
        terms = sorted(form.terms, key=lambda term: self._atom_level(term[0]))
        total: SSAValue | None = None
        for atom, factor in terms:
            total = self._add_term(total, atom, factor, self._atom_level(atom))
        assert total is not None
        if form.constant == 0:
            return total
        shift, level = self.index_constant(form.constant), self.level(form)
        return self.once(level, (total, form.constant), lambda: added(total, shift))

    def _add_term(self, total: SSAValue | None, atom: Atom, factor: int, level: int) -> SSAValue:
        term = self._atom(atom)
        if factor != 1:
            scale, unscaled, atom_level = self.index_constant(factor), term, self._atom_level(atom)
            term = self.once(atom_level, (unscaled, "*", factor), lambda: multiplied(unscaled, scale))
        if total is None:
            return term
        total_before, addend = total, term
        return self.once(level, (total_before, "+", addend), lambda: added(total_before, addend))

    def _atom(self, atom: Atom) -> SSAValue:
        if isinstance(atom, int):
            return self.bound[atom]
        value, divisor = self.index(atom.form), self.index_constant(atom.divisor)
        kind = arith.RemUIOp if atom.is_mod else arith.DivUIOp  # forms under a division are never negative
        return self.once(self._atom_level(atom), atom, lambda: kind(value, divisor))

    def _atom_level(self, atom: Atom) -> int:
        return self.home[atom] if isinstance(atom, int) else self.level(atom.form)

    def once(self, level: int, key: object, build: Callable[[], Operation]) -> SSAValue:
        """Return the value of a key in the scope at a level; call `build` for its op and append it there if there is
        none."""
        cached = self._cached(level, key)
        if cached is None:
            op = build()
            op.location = self.location
            self.stack[level].block.add_op(op)
            cached = self.stack[level].values[key] = op.results[0]
        return cached

    def _cached(self, level: int, key: object) -> SSAValue | None:
        return self.stack[level].values.get(key)
