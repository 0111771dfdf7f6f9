"""Kernels on a GPU through CuPy: arrays, launches, times by events. CuPy is imported when it is used."""

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

Cupy: TypeAlias = Any  # CuPy ships no types: the package, its arrays and functions


def cupy() -> Cupy:
    """CuPy. Raises TargetError where it is not installed, or there is no GPU."""
    try:
        import cupy as found
    except ImportError as error:
        raise TargetError("kernels run through CuPy, which is not installed: install strata-compiler[cuda]") from error
    try:
        if found.cuda.runtime.getDeviceCount() < 1:
            raise TargetError("there is no GPU to run a kernel on")
    except found.cuda.runtime.CUDARuntimeError as error:
        raise TargetError(f"there is no GPU to run a kernel on: {error}") from error
    return found


def at_hand() -> tuple[str, str] | None:
    """The name and the architecture of the GPU; None if CuPy can use none."""
    try:
        library = cupy()
    except TargetError:
        return None
    facts = library.cuda.runtime.getDeviceProperties(0)
    name = facts["name"]
    return name.decode() if isinstance(name, bytes) else str(name), f"sm_{facts['major']}{facts['minor']}"


ALIGNMENT = 16
"""The bytes of the widest vector: arrays begin at multiples of it."""


class LoadedKernels(Unpicklable):
    """The kernels of a text, loaded on the current device."""

    _refusal = "kernels on a device cannot be pickled or copied: their CudaKernel can be, and loads them again"

    def __init__(self, source: CudaSource, contract: bool) -> None:
        self.source, self._contract = source, contract

    @cached_property
    def _functions(self) -> dict[str, Cupy]:
        library, functions = cupy(), {}
        _, arch = at_hand() or ("", "")
        self.source.check(arch)
        options = (f"--fmad={'true' if self._contract else 'false'}",)
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
        """Arrays for what kernels hand on."""
        return [cupy().empty(shape, dtype_of(element)) for element, shape in self.source.temporaries]

    def launch(self, arrays: Sequence[Cupy]) -> None:
        """Start the kernels in order on inputs, outputs and temporaries. Raises TargetError for a launch that fails."""
        for launched in self.source.launches:
            arguments = tuple(arrays[number] for number in launched.arguments)
            start = self._functions[launched.name]
            try:
                start(launched.grid, launched.block, arguments, shared_mem=launched.shared_bytes)
            except cupy().cuda.driver.CUDADriverError as error:
                raise TargetError(f"kernel {launched.name} cannot be started: {error}") from error


class OnDevice(Unpicklable):
    """Kernels with their arrays on the device: filled, run, timed and read as often as is wanted."""

    _refusal = "arrays on a device cannot be pickled or copied: `on_device` of their kernel makes others"

    def __init__(self, loaded: LoadedKernels, arguments: Sequence[Argument], outputs: int) -> None:
        self._cupy, self._loaded = cupy(), loaded
        self._outputs = outputs
        self._buffers = [self._cupy.empty(a.shape, a.dtype) for a in arguments]
        self._arrays = [*self._buffers, *loaded.temporaries()]

    def fill(self, arrays: Sequence[Array]) -> None:
        """Copy inputs, and what outputs hold before, to the device."""
        for buffer, array in zip(self._buffers, arrays, strict=True):
            buffer.set(np.ascontiguousarray(array))

    def run(self) -> None:
        """Run once, to the end."""
        self._loaded.launch(self._arrays)
        self._cupy.cuda.runtime.deviceSynchronize()

    def results(self) -> list[Array]:
        """The outputs, on the host."""
        return [self._cupy.asnumpy(buffer) for buffer in self._buffers[len(self._buffers) - self._outputs :]]

    def seconds(self, calls: int) -> float:
        """The seconds of one call, as events on the device see so many in a row."""
        start, end = self._cupy.cuda.Event(), self._cupy.cuda.Event()
        start.record()
        for _ in range(calls):
            self._loaded.launch(self._arrays)
        end.record()
        end.synchronize()
        return float(self._cupy.cuda.get_elapsed_time(start, end)) / 1e3 / calls
