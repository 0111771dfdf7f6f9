"""LLVM IR text to machine code in this process, by llvmlite's new pass manager and MCJIT."""

from __future__ import annotations

from functools import cache
from typing import Any

import llvmlite.binding as llvm

from compiler.errors import TargetError
from compiler.targets.machine import Machine


class Library:
    """Machine code that is loaded; it must stay alive while an address of it is used."""

    def __init__(self, module: Any, machine: Any, text: str) -> None:
        self.llvm = text
        self._machine = machine
        self._module = module
        self._engine = llvm.create_mcjit_compiler(module, machine)
        self._engine.finalize_object()

    def address(self, name: str) -> int:
        """The address of a function. Raises TargetError if there is none of that name."""
        address: int = self._engine.get_function_address(name)
        if not address:
            raise TargetError(f"the compiled module has no function '{name}'")
        return address

    def asm(self) -> str:
        """The assembly of the optimised module."""
        text: str = self._machine.emit_assembly(llvm.parse_assembly(self.llvm))
        return text


@cache
def _initialise() -> None:
    llvm.initialize_native_target()
    llvm.initialize_native_asmprinter()


def compile_llvm(text: str, machine: Machine, level: int = 3) -> Library:
    """Parse, verify, optimise at a level from 0 to 3, and load. Raises TargetError for text LLVM refuses."""
    _initialise()
    try:
        module = llvm.parse_assembly(text)
        module.verify()
    except RuntimeError as error:
        raise TargetError(f"LLVM refuses the emitted text: {error}") from error
    target = llvm.Target.from_default_triple()
    native = target.create_target_machine(
        cpu=machine.cpu, features=machine.features, opt=level, reloc="default", codemodel="jitdefault"
    )
    module.triple = target.triple
    module.data_layout = str(native.target_data)
    options = llvm.create_pipeline_tuning_options(speed_level=level)
    options.loop_vectorization = options.slp_vectorization = options.loop_unrolling = level > 1
    builder = llvm.create_pass_builder(native, options)
    builder.getModulePassManager().run(module, builder)
    return Library(module, native, str(module))
