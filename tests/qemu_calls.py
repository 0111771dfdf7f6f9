"""Native calls of kernels for AArch64 under qemu's user mode: tests of this process's kernels run as such a machine.

`STRATA_MACHINE=neoverse-n1 pytest tests/e2e/test_operators.py`: tests/conftest.py installs them. A call links the
kernel's object code with a small C program once, and runs that on copies of the arrays' memory, at the same alignment.
"""

from __future__ import annotations

import ctypes
import shutil
import subprocess
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from tempfile import TemporaryDirectory, mkdtemp
from typing import Any, ClassVar
from weakref import finalize

import pytest

from compiler.targets.compilers import run_compiler
from compiler.targets.cpu import compile, kernel, programs
from compiler.types.machines import architecture, host
from tests import under_qemu

ALIGNMENT = 64
MAIN = r"""
#include <stdio.h>
#include <stdlib.h>
static char *region(size_t bytes, size_t shift) {
  return (char *)aligned_alloc(64, (bytes + shift + 127) / 64 * 64) + shift;
}
int main(void) {
  uint64_t counts[2];
  if (fread(counts, 8, 2, stdin) != 2) return 90;
  char **regions = calloc(counts[0] + 1, sizeof(char *));
  uint64_t *sizes = calloc(counts[0] + 1, 8);
  for (uint64_t i = 0; i < counts[0]; ++i) {
    uint64_t head[2];
    if (fread(head, 8, 2, stdin) != 2) return 91;
    sizes[i] = head[0];
    regions[i] = region(head[0], head[1]);
    if (fread(regions[i], 1, head[0], stdin) != head[0]) return 92;
  }
  char *workspace = region(counts[1], 0);
  CALL
  for (uint64_t i = 0; i < counts[0]; ++i) fwrite(regions[i], 1, sizes[i], stdout);
  return 0;
}
"""
Native = Callable[..., None]


@dataclass(frozen=True)
class Region:
    """A stretch of memory that a call may touch."""

    start: int
    end: int

    @property
    def bytes(self) -> bytes:
        """What it holds."""
        return ctypes.string_at(self.start, self.end - self.start)

    def write(self, payload: bytes) -> None:
        """Write what differs: memory may be read-only."""
        if payload != self.bytes:
            ctypes.memmove(self.start, payload, len(payload))


def regions(stretches: Sequence[tuple[int, int]]) -> list[Region]:
    """The stretches of memory with a start and bytes each, those that overlap as one."""
    merged: list[Region] = []
    for start, size in sorted(stretches):
        if merged and start < merged[-1].end:
            merged[-1] = Region(merged[-1].start, max(merged[-1].end, start + size))
        else:
            merged.append(Region(start, start + size))
    return merged


