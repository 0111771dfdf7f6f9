"""As much of CuPy as Strata calls, without a GPU: arrays lie on the host, and g++ compiles kernels that run there.

A file that PRETENDED_FAULT names makes one launch fail, as an access outside of the device's memory would, and is gone
after it.
"""

import os
import tempfile
import time
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

    def copy(self):
        return empty(self.shape, self.dtype)._with(self.array)

    def _with(self, array):
        np.copyto(self.array, array)
        return self

    def set(self, array):
        np.copyto(self.array, array)


def asarray(array):
    return array if isinstance(array, ndarray) else ndarray(np.asarray(array))


ascontiguousarray = asarray


def empty(shape, dtype):
    """At an address that is a multiple of 64, as CuPy's are of 256."""
    dtype = np.dtype(dtype)
    size = int(np.prod(shape, dtype=np.int64)) * dtype.itemsize
    pool = np.empty(size + 64, np.uint8)
    start = -pool.ctypes.data % 64
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


class Function:
    def __init__(self, code, name):
        self.code, self.name, self.built = code, name, {}

    def __call__(self, grid, block, arguments, shared_mem):
        from tests.host_cuda import compiled, started

        fault = os.environ.get("PRETENDED_FAULT")
        if fault and Path(fault).exists():
            Path(fault).unlink()
            raise CUDARuntimeError("cudaErrorIllegalAddress: an illegal memory access was encountered")
        if shared_mem > 100 << 10:  # less than its architecture has
            raise CUDADriverError("CUDA_ERROR_INVALID_VALUE: invalid argument")
        key = (grid, block)
        if key not in self.built:
            with tempfile.TemporaryDirectory() as folder:
                self.built[key] = compiled(self.code, [(self.name, grid, block)], Path(folder))
        started(self.built[key], 0, [array.array for array in arguments])


class Event:
    def record(self):
        self.at = time.perf_counter()

    def synchronize(self):
        pass


def get_elapsed_time(start, end):
    return (end.at - start.at) * 1e3


cuda = SimpleNamespace(
    Event=Event,
    get_elapsed_time=get_elapsed_time,
    compiler=SimpleNamespace(CompileException=CompileException),
    driver=SimpleNamespace(CUDADriverError=CUDADriverError),
    runtime=SimpleNamespace(
        CUDARuntimeError=CUDARuntimeError,
        getDeviceCount=lambda: 1,
        getDeviceProperties=lambda number: {"name": b"pretended GPU", "major": 8, "minor": 0},
        deviceSynchronize=lambda: None,
    ),
)
