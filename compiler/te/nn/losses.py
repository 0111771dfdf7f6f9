"""Losses: how far predictions are from targets, for each element or summed up."""

from __future__ import annotations

from typing import Any

from compiler.errors import TeError
from compiler.te import expr as e
from compiler.te.dtypes import is_float
from compiler.te.gather import INDEX_DTYPES, gather
from compiler.te.nn.common import check_tensor, dims
from compiler.te.tensor import Tensor, compute, reduce_axis

REDUCTIONS = ("mean", "sum", "none")
IGNORED = -100


def _wide(dtype: str) -> str:
    """The dtype in which a loss is computed: at least f32."""
    return "f32" if dtype in ("f16", "bf16") else dtype


def _check(operator: str, x: Any, reduction: str) -> Tensor:
    found = check_tensor(operator, x)
    if not is_float(found.dtype):
        raise TeError(f"{operator}: '{found.name}' is {found.dtype}, not floating point")
    if not isinstance(reduction, str) or reduction not in REDUCTIONS:
        raise TeError(f"{operator}: unknown reduction {reduction!r} (there are {', '.join(REDUCTIONS)})")
    return found


def _cast(value: Any, dtype: str) -> Any:
    return value if value.dtype == dtype else e.cast(value, dtype)


def _total(x: Tensor, name: str) -> Tensor:
    axes = [reduce_axis(n, f"k{d}") for d, n in enumerate(x.shape)]
    if not axes:
        return x
    found: Tensor = compute((), lambda: e.sum(x[tuple(axes)], axis=axes), name)
    return found


def _reduced(loss: Tensor, count: Tensor | float, reduction: str, dtype: str, name: str) -> Tensor:
    """Each loss, their sum, or that divided by a count; rounded once to a dtype."""
    result: Tensor
    if reduction == "none":
        if loss.dtype == dtype:
            return loss
        result = compute(loss.shape, lambda *i: e.cast(loss[i], dtype), name, axes=dims(loss.rank))
        return result
    total = _total(loss, f"{name}.sum")

    def value() -> Any:
        found: Any = total[()]
        if reduction == "mean":
            found = found / (count[()] if isinstance(count, Tensor) else count)
        return _cast(found, dtype)

    result = compute((), value, name)
    return result


def mse_loss(x: Tensor, target: Tensor, reduction: str = "mean", name: str = "mse_loss") -> Tensor:
    """L[i...] = (X[i...] - T[i...])^2; their mean, their sum, or (none) each. Raises TeError."""
    _check("mse_loss", x, reduction)
    if check_tensor("mse_loss", target).shape != x.shape or target.dtype != x.dtype:
        raise TeError(
            f"mse_loss: '{x.name}' is {x.dtype} of shape {x.shape}, '{target.name}' {target.dtype} of {target.shape}"
        )
    wide, count = _wide(x.dtype), 1.0
    for n in x.shape:
        count *= n

    def element(*i: Any) -> Any:
        gap = _cast(x[i], wide) - _cast(target[i], wide)
        return gap * gap

    loss: Tensor = compute(x.shape, element, f"{name}.each", axes=dims(x.rank))
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
    if target.dtype not in INDEX_DTYPES:
        raise TeError(f"cross_entropy: the target '{target.name}' is {target.dtype}: neither classes nor probabilities")
    if target.shape != rest:
        raise TeError(f"cross_entropy: the target '{target.name}' has shape {target.shape}, expected {rest}")
    return _of_classes(logits, target, along, reduction, ignore_index, name)


def _at(i: tuple[Any, ...], along: int, index: Any) -> tuple[Any, ...]:
    return (*i[:along], index, *i[along:])


def _logsumexp(x: Tensor, along: int, rest: tuple[int, ...], name: str) -> Tensor:
    """log sum_c exp X[..., c, ...], about its maximum, in at least f32."""
    wide, size, axes = _wide(x.dtype), x.shape[along], dims(len(rest))
    k, c = reduce_axis(size, "k"), reduce_axis(size, "c")
    top: Tensor = compute(rest, lambda *i: e.max(_cast(x[_at(i, along, k)], wide), axis=k), f"{name}.max", axes=axes)
    total: Tensor = compute(
        rest,
        lambda *i: e.sum(e.exp(_cast(x[_at(i, along, c)], wide) - top[i]), axis=c),
        f"{name}.exp",
        axes=axes,
    )
    found: Tensor = compute(rest, lambda *i: e.log(total[i]) + top[i], f"{name}.logsumexp", axes=axes)
    return found


def _of_classes(x: Tensor, target: Tensor, along: int, reduction: str, ignore_index: int, name: str) -> Tensor:
    wide, axes = _wide(x.dtype), dims(target.rank)
    lse = _logsumexp(x, along, target.shape, name)
    picked = gather(target.shape, lambda *i: x.at(*_at(i, along, target[i])), f"{name}.picked", axes=axes)

    def counts(i: tuple[Any, ...]) -> Any:
        value = _cast(target[i], "i64")
        return (value >= 0) & (value < x.shape[along]) & e.not_equal(value, ignore_index)

    def element(*i: Any) -> Any:
        return e.select(counts(i), lse[i] - _cast(picked[i], wide), 0.0)

    loss: Tensor = compute(target.shape, element, f"{name}.each", axes=axes)
    if reduction != "mean":
        return _reduced(loss, 1.0, reduction, x.dtype, name)
    ones: Tensor = compute(
        target.shape, lambda *i: e.select(counts(i), e.const(1.0, wide), 0.0), f"{name}.counted", axes=axes
    )
    return _reduced(loss, _total(ones, f"{name}.count"), reduction, x.dtype, name)


def _of_probabilities(
    x: Tensor, target: Tensor, along: int, rest: tuple[int, ...], reduction: str, name: str
) -> Tensor:
    if target.shape != x.shape or target.dtype != x.dtype:
        raise TeError(f"cross_entropy: the probabilities '{target.name}' are not as the logits '{x.name}'")
    wide, count = _wide(x.dtype), 1.0
    for n in rest:
        count *= n
    lse = _logsumexp(x, along, rest, name)
    c = reduce_axis(x.shape[along], "p")

    def element(*i: Any) -> Any:
        at = _at(i, along, c)
        return e.sum(_cast(target[at], wide) * (lse[i] - _cast(x[at], wide)), axis=c)

    loss: Tensor = compute(rest, element, f"{name}.each", axes=dims(len(rest)))
    return _reduced(loss, count, reduction, x.dtype, name)
