"""Programs for libraries, and calls of libraries through ctypes as a program in C makes them."""

from __future__ import annotations

import ctypes
import os
import shutil
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from compiler import te
from compiler.targets.arena import arena
from compiler.targets.compilers import compiler_command
from compiler.targets.cpu.library.export import library_name
from compiler.targets.cpu.library.statuses import STATUSES

Array = np.ndarray[Any, Any]
Addresses = Sequence[int | None]
needs_compiler = pytest.mark.skipif(compiler_command() is None, reason="there is no C compiler")


def tool(name: str) -> str:
    """The path of a program; skips the test without it."""
    path = shutil.which(name, path=os.pathsep.join([os.environ.get("PATH", ""), str(Path.home() / ".cargo/bin")]))
    return path if path is not None else pytest.skip(f"{name} is not installed")


def network(name: str = "net") -> te.Function:
    """Two layers around a softmax: three groups, two results, temporaries, and weights that are packed."""
    shapes = {"x": (16, 64), "y": (16, 48), "W": (64, 48), "b": (48,), "V": (48, 32)}
    tensors = {key: te.placeholder(shape, name=key) for key, shape in shapes.items()}
    x, y, w, b, v = tensors.values()
    probabilities = te.nn.softmax(te.nn.relu(te.nn.add(te.nn.matmul(x, w), b)))
    return te.function(name, list(tensors.values()), [probabilities, te.nn.matmul(te.nn.mul(probabilities, y), v)])


def normal(*shape: int, seed: int = 0) -> Array:
    return np.random.default_rng(seed).standard_normal(shape).astype(np.float32)


WEIGHTS = {"W": normal(64, 48), "b": normal(48, seed=1), "V": normal(48, 32, seed=2)}
INPUTS = [normal(16, 64, seed=3), normal(16, 48, seed=4)]
SHAPES = [(16, 48), (16, 32)]
"""The shapes of the network's results."""


@dataclass(frozen=True)
class Call:
    """The arguments of NAME_run, addresses as numbers."""

    constants: int | None
    inputs: Addresses | None
    outputs: Addresses | None
    workspace: int | None
    workspace_bytes: int
    threads: int = 1


class CLibrary:
    """The functions of a library by ctypes, with statuses by name."""

    def __init__(self, path: Path) -> None:
        self.name, self._functions = library_name(path, None), ctypes.CDLL(str(path))

    def call(self, function: str, result: Any = ctypes.c_int, *arguments: object) -> Any:
        native = getattr(self._functions, f"{self.name}_{function}")
        native.restype = result
        return native(*arguments)

    @property
    def version(self) -> str:
        return str(self.call("version", ctypes.c_char_p).decode())

    @property
    def constants_bytes(self) -> int:
        return int(self.call("constants_bytes", ctypes.c_size_t))

    def workspace_bytes(self, threads: int = 1) -> int:
        return int(self.call("workspace_bytes", ctypes.c_size_t, threads))

    def prepare(self, weights: Addresses | None, constants: int | None, size: int) -> str:
        passed = (_pointers(weights), ctypes.c_void_p(constants), ctypes.c_size_t(size))
        return STATUSES[self.call("prepare", ctypes.c_int, *passed)].name

    def prepare_file(self, path: Path | None, constants: int | None, size: int) -> str:
        name = None if path is None else ctypes.c_char_p(os.fsencode(path))
        passed = (name, ctypes.c_void_p(constants), ctypes.c_size_t(size))
        return STATUSES[self.call("prepare_file", ctypes.c_int, *passed)].name

    def run(self, call: Call) -> str:
        arrays = _pointers(call.inputs), _pointers(call.outputs)
        sizes = ctypes.c_size_t(call.workspace_bytes), ctypes.c_int(call.threads)
        memory = ctypes.c_void_p(call.constants), ctypes.c_void_p(call.workspace)
        return STATUSES[self.call("run", ctypes.c_int, memory[0], *arrays, memory[1], *sizes)].name


def _pointers(addresses: Addresses | None) -> Any:
    return None if addresses is None else (ctypes.c_void_p * (len(addresses) + 1))(*addresses)


class Block:
    """Arrays by name in one block of memory, aligned to 64 bytes, with canaries around each."""

    GAP, CANARY = 4096, 0xA5

    def __init__(self, sizes: Mapping[str, int]) -> None:
        self.sizes, self._starts, end = dict(sizes), dict[str, int](), self.GAP
        for name, size in sizes.items():
            self._starts[name] = end
            end += -(-size // 64) * 64 + self.GAP
        self.bytes = arena(end)
        self.bytes[:] = self.CANARY
        self._before = self.bytes.copy()

    def __getitem__(self, name: str) -> int:
        """The address of an array."""
        return int(self.bytes.ctypes.data) + self._starts[name]

    def array(self, name: str) -> Array:
        """The bytes of an array."""
        return self.bytes[self._starts[name] : self._starts[name] + self.sizes[name]]

    def remember(self) -> None:
        """Compare with the bytes of this moment from now on."""
        self._before = self.bytes.copy()

    @property
    def changed(self) -> set[str]:
        """The arrays that have changed; `canaries` for memory between them."""
        different = self.bytes != self._before
        names = {name for name in self.sizes if different[self._slice(name)].any()}
        for name in self.sizes:
            different[self._slice(name)] = False
        return names | ({"canaries"} if different.any() else set())

    def _slice(self, name: str) -> slice:
        return slice(self._starts[name], self._starts[name] + self.sizes[name])
