"""`HostFunction`: the kernel launches of a host function in order, and their buffers."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from math import prod

from xdsl.dialects import arith, func, gpu, memref, vector
from xdsl.dialects.builtin import IntegerAttr, MemRefType, ModuleOp
from xdsl.ir import Operation, SSAValue

from compiler.dialects.dense import DenseAttr
from compiler.dialects.grid import ArriveOp
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
    """The launch of a kernel: blocks of the grid and threads of a block along x, y, z, and its argument buffers."""

    kernel: gpu.FuncOp
    grid: Extents
    block: Extents
    operands: tuple[SSAValue, ...]

    def check(self, gpu: Gpu) -> None:
        """Raise TargetError if a launch exceeds a limit of the GPU."""
        check_launch(self.kernel.sym_name.data, self.grid, self.block, shared_bytes(self.kernel), gpu)


@dataclass(frozen=True)
class HostFunction:
    """A host function: its arguments, the temporaries that it allocates, and its launches in order."""

    arguments: tuple[SSAValue, ...]
    temporaries: tuple[SSAValue, ...]
    launches: tuple[KernelLaunch, ...]

    def type_of(self, buffer: SSAValue) -> MemRefType:
        """Return the type of a buffer."""
        assert isinstance(buffer.type, MemRefType)
        return buffer.type


def read_host_function(module: ModuleOp, host: func.FuncOp) -> HostFunction:
    """Read a host function of a module. Raises InputError for an op other than an integer constant, an allocation, a
    launch and a return, for a launch of an unknown kernel, and for extents that are not constants."""
    kernels = {op.sym_name.data: op for op in module.walk() if isinstance(op, gpu.FuncOp)}
    constants: dict[SSAValue, int] = {}
    temporaries: list[SSAValue] = []
    launches: list[KernelLaunch] = []

    def extents(values: Sequence[SSAValue]) -> Extents:
        if not constants.keys() >= set(values):
            raise InputError("the extents of a launch are constants of the host function")
        x, y, z = (constants[value] for value in values)
        return x, y, z

    for op in host.body.block.ops:
        if isinstance(op, arith.ConstantOp) and isinstance(op.value, IntegerAttr):
            constants[op.result] = op.value.value.data
        elif isinstance(op, memref.AllocOp):
            temporaries.append(op.memref)
        elif isinstance(op, gpu.LaunchFuncOp):
            name = op.kernel.nested_references.data[-1].data if op.kernel.nested_references.data else ""
            if name not in kernels:
                raise InputError(f"{op.kernel} is no kernel of the module")
            kernel = kernels[name]
            grid = extents((op.gridSizeX, op.gridSizeY, op.gridSizeZ))
            block = extents((op.blockSizeX, op.blockSizeY, op.blockSizeZ))
            launches.append(KernelLaunch(kernel, grid, block, tuple(op.kernelOperands)))
        elif not isinstance(op, func.ReturnOp):
            raise InputError(f"'{op.name}' is not an op of a host function")
    return HostFunction(tuple(host.body.block.args), tuple(temporaries), tuple(launches))


def constant_globals(module: Operation) -> list[GlobalOp]:
    """Return the `memref.global` ops of a module and of the modules in it. Raises InputError for one that is no
    constant with a value."""
    globals_ = [op for op in module.walk() if isinstance(op, GlobalOp)]
    for op in globals_:
        if op.constant is None or not isinstance(op.initial_value, DenseAttr):
            raise InputError(f"the memref.global @{op.sym_name.data} is no constant with a value")
    return globals_


def constant_elements(op: memref.GetGlobalOp) -> DenseAttr:
    """Return the elements of the constant that a `memref.get_global` names, from the innermost enclosing module that
    has it. Raises InputError for an unknown name, and for a global that is no constant with a value."""
    name, scope = op.name_.string_value(), op.parent_op()
    while scope is not None:
        if isinstance(scope, gpu.ModuleOp | ModuleOp):
            constant = next((g for g in constant_globals(scope) if g.sym_name.data == name), None)
            if constant is not None and isinstance(constant.initial_value, DenseAttr):
                return constant.initial_value
        scope = scope.parent_op()
    raise InputError(f"@{name} is no constant of the module")


def stored_buffers(kernel: gpu.FuncOp) -> set[SSAValue]:
    """Return the buffers that the plain stores of a kernel, of scalars and vectors, write, and the counters of
    arrivals; asynchronous copies are not counted."""
    counters = {op.counters for op in kernel.walk() if isinstance(op, ArriveOp)}
    return counters | {op.operands[1] for op in kernel.walk() if isinstance(op, memref.StoreOp | vector.StoreOp)}


def is_shared(op: memref.AllocaOp) -> bool:
    """Return whether a buffer of a kernel is shared by the threads of a block."""
    return space_of(op.memref.type) == SCOPES["shared"]


def allocated_bytes(op: memref.AllocaOp) -> int:
    """Return the bytes of a kernel's buffer of static shape, rounded up to a multiple of ALIGNMENT."""
    type_ = op.memref.type
    assert isinstance(type_, MemRefType)
    size = prod(type_.get_shape()) * element_bytes(type_.element_type)
    return -(-size // ALIGNMENT) * ALIGNMENT


def shared_bytes(kernel: gpu.FuncOp) -> int:
    """Return the bytes of shared memory that a block of a kernel uses, with a word of each arrival."""
    arrivals = sum(isinstance(op, ArriveOp) for op in kernel.walk())
    return ALIGNMENT * arrivals + pool_bytes(kernel)


def pool_bytes(kernel: gpu.FuncOp) -> int:
    """Return the bytes of the shared buffers of a kernel."""
    return sum(allocated_bytes(op) for op in kernel.walk() if isinstance(op, memref.AllocaOp) and is_shared(op))


def check_launch(name: str, grid: Extents, block: Extents, shared: int, gpu: Gpu) -> None:
    """Raise TargetError if a launch of the kernel `name` exceeds the extents, the threads or the shared memory (in
    bytes) of a GPU."""
    reason = next(_exceeded_limits(grid, block, shared, gpu), None)
    if reason is not None:
        raise TargetError(f"kernel {name} has {reason} on {gpu.arch}")


def _exceeded_limits(grid: Extents, block: Extents, shared: int, gpu: Gpu) -> Iterator[str]:
    if prod(block) > gpu.block_threads:
        yield f"{prod(block)} threads a block, more than {gpu.block_threads}"
    for side, count, limit in zip("xyz", block, gpu.block_extents, strict=True):
        if count > limit:
            yield f"{count} threads a block along {side}, more than {limit}"
    for side, count, limit in zip("xyz", grid, gpu.grid_extents, strict=True):
        if count > limit:
            yield f"{count} blocks along {side}, more than {limit}"
    if shared > gpu.block_shared_bytes:
        yield f"{shared} bytes of shared memory a block, more than {gpu.block_shared_bytes}"
