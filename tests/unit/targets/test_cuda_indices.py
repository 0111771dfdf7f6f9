"""Indices of kernels: 32 bits where that is enough, 64 where a buffer, an offset or a value needs them."""

from __future__ import annotations

import mmap
from math import prod
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import compiler
from compiler import recipes, te
from compiler.dialects.functions import find_function
from compiler.pipeline.source import parse
from compiler.schedule import Schedule
from compiler.targets.arguments import Argument
from compiler.targets.cuda import CudaKernel, nvrtc
from compiler.targets.cuda.kernel import make_kernel as kernel_of
from compiler.types.dtypes import DTYPES, INDICES
from tests.gpu_schedules import product, tiled
from tests.host_cuda import OnHost, needs_gxx, run_on_host
from tests.unit.targets.test_simt import one_kernel

Array = np.ndarray[Any, Any]
ROWS, COLUMNS = 65_536, 40_000
"""2.6e9 elements, of which few pages are ever touched."""


def spread(function: te.Function, threads: int = 256, vector: int = 1) -> CudaKernel:
    """Every block of a function over threads."""
    s = Schedule(compiler.lower(function))
    for label in list(s.program.blocks):
        recipes.spread(s, s.get_block(label), threads, vector)
    make_kernel = compiler.build(s, "cuda")
    assert isinstance(make_kernel, CudaKernel)
    return make_kernel


def sparse(shape: tuple[int, ...], dtype: Any = np.int8) -> Array:
    """An array that takes memory only where it is touched."""
    flags = mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS | getattr(mmap, "MAP_NORESERVE", 0x4000)
    pages = mmap.mmap(-1, prod(shape) * np.dtype(dtype).itemsize, flags)
    return np.frombuffer(pages, dtype).reshape(shape)


def plus_one(shape: tuple[int, ...]) -> te.Function:
    x = te.placeholder(shape, "i8", name="X")
    return te.function("f", [x], te.compute(shape, lambda *i: x[i] + 1, name="Y"))


