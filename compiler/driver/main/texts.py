"""The texts of a whole program by level: main, followed by its units. Most are made on demand."""

from __future__ import annotations

import textwrap
from collections.abc import Callable, Sequence
from functools import partial

from xdsl.dialects.builtin import FunctionType, ModuleOp, StringAttr
from xdsl.dialects.func import FuncOp

from compiler import universe
from compiler.dialects.dense import constants_in
from compiler.driver.units.compile import CompileJob, functions_of, lowered
from compiler.graph.main import Main, write_loop, write_low
from compiler.lowering.low_to_llvm import emit
from compiler.passes.plan_buffers import PlanBuffersPass
from compiler.targets.cpu.compile import assembly
from compiler.types.machines import host

MOST_BYTES = 1 << 20
"""The limit of the bytes of constants; above it the text of a program omits their elements."""


def program_texts(te: str, main: Main, jobs: Sequence[CompileJob]) -> dict[str, str | Callable[[], str]]:
    """The texts of a program by level, main followed by the units of `jobs`; those below te are functions that make
    the texts."""
    return {
        "te": te,
        "loop": partial(_loop, main, jobs),
        "low": lambda: str(_low(main, jobs)),
        "llvm": lambda: emit(_low(main, jobs), host()),
        "asm": lambda: assembly(emit(_low(main, jobs), host()), host()),
    }


def te_text(module: ModuleOp) -> str:
    """The text of a module at the te level, without the elements of its constants if these exceed MOST_BYTES."""
    is_small = sum(constant.data.nbytes for constant in constants_in(module)) <= MOST_BYTES
    return str(module) if is_small else text_by_digests(module)


def lazy_text_by_digests(module: ModuleOp) -> Callable[[], str]:
    """Return a function that returns the text of a module as `text_by_digests`. The text is computed at the first call;
    at once if the module has large constants, which then need not stay in memory."""
    if all(constant.is_inline for constant in constants_in(module)):
        return partial(text_by_digests, module)
    text = text_by_digests(module)
    return lambda: text


def text_by_digests(module: ModuleOp) -> str:
    """The text of a module, whose large constants have a name and a digest instead of their elements."""
    return "\n".join(["builtin.module {", *(textwrap.indent(str(op), "  ") for op in module.ops), "}"])


def _functions(job: CompileJob) -> list[FuncOp]:
    """The scheduled loops of a unit as private functions: the preparation, and the function of each call."""
    functions = functions_of(job)
    for function in functions:
        function.properties["sym_visibility"] = StringAttr("private")
    return functions


def _loop(main: Main, jobs: Sequence[CompileJob]) -> str:
    function = empty_function(main.name)
    write_loop(function, main)
    return str(ModuleOp([function, *(f for job in jobs for f in _functions(job))]))


def _low(main: Main, jobs: Sequence[CompileJob]) -> ModuleOp:
    function = empty_function(main.name)
    write_low(function, main)
    module = ModuleOp([function])
    for job in jobs:
        for loop_function in _functions(job):
            low = lowered(loop_function, job.key.policy)
            module.body.block.add_ops([op.clone() for op in low.ops])
    PlanBuffersPass().apply(universe.context(), module)
    return module


def empty_function(name: str) -> FuncOp:
    """A function without arguments and with an empty body."""
    return FuncOp(name, FunctionType.from_lists([], []))
