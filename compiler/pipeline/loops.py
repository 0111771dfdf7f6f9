"""`lower`: to loops, for a schedule; `lower_to_kernels`: to those that a GPU runs."""

from __future__ import annotations

from xdsl.dialects.builtin import ModuleOp, StringAttr
from xdsl.dialects.func import FuncOp

from compiler import universe
from compiler.dialects import loop
from compiler.dialects.dominance import verify_module
from compiler.dialects.functions import (
    find_function,
)
from compiler.lowering.te_to_loop import program_of
from compiler.passes.lift_constants import has_constants, lift_constants
from compiler.pipeline.passes import parse_passes, run
from compiler.pipeline.source import LOWER, argument, check_is_program, level_of, module_of
from compiler.program.read import read
from compiler.program.tree import Program
from compiler.support.errors import InputError
from compiler.targets.arguments import Argument


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
    from compiler.lowering.loop_to_gpu import LoopToGpuPass  # programs for the CPU do without it
    from compiler.passes.extend_floats import ExtendFloatsPass

    level = level_of(module)
    if level == "low":
        raise InputError("the program is at the low level, where no loop is bound to a GPU's threads")
    if level == "te":
        run(universe.context(), module, parse_passes(LOWER))
    function = find_function(module, name)
    arguments = [argument(buffer) for buffer in read(function).arguments]
    LoopToGpuPass(policy).apply(universe.context(), module)
    ExtendFloatsPass().apply(universe.context(), module)
    verify_module(module)
    return module, find_function(module, name), arguments


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
