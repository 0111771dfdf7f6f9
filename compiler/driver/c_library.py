"""`export_c`: a program as one C file with the functions of a library, for any processor."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path

from xdsl.dialects.builtin import ModuleOp, StringAttr, TensorType
from xdsl.dialects.func import FuncOp

from compiler.dialects import te
from compiler.dialects.dense import DenseAttr
from compiler.dialects.dense_elements import Dense
from compiler.dialects.functions import find_function, state_constants
from compiler.dialects.numbers import dtype_of
from compiler.driver.building import build
from compiler.driver.inputs import checked_mapping
from compiler.driver.parts.groups import input_positions
from compiler.lowering.low_to_llvm.signature import Workspace
from compiler.pipeline.models import program_and_constants
from compiler.pipeline.source import level_of, verified_module
from compiler.support.errors import InputError
from compiler.targets.arguments import Argument, check_input
from compiler.targets.c.kernel import CKernel
from compiler.targets.cpu.kernel import Interface
from compiler.targets.cpu.library.description import Description, describe
from compiler.targets.cpu.library.export import export_source
from compiler.targets.cpu.linked import Linked
from compiler.types.machines import host

SYMBOL = "strata_program"
"""The name of the program's function in the C text, which no function of a library has."""


def export_c(
    x: object,
    path: Path,
    prefix: str,
    policy: str,
    name: str | None,
    constants: Mapping[str, object] | None,
    schedule: object,
) -> list[Path]:
    """Write a program as one C file, and its headers; return the paths.

    The file has the functions of a library under `prefix`; its loops are those of the target c, for one thread, and the
    constants are arrays of the text. Raises InputError for constants of a program below te, and the errors of `build`.
    """
    x, constants = program_and_constants(x, constants)
    module = verified_module(x, policy, name).clone()
    function = find_function(module, name)
    program = function.sym_name.data
    if constants:
        _state(x, module, function, checked_mapping(constants))
    function.properties["sym_name"] = StringAttr(SYMBOL)
    kernel: CKernel = build(module, "c", None, policy, SYMBOL, schedule=schedule)
    return export_source(_description(kernel, prefix, program), path)


def _state(x: object, module: ModuleOp, function: FuncOp, constants: Mapping[str, object]) -> None:
    """State the elements of constant inputs in the program, and rename these and its own constants to names that are
    unique in C. Raises InputError for a program below te, and for constants that are no inputs, TargetError for those
    that do not fit."""
    if level_of(module) != "te":
        raise InputError("the constants of a C file are those of te programs")
    values = dict[int, DenseAttr | None]()
    for name, array in constants.items():
        (position,) = input_positions(x, function, [name])
        argument = function.args[position]
        assert isinstance(argument.type, TensorType)
        dtype = dtype_of(argument.type.element_type)
        checked = check_input(function.sym_name.data, Argument(name, argument.type.get_shape(), dtype), array)
        values[position] = DenseAttr(Dense(argument.type, checked.tobytes(), f"weight_{position}"))
        argument.name_hint = f"weight_{position}"
    state_constants(function, values)
    for number, op in enumerate(op for op in function.body.block.ops if isinstance(op, te.ConstantOp)):
        op.output.name_hint = f"constant_{number}"


def _description(kernel: CKernel, prefix: str, program: str) -> Description:
    """The interface of a kernel of C as a library of one version, which runs on any processor."""
    interface = Interface(program, kernel.arguments, kernel.outputs, Workspace(0, 0), None)
    machine = replace(host(), name="c", cpu="c", features="")
    description = describe(prefix, [Linked(interface, machine, (), kernel.policy, 1, tiles=False)])
    (version,) = description.versions
    text = kernel.text.replace(f"\nvoid {kernel.source.symbol}(", f"\nstatic void {kernel.source.symbol}(", 1)
    run = replace(version.run, symbol=kernel.source.symbol)
    return replace(description, versions=(replace(version, text=text, run=run),))
