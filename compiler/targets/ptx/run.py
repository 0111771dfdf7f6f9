"""Run launches of a PTX text on arrays."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from math import prod

import numpy as np

from compiler.support.errors import InputError
from compiler.targets.launches import Extents
from compiler.targets.ptx.addresses import SHIFT
from compiler.targets.ptx.block_order import BlockOrder
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
class PtxBuffer:
    """A buffer of global memory. array: its elements, all set unless `is_set` is False, when only its shape and dtype
    count. base: the position, among the earlier buffers of the run, of the buffer whose memory it shares from the byte
    `offset` on; None for memory of its own."""

    name: str
    array: Array
    is_set: bool = True
    base: int | None = None
    offset: int = 0


@dataclass(frozen=True)
class PtxLaunch:
    """A launch: the kernel's name, the extents (x, y, z) of its grid and its blocks, for each parameter the position of
    its buffer among the run's buffers (`arguments`), and the bytes of dynamic shared memory."""

    name: str
    grid: Extents
    block: Extents
    arguments: tuple[int, ...]
    shared_bytes: int = 0


@dataclass
class PtxResult:
    """The result of a run: the array of each buffer after all launches, the faults, and for each buffer a boolean
    array, in `written`, of the elements that are set. A buffer that shares memory has its input array, and all elements
    count as set."""

    arrays: list[Array]
    faults: list[PtxFault] = field(default_factory=list)
    written: list[Array] = field(default_factory=list)

    @property
    def is_correct(self) -> bool:
        """Whether the run found no fault."""
        return not self.faults


def run_ptx(text: str, launches: Sequence[PtxLaunch], buffers: Sequence[PtxBuffer]) -> PtxResult:
    """Run launches in order, all threads of all blocks, on copies of the buffers' arrays. Stops, with a fault, at the
    first launch that cannot continue: threads wait forever, or run too many steps. Raises PtxError for syntax or
    instructions that are not implemented, InputError for a launch of an unknown kernel or with another number of
    arguments."""
    program, log = parse_ptx(text), FaultLog()
    symbols, memories = _variables(program)
    addresses: list[int] = []
    for number, buffer in enumerate(buffers):
        if buffer.base is not None:
            addresses.append(addresses[buffer.base] + buffer.offset)
            continue
        memories[number + 1] = _memory(buffer)
        addresses.append((number + 1 << SHIFT) + HALF)
    kernels: dict[str, _Prepared] = {}
    try:
        with np.errstate(all="ignore"):
            for launch in launches:
                if launch.name not in kernels:
                    kernels[launch.name] = _Prepared.of(program, launch.name)
                _launch(kernels[launch.name], launch, memories, addresses, symbols, log)
    except DivergenceError:
        pass
    own = [memories.get(number + 1) for number in range(len(buffers))]
    arrays = [b.array if m is None else _elements(m.data, b.array) for m, b in zip(own, buffers, strict=True)]
    return PtxResult(arrays, log.faults, [_set_elements(m, b.array) for m, b in zip(own, buffers, strict=True)])


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
    """Return the addresses by name, and the memories by address range, of a text's global and constant variables."""
    symbols: dict[str, int] = {}
    buffers: dict[int, PtxMemory] = {}
    for number, variable in enumerate(v for v in program.variables if v.space in ("global", "const")):
        memory = _memory(PtxBuffer(plain_name(variable.name), np.zeros(variable.size, np.uint8)))
        memory.data[: variable.size] = np.frombuffer(variable.initial or bytes(variable.size), np.uint8)
        memory.is_constant = variable.space == "const"
        buffers[1 << 16 | number] = memory
        symbols[variable.name] = ((1 << 16 | number) << SHIFT) + HALF
    return symbols, buffers


def _memory(buffer: PtxBuffer) -> PtxMemory:
    size = buffer.array.nbytes
    data = poisoned(size)
    if buffer.is_set:
        data[:size] = np.frombuffer(np.ascontiguousarray(buffer.array).tobytes(), np.uint8)
    memory = PtxMemory(buffer.name, size, data)
    memory.shadow = None if buffer.is_set else Shadow(len(data), UNSET, 1)
    return memory


def _elements(data: Array, like: Array) -> Array:
    return data[: like.nbytes].copy().view(like.dtype).reshape(like.shape)


def _set_elements(memory: PtxMemory | None, like: Array) -> Array:
    if memory is None or memory.shadow is None or not like.size:
        return np.ones(like.shape, np.bool_)
    state = np.repeat(memory.shadow.state, memory.granule)[: like.nbytes]
    is_set: Array = (state == SET).reshape(-1, like.itemsize).all(axis=1).reshape(like.shape)
    return is_set


def _launch(
    prepared: _Prepared,
    launch: PtxLaunch,
    buffers: dict[int, PtxMemory],
    addresses: Sequence[int],
    symbols: dict[str, int],
    log: FaultLog,
) -> None:
    kernel, threads = prepared.kernel, prod(launch.block)
    parameters = kernel.main.function.parameters
    if len(parameters) != len(launch.arguments):
        raise InputError(f"'{launch.name}' takes {len(parameters)} arguments, the launch has {len(launch.arguments)}")
    order = BlockOrder()
    for memory in buffers.values():
        _begin(memory, threads, kernel.granules["global"], order)
    together = max(1, MAX_LANES // threads)
    for first in range(0, prod(launch.grid), together):
        blocks = range(first, min(first + together, prod(launch.grid)))
        lanes = PtxLanes(kernel, launch.grid, launch.block, blocks, buffers, symbols, launch.shared_bytes, log, order)
        for parameter, number in zip(parameters, launch.arguments, strict=True):
            lanes.set_parameter(kernel.main.offsets[parameter.name], addresses[number])
        PtxScheduler(lanes, prepared.main, prepared.functions).run()


def _begin(memory: PtxMemory, threads: int, granule: int, order: BlockOrder) -> None:
    """Prepare a buffer for a launch of `threads` threads a block: a new shadow, in granules of `granule` bytes, without
    former accesses, whose blocks `order` orders; a granule is set if all its bytes were. Constant memory stays as it
    is."""
    memory.is_cached = False
    if memory.is_constant:
        return
    state = np.repeat(memory.shadow.state, memory.granule) if memory.shadow is not None else None
    memory.granule = granule
    shadow = Shadow(-(-len(memory.data) // granule), SET, threads, order)
    if state is not None:
        shadow.state[:] = state[: len(shadow.state) * granule].reshape(-1, granule).min(axis=1)
    memory.shadow = shadow
