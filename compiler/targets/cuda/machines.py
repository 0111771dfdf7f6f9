"""The GPU models that kernels are tuned for, one for each architecture.

Source: NVIDIA's CUDA C++ Programming Guide, "Technical Specifications per Compute Capability", and the data sheets of
the products that the models are named after.
"""

from __future__ import annotations

from dataclasses import replace

from compiler.support.errors import TargetError
from compiler.types.machines import Gpu

KIB = 1 << 10
MACHINES = {
    gpu.arch: gpu
    for gpu in (
        Gpu("T4", "sm_75", 40, 1024, 16, 64 * KIB, 64 * KIB, 4 << 20, 64, 1.59e9, 320e9),
        Gpu("A100", "sm_80", 108, 2048, 32, 164 * KIB, 163 * KIB, 40 << 20, 64, 1.41e9, 1555e9, tensor_fmas=1024),
        Gpu("A10", "sm_86", 72, 1536, 16, 100 * KIB, 99 * KIB, 6 << 20, 128, 1.695e9, 600e9),
        Gpu("L40S", "sm_89", 142, 1536, 24, 100 * KIB, 99 * KIB, 96 << 20, 128, 2.52e9, 864e9),
        Gpu("H100", "sm_90", 132, 2048, 32, 228 * KIB, 227 * KIB, 50 << 20, 128, 1.98e9, 3350e9, tensor_fmas=1024),
    )
}


def representative_gpu(arch: str) -> Gpu:
    """Return the GPU model of an architecture. Raises TargetError for an architecture without one."""
    if arch not in MACHINES:
        raise TargetError(f"no GPU of the architecture '{arch}' is described (there are {', '.join(MACHINES)})")
    return MACHINES[arch]


def launch_limits(arch: str) -> Gpu:
    """Return the GPU model of an architecture; for an unknown architecture the model with the most shared memory a
    block, with that architecture as its `arch`."""
    most_permissive = max(MACHINES.values(), key=lambda gpu: gpu.block_shared_bytes)
    return MACHINES.get(arch) or replace(most_permissive, arch=arch)
