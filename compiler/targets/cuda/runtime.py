"""Kernels on a GPU by CuPy, which is imported at the first use: arrays, launches, times by events."""

from __future__ import annotations

import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cache, cached_property
from threading import Lock, get_ident
from typing import Any, TypeAlias

import numpy as np

from compiler.dialects.numbers import dtype_of
from compiler.support.errors import TargetError
from compiler.support.unpicklable import Unpicklable
from compiler.targets.arguments import Argument, Array
from compiler.targets.cuda.emit import SLOT, WORKSPACE, CudaSource, Launch
from compiler.targets.cuda.machines import described
from compiler.targets.cuda.nvrtc import fmad
from compiler.types.machines import Gpu

PER_THREAD = 2
"""The handle of the default stream of the calling thread, cudaStreamPerThread."""
Cupy: TypeAlias = Any  # CuPy ships no types: the package, its arrays and functions


LISTS = 16
"""The most workspaces whose launches stay prepared."""
_usable: list[Cupy] = []
"""CuPy, once a GPU has been found."""


def cupy() -> Cupy:
    """Return CuPy; GPUs are counted at the first call. Raises TargetError if it is not installed or there is no GPU."""
    if not _usable or _usable[0] is not sys.modules.get("cupy"):
        _usable[:] = [_usable_cupy()]
    return _usable[0]


def _usable_cupy() -> Cupy:
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


@cache
def device_dtype(dtype: np.dtype[Any]) -> np.dtype[Any]:
    """Return CuPy's dtype for elements of a dtype: uint16 for bfloat16, whose bits it has, else the same."""
    return np.dtype(np.uint16) if dtype.name == "bfloat16" else dtype


def local_gpu() -> Gpu | None:
    """Return the model of CuPy's current GPU, from its properties; None if CuPy is not installed or there is no GPU."""
    try:
        library = cupy()
    except TargetError:
        return None
    properties = library.cuda.runtime.getDeviceProperties(library.cuda.runtime.getDevice())
    name = properties["name"]
    arch = f"sm_{properties['major']}{properties['minor']}"
    return described(arch, name.decode() if isinstance(name, bytes) else str(name), properties)


