"""Kernels that run and are measured, on a pretended GPU: its arrays lie on the host, and g++ compiles its kernels."""

from __future__ import annotations

import copy
import pickle
from dataclasses import replace
from fractions import Fraction
from pathlib import Path

import numpy as np
import pytest

import compiler
from benchmarks.gpu import case, tuned
from compiler import recipes, te
from compiler.autotune.measure.limits import Limits, Sampling
from compiler.autotune.measure.measurer import Measurer
from compiler.autotune.options import TuningOptions
from compiler.autotune.task import SearchTask
from compiler.database.outcome import MEASURED
from compiler.driver.reference.subject import Subject
from compiler.pipeline.loops import lower
from compiler.recipes import ThreadTiles
from compiler.schedule import Schedule
from compiler.support.errors import InputError, TargetError
from compiler.targets.cuda.helpers import FIRST_ARCH
from compiler.targets.registry import target_named
from tests.gpu_schedules import product
from tests.host_cuda import needs_gxx

pytestmark = needs_gxx


def _tiled(m: int, n: int, k: int, panel: int = 4) -> Schedule:
    s = Schedule(lower(product(m, n, k)))
    recipes.tile_on_threads(s, s.get_block("C"), None, ThreadTiles([(1, 4, 2), (1, 4, 1)], [panel]))
    return s


def test_without_a_gpu_there_is_a_sentence() -> None:
    assert target_named("cuda").local_device() is None
    with pytest.raises(TargetError, match=r"CuPy, which is not installed|there is no GPU"):
        compiler.build(_tiled(8, 8, 8), "cuda")(np.ones((8, 8), np.float32), np.ones((8, 8), np.float32))


def test_a_kernel_is_called_with_arrays_of_the_host(gpu: None) -> None:
    a, b = (np.random.default_rng(0).standard_normal((16, 16)).astype(np.float32) for _ in range(2))
    kernel = compiler.build(_tiled(16, 16, 16), "cuda")
    np.testing.assert_allclose(kernel(a, b).array, a @ b, rtol=1e-4, atol=1e-4)
    with pytest.raises(TargetError, match=r"'A' is float32\[4, 4\], expected float32\[16, 16\]"):
        kernel(a[:4, :4].copy(), b)
    with pytest.raises(TargetError, match="takes 2 arrays, got 1"):
        kernel(a)
    with pytest.raises(TargetError, match="expected float32"):
        kernel(a, b, out=np.empty((3,)))


def test_a_kernel_is_data_after_a_call_too(gpu: None) -> None:
    a, b = (np.random.default_rng(0).standard_normal((8, 8)).astype(np.float32) for _ in range(2))
    kernel = compiler.build(_tiled(8, 8, 8), "cuda")
    kernel(a, b)
    for again in (pickle.loads(pickle.dumps(kernel)), copy.deepcopy(kernel)):
        np.testing.assert_allclose(again(a, b).array, a @ b, rtol=1e-4, atol=1e-4)
    with pytest.raises(TypeError, match="their CudaKernel can be"):
        pickle.dumps(kernel._loaded)
    with pytest.raises(TypeError, match="`on_device` of their kernel"):
        copy.copy(kernel.on_device())


def test_further_calls_launch_from_a_prepared_list(gpu: None, monkeypatch: pytest.MonkeyPatch) -> None:
    """GPUs are counted once, launches prepared once a stream; other arrays still take part in the next call."""
    import cupy

    from compiler.targets.cuda.runtime import LoadedKernels

    a, b, c = (np.random.default_rng(0).standard_normal((8, 8)).astype(np.float32) for _ in range(3))
    kernel = compiler.build(_tiled(8, 8, 8), "cuda")
    kernel(a, b)

    def never(*arguments: object) -> None:
        raise AssertionError("this was done for the first call")

    monkeypatch.setattr(cupy.cuda.runtime, "getDeviceCount", never)
    monkeypatch.setattr(LoadedKernels, "_list", never)
    np.testing.assert_allclose(kernel(a, c).array, a @ c, rtol=1e-4, atol=1e-4)
    monkeypatch.undo()
    with cupy.cuda.Stream():
        np.testing.assert_allclose(kernel(c, b).array, c @ b, rtol=1e-4, atol=1e-4)


def _measurer(tmp_path: Path) -> tuple[Measurer, str]:
    s = _tiled(16, 16, 8)
    limits = Limits(sampling=Sampling(min_seconds=0.001, min_samples=2, max_samples=3))
    return Measurer(Subject(str(s.original), None, "contract", 1, 0, "cuda", "sm_80"), limits, 1), str(s.script)


def test_arrays_that_begin_anywhere(gpu: None) -> None:
    """Vectors are loaded from multiples of 16 bytes: an input elsewhere is copied, an output elsewhere refused."""
    import cupy

    kernel = compiler.build(_tiled(8, 8, 8), "cuda")
    pool = cupy.empty((2, 200), np.float32).array
    a, b, c = (cupy.ndarray(pool[0][1 + 64 * n :][:64].reshape(8, 8)) for n in range(3))
    np.copyto(pool, np.random.default_rng(0).standard_normal(pool.shape, np.float32))
    np.testing.assert_allclose(kernel(a, b).array, a.array @ b.array, rtol=1e-4, atol=1e-5)
    with pytest.raises(TargetError, match="'C' does not begin at a multiple of 16 bytes"):
        kernel(a, b, out=c)
    with pytest.raises(TargetError, match="'C' is not on the device"):
        kernel(a, b, out=np.empty((8, 8), np.float32))


