"""A low-level module, its buffers planned, to a kernel."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from xdsl.dialects.builtin import MemRefType, ModuleOp
from xdsl.dialects.func import FuncOp
from xdsl.ir import Attribute, BlockArgument

from compiler.dialects.functions import find_function, outputs
from compiler.errors import TargetError
from compiler.lowering.low_to_llvm import emit
from compiler.lowering.low_to_llvm.signature import is_written, slot_offsets
from compiler.lowering.low_to_llvm.types import suffix
from compiler.targets.cpu.arguments import DTYPES, Argument
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
    arguments = [_argument(own, value) for value in function.args]
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


def _argument(function: str, value: BlockArgument) -> Argument:
    name = value.name_hint or f"arg{value.index}"
    if isinstance(value.type, MemRefType):
        return Argument(name, value.type.get_shape(), _dtype(function, name, value.type.element_type))
    dtype = _dtype(function, name, value.type)
    if dtype == np.float16:
        raise TargetError(f"{function}: '{name}' is an f16, which cannot be passed by value")
    return Argument(name, (), dtype, by_value=True)


def _dtype(function: str, name: str, type: Attribute) -> np.dtype[Any]:
    if suffix(type) not in DTYPES:
        raise TargetError(f"{function}: numpy has no dtype for {type}, the type of '{name}'")
    return DTYPES[suffix(type)]
