"""Comparison of a body with the equation of the original, for all instances: expressions are compared leaf by leaf,
conditions split the domain, and elementwise equations are expanded if the schedule has inlined them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import NoReturn

import islpy as isl
from xdsl.dialects import arith
from xdsl.ir import Attribute

from compiler.affine import linear as lin
from compiler.affine.condition import Condition
from compiler.affine.linear import Linear
from compiler.analysis.statements import Key
from compiler.analysis.verify.content import Content, Refuted, Unknown
from compiler.analysis.verify.flow import Flow
from compiler.analysis.verify.forms import same_operation
from compiler.analysis.verify.tables import check_elements, data_sizes
from compiler.dialects.upstream.arith import SelectOp
from compiler.program import body
from compiler.program.index_values import affine_test, linear_of
from compiler.program.tree import Access, Block, Program, Table
from compiler.types.elements import is_unsigned


@dataclass(frozen=True)
class Wanted:
    """An expression of the original: `node` over the reads and axes of a block, with the axes at the forms `at`."""

    block: Block
    node: body.Scalar
    at: tuple[Linear, ...]

    @property
    def table(self) -> Table | None:
        """The table of the gather whose value the expression reads; None for any other expression."""
        is_gathered = isinstance(self.node, body.Read) and self.node.position == len(self.block.reads)
        return self.block.table if is_gathered else None

    @property
    def access(self) -> Access | None:
        """The access that the expression reads; None if the expression is no read, and for a gather's table."""
        if isinstance(self.node, body.Read) and self.node.position < len(self.block.reads):
            return self.block.reads[self.node.position]
        return None


@dataclass(frozen=True)
class WantedLiteral:
    """A constant as the value that the scheduled program has to compute."""

    value: Attribute


