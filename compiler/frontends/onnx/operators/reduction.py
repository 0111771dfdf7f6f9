"""Reductions, running sums, the greatest and the least."""

from __future__ import annotations

from collections.abc import Callable
from math import prod

from compiler.frontends.onnx.table import Handler, Node, each, handles
from compiler.te import nn
from compiler.te.tensor import Tensor
from compiler.types.elements import is_float


def _reduction(reduce: Callable[..., Tensor], before: Callable[..., Tensor], after: Callable[..., Tensor]) -> Handler:
    """A reduction of elements that are mapped before, and whose results are mapped after; roots and logarithms of
    integers are rounded towards zero."""

    def handler(node: Node) -> Tensor:
        x, axes = node.tensor(0), node.list_of("axes", 1)
        keep, stays = bool(node.attribute("keepdims", 1)), bool(node.attribute("noop_with_empty_axes", 0))
        if not x.rank or (not axes and stays):
            mapped = after(before(x))
        else:
            mapped = after(reduce(before(x), tuple(axes or range(x.rank)), keep, name=node.name))
        return mapped if mapped.dtype == x.dtype else nn.cast(mapped, x.dtype, name=node.name)

    return handler


def _same(x: Tensor) -> Tensor:
    return x


def _real(x: Tensor) -> Tensor:
    """Integers as f64: their roots and logarithms are truncated at the end."""
    return x if is_float(x.dtype) else nn.cast(x, "f64")


def _extreme(reduce: Callable[..., Tensor]) -> Callable[..., Tensor]:
    """A maximum or minimum, of truth values too."""

    def build(x: Tensor, axes: tuple[int, ...], keep: bool, name: str) -> Tensor:
        numbers = nn.cast(x, "u8") if x.dtype == "i1" else x
        extremes = reduce(numbers, axes, keep, name=name)
        return nn.cast(extremes, "i1", name=name) if x.dtype == "i1" else extremes

    return build


def _mean(x: Tensor, axes: tuple[int, ...], keep: bool, name: str) -> Tensor:
    """A mean, of integers rounded towards zero as onnxruntime does."""
    if is_float(x.dtype):
        return nn.mean(x, axes, keep, name=name)
    return nn.trunc_divide(nn.sum(x, axes, keep, name=name), prod(x.shape[axis] for axis in axes), name=name)


_REDUCTIONS: dict[str, tuple[Callable[..., Tensor], Callable[..., Tensor], Callable[..., Tensor]]] = {
    "ReduceSum": (nn.sum, _same, _same),
    "ReduceProd": (nn.prod, _same, _same),
    "ReduceMax": (_extreme(nn.max), _same, _same),
    "ReduceMin": (_extreme(nn.min), _same, _same),
    "ReduceMean": (_mean, _same, _same),
    "ReduceL1": (nn.sum, nn.abs, _same),
    "ReduceL2": (nn.sum, lambda x: nn.square(_real(x)), nn.sqrt),
    "ReduceSumSquare": (nn.sum, nn.square, _same),
    "ReduceLogSum": (nn.sum, _real, nn.log),
    "ReduceLogSumExp": (nn.logsumexp, _real, _same),
}
for operator, parts in _REDUCTIONS.items():
    handles(operator)(_reduction(*parts))


def _place(find: Callable[..., Tensor]) -> Handler:
    def handler(node: Node) -> Tensor:
        keep, last = bool(node.attribute("keepdims", 1)), bool(node.attribute("select_last_index", 0))
        return find(node.tensor(0), node.attribute("axis", 0), keep, last, name=node.name)

    return handler


each({"ArgMax": nn.argmax, "ArgMin": nn.argmin}, _place)


@handles("CumSum", "CumProd")
def running(node: Node) -> Tensor:
    """Sums or products of the elements up to each, or from it on."""
    axis = 0 if node.tensor(0).rank == 1 else node.integers(1, "the axis")[0]
    run = nn.cumsum if node.operator == "CumSum" else nn.cumprod
    apart, turned = bool(node.attribute("exclusive", 0)), bool(node.attribute("reverse", 0))
    x = node.tensor(0)
    scanned = run(x, axis, exclusive=apart, reverse=turned, name=node.name)
    return scanned if scanned.dtype == x.dtype else nn.cast(scanned, x.dtype, name=node.name)
