"""Losses: how far predictions are from targets, for each element or summed up."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import TypeAlias, TypeVar

from compiler.support.errors import TeError
from compiler.te import scalar as e
from compiler.te.compute import compute
from compiler.te.expr import Expr
from compiler.te.gather import gather
from compiler.te.index import Index
from compiler.te.nn.common import (
    accumulator,
    check_equal,
    check_flag,
    check_float,
    check_number,
    check_rank,
    check_tensor,
    rounded,
)
from compiler.te.nn.normalisation import logsumexp_as
from compiler.te.nn.reduction import reduced
from compiler.te.tensor import Tensor, reduce_axis
from compiler.types.elements import INDICES, is_float

T = TypeVar("T")
Loss: TypeAlias = Callable[[Expr, Expr], Expr]
"""A prediction and its target -> the loss."""

REDUCTIONS = ("mean", "sum", "none")
IGNORED = -100


def _check(operator: str, x: object, reduction: str) -> Tensor:
    checked = check_float(operator, x)
    if not isinstance(reduction, str) or reduction not in REDUCTIONS:
        raise TeError(f"{operator}: unknown reduction {reduction!r} (there are {', '.join(REDUCTIONS)})")
    return checked


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

    def loss(value: Expr, wanted: Expr) -> Expr:
        gap = value - wanted
        return gap * gap

    return _paired("mse_loss", x, target, reduction, loss, name)


def _paired(operator: str, x: Tensor, target: Tensor, reduction: str, loss: Loss, name: str) -> Tensor:
    """A loss of elements and their targets, of one shape and dtype. Raises TeError."""
    _check(operator, x, reduction)
    if check_tensor(operator, target).shape != x.shape or target.dtype != x.dtype:
        raise TeError(
            f"{operator}: '{x.name}' is {x.dtype} of shape {x.shape}, '{target.name}' {target.dtype} of {target.shape}"
        )
    wide = accumulator(x.dtype)
    each = compute(x.shape, lambda *i: loss(e.cast(x[i], wide), e.cast(target[i], wide)), f"{name}.each")
    return _reduced(each, float(math.prod(x.shape)), reduction, x.dtype, name)


def smooth_l1_loss(
    x: Tensor, target: Tensor, reduction: str = "mean", beta: float = 1.0, name: str = "smooth_l1_loss"
) -> Tensor:
    """L[i...] = g^2 / (2 * beta) where g = |X - T| is below beta, else g - beta / 2; their mean, sum, or each.

    Raises TeError.
    """
    width = check_number("smooth_l1_loss", "beta", beta)
    if width < 0:
        raise TeError(f"smooth_l1_loss: beta is {beta}, expected a number of at least 0")

    def loss(value: Expr, wanted: Expr) -> Expr:
        gap = e.abs(value - wanted)
        return e.select(gap < width, gap * gap * (0.5 / width), gap - 0.5 * width) if width else gap

    return _paired("smooth_l1_loss", x, target, reduction, loss, name)


def bce_loss(
    x: Tensor, target: Tensor, reduction: str = "mean", logits: bool = False, name: str = "bce_loss"
) -> Tensor:
    """L[i...] = -(T * log X + (1 - T) * log(1 - X)), the logarithms at least -100; their mean, their sum, or each.

    With `logits` X stands for 1 / (1 + exp(-X)). Raises TeError.
    Elsewhere: torch binary_cross_entropy, binary_cross_entropy_with_logits.
    """
    check_flag("bce_loss", "logits", logits)

    def loss(value: Expr, wanted: Expr) -> Expr:
        if logits:
            return e.maximum(value, 0.0) - value * wanted + e.log1p(e.exp(-e.abs(value)))
        yes, no = (e.maximum(logarithm, -100.0) for logarithm in (e.log(value), e.log1p(-value)))
        return -(wanted * yes + (1.0 - wanted) * no)

    return _paired("bce_loss", x, target, reduction, loss, name)


def kl_div(
    x: Tensor, target: Tensor, reduction: str = "mean", log_target: bool = False, name: str = "kl_div"
) -> Tensor:
    """L[i...] = T * (log T - X), 0 where T is 0, X being logarithms; their mean, their sum, or each.

    With `log_target` T is a logarithm as well. Raises TeError. Elsewhere: torch kl_div.
    """
    check_flag("kl_div", "log_target", log_target)

    def loss(value: Expr, wanted: Expr) -> Expr:
        if log_target:
            return e.exp(wanted) * (wanted - value)
        return e.select(wanted > 0.0, wanted * (e.log(wanted) - value), 0.0)

    return _paired("kl_div", x, target, reduction, loss, name)


def cross_entropy(
    logits: Tensor,
    target: Tensor,
    reduction: str = "mean",
    ignore_index: int = IGNORED,
    weight: Tensor | None = None,
    name: str = "cross_entropy",
) -> Tensor:
    """L[n, d...] = log sum_c exp X[n, c, d...] - X[n, T[n, d...], d...], or with probabilities sum_c T * (lse - X).

    Classes lie along dimension 1, or 0 of a vector. The target holds classes, integers, or is floating point with a
    probability for each logit. The mean is over the targets that count: those that are `ignore_index`, or no class at
    all (which torch refuses), do not. A weight for each class multiplies the losses, and the mean is over the sum of
    weights of the targets. As torch's cross_entropy without smoothing. Raises TeError.
    """
    _check("cross_entropy", logits, reduction)
    if logits.rank < 1:
        raise TeError(f"cross_entropy: '{logits.name}' has no dimension for the classes")
    along = min(1, logits.rank - 1)
    target_shape = (*logits.shape[:along], *logits.shape[along + 1 :])
    check_tensor("cross_entropy", target)
    _check_weight("cross_entropy", logits, weight, along)
    if is_float(target.dtype):
        return _of_probabilities(logits, target, weight, along, target_shape, reduction, name)
    if target.dtype not in INDICES:
        raise TeError(f"cross_entropy: the target '{target.name}' is {target.dtype}: neither classes nor probabilities")
    if target.shape != target_shape:
        raise TeError(f"cross_entropy: the target '{target.name}' has shape {target.shape}, expected {target_shape}")
    wide = accumulator(logits.dtype)
    lse = logsumexp_as(wide, logits, [along], False, f"{name}.logsumexp")
    return _of_classes(logits, target, lse, weight, along, reduction, ignore_index, name)


def nll_loss(
    x: Tensor,
    target: Tensor,
    reduction: str = "mean",
    ignore_index: int = IGNORED,
    weight: Tensor | None = None,
    name: str = "nll_loss",
) -> Tensor:
    """L[n, d...] = -X[n, T[n, d...], d...] of logarithms of probabilities; the rest as cross_entropy of classes.

    Raises TeError. Elsewhere: torch nll_loss; ONNX NegativeLogLikelihoodLoss.
    """
    _check("nll_loss", x, reduction)
    if x.rank < 1:
        raise TeError(f"nll_loss: '{x.name}' has no dimension for the classes")
    along = min(1, x.rank - 1)
    target_shape = (*x.shape[:along], *x.shape[along + 1 :])
    if check_tensor("nll_loss", target).shape != target_shape or target.dtype not in INDICES:
        raise TeError(
            f"nll_loss: the target '{target.name}' is {target.dtype} {target.shape}, not integers {target_shape}"
        )
    _check_weight("nll_loss", x, weight, along)
    return _of_classes(x, target, None, weight, along, reduction, ignore_index, name)


def _check_weight(operator: str, x: Tensor, weight: Tensor | None, along: int) -> None:
    if weight is None:
        return
    check_rank(operator, weight, 1, "one for each class")
    check_equal(operator, f"the classes and '{weight.name}'", x.shape[along], weight.shape[0])
    if weight.dtype != x.dtype:
        raise TeError(f"{operator}: '{x.name}' is of {x.dtype}, '{weight.name}' of {weight.dtype}")


def _at(i: tuple[Index, ...], along: int, index: T) -> tuple[Index | T, ...]:
    return (*i[:along], index, *i[along:])


def _of_classes(
    x: Tensor,
    target: Tensor,
    lse: Tensor | None,
    weight: Tensor | None,
    along: int,
    reduction: str,
    ignore_index: int,
    name: str,
) -> Tensor:
    wide = accumulator(x.dtype)
    if isinstance(ignore_index, bool) or not isinstance(ignore_index, int) or abs(ignore_index) >= 2**63:
        raise TeError(f"{name}: ignore_index is {ignore_index!r}, expected an integer")
    picked = gather(target.shape, lambda *i: x.at(*_at(i, along, target[i])), f"{name}.picked")
    factors = None
    if weight is not None:
        factors = gather(target.shape, lambda *i: weight.at(target[i]), f"{name}.weights")

    def counts(i: tuple[Index, ...]) -> Expr:
        value = e.cast(target[i], "i64")
        return (value >= 0) & (value < x.shape[along]) & e.not_equal(value, ignore_index)

    def element(*i: Index) -> Expr:
        loss = -e.cast(picked[i], wide) if lse is None else lse[i] - e.cast(picked[i], wide)
        return e.select(counts(i), loss if factors is None else loss * e.cast(factors[i], wide), 0.0)

    loss = compute(target.shape, element, f"{name}.each")
    if reduction != "mean":
        return _reduced(loss, 1.0, reduction, x.dtype, name)

    def one(*i: Index) -> Expr:
        return e.select(counts(i), e.const(1.0, wide) if factors is None else e.cast(factors[i], wide), 0.0)

    counted = compute(target.shape, one, f"{name}.counted")
    return _reduced(loss, _total(counted, f"{name}.count"), reduction, x.dtype, name)


def _of_probabilities(
    x: Tensor,
    target: Tensor,
    weight: Tensor | None,
    along: int,
    target_shape: tuple[int, ...],
    reduction: str,
    name: str,
) -> Tensor:
    if target.shape != x.shape or target.dtype != x.dtype:
        raise TeError(f"cross_entropy: the probabilities '{target.name}' are not as the logits '{x.name}'")
    wide, count = accumulator(x.dtype), float(math.prod(target_shape))
    lse = logsumexp_as(wide, x, [along], False, f"{name}.logsumexp")
    c = reduce_axis(x.shape[along], "p")

    def element(*i: Index) -> Expr:
        at = _at(i, along, c)
        loss = e.cast(target[at], wide) * (lse[i] - e.cast(x[at], wide))
        return e.sum(loss if weight is None else loss * e.cast(weight[c], wide), axis=c)

    loss = compute(target_shape, element, f"{name}.each")
    return _reduced(loss, count, reduction, x.dtype, name)
