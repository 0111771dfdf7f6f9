"""Convolutions on tensor cores: filters times pixels, windows gathered with zeros where they leave the image."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

import compiler
from compiler import te
from compiler.recipes import WarpTiles, convolve_on_warps
from compiler.schedule import Schedule
from compiler.support.errors import ScheduleError
from compiler.targets import simt
from compiler.targets.cuda import ARCHITECTURES, CudaKernel, nvrtc
from compiler.targets.registry import target_named
from tests.host_cuda import needs_gxx, run_on_host
from tests.sample import some
from tests.unit.targets.ptx.kept import parsed, text_of
from tests.unit.targets.test_warps import built, inputs, kernels

Array = np.ndarray[Any, Any]
needs_nvrtc = pytest.mark.skipif(not nvrtc.is_available() or not nvrtc.has_headers(), reason="there is no NVRTC")


def convolution(
    o: int = 32,
    c: int = 16,
    h: int = 10,
    taps: int = 3,
    n: int = 1,
    dtype: str = "f16",
    after: bool = False,
    **more: Any,
) -> te.Function:
    x, w = te.placeholder((n, c, h, h), dtype, name="X"), te.placeholder((o, c, taps, taps), dtype, name="W")
    inputs, y = [x, w], te.nn.conv2d(x, w, dtype="f32", name="C", **more)
    if after:
        b = te.placeholder((1, o, 1, 1), name="b")
        inputs, y = [*inputs, b], te.nn.relu(te.nn.add(y, b), name="Y")
    return te.function("conv", inputs, y)


CASES: dict[str, tuple[dict[str, Any], int]] = {
    "3x3": ({"padding": 1}, 2),
    "3x3, few pixels, two images": ({"o": 48, "c": 32, "h": 7, "n": 2, "padding": 1}, 2),
    "3x3 of bf16, stride 2, with bias and relu": (
        {"h": 11, "padding": 1, "stride": 2, "dtype": "bf16", "after": True},
        2,
    ),
    "3x3, dilated": ({"h": 9, "padding": 2, "dilation": 2}, 2),
    "1x1": ({"c": 48, "h": 12, "taps": 1}, 3),
    "1x1, odd rows, odd filters": ({"o": 35, "h": 7, "taps": 1}, 2),
    "1x1, stride 2": ({"h": 11, "taps": 1, "stride": 2}, 2),
}


def case(name: str) -> tuple[te.Function, Schedule]:
    facts, stages = CASES[name]
    function = convolution(**facts)
    s = Schedule(compiler.lower(function))
    first, *others = s.program.blocks
    for label in others[:-1]:
        s.inline(s.get_block(label))
    epilogue = s.get_block(others[-1]) if others else None
    convolve_on_warps(s, s.get_block(first), epilogue, WarpTiles((2, 2), (1, 2), 1, twice=True, stages=stages))
    return function, s


def expected(name: str, x: Array, w: Array, *bias: Array) -> Array:
    facts, _ = CASES[name]
    p, step, apart = (facts.get(key, default) for key, default in (("padding", 0), ("stride", 1), ("dilation", 1)))
    x, w = np.pad(x.astype(np.float32), [(0, 0), (0, 0), (p, p), (p, p)]), w.astype(np.float32)
    size = (w.shape[2] - 1) * apart + 1
    views = np.lib.stride_tricks.sliding_window_view(x, (size, size), axis=(2, 3))
    y = np.einsum("nchwij,kcij->nkhw", views[:, :, ::step, ::step, ::apart, ::apart], w)
    return np.maximum(y + bias[0], 0) if bias else y


@pytest.mark.sampled
@pytest.mark.parametrize("name", CASES)
def test_convolutions_are_proved_and_without_a_fault(name: str) -> None:
    function, s = case(name)
    assert str(s.verify()) == "proved"
    given = inputs(function)
    checked = simt.run(kernels(s), given)
    assert checked.is_correct, [str(fault) for fault in checked.faults]
    np.testing.assert_allclose(checked.outputs[0], expected(name, *given), rtol=1e-3, atol=1e-3)


@needs_gxx
@pytest.mark.parametrize("name", some(CASES, 2))
def test_the_text_is_right_on_the_host(name: str, tmp_path: Path) -> None:
    function, s = case(name)
    given = inputs(function)
    (on_host,) = run_on_host(built(s), given, tmp_path)
    np.testing.assert_allclose(on_host, expected(name, *given), rtol=1e-3, atol=1e-3)


@needs_nvrtc
@pytest.mark.parametrize("name", some(CASES, 2))
def test_the_ptx_is_right_and_spills_nothing(name: str) -> None:
    function, s = case(name)
    given, kernel = inputs(function), built(s)
    checked = target_named("cuda").check_text(kernel, given, "sm_80")
    assert not checked.faults, [str(fault) for fault in checked.faults]
    np.testing.assert_allclose(checked.outputs[0], expected(name, *given), rtol=1e-3, atol=1e-3)
    assert all(r.spill_bytes == r.stack_bytes == 0 for r in kernel.resources("sm_80").values())


@needs_nvrtc
@pytest.mark.parametrize(
    ("old", "new", "kind"),
    [("__half(0.0f)", "__half(1.0f)", ""), (" && v_4)", ")", ""), ("__syncthreads();", "", "race")],
)
def test_faults_of_the_text_are_seen(old: str, new: str, kind: str) -> None:
    """Another value beyond the border, a condition too few, and missing barriers."""
    function, s = case("3x3")
    kernel, given = built(s), inputs(function)
    assert old in kernel.text
    ran = parsed(text_of(kernel, kernel.text.replace(old, new))).run(given)
    if kind:
        assert any(kind in fault.kind for fault in ran.faults), [fault.kind for fault in ran.faults]
    else:
        assert ran.faults or not np.allclose(ran.arrays[0], expected("3x3", *given), rtol=1e-2, atol=1e-2)


@pytest.mark.sampled
@pytest.mark.parametrize("arch", some(ARCHITECTURES, 2))
def test_they_are_the_default(arch: str) -> None:
    kernel = compiler.build(convolution(128, 16, 56, padding=1), "cuda", arch=arch, schedule="auto")
    assert isinstance(kernel, CudaKernel)
    assert ("multiply_add(" in kernel.text) == (arch != "sm_70")


def test_other_blocks_are_refused() -> None:
    x, w = te.placeholder((1, 8, 8, 8), "f16", name="X"), te.placeholder((8, 1, 3, 3), "f16", name="W")
    s = Schedule(
        compiler.lower(te.function("f", [x, w], te.nn.conv2d(x, w, groups=8, padding=1, dtype="f32", name="C")))
    )
    with pytest.raises(ScheduleError, match="it is no convolution of images, filters and pixels in this order"):
        convolve_on_warps(s, s.get_block("C"), None, WarpTiles((1, 1), (1, 2), 1))
