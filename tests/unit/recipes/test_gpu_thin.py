"""Products with few results on GPUs: by vectors of the matrix, in parts of k, many loads in flight."""

from __future__ import annotations

from math import prod
from pathlib import Path

import numpy as np
import pytest

import compiler
from compiler import recipes, te
from compiler.schedule import Schedule
from compiler.support.errors import ScheduleError
from compiler.targets import simt
from compiler.targets.cuda import CudaKernel, nvrtc, representative_gpu
from compiler.targets.cuda.checked import check_text, run_text
from strata.passes import lower_to_kernels
from tests.gpu_schedules import default
from tests.host_cuda import needs_gxx, run_on_host
from tests.programs import matmul
from tests.sample import some
from tools import sass

needs_nvdisasm = pytest.mark.skipif(not sass.is_available(), reason="there is no NVRTC or no nvdisasm")
needs_nvrtc = pytest.mark.skipif(not nvrtc.is_available() or not nvrtc.has_headers(), reason="there is no NVRTC")
RANDOM = np.random.default_rng(0)
SIZES = [(16, 520, 128, 4), (1, 516, 64, 8), (3, 260, 96, 8), (8, 256, 72, 8)]


def thin(m: int, n: int, k: int, steps: int, epilogue: bool = False) -> Schedule:
    a, b = te.placeholder((m, k), name="A"), te.placeholder((k, n), name="B")
    c = te.nn.matmul(a, b, name="C")
    s = Schedule(compiler.lower(te.function("thin", [a, b], te.nn.relu(c, name="D") if epilogue else c)))
    recipes.thin_on_threads(s, s.get_block("C"), s.get_block("D") if epilogue else None, 4, steps)
    return s


def built(s: Schedule) -> CudaKernel:
    kernel = compiler.build(s, "cuda")
    assert isinstance(kernel, CudaKernel)
    return kernel


@pytest.mark.parametrize("epilogue", [False, True])
@pytest.mark.parametrize(("m", "n", "k", "steps"), some(SIZES, 2))
def test_it_is_right_and_loads_vectors(m: int, n: int, k: int, steps: int, epilogue: bool) -> None:
    s = thin(m, n, k, steps, epilogue)
    assert str(s.verify()) == "proved"
    a, b = RANDOM.standard_normal((m, k), np.float32), RANDOM.standard_normal((k, n), np.float32)
    checked = simt.run(lower_to_kernels(s.module.clone())[0], [a, b])
    assert checked.is_correct, [str(fault) for fault in checked.faults]
    want = np.maximum(a @ b, 0) if epilogue else a @ b
    np.testing.assert_allclose(checked.outputs[0], want, rtol=1e-4, atol=1e-4)
    text = built(s).text
    assert "reinterpret_cast<const float4*>(&A[" in text and "reinterpret_cast<const float4*>(&B[" in text


@needs_gxx
def test_the_text_is_right_on_the_host(tmp_path: Path) -> None:
    a, b = RANDOM.standard_normal((3, 96), np.float32), RANDOM.standard_normal((96, 260), np.float32)
    (actual,) = run_on_host(built(thin(3, 260, 96, 8)), [a, b], tmp_path)
    np.testing.assert_allclose(actual, a @ b, rtol=1e-4, atol=1e-4)


@needs_nvrtc
def test_faults_of_the_text_are_named() -> None:
    """A stride that is not aligned, and a guard of the columns gone."""
    kernel = built(thin(3, 260, 96, 8))
    a, b = RANDOM.standard_normal((3, 96), np.float32), RANDOM.standard_normal((96, 260), np.float32)
    checked = check_text(kernel, [a, b], "sm_80")
    assert not checked.faults
    np.testing.assert_allclose(checked.outputs[0], a @ b, rtol=1e-4, atol=1e-4)
    assert "* 260 + bx * 256 + tx * 4" in kernel.text and "bx * 64 + tx < 65" in kernel.text
    for old, new, kind in (
        ("* 260 + bx * 256 + tx * 4", "* 259 + bx * 256 + tx * 4", "misaligned access"),
        ("bx * 64 + tx < 65", "bx * 64 + tx < 66", "access outside of memory"),
    ):
        faults = run_text(kernel, nvrtc.ptx(kernel.text.replace(old, new), "sm_80"), [a, b]).faults
        assert any(kind in fault for fault in faults), (kind, faults)


def test_other_blocks_are_refused() -> None:
    x = te.placeholder((8, 16), name="X")
    s = Schedule(compiler.lower(te.function("f", [x], te.nn.exp(x, name="Y"))))
    with pytest.raises(ScheduleError, match="thin_on_threads"):
        recipes.thin_on_threads(s, s.get_block("Y"), None)


@pytest.mark.parametrize(
    ("m", "n", "k", "blocks"),
    [(16, 4096, 4096, 216), (1, 4096, 4096, 432), (8, 4096, 4096, 216), (128, 128, 16384, 216), (96, 96, 4096, 216)],
)
def test_parts_of_k_fill_the_multiprocessors(m: int, n: int, k: int, blocks: int) -> None:
    s = default(matmul(m, n, k))
    assert str(s.verify()) == "proved"
    first, second = built(s).launches
    assert prod(first.grid) >= blocks and prod(second.block) * prod(second.grid) >= m * n


@needs_nvrtc
def test_parts_are_right() -> None:
    m, n, k = 2, 7000, 512
    kernel = built(default(matmul(m, n, k)))
    a, b = RANDOM.standard_normal((m, k), np.float32), RANDOM.standard_normal((k, n), np.float32)
    checked = check_text(kernel, [a, b], "sm_80")
    assert len(kernel.launches) == 2 and not checked.faults
    np.testing.assert_allclose(checked.outputs[0], a @ b, rtol=1e-3, atol=1e-3)


@needs_nvdisasm
@pytest.mark.parametrize("arch", ["sm_80", "sm_90"])
@pytest.mark.parametrize("rows", [1, 8, 16])
def test_four_kilobytes_are_in_flight(rows: int, arch: str) -> None:
    kernel = compiler.build(sass.WORKLOADS[f"matmul {rows}x4096x4096"](), "cuda", arch=arch, schedule="auto")
    assert isinstance(kernel, CudaKernel)
    runs = {run.kernel: run for run in sass.executed(kernel, arch)}
    run = runs[kernel.launches[0].name]
    assert sass.bytes_in_flight(run, kernel.launches[0], representative_gpu(arch)) >= 4096
    assert run.spill_bytes == 0 and run.share("FFMA") >= 0.6
