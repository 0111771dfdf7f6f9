"""`lower`: to loops, for a schedule; `lower_for`: to what a target takes; `lower_to_kernels`: to what a GPU runs."""

from __future__ import annotations

from collections.abc import Mapping

from xdsl.dialects.builtin import MemRefType, ModuleOp, StringAttr
from xdsl.dialects.func import FuncOp

from compiler import universe
from compiler.dialects import loop
from compiler.dialects.dominance import verify_module
from compiler.dialects.functions import find_function, positions
from compiler.lowering.te_to_loop import program_of
from compiler.passes.lift_constants import has_constants, lift_constants
from compiler.pipeline.passes import parse_passes, run, under
from compiler.pipeline.source import LOWER, argument, check_is_program, level_of, module_of
from compiler.program.read import read
from compiler.program.tree import Program
from compiler.support.errors import InputError
from compiler.targets.arguments import Argument, argument_dtype
from compiler.targets.gpus import KERNELS, UNBOUND
from compiler.targets.target import Target


def lower(x: object) -> ModuleOp:
    """The loop-level module of a te function, in the order written: what a Schedule begins with.

    `x` is what `build` takes, at the te or loop level. Raises InputError for the low level.
    """
    module = module_of(x).clone()
    verify_module(module)
    check_is_program(module)
    if level_of(module) == "low":
        raise InputError("the program is at the low level, below loops and blocks")
    run(universe.context(), module, parse_passes(LOWER))
    return module


def tree_of(module: ModuleOp, name: str | None = None) -> Program:
    """The loops of a function at the te or loop level, as a tree: those of `lower`, without writing them."""
    function = find_function(module, name)
    if level_of(module) != "te":
        return read(function)
    if has_constants(function):
        function = function.clone()
        lift_constants(function)
    return program_of(function)


def lower_to_kernels(
    module: ModuleOp, name: str | None = None, policy: str = "contract"
) -> tuple[ModuleOp, FuncOp, list[Argument]]:
    """A module at the te or loop level, lowered in place to kernels, with its host function and what that takes.

    Raises InputError for the low level, LoweringError for loops that no kernel can have.
    """
    return _lowered(module, KERNELS, UNBOUND, name, policy)


def lower_for(
    target: Target, module: ModuleOp, name: str | None, policy: str
) -> tuple[ModuleOp, FuncOp, list[Argument]]:
    """A module, lowered in place to what a target makes kernels of, with its function and what that takes.

    Raises InputError for a level that the target does not take, LoweringError for loops that it cannot have.
    """
    return _lowered(module, target.passes, target.refusal, name, policy)


def _lowered(
    module: ModuleOp, passes: Mapping[str, str], refusal: str, name: str | None, policy: str
) -> tuple[ModuleOp, FuncOp, list[Argument]]:
    """A module after the passes of its level, te as loops first."""
    level = level_of(module)
    if level not in passes:
        raise InputError(f"the program is at the {level} level, {refusal}")
    if level == "te":
        run(universe.context(), module, parse_passes(LOWER))
    function = find_function(module, name)
    arguments = [argument(buffer) for buffer in read(function).arguments] if level != "low" else _arguments(function)
    run(universe.context(), module, under(policy, parse_passes(passes[level])))
    verify_module(module)
    return module, find_function(module, name), arguments


def _arguments(function: FuncOp) -> list[Argument]:
    """The arguments of a function at the low level. Raises InputError for one that is no buffer."""
    unsigned, arguments = positions(function, "unsigned"), []
    for value in function.args:
        name, type_ = value.name_hint or f"arg{value.index}", value.type
        if not isinstance(type_, MemRefType):
            raise InputError(f"the argument '{name}' of @{function.sym_name.data} is no buffer, but {type_}")
        dtype = argument_dtype(type_.element_type, value.index in unsigned)
        arguments.append(Argument(name, type_.get_shape(), dtype))
    return arguments


def unbound(module: ModuleOp) -> ModuleOp:
    """The loops of a module without their bindings to threads, what warps run together among them, and without scopes:
    the same function, for a CPU."""
    clone = module.clone()
    for op in clone.walk():
        if isinstance(op, loop.ForOp) and op.loop_kind != "serial":
            op.properties["kind"] = StringAttr("serial")
        elif isinstance(op, loop.AllocOp):
            op.properties["scope"] = StringAttr("global")
    return clone
