"""Joint combiners: several results of a reduction combined together, such as a greatest value and its index."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TypeAlias

from compiler.support.errors import TeError
from compiler.te.expr import Expr, Joint, Operand, Reduce, Scalar, as_expr, const
from compiler.te.scalar import Axes, reduce_axes

Combine: TypeAlias = Callable[[tuple[Expr, ...], tuple[Expr, ...]], Scalar | Sequence[Scalar]]
"""Maps the accumulated and the added values, a tuple each, to the combined values, one or a sequence."""


@dataclass(frozen=True)
class Combiner:
    """A combining function of several results, and its identity, one number for each; `combiner` builds it.

    >>> pair = te.combiner(lambda held, added: (held[0] + added[0], held[1] * added[1]), identity=(0.0, 1.0))
    >>> pair.identity
    (0.0, 1.0)
    """

    combine: Combine
    identity: tuple[float, ...]


def combiner(combine: Combine, identity: Sequence[float]) -> Combiner:
    """A combiner of tuples: `combine(accumulator, added)` maps two tuples of scalars to one.

    It must be associative and commutative, ties included, with that identity, since a schedule may reorder a reduction;
    the pass check-combiners tests this on values of the computes that use it. Source: TVM comm_reducer.

        first_max = te.combiner(
            lambda a, b: (te.maximum(a[0], b[0]), te.select(later(a, b), b[1], a[1])),
            identity=(-math.inf, 2**63 - 1),
        )

    Raises TeError for an object that is no function, and for an identity that is empty or no sequence.

    >>> both = te.combiner(lambda held, added: (held[0] + added[0], held[1] * added[1]), identity=(0.0, 1.0))
    >>> X, k = te.constant([2.0, 3.0, 4.0]), te.reduce_axis(3, "k")
    >>> total, product = te.compute((), lambda: te.reduce(both, (X[k], X[k]), axis=k))
    >>> strata.interpret.evaluate(te.function("f", [], [total, product]).module, [])
    [array(9., dtype=float32), array(24., dtype=float32)]
    """
    if not callable(combine) or not isinstance(identity, tuple | list) or not identity:
        raise TeError("a combiner is a function of two tuples, and a tuple of neutral values")
    return Combiner(combine, tuple(identity))


def reduce(combiner: Combiner, values: Scalar | Sequence[Scalar], axis: Axes) -> tuple[Reduce, ...]:
    """Reduce several expressions jointly over reduce axes, to one result each; a compute returns the whole tuple.

    Raises TeError for an object that is no combiner, for axes that are no reduce axes, and if the combiner's number of
    values or their dtypes differ from the expressions'.

    >>> least = te.combiner(lambda held, added: (te.minimum(held[0], added[0]),), identity=(np.inf,))
    >>> X, k = te.constant([3.0, 1.0, 2.0]), te.reduce_axis(3, "k")
    >>> (B,) = te.compute((), lambda: te.reduce(least, X[k], axis=k))
    >>> strata.interpret.evaluate(te.function("f", [], B).module, [])
    [array(1., dtype=float32)]
    """
    axes = reduce_axes(axis)
    if not isinstance(combiner, Combiner):
        raise TeError(f"{combiner!r} is no combiner: te.combiner makes one")
    bodies = [as_expr(value) for value in (values if isinstance(values, tuple | list) else (values,))]
    if len(bodies) != len(combiner.identity):
        raise TeError(f"the combiner has {len(combiner.identity)} neutral values, the reduction {len(bodies)} values")
    accumulators, added = (tuple(Operand(n, side, b.dtype) for n, b in enumerate(bodies)) for side in (False, True))
    combined = combiner.combine(accumulators, added)
    returned = list(combined) if isinstance(combined, tuple | list) else [combined]
    if len(returned) != len(bodies):
        raise TeError(f"the combiner returns {len(returned)} values, not {len(bodies)}")
    results = tuple(as_expr(value, body.dtype) for value, body in zip(returned, bodies, strict=True))
    for number, (result, body) in enumerate(zip(results, bodies, strict=True)):
        if result.dtype != body.dtype:
            raise TeError(f"the combiner returns {result.dtype} where it takes {body.dtype}, as value {number}")
    identities = tuple(const(value, body.dtype) for value, body in zip(combiner.identity, bodies, strict=True))
    joint = Joint((*accumulators, *added), identities, results)
    return tuple(Reduce(joint, body, axes, number) for number, body in enumerate(bodies))
