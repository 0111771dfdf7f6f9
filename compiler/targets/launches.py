"""What a host function does: the kernels that it launches in order, on which buffers."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from math import prod

from xdsl.dialects import arith, func, gpu, memref, vector
from xdsl.dialects.builtin import IntegerAttr, MemRefType, ModuleOp
from xdsl.ir import Operation, SSAValue

from compiler.dialects.dense import DenseAttr
from compiler.dialects.upstream.memref import GlobalOp
from compiler.support.errors import InputError, TargetError
from compiler.types.elements import element_bytes
from compiler.types.machines import Gpu
from compiler.types.scopes import SCOPES, space_of

Extents = tuple[int, int, int]
SIDES = ("x", "y", "z")
ALIGNMENT = 16
"""The bytes of the widest vector: buffers begin at multiples of it."""


@dataclass(frozen=True)
class KernelLaunch:
    """The launch of a kernel: how many blocks, of how many threads, on which buffers."""

    kernel: gpu.FuncOp
    grid: Extents
    block: Extents
    operands: tuple[SSAValue, ...]

    def check(self, gpu: Gpu) -> None:
        """Raise TargetError where a GPU does not take the launch."""
        check_launch(self.kernel.sym_name.data, self.grid, self.block, shared_bytes(self.kernel), gpu)


@dataclass(frozen=True)
class Host:
    """A host function: its arguments, the temporaries that it allocates, and its launches in order."""

    arguments: tuple[SSAValue, ...]
    temporaries: tuple[SSAValue, ...]
    calls: tuple[KernelLaunch, ...]

    def type_of(self, buffer: SSAValue) -> MemRefType:
        """The type of one of its buffers."""
        assert isinstance(buffer.type, MemRefType)
        return buffer.type


def launches(module: ModuleOp, host: func.FuncOp) -> Host:
    """What a host function of a module does. Raises InputError for an op that is not one of such a function, and for a
    launch of what is no kernel of the module, or whose extents are no constants."""
    kernels = {op.sym_name.data: op for op in module.walk() if isinstance(op, gpu.FuncOp)}
    numbers: dict[SSAValue, int] = {}
    temporaries: list[SSAValue] = []
    calls: list[KernelLaunch] = []

    def extents(values: Sequence[SSAValue]) -> Extents:
        if not numbers.keys() >= set(values):
            raise InputError("the extents of a launch are constants of the host function")
        x, y, z = (numbers[value] for value in values)
        return x, y, z

    for op in host.body.block.ops:
        if isinstance(op, arith.ConstantOp) and isinstance(op.value, IntegerAttr):
            numbers[op.result] = op.value.value.data
        elif isinstance(op, memref.AllocOp):
            temporaries.append(op.memref)
        elif isinstance(op, gpu.LaunchFuncOp):
            name = op.kernel.nested_references.data[-1].data if op.kernel.nested_references.data else ""
            if name not in kernels:
                raise InputError(f"{op.kernel} is no kernel of the module")
            kernel = kernels[name]
            grid = extents((op.gridSizeX, op.gridSizeY, op.gridSizeZ))
            block = extents((op.blockSizeX, op.blockSizeY, op.blockSizeZ))
            calls.append(KernelLaunch(kernel, grid, block, tuple(op.kernelOperands)))
        elif not isinstance(op, func.ReturnOp):
            raise InputError(f"'{op.name}' is not an op of a host function")
    return Host(tuple(host.body.block.args), tuple(temporaries), tuple(calls))


def globals_of(module: Operation) -> list[GlobalOp]:
    """The constants that a module's kernels read. Raises InputError for any other global buffer."""
    globals_there = [op for op in module.walk() if isinstance(op, GlobalOp)]
    for op in globals_there:
        if op.constant is None or not isinstance(op.initial_value, DenseAttr):
            raise InputError(f"the memref.global @{op.sym_name.data} is no constant with a value")
    return globals_there


def elements_of(op: memref.GetGlobalOp) -> DenseAttr:
    """The elements of the constant that a kernel gets. Raises InputError where there is no such constant."""
    name, around = op.name_.string_value(), op.parent_op()
    while around is not None:
        if isinstance(around, gpu.ModuleOp | ModuleOp):
            constant = next((g for g in globals_of(around) if g.sym_name.data == name), None)
            if constant is not None and isinstance(constant.initial_value, DenseAttr):
                return constant.initial_value
        around = around.parent_op()
    raise InputError(f"@{name} is no constant of the module")


def stored_buffers(kernel: gpu.FuncOp) -> set[SSAValue]:
    """The buffers of a kernel that its stores write."""
    return {op.operands[1] for op in kernel.walk() if isinstance(op, memref.StoreOp | vector.StoreOp)}


def is_shared(op: memref.AllocaOp) -> bool:
    """Whether a buffer of a kernel is shared by the threads of a block."""
    return space_of(op.memref.type) == SCOPES["shared"]


def allocated_bytes(op: memref.AllocaOp) -> int:
    """The bytes of a buffer of a kernel, with the padding behind it."""
    type_ = op.memref.type
    assert isinstance(type_, MemRefType)
    size = prod(type_.get_shape()) * element_bytes(type_.element_type)
    return -(-size // ALIGNMENT) * ALIGNMENT


def shared_bytes(kernel: gpu.FuncOp) -> int:
    """The bytes of shared memory that a block of a kernel takes."""
    return sum(allocated_bytes(op) for op in kernel.walk() if isinstance(op, memref.AllocaOp) and is_shared(op))


def check_launch(name: str, grid: Extents, block: Extents, shared: int, gpu: Gpu) -> None:
    """Raise TargetError where a GPU does not take a launch: for its extents, its threads, its shared memory."""
    reason = next(_beyond(grid, block, shared, gpu), None)
    if reason is not None:
        raise TargetError(f"kernel {name} has {reason} on {gpu.arch}")


def _beyond(grid: Extents, block: Extents, shared: int, gpu: Gpu) -> Iterator[str]:
    """What a GPU has less of than a launch asks for."""
    if prod(block) > gpu.block_threads:
        yield f"{prod(block)} threads a block, more than {gpu.block_threads}"
    for side, count, most in zip("xyz", block, gpu.block_extents, strict=True):
        if count > most:
            yield f"{count} threads a block along {side}, more than {most}"
    for side, count, most in zip("xyz", grid, gpu.grid_extents, strict=True):
        if count > most:
            yield f"{count} blocks along {side}, more than {most}"
    if shared > gpu.block_shared_bytes:
        yield f"{shared} bytes of shared memory a block, more than {gpu.block_shared_bytes}"
