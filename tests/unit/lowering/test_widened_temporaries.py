"""Temporaries that grow so that ragged tiles read them without clamping an index."""

from __future__ import annotations

import numpy as np

import compiler
from compiler import recipes, te
from compiler.lowering.loop_to_low.widened import enlarge_temporaries
from compiler.schedule import Schedule


def _tiled(width: int, pixels: int) -> Schedule:
    X, W = te.placeholder((1, 3, 5, width), "f32", "X"), te.placeholder((8, 3, 3, 3), "f32", "W")
    s = Schedule(compiler.lower(te.function("f", [X, W], te.nn.conv2d(X, W, padding=1))))
    recipes.implicit_gemm(s, s.get_block("conv2d"), None, pixels=pixels, filters=8, channels=3, lanes=4)
    return s


def test_a_ragged_tile_reads_a_longer_border_and_no_index_is_clamped() -> None:
    s = _tiled(14, 4)
    assert s.program.buffers["X.pad"].shape[-1] == 16
    assert enlarge_temporaries(s.program).buffers["X.pad"].shape[-1] == 18, "four tiles of four, and two columns behind"
    kernel = compiler.build(s)
    assert "minsi" not in kernel.text("low")
    random = np.random.default_rng(0)
    x, w = (random.standard_normal(shape).astype(np.float32) for shape in ((1, 3, 5, 14), (8, 3, 3, 3)))
    windows = np.lib.stride_tricks.sliding_window_view(np.pad(x, ((0, 0), (0, 0), (1, 1), (1, 1))), (3, 3), (2, 3))
    np.testing.assert_allclose(kernel(x, w), np.einsum("nchwrs,ocrs->nohw", windows, w), rtol=1e-4, atol=1e-4)


def test_what_is_whole_stays_and_what_would_double_does_too() -> None:
    even, small = _tiled(12, 4), _tiled(5, 4)
    assert enlarge_temporaries(even.program) == even.program
    assert enlarge_temporaries(small.program).buffers["X.pad"].shape[-1] == 10, "8 and two, of 7"
    tiny = _tiled(9, 8)
    assert enlarge_temporaries(tiny.program) == tiny.program, "18 of 11 is more than half as much again"