class LoadedKernels(Unpicklable):
    """The kernels of a program on the current device, loaded at the first launch, with the program's constants. Each
    stream has a workspace for the buffers between kernels, allocated at its first launch."""

    _refusal = "kernels on a device cannot be pickled or copied: their CudaKernel can be, and loads them again"

    def __init__(self, source: CudaSource, contract: bool, arguments: int, constants: Mapping[int, Array]) -> None:
        """contract: whether fused multiply-adds are permitted. arguments: the number of the program's arguments.
        constants: arrays on the host, by position."""
        self.source, self._contract, self._arguments, self._constants = source, contract, arguments, constants
        self._workspaces: dict[tuple[int, int], _Workspace] = {}
        self._lock, self._is_ready = Lock(), False
        self._prepared: dict[int, list[_PreparedLaunch]] = {}
        """The launches of a call, by the address of the workspace."""

    @cached_property
    def _functions(self) -> dict[str, Cupy]:
        library, functions = cupy(), {}
        gpu = local_gpu()
        arch = "" if gpu is None else gpu.arch
        self.source.check(arch)
        options = (fmad(self._contract),)
        try:
            module = library.RawModule(code=self.source.text, backend="nvrtc", options=options)
            for launch in self.source.all_launches:
                function = module.get_function(launch.name)
                if launch.shared_bytes:
                    function.max_dynamic_shared_size_bytes = launch.shared_bytes
                functions[launch.name] = function
        except (library.cuda.compiler.CompileException, library.cuda.driver.CUDADriverError) as error:
            first = next((line for line in str(error).splitlines() if "error" in line), str(error))
            raise TargetError(f"the kernels cannot be loaded on {arch}: {first}") from error
        return functions

    @cached_property
    def _fixed(self) -> dict[int, Cupy]:
        """The arrays on the device of constants and prepared buffers, by position, that launches of calls read."""
        library = cupy()
        arrays = {n: library.asarray(array.view(device_dtype(array.dtype))) for n, array in self._constants.items()}
        for position, buffer in enumerate(self.source.prepared, self._arguments):
            arrays[position] = library.empty(buffer.shape, device_dtype(dtype_of(buffer.element)))
        if self.source.preparation:
            memory = _Workspace(self.source)
            _start(self._list(self.source.preparation, {**_addresses(arrays), WORKSPACE: memory.address}), {})
            library.cuda.get_current_stream().synchronize()  # other streams read the results
        read = {number for launch in self.source.launches for number in launch.arguments}
        return {position: array for position, array in arrays.items() if position in read}

    @cached_property
    def _places(self) -> dict[int, tuple[int, int]]:
        """The memory of each temporary by position: the position of an argument, or WORKSPACE, and an offset in it."""
        places: dict[int, tuple[int, int]] = {}
        for position, buffer in enumerate(self.source.temporaries, self._arguments + len(self.source.prepared)):
            base, offset = places.get(buffer.base, (buffer.base, 0))
            places[position] = base, offset + buffer.offset
        return places

    def prepare(self) -> None:
        """Load the kernels, and copy and prepare the constants, at the first call. Raises TargetError for kernels that
        cannot be loaded or launched."""
        if not self._is_ready:
            with self._lock:
                _ = self._functions, self._fixed
            self._is_ready = True

    def launch(self, arrays: Mapping[int, Cupy], workspace: Cupy = None) -> None:
        """Launch the kernels in order on the current stream. arrays: of all arguments but constants, by position.
        workspace: bytes on the device for the buffers between kernels; None for the stream's. Raises TargetError for
        kernels that cannot be loaded or launched, and a workspace that is too small or misaligned."""
        self.prepare()
        memory = self._workspace() if workspace is None else _Workspace(self.source, workspace)
        with memory.lock:  # launches of two calls on one stream do not interleave
            self.launch_at(_addresses(arrays), memory.address)

    def launch_at(self, addresses: Mapping[int, int], workspace: int) -> None:
        """Launch the kernels, which have been prepared, in order on the current stream. addresses: of the arguments
        that are no constants, by position; they are not checked. workspace: the address of the buffers between kernels,
        a multiple of SLOT. Raises TargetError for a launch that fails."""
        prepared = self._prepared.get(workspace)
        if prepared is None:
            if len(self._prepared) >= LISTS:
                self._prepared.clear()
            known = {**_addresses(self._fixed), WORKSPACE: workspace}
            prepared = self._prepared[workspace] = self._list(self.source.launches, known)
        _start(prepared, addresses)

    def _workspace(self) -> _Workspace:
        """Return the current stream's workspace, allocated at the first use; a per-thread stream has one a thread."""
        stream = cupy().cuda.get_current_stream().ptr
        key = (stream, get_ident() if stream == PER_THREAD else 0)
        found = self._workspaces.get(key)
        if found is not None:
            return found
        with self._lock:
            if key not in self._workspaces:
                self._workspaces[key] = _Workspace(self.source)
            return self._workspaces[key]

    def _list(self, launches: Sequence[Launch], addresses: Mapping[int, int]) -> list[_PreparedLaunch]:
        """Prepare launches; `addresses`, by position, are those of the buffers that are the same in each call,
        WORKSPACE included; arguments at other positions vary. Raises TargetError for kernels that cannot be loaded."""
        prepared = []
        for launch in launches:
            places = [self._places.get(number, (number, 0)) for number in launch.arguments]
            known = tuple(np.uint64(addresses.get(base, 0) + offset) for base, offset in places)
            varying = tuple((n, base, offset) for n, (base, offset) in enumerate(places) if base not in addresses)
            prepared.append(_PreparedLaunch(launch, self._functions[launch.name], known, varying))
        return prepared


