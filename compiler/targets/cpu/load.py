"""A low-level module, its buffers planned, to a kernel."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from xdsl.dialects.builtin import DenseArrayBase, MemRefType, ModuleOp
from xdsl.dialects.func import FuncOp
from xdsl.ir import BlockArgument

from compiler.dialects.functions import find_function, outputs
from compiler.errors import InputError, TargetError
from compiler.lowering.low_to_llvm import emit
from compiler.lowering.low_to_llvm.signature import is_written, slot_offsets
from compiler.targets.cpu.arguments import Argument, argument_dtype
from compiler.targets.cpu.compile import compile_llvm
from compiler.targets.cpu.kernel import Kernel, Text
from compiler.targets.machine import Machine


def load(
    module: ModuleOp,
    machine: Machine,
    name: str | None = None,
    texts: Mapping[str, Text] | None = None,
    policy: str = "contract",
) -> Kernel:
    """Compile a low-level module, and make its function (or the named one) callable.

    The last `outputs` arguments are results; names are those of the block arguments. Raises LoweringError for
    what has no native form, TargetError for argument types that numpy lacks.
    """
    function = find_function(module, name)
    own = function.sym_name.data
    llvm = emit(module, machine)
    unsigned = _unsigned(function)
    arguments = [_argument(own, value, value.index in unsigned) for value in function.args]
    count = outputs(function)
    _check_outputs(function, arguments, count)
    library = compile_llvm(llvm, machine)
    levels: dict[str, Text] = {**(texts or {}), "llvm": llvm, "asm": library.asm}
    return Kernel(own, arguments, count, slot_offsets(function)[-1], library, levels, policy)


def _check_outputs(function: FuncOp, arguments: Sequence[Argument], count: int) -> None:
    own, first = function.sym_name.data, len(arguments) - count
    for position, (argument, value) in enumerate(zip(arguments, function.args, strict=True)):
        if position >= first and argument.by_value:
            raise TargetError(f"{own}: the output '{argument.name}' is a scalar, expected a memref")
        if position < first and count and not argument.by_value and is_written(value):
            raise TargetError(f"{own}: '{argument.name}' is written, but is not among the last {count} arguments")


def _unsigned(function: FuncOp) -> set[int]:
    """The positions of the arguments whose integers have no sign, as the attribute `unsigned` lists them."""
    found = function.attributes.get("unsigned")
    positions = found.get_values() if isinstance(found, DenseArrayBase) else () if found is None else (-1,)
    if not all(isinstance(n, int) and 0 <= n < len(function.args) for n in positions):
        raise InputError(f"the attribute 'unsigned' of @{function.sym_name.data} does not list its arguments")
    return {int(n) for n in positions}


def _argument(function: str, value: BlockArgument, unsigned: bool) -> Argument:
    name = value.name_hint or f"arg{value.index}"
    if isinstance(value.type, MemRefType):
        return Argument(name, value.type.get_shape(), argument_dtype(value.type.element_type, unsigned))
    dtype = argument_dtype(value.type, unsigned)
    if dtype.itemsize == 2 and dtype.kind != "i":
        raise TargetError(f"{function}: '{name}' is of type {value.type}, which cannot be passed by value")
    return Argument(name, (), dtype, by_value=True)
