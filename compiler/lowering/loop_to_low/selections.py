"""Folding of selections whose conditions are constant at a block's values of unrolled loops."""

from __future__ import annotations

from collections.abc import Mapping
from functools import lru_cache

from compiler.affine import linear as lin
from compiler.affine.linear import Linear
from compiler.dialects.upstream.arith import SelectOp
from compiler.graph.laws.concatenations import truth_at
from compiler.program.body import Apply, Index, Read, Scalar, apply, leaves

Values = Mapping[int, Linear]


def resolve_selections(body: tuple[Scalar, ...], axes: Values, ranges: lin.Ranges) -> tuple[Scalar, ...]:
    """Replace each selection whose condition is decided by the axes' forms over loops of `ranges` by the selected
    operand; without any, return `body` itself."""
    if not _uses_axes(body):
        return body
    resolved: dict[int, Scalar] = {}
    new_body = tuple(_resolve(value, axes, ranges, resolved) for value in body)
    return body if all(a is b for a, b in zip(new_body, body, strict=True)) else new_body


def reads_of(body: tuple[Scalar, ...]) -> list[int]:
    """Return the numbers of the reads that expressions use, in ascending order, each once."""
    return sorted({leaf.position for leaf in leaves(body) if isinstance(leaf, Read)})


@lru_cache(maxsize=1024)
def _uses_axes(body: tuple[Scalar, ...]) -> bool:
    return any(isinstance(leaf, Index) for leaf in leaves(body))


def _resolve(value: Scalar, axes: Values, ranges: lin.Ranges, resolved: dict[int, Scalar]) -> Scalar:
    if not isinstance(value, Apply):
        return value
    if id(value) not in resolved:
        resolved[id(value)] = _without_selections(value, axes, ranges, resolved)
    return resolved[id(value)]


def _without_selections(value: Apply, axes: Values, ranges: lin.Ranges, resolved: dict[int, Scalar]) -> Scalar:
    if value.kind is SelectOp:
        truth = truth_at(value.operands[0], axes, ranges)
        if truth is not None:
            return _resolve(value.operands[1 if truth else 2], axes, ranges, resolved)
    operands = [_resolve(operand, axes, ranges, resolved) for operand in value.operands]
    if all(a is b for a, b in zip(operands, value.operands, strict=True)):
        return value
    return apply(value.kind, operands, dict(value.properties), value.types, value.result)
