"""What a host function does: the kernels that it launches in order, on which buffers."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from xdsl.dialects import arith, func, gpu, memref
from xdsl.dialects.builtin import IntegerAttr, MemRefType, ModuleOp
from xdsl.ir import SSAValue

from compiler.errors import InputError

Extents = tuple[int, int, int]


@dataclass(frozen=True)
class Call:
    """The launch of a kernel: how many blocks, of how many threads, on which buffers."""

    kernel: gpu.FuncOp
    grid: Extents
    block: Extents
    operands: tuple[SSAValue, ...]


@dataclass(frozen=True)
class Host:
    """A host function: its arguments, the temporaries that it allocates, and its launches in order."""

    arguments: tuple[SSAValue, ...]
    temporaries: tuple[SSAValue, ...]
    calls: tuple[Call, ...]

    def type_of(self, buffer: SSAValue) -> MemRefType:
        """The type of one of its buffers."""
        assert isinstance(buffer.type, MemRefType)
        return buffer.type


def launches(module: ModuleOp, host: func.FuncOp) -> Host:
    """What a host function of a module does. Raises InputError for an op that is not one of such a function."""
    kernels = {op.sym_name.data: op for op in module.walk() if isinstance(op, gpu.FuncOp)}
    numbers: dict[SSAValue, int] = {}
    temporaries: list[SSAValue] = []
    calls: list[Call] = []

    def extents(values: Sequence[SSAValue]) -> Extents:
        x, y, z = (numbers[value] for value in values)
        return x, y, z

    for op in host.body.block.ops:
        if isinstance(op, arith.ConstantOp) and isinstance(op.value, IntegerAttr):
            numbers[op.result] = op.value.value.data
        elif isinstance(op, memref.AllocOp):
            temporaries.append(op.memref)
        elif isinstance(op, gpu.LaunchFuncOp):
            kernel = kernels[op.kernel.string_value().split(".")[-1]]
            grid = extents((op.gridSizeX, op.gridSizeY, op.gridSizeZ))
            block = extents((op.blockSizeX, op.blockSizeY, op.blockSizeZ))
            calls.append(Call(kernel, grid, block, tuple(op.kernelOperands)))
        elif not isinstance(op, func.ReturnOp):
            raise InputError(f"'{op.name}' is not an op of a host function")
    return Host(tuple(host.body.block.args), tuple(temporaries), tuple(calls))
