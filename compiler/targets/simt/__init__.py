"""simt: run GPU kernels on numpy and check their memory accesses, without a GPU.

access.py   `LaneAccess`: the lanes of a memory access; `Fault`: a wrong one
buffers.py  `CheckedBuffer`: elements, bounds, uninitialised reads, memory transactions
races.py    `Races`: the last accesses of each element
threads.py  `Threads`: the values and memories of a block's threads
lanes.py    `ThreadLanes`: all threads of a block at once, op by op
arrivals.py which blocks arrive at one counter
writers.py  `BlockWriters`: the writing block of each element, over the whole grid
warps.py    collective ops of a warp
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from math import prod

import numpy as np
from numpy.typing import NDArray
from xdsl.dialects.builtin import MemRefType, ModuleOp
from xdsl.ir import SSAValue

from compiler.dialects.functions import find_function, outputs
from compiler.dialects.numbers import dtype_of
from compiler.support.errors import InputError
from compiler.targets.launches import KernelLaunch, read_host_function, stored_buffers
from compiler.targets.simt.access import Fault, FaultReporter, Values
from compiler.targets.simt.buffers import CheckedBuffer
from compiler.targets.simt.lanes import BlockSample, ThreadLanes
from compiler.targets.simt.writers import NOBODY, BlockWriters, DataDependentStore

MAX_FAULTS = 20
"""The number of faults in a result; later ones are dropped."""


@dataclass
class CheckResult:
    """The result of a run. outputs: of the host function. faults: of its kernels, each kind of fault of an op and
    buffer once, and at most MAX_FAULTS. written: masks of the written elements of the outputs. counts: memory
    transactions of block 0 by their kind, for each (kernel, buffer). undecided: sampled kernels whose stores depend
    on loaded values, so that the stores of the other blocks are unknown."""

    outputs: tuple[Values, ...]
    faults: list[Fault] = field(default_factory=list)
    written: tuple[Values, ...] = ()
    counts: dict[tuple[str, str], Mapping[str, int]] = field(default_factory=dict)
    undecided: list[str] = field(default_factory=list)

    @property
    def is_correct(self) -> bool:
        """Whether there are no faults."""
        return not self.faults


def run(
    module: ModuleOp,
    inputs: Sequence[Values],
    name: str | None = None,
    sample: BlockSample | None = None,
    temporaries: Mapping[str, Values] | None = None,
    counts: bool = True,
    required: Mapping[str, NDArray[np.bool_]] | None = None,
) -> CheckResult:
    """Run a host function, by name or the only one, with its kernels on arrays; outputs and temporaries begin
    uninitialised.

    sample: the blocks of each grid to run, by default all; the writing block of each element is computed for all
    blocks. temporaries: initial elements of buffers between kernels or of outputs, by name, of the buffers' shapes;
    None for none. counts: whether to count memory transactions. required: masks of the elements that must be written,
    by the names of the buffers. Inputs of another dtype are cast. Unsigned outputs are returned as signed integers of
    the same bits. Raises InputError for another number or other shapes of inputs, and for ops without an
    implementation.
    """
    function = find_function(module, name)
    args = function.body.block.args
    count = outputs(function)
    if len(inputs) != len(args) - count:
        raise InputError(f"@{function.sym_name.data} takes {len(args) - count} arrays, got {len(inputs)}")
    checked = CheckResult(())
    reported: set[tuple[str, str, str]] = set()

    def report(fault: Fault) -> None:
        key = (fault.kind, fault.op, fault.memory)
        if key not in reported and len(checked.faults) < MAX_FAULTS:
            reported.add(key)
            checked.faults.append(fault)

    host = read_host_function(module, function)
    buffers: list[SSAValue] = [*args, *host.temporaries]
    default_names = [f"arg{number}" for number in range(len(args))] + ["temporary"] * len(host.temporaries)
    memories = {value: _global_buffer(value, name, report) for value, name in zip(buffers, default_names, strict=True)}
    for position, (value, array) in enumerate(zip(buffers, inputs, strict=False)):
        if array.shape != memories[value].shape:
            raise InputError(f"input {position} has the shape {array.shape}, expected {memories[value].shape}")
        memories[value].fill(array)
    for value in buffers[len(inputs) :]:
        if temporaries is not None and memories[value].name in temporaries:
            memories[value].fill(temporaries[memories[value].name])
    written_elements = {value: np.zeros(prod(memory.shape), np.bool_) for value, memory in memories.items()}
    for call in host.launches:
        _launch(ThreadLanes(call, report, counts), memories, checked, sample)
        if sample is not None:
            _check_writers(call, memories, written_elements, checked, report)
    for buffer, memory in memories.items():
        written = written_elements[buffer] if sample is not None else memory.written
        _check_written(memory, written, (required or {}).get(memory.name), report)
    out_buffers = [memories[value] for value in args[len(inputs) :]]
    checked.written = tuple(memory.written.reshape(memory.shape) for memory in out_buffers)
    checked.outputs = tuple(memory.data.reshape(memory.shape) for memory in out_buffers)
    return checked


def _check_writers(
    call: KernelLaunch,
    memories: Mapping[SSAValue, CheckedBuffer],
    written_elements: Mapping[SSAValue, NDArray[np.bool_]],
    checked: CheckResult,
    report: FaultReporter,
) -> None:
    """Mark the elements that the blocks of a launch write, and report elements that two blocks write. A kernel whose
    stores depend on loaded values is undecided: all elements of its operands are marked."""
    try:
        writers = BlockWriters(call, {value: memory.name for value, memory in memories.items()}, report)
        writers.run()
    except DataDependentStore:
        checked.undecided.append(call.kernel.sym_name.data)
        for value in call.operands:
            written_elements[value][...] = True
        return
    for buffer, owner in writers.written.items():
        written_elements[buffer][...] |= owner != NOBODY


def _check_written(
    memory: CheckedBuffer, written: NDArray[np.bool_], required: NDArray[np.bool_] | None, report: FaultReporter
) -> None:
    missing = required.reshape(-1) & ~written if required is not None else np.zeros(0, np.bool_)
    if missing.any():
        position = np.unravel_index(int(np.argmax(missing)), memory.shape) if memory.shape else ()
        report(Fault("unwritten element", "", memory.name, tuple(map(int, position)), (), ()))


def _global_buffer(value: SSAValue, name: str, report: FaultReporter) -> CheckedBuffer:
    type_ = value.type
    assert isinstance(type_, MemRefType)
    return CheckedBuffer(value.name_hint or name, type_.get_shape(), dtype_of(type_.element_type), "global", 1, report)


def _launch(
    lanes: ThreadLanes, memories: Mapping[SSAValue, CheckedBuffer], checked: CheckResult, sample: BlockSample | None
) -> None:
    call = lanes.call
    body = call.kernel.body.block
    stored = stored_buffers(call.kernel)
    for argument, value in zip(body.args, call.operands, strict=True):
        memories[value].begin(argument in stored)
        lanes.memories[argument] = memories[value]
    lanes.run(body, sample)
    for memory in (*(memories[value] for value in call.operands), *lanes.on_chip.values()):
        if memory.counts:
            checked.counts[call.kernel.sym_name.data, memory.name] = dict(memory.counts)


__all__ = ["BlockSample", "CheckResult", "Fault", "run"]
