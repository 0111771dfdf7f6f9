# ruff: noqa: E402
"""A device of torch without hardware, of two GPUs: memory on the host, operators by torch's CPU kernels.

Memory is poisoned when it is allocated and when it is freed; that of a captured graph stays with the graph.
"""

from __future__ import annotations

import ctypes
from collections.abc import Iterator
from contextlib import contextmanager
from functools import cache
from types import SimpleNamespace
from typing import Any

import pytest

torch = pytest.importorskip("torch")

from torch.utils import backend_registration

from compiler.frontends.torch.dtypes import DTYPES

NAME = "pretended"


class _DLTensor(ctypes.Structure):
    """A tensor as DLPack has it."""

    _fields_ = (
        ("data", ctypes.c_void_p),
        ("device", ctypes.c_int32),
        ("index", ctypes.c_int32),
        ("dimensions", ctypes.c_int32),
        ("code", ctypes.c_uint8),
        ("bits", ctypes.c_uint8),
        ("lanes", ctypes.c_uint16),
        ("shape", ctypes.POINTER(ctypes.c_int64)),
        ("strides", ctypes.POINTER(ctypes.c_int64)),
        ("offset", ctypes.c_uint64),
        ("context", ctypes.c_void_p),
        ("deleter", ctypes.c_void_p),
    )


_CODES = {"i": 0, "u": 1, "f": 2, "b": 4}
EXTENSION = 12
"""DLPack's number of the device that torch renames."""


class Memory(backend_registration._DummyBackendModule):  # type: ignore[misc]
    """The module of the device, as torch.cuda, and what happens there."""

    def __init__(self) -> None:
        self.allocations: list[int] = []
        """The bytes of each tensor that torch has made on the device."""
        self.operators: list[str] = []
        """The operators that torch has run there."""
        self.streams = [0, 0]
        """The handle of the current stream of each device."""
        self.current = 0
        self.pool: list[Any] | None = None
        """The memory of the graph that is captured."""
        self.alive: dict[int, tuple[Any, ...]] = {}

    def device_count(self) -> int:
        return 2

    def current_device(self) -> int:
        return self.current

    def get_device_capability(self, device: Any) -> tuple[int, int]:
        return (8, 0)

    def current_stream(self, device: Any) -> Any:
        return SimpleNamespace(cuda_stream=self.streams[device.index])

    def is_current_stream_capturing(self) -> bool:
        return self.pool is not None

    def synchronize(self, device: Any) -> None:
        pass

    @contextmanager
    def stream(self, handle: int, index: int = 0) -> Iterator[None]:
        """Make a stream current."""
        before, self.streams[index] = self.streams[index], handle
        yield
        self.streams[index] = before

    @contextmanager
    def captured(self, handle: int) -> Iterator[list[Any]]:
        """Capture what is launched on a stream of device 0; yields what keeps the graph's memory."""
        with self.stream(handle):
            pool: list[Any] = []
            self.pool = pool
            yield pool
            self.pool = None

    def tensor(self, host: Any, index: int) -> Any:
        """A tensor of the device on the memory of a tensor of the host."""
        size = host.dim()
        shape, strides = (ctypes.c_int64 * size)(*host.shape), (ctypes.c_int64 * size)(*host.stride())
        dtype = DTYPES[host.dtype]
        code, bits = (4, 16) if dtype == "bf16" else (6, 8) if dtype == "i1" else (_CODES[dtype[0]], int(dtype[1:]))
        deleter = ctypes.cast(_deleter(), ctypes.c_void_p).value
        managed = _DLTensor(host.data_ptr(), EXTENSION, index, size, code, bits, 1, shape, strides, 0, None, deleter)
        self.alive[ctypes.addressof(managed)] = (managed, host, shape, strides, self.pool)
        return torch._C._from_dlpack(_capsule()(ctypes.addressof(managed), b"dltensor", None))

    def is_held(self, address: int, pool: list[Any]) -> bool:
        """Whether an address is in a tensor that lives, or in the memory of a graph."""
        tensors = [entry[1] for entry in self.alive.values()] + pool
        storages = [tensor.untyped_storage() for tensor in tensors]
        return any(s.data_ptr() <= address < s.data_ptr() + s.nbytes() for s in storages)

    def free(self, address: int) -> None:
        _, host, *_, pool = self.alive.pop(address)
        if pool is not None:
            pool.append(host)
        elif host._base is None and sum(other[1] is host for other in self.alive.values()) == 0:
            _poison(host)


