"""`lower`: to loops, for a schedule; `lower_for`: to the input of a target; `lower_to_kernels`: to a GPU's kernels."""

from __future__ import annotations

from collections.abc import Mapping

from xdsl.dialects.builtin import MemRefType, ModuleOp, StringAttr
from xdsl.dialects.func import FuncOp

from compiler import universe
from compiler.dialects import loop
from compiler.dialects.dominance import verify_module
from compiler.dialects.functions import find_function, positions
from compiler.lowering.te_to_loop.nests import program_of
from compiler.passes.lift_constants import has_constants, lift_constants
from compiler.pipeline.parser import parse_passes
from compiler.pipeline.passes import TO_LOOPS, run
from compiler.pipeline.source import argument, check_is_program, level_of, module_of, raised
from compiler.pipeline.to_llvm import with_policy
from compiler.program.read import read
from compiler.program.tree import Program
from compiler.support.errors import InputError, LoweringError
from compiler.targets.arguments import Argument, argument_dtype
from compiler.targets.gpus import KERNELS, UNBOUND
from compiler.targets.target import Target


def lower(x: object) -> ModuleOp:
    """Lower a program to a loop-level module, with loops in the order written, for a Schedule.

    `x` is a program at the te or loop level, as `build` takes it, or nests of affine or scf loops that
    raise-affine-to-loop takes. Raises InputError for any other program at the low level and for a module without a
    function, Refusal for an invalid program, ParseError for a text that cannot be parsed, and LoweringError for one
    without a te form.

    >>> A = te.placeholder((64,), name="A")
    >>> module = lower(te.function("f", [A], te.nn.exp(A, name="B")))
    >>> print(strata.schedule.outline(Schedule(module).program))
    i0 = 64
      B = f(A)
    """
    module = module_of(x).clone()
    verify_module(module)
    check_is_program(module)
    if level_of(module) == "low":
        return _raised(module)
    run(universe.context(), module, parse_passes(TO_LOOPS))
    return module


def _raised(module: ModuleOp) -> ModuleOp:
    try:
        loops = raised(module)
    except LoweringError as error:
        raise InputError(f"the program is at the low level, below loops and blocks: {error}") from error
    if level_of(loops) == "low":
        raise InputError("the program is at the low level, below loops and blocks, and has no nest to raise")
    return loops


def tree_of(module: ModuleOp, name: str | None = None) -> Program:
    """The loops of a function at the te or loop level as a tree, as after `lower`, without building their IR. `name`:
    the function, None for the only one or the only public one. Raises InputError for a missing function, and for one at
    the low level."""
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
    """Lower a module at the te or loop level to kernels, in place; return it with its host function and arguments.
    `name`: the function, None for the only one or the only public one; `policy`: of floating point.

    Raises InputError for the low level, LoweringError for loops that no kernel can run.

    >>> A = te.placeholder((64,), name="A")
    >>> s = Schedule(te.function("f", [A], te.nn.exp(A, name="B")))
    >>> s.bind(s.get_loops("B")[0], "threadIdx.x")
    >>> module, host, arguments = strata.passes.lower_to_kernels(s.module)
    >>> [str(argument) for argument in arguments]
    ['A: float32[64]', 'B: float32[64]']
    """
    return _lowered(module, KERNELS, UNBOUND, name, policy)


def lower_for(
    target: Target, module: ModuleOp, name: str | None, policy: str
) -> tuple[ModuleOp, FuncOp, list[Argument]]:
    """Lower a module to the input of a target's emission, in place; return it with its function, `name` or if None the
    only public one, and arguments. `policy`: of floating point.

    Raises InputError for an unsupported level, LoweringError for loops that the target cannot run.
    """
    return _lowered(module, target.passes, target.refusal, name, policy)


def _lowered(
    module: ModuleOp, passes: Mapping[str, str], refusal: str, name: str | None, policy: str
) -> tuple[ModuleOp, FuncOp, list[Argument]]:
    """Run the passes of a module's level on it, after lowering te to loops; return it with its function `name` and
    arguments.

    `passes` are pipelines by level; `refusal` is the end of the InputError for a level without one.
    """
    level = level_of(module)
    if level not in passes:
        raise InputError(f"the program is at the {level} level, {refusal}")
    if level == "te":
        run(universe.context(), module, parse_passes(TO_LOOPS))
    function = find_function(module, name)
    arguments = [argument(buffer) for buffer in read(function).arguments] if level != "low" else _arguments(function)
    run(universe.context(), module, with_policy(policy, parse_passes(passes[level])))
    verify_module(module)
    return module, find_function(module, name), arguments


def _arguments(function: FuncOp) -> list[Argument]:
    """The kernel arguments of a function at the low level. Raises InputError unless all are buffers."""
    unsigned, arguments = positions(function, "unsigned"), []
    for value in function.args:
        name, type_ = value.name_hint or f"arg{value.index}", value.type
        if not isinstance(type_, MemRefType):
            raise InputError(f"the argument '{name}' of @{function.sym_name.data} is no buffer, but {type_}")
        dtype = argument_dtype(type_.element_type, value.index in unsigned)
        arguments.append(Argument(name, type_.get_shape(), dtype))
    return arguments


def without_bindings(module: ModuleOp) -> ModuleOp:
    """Copy a module for a CPU: all loops (bound, parallel, vectorized ...) become serial, all buffers global."""
    clone = module.clone()
    for op in clone.walk():
        if isinstance(op, loop.ForOp) and op.loop_kind != "serial":
            op.properties["kind"] = StringAttr("serial")
        elif isinstance(op, loop.AllocOp):
            op.properties["scope"] = StringAttr("global")
    return clone
