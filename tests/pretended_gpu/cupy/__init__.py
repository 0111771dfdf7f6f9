"""As much of CuPy as Strata calls, without a GPU: arrays lie on the host, and g++ compiles kernels that run there.

A file that PRETENDED_FAULT names makes one launch fail, as an access outside of the device's memory would, and is gone
after it.
"""

import os
import threading
import time
from functools import partial
from pathlib import Path
from types import SimpleNamespace

import numpy as np


class CUDARuntimeError(RuntimeError):
    pass


class CUDADriverError(RuntimeError):
    pass


class CompileException(Exception):
    pass


class ndarray:
    """An array on the device that there is not."""

    def __init__(self, array):
        self.array = array
        self.shape, self.dtype = array.shape, array.dtype
        self.data = SimpleNamespace(ptr=array.ctypes.data)
        self.nbytes, self.flags = array.nbytes, array.flags

    def __getitem__(self, part):
        return ndarray(self.array[part])

    def view(self, dtype):
        return ndarray(self.array.view(dtype))

    def reshape(self, *shape):
        return ndarray(self.array.reshape(*shape))

    def copy(self):
        return allocated(self.shape, self.dtype)._with(self.array)

    def _with(self, array):
        np.copyto(self.array, array)
        return self

    def set(self, array):
        np.copyto(self.array, array)


def asarray(array):
    if hasattr(array, "__cuda_array_interface__"):
        array = array.array  # a tensor on the same pretended device
    return array if isinstance(array, ndarray) else ndarray(np.asarray(array))


ascontiguousarray = asarray


def empty(shape, dtype):
    assert get_current_stream().recorded is None, "an allocation while a stream is captured"
    return allocated(shape, dtype)


def allocated(shape, dtype):
    """At an address that is a multiple of 256, and poisoned."""
    dtype = np.dtype(dtype)
    size = int(np.prod(shape, dtype=np.int64)) * dtype.itemsize
    pool = np.full(size + 256, 0xFF, np.uint8)
    start = -pool.ctypes.data % 256
    return ndarray(pool[start : start + size].view(dtype).reshape(shape))


def asnumpy(array):
    return array.array.copy()


class RawModule:
    def __init__(self, code, backend, options):
        assert backend == "nvrtc" and options[0] in ("--fmad=true", "--fmad=false")
        if "#error" in code:
            raise CompileException("strata.cu(1): error: #error directive")
        self.code = code

    def get_function(self, name):
        assert f"\n{name}(" in self.code
        return Function(self.code, name)


ONE = threading.Lock()
"""Launches run one at a time: those on the host share the memory of a block."""


class Function:
    def __init__(self, code, name):
        self.code, self.name, self.device = code, name, get_device()

    def __call__(self, grid, block, arguments, shared_mem):
        from tests.host_cuda import compiled_once, started

        assert get_device() == self.device, "a kernel of another device"
        stream = get_current_stream()
        if stream.recorded is not None:
            stream.recorded.append(partial(self, grid, block, arguments, shared_mem))
            return

        fault = os.environ.get("PRETENDED_FAULT")
        if fault and Path(fault).exists():
            Path(fault).unlink()
            raise CUDARuntimeError("cudaErrorIllegalAddress: an illegal memory access was encountered")
        if shared_mem > 100 << 10:  # less than its architecture has
            raise CUDADriverError("CUDA_ERROR_INVALID_VALUE: invalid argument")
        with ONE:
            library = compiled_once(self.code, (self.name, grid, block))
            started(library, 0, [int(address) for address in arguments])


class Stream:
    """A stream: what is launched on it runs at once."""

    current = threading.local()

    def __init__(self, ptr=None, non_blocking=False):
        self.ptr, self.recorded = id(self) if ptr is None else ptr, None

    def begin_capture(self):
        self.recorded = []

    def end_capture(self):
        recorded, self.recorded = self.recorded, None
        return Graph(recorded)

    def __enter__(self):
        self.outer = get_current_stream()
        Stream.current.stream = self
        return self

    def __exit__(self, *raised):
        Stream.current.stream = self.outer

    def synchronize(self):
        pass


class Graph:
    """Launches that a stream has recorded."""

    def __init__(self, launches):
        self.launches = launches

    def launch(self, stream):
        for launch in self.launches:
            launch()


class Device:
    """A device by its number, of two."""

    current = threading.local()

    def __init__(self, number):
        assert number in (0, 1)
        self.number = number

    def __enter__(self):
        self.outer = get_device()
        Device.current.number = self.number
        return self

    def __exit__(self, *raised):
        Device.current.number = self.outer


def get_device():
    return getattr(Device.current, "number", 0)


def get_current_stream():
    return getattr(Stream.current, "stream", DEFAULT)


DEFAULT = Stream(0)


class Event:
    def record(self):
        self.at = time.perf_counter()

    def synchronize(self):
        pass


def get_elapsed_time(start, end):
    return (end.at - start.at) * 1e3


cuda = SimpleNamespace(
    Event=Event,
    Device=Device,
    ExternalStream=Stream,
    Stream=Stream,
    get_current_stream=get_current_stream,
    get_elapsed_time=get_elapsed_time,
    compiler=SimpleNamespace(CompileException=CompileException),
    driver=SimpleNamespace(CUDADriverError=CUDADriverError),
    runtime=SimpleNamespace(
        CUDARuntimeError=CUDARuntimeError,
        getDevice=get_device,
        getDeviceCount=lambda: 2,
        getDeviceProperties=lambda number: {"name": b"pretended GPU", "major": 8, "minor": 0},
        deviceSynchronize=lambda: None,
    ),
)
