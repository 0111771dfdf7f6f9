"""Groups of the kinds that networks contain, by family: what a default has to be good at.

None of them is taken from a workload of `compiler.bench.workloads`; inputs whose names are in capitals with a `W` or a
`b` in front are weights, which never change.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

from compiler import te
from compiler.te.tensor import Tensor

nn = te.nn
Made = Callable[[], te.Function]


def _in(*shape: int, name: str = "X", dtype: str = "f32") -> Tensor:
    tensor: Tensor = te.placeholder(shape, dtype, name)
    return tensor


def _convolution(
    image: tuple[int, ...],
    filters: int,
    kernel: tuple[int, ...],
    stride: int = 1,
    dilation: int = 1,
    groups: int = 1,
    after: bool = True,
    dtype: str = "f32",
) -> te.Function:
    """A convolution of one to three dimensions that keeps the extents at stride 1; `after`: with a bias and a ReLU."""
    x, rank = _in(*image, dtype=dtype), len(kernel)
    w = _in(filters, image[1] // groups, *kernel, name="W", dtype=dtype)
    padding = tuple(dilation * (k - 1) // 2 for k in kernel)
    sizes = padding[0] if rank == 1 else padding
    conv = {1: nn.conv1d, 2: nn.conv2d, 3: nn.conv3d}[rank]
    if not after:
        made = conv(x, w, None, stride=stride, padding=sizes, dilation=dilation, groups=groups)
        return te.function("f", [x, w], made)
    b = _in(filters, name="b")
    made = nn.relu(conv(x, w, b, stride=stride, padding=sizes, dilation=dilation, groups=groups))
    return te.function("f", [x, w, b], made)


def _depthwise_alone(channels: int, size: int, kernel: int, dtype: str) -> te.Function:
    x, w = _in(1, channels, size, size, dtype=dtype), _in(channels, 1, kernel, kernel, name="W", dtype=dtype)
    return te.function("f", [x, w], nn.depthwise_conv2d(x, w, padding=kernel // 2))


def _depthwise(channels: int, size: int, kernel: int, stride: int, clamped: bool = True) -> te.Function:
    x, w = _in(1, channels, size, size), _in(channels, 1, kernel, kernel, name="W")
    b = _in(channels, name="b")
    made = nn.depthwise_conv2d(x, w, stride=stride, padding=kernel // 2)
    made = nn.add(made, nn.reshape(b, (1, channels, 1, 1)))
    return te.function("f", [x, w, b], nn.clamp(made, 0, 6) if clamped else made)


def _transposed(channels: int, size: int, filters: int, kernel: int, stride: int) -> te.Function:
    x, w = _in(1, channels, size, size), _in(channels, filters, kernel, kernel, name="W")
    return te.function("f", [x, w], nn.conv2d_transpose(x, w, stride=stride, padding=(kernel - stride) // 2))


def _grad_data(channels: int, size: int, filters: int) -> te.Function:
    g, w = _in(1, filters, size, size), _in(filters, channels, 3, 3, name="W")
    return te.function("f", [g, w], nn.conv2d_grad_data(g, w, (1, channels, size, size), padding=1))


def _matmul(m: int, n: int, k: int, after: str = "", dtype: str = "f32", weights: bool = True) -> te.Function:
    x, w = _in(m, k, dtype=dtype), _in(k, n, name="W" if weights else "Y", dtype=dtype)
    made, inputs = nn.matmul(x, w), [x, w]
    if "bias" in after:
        inputs.append(_in(n, name="b", dtype=dtype))
        made = nn.add(made, inputs[-1])
    if "residual" in after:
        inputs.append(_in(m, n, name="R", dtype=dtype))
        made = nn.add(made, inputs[-1])
    for name in ("relu", "gelu", "silu", "tanh", "sigmoid", "exp"):
        if name in after:
            made = getattr(nn, name)(made)
    return te.function("f", inputs, made)


def _batched(batch: int, m: int, n: int, k: int, transposed: bool = False) -> te.Function:
    x, y = _in(batch, m, k), _in(batch, *((n, k) if transposed else (k, n)), name="Y")
    return te.function("f", [x, y], nn.batch_matmul(x, y, transpose_b=transposed))


def _dense(m: int, n: int, k: int) -> te.Function:
    """x W^T + b, with W stored [n, k] as in torch."""
    x, w, b = _in(m, k), _in(n, k, name="W"), _in(n, name="b")
    return te.function("f", [x, w, b], nn.dense(x, w, b))


def _on(shape: tuple[int, ...], make: Callable[[Tensor], Tensor], dtype: str = "f32") -> te.Function:
    x = _in(*shape, dtype=dtype)
    return te.function("f", [x], make(x))


def _added(rows: int, columns: int, norm: str) -> te.Function:
    """x + y, and its softmax, RMS norm or layer norm along rows; both are results."""
    x, y = _in(rows, columns), _in(rows, columns, name="Y")
    total = nn.add(x, y)
    if norm == "softmax":
        return te.function("f", [x, y], [total, nn.softmax(total)])
    g, h = _in(columns, name="b0"), _in(columns, name="b1")
    made = nn.rms_norm(total, g) if norm == "rms" else nn.layer_norm(total, g, h)
    return te.function("f", [x, y, g] if norm == "rms" else [x, y, g, h], [total, made])


def _moments(rows: int, columns: int) -> te.Function:
    """The sum and the sum of squares of each row: two results of one input."""
    x = _in(rows, columns)
    return te.function("f", [x], [nn.sum(x, -1), nn.sum(nn.mul(x, x), -1)])


def _embedded(rows: int, tokens: int, width: int) -> te.Function:
    ids, table = _in(tokens, name="I", dtype="i32"), _in(rows, width, name="W")
    p, g, h = _in(tokens, width, name="W1"), _in(width, name="b0"), _in(width, name="b1")
    made = nn.layer_norm(nn.add(nn.embedding(ids, table), p), g, h)
    return te.function("f", [ids, table, p, g, h], made)


def _batch_norm(n: int, c: int, size: int) -> te.Function:
    """A batch norm by the statistics of its input, as in training; the mean and the variance are results too."""
    x, g, h = _in(n, c, size, size), _in(c, name="b0"), _in(c, name="b1")
    mean = nn.mean(x, (0, 2, 3), keepdims=True)
    centred = nn.sub(x, mean)
    variance = nn.mean(nn.mul(centred, centred), (0, 2, 3), keepdims=True)
    shape = (1, c, 1, 1)
    scaled = nn.mul(nn.mul(centred, nn.rsqrt(nn.add(variance, 1e-5))), nn.reshape(g, shape))
    return te.function("f", [x, g, h], [nn.add(scaled, nn.reshape(h, shape)), mean, variance])


def _squeezed(channels: int, size: int) -> te.Function:
    """The mean over the image of x * s, with a factor s for each channel, as in squeeze-and-excite."""
    x, s = _in(1, channels, size, size), _in(1, channels, 1, 1, name="S")
    return te.function("f", [x, s], nn.global_avg_pool(nn.mul(x, s)))


def _of_dtype(dtype: str) -> dict[str, Made]:
    """The cases that are compared between dtypes; sums of i8 are formed in i32, and it has no softmax."""
    softmax = partial(_on, (512, 768), nn.softmax, dtype)
    return {
        f"512x512x512 {dtype}": partial(_matmul, 512, 512, 512, dtype=dtype),
        f"1x2048x1000 {dtype}": partial(_matmul, 1, 1000, 2048, dtype=dtype),
        f"64x768x768 {dtype}": partial(_matmul, 64, 768, 768, dtype=dtype),
        f"64->64@56 3x3 {dtype}": partial(_convolution, (1, 64, 56, 56), 64, (3, 3), after=False, dtype=dtype),
        f"depthwise 144@56 {dtype}": partial(_depthwise_alone, 144, 56, 3, dtype),
        **({} if dtype == "i8" else {f"softmax 512x768 {dtype}": softmax}),
        f"sum of rows {dtype}": partial(_on, (1024, 1024), _wide_sum, dtype),
    }


def _wide_sum(x: Tensor) -> Tensor:
    """The sum of each row; in i32 for i8."""
    return nn.sum(nn.cast(x, "i32") if x.dtype == "i8" else x, -1)


FAMILIES: dict[str, dict[str, Made]] = {
    "depthwise": {
        "32@112 3x3": partial(_depthwise, 32, 112, 3, 1),
        "96@112 3x3 s2": partial(_depthwise, 96, 112, 3, 2),
        "144@56 3x3": partial(_depthwise, 144, 56, 3, 1),
        "240@28 5x5": partial(_depthwise, 240, 28, 5, 1),
        "240@28 3x3": partial(_depthwise, 240, 28, 3, 1),
        "240@17 3x3": partial(_depthwise, 240, 17, 3, 1),
        "240@28 3x3 s2": partial(_depthwise, 240, 28, 3, 2),
        "672@14 5x5 s2": partial(_depthwise, 672, 14, 5, 2),
        "576@14 3x3": partial(_depthwise, 576, 14, 3, 1),
        "960@7 3x3": partial(_depthwise, 960, 7, 3, 1),
        "50@33 3x3": partial(_depthwise, 50, 33, 3, 1, False),
        "grouped 128@28 in 32": partial(_convolution, (1, 128, 28, 28), 128, (3, 3), groups=32),
        "grouped 64@56 in 4": partial(_convolution, (1, 64, 56, 56), 64, (3, 3), groups=4),
    },
    "convolution": {
        "3->32@224 3x3 s2": partial(_convolution, (1, 3, 224, 224), 32, (3, 3), 2),
        "3->64@224 7x7 s2": partial(_convolution, (1, 3, 224, 224), 64, (7, 7), 2),
        "3->64@256 3x3": partial(_convolution, (1, 3, 256, 256), 64, (3, 3)),
        "256->512@56 1x1 s2": partial(_convolution, (1, 256, 56, 56), 512, (1, 1), 2),
        "1024->2048@14 1x1 s2": partial(_convolution, (1, 1024, 14, 14), 2048, (1, 1), 2),
        "96->24@56 1x1": partial(_convolution, (1, 96, 56, 56), 24, (1, 1), after=False),
        "24->144@56 1x1": partial(_convolution, (1, 24, 56, 56), 144, (1, 1)),
        "64->256@56 1x1": partial(_convolution, (1, 64, 56, 56), 256, (1, 1)),
        "256->64@56 1x1": partial(_convolution, (1, 256, 56, 56), 64, (1, 1)),
        "512->128@28 1x1": partial(_convolution, (1, 512, 28, 28), 128, (1, 1)),
        "128->512@28 1x1": partial(_convolution, (1, 128, 28, 28), 512, (1, 1)),
        "1024->256@14 1x1": partial(_convolution, (1, 1024, 14, 14), 256, (1, 1)),
        "256->1024@14 1x1": partial(_convolution, (1, 256, 14, 14), 1024, (1, 1)),
        "96->576@14 1x1": partial(_convolution, (1, 96, 14, 14), 576, (1, 1)),
        "512->2048@7 1x1": partial(_convolution, (1, 512, 7, 7), 2048, (1, 1)),
        "160->960@7 1x1": partial(_convolution, (1, 160, 7, 7), 960, (1, 1)),
        "512->1024@28 1x1 s2": partial(_convolution, (1, 512, 28, 28), 1024, (1, 1), 2),
        "50->70@33 1x1": partial(_convolution, (2, 50, 33, 33), 70, (1, 1), after=False),
        "64->64@28 dilated 2": partial(_convolution, (1, 64, 28, 28), 64, (3, 3), dilation=2),
        "conv1d 80->256@500": partial(_convolution, (1, 80, 500), 256, (5,)),
        "conv1d 256->256@400": partial(_convolution, (1, 256, 400), 256, (3,)),
        "conv3d 16->32@8x28x28": partial(_convolution, (1, 16, 8, 28, 28), 32, (3, 3, 3)),
        "conv3d 3->24@8x112x112 s2": partial(_convolution, (1, 3, 8, 112, 112), 24, (1, 3, 3), 2),
        "transposed 64@28 2x2 s2": partial(_transposed, 64, 28, 32, 2, 2),
        "transposed 128@14 4x4 s2": partial(_transposed, 128, 14, 64, 4, 2),
        "grad data 64@28": partial(_grad_data, 64, 28, 64),
        "17->29@31 3x3": partial(_convolution, (1, 17, 31, 31), 29, (3, 3)),
    },
    "product": {
        "1x2048x1000": partial(_matmul, 1, 1000, 2048, "bias"),
        "1x768x3072 gelu": partial(_matmul, 1, 3072, 768, "bias gelu"),
        "4x1024x1024": partial(_matmul, 4, 1024, 1024, "bias"),
        "16x512x2048": partial(_matmul, 16, 2048, 512),
        "1000x512x1": partial(_matmul, 1000, 1, 512),
        "1000x512x4": partial(_matmul, 1000, 4, 512),
        "dense 1x1280x1000": partial(_dense, 1, 1000, 1280),
        "dense 8x1024x4096": partial(_dense, 8, 4096, 1024),
        "1 of 12x64x128": partial(_batched, 12, 1, 128, 64),
        "batch 16, 32x32x32": partial(_batched, 16, 32, 32, 32),
        "scores, 12 of 128x64x128": partial(_batched, 12, 128, 128, 64, transposed=True),
        "scores, 16 of 8x64x128": partial(_batched, 16, 8, 128, 64, transposed=True),
        "transposed 256x512x512": partial(_batched, 1, 256, 512, 512, transposed=True),
        "128x3072x768 residual": partial(_matmul, 128, 768, 3072, "bias residual"),
        "128x768x3072 gelu": partial(_matmul, 128, 3072, 768, "bias gelu"),
        "128x768x768 tanh": partial(_matmul, 128, 768, 768, "tanh"),
        "256x512x10": partial(_matmul, 256, 10, 512, "bias"),
        "256x784x512 relu": partial(_matmul, 256, 512, 784, "bias relu"),
        "64x64x64": partial(_matmul, 64, 64, 64),
        "24x24x24": partial(_matmul, 24, 24, 24),
        "384x384x384 f64": partial(_matmul, 384, 384, 384, dtype="f64"),
        "384x384x384 bf16": partial(_matmul, 384, 384, 384, dtype="bf16"),
        "384x384x384 i8": partial(_matmul, 384, 384, 384, dtype="i8"),
    },
    "rows": {
        "add, softmax, both": partial(_added, 512, 768, "softmax"),
        "add, layer norm, both": partial(_added, 512, 768, "layer"),
        "add, rms norm, both": partial(_added, 512, 768, "rms"),
        "softmax 12x128x128": partial(_on, (12, 128, 128), nn.softmax),
        "log softmax 64x1000": partial(_on, (64, 1000), nn.log_softmax),
        "softmax over columns": partial(_on, (1000, 64), lambda x: nn.softmax(x, 0)),
        "moments": partial(_moments, 1024, 1024),
        "batch norm 8x64@28": partial(_batch_norm, 8, 64, 28),
        "embedding, norm": partial(_embedded, 30522, 128, 768),
        "sum of all": partial(_on, (1024, 1024), lambda x: nn.sum(x)),
        "max of rows": partial(_on, (1024, 1024), lambda x: nn.max(x, -1)),
        "sum of columns": partial(_on, (1024, 1024), lambda x: nn.sum(x, 0)),
        "mean of 4": partial(_on, (4, 262144), lambda x: nn.mean(x, -1)),
        "argmax of rows": partial(_on, (512, 1024), lambda x: nn.argmax(x, -1)),
        "logsumexp f64": partial(_on, (256, 1024), lambda x: nn.logsumexp(x), "f64"),
    },
    "moving": {
        "max pool 64@112 s2": partial(_on, (1, 64, 112, 112), lambda x: nn.max_pool2d(x, 3, 2, 1)),
        "max pool 64@56 2x2": partial(_on, (1, 64, 56, 56), lambda x: nn.max_pool2d(x, 2, 2)),
        "average pool 128@28": partial(_on, (1, 128, 28, 28), lambda x: nn.avg_pool2d(x, 3, 1, 1)),
        "global pool 2048@7": partial(_on, (1, 2048, 7, 7), nn.global_avg_pool),
        "global pool 96@56": partial(_on, (1, 96, 56, 56), nn.global_avg_pool),
        "scaled, global pool": partial(_squeezed, 96, 56),
        "bilinear 64@28 x2": partial(_on, (1, 64, 28, 28), lambda x: nn.resize_bilinear(x, (56, 56))),
        "nearest 64@28 x2": partial(_on, (1, 64, 28, 28), lambda x: nn.resize_nearest(x, (56, 56))),
        "transpose 1024x1024": partial(_on, (1024, 1024), nn.transpose),
        "heads 128x12x64": partial(_on, (128, 12, 64), lambda x: nn.transpose(x, (1, 0, 2))),
        "channels last 64@56": partial(_on, (1, 64, 56, 56), lambda x: nn.transpose(x, (0, 2, 3, 1))),
        "pad 64@56": partial(_on, (1, 64, 56, 56), lambda x: nn.pad(x, ((0, 0), (0, 0), (1, 1), (1, 1)))),
        "copy of a slice": partial(_on, (1024, 1024), lambda x: nn.slice(x, (0, 0), (1024, 512))),
        "flip": partial(_on, (512, 1024), lambda x: nn.flip(x, 1)),
        "gelu 1M": partial(_on, (1024, 1024), nn.gelu),
        "add bf16": partial(_on, (1024, 1024), lambda x: nn.add(x, 1.0), "bf16"),
    },
    "dtypes": {name: made for dtype in ("f32", "f64", "bf16", "i8") for name, made in _of_dtype(dtype).items()},
}
"""By family, then by name, the function that makes a group."""
