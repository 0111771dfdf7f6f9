"""Compile LLVM IR text to machine code in this process, by llvmlite's new pass manager and MCJIT."""

from __future__ import annotations

import ctypes
from collections import Counter
from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass
from functools import cache, cached_property
from time import perf_counter
from weakref import finalize

import llvmlite.binding as llvm

from compiler.support.errors import TargetError
from compiler.support.unpicklable import Unpicklable
from compiler.targets.cpu import openmp
from compiler.targets.cpu.single_lanes import with_scalar_stores
from compiler.types.machines import Machine, missing_features


class LoadedCode(Unpicklable):
    """Loaded machine code; it must outlive all uses of its addresses."""

    _refusal = "loaded machine code cannot be pickled or copied: a unit of strata.driver.build_unit can be"

    def __init__(self, engine: llvm.ExecutionEngine, machine: Machine, context: llvm.ContextRef | None = None) -> None:
        self._engine = engine
        self._context = context
        finalize(self, _free, engine, context).atexit = False
        self._engine.finalize_object()
        self._machine = machine

    def address(self, name: str) -> int:
        """Return the address of a function. Raises TargetError for an unknown name, and for code with instructions that
        this processor lacks: running them would end the process."""
        missing = missing_features(self._machine)
        if missing:
            raise TargetError(
                f"code for '{self._machine.name}' cannot run here: this processor lacks {', '.join(missing)}"
            )
        address: int = self._engine.get_function_address(name)
        if not address:
            raise TargetError(f"the compiled module has no function '{name}'")
        return address


class Library(LoadedCode):
    """Machine code that was compiled in this process, with its LLVM IR and assembly."""

    def __init__(self, compiled: _CompiledModule, machine: Machine, opt_level: int) -> None:
        self.llvm = str(compiled.module)
        """The optimised LLVM IR."""
        self._opt_level = opt_level
        super().__init__(llvm.create_mcjit_compiler(compiled.module, compiled.native), machine, compiled.context)

    def asm(self, name: str | None = None) -> str:
        """Return the assembly of the optimised module, or of one function. Raises TargetError for an unknown name."""
        if name is None:
            return self._assembly
        start = self._assembly.find(f"\n{name}:")
        if start < 0:
            raise TargetError(f"the compiled module has no function '{name}'")
        end = self._assembly.find(".Lfunc_end", start)
        return self._assembly[start + 1 : end]

    @cached_property
    def _assembly(self) -> str:
        return self._emitted(comments=False)

    @property
    def commented(self) -> str:
        """The assembly with LLVM's comments, which name the loop of each block."""
        return self._emitted(comments=True)

    def _emitted(self, comments: bool) -> str:
        native = _target_machine(self._machine, self._opt_level)
        native.set_asm_verbosity(comments)
        text: str = native.emit_assembly(llvm.parse_assembly(self.llvm, self._context))
        return text


@dataclass(frozen=True)
class ObjectCode:
    """Relocatable machine code, loadable by other processes on machines of the same kind.

    declared: the external functions that it calls. defined: the functions that it exports.
    """

    code: bytes
    declared: tuple[str, ...]
    defined: tuple[str, ...] = ()


def compile_llvm(text: str, machine: Machine, opt_level: int = 3) -> Library:
    """Parse and verify LLVM IR, optimise it at a level from 0 to 3, and load the code. Raises TargetError for text that
    LLVM refuses, and for an external function that no library defines."""
    return Library(_compile_module(text, machine, opt_level), machine, opt_level)


def object_code(text: str, machine: Machine, opt_level: int = 3, elsewhere: Collection[str] = ()) -> ObjectCode:
    """Compile LLVM IR to object code without loading it. The functions `elsewhere` may be declared in the text: other
    object code that is loaded with this one defines them. Raises TargetError for text that LLVM refuses, and for any
    other external function that no library defines."""
    compiled = _compile_module(text, machine, opt_level, elsewhere)
    symbols = [f.name for f in compiled.module.functions if not f.is_declaration and f.linkage != llvm.Linkage.internal]
    code = ObjectCode(
        compiled.native.emit_object(compiled.module),
        tuple(sorted(_external_functions(compiled.module))),
        tuple(symbols),
    )
    compiled.module.close()
    _dispose(compiled.context)
    return code