@needs_gxx
@pytest.mark.parametrize("vector", [1, 4])
def test_the_last_elements_of_a_large_buffer(vector: int, tmp_path: Path) -> None:
    kernel = spread(plus_one((ROWS, COLUMNS)), vector=vector)
    assert "(long long)" in kernel.text
    x, y = sparse((ROWS, COLUMNS)), sparse((ROWS, COLUMNS))
    x[-1, -300:] = np.arange(300) % 100
    x[53_687, 3648:3656] = 7  # offsets about 2^31
    on_host = OnHost([kernel], tmp_path)
    (launch,) = kernel.launches
    each = 256 * vector
    for first in (launch.grid[0] - 2, (1 << 31) // each - 1, (1 << 31) // each):
        on_host.run_blocks([x, y], first, 1)
    on_host.run_blocks([x, y], launch.grid[0] - 1, 1)
    np.testing.assert_array_equal(y[-1, -each:], x[-1, -each:] + 1)
    np.testing.assert_array_equal(y[53_687, 3648:3656], x[53_687, 3648:3656] + 1)
    assert not y[0, :100].any()


@needs_gxx
def test_rows_whose_offsets_are_large(tmp_path: Path) -> None:
    """Each index is small, and the offset is not."""
    x = te.placeholder((ROWS, COLUMNS), "i8", name="X")
    k = te.reduce_axis(4, "k")
    function = te.function("f", [x], te.compute((ROWS,), lambda i: te.sum(x[i, k + (COLUMNS - 4)], k), name="Y"))
    kernel = spread(function)
    assert "(long long)" in kernel.text
    table = sparse((ROWS, COLUMNS))
    table[-1, -4:] = (1, 2, 3, 4)
    y = np.zeros(ROWS, kernel.arguments[-1].dtype)
    OnHost([kernel], tmp_path).run_blocks([table, y], ROWS // 256 - 1, 1)
    assert y[-1] == 10 and not y[:-1].any()


def test_where_all_fits_indices_are_int() -> None:
    for kernel in (spread(plus_one((64, 64))), compiler.build(tiled(product()), "cuda")):
        assert "long long" not in kernel.text and "const int" in kernel.text


@pytest.mark.parametrize(("elements", "wide"), [(1 << 31, False), ((1 << 31) + 256, True)])
def test_the_border_is_the_largest_offset(elements: int, wide: bool) -> None:
    assert ("long long" in spread(plus_one((elements,))).text) == wide


@needs_gxx
def test_values_of_indices_have_64_bits(tmp_path: Path) -> None:
    y = te.compute((4, 3), lambda i, j: te.cast(i * 3_000_000_000 - j * 5_000_000_000, "i64"), name="Y")
    z = te.compute((4,), lambda i: te.cast((i * 3_000_000_000) // 7 % 100_000, "i32"), name="Z")
    on_host = OnHost([compiler.build(te.function("f", [], out), "cuda") for out in (y, z)], tmp_path)
    i, j = np.arange(4, dtype=np.int64), np.arange(3, dtype=np.int64)
    np.testing.assert_array_equal(on_host(0, [])[0], i[:, None] * 3_000_000_000 - j * 5_000_000_000)
    np.testing.assert_array_equal(on_host(1, [])[0], i * 3_000_000_000 // 7 % 100_000)


@pytest.mark.sampled
@needs_gxx
@pytest.mark.parametrize("dtype", INDICES)
def test_indices_from_memory_that_are_outside(dtype: str, tmp_path: Path) -> None:
    """Also those whose low 32 bits, or whose bits without a sign, are inside."""
    x, i = te.placeholder((50, 3), name="X"), te.placeholder((40,), dtype, name="I")
    kernel = spread(te.function("f", [x, i], te.nn.gather(x, i, 0, -1.0)))
    held = np.iinfo(DTYPES[dtype].numpy)
    wanted = (0, 1, 49, 50, -1, -7, 255, 1 << 31, 1 << 32, (1 << 32) + 3, 1 << 63, int(held.min), int(held.max))
    numbers = np.resize(np.array([n for n in wanted if held.min <= n <= held.max], held.dtype), 40)
    table = np.arange(150, dtype=np.float32).reshape(50, 3)
    inside = (numbers.astype(object) >= 0) & (numbers.astype(object) < 50)
    want = np.where(inside[:, None], table[np.where(inside, numbers, 0).astype(int)], -1)
    (actual,) = run_on_host(kernel, [table, numbers], tmp_path)
    np.testing.assert_array_equal(actual, want)


@pytest.mark.skipif(not nvrtc.is_available(), reason="there is no NVRTC")
def test_nvrtc_takes_64_bits() -> None:
    assert spread(plus_one((ROWS, COLUMNS)), vector=4).resources("sm_80")


OVERWRITTEN = """
      %v = memref.load %A[%t] : memref<64xi64>  memref.store %v, %B[%t] : memref<64xi64>
      %w = memref.load %B[%t] : memref<64xi64>  %i = arith.index_cast %w : i64 to index
      %zero = arith.constant 0 : i64  memref.store %zero, %B[%t] : memref<64xi64>
      %x = arith.index_cast %i : index to i64  memref.store %x, %B[%t] : memref<64xi64>
"""


@needs_gxx
def test_an_index_from_memory_is_what_it_was(tmp_path: Path) -> None:
    """Also after something else is written there."""
    module = parse(one_kernel(OVERWRITTEN).replace("f32", "i64"))
    long = np.dtype(np.int64)
    kernel = kernel_of(module, find_function(module, "f"), [Argument(name, (64,), long) for name in "AB"])
    numbers = np.arange(64, dtype=long) * (1 << 40)
    (actual,) = run_on_host(kernel, [numbers], tmp_path)
    np.testing.assert_array_equal(actual[:32], numbers[:32])
