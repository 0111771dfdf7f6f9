"""LLVM IR text to machine code in this process, by llvmlite's new pass manager and MCJIT."""

from __future__ import annotations

import ctypes
import ctypes.util
from functools import cache, cached_property
from typing import Any

import llvmlite.binding as llvm

from compiler.errors import TargetError
from compiler.targets.cpu import openmp
from compiler.targets.cpu.single_lanes import with_scalar_stores
from compiler.targets.machine import Machine


class Library:
    """Machine code that is loaded; it must stay alive while an address of it is used."""

    def __init__(self, module: Any, native: Any, recreate: Any) -> None:
        self.llvm = str(module)
        """The optimised text."""
        self._recreate = recreate
        self._engine = llvm.create_mcjit_compiler(module, native)
        self._engine.finalize_object()

    def address(self, name: str) -> int:
        """The address of a function. Raises TargetError if there is none of that name."""
        address: int = self._engine.get_function_address(name)
        if not address:
            raise TargetError(f"the compiled module has no function '{name}'")
        return address

    def asm(self, name: str | None = None) -> str:
        """The assembly of the optimised module, or of one function in it; TargetError for a wrong name."""
        if name is None:
            return self._assembly
        start = self._assembly.find(f"\n{name}:")
        if start < 0:
            raise TargetError(f"the compiled module has no function '{name}'")
        end = self._assembly.find(".Lfunc_end", start)
        return self._assembly[start + 1 : end]

    @cached_property
    def _assembly(self) -> str:
        text: str = self._recreate().emit_assembly(llvm.parse_assembly(self.llvm))
        return text


def compile_llvm(text: str, machine: Machine, opt_level: int = 3) -> Library:
    """Parse, verify, optimise at a level from 0 to 3, and load.

    Raises TargetError for text that LLVM refuses, and for a function that is declared and found nowhere.
    """
    _initialise()
    try:
        module = llvm.parse_assembly(text)
        module.verify()
    except RuntimeError as error:
        raise TargetError(f"LLVM refuses the module: {error}") from error
    _resolve(module)
    native = _native(machine, opt_level)
    module.triple = llvm.Target.from_default_triple().triple
    module.data_layout = str(native.target_data)
    _optimise(module, native, opt_level)
    module = _repaired(module)
    return Library(module, native, lambda: _native(machine, opt_level))


def _native(machine: Machine, opt_level: int) -> Any:
    return llvm.Target.from_default_triple().create_target_machine(
        cpu=machine.cpu, features=machine.features, opt=opt_level, reloc="default", codemodel="jitdefault"
    )


def _optimise(module: Any, native: Any, opt_level: int) -> None:
    options = llvm.create_pipeline_tuning_options(speed_level=opt_level)
    options.loop_vectorization = options.slp_vectorization = options.loop_unrolling = opt_level > 1
    builder = llvm.create_pass_builder(native, options)
    builder.getModulePassManager().run(module, builder)


def _repaired(module: Any) -> Any:
    """The module without what LLVM's backend gets wrong."""
    if not any(function.name.startswith("llvm.masked.store") for function in module.functions):
        return module
    text = str(module)
    better = with_scalar_stores(text)
    return module if better == text else llvm.parse_assembly(better)


@cache
def _initialise() -> None:
    llvm.initialize_native_target()
    llvm.initialize_native_asmprinter()
    for name in _HALVES:
        _find(name, "gcc_s")
    for name in _MATHEMATICS:
        for full in (name, f"{name}f"):
            _find(full)


_MATHEMATICS = (
    *("exp", "exp2", "exp10", "expm1", "log", "log2", "log10", "log1p", "pow", "cbrt", "sqrt", "erf", "erfc"),
    *("sin", "cos", "tan", "asin", "acos", "atan", "atan2", "sincos", "sinh", "cosh", "tanh"),
    *("asinh", "acosh", "atanh", "fma", "fmod", "floor", "ceil", "trunc", "round", "roundeven", "rint"),
    *("fmin", "fmax", "fminimum", "fmaximum", "ldexp"),
)
"""What LLVM may call of the C library's mathematics without its being declared in the text."""


_HALVES = ("__extendhfsf2", "__truncsfhf2", "__truncdfhf2")
"""What LLVM calls of the compiler's library for f16 where the processor has no conversions of it."""


def _find(name: str, library: str = "m") -> bool:
    """Make a function of a library known to LLVM, where the process does not have it by name."""
    if llvm.address_of_symbol(name):
        return True
    function = getattr(_library(library), name, None)
    if function is None:
        return False
    llvm.add_symbol(name, ctypes.cast(function, ctypes.c_void_p).value)
    return True


@cache
def _library(name: str) -> ctypes.CDLL:
    return ctypes.CDLL(ctypes.util.find_library(name))


def _resolve(module: Any) -> None:
    """LLVM ends the process for an unknown function: refuse it before."""
    declared = {function.name for function in module.functions if function.is_declaration}
    if declared & set(openmp.SYMBOLS):
        openmp.define_symbols()
    for name in sorted(declared):
        if not name.startswith("llvm.") and not _find(name):
            raise TargetError(f"the module calls '{name}', which is in no library here")