@dataclass(frozen=True)
class ObjectCodes:
    """The object code of several texts, and the seconds of their compilation."""

    objects: tuple[ObjectCode, ...]
    seconds: float


def object_codes(texts: Sequence[str], machine: Machine) -> ObjectCodes:
    """Compile several texts, each to separate object code, in order. Raises the TargetError of the first that fails."""
    start = perf_counter()
    objects = tuple(object_code(text, machine) for text in texts)
    return ObjectCodes(objects, perf_counter() - start)


def assembly(text: str, machine: Machine, opt_level: int = 3, elsewhere: Collection[str] = ()) -> str:
    """Return the assembly of the code that `object_code` makes of a text, printed as `Library.asm` prints it."""
    compiled = _compile_module(text, machine, opt_level, elsewhere)
    reparsed = llvm.parse_assembly(str(compiled.module), compiled.context)
    assembly_text: str = compiled.native.emit_assembly(reparsed)
    reparsed.close()
    compiled.module.close()
    _dispose(compiled.context)
    return assembly_text


def load_object(code: ObjectCode, machine: Machine) -> LoadedCode:
    """Load object code. Raises TargetError for an external function that no library defines."""
    return load_objects([code], machine)


def load_objects(objects: Sequence[ObjectCode], machine: Machine) -> LoadedCode:
    """Load object files that call each other; their symbols take precedence over those of the process. Raises
    TargetError for a function that no file and no library defines, and for one that two files define."""
    _initialise()
    defined = Counter(name for file in objects for name in file.defined)
    duplicates = [name for name, count in defined.items() if count > 1]
    if duplicates:
        raise TargetError(f"two parts of a program have a function '{duplicates[0]}'")
    _resolve({name for file in objects for name in file.declared} - defined.keys())
    engine = llvm.create_mcjit_compiler(llvm.parse_assembly(""), _target_machine(machine, 0))
    for file in objects:
        engine.add_object_file(llvm.ObjectFileRef.from_data(file.code))
    return LoadedCode(engine, machine)


@dataclass(frozen=True)
class _CompiledModule:
    """An optimised module without unresolved functions, the target machine for its code, and its LLVM context."""

    module: llvm.ModuleRef
    native: llvm.TargetMachine
    context: llvm.ContextRef


def _compile_module(text: str, machine: Machine, opt_level: int, elsewhere: Collection[str] = ()) -> _CompiledModule:
    _initialise()
    context = _new_context()
    try:
        module = llvm.parse_assembly(text, context)
        module.verify()
    except RuntimeError as error:
        raise TargetError(f"LLVM refuses the module: {error}") from error
    _resolve(_external_functions(module) - set(elsewhere))
    native = _target_machine(machine, opt_level)
    module.triple = llvm.Target.from_default_triple().triple
    module.data_layout = str(native.target_data)
    _optimise(module, native, opt_level)
    return _CompiledModule(_with_fixed_stores(module, context), native, context)


def _new_context() -> llvm.ContextRef:
    """Create an LLVM context for one module: the global one keeps the types and constants of all modules for ever. Only
    `_dispose` frees it: the garbage collector might free it before its module."""
    context = llvm.create_context()
    context._owned = True
    return context


def _dispose(context: llvm.ContextRef) -> None:
    context._owned = False
    context.close()


def _free(engine: llvm.ExecutionEngine, context: llvm.ContextRef | None) -> None:
    engine.close()
    if context is not None:
        _dispose(context)


