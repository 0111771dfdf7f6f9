"""Selections that the place of a block in unrolled loops decides: what they do not take is not emitted."""

from __future__ import annotations

from collections.abc import Mapping
from functools import lru_cache

from compiler.affine import linear as lin
from compiler.affine.linear import Linear
from compiler.dialects.upstream.arith import SelectOp
from compiler.graph.laws.concatenations import truth_at
from compiler.program.body import Apply, Index, Read, Scalar, apply, leaves

Values = Mapping[int, Linear]


def decided(body: tuple[Scalar, ...], axes: Values, ranges: lin.Ranges) -> tuple[Scalar, ...]:
    """Expressions without the selections that the values of the axes decide; the same object where there are none."""
    if not _asks_for_axes(body):
        return body
    done: dict[int, Scalar] = {}
    new = tuple(_decided(value, axes, ranges, done) for value in body)
    return body if all(a is b for a, b in zip(new, body, strict=True)) else new


def reads_of(body: tuple[Scalar, ...]) -> list[int]:
    """The reads that expressions use, in order."""
    return sorted({leaf.position for leaf in leaves(body) if isinstance(leaf, Read)})


@lru_cache(maxsize=1024)
def _asks_for_axes(body: tuple[Scalar, ...]) -> bool:
    return any(isinstance(leaf, Index) for leaf in leaves(body))


def _decided(value: Scalar, axes: Values, ranges: lin.Ranges, done: dict[int, Scalar]) -> Scalar:
    if not isinstance(value, Apply):
        return value
    if id(value) not in done:
        done[id(value)] = _without_selections(value, axes, ranges, done)
    return done[id(value)]


def _without_selections(value: Apply, axes: Values, ranges: lin.Ranges, done: dict[int, Scalar]) -> Scalar:
    if value.kind is SelectOp:
        truth = truth_at(value.operands[0], axes, ranges)
        if truth is not None:
            return _decided(value.operands[1 if truth else 2], axes, ranges, done)
    operands = [_decided(operand, axes, ranges, done) for operand in value.operands]
    if all(a is b for a, b in zip(operands, value.operands, strict=True)):
        return value
    return apply(value.kind, operands, dict(value.properties), value.types, value.result)
