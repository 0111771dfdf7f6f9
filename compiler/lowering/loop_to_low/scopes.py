"""Where operations go. A scope is a region under construction; each variable belongs to the scope that binds it.

An index expression is emitted in the scope of its innermost variable, outer terms first, and once: since the op
that owns an inner region is appended only when the region is complete, appending to an outer scope hoists.
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
class Scope:
    """A block under construction, and the values already computed in it."""

    block: Block
    values: dict[object, SSAValue] = field(default_factory=dict)


@dataclass
class Scopes:
    """The stack of scopes, the variables bound in them, and the ranges of those variables."""

    stack: list[Scope]
    bound: dict[int, SSAValue] = field(default_factory=dict)
    home: dict[int, int] = field(default_factory=dict)
    ranges: dict[int, lin.Range] = field(default_factory=dict)
    constants: dict[Attribute, ConstantOp] = field(default_factory=dict)
    numbers: dict[int, SSAValue] = field(default_factory=dict)
    """The index constants."""
    location: LocationAttr = UNKNOWN_LOC
    """That of the block which is being lowered, which ops in the innermost scope get."""

    def add(self, op: Operation) -> SSAValue:
        """Append an op to the innermost scope; its first result."""
        self.run(op)
        return op.results[0]

    def run(self, op: Operation) -> None:
        """Append an op without results to the innermost scope."""
        op.location = self.location
        self.stack[-1].block.add_op(op)

    @contextmanager
    def at(self, location: LocationAttr) -> Iterator[None]:
        """Ops added inside, and refusals, have a location."""
        before, self.location = self.location, location
        try:
            yield
        except LoweringError as error:
            error.span = error.span or of_location(location)
            raise
        finally:
            self.location = before

    @contextmanager
    def region(self) -> Iterator[Block]:
        """A region under construction, to which ops are added; its op is added afterwards."""
        body = Block()
        self.stack.append(Scope(body))
        yield body
        self.stack.pop()

    def bind(self, variable: int, value: SSAValue) -> None:
        """The innermost scope binds a variable to an SSA value."""
        self.bound[variable] = value
        self.home[variable] = len(self.stack) - 1

    def constant(self, value: Constant) -> SSAValue:
        """A constant, once, at the function's top."""
        if value not in self.constants:
            op, top = constant(value), self.stack[0].block
            last = next(reversed(self.constants.values()), None)
            if last is not None:
                top.insert_op_after(op, last)
            elif top.first_op is not None:
                top.insert_op_before(op, top.first_op)
            else:
                top.add_op(op)
            self.constants[value] = op
        return self.constants[value].result

    def index_constant(self, value: int) -> SSAValue:
        """An index constant, at the function's top."""
        if value not in self.numbers:
            number = self.numbers[value] = self.constant(IntegerAttr(value, INDEX))
            number.name_hint = f"c{value}" if value >= 0 else f"c.{-value}"
        return self.numbers[value]

    def index(self, form: Linear) -> SSAValue:
        """The value of a form over bound variables."""
        if form.is_constant:
            return self.index_constant(form.constant)
        level = self.level(form)
        cached = self._find(level, form)
        if cached is not None:
            return cached
        value = self._sum(form)
        self.stack[level].values[form] = value
        return value

    def indices(self, forms: Iterable[Linear]) -> list[SSAValue]:
        """The values of several forms."""
        return [self.index(form) for form in forms]

    def at_least_zero(self, form: Linear) -> SSAValue:
        """The truth of form >= 0, as a comparison of two sums without negative terms."""
        return self._compare(form, "sge")

    def is_zero(self, form: Linear) -> SSAValue:
        """The truth of form == 0."""
        return self._compare(form, "eq")

    def clamped(self, form: Linear, size: int) -> SSAValue:
        """The value of a form, moved into [0, size) where it may lie outside."""
        low, high = lin.bounds(form, self.ranges)
        value, level = self.index(form), self.level(form)
        if high >= size:
            inside, last = value, self.index_constant(size - 1)
            value = self.once(level, (inside, "min", size), lambda: arith.MinSIOp(inside, last))
        if low < 0:
            below, zero = value, self.index_constant(0)
            value = self.once(level, (below, "max", 0), lambda: arith.MaxSIOp(below, zero))
        return value

    def level(self, form: Linear) -> int:
        """The index of the scope where all variables of a form are bound."""
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
            total = self._step(total, atom, factor, self._atom_level(atom))
        assert total is not None
        if form.constant == 0:
            return total
        shift, level = self.index_constant(form.constant), self.level(form)
        return self.once(level, (total, form.constant), lambda: added(total, shift))

    def _step(self, total: SSAValue | None, atom: Atom, factor: int, level: int) -> SSAValue:
        term = self._atom(atom)
        if factor != 1:
            scale, plain, here = self.index_constant(factor), term, self._atom_level(atom)
            term = self.once(here, (plain, "*", factor), lambda: multiplied(plain, scale))
        if total is None:
            return term
        before, after = total, term
        return self.once(level, (before, "+", after), lambda: added(before, after))

    def _atom(self, atom: Atom) -> SSAValue:
        if isinstance(atom, int):
            return self.bound[atom]
        value, divisor = self.index(atom.form), self.index_constant(atom.divisor)
        kind = arith.RemUIOp if atom.is_mod else arith.DivUIOp  # forms under a division are never negative
        return self.once(self._atom_level(atom), atom, lambda: kind(value, divisor))

    def _atom_level(self, atom: Atom) -> int:
        return self.home[atom] if isinstance(atom, int) else self.level(atom.form)

    def once(self, level: int, key: object, build: Callable[[], Operation]) -> SSAValue:
        """The first result of an op at the scope of a level, built there only if it is not there under a key."""
        cached = self._find(level, key)
        if cached is None:
            op = build()
            op.location = self.location
            self.stack[level].block.add_op(op)
            cached = self.stack[level].values[key] = op.results[0]
        return cached

    def _find(self, level: int, key: object) -> SSAValue | None:
        return self.stack[level].values.get(key)