class Comparison:
    """The comparison of one computing statement of the scheduled program with the equation that it claims."""

    def __init__(self, flow: Flow, key: Key) -> None:
        self.flow = flow
        self.key = key
        self.block = flow.statements[key].block
        self.ranges = flow.program.ranges

    def check(self, wanted: Wanted | WantedLiteral, actual: body.Scalar, domain: isl.UnionSet) -> None:
        """Raise Refuted or Unknown unless `wanted`, over the original, and `actual`, of the block, are equal at each
        instance of the domain."""
        domain = self._where_read(wanted, actual, domain)
        if domain.is_empty() or self._by_cases(wanted, actual, domain):
            return
        if isinstance(wanted, WantedLiteral):
            self._check_literal(wanted.value, actual, domain)
        elif wanted.table is not None:
            self._check_gather(wanted, wanted.table, actual, domain)
        elif isinstance(wanted.node, body.Read):
            self._check_read(wanted, wanted.node, actual, domain)
        elif isinstance(wanted.node, body.Index):
            self._check_index(wanted.at[wanted.node.axis], actual, domain)
        elif wanted.node.kind is arith.ConstantOp and isinstance(actual, body.Read):
            self._check_literal(dict(wanted.node.properties)["value"], actual, domain)
        elif isinstance(actual, body.Apply) and same_operation(wanted.node, actual):
            for part, operand in zip(wanted.node.operands, actual.operands, strict=True):
                self.check(replace(wanted, node=part), operand, domain)
        elif isinstance(actual, body.Read):
            self._refute_found(domain, self._content(actual), f"does not find what '{wanted.block.label}' computes")
        else:
            self._refute(domain, f"computes something else than '{wanted.block.label}' does")

    def _content(self, read: body.Read) -> Content:
        return self.flow.content(self.key, read.position)

    def _refute(self, domain: isl.UnionSet, what: str) -> NoReturn:
        self.flow.refute(self.key, domain, what)

    def _refute_found(self, domain: isl.UnionSet, content: Content, what: str) -> NoReturn:
        """Raise Refuted, with the sentence `what`, for the value that a read finds on a domain, or Unknown if none of
        its instances could be followed."""
        certain = domain.subtract(content.unknown)
        if certain.is_empty():
            raise Unknown(f"what {self.flow.sample(domain, self.key)} finds could not be followed")
        self._refute(certain, what)

    # --- cases ----------------------------------------------------------------------------------------------------

    def _where_read(self, wanted: Wanted | WantedLiteral, actual: body.Scalar, domain: isl.UnionSet) -> isl.UnionSet:
        """The domain on which a wanted read happens, all of it if unconditional; elsewhere `actual` must be
        `otherwise`."""
        # A[i - 1] where i >= 1 else 0, on { S[i] : 0 <= i < 8 }: actual is 0 at S[0]; returns { S[i] : 1 <= i < 8 }.
        access = wanted.access if isinstance(wanted, Wanted) else None
        if not isinstance(wanted, Wanted) or access is None or not access.where or access.otherwise is None:
            return domain
        values = dict(enumerate(wanted.at))
        inside = self.flow.holds(self.key, *(c.substitute(values, self.ranges) for c in access.where))
        self.check(WantedLiteral(access.otherwise), actual, domain.subtract(inside))
        return domain.intersect(inside)

    def _by_cases(self, wanted: Wanted | WantedLiteral, actual: body.Scalar, domain: isl.UnionSet) -> bool:
        """Compare selects case by case: those of both sides if their conditions are equal, else those of one side whose
        condition is affine. False if neither is possible."""
        # actual select(i >= 4, x, y) on { S[i] : 0 <= i < 8 }: x is checked on 4 <= i < 8, y on 0 <= i < 4.
        mine = _select(actual)
        theirs = self._wanted_select(wanted, expand=bool(mine))
        test = affine_test(mine[0], self.block.bindings, self.ranges) if mine else None
        cases: list[tuple[Wanted | WantedLiteral, body.Scalar]]
        if mine and theirs and self._agree(theirs[0], mine[0], domain):
            cases = list(zip(theirs[1:], mine[1:], strict=True))
        elif test is not None:
            cases = [(wanted, case) for case in mine[1:]]
        else:
            test = affine_test(theirs[0].node, theirs[0].at, self.ranges) if theirs else None
            if test is None:
                return False
            cases = [(case, actual) for case in theirs[1:]]
        inside = domain if test is None else self.flow.holds(self.key, test)
        outside = domain if test is None else domain.subtract(inside)
        for (expected, case), part in zip(cases, (domain.intersect(inside), outside), strict=True):
            self.check(expected, case, part)
        return True

    def _wanted_select(self, wanted: Wanted | WantedLiteral, expand: bool) -> tuple[Wanted, ...]:
        """The condition and the cases of a wanted select; with `expand`, also of the select that computes the element
        of a wanted read. Empty if there is none."""
        if not isinstance(wanted, Wanted):
            return ()
        access = wanted.access
        if access is None:
            return tuple(replace(wanted, node=part) for part in _select(wanted.node))
        expansion = self._expanded(access.buffer, self._index(wanted, access)) if expand else None
        if expansion is None or (expansion.access is not None and expansion.access.where):
            return ()
        return self._wanted_select(expansion, expand)

    def _agree(self, wanted: Wanted, actual: body.Scalar, domain: isl.UnionSet) -> bool:
        """Whether two conditions are provably equal at each instance of the domain."""
        for leaf in body.leaves([actual]):  # a fault in one of these is a fault of the program
            if isinstance(leaf, body.Read) and leaf.position < len(self.block.reads):
                self._content(leaf)
        try:
            self.check(wanted, actual, domain)
        except (Refuted, Unknown):
            return False
        return True

    # --- leaves ---------------------------------------------------------------------------------------------------

    def _check_index(self, form: Linear, actual: body.Scalar, domain: isl.UnionSet) -> None:
        # form 4*l0 + l1, actual 4*l0 on { S[l0, l1] : 0 <= l1 < 4 }: wrong at l1 > 0, where -l1 = 0 fails
        index = linear_of(actual, self.block.bindings, self.ranges)
        if index is None:
            self._refute(domain, "computes something else where its origin has an index")
        wrong = domain.subtract(self.flow.holds(self.key, Condition(index - form, True)))
        if not wrong.is_empty():
            self._refute(wrong, "has another index than its origin")

    def _check_literal(self, value: Attribute, actual: body.Scalar, domain: isl.UnionSet) -> None:
        # 0 on { S[i] : 0 <= i < 8 }, and the read finds 0 at { S[i] : i < 7 }: refuted at S[7].
        if isinstance(actual, body.Apply) and actual.kind is arith.ConstantOp:
            if dict(actual.properties)["value"] != value:
                self._refute(domain, f"has another value than {value}")
        elif isinstance(actual, body.Read):
            content = self._content(actual)
            instances = content.constant.get(value)
            wrong = domain if instances is None else domain.subtract(instances)
            if not wrong.is_empty():
                self._refute_found(wrong, content, f"does not have the value {value}")
        else:
            self._refute(domain, f"does not have the value {value}")

    def _check_gather(self, wanted: Wanted, table: Table, actual: body.Scalar, domain: isl.UnionSet) -> None:
        """Raise Refuted or Unknown unless a gather has its origin's index values, and a table of the same elements."""
        flow, block, source, gather = self.flow, self.block, wanted.block, self.block.table
        if gather is None or not isinstance(actual, body.Read) or actual.position != len(block.reads):
            self._refute(domain, f"does not gather, as its origin '{source.label}' does")
        if gather.otherwise != table.otherwise:
            self._refute(domain, "has another value outside the table than its origin")
        if data_sizes(flow.program, gather) != data_sizes(flow.original, table):
            raise Unknown(f"block '{block.label}' reads a table of another layout than its origin '{source.label}'")
        for chosen, number in zip(gather.index, table.index, strict=True):
            if isinstance(chosen, int) and isinstance(number, int):
                if _unsigned(flow.program, block, chosen) != _unsigned(flow.original, source, number):
                    self._refute(domain, "takes index values with another sign than its origin")
                wanted_index = replace(wanted, node=body.read(number, source.read_types[number]))
                self.check(wanted_index, body.read(chosen, block.read_types[chosen]), domain)
        check_elements(flow, self.key, gather, table, wanted.at, domain)

    def _check_read(self, wanted: Wanted, node: body.Read, actual: body.Scalar, domain: isl.UnionSet) -> None:
        # T[i] on { S[i] : i < 8 }, stored for i < 4: the read is checked there, the expression of T[i] on 4 <= i < 8.
        access = wanted.block.reads[node.position]
        index = self._index(wanted, access)
        expansion = self._expanded(access.buffer, index)
        if isinstance(actual, body.Read):
            elements = self._content(actual).final.get(access.buffer)
            stored = domain
            if expansion is not None:
                stored = domain.intersect(elements.domain()) if elements is not None else domain.subtract(domain)
            self._check_found(access.buffer, index, actual, stored)
            domain = domain.subtract(stored)
        if expansion is not None:
            self.check(expansion, actual, domain)
        elif not domain.is_empty():
            self._refute(domain, f"does not read '{access.buffer}', as its origin does")

    def _index(self, wanted: Wanted, access: Access) -> tuple[Linear, ...]:
        """Return the index, as forms over the loops, of the element that a read of the original accesses."""
        values = dict(enumerate(wanted.at))
        return tuple(lin.substitute(form, values, self.ranges) for form in access.index)

    def _expanded(self, buffer: str, index: Sequence[Linear]) -> Wanted | None:
        """Return the expression that defines an element of a buffer; None if the original does not write the buffer, or
        by a reduction or a recurrence."""
        equation = self.flow.equations.get(buffer)
        if equation is None or equation.combiner is not None or equation.is_recurrent:
            return None
        form_of_axis = {axis: form for axis, form in zip(equation.dims, index, strict=True) if axis is not None}
        axes = tuple(form_of_axis.get(n, lin.constant(0)) for n in range(len(equation.block.axes)))
        return Wanted(equation.block, equation.block.body[equation.result], axes)

    def _check_found(self, buffer: str, index: Sequence[Linear], actual: body.Read, domain: isl.UnionSet) -> None:
        # Expected { S[i] -> V[i] : 0 <= i < 8 }, found for i < 7: refuted at S[7].
        content = self._content(actual)
        expected = self.flow.map(self.key, self.flow.value_space(buffer), index).intersect_domain(domain)
        lack = content.lack(buffer, expected)
        if lack is None:
            return
        read = self.block.reads[actual.position].buffer
        if lack.kind == "partial":
            self._refute(lack.instances, f"reads '{read}' while contributions to '{buffer}' are missing")
        if lack.kind == "another":
            self._refute(lack.instances, f"reads another element of '{buffer}' than its origin")
        self._refute_found(lack.instances, content, f"reads '{read}' where it does not hold the value of '{buffer}'")


def _select(node: body.Scalar) -> tuple[body.Scalar, ...]:
    """The condition and the two cases of a select; empty for anything else."""
    return node.operands if isinstance(node, body.Apply) and node.kind is SelectOp else ()


def _unsigned(program: Program, block: Block, position: int) -> bool:
    return is_unsigned(program.buffers[block.reads[position].buffer].element)
