"""Kernels run as PTX on numpy, without a GPU: NVRTC compiles their text, `compiler.targets.ptx` runs it with checks."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from compiler.dialects.numbers import dtype_of
from compiler.targets.arguments import Array
from compiler.targets.cuda import nvrtc
from compiler.targets.cuda.emit import WORKSPACE, DeviceTemporary
from compiler.targets.cuda.kernel import CudaKernel
from compiler.targets.gpus import TextCheck
from compiler.targets.ptx import PtxBuffer, PtxLaunch, run_ptx
from compiler.types.policies import POLICIES


def check_text(kernel: CudaKernel, inputs: Sequence[Array], arch: str | None = None) -> TextCheck:
    """Compile a kernel's text to PTX for `arch` (None: the kernel's) and run it on inputs, in the order of a call,
    without a GPU. Raises TargetError without NVRTC, for text that it refuses, and for an architecture that lacks a
    feature or whose limits a launch exceeds; PtxError for an instruction that the interpreter lacks."""
    kernel.source.check(arch or kernel.arch)
    text = nvrtc.ptx(kernel.text, arch or kernel.arch, POLICIES[kernel.policy].fused)
    return run_text(kernel, text, inputs)


def run_text(kernel: CudaKernel, text: str, inputs: Sequence[Array]) -> TextCheck:
    """Run the PTX `text` of a kernel on inputs; outputs and buffers between kernels are uninitialised at first.
    `inputs` are those of a call, without constants. If there is no other fault, an output with an element that no
    thread writes is one."""
    arguments = kernel.native_arguments or kernel.arguments
    given = iter(inputs)
    buffers, results = [], []
    for position, argument in enumerate(arguments):
        if position in kernel.constants:
            buffers.append(PtxBuffer(argument.name, np.asarray(kernel.constants[position])))
        elif (array := next(given, None)) is not None:
            buffers.append(PtxBuffer(argument.name, np.asarray(array, argument.dtype)))
        else:
            results.append(position)
            buffers.append(PtxBuffer(argument.name, np.zeros(argument.shape, argument.dtype), False))
    between = (*kernel.source.prepared, *kernel.source.temporaries)
    launches = [
        PtxLaunch(launch.name, launch.grid, launch.block, launch.arguments, launch.shared_bytes)
        for launch in kernel.source.all_launches
    ]
    result = run_ptx(text, launches, [*buffers, *map(_between, between)])
    unwritten = [_unwritten(arguments[n].name, result.written[n]) for n in results if not result.written[n].all()]
    faults = [*map(str, result.faults), *(() if result.faults else unwritten)]
    return TextCheck(tuple(result.arrays[n] for n in results), tuple(faults))


def _between(temporary: DeviceTemporary) -> PtxBuffer:
    """Return the interpreter's buffer for a temporary: memory of its own, also if the workspace plan overlaps it with
    others, or a view of its base."""
    array = np.zeros(temporary.shape, dtype_of(temporary.element))
    if temporary.base == WORKSPACE:
        return PtxBuffer(temporary.name, array, False)
    return PtxBuffer(temporary.name, array, False, temporary.base, temporary.offset)


def _unwritten(name: str, written: Array) -> str:
    position = np.unravel_index(int(np.argmin(written)), written.shape) if written.shape else ()
    return f"unwritten element at {name}[{', '.join(str(int(n)) for n in position)}]: no thread writes it"
