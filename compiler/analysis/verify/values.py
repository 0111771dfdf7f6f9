"""Whether a body computes what the original's equation says, for all instances: expressions compared leaf by leaf,
the domain split where a condition decides, elementwise equations expanded where the schedule has inlined them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import islpy as isl
from xdsl.dialects import arith
from xdsl.ir import Attribute

from compiler.affine import linear as lin
from compiler.affine.condition import Condition
from compiler.affine.linear import Linear
from compiler.analysis.sets import context
from compiler.analysis.statements import Key
from compiler.analysis.verify.content import Content, Refuted, Unknown
from compiler.analysis.verify.equations import Equation
from compiler.analysis.verify.flow import Flow
from compiler.analysis.verify.forms import affine_test, linear_of, same_operation
from compiler.analysis.verify.tables import check_gather, is_gather
from compiler.dialects.upstream.arith import SelectOp
from compiler.program import body
from compiler.program.tree import Block


@dataclass(frozen=True)
class Wanted:
    """An expression of the original: a scalar over the reads and axes of a block, at forms over the loops."""

    block: Block
    node: body.Scalar
    at: tuple[Linear, ...]


@dataclass(frozen=True)
class Literal:
    """A constant that is wanted."""

    value: Attribute


class Comparison:
    """One computing statement of the scheduled program, against the equation that it claims."""

    def __init__(self, flow: Flow, key: Key, equations: Mapping[str, Equation]) -> None:
        self.flow = flow
        self.key = key
        self.statement = flow.statements[key]
        self.block = self.statement.block
        self.equations = equations

    def check(self, wanted: Wanted | Literal, actual: body.Scalar, domain: Any) -> None:
        """Raise Refuted unless both have one value on the domain (a union set of instances)."""
        if domain.is_empty():
            return
        if self._split(wanted, actual, domain) or self._split_wanted(wanted, actual, domain):
            return
        if isinstance(wanted, Wanted) and is_gather(wanted):
            check_gather(self, wanted, actual, domain)
        elif isinstance(wanted, Wanted) and isinstance(wanted.node, body.Read):
            self._check_read(wanted, actual, domain)
        elif isinstance(wanted, Literal):
            self._check_literal(wanted.value, actual, domain)
        elif isinstance(wanted.node, body.Index):
            self._check_index(wanted.at[wanted.node.axis], actual, domain)
        elif isinstance(actual, body.Apply) and same_operation(wanted.node, actual):
            assert isinstance(wanted.node, body.Apply)
            for part, other in zip(wanted.node.operands, actual.operands, strict=True):
                self.check(Wanted(wanted.block, part, wanted.at), other, domain)
        elif isinstance(actual, body.Read):
            content = self.flow.content(self.key, actual.position)
            self.refute_found(domain, content, f"does not find what '{wanted.block.label}' computes")
        else:
            self.refute(domain, f"computes something else than '{wanted.block.label}' does")

    def refute(self, domain: Any, what: str) -> None:
        raise Refuted(f"{self.flow.sample(domain, self.key)} {what}")

    def refute_found(self, domain: Any, content: Content, what: str) -> None:
        """Refute what a read finds on a domain, or raise Unknown where what it finds could not be followed."""
        certain = domain.subtract(content.unknown)
        if certain.is_empty():
            raise Unknown(f"what {self.flow.sample(domain, self.key)} finds could not be followed")
        self.refute(certain, what)

    # --- conditions -----------------------------------------------------------------------------------------------

    def _set(self, conditions: Sequence[Condition]) -> Any:
        text = " and ".join(c.isl(self.flow.names) for c in conditions) or "true"
        return isl.UnionSet(f"{{ {self.flow.space(self.key)} : {text} }}", context())

    def _split(self, wanted: Wanted | Literal, actual: body.Scalar, domain: Any) -> bool:
        """Judge a select on an affine condition by its two cases."""
        if not isinstance(actual, body.Apply) or actual.kind is not SelectOp:
            return False
        same = isinstance(wanted, Wanted) and isinstance(wanted.node, body.Apply) and wanted.node.kind is SelectOp
        condition = None if same else affine_test(actual.operands[0], self.block.bindings, self.flow.program.ranges)
        if condition is None:
            return False
        inside = self._set([condition])
        self.check(wanted, actual.operands[1], domain.intersect(inside))
        self.check(wanted, actual.operands[2], domain.subtract(inside))
        return True

    def _split_wanted(self, wanted: Wanted | Literal, actual: body.Scalar, domain: Any) -> bool:
        """Judge by its two cases a select of the original that a split has already decided in the scheduled body."""
        if (
            not isinstance(wanted, Wanted)
            or not isinstance(wanted.node, body.Apply)
            or wanted.node.kind is not SelectOp
        ):
            return False
        if isinstance(actual, body.Apply) and actual.kind is SelectOp:
            return False
        condition = affine_test(wanted.node.operands[0], wanted.at, self.flow.program.ranges)
        if condition is None:
            return False
        inside = self._set([condition])
        _, yes, no = wanted.node.operands
        self.check(Wanted(wanted.block, yes, wanted.at), actual, domain.intersect(inside))
        self.check(Wanted(wanted.block, no, wanted.at), actual, domain.subtract(inside))
        return True

    # --- leaves ---------------------------------------------------------------------------------------------------

    def _check_index(self, form: Linear, actual: body.Scalar, domain: Any) -> None:
        found = linear_of(actual, self.block.bindings, self.flow.program.ranges)
        if found is None:
            self.refute(domain, "computes something else where its origin has an index")
            return
        if found == form:
            return
        wrong = domain.subtract(self._set([Condition(found - form, True)]))
        if not wrong.is_empty():
            self.refute(wrong, "has another index than its origin")

    def _check_literal(self, value: Attribute, actual: body.Scalar, domain: Any) -> None:
        if isinstance(actual, body.Apply) and actual.kind is arith.ConstantOp:
            if dict(actual.properties)["value"] != value:
                self.refute(domain, f"has another value than {value}")
            return
        if isinstance(actual, body.Read):
            content = self.flow.content(self.key, actual.position)
            found = content.constant.get(value)
            wrong = domain if found is None else domain.subtract(found)
            if not wrong.is_empty():
                self.refute_found(wrong, content, f"does not have the value {value}")
            return
        self.refute(domain, f"does not have the value {value}")

    def _check_read(self, wanted: Wanted, actual: body.Scalar, domain: Any) -> None:
        assert isinstance(wanted.node, body.Read)
        access = wanted.block.reads[wanted.node.position]
        values = dict(enumerate(wanted.at))
        ranges = self.flow.program.ranges
        if access.where and access.otherwise is not None:
            inside = self._set([c.substitute(values, ranges) for c in access.where])
            self.check(Literal(access.otherwise), actual, domain.subtract(inside))
            domain = domain.intersect(inside)
            if domain.is_empty():
                return
        index = tuple(lin.substitute(f, values, ranges) for f in access.index)
        expansion = self._expanded(access.buffer, index)
        if isinstance(actual, body.Read):
            held = self.flow.content(self.key, actual.position).final.get(access.buffer)
            stored = domain if expansion is None else domain.intersect(held.domain()) if held is not None else None
            if stored is not None:
                self._check_found(access.buffer, index, actual, stored)
                domain = domain.subtract(stored)
        if expansion is not None:
            self.check(expansion, actual, domain)
        elif not domain.is_empty():
            self.refute(domain, f"does not read '{access.buffer}', as its origin does")

    def _expanded(self, buffer: str, index: Sequence[Linear]) -> Wanted | None:
        """The elementwise equation of an element, if it has one."""
        equation = self.equations.get(buffer)
        if equation is None or equation.combiner is not None:
            return None
        at = {axis: form for axis, form in zip(equation.dims, index, strict=True) if axis is not None}
        axes = tuple(at.get(n, lin.constant(0)) for n in range(len(equation.block.axes)))
        return Wanted(equation.block, equation.block.body[equation.result], axes)

    def _check_found(self, buffer: str, index: Sequence[Linear], actual: body.Read, domain: Any) -> None:
        content = self.flow.content(self.key, actual.position)
        expected = self.flow.map(self.key, self.flow.value_space(buffer), index).intersect_domain(domain)
        found = content.final.get(buffer)
        wrong = expected if found is None else expected.subtract(found)
        if wrong.is_empty():
            return
        instances = wrong.domain()
        read = self.block.reads[actual.position].buffer
        partial = content.partial.get(buffer)
        if partial is not None and not partial.domain().intersect(instances).is_empty():
            at = partial.domain().intersect(instances)
            self.refute(at, f"reads '{read}' while contributions to '{buffer}' are missing")
        if found is not None and not found.domain().intersect(instances).is_empty():
            self.refute(found.domain().intersect(instances), f"reads another element of '{buffer}' than its origin")
        self.refute_found(instances, content, f"reads '{read}' where it does not hold the value of '{buffer}'")
