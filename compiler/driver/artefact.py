"""`build_artefact`: machine code as data, which another process loads as a kernel."""

from __future__ import annotations

from dataclasses import replace

from xdsl.dialects.builtin import ModuleOp

from compiler import universe
from compiler.dialects.functions import (
    find_function,
)
from compiler.passes.split_constants import split
from compiler.pipeline import passes_from, run
from compiler.pipeline.source import level_of, verified
from compiler.program.read import read
from compiler.targets.cpu import thread_count
from compiler.targets.cpu.artefact import Artefact, Preparation, compile_artefact
from compiler.types.machines import host


def build_artefact(
    x: object, threads: int | None = None, policy: str = "contract", name: str | None = None
) -> Artefact:
    """Compile as `build` does, to data that another process loads: see `load_artefact`.

    If the program has constant inputs, computations that depend on them alone become a preparation of the artefact.
    Raises what `build` does.
    """
    module, count = verified(x, policy, name), thread_count(threads)
    program = read(find_function(module, name)) if level_of(module) == "loop" else None
    is_split = program is not None and (program.constants or program.literals)
    parts = split(find_function(module, name), program.constants) if program and is_split else None
    if program is None or parts is None or parts.prepare is None:
        return _artefact(module, name, policy, count)
    before, main = (_artefact(ModuleOp([part]), None, policy, count) for part in parts.functions)
    arrays = [*(buffer.name for buffer in program.arguments), *parts.prepared]
    inputs = parts.prepare.arguments[: len(parts.prepare.arguments) - len(parts.prepared)]
    takes = tuple(arrays.index(buffer.name) for buffer in inputs)
    passes = tuple(arrays.index(buffer.name) for buffer in parts.main.arguments)
    return replace(main, preparation=Preparation(before, takes, passes))


def _artefact(module: ModuleOp, name: str | None, policy: str, threads: int) -> Artefact:
    run(universe.context(), module, passes_from(level_of(module), policy))
    return compile_artefact(module, host(), name, policy, threads)
