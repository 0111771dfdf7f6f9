"""Kernels on a GPU by CuPy, which is imported at the first use: arrays, launches, times by events."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cached_property
from typing import Any, TypeAlias

import numpy as np

from compiler.dialects.numbers import dtype_of
from compiler.support.errors import TargetError
from compiler.support.unpicklable import Unpicklable
from compiler.targets.arguments import Argument, Array
from compiler.targets.cuda.emit import CudaSource
from compiler.targets.cuda.nvrtc import fmad

Cupy: TypeAlias = Any  # CuPy ships no types: the package, its arrays and functions


def cupy() -> Cupy:
    """Return CuPy. Raises TargetError if it is not installed or there is no GPU."""
    try:
        import cupy as library
    except ImportError as error:
        raise TargetError("kernels run through CuPy, which is not installed: install strata-compiler[cuda]") from error
    try:
        if library.cuda.runtime.getDeviceCount() < 1:
            raise TargetError("there is no GPU to run a kernel on")
    except library.cuda.runtime.CUDARuntimeError as error:
        raise TargetError(f"there is no GPU to run a kernel on: {error}") from error
    return library


def local_gpu() -> tuple[str, str] | None:
    """Return the name and the architecture of the GPU; None if CuPy can use none."""
    try:
        library = cupy()
    except TargetError:
        return None
    properties = library.cuda.runtime.getDeviceProperties(0)
    name = properties["name"]
    return name.decode() if isinstance(name, bytes) else str(name), f"sm_{properties['major']}{properties['minor']}"


class LoadedKernels(Unpicklable):
    """The kernels of a text, loaded on the current device at the first launch."""

    _refusal = "kernels on a device cannot be pickled or copied: their CudaKernel can be, and loads them again"

    def __init__(self, source: CudaSource, contract: bool) -> None:
        self.source, self._contract = source, contract

    @cached_property
    def _functions(self) -> dict[str, Cupy]:
        library, functions = cupy(), {}
        _, arch = local_gpu() or ("", "")
        self.source.check(arch)
        options = (fmad(self._contract),)
        try:
            module = library.RawModule(code=self.source.text, backend="nvrtc", options=options)
            for launch in self.source.launches:
                function = module.get_function(launch.name)
                if launch.shared_bytes:
                    function.max_dynamic_shared_size_bytes = launch.shared_bytes
                functions[launch.name] = function
        except (library.cuda.compiler.CompileException, library.cuda.driver.CUDADriverError) as error:
            first = next((line for line in str(error).splitlines() if "error" in line), str(error))
            raise TargetError(f"the kernels cannot be loaded on {arch}: {first}") from error
        return functions

    def temporaries(self) -> list[Cupy]:
        """Allocate the buffers between kernels."""
        return [cupy().empty(t.shape, dtype_of(t.element)) for t in self.source.temporaries]

    def launch(self, arrays: Sequence[Cupy]) -> None:
        """Launch the kernels in order on the arrays of all arguments, then temporaries. Raises TargetError for kernels
        that cannot be loaded, and for a launch that fails."""
        for launch in self.source.launches:
            arguments = tuple(arrays[number] for number in launch.arguments)
            kernel = self._functions[launch.name]
            try:
                kernel(launch.grid, launch.block, arguments, shared_mem=launch.shared_bytes)
            except cupy().cuda.driver.CUDADriverError as error:
                raise TargetError(f"kernel {launch.name} cannot be started: {error}") from error


class OnDevice(Unpicklable):
    """Kernels with a device array for each argument and temporary, to fill, run, time and read repeatedly."""

    _refusal = "arrays on a device cannot be pickled or copied: `on_device` of their kernel makes others"

    def __init__(self, loaded: LoadedKernels, arguments: Sequence[Argument], outputs: int) -> None:
        self._cupy, self._loaded = cupy(), loaded
        self._outputs = outputs
        self._buffers = [self._cupy.empty(a.shape, a.dtype) for a in arguments]
        self._arrays = [*self._buffers, *loaded.temporaries()]

    def fill(self, arrays: Sequence[Array]) -> None:
        """Copy an array for each argument to the device; those of outputs are their initial contents."""
        for buffer, array in zip(self._buffers, arrays, strict=True):
            buffer.set(np.ascontiguousarray(array))

    def run(self) -> None:
        """Run the kernels once and wait for their end."""
        self._loaded.launch(self._arrays)
        self._cupy.cuda.runtime.deviceSynchronize()

    def results(self) -> list[Array]:
        """Copy the outputs to the host; return the copies in order."""
        return [self._cupy.asnumpy(buffer) for buffer in self._buffers[len(self._buffers) - self._outputs :]]

    def seconds(self, calls: int) -> float:
        """Return the seconds of one call, averaged over `calls` calls between two events."""
        start, end = self._cupy.cuda.Event(), self._cupy.cuda.Event()
        start.record()
        for _ in range(calls):
            self._loaded.launch(self._arrays)
        end.record()
        end.synchronize()
        return float(self._cupy.cuda.get_elapsed_time(start, end)) / 1e3 / calls
