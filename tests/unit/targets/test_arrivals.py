"""The last block of a GPU's grid to arrive adds up what the others computed: right, checked, and estimated."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from xdsl.dialects import arith, gpu, scf
from xdsl.dialects.builtin import IntegerAttr, ModuleOp, i64

import compiler
from compiler import te
from compiler.dialects.grid import ArriveOp
from compiler.pipeline.loops import lower_to_kernels
from compiler.recipes.gpu.finish import ThreadTiles, loads_at_arrival
from compiler.schedule import Schedule
from compiler.targets import simt, timing
from compiler.targets.cuda import CudaKernel, nvrtc
from compiler.targets.cuda.checked import run_text
from compiler.targets.launches import read_host_function
from compiler.targets.registry import target_named
from tests.arrivals import rows_in_parts
from tests.host_cuda import needs_gxx, run_on_host

GPU = target_named("cuda").machine("sm_80")
X = np.random.default_rng(0).standard_normal((6, 32)).astype(np.float32) / 8
EXPECTED = np.exp(X.sum(axis=1))


def kernels(s: Schedule) -> ModuleOp:
    return lower_to_kernels(s.module.clone())[0]


def built(s: Schedule) -> CudaKernel:
    kernel = compiler.build(s, "cuda", arch="sm_80")
    assert isinstance(kernel, CudaKernel)
    return kernel


@pytest.mark.parametrize("rows", [6, 5], ids=["even", "ragged"])
@pytest.mark.parametrize("sample", [None, simt.BlockSample(2, 10)], ids=["all", "sampled"])
def test_the_last_block_adds_up_the_parts(rows: int, sample: simt.BlockSample | None) -> None:
    s = rows_in_parts(rows)
    assert str(s.verify()) == "proved"
    checked = simt.run(kernels(s), [X[:rows]], sample=sample, required={"Y": np.ones(rows, np.bool_)})
    assert checked.is_correct and not checked.undecided, [str(fault) for fault in checked.faults]
    is_computed = checked.written[0]
    assert is_computed.all() or sample is not None
    np.testing.assert_allclose(checked.outputs[0][is_computed], EXPECTED[:rows][is_computed], rtol=1e-5)


@needs_gxx
def test_the_text_is_right_on_the_host(tmp_path: Path) -> None:
    kernel = built(rows_in_parts())
    assert "#pragma unroll 1\n    for (int k_0" in kernel.text, (
        "all loads at once would take the registers of other blocks"
    )
    begin, sums = kernel.launches
    assert begin.begins and sums.grid == (3, 4, 1)
    np.testing.assert_allclose(run_on_host(kernel, [X], tmp_path)[0], EXPECTED, rtol=1e-5)


def _counted_less(module: ModuleOp) -> None:
    for op in module.walk():
        if isinstance(op, ArriveOp):
            op.properties["count"] = IntegerAttr(op.count.value.data - 1, i64)


def _not_zeroed(module: ModuleOp) -> None:
    first = next(op for op in module.walk() if isinstance(op, gpu.LaunchFuncOp))
    first.detach()


def _by_all(module: ModuleOp) -> None:
    branch = next(op for op in module.walk() if isinstance(op, scf.IfOp) and isinstance(op.cond.owner, ArriveOp))
    true = arith.ConstantOp.from_int_and_width(1, 1)
    branch.parent.insert_op_before(true, branch)  # type: ignore[union-attr]
    branch.operands[0] = true.result


def _after_the_arrival(module: ModuleOp) -> None:
    """The first block's sums, moved behind its arrival."""
    arrive = next(op for op in module.walk() if isinstance(op, ArriveOp))
    loop = next(op for op in arrive.parent.ops if isinstance(op, scf.ForOp))  # type: ignore[union-attr]
    loop.detach()
    arrive.parent.insert_op_after(loop, arrive)  # type: ignore[union-attr]


MUTANTS: dict[str, tuple[Callable[[ModuleOp], None], str]] = {
    "a count that is one too small": (_counted_less, "uninitialised read"),
    "counters that nobody sets to zero": (_not_zeroed, "uninitialised read"),
    "all blocks go on": (_by_all, "uninitialised read"),
    "an update behind the arrival": (_after_the_arrival, "race of a read with a write"),
}


@pytest.mark.parametrize("mutant", MUTANTS)
def test_a_fault_in_the_kernel_is_named(mutant: str) -> None:
    module = kernels(rows_in_parts())
    plant, kind = MUTANTS[mutant]
    plant(module)
    found = [fault.kind for fault in simt.run(module, [X]).faults]
    assert kind in found, found


