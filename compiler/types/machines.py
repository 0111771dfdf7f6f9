"""`Machine` and `Gpu`: the facts of machines, as data for rules and code generation.

`host` is the machine to compile for. The environment variable STRATA_MACHINE has another one, by its name in `MACHINES`
or by its facts as JSON.
"""

from __future__ import annotations

import json
import os
import platform
import sys
from collections.abc import Mapping
from dataclasses import asdict, dataclass, fields, replace
from functools import cache
from pathlib import Path
from typing import ClassVar

from compiler.support.errors import TargetError
from compiler.support.text import counted
from compiler.types.processors import processors

VARIABLE = "STRATA_MACHINE"
"""The environment variable with the machine to compile for."""


@dataclass(frozen=True)
class Machine:
    """The facts of a CPU: caches in bytes, vectors in bits, numbers of cores and of vector registers.

    name: the model's name. cpu, features: names of LLVM, features as "+avx2,+fma". architecture: x86_64 or aarch64.

    >>> machine = strata.targets.MACHINES["avx2"]
    >>> machine.vector_bits, machine.lanes, machine.l2_bytes
    (256, 8, 262144)
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
    architecture: str = "x86_64"

    family: ClassVar[str] = "cpu"
    recipe_facts: ClassVar[Mapping[str, int]] = {
        **dict.fromkeys(("l1_bytes", "l2_bytes", "l3_bytes"), 4096),
        "registers": 8,
        "vector_bits": 64,
    }
    """Map the facts that recipes read to the minimum of each."""
    in_clusters: ClassVar[bool] = True
    """Whether the workers of a cluster can measure for such machines."""

    @property
    def lanes(self) -> int:
        """The number of 32-bit elements of a vector."""
        return self.vector_bits // 32

    @property
    def multiplies_by_lane(self) -> bool:
        """Whether an fma multiplies by one lane of a register (AArch64 without SVE): then scalars are loaded as
        vectors."""
        return self.architecture == "aarch64" and not self.vector_scale

    @property
    def has_minimum_of_nan(self) -> bool:
        """Whether one instruction is a minimum, or a maximum, that is NaN if an operand is; true for AArch64."""
        return self.architecture == "aarch64"

    @property
    def vector_scale(self) -> int:
        """The bits of SVE's registers divided by 128, if vectors are in them; 0 elsewhere."""
        return self.vector_bits // 128 if "sve" in self.present and self.vector_bits > 128 else 0

    def place(self, threads: int) -> str:
        """The threads of a program on this machine as text: `4 threads`."""
        return counted(threads, "thread")

    def described(self, threads: int) -> str:
        """The name of the machine and the threads of a program as text: `NAME, 4 threads`."""
        return f"{self.name}, {self.place(threads)}"

    @property
    def present(self) -> frozenset[str]:
        """The features that the machine has, by LLVM's names."""
        return frozenset(name[1:] for name in self.features.split(",") if name.startswith("+"))


@dataclass(frozen=True)
class Gpu:
    """The facts of a GPU. Per multiprocessor: resident threads and blocks, bytes of shared memory, 32-bit registers,
    FMAs of float32 per cycle, and of float16 by `mma.sync` on tensor cores; `clock` is in cycles per second.
    block_shared_bytes, block_threads: the limits of a block. most_registers: the limit of a thread. warp: its threads.
    vector_bits: the widest access of a thread. bandwidth: bytes per second of the GPU's memory. grid_extents,
    block_extents: the most blocks of a grid and threads of a block along x, y and z.

    For estimates. Per multiprocessor: schedulers, each of which begins an instruction of a warp in a cycle; operations
    on integers, on float64 and of functions such as exp2 in a cycle; port_bytes: most bytes from L2 in a cycle. Cycles
    until a result can be used: alu_latency, shared_latency, l1_latency, l2_latency, memory_latency; branch_latency and
    barrier_latency: until the next instruction. fetch_cycles: of an instruction's first fetch. l2_rate: the bandwidth
    of L2 relative to that of memory.

    name: the model's name. arch: the architecture to compile for, such as sm_80.

    >>> strata.targets.Gpu.family, strata.targets.Gpu.lanes
    ('gpu', 1)
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
    schedulers: int = 4
    integers: int = 64
    doubles: int = 2
    specials: int = 16
    port_bytes: int = 64
    alu_latency: int = 4
    shared_latency: int = 23
    l1_latency: int = 32
    l2_latency: int = 200
    memory_latency: int = 400
    branch_latency: int = 8
    barrier_latency: int = 20
    fetch_cycles: float = 1.0
    l2_rate: float = 2.5
    grid_extents: tuple[int, int, int] = ((1 << 31) - 1, 65_535, 65_535)
    block_extents: tuple[int, int, int] = (1024, 1024, 64)

    family: ClassVar[str] = "gpu"
    recipe_facts: ClassVar[Mapping[str, int]] = {"arch": 0, "multiprocessors": 1}
    """Map the facts that recipes read to the minimum of each; arch is no number."""
    in_clusters: ClassVar[bool] = False
    lanes: ClassVar[int] = 1
    """A thread computes one element at a time."""

    @property
    def l2_bandwidth(self) -> float:
        """Bytes per second from L2."""
        return self.l2_rate * self.bandwidth

    def place(self, threads: int) -> str:
        """The GPU's name and architecture as text, such as "L4, sm_89"; `threads` is not used."""
        return f"{self.name}, {self.arch}"

    def described(self, threads: int) -> str:
        """The GPU's name and architecture as text, such as "L4, sm_89"; `threads` is not used."""
        return self.place(threads)


