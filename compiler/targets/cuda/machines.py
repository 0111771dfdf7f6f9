"""The GPU models that kernels are tuned for, one for each architecture.

Source: NVIDIA's CUDA C++ Programming Guide, "Technical Specifications per Compute Capability" and "Throughput of Native
Arithmetic Instructions", and the data sheets of the products that the models are named after. Latencies in cycles: 4 of
arithmetic, 200 of L2 and 400 of memory on V100, A100 and H100 (doi 10.1016/j.ultsonch.2023.106546, table 3); 23 of
shared memory, 32 of L1 and, for GDDR6, 236 of L2 (github.com/sjfeng1999/gpu-arch-microbenchmark, on an RTX 2070).
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from compiler.support.errors import TargetError
from compiler.types.machines import Gpu

KIB = 1 << 10
DOUBLES = {"sm_70": 32, "sm_80": 32, "sm_90": 64, "sm_100": 64}
"""Operations on float64 of a multiprocessor in a cycle; 2 elsewhere."""
SLOWER_L2 = {"sm_75", "sm_86", "sm_87", "sm_89", "sm_120", "sm_121"}
"""The architectures with GDDR6 or LPDDR: cycles of L2 are those of an RTX 2070."""
MACHINES = {
    gpu.arch: replace(gpu, doubles=DOUBLES.get(gpu.arch, 2), l2_latency=236 if gpu.arch in SLOWER_L2 else 200)
    for gpu in (
        Gpu("V100", "sm_70", 80, 2048, 32, 96 * KIB, 96 * KIB, 6 << 20, 64, 1.53e9, 900e9),
        Gpu("T4", "sm_75", 40, 1024, 16, 64 * KIB, 64 * KIB, 4 << 20, 64, 1.59e9, 320e9),
        Gpu(
            "A100",
            "sm_80",
            108,
            2048,
            32,
            164 * KIB,
            163 * KIB,
            40 << 20,
            64,
            1.41e9,
            1555e9,
            tensor_fmas=1024,
            doubles=32,
        ),
        Gpu("A10", "sm_86", 72, 1536, 16, 100 * KIB, 99 * KIB, 6 << 20, 128, 1.695e9, 600e9),
        Gpu(
            "Jetson AGX Orin", "sm_87", 16, 1536, 16, 164 * KIB, 163 * KIB, 4 << 20, 128, 1.3e9, 204.8e9, l2_latency=236
        ),
        Gpu("L40S", "sm_89", 142, 1536, 24, 100 * KIB, 99 * KIB, 96 << 20, 128, 2.52e9, 864e9),
        Gpu(
            "H100",
            "sm_90",
            132,
            2048,
            32,
            228 * KIB,
            227 * KIB,
            50 << 20,
            128,
            1.98e9,
            3350e9,
            tensor_fmas=1024,
            doubles=64,
        ),
        Gpu(
            "B200",
            "sm_100",
            148,
            2048,
            32,
            228 * KIB,
            227 * KIB,
            126 << 20,
            128,
            1.965e9,
            8000e9,
            tensor_fmas=1024,
            doubles=64,
        ),
        Gpu("B300", "sm_103", 160, 2048, 32, 228 * KIB, 227 * KIB, 126 << 20, 128, 1.92e9, 8000e9, tensor_fmas=1024),
        Gpu("RTX 5090", "sm_120", 170, 1536, 24, 100 * KIB, 99 * KIB, 96 << 20, 128, 2.407e9, 1792e9),
        Gpu("GB10", "sm_121", 48, 1536, 24, 100 * KIB, 99 * KIB, 24 << 20, 128, 2.418e9, 273e9),
    )
}
"""The models by architecture, in ascending order."""
ARCHITECTURES = tuple(MACHINES)
"""The architectures with a model."""


def representative_gpu(arch: str) -> Gpu:
    """Return the GPU model that represents an architecture. Raises TargetError for an architecture without one."""
    if arch not in MACHINES:
        raise TargetError(f"no GPU of the architecture '{arch}' is described (there are {', '.join(MACHINES)})")
    return MACHINES[arch]


def launch_limits(arch: str) -> Gpu:
    """Return the GPU model of an architecture; for one without a model, such as "", the model with the most shared
    memory a block, under that architecture's name."""
    most_permissive = max(MACHINES.values(), key=lambda gpu: gpu.block_shared_bytes)
    return MACHINES.get(arch) or replace(most_permissive, arch=arch)


def described(arch: str, name: str, properties: Mapping[str, Any]) -> Gpu:
    """Return the model of a GPU from the properties of its device, named as in cudaDeviceProp. Missing facts are those
    of the model of its architecture, or of the last earlier one with a model, or of the first one. A property of 0 is
    missing. Example: an H200 is the model of sm_90 with its own number of multiprocessors and bandwidth."""
    number = int(re.sub(r"\D", "", arch) or 0)
    rows = list(MACHINES.values())
    base = next((gpu for gpu in reversed(rows) if int(gpu.arch[3:]) <= number), rows[0])
    given: dict[str, Any] = {
        field: properties[name] for field, name in _PROPERTIES.items() if properties.get(name, 0) > 0
    }
    if properties.get("clockRate", 0) > 0:
        given["clock"] = properties["clockRate"] * 1e3
    if properties.get("memoryClockRate", 0) > 0 and properties.get("memoryBusWidth", 0) > 0:
        given["bandwidth"] = 2e3 * properties["memoryClockRate"] * properties["memoryBusWidth"] / 8
    return replace(base, name=name, arch=arch, **given)


_PROPERTIES = {
    "multiprocessors": "multiProcessorCount",
    "threads": "maxThreadsPerMultiProcessor",
    "blocks": "maxBlocksPerMultiProcessor",
    "shared_bytes": "sharedMemPerMultiprocessor",
    "block_shared_bytes": "sharedMemPerBlockOptin",
    "l2_bytes": "l2CacheSize",
    "registers": "regsPerMultiprocessor",
    "block_threads": "maxThreadsPerBlock",
}
"""Map fields of a model to the properties of a device."""
