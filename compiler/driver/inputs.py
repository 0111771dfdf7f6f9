"""Constant inputs: marking them in a program, and checking and copying their arrays."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from xdsl.dialects.builtin import ModuleOp, TensorType

from compiler.dialects.dense import DenseAttr
from compiler.dialects.dense_elements import Dense
from compiler.dialects.functions import SLOT_ALIGNMENT, constant_values, find_function, outputs, state_constants
from compiler.dialects.numbers import array_of
from compiler.graph.main import Main
from compiler.lowering.te_to_loop.nests import arguments_of
from compiler.passes.split_constants import check_constants
from compiler.pipeline.source import argument, level_of
from compiler.program.read import read
from compiler.program.tree import Buffer, Program
from compiler.program.write import constant_arguments
from compiler.support.errors import InputError
from compiler.targets.arguments import Array, check_input


@dataclass(frozen=True)
class Signature:
    """The signature of a program: its name, its arguments, constants included, of which the last `outputs` are results,
    and the alignment in bytes of the arrays of constants."""

    name: str
    arguments: tuple[Buffer, ...]
    outputs: int
    alignment: int


def signature_of(program: Program | Main) -> Signature:
    """The signature of a program, with alignment SLOT_ALIGNMENT; 1 for a main, which copies constants to a block."""
    return Signature(
        program.name, program.arguments, program.outputs, 1 if isinstance(program, Main) else SLOT_ALIGNMENT
    )


def with_constants(x: object, module: ModuleOp, names: Sequence[str], name: str | None = None) -> ModuleOp:
    """A copy of a loop-level module with further inputs marked constant; `names` are their names in its source `x`, and
    `name` picks one of several functions. Raises InputError for a name that is no input, or an input that is
    written."""
    module = module.clone()
    function = find_function(module, name)
    program = read(function)
    constants = tuple(dict.fromkeys([*program.constants, *renamed_constants(x, program, dict.fromkeys(names))]))
    check_constants(program, constants)
    state_constants(function, constant_arguments(replace(program, constants=constants)))
    return module


def stating_constants(
    x: object, module: ModuleOp, constants: Mapping[str, object], name: str | None = None
) -> ModuleOp:
    """A copy of a te or loop module that states the elements of constant inputs; `constants` are arrays by the names of
    inputs in its source `x`, and `name` picks one of several functions. Raises InputError for a name that is no input
    or whose elements the program states, and for a program at the low level; TargetError for an array that does not
    fit."""
    module = module.clone()
    function = find_function(module, name)
    if level_of(module) == "low":
        raise InputError("the program is at the low level, which has no constant inputs")
    buffers = arguments_of(function) if level_of(module) == "te" else read(function).arguments
    outputs_count = len(function.function_type.outputs) or outputs(function)
    signature = Signature(function.sym_name.data, tuple(buffers), outputs_count, 1)
    values = constant_values(function)
    stated_names = {buffers[n].name: value for n, value in values.items()}
    arrays = merged_constants(renamed_constants(x, signature, constants), stated_names)
    checked = checked_arrays(signature, {name: array for name, array in arrays.items() if name not in stated_names})
    for position, buffer in enumerate(buffers):
        if buffer.name in checked:
            type = TensorType(buffer.scalar, buffer.shape)
            values[position] = DenseAttr(Dense(type, checked[buffer.name].tobytes()))
    state_constants(function, values)
    return module


def merged_constants(given: Mapping[str, object], stated: Mapping[str, DenseAttr]) -> dict[str, object]:
    """The caller's constants, and those that the program states, by name. Raises InputError for a constant in both."""
    for name in stated.keys() & given:
        raise InputError(f"'{name}' is a constant of the program: its elements are known")
    return {**given, **{name: array_of(value.data) for name, value in stated.items()}}


def checked_mapping(constants: object) -> Mapping[str, object]:
    """Constants as a mapping. Raises InputError for anything else."""
    if not isinstance(constants, Mapping):
        raise InputError(f"constants is a {type(constants).__name__}, expected arrays by the names of inputs")
    return constants


def renamed_constants(x: object, program: Program | Signature, constants: Mapping[str, object]) -> dict[str, object]:
    """Rename constants from the names of inputs in the source `x` to those of the program's arguments.

    The names of a te function's tensors may differ from those of its module, which are unique. Raises InputError for an
    unknown name.
    """
    constants = checked_mapping(constants)
    arguments = [buffer.name for buffer in program.arguments]
    input_names = [tensor.name for tensor in getattr(x, "inputs", ())]
    names = dict(zip([*input_names, *arguments[len(input_names) :]], arguments, strict=True))
    for name in constants:
        if name not in names:
            inputs = ", ".join(list(names)[: len(arguments) - program.outputs]) or "none"
            raise InputError(f"@{program.name} has no input '{name}' (it has {inputs})")
    return {names[name]: array for name, array in constants.items()}


def checked_arrays(program: Signature, constants: Mapping[str, object]) -> dict[str, Array]:
    """The constants among the arguments as contiguous, aligned arrays, copied if needed, by name; constants of other
    names are dropped. Raises TargetError for a wrong shape or dtype, and for an object that is no array."""
    expected = [replace(argument(b), alignment=program.alignment) for b in program.arguments if b.name in constants]
    return {a.name: check_input(program.name, a, constants[a.name]) for a in expected}
