"""simt: kernels run on numpy and checked, without the hardware.

access.py   who touches memory at a moment, and what can be wrong with that
buffers.py  what buffers hold, its bounds, what is unknown; transactions
races.py    who touched it since when
threads.py  the threads of a block, and how they touch memory
lanes.py    all of them at once, op by op
writers.py  which block writes which element, for all blocks
warps.py    what the threads of a warp do together
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
from compiler.targets.launches import KernelLaunch, launches, stored_buffers
from compiler.targets.simt.access import Fault, Report, Values
from compiler.targets.simt.buffers import Memory
from compiler.targets.simt.lanes import Sample, ThreadLanes
from compiler.targets.simt.writers import NOBODY, DependsOnValues, Writers

MOST = 20
"""How many faults are kept."""


@dataclass
class Checked:
    """What came of running a host function: its outputs, what its kernels did wrong, which elements of the outputs were
    written, and what a block's accesses to each buffer of a kernel cost, by kernel and buffer. `undecided` are the
    kernels of which a sample ran and whose writes depend on more than indices: what the other blocks write is open."""

    outputs: tuple[Values, ...]
    faults: list[Fault] = field(default_factory=list)
    written: tuple[Values, ...] = ()
    counts: dict[tuple[str, str], Mapping[str, int]] = field(default_factory=dict)
    undecided: list[str] = field(default_factory=list)

    @property
    def right(self) -> bool:
        """Whether nothing was wrong."""
        return not self.faults


def run(
    module: ModuleOp,
    inputs: Sequence[Values],
    name: str | None = None,
    sample: Sample | None = None,
    temporaries: Mapping[str, Values] | None = None,
    counts: bool = True,
    required: Mapping[str, NDArray[np.bool_]] | None = None,
) -> Checked:
    """Run a host function with its kernels on arrays; memory that it writes begins undefined.

    Of each grid a `sample` of the blocks runs: the first with its neighbours, the last and some between. What kernels
    then read of `temporaries`, by the names of buffers between kernels or of outputs, is what these have, unless a
    block has written it. Which block writes which element is computed for all blocks. Of buffers between kernels and
    of outputs, by their names, the `required` elements have to be written. Transactions count where `counts` says so.
    Outputs of integers without a sign are given as their bits: kernels have them as integers with one. Raises
    InputError for inputs that do not fit, and for ops that have no meaning here.
    """
    function = find_function(module, name)
    args = function.body.block.args
    count = outputs(function)
    if len(inputs) != len(args) - count:
        raise InputError(f"@{function.sym_name.data} takes {len(args) - count} arrays, got {len(inputs)}")
    checked = Checked(())
    seen: set[tuple[str, str, str]] = set()

    def report(fault: Fault) -> None:
        key = (fault.kind, fault.op, fault.memory)
        if key not in seen and len(checked.faults) < MOST:
            seen.add(key)
            checked.faults.append(fault)

    host = launches(module, function)
    buffers: list[SSAValue] = [*args, *host.temporaries]
    names = [f"arg{number}" for number in range(len(args))] + ["temporary"] * len(host.temporaries)
    memories = {value: _global(value, name, report) for value, name in zip(buffers, names, strict=True)}
    for position, (value, array) in enumerate(zip(buffers, inputs, strict=False)):
        if array.shape != memories[value].shape:
            raise InputError(f"input {position} has the shape {array.shape}, expected {memories[value].shape}")
        memories[value].fill(array)
    for value in buffers[len(inputs) :]:
        if temporaries is not None and memories[value].name in temporaries:
            memories[value].fill(temporaries[memories[value].name])
    covered = {value: np.zeros(prod(memory.shape), np.bool_) for value, memory in memories.items()}
    for call in host.calls:
        _launch(ThreadLanes(call, report, counts), memories, checked, sample)
        if sample is not None:
            _note_writers(call, memories, covered, checked, report)
    for buffer, memory in memories.items():
        written = covered[buffer] if sample is not None else memory.written
        _check_written(memory, written, (required or {}).get(memory.name), report)
    outs = [memories[value] for value in args[len(inputs) :]]
    checked.written = tuple(memory.written.reshape(memory.shape) for memory in outs)
    checked.outputs = tuple(memory.data.reshape(memory.shape) for memory in outs)
    return checked


def _note_writers(
    call: KernelLaunch,
    memories: Mapping[SSAValue, Memory],
    covered: Mapping[SSAValue, NDArray[np.bool_]],
    checked: Checked,
    report: Report,
) -> None:
    """Which elements all blocks of a launch write, each of them by one."""
    try:
        writers = Writers(call, {value: memory.name for value, memory in memories.items()}, report)
        writers.run()
    except DependsOnValues:
        checked.undecided.append(call.kernel.sym_name.data)
        for value in call.operands:
            covered[value][...] = True
        return
    for buffer, owner in writers.written.items():
        covered[buffer][...] |= owner != NOBODY


def _check_written(
    memory: Memory, written: NDArray[np.bool_], required: NDArray[np.bool_] | None, report: Report
) -> None:
    """Report the first element that no block has written."""
    missing = required.reshape(-1) & ~written if required is not None else np.zeros(0, np.bool_)
    if missing.any():
        place = np.unravel_index(int(np.argmax(missing)), memory.shape) if memory.shape else ()
        report(Fault("unwritten element", "", memory.name, tuple(map(int, place)), (), ()))


def _global(value: SSAValue, name: str, report: Report) -> Memory:
    type_ = value.type
    assert isinstance(type_, MemRefType)
    return Memory(value.name_hint or name, type_.get_shape(), dtype_of(type_.element_type), "global", 1, report)


def _launch(lanes: ThreadLanes, memories: Mapping[SSAValue, Memory], checked: Checked, sample: Sample | None) -> None:
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


__all__ = ["Checked", "Fault", "Sample", "run"]
