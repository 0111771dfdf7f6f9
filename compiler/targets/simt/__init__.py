"""simt: kernels run on numpy and checked, without the hardware.

memory.py   what memory holds, who touched it since when: races, bounds, what is unknown; transactions
lanes.py    all threads of a block at once, op by op
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from xdsl.dialects import arith, func, gpu, memref
from xdsl.dialects.builtin import IntegerAttr, MemRefType, ModuleOp
from xdsl.ir import SSAValue

from compiler.dialects.functions import find_function, outputs
from compiler.errors import InputError
from compiler.interpret.numbers import dtype_of
from compiler.targets.simt.lanes import Lanes
from compiler.targets.simt.memory import Fault, Memory

MOST = 20
"""How many faults are kept."""


@dataclass
class Checked:
    """What came of running a host function: its outputs, what its kernels did wrong, and what a block's accesses to
    each buffer of a kernel cost, by kernel and buffer."""

    outputs: tuple[np.ndarray[Any, Any], ...]
    faults: list[Fault] = field(default_factory=list)
    counts: dict[tuple[str, str], Mapping[str, int]] = field(default_factory=dict)

    @property
    def right(self) -> bool:
        """Whether nothing was wrong."""
        return not self.faults


def run(module: ModuleOp, inputs: Sequence[np.ndarray[Any, Any]], name: str | None = None) -> Checked:
    """Run a host function with its kernels on arrays; what it writes begins unknown.

    Raises InputError for inputs that do not fit, and for ops that have no meaning here.
    """
    function = find_function(module, name)
    kernels = {op.sym_name.data: op for op in module.walk() if isinstance(op, gpu.FuncOp)}
    args = function.body.block.args
    count = outputs(function)
    if len(inputs) != len(args) - count:
        raise InputError(f"@{function.sym_name.data} takes {len(args) - count} arrays, got {len(inputs)}")
    found = Checked(())
    seen: set[tuple[str, str, str]] = set()

    def report(fault: Fault) -> None:
        key = (fault.kind, fault.op, fault.memory)
        if key not in seen and len(found.faults) < MOST:
            seen.add(key)
            found.faults.append(fault)

    memories: dict[SSAValue, Memory] = {}
    numbers: dict[SSAValue, int] = {}
    for position, value in enumerate(args):
        memories[value] = _global(value, f"arg{position}", report)
        if position < len(inputs):
            expected = memories[value].shape
            if inputs[position].shape != expected:
                raise InputError(f"input {position} has the shape {inputs[position].shape}, expected {expected}")
            memories[value].fill(inputs[position])
    for op in function.body.block.ops:
        if isinstance(op, arith.ConstantOp) and isinstance(op.value, IntegerAttr):
            numbers[op.result] = op.value.value.data
        elif isinstance(op, memref.AllocOp):
            memories[op.memref] = _global(op.memref, "temporary", report)
        elif isinstance(op, gpu.LaunchFuncOp):
            _launch(op, kernels, numbers, memories, found, report)
        elif not isinstance(op, func.ReturnOp):
            raise InputError(f"'{op.name}' is not an op of a host function")
    found.outputs = tuple(memories[v].data.reshape(memories[v].shape) for v in args[len(inputs) :])
    return found


def _global(value: SSAValue, name: str, report: Any) -> Memory:
    type_ = value.type
    assert isinstance(type_, MemRefType)
    return Memory(value.name_hint or name, type_.get_shape(), dtype_of(type_.element_type), "global", 1, report)


def _launch(
    op: gpu.LaunchFuncOp,
    kernels: Mapping[str, gpu.FuncOp],
    numbers: Mapping[SSAValue, int],
    memories: Mapping[SSAValue, Memory],
    found: Checked,
    report: Any,
) -> None:
    kernel = kernels[op.kernel.string_value().split(".")[-1]]
    grid = tuple(numbers[v] for v in (op.gridSizeX, op.gridSizeY, op.gridSizeZ))
    block = tuple(numbers[v] for v in (op.blockSizeX, op.blockSizeY, op.blockSizeZ))
    name = kernel.sym_name.data
    lanes = Lanes(name, grid, block, report)  # type: ignore[arg-type]
    for argument, value in zip(kernel.body.block.args, op.kernelOperands, strict=True):
        memory = memories[value]
        memory.forget()
        lanes.memories[argument] = memory
    lanes.run(kernel.body.block)
    for memory in (*(memories[v] for v in op.kernelOperands), *lanes.on_chip.values()):
        if memory.counts:
            found.counts[name, memory.name] = dict(memory.counts)
