"""Maxima and means over windows."""

from __future__ import annotations

from collections.abc import Sequence

from compiler.frontends.torch.operators.elements import converted
from compiler.frontends.torch.table import Call, Unsupported, default, operator
from compiler.te import nn
from compiler.te.tensor import Tensor

_MAX = {1: nn.max_pool1d, 2: nn.max_pool2d, 3: nn.max_pool3d}
_AVG = {1: nn.avg_pool1d, 2: nn.avg_pool2d, 3: nn.avg_pool3d}


def _each(values: Sequence[int] | int, rank: int) -> tuple[int, ...]:
    given = (values,) if isinstance(values, int) else tuple(values)
    return given if len(given) == rank else given * rank


def _batched(call: Call, x: Tensor, rank: int) -> Tensor:
    """The image with a batch dimension."""
    return x if x.rank == rank + 2 else nn.expand_dims(x, 0, f"{call.name}.batch")


def _shaped(call: Call, found: Tensor) -> Tensor:
    if found.shape[-len(call.shape) :] != call.shape:
        raise Unsupported("a window in ceil mode that lies beyond the image")
    shaped = found if found.shape == call.shape else nn.reshape(found, call.shape, call.name)
    return converted(shaped, call.dtype, call.name)


def _enter_max(rank: int) -> None:
    def convert(
        call: Call,
        x: Tensor,
        kernel: Sequence[int],
        stride: Sequence[int] = (),
        padding: Sequence[int] = (0,),
        dilation: Sequence[int] = (1,),
        ceil_mode: bool = False,
    ) -> tuple[Tensor | None, ...]:
        default("ceil_mode", ceil_mode, False)
        default("dilation", _each(dilation, rank), (1,) * rank)
        sizes = _each(kernel, rank)
        steps = _each(stride, rank) if stride else sizes
        found = _MAX[rank](_batched(call, x, rank), sizes, steps, _each(padding, rank), name=call.name)
        return _shaped(call, found), None

    convert.__doc__ = "The greatest of each window."
    operator(f"max_pool{rank}d_with_indices")(convert)


def _enter_avg(rank: int) -> None:
    def convert(
        call: Call,
        x: Tensor,
        kernel: Sequence[int],
        stride: Sequence[int] = (),
        padding: Sequence[int] = (0,),
        ceil_mode: bool = False,
        count_include_pad: bool = True,
        divisor_override: int | None = None,
    ) -> Tensor:
        default("ceil_mode", ceil_mode, False)
        default("divisor_override", divisor_override, None)
        sizes = _each(kernel, rank)
        steps = _each(stride, rank) if stride else sizes
        images = _batched(call, x, rank)
        found = _AVG[rank](images, sizes, steps, _each(padding, rank), count_include_pad, name=call.name)
        return _shaped(call, found)

    convert.__doc__ = "The mean of each window."
    operator(f"avg_pool{rank}d")(convert)


_enter_max(2)
_enter_max(3)
_enter_avg(1)
_enter_avg(2)
_enter_avg(3)


@operator("_adaptive_avg_pool2d", "_adaptive_avg_pool3d")
def adaptive_avg_pool(call: Call, x: Tensor, size: Sequence[int]) -> Tensor:
    """The means of as many windows as the result has places."""
    rank = len(size)
    image = x.shape[-rank:]
    if any(n % m for n, m in zip(image, size, strict=True)):
        raise Unsupported(f"adaptive pooling of {image} to {tuple(size)}: windows of different sizes")
    if all(m == 1 for m in size):
        mean = nn.mean(x, tuple(range(x.rank - rank, x.rank)), keepdims=True, name=call.name)
        return _shaped(call, mean)
    sizes = tuple(n // m for n, m in zip(image, size, strict=True))
    return _shaped(call, _AVG[rank](_batched(call, x, rank), sizes, sizes, name=call.name))