@dataclass(frozen=True, slots=True)
class _PreparedLaunch:
    """A launch with its loaded function and addresses. varying: of the arguments that differ from call to call, their
    number, the position of their buffer, and the offset in it."""

    launch: Launch
    function: Cupy
    arguments: tuple[np.uint64, ...]
    varying: tuple[tuple[int, int, int], ...]


def _start(launches: Sequence[_PreparedLaunch], addresses: Mapping[int, int]) -> None:
    """Start kernels in order. addresses: of the buffers that differ from call to call, by position. Raises TargetError
    for a launch that fails."""
    for prepared in launches:
        launch, arguments = prepared.launch, prepared.arguments
        if prepared.varying:
            complete = list(arguments)
            for n, base, offset in prepared.varying:
                complete[n] = np.uint64(addresses[base] + offset)
            arguments = tuple(complete)
        try:
            prepared.function(launch.grid, launch.block, arguments, shared_mem=launch.shared_bytes)
        except cupy().cuda.driver.CUDADriverError as error:
            raise TargetError(f"kernel {launch.name} cannot be started: {error}") from error


def _addresses(arrays: Mapping[int, Cupy]) -> dict[int, int]:
    return {position: array.data.ptr for position, array in arrays.items()}


class _Workspace:
    """Device memory for the buffers between the kernels of one call at a time, at `address`."""

    def __init__(self, source: CudaSource, memory: Cupy = None) -> None:
        """memory: an array of bytes on the device; None allocates one. Raises TargetError if it is too small or
        misaligned."""
        size = source.workspace_bytes
        self.lock, self._memory = Lock(), cupy().empty((size,), np.dtype(np.uint8)) if memory is None else memory
        self.address: int = self._memory.data.ptr
        if size and (self._memory.nbytes < size or self.address % SLOT):
            raise TargetError(f"the workspace has to have {size} bytes, at an address that is a multiple of {SLOT}")


class OnDevice(Unpicklable):
    """Kernels with a device array for each argument, the last `outputs` of them results, and memory for temporaries, to
    fill, run, time and read repeatedly."""

    _refusal = "arrays on a device cannot be pickled or copied: `on_device` of their kernel makes others"

    def __init__(self, loaded: LoadedKernels, arguments: Sequence[Argument], outputs: int) -> None:
        self._cupy, self._loaded = cupy(), loaded
        self._outputs = arguments[len(arguments) - outputs :]
        self._buffers = [self._cupy.empty(a.shape, device_dtype(a.dtype)) for a in arguments]
        self._arrays = dict(enumerate(self._buffers))

    def fill(self, arrays: Sequence[Array]) -> None:
        """Copy an array for each argument, of its shape and dtype, to the device; those of outputs are their initial
        contents. Raises ValueError for another number of arrays."""
        for buffer, array in zip(self._buffers, arrays, strict=True):
            buffer.set(np.ascontiguousarray(array).view(buffer.dtype))

    def run(self) -> None:
        """Run the kernels once and wait for their end."""
        self._loaded.launch(self._arrays)
        self._cupy.cuda.runtime.deviceSynchronize()

    def results(self) -> list[Array]:
        """Copy the outputs to the host; return the copies in order."""
        buffers = self._buffers[len(self._buffers) - len(self._outputs) :]
        return [self._cupy.asnumpy(b).view(a.dtype) for b, a in zip(buffers, self._outputs, strict=True)]

    def seconds(self, calls: int) -> float:
        """Return the seconds of one call, averaged over `calls` calls, at least one, between two events on the current
        stream."""
        start, end = self._cupy.cuda.Event(), self._cupy.cuda.Event()
        start.record()
        for _ in range(calls):
            self._loaded.launch(self._arrays)
        end.record()
        end.synchronize()
        return float(self._cupy.cuda.get_elapsed_time(start, end)) / 1e3 / calls