BEGIN = "  if (threadIdx.x == 0 && threadIdx.y == 0 && threadIdx.z == 0) {\n    __threadfence();\n"
RACE = "race of a read with a write of block"
FAULTS: dict[str, tuple[str, str, str]] = {
    "no fence before": (BEGIN, BEGIN.replace("    __threadfence();\n", ""), RACE),
    "no fence behind": ("== count - 1;\n    __threadfence();\n", "== count - 1;\n", RACE),
    "a fence of the block": ("__threadfence()", "__threadfence_block()", RACE),
    "no barrier before": ("  __syncthreads();\n  if (threadIdx.x == 0", "  if (threadIdx.x == 0", RACE),
    "no barrier behind": ("  }\n  __syncthreads();\n", "  }\n", "race of a read with a write"),
    "no atomic": ("atomicInc(reinterpret_cast<unsigned*>(counter), count - 1)", "(*counter)++", "race of a write"),
    "one block less": ("arrives_last(&arrivals[bx], 4u)", "arrives_last(&arrivals[bx], 3u)", "race of a read"),
    "no zero": ("arrivals[bx * 3 + tx] = 0;", "", "read of memory that nobody has set at arrivals"),
}


@pytest.mark.skipif(not nvrtc.is_available(), reason="there is no NVRTC")
@pytest.mark.parametrize("fault", FAULTS)
def test_a_fault_in_the_text_is_named(fault: str) -> None:
    kernel = built(rows_in_parts(threads=3))
    old, new, kind = (part.replace("bx * 3", "bx * 2") for part in FAULTS[fault])
    assert old in kernel.text
    right, wrong = (
        run_text(kernel, nvrtc.ptx(text, "sm_80", True), [X]) for text in (kernel.text, kernel.text.replace(old, new))
    )
    assert not right.faults, right.faults
    assert any(found.startswith(kind) for found in wrong.faults), wrong.faults


def layers() -> tuple[te.Function, dict[str, Any]]:
    """Two convolutions whose channels are cut into parts, with different numbers of tiles."""
    x = te.placeholder((1, 32, 6, 6), name="X")
    w, v = te.placeholder((32, 32, 3, 3), name="W"), te.placeholder((64, 32, 3, 3), name="V")
    y = te.nn.relu(te.nn.conv2d(x, w, padding=1, name="h"), name="hidden")
    function = te.function("layers", [x, w, v], te.nn.relu(te.nn.conv2d(y, v, padding=1, name="c"), name="result"))
    random = np.random.default_rng(1)
    return function, {t.name: random.standard_normal(t.shape).astype(np.float32) for t in (w, v)}


@needs_gxx
def test_kernels_of_a_program_share_counters(tmp_path: Path) -> None:
    function, weights = layers()
    kernel = compiler.build(function, "cuda", arch="sm_80", schedule="auto", constants=weights)
    assert isinstance(kernel, CudaKernel)
    counting = [launch for launch in kernel.launches if launch.grid[1] > 1]
    assert len(kernel.launches) == 1 + len(counting) == 3
    assert [launch.begins for launch in kernel.launches] == [True, False, False]
    (counters,) = kernel.launches[0].arguments
    assert all(counters in launch.arguments for launch in counting)
    assert kernel.launches[0].grid[0] * kernel.launches[0].block[0] == max(launch.grid[0] for launch in counting)
    x = np.random.default_rng(2).standard_normal((1, 32, 6, 6)).astype(np.float32)
    expected = compiler.build(function, constants=weights)(x)
    np.testing.assert_allclose(run_on_host(kernel, [x], tmp_path)[0], expected, rtol=1e-4, atol=1e-4)


def test_the_estimate_counts_what_the_last_block_does_once() -> None:
    host = read_host_function(*_host(kernels(rows_in_parts())))
    work = timing.work_of(host.launches[1], {})
    assert (work.blocks, work.last_blocks) == (12, 3) and work.last
    many, few = (timing.kernel_time(work_, GPU) for work_ in (work, timing.KernelWork(**{**vars(work), "last": ()})))
    assert many.cycles > few.cycles and many.seconds - few.seconds == pytest.approx(
        (many.cycles - few.cycles) / GPU.clock
    )


def _host(module: ModuleOp) -> tuple[ModuleOp, Any]:
    from compiler.dialects.functions import find_function

    return module, find_function(module, None)


@pytest.mark.parametrize(
    ("extents", "tile", "parts", "loads"),
    [
        ((32, 7, 7), [(1, 8, 4), (1, 7, 1), (1, 2, 4)], 32, 32 * 16 // 4),
        ((32, 7, 7), [(1, 8, 4), (1, 7, 1), (1, 2, 4)], 6, 6 * 16 // 2),
        ((33, 7, 7), [(1, 8, 4), (1, 7, 1), (1, 2, 4)], 8, None),
        ((32, 7, 7), [(1, 8, 4), (1, 7, 1), (1, 2, 4)], 31, None),
    ],
    ids=["vectors of four", "vectors of two", "conditions", "too many loads"],
)
def test_whether_the_last_block_adds_up(extents: tuple[int, ...], tile: Any, parts: int, loads: int | None) -> None:
    assert loads_at_arrival(extents, ThreadTiles(tile, []), parts) == loads
