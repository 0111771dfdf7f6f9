"""Convolutions as implicit products on GPUs: proved, right on numpy and in the text, zero-filled beyond edges."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import compiler
from compiler import te
from compiler.pipeline.loops import lower_to_kernels
from compiler.recipes import ThreadTiles
from compiler.recipes.draft import Draft
from compiler.recipes.gpu.convolution import convolution_by_windows, convolve_on_threads, window_read
from compiler.schedule import Schedule
from compiler.support.errors import ScheduleError
from compiler.targets import simt
from compiler.targets.cuda import CudaKernel
from compiler.targets.registry import target_named
from tests.host_cuda import needs_gxx, run_on_host
from tests.sample import some

RANDOM = np.random.default_rng(0)
GPU = target_named("cuda").machine("sm_80")


def conv(o: int, c: int, image: tuple[int, ...], taps: tuple[int, ...], n: int = 1, **options: Any) -> te.Function:
    """A convolution with bias and relu."""
    x, w = te.placeholder((n, c, *image), name="X"), te.placeholder((o, c, *taps), name="W")
    b = te.placeholder((1, o, *(1 for _ in image)), name="b")
    operator = (te.nn.conv1d, te.nn.conv2d, te.nn.conv3d)[len(image) - 1]
    summed = te.nn.add(operator(x, w, name="C", **options), b, name="S")
    return te.function("conv", [x, w, b], te.nn.relu(summed, name="Y"))


CASES: dict[str, tuple[te.Function, ThreadTiles]] = {
    "3x3": (
        conv(8, 6, (7, 7), (3, 3), padding=1),
        ThreadTiles([(1, 1, 1), (1, 2, 4), (1, 7, 1), (1, 1, 7)], [3, 3, 3]),
    ),
    "filters and pixels beyond the tile": (
        conv(10, 5, (9, 11), (3, 3), padding=1),
        ThreadTiles([(1, 1, 1), (1, 2, 4), (1, 4, 1), (1, 2, 4)], [5, 3, 3]),
    ),
    "stride and batch": (
        conv(8, 4, (14, 10), (3, 3), n=3, stride=2, padding=1),
        ThreadTiles([(1, 1, 1), (1, 2, 4), (1, 4, 1), (1, 2, 4)], [2, 3, 3]),
    ),
    "dilation and virtual threads": (
        conv(16, 4, (8, 8), (3, 3), dilation=2, padding=2),
        ThreadTiles([(1, 1, 1), (2, 2, 4), (1, 4, 1), (1, 2, 4)], [4, 1, 3]),
    ),
    "one tap and a stride": (
        conv(8, 16, (8, 8), (1, 1), stride=2),
        ThreadTiles([(1, 1, 1), (1, 2, 4), (1, 4, 1), (1, 4, 1)], [8, 1, 1]),
    ),
    "along time": (conv(6, 3, (37,), (5,), padding=2), ThreadTiles([(1, 1, 1), (1, 2, 4), (1, 8, 4)], [3, 5])),
    "volumes": (
        conv(4, 2, (4, 5, 6), (3, 3, 3), padding=1),
        ThreadTiles([(1, 1, 1), (1, 1, 4), (1, 1, 1), (1, 5, 1), (1, 2, 4)], [2, 3, 3, 3]),
    ),
}


def scheduled(name: str) -> tuple[te.Function, Schedule]:
    function, tiles = CASES[name]
    s = Schedule(compiler.lower(function))
    s.inline(s.get_block("S"))
    convolve_on_threads(s, s.get_block("C"), s.get_block("Y"), tiles)
    return function, s


def inputs_of(function: te.Function) -> list[Any]:
    return [RANDOM.standard_normal(t.shape, np.float32) for t in function.inputs]


@pytest.mark.sampled
@pytest.mark.parametrize("name", CASES)
def test_it_is_right_and_without_a_fault(name: str) -> None:
    function, s = scheduled(name)
    assert str(s.verify()) == "proved"
    inputs = inputs_of(function)
    module, _, _ = lower_to_kernels(s.module.clone())
    checked = simt.run(module, inputs)
    assert checked.is_correct, [str(fault) for fault in checked.faults]
    np.testing.assert_allclose(checked.outputs[0], compiler.build(function)(*inputs), rtol=1e-4, atol=1e-4)


@needs_gxx
@pytest.mark.parametrize("name", some(CASES, 2))
def test_the_text_is_right_on_the_host(name: str, tmp_path: Path) -> None:
    function, s = scheduled(name)
    inputs = inputs_of(function)
    (actual,) = run_on_host(compiler.build(s, "cuda"), inputs, tmp_path)
    np.testing.assert_allclose(actual, compiler.build(function)(*inputs), rtol=1e-4, atol=1e-4)


def drafted(function: te.Function, label: str = "C") -> Draft:
    fork = Schedule(compiler.lower(function)).fork(judged=False)[0]
    return Draft(fork, GPU, 1, tuple(fork.program.blocks))


@pytest.mark.parametrize("channels", [32, 4, 19])
def test_the_first_way_of_the_rule_is_proved_and_right(channels: int) -> None:
    function = conv(32, channels, (9, 9), (3, 3), padding=1)
    draft = drafted(function)
    draft.schedule.inline(draft.schedule.get_block("S"))
    way = next(convolution_by_windows(draft, "C"))
    assert ("in 2 parts" in way.name) == (channels == 32) and way.name.endswith("with 'Y'")
    assert way.apply(draft) == ["C", "Y"]
    assert str(draft.schedule.verify()) == "proved"
    inputs = inputs_of(function)
    module, _, _ = lower_to_kernels(draft.schedule.module.clone())
    checked = simt.run(module, inputs)
    assert checked.is_correct, [str(fault) for fault in checked.faults]
    np.testing.assert_allclose(checked.outputs[0], compiler.build(function)(*inputs), rtol=1e-3, atol=1e-3)


OTHERS: dict[str, tuple[tuple[int, ...], tuple[int, ...], Callable[..., te.Tensor]]] = {
    "grouped": ((1, 16, 8, 8), (16, 4, 3, 3), partial(te.nn.conv2d, groups=4)),
    "depthwise": ((1, 16, 8, 8), (16, 1, 3, 3), partial(te.nn.conv2d, groups=16)),
    "transposed": ((1, 16, 8, 8), (16, 8, 2, 2), partial(te.nn.conv2d_transpose, stride=2)),
    "product": ((32, 16), (16, 32), te.nn.matmul),
}


@pytest.mark.parametrize("name", OTHERS)
def test_other_blocks_are_left_to_other_rules(name: str) -> None:
    *shapes, operator = OTHERS[name]
    x, w = (te.placeholder(shape, name=letter) for shape, letter in zip(shapes, "XW", strict=True))
    draft = drafted(te.function("other", [x, w], operator(x, w, name="C")))
    assert window_read(draft.block("C")) is None and not list(convolution_by_windows(draft, "C"))
    s = draft.schedule
    with pytest.raises(ScheduleError, match="it is no convolution with a tile and a loop for each axis"):
        convolve_on_threads(s, s.get_block("C"), None, ThreadTiles([(1, 1, 1)] * draft.block("C").spatial, []))


@pytest.mark.parametrize("name", ["3x3", "filters and pixels beyond the tile", "along time"])
def test_inner_loops_have_no_conditions(name: str) -> None:
    _, s = scheduled(name)
    kernel = compiler.build(s, "cuda")
    assert isinstance(kernel, CudaKernel)
    lines = kernel.text.splitlines()
    (update,) = [n for n, line in enumerate(lines) if "C[" in line and "+=" in line]
    barrier = max(n for n, line in enumerate(lines) if "__syncthreads" in line)
    assert barrier < update and not any("if (" in line or "?" in line for line in lines[barrier : update + 1])
