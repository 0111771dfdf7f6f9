"""`Machine`: what differs between machines, as data that rules and code generation read."""

from __future__ import annotations

import os
from dataclasses import dataclass
from functools import cache
from pathlib import Path


@dataclass(frozen=True)
class Machine:
    """The facts of one machine: sizes in bytes, vector width in bits, counts of cores and vector registers."""

    name: str
    cpu: str
    features: str
    cores: int
    vector_bits: int
    vector_registers: int
    l1_bytes: int
    l2_bytes: int
    l3_bytes: int


@cache
def host() -> Machine:
    """This machine, as LLVM and the operating system describe it.

    A virtual machine's CPU can be named wrongly by LLVM (rocketlake for one with AMX): the features decide.
    """
    import llvmlite.binding as llvm

    features = llvm.get_host_cpu_features()
    name = llvm.get_host_cpu_name()
    if features.get("amx-tile") or features.get("avx512fp16"):
        name = "sapphirerapids"
    wide = bool(features.get("avx512f"))
    bits = 512 if wide else 256 if features.get("avx2") else 128
    return Machine(
        name=name,
        cpu=name,
        features=features.flatten(),
        cores=len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1,
        vector_bits=bits,
        vector_registers=32 if wide or bits == 128 else 16,
        l1_bytes=_cache_bytes("1", 32 << 10),
        l2_bytes=_cache_bytes("2", 1 << 20),
        l3_bytes=_cache_bytes("3", 8 << 20),
    )


def _cache_bytes(level: str, default: int) -> int:
    root = Path("/sys/devices/system/cpu/cpu0/cache")
    for index in sorted(root.glob("index*")):
        try:
            kind = (index / "type").read_text().strip()
            if (index / "level").read_text().strip() == level and kind != "Instruction":
                return _bytes((index / "size").read_text().strip())
        except OSError:
            continue
    return default


def _bytes(text: str) -> int:
    units = {"K": 1 << 10, "M": 1 << 20}
    return int(text[:-1]) * units[text[-1]] if text[-1] in units else int(text)
