"""Inputs that never change: arrays by the names of the inputs, and what a build makes of them."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, replace

from xdsl.dialects.builtin import ModuleOp

from compiler.dialects.dense import DenseAttr
from compiler.dialects.functions import SLOT_ALIGNMENT, find_function, state_constants
from compiler.dialects.numbers import array_of
from compiler.graph.main import Main
from compiler.passes.split_constants import check_constants
from compiler.pipeline.source import argument
from compiler.program.read import read
from compiler.program.tree import Buffer, Program
from compiler.program.write import constant_arguments
from compiler.support.errors import InputError
from compiler.targets.arguments import Array, check_input, copied


@dataclass(frozen=True)
class Face:
    """What a caller knows of a program: its name and its arguments, constants among them, the last of them results; and
    what the address of a constant's array is a multiple of."""

    name: str
    arguments: tuple[Buffer, ...]
    outputs: int
    alignment: int


def face_of(program: Program | Main) -> Face:
    """The face of a program. Groups assume no alignment, and what main reads is copied into a block."""
    return Face(program.name, program.arguments, program.outputs, 1 if isinstance(program, Main) else SLOT_ALIGNMENT)


def with_constants(x: object, module: ModuleOp, names: Sequence[str], name: str | None = None) -> ModuleOp:
    """The loop-level module of a program, with the inputs of these names said to be constant.

    `x` is the source of the module; its names of inputs are used. Raises InputError for a name that is no input, or an
    input that is written.
    """
    module = module.clone()
    function = find_function(module, name)
    program = read(function)
    constants = tuple(dict.fromkeys([*program.constants, *by_name(x, program, dict.fromkeys(names))]))
    check_constants(program, constants)
    state_constants(function, constant_arguments(replace(program, constants=constants)))
    return module


def all_constants(given: Mapping[str, object], stated: Mapping[str, DenseAttr]) -> dict[str, object]:
    """The constants that a caller gives, and those that the program states. Raises InputError for a constant in
    both."""
    for name in stated.keys() & given:
        raise InputError(f"'{name}' is a constant of the program: its elements are known")
    return {**given, **{name: array_of(value.data) for name, value in stated.items()}}


def fixed_arrays(
    arguments: Sequence[Buffer], constants: Mapping[str, Array], stated: Collection[str]
) -> dict[int, Array]:
    """By position the constants among arguments: copies, or the program's own elements."""
    return {
        n: constants[b.name] if b.name in stated else copied(argument(b), constants[b.name])
        for n, b in enumerate(arguments)
        if b.name in constants
    }


def named(constants: object) -> Mapping[str, object]:
    """Constants as a mapping. Raises InputError for anything else."""
    if not isinstance(constants, Mapping):
        raise InputError(f"constants is a {type(constants).__name__}, expected arrays by the names of inputs")
    return constants


def by_name(x: object, program: Program | Face, constants: Mapping[str, object]) -> dict[str, object]:
    """Constants by the names that arguments have in the program: a te function's own may be told apart by less."""
    constants = named(constants)
    arguments = [buffer.name for buffer in program.arguments]
    said = [tensor.name for tensor in getattr(x, "inputs", ())]
    names = dict(zip([*said, *arguments[len(said) :]], arguments, strict=True))
    for name in constants:
        if name not in names:
            inputs = ", ".join(list(names)[: len(arguments) - program.outputs]) or "none"
            raise InputError(f"@{program.name} has no input '{name}' (it has {inputs})")
    return {names[name]: array for name, array in constants.items()}


def checked_arrays(program: Face, constants: Mapping[str, object]) -> dict[str, Array]:
    """The constants as arrays of the shapes and dtypes of their arguments."""
    expected = [replace(argument(b), alignment=program.alignment) for b in program.arguments if b.name in constants]
    return {a.name: check_input(program.name, a, constants[a.name]) for a in expected}
