"""Reductions, scans, ArgMax and ArgMin."""

from __future__ import annotations

from collections.abc import Callable
from math import prod

from compiler.frontends.onnx.table import Handler, Node, handles, register_each
from compiler.te import nn
from compiler.te.tensor import Tensor
from compiler.types.dtypes import is_float


def _reduction(reduce: Callable[..., Tensor], before: Callable[..., Tensor], after: Callable[..., Tensor]) -> Handler:
    """Return a handler of after(reduce(before(x))) over the node's axes (default: all), cast to x's dtype: integers are
    truncated. Without axes and with `noop_with_empty_axes` it is after(before(x))."""

    def handler(node: Node) -> Tensor:
        x, axes = node.tensor(0), node.integer_list("axes", 1)
        keep, is_noop = bool(node.attribute("keepdims", 1)), bool(node.attribute("noop_with_empty_axes", 0))
        if not x.rank or (not axes and is_noop):
            reduction = after(before(x))
        else:
            reduction = after(reduce(before(x), tuple(axes or range(x.rank)), keep, name=node.name))
        return reduction if reduction.dtype == x.dtype else nn.cast(reduction, x.dtype, name=node.name)

    return handler


def _identity(x: Tensor) -> Tensor:
    return x


def _as_float(x: Tensor) -> Tensor:
    """Cast integers to f64, for roots and logarithms; return floats unchanged."""
    return x if is_float(x.dtype) else nn.cast(x, "f64")


def _extreme(reduce: Callable[..., Tensor]) -> Callable[..., Tensor]:
    """Extend nn.max or nn.min, given as `reduce`, to i1, by way of u8."""

    def build(x: Tensor, axes: tuple[int, ...], keep: bool, name: str) -> Tensor:
        numbers = nn.cast(x, "u8") if x.dtype == "i1" else x
        extremes = reduce(numbers, axes, keep, name=name)
        return nn.cast(extremes, "i1", name=name) if x.dtype == "i1" else extremes

    return build


def _mean(x: Tensor, axes: tuple[int, ...], keep: bool, name: str) -> Tensor:
    """The mean over axes; for integers truncated towards zero, as in onnxruntime."""
    if is_float(x.dtype):
        return nn.mean(x, axes, keep, name=name)
    return nn.trunc_divide(nn.sum(x, axes, keep, name=name), prod(x.shape[axis] for axis in axes), name=name)


_REDUCTIONS: dict[str, tuple[Callable[..., Tensor], Callable[..., Tensor], Callable[..., Tensor]]] = {
    "ReduceSum": (nn.sum, _identity, _identity),
    "ReduceProd": (nn.prod, _identity, _identity),
    "ReduceMax": (_extreme(nn.max), _identity, _identity),
    "ReduceMin": (_extreme(nn.min), _identity, _identity),
    "ReduceMean": (_mean, _identity, _identity),
    "ReduceL1": (nn.sum, nn.abs, _identity),
    "ReduceL2": (nn.sum, lambda x: nn.square(_as_float(x)), nn.sqrt),
    "ReduceSumSquare": (nn.sum, nn.square, _identity),
    "ReduceLogSum": (nn.sum, _as_float, nn.log),
    "ReduceLogSumExp": (nn.logsumexp, _as_float, _identity),
}
for operator, parts in _REDUCTIONS.items():
    handles(operator)(_reduction(*parts))


def _arg_reduction(find: Callable[..., Tensor]) -> Handler:
    def handler(node: Node) -> Tensor:
        keep, last = bool(node.attribute("keepdims", 1)), bool(node.attribute("select_last_index", 0))
        return find(node.tensor(0), node.attribute("axis", 0), keep, last, name=node.name)

    return handler


register_each({"ArgMax": nn.argmax, "ArgMin": nn.argmin}, _arg_reduction)


@handles("CumSum", "CumProd")
def scan(node: Node) -> Tensor:
    """Prefix sums or products along an axis; with `reverse` those of suffixes, with `exclusive` without the element.
    Raises Refused for an axis that the model computes, unless x is a vector."""
    axis = 0 if node.tensor(0).rank == 1 else node.integers(1, "the axis")[0]
    operator = nn.cumsum if node.operator == "CumSum" else nn.cumprod
    exclusive, reverse = bool(node.attribute("exclusive", 0)), bool(node.attribute("reverse", 0))
    x = node.tensor(0)
    scanned = operator(x, axis, exclusive=exclusive, reverse=reverse, name=node.name)
    return scanned if scanned.dtype == x.dtype else nn.cast(scanned, x.dtype, name=node.name)