def host_of(tensor: Any) -> Any:
    """A tensor of the host on the memory of one of the device."""
    storage = tensor.untyped_storage()
    on_host = torch._C._construct_storage_from_data_pointer(storage.data_ptr(), torch.device("cpu"), storage.nbytes())
    empty = torch.empty(0, dtype=tensor.dtype)
    return empty.set_(on_host, tensor.storage_offset(), tensor.shape, tensor.stride())


@cache
def memory() -> Memory:
    """The device, which torch knows from now on."""
    module, guard = Memory(), type("Guard", (torch._C._acc.DeviceGuard,), {"type_": lambda self: _kind()})
    backend_registration._setup_privateuseone_for_python_backend(NAME, module, device_guard=guard())
    library = torch.library.Library("_", "IMPL")
    library.fallback(lambda op, *args, **kwargs: _run(module, op, args, kwargs), "PrivateUse1")
    module.library = library
    return module


def _kind() -> Any:
    return torch._C._autograd.DeviceType.PrivateUse1


def _run(module: Memory, op: Any, args: Any, kwargs: Any) -> Any:
    """Run an operator on the host's memory; views are torch's own."""
    if op.is_view:
        return op.redispatch(torch._C.DispatchKeySet(torch._C.DispatchKey.CPU), *args, **kwargs)
    indices, given = [], []

    def on_host(value: Any) -> Any:
        if isinstance(value, torch.device) and value.type == NAME:
            indices.append(value.index or 0)
            return torch.device("cpu")
        if not isinstance(value, torch.Tensor) or value.device.type != NAME:
            return value
        indices.append(value.device.index)
        given.append((host_of(value), value))
        return given[-1][0]

    inputs, named = torch.utils._pytree.tree_map(on_host, (args, kwargs))
    if op is torch.ops.aten._copy_from.default:
        inputs[1].copy_(inputs[0])
        return args[1]
    module.operators.append(str(op))
    returned = op(*inputs, **named)

    def on_device(value: Any) -> Any:
        if not isinstance(value, torch.Tensor):
            return value
        for host, tensor in given:
            if value is host:
                return tensor
        size = value.untyped_storage().nbytes()
        module.allocations.append(size)
        if "empty" in str(op):
            value = _aligned(value)
        return module.tensor(value, indices[0])

    return torch.utils._pytree.tree_map(on_device, returned)


def _aligned(like: Any) -> Any:
    """Poisoned memory of a shape, at a multiple of 256."""
    size = like.untyped_storage().nbytes()
    raw = torch.full((size + 256,), 0xFF, dtype=torch.uint8)
    part = raw[-raw.data_ptr() % 256 :][:size].view(like.dtype)
    made = part.as_strided(like.shape, like.stride())
    made.raw = raw
    return made


def _poison(host: Any) -> None:
    raw = getattr(host, "raw", None)
    if raw is not None:
        raw.fill_(0xFF)


@cache
def _deleter() -> Any:
    return ctypes.CFUNCTYPE(None, ctypes.c_void_p)(lambda address: memory().free(address))


@cache
def _capsule() -> Any:
    make = ctypes.pythonapi.PyCapsule_New
    make.restype, make.argtypes = ctypes.py_object, [ctypes.c_void_p, ctypes.c_char_p, ctypes.c_void_p]
    return make
