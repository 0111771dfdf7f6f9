"""CUDA C++ on the host: the very text of kernels, compiled by g++ and run on threads. For tests alone."""

from __future__ import annotations

import ctypes
import shutil
import subprocess
from collections.abc import Sequence
from functools import cache
from hashlib import sha256
from math import prod
from pathlib import Path
from tempfile import TemporaryDirectory, mkdtemp
from typing import Any

import numpy as np
import pytest

from compiler.dialects.numbers import dtype_of
from compiler.targets.cuda import CudaKernel
from compiler.targets.cuda.emit import WORKSPACE
from compiler.targets.cuda.helpers import WARPS

HERE = Path(__file__).parent
Extents = tuple[int, int, int]
POOL = "extern __shared__ __align__(16) unsigned char pool[];"
_LINKAGE = 'extern "C" '
_TOGETHER = ("__syncthreads", "__shfl_", "load_matri", "load_transposed", "multiply_add")
"""What only threads do that wait for each other."""
needs_gxx = pytest.mark.skipif(shutil.which("g++") is None, reason="there is no g++")


def run_on_host(kernel: CudaKernel, inputs: Sequence[np.ndarray[Any, Any]], folder: Path) -> list[np.ndarray[Any, Any]]:
    """The outputs of a kernel, its launches run one after another; what it writes is poisoned before."""
    return OnHost([kernel], folder)(0, inputs)


class OnHost:
    """The texts of several kernels, compiled together, each in a namespace of its own."""

    def __init__(self, kernels: Sequence[CudaKernel], folder: Path) -> None:
        self.kernels = kernels
        parts = []
        for number, kernel in enumerate(kernels):
            text = "\n".join(line for line in _on_host(kernel.text).splitlines() if not line.startswith("#include <"))
            parts.append(f"namespace kernel_{number} {{\n{text.replace(_LINKAGE, '')}\n}}")
            parts += _launchers(kernel.text, _shapes(kernel), f"kernel_{number}::", f"launch_{number}")
        self.library = _library(parts, folder)

    def __call__(self, number: int, inputs: Sequence[np.ndarray[Any, Any]]) -> list[np.ndarray[Any, Any]]:
        """The outputs of one of the kernels, its preparation run before; temporaries are parts of one workspace."""
        kernel = self.kernels[number]
        source, arguments = kernel.source, kernel.native_arguments or kernel.arguments
        arrays = [_poisoned(a.shape, a.dtype) for a in arguments]
        outs = arrays[len(arrays) - kernel.outputs :]
        free = (n for n in range(len(arguments)) if n not in kernel.constants)
        for position, array in [*kernel.constants.items(), *zip(free, inputs, strict=False)]:
            arrays[position] = np.ascontiguousarray(array)
        arrays += [_poisoned(buffer.shape, dtype_of(buffer.element)) for buffer in source.prepared]
        workspace = _poisoned((source.workspace_bytes,), np.uint8)
        for buffer in source.temporaries:
            memory = workspace if buffer.base == WORKSPACE else arrays[buffer.base].reshape(-1).view(np.uint8)
            part = memory[buffer.offset : buffer.offset + buffer.size]
            arrays.append(part.view(dtype_of(buffer.element)).reshape(buffer.shape))
        for position, launch in enumerate(source.all_launches):
            if position == len(source.preparation):
                workspace[...] = 0xFF
            _call(self.library, f"launch_{number}_{position}", [arrays[n] for n in launch.arguments])
        return outs

    def run_blocks(self, arrays: Sequence[np.ndarray[Any, Any]], first: int, blocks: int) -> None:
        """Run some blocks of the first launch of the first kernel on arrays for its arguments."""
        arrays = [arrays[n] for n in self.kernels[0].launches[0].arguments]
        run = self.library.launch_0_0_some
        run.argtypes = [ctypes.c_void_p, ctypes.c_longlong, ctypes.c_longlong]
        run((ctypes.c_void_p * len(arrays))(*(array.ctypes.data for array in arrays)), first, blocks)


def _shapes(kernel: CudaKernel) -> list[tuple[str, Extents, Extents]]:
    return [(launch.name, launch.grid, launch.block) for launch in kernel.source.all_launches]


def _poisoned(shape: tuple[int, ...], dtype: Any) -> np.ndarray[Any, Any]:
    array = np.empty(shape, dtype)
    array.reshape(-1).view(np.uint8)[...] = 0xFF
    return array


