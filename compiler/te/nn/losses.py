"""Losses: how far predictions are from targets, for each element or summed up."""

from __future__ import annotations

from typing import TypeVar

from compiler.elements import INDICES, is_float
from compiler.errors import TeError
from compiler.te import scalar as e
from compiler.te.compute import compute
from compiler.te.expr import Expr
from compiler.te.gather import gather
from compiler.te.index import Index
from compiler.te.nn.common import accumulator, check_float, check_tensor, rounded
from compiler.te.nn.normalisation import logsumexp_as
from compiler.te.nn.reduction import reduced
from compiler.te.tensor import Tensor, reduce_axis

T = TypeVar("T")

REDUCTIONS = ("mean", "sum", "none")
IGNORED = -100


def _check(operator: str, x: object, reduction: str) -> Tensor:
    found = check_float(operator, x)
    if not isinstance(reduction, str) or reduction not in REDUCTIONS:
        raise TeError(f"{operator}: unknown reduction {reduction!r} (there are {', '.join(REDUCTIONS)})")
    return found


def _total(x: Tensor, name: str) -> Tensor:
    if not x.rank:
        return x
    return reduced(x.shape, range(x.rank), False, lambda at, axes: e.sum(x[at], axes), name)


def _reduced(loss: Tensor, count: Tensor | float, reduction: str, dtype: str, name: str) -> Tensor:
    """Each loss, their sum, or that divided by a count; rounded once to a dtype."""
    if reduction == "none":
        return rounded(loss, dtype, name)
    total = _total(loss, f"{name}.sum")

    def value() -> Expr:
        if reduction == "mean":
            return e.cast(total[()] / (count[()] if isinstance(count, Tensor) else count), dtype)
        return e.cast(total[()], dtype)

    return compute((), value, name)


def mse_loss(x: Tensor, target: Tensor, reduction: str = "mean", name: str = "mse_loss") -> Tensor:
    """L[i...] = (X[i...] - T[i...])^2; their mean, their sum, or (none) each. Raises TeError."""
    _check("mse_loss", x, reduction)
    if check_tensor("mse_loss", target).shape != x.shape or target.dtype != x.dtype:
        raise TeError(
            f"mse_loss: '{x.name}' is {x.dtype} of shape {x.shape}, '{target.name}' {target.dtype} of {target.shape}"
        )
    wide, count = accumulator(x.dtype), 1.0
    for n in x.shape:
        count *= n

    def element(*i: Index) -> Expr:
        gap = e.cast(x[i], wide) - e.cast(target[i], wide)
        return gap * gap

    loss = compute(x.shape, element, f"{name}.each")
    return _reduced(loss, count, reduction, x.dtype, name)


def cross_entropy(
    logits: Tensor,
    target: Tensor,
    reduction: str = "mean",
    ignore_index: int = IGNORED,
    name: str = "cross_entropy",
) -> Tensor:
    """L[n, d...] = log sum_c exp X[n, c, d...] - X[n, T[n, d...], d...], or with probabilities sum_c T * (lse - X).

    Classes lie along dimension 1, or 0 of a vector. The target holds classes, integers, or is floating point with a
    probability for each logit. The mean is over the targets that count: those that are `ignore_index`, or no class at
    all (which torch refuses), do not. As torch's cross_entropy without weights and smoothing. Raises TeError.
    """
    _check("cross_entropy", logits, reduction)
    if logits.rank < 1:
        raise TeError(f"cross_entropy: '{logits.name}' has no dimension for the classes")
    along = min(1, logits.rank - 1)
    rest = (*logits.shape[:along], *logits.shape[along + 1 :])
    check_tensor("cross_entropy", target)
    if is_float(target.dtype):
        return _of_probabilities(logits, target, along, rest, reduction, name)
    if target.dtype not in INDICES:
        raise TeError(f"cross_entropy: the target '{target.name}' is {target.dtype}: neither classes nor probabilities")
    if target.shape != rest:
        raise TeError(f"cross_entropy: the target '{target.name}' has shape {target.shape}, expected {rest}")
    return _of_classes(logits, target, along, reduction, ignore_index, name)


def _at(i: tuple[Index, ...], along: int, index: T) -> tuple[Index | T, ...]:
    return (*i[:along], index, *i[along:])


def _of_classes(x: Tensor, target: Tensor, along: int, reduction: str, ignore_index: int, name: str) -> Tensor:
    wide = accumulator(x.dtype)
    lse = logsumexp_as(wide, x, [along], False, f"{name}.logsumexp")
    picked = gather(target.shape, lambda *i: x.at(*_at(i, along, target[i])), f"{name}.picked")

    def counts(i: tuple[Index, ...]) -> Expr:
        value = e.cast(target[i], "i64")
        return (value >= 0) & (value < x.shape[along]) & e.not_equal(value, ignore_index)

    def element(*i: Index) -> Expr:
        return e.select(counts(i), lse[i] - e.cast(picked[i], wide), 0.0)

    loss = compute(target.shape, element, f"{name}.each")
    if reduction != "mean":
        return _reduced(loss, 1.0, reduction, x.dtype, name)
    ones = compute(target.shape, lambda *i: e.select(counts(i), e.const(1.0, wide), 0.0), f"{name}.counted")
    return _reduced(loss, _total(ones, f"{name}.count"), reduction, x.dtype, name)


def _of_probabilities(
    x: Tensor, target: Tensor, along: int, rest: tuple[int, ...], reduction: str, name: str
) -> Tensor:
    if target.shape != x.shape or target.dtype != x.dtype:
        raise TeError(f"cross_entropy: the probabilities '{target.name}' are not as the logits '{x.name}'")
    wide, count = accumulator(x.dtype), 1.0
    for n in rest:
        count *= n
    lse = logsumexp_as(wide, x, [along], False, f"{name}.logsumexp")
    c = reduce_axis(x.shape[along], "p")

    def element(*i: Index) -> Expr:
        at = _at(i, along, c)
        return e.sum(e.cast(target[at], wide) * (lse[i] - e.cast(x[at], wide)), axis=c)

    loss = compute(rest, element, f"{name}.each")
    return _reduced(loss, count, reduction, x.dtype, name)
