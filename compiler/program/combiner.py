"""The combiners of a block's targets: a named one for each target, or a joint one for all."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TypeAlias

from xdsl.dialects.builtin import FloatAttr, IntegerAttr
from xdsl.ir import Attribute, Region

from compiler.dialects import loop, te
from compiler.dialects.combination import Combination, Combining
from compiler.dialects.combiner import identity
from compiler.program import body


@dataclass(frozen=True)
class Joint:
    """A joint combiner as the combiner of target number `part`, such as the position in an argmax.

    `identities` and `body` have the identity and the new value of each of the n targets. Its reads are the n
    accumulators, then the n values to add.
    """

    identities: tuple[FloatAttr | IntegerAttr, ...]
    body: tuple[body.Scalar, ...]
    part: int

    def __str__(self) -> str:
        return "a joint combiner"


Combiner: TypeAlias = str | Joint


def neutral(combiner: Combiner, element: Attribute) -> FloatAttr | IntegerAttr:
    """The identity of a combiner, for a target of type `element`. Raises LoweringError for an element type without
    one."""
    if isinstance(combiner, Joint):
        return combiner.identities[combiner.part]
    return identity(combiner, element)


def from_op(op: Combining) -> tuple[Combiner, ...]:
    """The combiner of each result of an op, in order; empty if the op does not reduce."""
    combination = op.combination
    if combination.region is None:
        return tuple(combination.names)
    values = body.from_block(combination.region.block, ())
    return tuple(Joint(tuple(combination.identities), values, part) for part in range(len(values)))


def to_combination(
    combiners: Sequence[Combiner], yield_op: type[loop.YieldOp | te.YieldOp] = loop.YieldOp
) -> Combination:
    """Build the combination of an op, empty without combiners; `yield_op` ends the region of a joint combiner."""
    first = combiners[0] if combiners else ""
    if not isinstance(first, Joint):
        return Combination([str(c) for c in combiners])
    types = [value.type for value in first.identities] * 2
    return Combination((), first.identities, Region(body.to_block(first.body, types, (), yield_op=yield_op)))