class Program:
    """A native function as a program under qemu. sizes: the bytes of each array argument, 0 for a scalar; types: of the
    arguments, the workspace's pointer and perhaps the count of threads last."""

    root: ClassVar[str] = ""
    """The folder of all programs, in the context."""

    def __init__(self, objects: Sequence[bytes], symbol: str, sizes: Sequence[int], types: Sequence[Any]) -> None:
        self._sizes, self._types, self._symbol, self._objects = sizes, types, symbol, objects
        self._folder = Path(mkdtemp(dir=self.root))
        finalize(self, shutil.rmtree, self._folder, ignore_errors=True)

    def __call__(self, *values: Any, workspace: int) -> None:
        """Run on the memory at addresses, and write back what changed. Raises AssertionError for a crash."""
        pairs = list(zip(values[: len(self._sizes)], self._sizes, strict=True))
        touched = regions([(value, size) for value, size in pairs if size])
        places = [self._place(value, size, touched) for value, size in pairs]
        threads = [str(value) for value in values[len(self._sizes) + 1 :]]
        call = f"function({', '.join([*places, 'workspace', *threads])});"
        executable = self._linked(call)
        payload = [len(touched).to_bytes(8, "little"), workspace.to_bytes(8, "little")]
        for region in touched:
            shift = region.start % ALIGNMENT
            payload += [(region.end - region.start).to_bytes(8, "little"), shift.to_bytes(8, "little"), region.bytes]
        words = [str(under_qemu.QEMU), "-cpu", under_qemu.cpu_model(host()), "-L", str(under_qemu.ROOT)]
        done = subprocess.run([*words, executable], input=b"".join(payload), capture_output=True, timeout=600)
        assert done.returncode == 0, f"{self._symbol} under qemu: {done.returncode} {done.stderr.decode()[-500:]}"
        payload_after = done.stdout
        for region in touched:
            size = region.end - region.start
            region.write(payload_after[:size])
            payload_after = payload_after[size:]

    def _place(self, value: Any, size: int, touched: Sequence[Region]) -> str:
        if not size:
            return repr(value)
        number = next(n for n, region in enumerate(touched) if region.start <= value < region.end)
        return f"regions[{number}] + {value - touched[number].start}"

    def _linked(self, call: str) -> str:
        """The program with that call; linked again for another one."""
        name = f"main{abs(hash(call))}"
        if not (self._folder / name).exists():
            parameters = ", ".join(_C_TYPES[type] for type in self._types)
            declaration = f'#include <stdint.h>\nextern void function({parameters}) __asm__("{self._symbol}");'
            (self._folder / "main.c").write_text(declaration + MAIN.replace("CALL", call))
            files = [f"part{n}.o" for n in range(len(self._objects))]
            for file, code in zip(files, self._objects, strict=True):
                (self._folder / file).write_bytes(code)
            run_compiler(
                ["-O1", "-w", "-o", name, "main.c", *files, "-lgomp", "-lm"], self._folder, under_qemu.ARCHITECTURE
            )
        return str(self._folder / name)


_C_TYPES = {
    ctypes.c_void_p: "void *",
    **{getattr(ctypes, f"c_int{bits}"): f"int{bits}_t" for bits in (8, 16, 32, 64)},
    **{getattr(ctypes, f"c_uint{bits}"): f"uint{bits}_t" for bits in (8, 16, 32, 64)},
    ctypes.c_float: "float",
    ctypes.c_double: "double",
    ctypes.c_bool: "_Bool",
}


def is_needed() -> bool:
    """Whether the machine to compile for is of another architecture, whose code qemu runs here."""
    return host().architecture == under_qemu.ARCHITECTURE != architecture() and not under_qemu.is_missing()


@contextmanager
def installed() -> Iterator[None]:
    """Have kernels of this process that are called in the context run under qemu."""
    load = compile.LoadedCode.__init__

    def loaded(self: Any, objects: Sequence[compile.ObjectCode], machine: Any) -> None:
        load(self, objects, machine)
        self.object_code = [file.code for file in objects]

    native = cached_property(_native)
    native.__set_name__(kernel.Kernel, "_native")
    with pytest.MonkeyPatch.context() as patch, TemporaryDirectory(prefix="strata-") as folder:
        patch.setattr(Program, "root", folder)
        patch.setattr(compile.LoadedCode, "__init__", loaded)
        patch.setattr(kernel.Kernel, "_native", native)
        patch.setattr(programs, "_run", _prepare)
        yield


def _native(self: kernel.Kernel) -> Native:
    """The native function of a kernel, under qemu."""
    arguments = iter(self.arguments)
    count = len(self.arguments) + len(self.fixed.arrays)
    sizes = [self.fixed.arrays[n].nbytes if n in self.fixed.arrays else _size(next(arguments)) for n in range(count)]
    code: Any = self.library
    program = Program(code.object_code, kernel.symbol(self.name), sizes, self._types)

    def call(*values: Any) -> None:
        program(*values, workspace=self._workspace.size(values[-1] if self.threads is not None else 1))

    return call


def _prepare(preparation: Any, pointers: Sequence[int], library: Any, threads: int) -> None:
    """Run a preparation of constants under qemu."""
    interface = preparation.interface
    count: list[Any] = [] if interface.threads is None else [ctypes.c_int32]
    types = [*[ctypes.c_void_p] * len(pointers), *count]
    program = Program(library.object_code, interface.symbol, list(map(_size, interface.arguments)), types)
    program(*pointers, *([threads] if count else []), workspace=interface.workspace.size(threads))


def _size(argument: Any) -> int:
    return 0 if argument.by_value else max(1, argument.size)
