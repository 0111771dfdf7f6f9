"""Combination of value tuples by a region, for both evaluators, and the test that a region is a combiner."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np
from xdsl.ir import Block

from compiler.dialects.access import names_of
from compiler.dialects.checks import element_type
from compiler.dialects.combination import Combining
from compiler.dialects.loop import BlockOp
from compiler.dialects.mathematics import Value
from compiler.dialects.numbers import DType, constant, dtype_of, is_float, stored
from compiler.dialects.te import ComputeOp
from compiler.interpret.scalar import Body, identity
from compiler.types.elements import scalar_type

Values = Sequence[Value]
SAMPLES = 48
"""The number of random contributions that `fault` draws."""


def joint(block: Block, floats: DType | None = None) -> Callable[[Values, Values], list[Value]]:
    """The region of a joint combiner as a Python function from accumulators and added values to new accumulators.

    `floats`, unless None, replaces the float dtypes of the region.
    """
    body = Body(block, (), floats)
    return lambda accumulators, added: body([*accumulators, *added], ())


def neutral(op: Combining, position: int, dtype: DType, floats: DType | None = None) -> Value:
    """The identity of result number `position` as a numpy scalar of `dtype`; `floats`, if any, replaces float
    dtypes."""
    if op.identities is not None:
        return stored(constant(op.identities.data[position], floats), dtype)
    return identity(op.combiners.data[position].data, dtype)


def fold(combine: Callable[[Values, Values], list[Value]], values: Values, spatial: int) -> list[Value]:
    """Combine arrays over all dimensions after the first `spatial` ones, which have elements, as a tree of neighbours,
    in order; the results have the first `spatial` dimensions."""
    flat = [np.reshape(v, (*v.shape[:spatial], -1)) for v in values]
    while flat[0].shape[-1] > 1:
        even = flat[0].shape[-1] // 2 * 2
        pairs = combine([v[..., 0:even:2] for v in flat], [v[..., 1:even:2] for v in flat])
        flat = [np.concatenate([p, v[..., even:]], axis=-1) for p, v in zip(pairs, flat, strict=True)]
    return [v[..., 0] for v in flat]


def fault(op: ComputeOp | BlockOp) -> str | None:
    """The reason why the region of an op with a joint combiner is no combiner of its body's values; None if no fault is
    found.

    Bodies are run on random reads and axes; the states are their values, and combinations of these. The identity must
    be neutral on both sides, also for infinities and extreme integers (unless the result is NaN, as for infinity less
    itself), and the order must not matter (for finite floats, up to rounding).

    Contributions with NaN, such as the logarithm of a negative random number, are skipped: the laws need not hold for
    them, since NaN is unordered.
    """
    assert op.joint is not None
    with np.errstate(all="ignore"):
        combine = joint(op.joint.block)
        first = _numbers(_contributions(op, extreme=False))
        if not len(first[0]):
            return "its body yields NaN for all of the random reads on which it is tested"
        states = _states(combine, first)
        for given in (states, _numbers(_contributions(op, extreme=True))):
            neutrals = [np.full_like(v, neutral(op, n, v.dtype)) for n, v in enumerate(given)]
            for left, right in ((neutrals, given), (given, neutrals)):
                combined = combine(left, right)
                undefined = [np.isnan(f) & (given is not states) if is_float(f.dtype) else False for f in combined]
                where = _differ([np.where(u, v, f) for u, v, f in zip(undefined, given, combined, strict=True)], given)
                if where is not None:
                    met, became = _at(given, where), _at(combined, where)
                    return f"its identity is not neutral: combined with {met} it gives {became}"
        few = [s[:: max(1, len(s) // 12)] for s in states]
        a, b, c = (_along(few, axis) for axis in range(3))
        where = _differ(combine(a, b), combine(b, a))
        if where is not None:
            return f"it is not commutative: of {_at(a, where)} and {_at(b, where)} the order matters"
        where = _differ(combine(combine(a, b), c), combine(a, combine(b, c)))
        if where is not None:
            return (
                f"it is not associative: of {_at(a, where)}, {_at(b, where)} and {_at(c, where)} the grouping matters"
            )
    return None


def _contributions(op: ComputeOp | BlockOp, extreme: bool) -> list[Value]:
    rng = np.random.default_rng(0)
    reads = []
    for value in op.inputs:
        dtype = dtype_of(scalar_type(element_type(value)))
        numbers = rng.integers(-8, 9, SAMPLES)
        read = (numbers / 2 if is_float(dtype) else numbers).astype(dtype)
        if extreme:
            read[::3], read[1::3] = _extremes(dtype)
        reads.append(read)
    points = [rng.integers(0, axis.size, SAMPLES) for axis in op.axes]
    values = Body(op.body.block, names_of(op.axes.data))(reads, points)
    return [np.broadcast_to(v, SAMPLES).copy() for v in values]


def _numbers(values: list[Value]) -> list[Value]:
    """Drop the contributions in which a value is NaN."""
    kept = np.ones(SAMPLES, bool)
    for part in values:
        kept &= ~np.isnan(part) if is_float(part.dtype) else True
    return [part[kept] for part in values]


def _extremes(dtype: DType) -> tuple[Value, Value]:
    if dtype.kind in "iu":
        return np.iinfo(dtype).min, np.iinfo(dtype).max
    return (-np.inf, np.inf) if is_float(dtype) else (False, True)


def _states(combine: Callable[[Values, Values], list[Value]], first: list[Value]) -> list[Value]:
    rng = np.random.default_rng(1)
    order = rng.permutation(len(first[0]))
    second = combine(first, [v[order] for v in first])
    return [np.concatenate([a, b]) for a, b in zip(first, second, strict=True)]


def _along(values: Values, axis: int) -> list[Value]:
    shape = [1, 1, 1]
    shape[axis] = -1
    full = [len(values[0])] * 3
    return [np.broadcast_to(v.reshape(shape), full) for v in values]


def _differ(expected: Values, actual: Values) -> tuple[int, ...] | None:
    """The index of the first element at which arrays differ, up to the rounding of floats; None if all are equal."""
    wrong = np.zeros(np.broadcast_shapes(np.shape(expected[0]), np.shape(actual[0])), bool)
    for a, b in zip(expected, actual, strict=True):
        if np.asarray(a).dtype.kind in "iub":
            wrong = wrong | (a != b)
        else:
            eps = {2: 0.25, 4: 1e-5, 8: 1e-13}[np.asarray(a).dtype.itemsize]
            left, right = np.asarray(a, np.float64), np.asarray(b, np.float64)
            wrong = wrong | ~np.isclose(left, right, rtol=eps, atol=eps, equal_nan=True)
    return tuple(int(i) for i in np.argwhere(wrong)[0]) if wrong.any() else None


def _at(values: Values, where: tuple[int, ...]) -> str:
    return f"({', '.join(str(np.asarray(v)[where[-np.ndim(v) :]].item()) for v in values)})"