def test_what_cupy_refuses_is_a_sentence(gpu: None, monkeypatch: pytest.MonkeyPatch) -> None:
    kernel, ones_array = compiler.build(_tiled(8, 8, 8), "cuda"), np.ones((8, 8), np.float32)
    wrong = replace(kernel, source=replace(kernel.source, parts=("#error no",)))
    with pytest.raises(TargetError, match=r"the kernels cannot be loaded on sm_80: strata.cu\(1\): error"):
        wrong(ones_array, ones_array)
    (launch,) = kernel.launches
    large = replace(kernel, source=replace(kernel.source, launches=(replace(launch, shared_bytes=120 << 10),)))
    with pytest.raises(TargetError, match="kernel product_C_local cannot be started: CUDA_ERROR_INVALID_VALUE"):
        large(ones_array, ones_array)
    larger = replace(kernel, source=replace(kernel.source, launches=(replace(launch, shared_bytes=1 << 20),)))
    with pytest.raises(TargetError, match="bytes of shared memory a block, more than 166912 on sm_80"):
        larger(ones_array, ones_array)
    monkeypatch.setitem(FIRST_ARCH, "Fragment", ("products of small matrices", "sm_90"))
    newer = replace(kernel, source=replace(kernel.source, helpers=("Fragment",)))
    with pytest.raises(TargetError, match="sm_80 has no products of small matrices: that begins with sm_90"):
        newer(ones_array, ones_array)


def test_a_fault_of_the_device_is_an_outcome_and_the_next_is_measured(
    gpu: None, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    planted = tmp_path / "fault"
    planted.touch()
    monkeypatch.setenv("PRETENDED_FAULT", str(planted))
    measurer, script = _measurer(tmp_path)
    with measurer:
        ((_, wrong),) = measurer.measure([script])
        assert wrong.kind == "crash" and "cudaErrorIllegalAddress" in wrong.reason
        ((_, right),) = measurer.measure([script])
        assert right.kind == MEASURED and 2 <= len(right.seconds) <= 3 and set(right.rates) == {1.0}
        again = measurer.compare([script, script], 2)
        assert [len(outcome.seconds) for outcome in again] == [2, 2] and all(outcome.ok for outcome in again)


def test_a_task_is_measured_on_the_gpu_at_hand(gpu: None, tmp_path: Path) -> None:
    task = SearchTask(product(16, 16, 8), target="cuda")
    assert task.arch == "sm_80" and task.key.machine == "pretended GPU"
    second = SearchTask(product(16, 16, 8), target="cuda", arch="sm_90")
    assert second.key.machine == "H100, sm_90, estimated"
    best = task.tune(TuningOptions(trials=2, database=tmp_path / "gpu.db", builders=1))
    assert best is not None and best.outcome.kind == MEASURED and best.outcome.cost > 0


def test_the_benchmark_measures_on_the_gpu_at_hand(gpu: None, tmp_path: Path) -> None:
    """Halves on what stands for tensor cores; torch has no such GPU."""
    actual = tuned(case("matmul_f16:32x32x32", Fraction(1)), None, 2, 60.0, tmp_path)
    assert actual.measured and actual.where == "pretended GPU" and actual.seconds > 0 and actual.others == {}
    assert actual.name == "matmul_f16:32x32x32" and actual.kernels == 1
    with pytest.raises(InputError, match="no workload 'matmul_f17'"):
        case("matmul_f17:32x32x32", Fraction(1))


def test_an_array_that_means_more_than_its_elements(gpu: None) -> None:
    kernel = compiler.build(_tiled(8, 8, 8), "cuda")
    a = np.ones((8, 8), np.float32)
    with pytest.raises(TargetError, match=r"argument '\w+' is a MaskedArray: only its elements would be seen"):
        kernel(np.ma.masked_array(a, a > 0), a)


def test_constants_of_a_program(gpu: None) -> None:
    import cupy

    random = np.random.default_rng(0)
    w, table = random.standard_normal((48, 32)).astype(np.float32), random.standard_normal(32).astype(np.float16)
    x, weights, scale = te.placeholder((8, 48), name="X"), te.constant(w, name="W"), te.constant(table, name="T")
    y = te.nn.matmul(x, weights, name="Y")
    f = te.function("f", [x], te.compute((8, 32), lambda i, j: y[i, j] * te.cast(scale[j], "f32"), name="Z"))
    s = Schedule(lower(f))
    for label in ("Y", "Z"):
        i, j = s.get_loops(s.get_block(label))[:2]
        s.bind(i, "block_x")
        s.bind(j, "thread_x")
    kernel = compiler.build(s, "cuda")
    assert [a.name for a in kernel.arguments] == ["X", "Z"] and "__constant__" in kernel.text
    given = random.standard_normal((8, 48)).astype(np.float32)
    want = given @ w * table.astype(np.float32)
    for _ in range(2):
        np.testing.assert_allclose(cupy.asnumpy(kernel(given)), want, rtol=1e-4, atol=1e-4)
    unbound = compiler.build(f, "cuda")
    np.testing.assert_allclose(cupy.asnumpy(unbound(given)), want, rtol=1e-4, atol=1e-4)