def _external_functions(module: llvm.ModuleRef) -> set[str]:
    """Return the declared functions of a module, without LLVM's intrinsics."""
    names = {function.name for function in module.functions if function.is_declaration}
    return {name for name in names if not name.startswith("llvm.")}


def _target_machine(machine: Machine, opt_level: int) -> llvm.TargetMachine:
    return llvm.Target.from_default_triple().create_target_machine(
        cpu=machine.cpu, features=machine.features, opt=opt_level, reloc="default", codemodel="jitdefault"
    )


def _optimise(module: llvm.ModuleRef, native: llvm.TargetMachine, opt_level: int) -> None:
    options = llvm.create_pipeline_tuning_options(speed_level=opt_level)
    options.loop_vectorization = options.slp_vectorization = options.loop_unrolling = opt_level > 1
    builder = llvm.create_pass_builder(native, options)
    passes = builder.getModulePassManager()
    passes.run(module, builder)
    _release(passes)


def _release(passes: llvm.NewPassManager) -> None:
    """Free a pass manager: llvmlite's `close` calls the base class's, which does nothing and leaks 120 KiB."""
    llvm.ffi.lib.LLVMPY_DisposeNewModulePassManger(passes)
    passes.detach()


def _with_fixed_stores(module: llvm.ModuleRef, context: llvm.ContextRef) -> llvm.ModuleRef:
    """Return the module with masked stores of one lane, which LLVM's backend miscompiles, as scalar stores."""
    if not any(function.name.startswith("llvm.masked.store") for function in module.functions):
        return module
    text = str(module)
    fixed_text = with_scalar_stores(text)
    return module if fixed_text == text else llvm.parse_assembly(fixed_text, context)


@cache
def _initialise() -> None:
    llvm.initialize_native_target()
    llvm.initialize_native_asmprinter()
    for name in _HALF_CONVERSIONS:
        _define_symbol(name, "gcc_s")
    for name in _MATHEMATICS:
        for full in (name, f"{name}f"):
            _define_symbol(full)


_MATHEMATICS = (
    *("exp", "exp2", "exp10", "expm1", "log", "log2", "log10", "log1p", "pow", "cbrt", "sqrt", "erf", "erfc"),
    *("sin", "cos", "tan", "asin", "acos", "atan", "atan2", "sincos", "sinh", "cosh", "tanh"),
    *("asinh", "acosh", "atanh", "fma", "fmod", "floor", "ceil", "trunc", "round", "roundeven", "rint"),
    *("fmin", "fmax", "fminimum", "fmaximum", "ldexp"),
)
"""Functions of libm that LLVM may call although the text does not declare them."""


_HALF_CONVERSIONS = ("__extendhfsf2", "__truncsfhf2", "__truncdfhf2")
"""Functions of libgcc that LLVM calls for f16 on processors without its conversions."""


def _define_symbol(name: str, library: str = "m") -> bool:
    """Register a function of a library with LLVM unless the process exports it; return whether it exists."""
    if llvm.address_of_symbol(name):
        return True
    function = getattr(_open_library(library), name, None)
    if function is None:
        return False
    llvm.add_symbol(name, ctypes.cast(function, ctypes.c_void_p).value)
    return True


@cache
def _open_library(name: str) -> ctypes.CDLL:
    """Open a library by its soname on Linux, else the process itself; ctypes would look it up by other programs."""
    try:
        return ctypes.CDLL(_SONAMES[name])
    except OSError:
        return ctypes.CDLL(None)


_SONAMES = {"m": "libm.so.6", "gcc_s": "libgcc_s.so.1"}


def _resolve(declared: Iterable[str]) -> None:
    """Register functions with LLVM. Raises TargetError for one that no library defines: LLVM would end the process."""
    if set(declared) & set(openmp.SYMBOLS):
        openmp.define_symbols()
    for name in sorted(declared):
        if not _define_symbol(name):
            raise TargetError(f"the module calls '{name}', which is in no library here")