_LEVEL_2 = ("cx16", "popcnt", "sahf", "sse3", "sse4.1", "sse4.2", "ssse3")
_LEVEL_3 = (*_LEVEL_2, "avx", "avx2", "bmi", "bmi2", "f16c", "fma", "lzcnt", "movbe", "xsave")
_SAPPHIRE_RAPIDS = (
    *(*_LEVEL_3, "avxvnni", "gfni", "vaes", "vpclmulqdq"),
    *(f"avx512{part}" for part in ("bf16", "bitalg", "bw", "cd", "dq", "f", "fp16", "ifma", "vbmi", "vbmi2", "vl")),
    *("avx512vnni", "avx512vpopcntdq", "amx-bf16", "amx-int8", "amx-tile"),
)
_SKYLAKE = (*_LEVEL_3, "aes", "pclmul", "adx", *(f"avx512{part}" for part in ("bw", "cd", "dq", "f", "vl")))
_ICELAKE = (
    *(*_SKYLAKE, "gfni", "vaes", "vpclmulqdq"),
    *(f"avx512{part}" for part in ("bitalg", "ifma", "vbmi", "vbmi2", "vnni", "vpopcntdq")),
)


PR_SVE_GET_VL = 51
"""The request of Linux, by prctl, for the bytes of the registers of SVE in the low 16 bits."""
_ARMV8_2 = ("neon", "fp-armv8", "fullfp16", "dotprod", "lse", "rdm", "crc")


def _row(name: str, cpu: str, features: tuple[str, ...], bits: int, registers: int, *kilobytes: int) -> Machine:
    """A machine stated as of one core, since a model's number is unknown. bits, registers: of vectors; `kilobytes` are
    those of L1, L2 and L3."""
    l1, l2, l3 = (size << 10 for size in kilobytes)
    words = ",".join(f"+{feature}" for feature in features)
    architecture = "aarch64" if "neon" in features else "x86_64"
    return Machine(name, cpu, words, 1, bits, registers, l1, l2, l3, architecture)


MACHINES = {
    row.name: row
    for row in (
        _row("x86-64", "x86-64", (), 128, 16, 32, 256, 4096),
        _row("sse4", "x86-64-v2", _LEVEL_2, 128, 16, 32, 256, 4096),
        _row("avx2", "x86-64-v3", _LEVEL_3, 256, 16, 32, 256, 8192),
        _row("avx512-amx", "sapphirerapids", _SAPPHIRE_RAPIDS, 512, 32, 48, 2048, 32768),
        _row("haswell", "haswell", _LEVEL_3, 256, 16, 32, 256, 8192),
        _row("znver2", "znver2", (*_LEVEL_3, "sse4a", "aes", "pclmul"), 256, 16, 32, 512, 16384),
        _row("znver3", "znver3", (*_LEVEL_3, "sse4a", "aes", "pclmul", "vaes", "vpclmulqdq"), 256, 16, 32, 512, 32768),
        _row("skylake-avx512", "skylake-avx512", _SKYLAKE, 512, 32, 32, 1024, 22528),
        _row("icelake-server", "icelake-server", _ICELAKE, 512, 32, 48, 1280, 32768),
        _row("sapphirerapids", "sapphirerapids", _SAPPHIRE_RAPIDS, 512, 32, 48, 2048, 32768),
        _row("znver4", "znver4", (*_ICELAKE, "avx512bf16", "sse4a"), 512, 32, 32, 1024, 32768),
        _row("znver5", "znver5", (*_ICELAKE, "avx512bf16", "avxvnni", "sse4a"), 512, 32, 48, 1024, 32768),
        _row("cortex-a72", "cortex-a72", ("neon", "fp-armv8", "crc"), 128, 32, 32, 1024, 2048),
        _row("neoverse-n1", "neoverse-n1", _ARMV8_2, 128, 32, 64, 1024, 32768),
        _row("neoverse-v1", "neoverse-v1", (*_ARMV8_2, "bf16", "i8mm", "sve"), 256, 32, 64, 1024, 32768),
        _row("neoverse-v2", "neoverse-v2", (*_ARMV8_2, "bf16", "i8mm"), 128, 32, 64, 2048, 32768),
    )
}
"""Map each name that STRATA_MACHINE can have, besides `host`, to its machine."""

