"""Transposes on GPUs: tiles through shared memory, as many sectors as bytes take, no bank conflicts; faults."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import compiler
from compiler import recipes, te
from compiler.schedule import Schedule
from compiler.support.errors import ScheduleError
from compiler.targets import simt
from compiler.targets.cuda import CudaKernel, nvrtc
from compiler.targets.cuda.checked import check_text, run_text
from strata.passes import lower_to_kernels
from tests.gpu_schedules import default
from tests.host_cuda import needs_gxx, run_on_host
from tests.sample import some

needs_nvrtc = pytest.mark.skipif(not nvrtc.is_available() or not nvrtc.has_headers(), reason="there is no NVRTC")
Case = tuple[tuple[int, ...], tuple[int, ...], str]
EVEN: dict[str, Case] = {
    "a matrix": ((256, 192), (1, 0), "f32"),
    "a matrix of f16": ((256, 192), (1, 0), "f16"),
    "a batch": ((3, 96, 160), (0, 2, 1), "f32"),
    "NCHW to NHWC": ((2, 64, 56, 56), (0, 2, 3, 1), "f32"),
    "NCHW to NHWC of f16": ((2, 64, 56, 56), (0, 2, 3, 1), "f16"),
    "NHWC to NCHW": ((2, 56, 56, 64), (0, 3, 1, 2), "f32"),
    "small images": ((2, 128, 7, 7), (0, 2, 3, 1), "f32"),
    "three channels": ((2, 3, 32, 32), (0, 2, 3, 1), "f32"),
    "bshd to bhsd": ((2, 12, 4, 64), (0, 2, 1, 3), "f16"),
    "far dimensions": ((64, 3, 5, 48), (3, 1, 2, 0), "f32"),
}
ODD: dict[str, Case] = {
    "edges": ((33, 75), (1, 0), "f32"),
    "one row": ((1, 75), (1, 0), "f32"),
    "an odd batch": ((3, 5, 70, 41), (0, 1, 3, 2), "f16"),
}
NO_CONFLICTS = {"a matrix", "a matrix of f16", "a batch", "small images", "bshd to bhsd"}


def moved(case: Case) -> te.Function:
    shape, order, dtype = case
    x = te.placeholder(shape, dtype, name="X")
    return te.function("moved", [x], te.nn.transpose(x, order, name="Y"))


def array_of(case: Case) -> np.ndarray[Any, Any]:
    shape, _, dtype = case
    return (np.arange(np.prod(shape)) % 1021).reshape(shape).astype(dtype.replace("f", "float"))


@pytest.mark.parametrize("name", some([*EVEN, *ODD], 2))
def test_it_is_right_and_reads_whole_sectors(name: str) -> None:
    case = (EVEN | ODD)[name]
    s = default(moved(case))
    assert str(s.verify()) == "proved"
    array = array_of(case)
    checked = simt.run(lower_to_kernels(s.module)[0], [array])
    assert checked.is_correct, [str(fault) for fault in checked.faults]
    np.testing.assert_array_equal(checked.outputs[0], array.transpose(case[1]))
    counts = {buffer: number for (_, buffer), number in checked.counts.items()}
    if name in EVEN:
        assert all(32 * counts[buffer]["sectors"] <= 1.1 * counts[buffer]["bytes"] for buffer in ("X", "Y"))
    if name in NO_CONFLICTS:
        assert counts.get("X.shared", {"conflicts": 0})["conflicts"] == 0


def test_without_a_tile_each_read_is_a_sector() -> None:
    """What the count would say of threads that read columns, and of rows of a tile that begin in the same bank."""
    function = moved(EVEN["a matrix"])
    s = Schedule(compiler.lower(function))
    recipes.spread(s, s.get_block("Y"))
    counts = simt.run(lower_to_kernels(s.module)[0], [array_of(EVEN["a matrix"])]).counts
    assert next(each["sectors"] for (_, buffer), each in counts.items() if buffer == "X") * 4 >= 256


def built(case: Case) -> CudaKernel:
    kernel = compiler.build(moved(case), "cuda", schedule="auto")
    assert isinstance(kernel, CudaKernel)
    return kernel


@needs_gxx
def test_the_text_is_right_on_the_host(tmp_path: Path) -> None:
    array = array_of(ODD["edges"])
    (actual,) = run_on_host(built(ODD["edges"]), [array], tmp_path)
    np.testing.assert_array_equal(actual, array.T)


@needs_nvrtc
@pytest.mark.parametrize(
    ("fault", "pattern", "new", "kind"),
    [
        ("nothing", r"$", "", ""),
        ("a barrier gone", r"__syncthreads\(\);", "", "race"),
        ("an index off by one", r"\]\[(tx % 32)\] = X", r"][\1 + 1] = X", "set"),
        ("no guard of the store", r"if \([^\n]*\{\n\s+Y\[", "if (true) {\n      Y[", "access outside of memory"),
    ],
)
def test_planted_faults_are_named(fault: str, pattern: str, new: str, kind: str) -> None:
    case = ODD["edges"] if "guard" in fault else ((64, 96), (1, 0), "f32")
    kernel, array = built(case), array_of(case)
    assert re.search(pattern, kernel.text), kernel.text
    text = re.sub(pattern, new, kernel.text, count=1)
    faults = run_text(kernel, nvrtc.ptx(text, "sm_80"), [array]).faults
    assert any(kind in each for each in faults) if kind else not faults, faults
    np.testing.assert_array_equal(check_text(kernel, [array], "sm_80").outputs[0], array.T)


def test_other_blocks_are_refused() -> None:
    x = te.placeholder((8, 16), name="X")
    s = Schedule(compiler.lower(te.function("f", [x], te.nn.exp(x, name="Y"))))
    with pytest.raises(ScheduleError, match="it is no elementwise transpose"):
        recipes.transpose_on_threads(s, s.get_block("Y"))
