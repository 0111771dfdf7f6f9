"""NVIDIA's GPUs as a target: kernels as CUDA C++."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import ClassVar

from xdsl.dialects.builtin import ModuleOp
from xdsl.dialects.func import FuncOp

from compiler.targets.arguments import Argument
from compiler.targets.cuda.kernel import CudaKernel, made
from compiler.targets.cuda.machines import machine
from compiler.targets.cuda.runtime import at_hand
from compiler.targets.gpus import GpuTarget
from compiler.targets.target import Device
from compiler.types.machines import Gpu


class CudaTarget(GpuTarget):
    """Text that a person reads, compiled by NVRTC, called by CuPy."""

    name = "cuda"
    texts = ("cuda",)
    suffixes: ClassVar[Mapping[str, str]] = {".cu": "cuda"}

    def machine(self, arch: str) -> Gpu:
        """The GPU that stands for an architecture."""
        return machine(arch)

    def at_hand(self) -> Device | None:
        """The GPU that CuPy can use."""
        here = at_hand()
        return None if here is None else Device(*here)

    def made(self, module: ModuleOp, host: FuncOp, arguments: Sequence[Argument], policy: str, arch: str) -> CudaKernel:
        """The kernels that a host function launches."""
        return made(module, host, arguments, policy, arch)
