"""Run launches of a PTX text on arrays."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from math import prod

import numpy as np

from compiler.support.errors import InputError
from compiler.targets.launches import Extents
from compiler.targets.ptx.addresses import SHIFT
from compiler.targets.ptx.faults import DivergenceError, FaultLog, PtxFault
from compiler.targets.ptx.lanes import HALF, PtxLanes
from compiler.targets.ptx.link import LinkedKernel, link, plain_name
from compiler.targets.ptx.memory import PtxMemory, poisoned
from compiler.targets.ptx.parse import parse_ptx
from compiler.targets.ptx.prepare import PreparedFunction, prepare
from compiler.targets.ptx.scheduler import PtxScheduler
from compiler.targets.ptx.shadow import SET, UNSET, Shadow
from compiler.targets.ptx.syntax import PtxProgram
from compiler.targets.ptx.values import Array

MAX_LANES = 2048
"""The threads that run together, in whole blocks."""


@dataclass(frozen=True)
class PtxLaunch:
    """A launch: the kernel's name, the extents of its grid and its blocks, the bytes of dynamic shared memory, and the
    number of the array of each parameter."""

    name: str
    grid: Extents
    block: Extents
    arguments: tuple[int, ...]
    shared_bytes: int = 0


@dataclass
class PtxResult:
    """The arrays after all launches, the faults, and for each array what is set, as a mask of its elements."""

    arrays: list[Array]
    faults: list[PtxFault] = field(default_factory=list)
    written: list[Array] = field(default_factory=list)

    @property
    def is_correct(self) -> bool:
        """Whether there are no faults."""
        return not self.faults


def run_ptx(text: str, launches: Sequence[PtxLaunch], arrays: Sequence[Array], inputs: int | None = None) -> PtxResult:
    """Run launches in order, all threads of all blocks.

    arrays: of all buffers; the first `inputs` (by default all) are set, the others begin uninitialised. Raises PtxError
    for a text with syntax or instructions that are not implemented, InputError for launches that do not fit it. Ends
    with the first launch whose threads wait for ever.
    """
    program, log = parse_ptx(text), FaultLog()
    symbols, buffers = _variables(program)
    inputs = len(arrays) if inputs is None else inputs
    memories = []
    for number, array in enumerate(arrays):
        memories.append(_buffer(f"array {number}", np.ascontiguousarray(array), number < inputs))
        buffers[number + 1] = memories[-1]
    kernels: dict[str, _Prepared] = {}
    try:
        with np.errstate(all="ignore"):
            for launch in launches:
                if launch.name not in kernels:
                    kernels[launch.name] = _Prepared.of(program, launch.name)
                _launch(kernels[launch.name], launch, buffers, symbols, log)
    except DivergenceError:
        pass
    return PtxResult(
        [_elements(memory.data, array) for memory, array in zip(memories, arrays, strict=True)],
        log.faults,
        [_set_elements(memory, array) for memory, array in zip(memories, arrays, strict=True)],
    )


@dataclass(frozen=True)
class _Prepared:
    kernel: LinkedKernel
    main: PreparedFunction
    functions: dict[str, PreparedFunction]

    @staticmethod
    def of(program: PtxProgram, name: str) -> _Prepared:
        kernel = link(program, name)
        functions = {name: prepare(function) for name, function in kernel.functions.items()}
        return _Prepared(kernel, prepare(kernel.main), functions)


def _variables(program: PtxProgram) -> tuple[dict[str, int], dict[int, PtxMemory]]:
    """The addresses and the memories of a text's global and constant variables."""
    symbols: dict[str, int] = {}
    buffers: dict[int, PtxMemory] = {}
    for number, variable in enumerate(v for v in program.variables if v.space in ("global", "const")):
        memory = _buffer(plain_name(variable.name), np.zeros(variable.size, np.uint8), True)
        memory.data[: variable.size] = np.frombuffer(variable.initial or bytes(variable.size), np.uint8)
        memory.is_constant = variable.space == "const"
        buffers[1 << 16 | number] = memory
        symbols[variable.name] = ((1 << 16 | number) << SHIFT) + HALF
    return symbols, buffers


def _buffer(name: str, array: Array, is_set: bool) -> PtxMemory:
    size = array.nbytes
    data = poisoned(size)
    if is_set:
        data[:size] = np.frombuffer(array.tobytes(), np.uint8)
    memory = PtxMemory(name, size, data)
    memory.shadow = None if is_set else Shadow(len(data), UNSET, 1)
    return memory


def _elements(data: Array, like: Array) -> Array:
    return data[: like.nbytes].copy().view(like.dtype).reshape(like.shape)


def _set_elements(memory: PtxMemory, like: Array) -> Array:
    if memory.shadow is None or not like.size:
        return np.ones(like.shape, np.bool_)
    state = np.repeat(memory.shadow.state, memory.granule)[: like.nbytes]
    is_set: Array = (state == SET).reshape(-1, like.itemsize).all(axis=1).reshape(like.shape)
    return is_set


def _launch(
    prepared: _Prepared,
    launch: PtxLaunch,
    buffers: dict[int, PtxMemory],
    symbols: dict[str, int],
    log: FaultLog,
) -> None:
    kernel, threads = prepared.kernel, prod(launch.block)
    parameters = kernel.main.function.parameters
    if len(parameters) != len(launch.arguments):
        raise InputError(f"'{launch.name}' takes {len(parameters)} arguments, the launch has {len(launch.arguments)}")
    for memory in buffers.values():
        _begin(memory, threads, kernel.granules["global"])
    together = max(1, MAX_LANES // threads)
    for first in range(0, prod(launch.grid), together):
        blocks = range(first, min(first + together, prod(launch.grid)))
        lanes = PtxLanes(kernel, launch.grid, launch.block, blocks, buffers, symbols, launch.shared_bytes, log)
        for parameter, number in zip(parameters, launch.arguments, strict=True):
            lanes.set_parameter(kernel.main.offsets[parameter.name], ((number + 1) << SHIFT) + HALF)
        PtxScheduler(lanes, prepared.main, prepared.functions).run()


def _begin(memory: PtxMemory, threads: int, granule: int) -> None:
    """Begin a launch: the shadow in granules of its own, without former accesses."""
    memory.is_cached = False
    if memory.is_constant:
        return
    state = np.repeat(memory.shadow.state, memory.granule) if memory.shadow is not None else None
    memory.granule = granule
    shadow = Shadow(-(-len(memory.data) // granule), SET, threads)
    if state is not None:
        shadow.state[:] = state[: len(shadow.state) * granule].reshape(-1, granule).min(axis=1)
    memory.shadow = shadow
