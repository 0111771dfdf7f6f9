"""Folding of selections whose conditions are constant at a block's values of unrolled loops."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import lru_cache

from compiler.affine import linear as lin
from compiler.affine.condition import Condition
from compiler.affine.linear import Linear
from compiler.dialects.upstream.arith import SelectOp
from compiler.graph.laws.concatenations import truth_at
from compiler.program.body import Apply, Index, Read, Scalar, apply, leaves
from compiler.program.index_values import affine_test

Values = Mapping[int, Linear]


def resolve_selections(
    body: tuple[Scalar, ...], axes: Values, ranges: lin.Ranges, holds: Callable[[Condition], bool] = lambda _: False
) -> tuple[Scalar, ...]:
    """Replace each selection whose condition is decided by the axes' forms over loops of `ranges`, or by `holds`, by
    the selected operand; without any, return `body` itself."""
    if not _uses_axes(body):
        return body
    resolution = _Resolution(axes, ranges, holds)
    new_body = tuple(map(resolution.value, body))
    return body if all(a is b for a, b in zip(new_body, body, strict=True)) else new_body


def reads_of(body: tuple[Scalar, ...]) -> list[int]:
    """Return the numbers of the reads that expressions use, in ascending order, each once."""
    return sorted({leaf.position for leaf in leaves(body) if isinstance(leaf, Read)})


@lru_cache(maxsize=1024)
def _uses_axes(body: tuple[Scalar, ...]) -> bool:
    return any(isinstance(leaf, Index) for leaf in leaves(body))


class _Resolution:
    """Expressions without the selections that the forms of axes, or known conditions, decide. axes: the forms of a
    block's axes, whose variables have `ranges`. holds: whether a condition is known to be true."""

    def __init__(self, axes: Values, ranges: lin.Ranges, holds: Callable[[Condition], bool]) -> None:
        self._axes, self._ranges, self._holds = axes, ranges, holds
        self._resolved: dict[int, Scalar] = {}

    def value(self, value: Scalar) -> Scalar:
        """Return an expression without such selections; the expression itself if it has none."""
        if not isinstance(value, Apply):
            return value
        if id(value) not in self._resolved:
            self._resolved[id(value)] = self._without_selections(value)
        return self._resolved[id(value)]

    def _without_selections(self, value: Apply) -> Scalar:
        if value.kind is SelectOp:
            truth = self._truth(value.operands[0])
            if truth is not None:
                return self.value(value.operands[1 if truth else 2])
        operands = [self.value(operand) for operand in value.operands]
        if all(a is b for a, b in zip(operands, value.operands, strict=True)):
            return value
        return apply(value.kind, operands, dict(value.properties), value.types, value.result)

    def _truth(self, test: Scalar) -> bool | None:
        truth = truth_at(test, self._axes, self._ranges)
        if truth is None:
            condition = affine_test(test, [self._axes[axis] for axis in sorted(self._axes)], self._ranges)
            truth = True if condition is not None and self._holds(condition) else None
        return truth
