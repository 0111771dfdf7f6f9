"""`Machine` and `Gpu`: what differs between machines, as data that rules and code generation read."""

from __future__ import annotations

import platform
from dataclasses import dataclass
from functools import cache
from pathlib import Path

from compiler.targets.processors import processors


@dataclass(frozen=True)
class Machine:
    """The facts of one machine: caches in bytes, vectors in bits, counts of cores and of vector registers.

    `name` is for people, `cpu` and `features` are LLVM's.
    """

    name: str
    cpu: str
    features: str
    cores: int
    vector_bits: int
    registers: int
    l1_bytes: int
    l2_bytes: int
    l3_bytes: int


@dataclass(frozen=True)
class Gpu:
    """The facts of one GPU. Of a multiprocessor: threads and blocks that it holds, bytes of shared memory, fused
    multiplications of float32 in a cycle, and of float16 by `mma.sync` on its tensor cores; `clock` is its cycles in a
    second. `block_shared_bytes` is what one block may have, `bandwidth` the bytes in a second of the GPU's memory.

    `name` is for people, `arch` what kernels are compiled for.
    """

    name: str
    arch: str
    multiprocessors: int
    threads: int
    blocks: int
    shared_bytes: int
    block_shared_bytes: int
    l2_bytes: int
    fmas: int
    clock: float
    bandwidth: float
    registers: int = 1 << 16
    most_registers: int = 255
    block_threads: int = 1024
    warp: int = 32
    vector_bits: int = 128
    tensor_fmas: int = 512


_AMX = ("sapphirerapids", "emeraldrapids", "graniterapids", "graniterapids-d", "diamondrapids")


@cache
def host() -> Machine:
    """This machine, as LLVM and the operating system describe it; the cores are those the process may use."""
    import llvmlite.binding as llvm

    features = llvm.get_host_cpu_features()
    present = {name for name, has in features.items() if has}
    bits = 512 if "avx512f" in present else 256 if "avx2" in present else 128
    few = bits < 512 and platform.machine().lower() in ("x86_64", "amd64")
    return Machine(
        name=_model(Path("/proc/cpuinfo")) or platform.machine(),
        cpu=_cpu(llvm.get_host_cpu_name(), present),
        features=features.flatten(),
        cores=processors(),
        vector_bits=bits,
        registers=16 if few else 32,
        l1_bytes=_cache_bytes("1", 32 << 10),
        l2_bytes=_cache_bytes("2", 1 << 20),
        l3_bytes=_cache_bytes("3", 8 << 20),
    )


def _cpu(reported: str, features: set[str]) -> str:
    """LLVM can misname a virtual machine's CPU (rocketlake for one with AMX): the features decide."""
    modern = "avx512fp16" in features or any(name.startswith("amx") for name in features)
    return "sapphirerapids" if modern and reported not in _AMX else reported


def _model(cpuinfo: Path) -> str:
    try:
        lines = cpuinfo.read_text().splitlines()
    except OSError:
        return ""
    return next((line.partition(":")[2].strip() for line in lines if line.startswith("model name")), "")


def _cache_bytes(level: str, default: int) -> int:
    for index in sorted(Path("/sys/devices/system/cpu/cpu0/cache").glob("index*")):
        try:
            kind = (index / "type").read_text().strip()
            if (index / "level").read_text().strip() == level and kind != "Instruction":
                return _bytes((index / "size").read_text().strip())
        except OSError:
            continue
    return default


def _bytes(text: str) -> int:
    units = {"K": 1 << 10, "M": 1 << 20, "G": 1 << 30}
    return int(text[:-1]) * units[text[-1]] if text[-1] in units else int(text)
