"""Loss functions of predictions and targets, elementwise or reduced."""

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
    astype,
    check_equal,
    check_flag,
    check_float,
    check_number,
    check_rank,
    check_tensor,
)
from compiler.te.nn.normalisation import logsumexp_as
from compiler.te.nn.reduction import reduce_dims
from compiler.te.tensor import Tensor, reduce_axis
from compiler.types.dtypes import INDICES, is_float

T = TypeVar("T")
Loss: TypeAlias = Callable[[Expr, Expr], Expr]
"""Maps a prediction and a target to a loss."""

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
    return reduce_dims(x.shape, range(x.rank), False, lambda i, axes: e.sum(x[i], axes), name)


def _reduced(loss: Tensor, count: Tensor | float, reduction: str, dtype: str, name: str) -> Tensor:
    """Return the losses ("none"), their sum ("sum"), or their sum divided by `count` ("mean"), cast to a dtype."""
    if reduction == "none":
        return astype(loss, dtype, name)
    total = _total(loss, f"{name}.sum")

    def value() -> Expr:
        if reduction == "mean":
            return e.cast(total[()] / (count[()] if isinstance(count, Tensor) else count), dtype)
        return e.cast(total[()], dtype)

    return compute((), value, name)


def mse_loss(x: Tensor, target: Tensor, reduction: str = "mean", name: str = "mse_loss") -> Tensor:
    """L[i...] = (X[i...] - T[i...])^2, of one float dtype and shape; `reduction` mean, sum or none. Raises TeError for
    other arguments."""

    def loss(value: Expr, target_value: Expr) -> Expr:
        gap = value - target_value
        return gap * gap

    return _paired("mse_loss", x, target, reduction, loss, name)


def _paired(operator: str, x: Tensor, target: Tensor, reduction: str, loss: Loss, name: str) -> Tensor:
    """Compute an elementwise loss of predictions and targets, and reduce it. Raises TeError unless both are of one
    float dtype and shape, and `reduction` is mean, sum or none."""
    _check(operator, x, reduction)
    if check_tensor(operator, target).shape != x.shape or target.dtype != x.dtype:
        raise TeError(
            f"{operator}: '{x.name}' is {x.dtype} of shape {x.shape}, '{target.name}' {target.dtype} of {target.shape}"
        )
    acc_dtype = accumulator(x.dtype)
    losses = compute(x.shape, lambda *i: loss(e.cast(x[i], acc_dtype), e.cast(target[i], acc_dtype)), f"{name}.each")
    return _reduced(losses, float(math.prod(x.shape)), reduction, x.dtype, name)


def smooth_l1_loss(
    x: Tensor, target: Tensor, reduction: str = "mean", beta: float = 1.0, name: str = "smooth_l1_loss"
) -> Tensor:
    """L[i...] = g^2 / (2 * beta) if g = |X - T| < beta else g - beta / 2; `reduction` mean, sum or none.

    Raises TeError for other arguments.
    """
    width = check_number("smooth_l1_loss", "beta", beta)
    if width < 0:
        raise TeError(f"smooth_l1_loss: beta is {beta}, expected a number of at least 0")

    def loss(value: Expr, target_value: Expr) -> Expr:
        gap = e.abs(value - target_value)
        return e.select(gap < width, gap * gap * (0.5 / width), gap - 0.5 * width) if width else gap

    return _paired("smooth_l1_loss", x, target, reduction, loss, name)


def bce_loss(
    x: Tensor, target: Tensor, reduction: str = "mean", logits: bool = False, name: str = "bce_loss"
) -> Tensor:
    """L[i...] = -(T * log X + (1 - T) * log(1 - X)), logarithms clamped to -100; `reduction` mean, sum or none.

    With `logits`, X is replaced by 1 / (1 + exp(-X)), and no logarithm is clamped. Raises TeError for other arguments.
    Elsewhere: torch binary_cross_entropy, binary_cross_entropy_with_logits.
    """
    check_flag("bce_loss", "logits", logits)

    def loss(value: Expr, target_value: Expr) -> Expr:
        if logits:
            return e.maximum(value, 0.0) - value * target_value + e.log1p(e.exp(-e.abs(value)))
        log_true, log_false = (e.maximum(logarithm, -100.0) for logarithm in (e.log(value), e.log1p(-value)))
        return -(target_value * log_true + (1.0 - target_value) * log_false)

    return _paired("bce_loss", x, target, reduction, loss, name)


