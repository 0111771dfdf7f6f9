"""CUDA text on oclgrind, which interprets it: races, invalid accesses, uninitialised values, divergent barriers.

translation.py   the text as OpenCL C
cuda.cl          what of CUDA that text uses, with C for what a GPU has in assembly
device.py        a process that runs it
narrow.py        conversions of f16 and bf16, for translation.py
warps.py         shuffles of some warps, for translation.py
reports.py       what oclgrind reports, with lines of the text
kernels.py       kernels that tests share
"""

from __future__ import annotations

import os
import pickle
import shutil
import subprocess
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from math import prod
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from compiler.dialects.numbers import dtype_of
from compiler.targets.cuda import CudaKernel
from tests.oclgrind.reports import Fault, faults
from tests.oclgrind.translation import SCRATCH, Translation, translated

Array = np.ndarray[Any, Any]
HERE = Path(__file__).parent
SECONDS = 300
"""How long the runs of a text may take."""
CHECKS = {
    "OCLGRIND_DATA_RACES": "1",
    "OCLGRIND_UNINITIALIZED": "1",
    "OCLGRIND_MAX_ERRORS": "1000",
    "OCLGRIND_LOCAL_MEM_SIZE": str(1 << 18),
    "OCLGRIND_DISABLE_PCH": "1",
}


def library() -> str | None:
    """oclgrind's OpenCL, beside the command; None where it is not installed."""
    command = shutil.which("oclgrind")
    path = Path(command).resolve().parents[1] / "lib/oclgrind/liboclgrind-rt.so" if command else None
    return str(path) if path is not None and path.exists() else None


needs_oclgrind = pytest.mark.skipif(library() is None, reason="there is no oclgrind")


class OclgrindError(Exception):
    """Why a text does not run on oclgrind."""


@dataclass(frozen=True)
class Run:
    """The outputs of a kernel, and what oclgrind reports of its run."""

    outputs: list[Array]
    faults: list[Fault]


def run(kernel: CudaKernel, inputs: Sequence[Array], text: str | None = None) -> Run:
    """Run a kernel, or another text in its place, on one list of inputs."""
    (only,) = run_all(kernel, [inputs], text)
    return only


def run_all(kernel: CudaKernel, runs: Sequence[Sequence[Array]], text: str | None = None) -> list[Run]:
    """Run a kernel on several lists of inputs. What it writes is not initialised. Raises OclgrindError."""
    text = kernel.text if text is None else text
    translation = translated(text, kernel.launches)
    count = len(kernel.arguments) - kernel.outputs
    outputs = [(a.shape, np.dtype(a.dtype)) for a in kernel.arguments[count:]]
    unset = [*outputs, *((t.shape, np.dtype(dtype_of(t.element))) for t in kernel.source.temporaries)]
    sizes = [prod(shape) * dtype.itemsize for shape, dtype in unset]
    buffers = [[*_buffers(kernel, inputs, sizes), _scratch_bytes(translation)] for inputs in runs]
    first, scratch = len(buffers[0]) - 1 - len(unset), len(buffers[0]) - 1
    launches = [
        (name, grid, block, (*arguments, scratch) if exchanges else arguments)
        for name, grid, block, arguments, exchanges in translation.launches
    ]
    contents, reports = _answer({"source": translation.source, "launches": launches, "runs": buffers})
    return [
        Run([np.frombuffer(each[first + n], d).reshape(s) for n, (s, d) in enumerate(outputs)], faults(report, text))
        for each, report in zip(contents, reports, strict=True)
    ]


def _scratch_bytes(translation: Translation) -> int:
    threads = [prod(grid) * prod(block) for _, grid, block, _, exchanges in translation.launches if exchanges]
    return SCRATCH * max(threads, default=0)


def _buffers(kernel: CudaKernel, inputs: Sequence[Array], sizes: Sequence[int]) -> list[bytes | int]:
    """Bytes of inputs and constants, then the sizes of what the kernel writes."""
    buffers: list[bytes | int] = [np.ascontiguousarray(array).tobytes() for array in inputs]
    buffers += sizes[: kernel.outputs]
    for position, constant in sorted(kernel.constants.items()):
        buffers.insert(position, constant.tobytes())
    return [*buffers, *sizes[kernel.outputs :]]


def _answer(job: dict[str, Any]) -> tuple[list[list[bytes]], list[str]]:
    command = [sys.executable, "-S", str(HERE / "device.py"), str(library())]
    environment = {**os.environ, **CHECKS}
    try:
        done = subprocess.run(command, input=pickle.dumps(job), capture_output=True, env=environment, timeout=SECONDS)
    except subprocess.TimeoutExpired as error:
        raise OclgrindError(f"it takes longer than {SECONDS} seconds") from error
    reports = done.stderr.decode()
    if done.returncode:
        raise OclgrindError(f"status {done.returncode}: {reports[-4000:]}")
    refusal, contents = pickle.loads(done.stdout)
    if refusal:
        raise OclgrindError(f"it does not compile:\n{refusal}")
    return contents, reports.split("run of inputs\n")[1:]
