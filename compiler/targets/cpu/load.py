"""Compile a low-level module with planned buffers to a kernel."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from time import perf_counter

from xdsl.dialects.builtin import MemRefType, ModuleOp
from xdsl.dialects.func import FuncOp
from xdsl.ir import BlockArgument

from compiler.dialects.functions import SLOT_ALIGNMENT, find_function, outputs, positions
from compiler.lowering.low_to_llvm import emit
from compiler.lowering.low_to_llvm.signature import is_written, takes_threads, workspace
from compiler.support.errors import TargetError
from compiler.targets.arguments import Argument, argument_dtype
from compiler.targets.cpu.compile import compile_llvm
from compiler.targets.cpu.facts import BuildFacts
from compiler.targets.cpu.kernel import NO_FIXED_ARGUMENTS, FixedArguments, Interface, Kernel, LevelText
from compiler.targets.cpu.openmp import thread_count
from compiler.targets.cpu.tiles import permit_tiles, uses_tiles
from compiler.types.machines import Machine, missing_features


def load(
    module: ModuleOp,
    machine: Machine,
    name: str | None = None,
    texts: Mapping[str, LevelText] | None = None,
    policy: str = "contract",
    threads: int | None = None,
    emission: Callable[[ModuleOp, Machine], str] = emit,
    fixed: FixedArguments = NO_FIXED_ARGUMENTS,
    start: float | None = None,
) -> Kernel:
    """Compile a low-level module, and return its function (the only one, or the named one) as a kernel. The last
    `outputs` arguments are results; names are those of the block arguments. texts: the program at other levels.
    threads: the default of calls, by `thread_count`. emission: from the module to LLVM IR. fixed: arguments with the
    same arrays in each call, which are no arguments of the kernel. policy: recorded only. start: the perf_counter time
    at which the build began; None for now. Raises LoweringError for an op without a native form, TargetError for
    argument types that numpy lacks, for a wrong thread count, and if Linux refuses tile registers."""
    build_start = perf_counter() if start is None else start
    llvm = emission(module, machine)
    signature = interface(module, name, threads)
    check_outputs(find_function(module, name), signature)
    if uses_tiles(module) and not missing_features(machine):
        permit_tiles()
    library = compile_llvm(llvm, machine)
    facts = BuildFacts(
        arena_bytes=signature.workspace.size(signature.threads or 1),
        constant_bytes=sum(array.nbytes for array in fixed.arrays.values()),
        build_seconds=perf_counter() - build_start,
    )
    return Kernel(signature, library, policy, {**(texts or {}), "llvm": llvm, "asm": library.asm}, fixed, facts)


def interface(module: ModuleOp, name: str | None, threads: int | None) -> Interface:
    """Return the interface of a function, by default the only one; `threads` is the default thread count of calls, None
    for that of OMP_NUM_THREADS, or without one for the cores that the process may use; it is checked, and None in the
    result, without parallel loops. Raises TargetError for types that numpy lacks, and for a wrong count."""
    thread_count_ = thread_count(threads)
    function = find_function(module, name)
    symbol = function.sym_name.data
    unsigned, aligned = positions(function, "unsigned"), positions(function, "aligned")
    arguments = tuple(_argument(symbol, v, v.index in unsigned, v.index in aligned) for v in function.args)
    threads_ = thread_count_ if takes_threads(function) else None
    return Interface(symbol, arguments, outputs(function), workspace(function), threads_)


def check_outputs(function: FuncOp, signature: Interface) -> None:
    """Raise TargetError for scalar outputs, and for inputs that are written although there are outputs. `signature` is
    the function's interface."""
    symbol, count, first_output = signature.name, signature.outputs, len(signature.arguments) - signature.outputs
    for position, (argument, value) in enumerate(zip(signature.arguments, function.args, strict=True)):
        if position >= first_output and argument.by_value:
            raise TargetError(f"{symbol}: the output '{argument.name}' is a scalar, expected a memref")
        if position < first_output and count and not argument.by_value and is_written(value):
            raise TargetError(f"{symbol}: '{argument.name}' is written, but is not among the last {count} arguments")


def _argument(function: str, value: BlockArgument, unsigned: bool, aligned: bool) -> Argument:
    name = value.name_hint or f"arg{value.index}"
    if isinstance(value.type, MemRefType):
        dtype = argument_dtype(value.type.element_type, unsigned)
        return Argument(name, value.type.get_shape(), dtype, alignment=SLOT_ALIGNMENT if aligned else 1)
    dtype = argument_dtype(value.type, unsigned)
    if dtype.itemsize == 2 and dtype.kind != "i":
        raise TargetError(f"{function}: '{name}' is of type {value.type}, which cannot be passed by value")
    return Argument(name, (), dtype, by_value=True)
