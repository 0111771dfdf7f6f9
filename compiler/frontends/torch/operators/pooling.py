"""Max and average pooling."""

from __future__ import annotations

from collections.abc import Sequence

from compiler.frontends.torch.operators.elements import per_dim, result
from compiler.frontends.torch.table import Call, operator
from compiler.te import nn
from compiler.te.nn.adaptive import adaptive_max_pool_with_places
from compiler.te.tensor import Tensor

_MAX = {1: nn.max_pool1d, 2: nn.max_pool2d, 3: nn.max_pool3d}
_AVG = {1: nn.avg_pool1d, 2: nn.avg_pool2d, 3: nn.avg_pool3d}


def _batched(call: Call, x: Tensor, rank: int) -> Tensor:
    """Return images with a batch dimension; if x has none, of extent 1. `rank`: the number of spatial dimensions."""
    return x if x.rank == rank + 2 else nn.expand_dims(x, 0, f"{call.name}.batch")


def _register_max_pool(rank: int) -> None:
    def convert(
        call: Call,
        x: Tensor,
        kernel: Sequence[int],
        stride: Sequence[int] = (),
        padding: Sequence[int] = (0,),
        dilation: Sequence[int] = (1,),
        ceil_mode: bool = False,
    ) -> tuple[Tensor, ...]:
        sizes, images = per_dim(kernel, rank), _batched(call, x, rank)
        steps = per_dim(stride, rank) if stride else sizes
        window = (sizes, steps, per_dim(padding, rank), per_dim(dilation, rank), ceil_mode)
        values = _MAX[rank](images, *window, name=call.name)
        _, indices = nn.max_pool_with_places(images, *window, name=f"{call.name}.places")
        return result(call, values), result(call, indices, 1)

    convert.__doc__ = "The maximum of each window, and its index in the image."
    operator(f"max_pool{rank}d_with_indices")(convert)


def _register_avg_pool(rank: int) -> None:
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
        sizes, images = per_dim(kernel, rank), _batched(call, x, rank)
        steps = per_dim(stride, rank) if stride else sizes
        pads = per_dim(padding, rank)
        averages = _AVG[rank](
            images, sizes, steps, pads, count_include_pad, 1, ceil_mode, divisor_override, name=call.name
        )
        return result(call, averages)

    convert.__doc__ = "The mean of each window."
    operator(f"avg_pool{rank}d")(convert)


for _rank in (2, 3):
    _register_max_pool(_rank)
for _rank in (1, 2, 3):
    _register_avg_pool(_rank)


@operator("_adaptive_avg_pool2d", "_adaptive_avg_pool3d")
def adaptive_avg_pool(call: Call, x: Tensor, size: Sequence[int]) -> Tensor:
    """The mean of a window for each element of a result of spatial extents `size`; window i of an extent H is floor(i *
    H / size) : ceil((i + 1) * H / size)."""
    rank = len(size)
    if all(n == 1 for n in size):
        return result(call, nn.mean(x, tuple(range(x.rank - rank, x.rank)), keepdims=True, name=call.name))
    return result(call, nn.adaptive_avg_pool(_batched(call, x, rank), tuple(size), name=call.name))


@operator("adaptive_max_pool2d", "adaptive_max_pool3d")
def adaptive_max_pool(call: Call, x: Tensor, size: Sequence[int]) -> tuple[Tensor, ...]:
    """The maximum of each window, and its row-major index in the image; the result has spatial extents `size`, and
    window i of an extent H is floor(i * H / size) : ceil((i + 1) * H / size)."""
    images = _batched(call, x, len(size))
    values = nn.adaptive_max_pool(images, tuple(size), name=call.name)
    _, indices = adaptive_max_pool_with_places(images, tuple(size), name=f"{call.name}.places")
    return result(call, values), result(call, indices, 1)
