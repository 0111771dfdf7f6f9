"""Machine code as Linux's `perf` reads it: a map of addresses to names, and jitdump, which has the code too.

`STRATA_PERF=map` writes /tmp/perf-PID.map, which `perf report` reads. `STRATA_PERF=jitdump` writes jit-PID.dump to the
current folder; `perf record -k mono`, then `perf inject --jit -i perf.data -o jitted.data` adds the code. Both may be
given: `map,jitdump`. Source of the format: tools/perf/Documentation/jitdump-specification.txt of Linux.
"""

from __future__ import annotations

import ctypes
import mmap
import os
import struct
import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import BinaryIO, TypeAlias

from compiler.support.errors import InputError
from compiler.support.text import printable

VARIABLE = "STRATA_PERF"
"""The environment variable that selects the forms."""
FORMS = ("map", "jitdump")
MAGIC, VERSION = 0x4A695444, 1
LOAD = 0
"""The id of a record of loaded code."""
_HEADER = struct.Struct("<IIIIIIQQ")
"""magic, version, size of the header, ELF machine, 0, pid, time, flags."""
_RECORD = struct.Struct("<IIQIIQQQQ")
"""id, size, time, pid, thread, virtual address, address, size of the code, index."""
_SECTION = struct.Struct("<IIQQQQIIQQ")
_SYMBOL = struct.Struct("<IBBHQQ")
_FUNCTION, _SYMBOL_TABLE, _UNDEFINED = 2, 2, 0


@dataclass(frozen=True)
class FunctionSymbol:
    """A function of an object file: its name, the number of its section, its offset there and its size in bytes."""

    name: str
    section: int
    offset: int
    size: int


def function_symbols(code: bytes) -> Iterator[FunctionSymbol]:
    """Yield the functions of an ELF object file of 64 bits, also local ones, without undefined and empty ones. Requires
    such a file: nothing is checked."""
    offset, entry, count = *struct.unpack_from("<Q", code, 40), *struct.unpack_from("<HH", code, 58)
    sections = [_SECTION.unpack_from(code, offset + n * entry) for n in range(count)]
    for section in sections:
        if section[1] == _SYMBOL_TABLE:
            names = sections[section[6]][4]
            for start in range(section[4], section[4] + section[5], _SYMBOL.size):
                name, info, _, index, value, size = _SYMBOL.unpack_from(code, start)
                if info & 15 == _FUNCTION and index != _UNDEFINED and size:
                    end = code.index(b"\0", names + name)
                    yield FunctionSymbol(code[names + name : end].decode(), index, value, size)


def record(objects: Sequence[bytes], address: Callable[[str], int | None]) -> None:
    """Record loaded object files as STRATA_PERF selects; do nothing without it. `address` maps an exported function to
    its address, a local one to None: its address follows from an exported function of its section, and without one it
    is left out. Raises InputError for a form that is not one of FORMS, and if a file cannot be written."""
    forms = _forms()
    if not forms:
        return
    for code in objects:
        functions = list(function_symbols(code))
        bases = {f.section: a - f.offset for f in functions if (a := address(f.name)) is not None}
        labels = _labels.get()()
        named = [(bases[f.section] + f.offset, f.size, _named(f.name, labels)) for f in functions if f.section in bases]
        if "map" in forms:
            _append(_map_file(), "".join(f"{start:x} {size:x} {name}\n" for start, size, name in named).encode())
        if "jitdump" in forms:
            for start, size, name in named:
                _dump().load(name, start, size)


@dataclass(frozen=True)
class SymbolLabel:
    """The name of a group, and what it computes of the user's model; "" if unknown."""

    group: str
    part: str


Labels: TypeAlias = Callable[[], Mapping[str, SymbolLabel]]
"""A function that returns labels by the symbols of functions."""
_labels: ContextVar[Labels] = ContextVar("labels", default=dict)


@contextmanager
def labelled(labels: Labels) -> Iterator[None]:
    """Name functions that are recorded in the context `GROUP:PART`; `labels` is called only if STRATA_PERF is set."""
    token = _labels.set(labels)
    try:
        yield
    finally:
        _labels.reset(token)


def _named(name: str, labels: Mapping[str, SymbolLabel]) -> str:
    """The name of a function with the label of the longest prefix that has one: `group_3.body:encoder.0.ffn` for
    `unit.0fd4.body`. In one word, since perf's tools split lines."""
    prefix = name
    while prefix and prefix not in labels:
        prefix = prefix.rpartition(".")[0]
    if not prefix:
        return name
    label = labels[prefix]
    part = "_".join(printable(label.part).split())
    return f"{label.group}{name.removeprefix(prefix)}{f':{part}' if part else ''}"


def _forms() -> tuple[str, ...]:
    forms = tuple(filter(None, os.environ.get(VARIABLE, "").split(",")))
    wrong = next((form for form in forms if form not in FORMS), None)
    if wrong is not None:
        raise InputError(f"{VARIABLE} is '{wrong}': it takes {' and '.join(FORMS)}")
    return forms


def _map_file() -> Path:
    return Path(f"/tmp/perf-{os.getpid()}.map")


def _append(path: Path, content: bytes) -> None:
    try:
        with open(path, "ab") as file:
            file.write(content)
    except OSError as error:
        raise InputError(f"{path} cannot be written: {error.strerror}") from error


@cache
def _dump() -> _JitDump:
    return _JitDump(Path(f"jit-{os.getpid()}.dump"))


class _JitDump:
    """The jitdump file of this process. perf finds it by its mapping as executable memory. Creating it raises
    InputError for a path that cannot be written."""

    def __init__(self, path: Path) -> None:
        try:
            self._file: BinaryIO = open(path, "w+b")  # noqa: SIM115  # for the rest of the process
        except OSError as error:
            raise InputError(f"{path} cannot be written: {error.strerror}") from error
        machine = {"x86_64": 62, "aarch64": 183}.get(os.uname().machine, 0)
        self._file.write(_HEADER.pack(MAGIC, VERSION, _HEADER.size, machine, 0, os.getpid(), _now(), 0))
        self._file.flush()
        self._mapping = mmap.mmap(self._file.fileno(), _HEADER.size, prot=mmap.PROT_READ | mmap.PROT_EXEC)
        self._count = 0

    def load(self, name: str, address: int, size: int) -> None:
        """Write a record of the function `name`, with the `size` bytes of its code at an address."""
        text = name.encode() + b"\0"
        total = _RECORD.size + len(text) + size
        thread = threading.get_native_id()
        head = _RECORD.pack(LOAD, total, _now(), os.getpid(), thread, address, address, size, self._count)
        self._file.write(head + text + ctypes.string_at(address, size))
        self._file.flush()
        self._count += 1


def _now() -> int:
    """Nanoseconds of the clock of `perf record -k mono`."""
    return time.monotonic_ns()