def started(library: ctypes.CDLL, number: int, addresses: Sequence[int]) -> None:
    """Run a launch of a compiled text on arrays at addresses."""
    getattr(library, f"launch_{number}")((ctypes.c_void_p * len(addresses))(*addresses))


def _call(library: ctypes.CDLL, name: str, arrays: Sequence[np.ndarray[Any, Any]]) -> None:
    getattr(library, name)((ctypes.c_void_p * len(arrays))(*(array.ctypes.data for array in arrays)))


def compiled(text: str, launches: Sequence[tuple[str, Extents, Extents]], folder: Path) -> ctypes.CDLL:
    """The text of kernels, with functions launch_0, launch_1 ... that start them: by name, grid and block."""
    return _library([_on_host(text), *_launchers(text, launches, "", "launch")], folder)


@cache
def compiled_once(text: str, launch: tuple[str, Extents, Extents]) -> ctypes.CDLL:
    """The text of kernels with a function launch_0 that starts one of them, compiled once in a process."""
    with TemporaryDirectory() as folder:
        return compiled(text, [launch], Path(folder))


def compiled_file(kernel: CudaKernel, folder: Path) -> ctypes.CDLL:
    """The `.cu` file of a kernel, with its launcher, on the runtime of cuda_runtime.h."""
    return _library([_on_host(kernel.file_text)], folder)


def _launchers(text: str, launches: Sequence[tuple[str, Extents, Extents]], where: str, name: str) -> list[str]:
    """Functions that start kernels of a text; where threads never wait, one after another."""
    waits = any(word in text for word in _TOGETHER)
    collected = []
    for number, (kernel, grid, block) in enumerate(launches):
        what = f"{where}{kernel}, dim3{{{_three(grid)}}}, dim3{{{_three(block)}}}, arguments"
        how = f"launch({what})" if waits else f"launch_alone({what}, 0, {prod(grid)})"
        collected.append(f'extern "C" void {name}_{number}(void** arguments) {{ {how}; }}')
        some = "void** arguments, long long first, long long blocks"
        collected.append(f'extern "C" void {name}_{number}_some({some}) {{ launch_alone({what}, first, blocks); }}')
    return collected


def _library(parts: Sequence[str], folder: Path) -> ctypes.CDLL:
    source, library = folder / "kernels.cpp", folder / "kernels.so"
    head = ['#include "host_cuda.h"', WARPS["Fragment"], '#include "host_warps.h"']
    source.write_text("\n".join([*head, *parts, ""]))
    command = [*_GXX, "-shared", f"-I{_precompiled()}", f"-I{HERE}", str(source), "-o", str(library)]
    done = subprocess.run(command, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    return ctypes.CDLL(str(library))


_GXX = ("g++", "-std=c++20", "-O1", "-ffp-contract=off", "-fPIC", "-pthread")


@cache
def _precompiled() -> Path:
    """A folder with the header of all kernels and what g++ has made of it, which saves most of its time."""
    headers = sorted(HERE.glob("*.h"))
    version = subprocess.run(["g++", "--version"], capture_output=True, check=True).stdout
    key = sha256(b"".join([version, str(_GXX).encode(), *(header.read_bytes() for header in headers)]))
    folder = HERE.parents[1] / "build" / f"host_cuda-{key.hexdigest()[:16]}"
    if not folder.exists():
        folder.parent.mkdir(exist_ok=True)
        made = Path(mkdtemp(dir=folder.parent))
        for header in headers:
            shutil.copy(header, made)
        command = [*_GXX, "-x", "c++-header", "host_cuda.h", "-o", "host_cuda.h.gch"]
        done = subprocess.run(command, capture_output=True, text=True, cwd=made)
        assert done.returncode == 0, done.stderr
        try:
            made.rename(folder)
        except OSError:  # another process was first
            shutil.rmtree(made)
    return folder


def _on_host(text: str) -> str:
    """The text as g++ compiles it: what it says in a GPU's assembly is in a header."""
    for definition in WARPS.values():
        text = text.replace(definition, "")
    return text.replace(POOL, f"static __align__(16) unsigned char pool[{1 << 18}];")


def _three(extents: Extents) -> str:
    return ", ".join(map(str, extents))