_AMX = ("sapphirerapids", "emeraldrapids", "graniterapids", "graniterapids-d", "diamondrapids")


def host() -> Machine:
    """The machine to compile for: this one, or the one selected by STRATA_MACHINE.

    A named machine has the facts of its row in `MACHINES` and the cores of this one. Its name has the names of both, so
    that their records are distinct. Facts written by `machine_facts` are used as they are. Raises TargetError for an
    unknown name and for invalid facts.

    >>> strata.targets.host().family
    'cpu'
    """
    return _named(os.environ.get(VARIABLE, ""))


@cache
def _named(name: str) -> Machine:
    if name in ("", "host"):
        return detect_machine()
    if name.startswith("{"):
        return _parse_facts(name)
    if name not in MACHINES:
        raise TargetError(f"{VARIABLE} is '{name}', but there are only host, {', '.join(MACHINES)}")
    here = detect_machine()
    return replace(MACHINES[name], name=f"{here.name} as {name}", cores=here.cores)


def machine_facts(machine: Machine) -> str:
    """The facts of a machine as JSON, a value of STRATA_MACHINE to compile for it on another machine."""
    return json.dumps(asdict(machine), sort_keys=True)


def _parse_facts(text: str) -> Machine:
    try:
        machine = Machine(**json.loads(text))
    except (TypeError, ValueError) as error:
        raise TargetError(f"{VARIABLE} states no machine: {error}") from error
    for name, kind in ((field.name, field.type) for field in fields(Machine)):
        if type(getattr(machine, name)).__name__ != kind:
            raise TargetError(f"{VARIABLE} states no machine: its {name} is {getattr(machine, name)!r}")
    return machine


@cache
def detect_machine() -> Machine:
    """This machine, as described by LLVM and the operating system; its cores are those available to the process.
    Unknown caches count as 32 KiB, 1 MiB and 8 MiB."""
    import llvmlite.binding as llvm

    features = llvm.get_host_cpu_features()
    present = {name for name, has in features.items() if has}
    bits = 512 if "avx512f" in present else 256 if "avx2" in present else 128
    return Machine(
        name=_model(Path("/proc/cpuinfo")) or platform.machine(),
        cpu=_cpu(llvm.get_host_cpu_name(), present),
        features=features.flatten(),
        cores=processors(),
        vector_bits=bits,
        registers=16 if bits < 512 and _is_x86() else 32,
        l1_bytes=_cache_bytes("1", 32 << 10),
        l2_bytes=_cache_bytes("2", 1 << 20),
        l3_bytes=_cache_bytes("3", 8 << 20),
        architecture=architecture(),
    )


def missing_features(machine: Machine) -> tuple[str, ...]:
    """The features of a machine that this computer lacks, sorted, or its architecture alone if that is another, or the
    width of SVE if that alone is another (`sve of 256 bits`). Code that uses them can be built here, but not run."""
    here = detect_machine()
    if machine.architecture != here.architecture:
        return (machine.architecture,)
    missing = sorted(machine.present - here.present)
    if machine.vector_scale and not missing and _sve_bits() != machine.vector_bits:
        return (f"sve of {machine.vector_bits} bits",)
    return tuple(missing)


def _sve_bits() -> int:
    """The bits of SVE's registers in this process. Source: Linux, Documentation/arch/arm64/sve."""
    import ctypes

    return 8 * (ctypes.CDLL(None).prctl(PR_SVE_GET_VL) & 0xFFFF) if sys.platform == "linux" else 0


def architecture() -> str:
    """The architecture of this computer: x86_64, aarch64 or another name of the system's."""
    name = platform.machine().lower()
    return {"amd64": "x86_64", "arm64": "aarch64"}.get(name, name)


def _is_x86() -> bool:
    return architecture() == "x86_64"


def _cpu(reported: str, features: set[str]) -> str:
    """LLVM's name of the CPU; sapphirerapids instead of an older CPU if the features include AMX or FP16 vectors, since
    LLVM reports rocketlake for some virtual machines."""
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
