"""How a block combines: each target by a named combiner, or all of them jointly."""

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
    """One part of a joint combiner. Its reads are the accumulators of all targets (0 to n-1), then the values to add (n
    to 2n-1)."""

    identities: tuple[FloatAttr | IntegerAttr, ...]
    body: tuple[body.Scalar, ...]
    part: int

    def __str__(self) -> str:
        return "a joint combiner"


Combiner: TypeAlias = str | Joint


def neutral(combiner: Combiner, element: Attribute) -> FloatAttr | IntegerAttr:
    """The identity of a target of an element type."""
    if isinstance(combiner, Joint):
        return combiner.identities[combiner.part]
    return identity(combiner, element)


def from_op(op: Combining) -> tuple[Combiner, ...]:
    """The combiners of an op's results, in order; none where it does not reduce."""
    combination = op.combination
    if combination.region is None:
        return tuple(combination.names)
    values = body.from_block(combination.region.block, ())
    return tuple(Joint(tuple(combination.identities), values, part) for part in range(len(values)))


def to_combination(
    combiners: Sequence[Combiner], yield_op: type[loop.YieldOp | te.YieldOp] = loop.YieldOp
) -> Combination:
    """The combination of a new op; `yield_op` ends the region of a joint combiner at its level."""
    first = combiners[0] if combiners else ""
    if not isinstance(first, Joint):
        return Combination([str(c) for c in combiners])
    types = [value.type for value in first.identities] * 2
    return Combination((), first.identities, Region(body.to_block(first.body, types, (), yield_op=yield_op)))
