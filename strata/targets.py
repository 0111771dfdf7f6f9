"""Targets, the kernels that they make, and the facts of machines."""

from compiler.targets import simt, timing
from compiler.targets.arguments import Argument, Array
from compiler.targets.c.kernel import CKernel
from compiler.targets.cpu import Kernel, Timing
from compiler.targets.cpu.presence import Disturbance
from compiler.targets.cuda import CudaKernel
from compiler.targets.registry import target_named
from compiler.targets.target import Device, Target
from compiler.types.machines import MACHINES, Gpu, Machine, host

__all__ = [
    "MACHINES",
    "Argument",
    "Array",
    "CKernel",
    "CudaKernel",
    "Device",
    "Disturbance",
    "Gpu",
    "Kernel",
    "Machine",
    "Target",
    "Timing",
    "host",
    "simt",
    "target_named",
    "timing",
]
