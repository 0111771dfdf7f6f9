"""NVIDIA's GPUs as a target: kernels as CUDA C++."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import ClassVar

from xdsl.dialects.builtin import ModuleOp
from xdsl.dialects.func import FuncOp

from compiler.graph.main import Main
from compiler.targets.arguments import Argument, Array
from compiler.targets.cuda.checked import check_text
from compiler.targets.cuda.kernel import CudaKernel, make_kernel
from compiler.targets.cuda.machines import representative_gpu
from compiler.targets.cuda.programs import CudaProgram, join
from compiler.targets.cuda.runtime import local_gpu
from compiler.targets.gpus import GpuTarget, TextCheck
from compiler.targets.launches import ALIGNMENT
from compiler.targets.target import AnyKernel, Device, JoinedParts
from compiler.types.machines import Gpu


class CudaTarget(GpuTarget):
    """NVIDIA GPUs by CUDA C++, NVRTC and CuPy."""

    name = "cuda"
    texts = ("cuda", "launches")
    program_kind = CudaProgram
    alignment = ALIGNMENT
    suffixes: ClassVar[Mapping[str, str]] = {".cu": "cuda", ".json": "launches"}

    def machine(self, arch: str) -> Gpu:
        """Return the model of the local GPU if it has this architecture, else that of the architecture. Raises
        TargetError for an architecture without a model."""
        gpu = local_gpu()
        return gpu if gpu is not None and gpu.arch == arch else representative_gpu(arch)

    def local_device(self) -> Device | None:
        """Return the GPU that CuPy uses; None if there is none."""
        gpu = local_gpu()
        return None if gpu is None else Device(gpu.name, gpu.arch)

    def make_kernel(
        self, module: ModuleOp, host: FuncOp, arguments: Sequence[Argument], policy: str, arch: str
    ) -> CudaKernel:
        """Write the kernels that the function `host` of a module launches, with its constants bound to arrays. Raises
        LoweringError for an op that CUDA C++ lacks, TargetError for a feature that the architecture lacks and for
        limits that a launch exceeds."""
        return make_kernel(module, host, arguments, policy, arch)

    def join(self, main: Main, parts: JoinedParts, arch: str) -> CudaProgram:
        """Return the program that launches the kernels of several functions, in main's order."""
        return join(main, parts, arch)

    def check_text(self, kernel: AnyKernel, inputs: Sequence[Array], arch: str) -> TextCheck:
        """Compile a kernel's text to PTX, and run it on inputs by the interpreter. Raises TargetError without NVRTC,
        for text that it refuses, and for an architecture that lacks a feature or whose limits a launch exceeds;
        PtxError for an instruction that the interpreter lacks."""
        assert isinstance(kernel, CudaKernel)
        return check_text(kernel, inputs, arch)

    def text(self, kernel: AnyKernel, name: str) -> str:
        """Return the text of a kernel's `.cu` file; for the name `launches`, its host interface as JSON instead."""
        assert isinstance(kernel, CudaKernel)
        return kernel.interface.json() if name == "launches" else kernel.file_text
