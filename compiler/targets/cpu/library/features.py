"""Instruction set features of x86-64 as bits of CPUID, for the choice of a version at run time.

Source: Intel's Software Developer's Manual, volume 2, CPUID; AMD's Programmer's Manual, volume 3, appendix E.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import NamedTuple


class Bit(NamedTuple):
    """A bit of CPUID: leaf, subleaf, register (0 to 3 for eax, ebx, ecx and edx), and the bit's number."""

    leaf: int
    subleaf: int
    register: int
    bit: int


def _bits(leaf: int, subleaf: int, register: int, names: str) -> dict[str, Bit]:
    """Return the bits of a register of CPUID's answer for a leaf and subleaf by feature, from a text of
    `number=feature` words. register: 0 to 3 for EAX, EBX, ECX and EDX."""
    pairs = (pair.split("=") for pair in names.split())
    return {name: Bit(leaf, subleaf, register, int(number)) for number, name in pairs}


BITS = {
    **_bits(1, 0, 2, "0=sse3 1=pclmul 9=ssse3 12=fma 13=cx16 19=sse4.1 20=sse4.2 22=movbe 23=popcnt 25=aes 26=xsave"),
    **_bits(1, 0, 2, "27=osxsave 28=avx 29=f16c 30=rdrnd"),
    **_bits(7, 0, 1, "3=bmi 5=avx2 8=bmi2 16=avx512f 17=avx512dq 18=rdseed 19=adx 21=avx512ifma 28=avx512cd 29=sha"),
    **_bits(7, 0, 1, "30=avx512bw 31=avx512vl"),
    **_bits(7, 0, 2, "1=avx512vbmi 6=avx512vbmi2 8=gfni 9=vaes 10=vpclmulqdq 11=avx512vnni 12=avx512bitalg"),
    **_bits(7, 0, 2, "14=avx512vpopcntdq"),
    **_bits(7, 0, 3, "8=avx512vp2intersect 22=amx-bf16 23=avx512fp16 24=amx-tile 25=amx-int8"),
    **_bits(7, 1, 0, "4=avxvnni 5=avx512bf16 21=amx-fp16 23=avxifma"),
    **_bits(7, 1, 3, "4=avxvnniint8 5=avxneconvert 10=avxvnniint16"),
    **_bits(0x80000001, 0, 2, "0=sahf 5=lzcnt 6=sse4a 11=xop 16=fma4 21=tbm"),
}
"""The features that generated code may use, by LLVM's names. Others, such as `clflush`, are for systems."""

HARDWARE_BITS = {"neon": 1, "fp-armv8": 0, "crc": 7, "lse": 8, "fullfp16": 10, "rdm": 12, "dotprod": 20, "sve": 22}
"""The features of AArch64 as bits of AT_HWCAP. Source: Linux, Documentation/arch/arm64/elf_hwcaps."""
HARDWARE_BITS_2 = {"i8mm": 13, "bf16": 14}
"""The features of AArch64 as bits of AT_HWCAP2."""

_YMM, _ZMM, _TILES = 0x6, 0xE6, 0x60000
"""The states that the system must save, as bits of XCR0."""


def required(features: Iterable[str]) -> list[Bit]:
    """The bits of CPUID that code with these features, LLVM's names, needs, each once, sorted; a feature that BITS
    lacks needs none. That of osxsave is among them if the system must save registers."""
    needed = {BITS[name] for name in features if name in BITS}
    return sorted(needed | ({BITS["osxsave"]} if states(features) else set()))


def hardware_bits(features: Iterable[str]) -> tuple[int, int]:
    """The bits of AT_HWCAP and of AT_HWCAP2 that code for AArch64 with these features needs, as two masks; a feature
    that both tables lack needs none."""
    names = set(features)
    first, second = (
        sum(1 << bit for name, bit in table.items() if name in names) for table in (HARDWARE_BITS, HARDWARE_BITS_2)
    )
    return first, second


def states(features: Iterable[str]) -> int:
    """The bits of XCR0 that code with these features needs, since the system must save its registers; 0 without AVX and
    AMX."""
    names = set(features)
    tiles = _TILES if any(name.startswith("amx") for name in names) else 0
    return tiles | (_ZMM if "avx512f" in names else _YMM if "avx" in names or "avx2" in names else 0)
