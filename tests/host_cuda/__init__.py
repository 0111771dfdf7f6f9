"""CUDA C++ on the host: the very text of kernels, compiled by g++ and run on threads. For tests alone."""

from __future__ import annotations

import ctypes
import shutil
import subprocess
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from compiler.interpret.numbers import dtype_of
from compiler.targets.cuda import CudaKernel
from compiler.targets.cuda.helpers import WARPS

HERE = Path(__file__).parent
Extents = tuple[int, int, int]
POOL = "extern __shared__ __align__(16) unsigned char pool[];"
needs_gxx = pytest.mark.skipif(shutil.which("g++") is None, reason="there is no g++")


def run_on_host(kernel: CudaKernel, inputs: Sequence[np.ndarray[Any, Any]], folder: Path) -> list[np.ndarray[Any, Any]]:
    """The outputs of a kernel, its launches run one after another; what it writes is poisoned before."""
    library = compiled(kernel.text, [(one.name, one.grid, one.block) for one in kernel.launches], folder)
    count = len(kernel.arguments) - kernel.outputs
    outs = [_poisoned(a.shape, a.dtype) for a in kernel.arguments[count:]]
    kept = [_poisoned(shape, dtype_of(element)) for element, shape in kernel.source.temporaries]
    arrays = [*(np.ascontiguousarray(array) for array in inputs), *outs, *kept]
    for number, launch in enumerate(kernel.launches):
        started(library, number, [arrays[n] for n in launch.arguments])
    return outs


def _poisoned(shape: tuple[int, ...], dtype: Any) -> np.ndarray[Any, Any]:
    array = np.empty(shape, dtype)
    array.view(np.uint8).reshape(-1)[...] = 0xFF
    return array


def started(library: ctypes.CDLL, number: int, arrays: Sequence[np.ndarray[Any, Any]]) -> None:
    """Run a launch of a compiled text."""
    getattr(library, f"launch_{number}")((ctypes.c_void_p * len(arrays))(*(array.ctypes.data for array in arrays)))


def compiled(text: str, launches: Sequence[tuple[str, Extents, Extents]], folder: Path) -> ctypes.CDLL:
    """The text of kernels, with functions launch_0, launch_1 ... that start them: by name, grid and block."""
    text = _without_assembly(text).replace(POOL, f"static __align__(16) unsigned char pool[{1 << 18}];")
    launchers = [
        f'extern "C" void launch_{number}(void** arguments) {{ launch({name}, dim3{{{_three(grid)}}}, '
        f"dim3{{{_three(block)}}}, arguments); }}"
        for number, (name, grid, block) in enumerate(launches)
    ]
    source, library = folder / "kernels.cpp", folder / "kernels.so"
    source.write_text("\n".join(['#include "host_cuda.h"', text, *launchers, ""]))
    command = ["g++", "-std=c++20", "-O1", "-ffp-contract=off", "-shared", "-fPIC", "-pthread", f"-I{HERE}"]
    done = subprocess.run([*command, str(source), "-o", str(library)], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    return ctypes.CDLL(str(library))


def _without_assembly(text: str) -> str:
    """The text with what it says in a GPU's assembly left to a header: where it has none, that is not needed."""
    shuffles = "__shfl_" in text
    for name, definition in WARPS.items():
        text = text.replace(definition, '#include "host_warps.h"' if name != "Fragment" else definition)
    return (
        f'{WARPS["Fragment"]}\n#include "host_warps.h"\n{text}' if shuffles and "struct Fragment" not in text else text
    )


def _three(extents: Extents) -> str:
    return ", ".join(map(str, extents))
