"""Compile CUDA C++ to machine code without a GPU, by NVRTC; its wheel comes with the extra `cuda`."""

from __future__ import annotations

import ctypes
import re
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cache
from pathlib import Path

from compiler.support.errors import TargetError

MISSING = "CUDA text is compiled by NVRTC, which is not installed: install strata-compiler[cuda]"


@dataclass(frozen=True)
class Resources:
    """The resources of a kernel on an architecture: the registers, stack bytes and spilled bytes (stored and loaded) of
    a thread, and the bytes of shared memory of a block, static and dynamic."""

    registers: int
    stack_bytes: int
    spill_bytes: int
    shared_bytes: int


@dataclass(frozen=True)
class Cubin:
    """Machine code for an architecture, the resources of each kernel by its name, and NVRTC's log."""

    arch: str
    code: bytes
    resources: dict[str, Resources]
    log: str


def is_available() -> bool:
    """Return whether the wheel of NVRTC is installed."""
    return _path() is not None


def has_headers() -> bool:
    """Return whether CUDA's own headers are installed, which kernels of f16 and bf16 include."""
    return bool(_headers())


def version() -> str:
    """Return the version of NVRTC. Raises TargetError if it is not installed."""
    major, minor = ctypes.c_int(), ctypes.c_int()
    _library().nvrtcVersion(ctypes.byref(major), ctypes.byref(minor))
    return f"{major.value}.{minor.value}"


@cache
def architectures() -> tuple[str, ...]:
    """Return the architectures that NVRTC compiles for, in ascending order. Raises TargetError without NVRTC."""
    count = ctypes.c_int()
    _library().nvrtcGetNumSupportedArchs(ctypes.byref(count))
    numbers = (ctypes.c_int * count.value)()
    _library().nvrtcGetSupportedArchs(numbers)
    return tuple(f"sm_{number}" for number in numbers)


def fmad(contract: bool) -> str:
    """Return the compiler's option that permits fused multiply-adds (`contract`), or forbids them."""
    return f"--fmad={'true' if contract else 'false'}"


def compiled(text: str, arch: str, contract: bool = True) -> Cubin:
    """Compile a text to the machine code of an architecture; `contract` permits fused multiply-adds. Raises TargetError
    without NVRTC, for an architecture that it lacks, and for text that it refuses, with its first error."""
    with _program(text, arch, contract) as (program, log):
        return Cubin(arch, _bytes(program, "CUBIN"), _resources(log), log)


def ptx(text: str, arch: str, contract: bool = True) -> str:
    """Compile a text for an architecture to PTX, and return its text; `contract` permits fused multiply-adds. Raises
    TargetError without NVRTC, for an architecture that it lacks, and for text that it refuses, with its first error."""
    with _program(text, arch, contract) as (program, _):
        return _text(program, "PTX")


@contextmanager
def _program(text: str, arch: str, contract: bool) -> Iterator[tuple[ctypes.c_void_p, str]]:
    """Compile a text, and yield NVRTC's handle of the program and the log; the program is destroyed at the exit. Raises
    TargetError without NVRTC, for an architecture that it lacks, and for text that it refuses."""
    library = _library()
    if arch not in architectures():
        raise TargetError(f"NVRTC {version()} has no architecture {arch} (it has {', '.join(architectures())})")
    program = ctypes.c_void_p()
    if library.nvrtcCreateProgram(ctypes.byref(program), text.encode(), b"strata.cu", 0, None, None):
        raise TargetError("NVRTC cannot begin a program")
    try:
        options = [f"--gpu-architecture={arch}", "--ptxas-options=-v", fmad(contract)]
        options += [f"--include-path={folder}" for folder in _headers()]
        encoded = (ctypes.c_char_p * len(options))(*(option.encode() for option in options))
        status = library.nvrtcCompileProgram(program, len(options), encoded)
        log = _text(program, "ProgramLog")
        if status:
            lines = [line for line in log.splitlines() if "error" in line] or log.splitlines()
            raise TargetError(f"NVRTC refuses the text for {arch}: {lines[0] if lines else 'it does not say why'}")
        yield program, log
    finally:
        library.nvrtcDestroyProgram(ctypes.byref(program))


def _text(program: ctypes.c_void_p, name: str) -> str:
    return _bytes(program, name).rstrip(b"\0").decode(errors="replace")


def _bytes(program: ctypes.c_void_p, name: str) -> bytes:
    library, size = _library(), ctypes.c_size_t()
    getattr(library, f"nvrtcGet{name}Size")(program, ctypes.byref(size))
    buffer = ctypes.create_string_buffer(size.value)
    getattr(library, f"nvrtcGet{name}")(program, buffer)
    return buffer.raw


def _resources(log: str) -> dict[str, Resources]:
    resources = {}
    for section in log.split("Compiling entry function ")[1:]:
        name = re.match(r"'(\w+)'", section)
        stack = re.search(r"(\d+) bytes stack frame, (\d+) bytes spill stores, (\d+) bytes spill loads", section)
        registers, shared = re.search(r"Used (\d+) registers", section), re.search(r"(\d+) bytes smem", section)
        if name is not None and registers is not None:
            spilled = int(stack[2]) + int(stack[3]) if stack else 0
            shared_bytes = int(shared[1]) if shared else 0
            resources[name[1]] = Resources(int(registers[1]), int(stack[1]) if stack else 0, spilled, shared_bytes)
    return resources


@cache
def _path() -> Path | None:
    try:
        import nvidia.cuda_nvrtc as wheel
    except ImportError:
        return None
    libraries = [path for folder in wheel.__path__ for path in sorted(Path(folder).glob("lib/libnvrtc.so*"))]
    return libraries[0] if libraries else None


@cache
def _headers() -> list[Path]:
    """Return the include folders of CUDA's headers, such as that of f16; empty if their wheel is not installed."""
    try:
        import nvidia.cuda_runtime as wheel
    except ImportError:
        return []
    return [Path(folder) / "include" for folder in wheel.__path__]


@cache
def _library() -> ctypes.CDLL:
    path = _path()
    if path is None:
        raise TargetError(MISSING)
    return ctypes.CDLL(str(path))
