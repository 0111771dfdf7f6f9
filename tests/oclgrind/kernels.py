"""Kernels that the tests of oclgrind share, small ones of each kind."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

import compiler
from compiler import recipes, te
from compiler.recipes import ThreadTiles, WarpTiles
from compiler.schedule import Schedule
from compiler.targets.cuda import CudaKernel
from tests.gpu_schedules import default
from tests.programs import applied


def _built(s: Schedule) -> CudaKernel:
    made = compiler.build(s, "cuda")
    assert isinstance(made, CudaKernel)
    return made


def product() -> CudaKernel:
    """A product at odd extents, by the default: shared tiles, several rounds, guards."""
    return _built(default(applied(partial(te.nn.matmul, name="C"), (9, 37), (37, 7), name="mm", inputs="AB")))


def convolution() -> CudaKernel:
    X, W = te.placeholder((1, 3, 7, 5), name="X"), te.placeholder((4, 3, 3, 3), name="W")
    return _built(default(te.function("conv", [X, W], te.nn.relu(te.nn.conv2d(X, W, padding=1)))))


def transpose() -> CudaKernel:
    return _built(default(applied(te.nn.transpose, (13, 21), name="transposed")))


def columns() -> CudaKernel:
    """Sums of columns, in two kernels: partial results lie in global memory between both."""
    return _built(default(applied(partial(te.nn.sum, axis=0), (3000, 5), name="columns")))


def softmax() -> CudaKernel:
    """A block of eight warps for each row, and shuffles of one warp."""
    return _built(default(applied(te.nn.softmax, (2, 300), name="softmax")))


def ahead() -> CudaKernel:
    """A product whose panels are fetched a round ahead by asynchronous copies."""
    s = Schedule(compiler.lower(applied(partial(te.nn.matmul, name="C"), (4, 12), (12, 8), name="mm", inputs="AB")))
    recipes.tile_on_threads(s, s.get_block("C"), None, ThreadTiles([(1, 2, 2), (1, 2, 4)], [4], vector=4, twice=True))
    return _built(s)


def on_warps(dtype: str = "f16") -> CudaKernel:
    """A product of MMA tiles."""
    A, B = te.placeholder((16, 32), dtype, name="A"), te.placeholder((32, 8), dtype, name="B")
    s = Schedule(compiler.lower(te.function("mm", [A, B], te.nn.matmul(A, B, dtype="f32", name="C"))))
    recipes.tile_on_warps(s, s.get_block("C"), None, WarpTiles((1, 1), (1, 1), 1))
    return _built(s)


KERNELS: dict[str, Callable[[], CudaKernel]] = {
    make.__name__: make for make in (product, convolution, transpose, columns, softmax, ahead, on_warps)
}