def kl_div(
    x: Tensor, target: Tensor, reduction: str = "mean", log_target: bool = False, name: str = "kl_div"
) -> Tensor:
    """L[i...] = T * (log T - X), 0 for T = 0; X is a log-probability, T a probability; `reduction` mean, sum or none.

    With `log_target`, T is a log-probability too, and the loss is exp(T) * (T - X), NaN for T = -inf. Raises TeError
    for other arguments. Elsewhere: torch kl_div.
    """
    check_flag("kl_div", "log_target", log_target)

    def loss(value: Expr, target_value: Expr) -> Expr:
        if log_target:
            return e.exp(target_value) * (target_value - value)
        return e.select(target_value > 0.0, target_value * (e.log(target_value) - value), 0.0)

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

    logits is [N, C, d...], or [C], of a float dtype; target is [N, d...] of integer classes, or a probability for each
    logit. `reduction` is mean, sum or none. Targets equal to `ignore_index`, or out of range (torch refuses these),
    have loss 0 and are excluded from the mean, which is NaN without others; `ignore_index` has no effect on
    probabilities. weight [C] multiplies the losses of a class; the mean over classes is then divided by the sum of the
    targets' weights, that over probabilities by their number. As torch's cross_entropy without smoothing. Raises
    TeError for other arguments.
    """
    _check("cross_entropy", logits, reduction)
    if logits.rank < 1:
        raise TeError(f"cross_entropy: '{logits.name}' has no dimension for the classes")
    class_dim = min(1, logits.rank - 1)
    target_shape = (*logits.shape[:class_dim], *logits.shape[class_dim + 1 :])
    check_tensor("cross_entropy", target)
    _check_weight("cross_entropy", logits, weight, class_dim)
    if is_float(target.dtype):
        return _of_probabilities(logits, target, weight, class_dim, target_shape, reduction, name)
    if target.dtype not in INDICES:
        raise TeError(f"cross_entropy: the target '{target.name}' is {target.dtype}: neither classes nor probabilities")
    if target.shape != target_shape:
        raise TeError(f"cross_entropy: the target '{target.name}' has shape {target.shape}, expected {target_shape}")
    acc_dtype = accumulator(logits.dtype)
    lse = logsumexp_as(acc_dtype, logits, [class_dim], False, f"{name}.logsumexp")
    return _of_classes(logits, target, lse, weight, class_dim, reduction, ignore_index, name)


def nll_loss(
    x: Tensor,
    target: Tensor,
    reduction: str = "mean",
    ignore_index: int = IGNORED,
    weight: Tensor | None = None,
    name: str = "nll_loss",
) -> Tensor:
    """L[n, d...] = -X[n, T[n, d...], d...] for log-probabilities X; the rest as cross_entropy with classes.

    Raises TeError for other arguments. Elsewhere: torch nll_loss; ONNX NegativeLogLikelihoodLoss.
    """
    _check("nll_loss", x, reduction)
    if x.rank < 1:
        raise TeError(f"nll_loss: '{x.name}' has no dimension for the classes")
    class_dim = min(1, x.rank - 1)
    target_shape = (*x.shape[:class_dim], *x.shape[class_dim + 1 :])
    if check_tensor("nll_loss", target).shape != target_shape or target.dtype not in INDICES:
        raise TeError(
            f"nll_loss: the target '{target.name}' is {target.dtype} {target.shape}, not integers {target_shape}"
        )
    _check_weight("nll_loss", x, weight, class_dim)
    return _of_classes(x, target, None, weight, class_dim, reduction, ignore_index, name)


def _check_weight(operator: str, x: Tensor, weight: Tensor | None, class_dim: int) -> None:
    if weight is None:
        return
    check_rank(operator, weight, 1, "one for each class")
    check_equal(operator, f"the classes and '{weight.name}'", x.shape[class_dim], weight.shape[0])
    if weight.dtype != x.dtype:
        raise TeError(f"{operator}: '{x.name}' is of {x.dtype}, '{weight.name}' of {weight.dtype}")


def _insert(i: tuple[Index, ...], class_dim: int, index: T) -> tuple[Index | T, ...]:
    return (*i[:class_dim], index, *i[class_dim:])


def _of_classes(
    x: Tensor,
    target: Tensor,
    lse: Tensor | None,
    weight: Tensor | None,
    class_dim: int,
    reduction: str,
    ignore_index: int,
    name: str,
) -> Tensor:
    acc_dtype = accumulator(x.dtype)
    if isinstance(ignore_index, bool) or not isinstance(ignore_index, int) or abs(ignore_index) >= 2**63:
        raise TeError(f"{name}: ignore_index is {ignore_index!r}, expected an integer")
    picked = gather(target.shape, lambda *i: x.at(*_insert(i, class_dim, target[i])), f"{name}.picked")
    factors = None
    if weight is not None:
        factors = gather(target.shape, lambda *i: weight.at(target[i]), f"{name}.weights")

    def is_counted(i: tuple[Index, ...]) -> Expr:
        value = e.cast(target[i], "i64")
        return (value >= 0) & (value < x.shape[class_dim]) & e.not_equal(value, ignore_index)

    def element(*i: Index) -> Expr:
        loss = -e.cast(picked[i], acc_dtype) if lse is None else lse[i] - e.cast(picked[i], acc_dtype)
        return e.select(is_counted(i), loss if factors is None else loss * e.cast(factors[i], acc_dtype), 0.0)

    loss = compute(target.shape, element, f"{name}.each")
    if reduction != "mean":
        return _reduced(loss, 1.0, reduction, x.dtype, name)

    def weight_at(*i: Index) -> Expr:
        factor = e.const(1.0, acc_dtype) if factors is None else e.cast(factors[i], acc_dtype)
        return e.select(is_counted(i), factor, 0.0)

    target_weights = compute(target.shape, weight_at, f"{name}.counted")
    return _reduced(loss, _total(target_weights, f"{name}.count"), reduction, x.dtype, name)


def _of_probabilities(
    x: Tensor,
    target: Tensor,
    weight: Tensor | None,
    class_dim: int,
    target_shape: tuple[int, ...],
    reduction: str,
    name: str,
) -> Tensor:
    if target.shape != x.shape or target.dtype != x.dtype:
        raise TeError(f"cross_entropy: the probabilities '{target.name}' are not as the logits '{x.name}'")
    acc_dtype, count = accumulator(x.dtype), float(math.prod(target_shape))
    lse = logsumexp_as(acc_dtype, x, [class_dim], False, f"{name}.logsumexp")
    c = reduce_axis(x.shape[class_dim], "p")

    def element(*i: Index) -> Expr:
        position = _insert(i, class_dim, c)
        losses = e.cast(target[position], acc_dtype) * (lse[i] - e.cast(x[position], acc_dtype))
        return e.sum(losses if weight is None else losses * e.cast(weight[c], acc_dtype), axis=c)

    loss = compute(target_shape, element, f"{name}.each")
    return _reduced(loss, count, reduction, x.dtype, name)
