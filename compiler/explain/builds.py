"""The program at several levels, and builds of it with marks."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass, field
from functools import cached_property

from xdsl.dialects.builtin import LocationAttr, ModuleOp, StringAttr
from xdsl.dialects.func import FuncOp

from compiler import universe
from compiler.dialects.functions import find_function
from compiler.driver import module_in_groups
from compiler.driver.building import build
from compiler.lowering.low_to_llvm.marks import emit_marked
from compiler.passes.decompose_reductions import decompose_reductions
from compiler.pipeline.passes import run
from compiler.pipeline.source import parse
from compiler.pipeline.to_llvm import passes_from
from compiler.program.read import read
from compiler.program.tree import Program
from compiler.support.errors import InputError, TargetError
from compiler.support.origins import origins
from compiler.targets.cpu import Kernel, Library
from compiler.targets.cpu.load import load
from compiler.types.machines import host


@dataclass(frozen=True)
class Builds:
    """A program and its builds: `kernel` without marks (names of loops in the code), `module` at the low level.

    program: the loops, with the inits of reductions as nests of their own; None for a file at the low level. is_marked:
    whether `kernel` has marks, which spares a second build for a caller that times nothing. places: the locations of
    the program's computes in the user's model, by label.
    """

    kernel: Kernel
    module: ModuleOp
    program: Program | None
    is_marked: bool = False
    places: Mapping[str, LocationAttr] = field(default_factory=dict)

    @property
    def function(self) -> FuncOp:
        """The low-level function of the kernel."""
        return find_function(self.module, self.kernel.name)

    @cached_property
    def marked(self) -> Kernel:
        """The kernel rebuilt with marks: its assembly has the number of the source loop of each instruction."""
        return self.kernel if self.is_marked else self.with_timed_loops(())

    @property
    def assembly(self) -> str:
        """The assembly of `marked`, with LLVM's comments on loops."""
        library = self.marked.library
        assert isinstance(library, Library)
        return library.commented

    def with_timed_loops(self, loops: Collection[int]) -> Kernel:
        """Build the kernel with marks, and with clock reads around the loops with these numbers."""
        name, fixed = self.kernel.name, self.kernel.fixed
        return load(self.module, host(), name, fixed=fixed, emission=lambda m, machine: emit_marked(m, machine, loops))


def builds(
    program: object, policy: str = "contract", name: str | None = None, schedule: object = None, threads: int = 1
) -> Builds:
    """Build a program, or its function or group `name`, for this machine; `policy`, `schedule` and `threads` are those
    of `compiler.build`. Raises the errors of `compiler.build`, and InputError for a program of several groups."""
    kernel = build(
        module_in_groups(program, name), threads=threads, policy=policy, name=name, schedule=schedule, error=0
    )
    if any(group.name != kernel.name for group in kernel.groups):
        names = ", ".join(group.name for group in kernel.groups)
        raise InputError(f"@{kernel.name} calls groups, each with loops of its own: name one of {names}")
    module = parse(kernel.text("low"), "low")
    run(universe.context(), module, passes_from("low", policy))
    return Builds(kernel, module, _program(kernel), places=places_of(program))


def places_of(program: object) -> dict[str, LocationAttr]:
    """Map the labels of a program's computes or blocks to their locations, without unknown ones; empty for a program
    that is no module and has none."""
    module = program if isinstance(program, ModuleOp) else getattr(program, "module", None)
    ops = module.walk() if isinstance(module, ModuleOp) else ()
    labelled = ((getattr(op, "label", None), op.location) for op in ops)
    return {label.data: at for label, at in labelled if isinstance(label, StringAttr) and origins(at)}


def marked_builds(module: ModuleOp, name: str, loops: ModuleOp | None, threads: int = 1) -> Builds:
    """Build the function `name` of a low-level module, as it is emitted, with marks only. loops: the module that it was
    lowered from; None for a file at the low level. Raises the errors of `load`."""
    kernel = load(module, host(), name, threads=threads, emission=emit_marked)
    program = None if loops is None else decompose_reductions(read(find_function(loops, name)))
    return Builds(kernel, module, program, is_marked=True)


def _program(kernel: Kernel) -> Program | None:
    try:
        module = parse(kernel.text("loop"), "loop")
    except TargetError:
        return None
    return decompose_reductions(read(find_function(module, kernel.name)))
