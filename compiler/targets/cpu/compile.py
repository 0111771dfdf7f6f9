"""LLVM IR text to machine code in this process, by llvmlite's new pass manager and MCJIT."""

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
from compiler.types.machines import Machine, lacking


class Loaded(Unpicklable):
    """Machine code that is loaded; it must stay alive while an address of it is used."""

    _refusal = "loaded machine code cannot be pickled or copied: a unit of strata.driver.build_unit can be"

    def __init__(self, engine: llvm.ExecutionEngine, machine: Machine, context: llvm.ContextRef | None = None) -> None:
        self._engine = engine
        self._context = context
        finalize(self, _free, engine, context).atexit = False
        self._engine.finalize_object()
        self._machine = machine

    def address(self, name: str) -> int:
        """The address of a function.

        Raises TargetError for an unknown name, and for code that needs features this machine lacks: running it would
        end the process.
        """
        lacks = lacking(self._machine)
        if lacks:
            raise TargetError(
                f"code for '{self._machine.name}' cannot run here: this processor lacks {', '.join(lacks)}"
            )
        address: int = self._engine.get_function_address(name)
        if not address:
            raise TargetError(f"the compiled module has no function '{name}'")
        return address


class Library(Loaded):
    """Machine code that was compiled in this process, with its texts."""

    def __init__(self, compiled: _Compiled, machine: Machine, opt_level: int) -> None:
        self.llvm = str(compiled.module)
        """The optimised text."""
        self._opt_level = opt_level
        super().__init__(llvm.create_mcjit_compiler(compiled.module, compiled.native), machine, compiled.context)

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
        return self._emitted(comments=False)

    @property
    def commented(self) -> str:
        """The assembly with LLVM's comments, which name the loop that each block is in."""
        return self._emitted(comments=True)

    def _emitted(self, comments: bool) -> str:
        native = _native(self._machine, self._opt_level)
        native.set_asm_verbosity(comments)
        text: str = native.emit_assembly(llvm.parse_assembly(self.llvm, self._context))
        return text


@dataclass(frozen=True)
class ObjectCode:
    """Machine code as bytes, which another process on a machine of the same kind can load.

    `declared` are the functions that it calls and does not define, `defined` the functions that others can call.
    """

    code: bytes
    declared: tuple[str, ...]
    defined: tuple[str, ...] = ()


def compile_llvm(text: str, machine: Machine, opt_level: int = 3) -> Library:
    """Parse, verify, optimise at a level from 0 to 3, and load.

    Raises TargetError for text that LLVM refuses, and for a function that is declared and found nowhere.
    """
    return Library(_compiled(text, machine, opt_level), machine, opt_level)


def object_code(text: str, machine: Machine, opt_level: int = 3, elsewhere: Collection[str] = ()) -> ObjectCode:
    """Parse, verify and optimise as `compile_llvm` does, and give the object code instead of loading it.

    The functions `elsewhere` may be declared in the text: other object code that is loaded with this one has them.
    """
    compiled = _compiled(text, machine, opt_level, elsewhere)
    symbols = [f.name for f in compiled.module.functions if not f.is_declaration and f.linkage != llvm.Linkage.internal]
    code = ObjectCode(
        compiled.native.emit_object(compiled.module), tuple(sorted(_declared(compiled.module))), tuple(symbols)
    )
    compiled.module.close()
    _dispose(compiled.context)
    return code


@dataclass(frozen=True)
class ObjectCodes:
    """The object code of several texts, and the seconds that it took."""

    objects: tuple[ObjectCode, ...]
    seconds: float


def object_codes(texts: Sequence[str], machine: Machine) -> ObjectCodes:
    """The object code of several texts, each for itself. Raises TargetError as `object_code` does."""
    start = perf_counter()
    objects = tuple(object_code(text, machine) for text in texts)
    return ObjectCodes(objects, perf_counter() - start)


def assembly(text: str, machine: Machine, opt_level: int = 3, elsewhere: Collection[str] = ()) -> str:
    """The assembly of the code that `object_code` makes of a text, emitted from the optimised text as for a library."""
    compiled = _compiled(text, machine, opt_level, elsewhere)
    again = llvm.parse_assembly(str(compiled.module), compiled.context)
    written: str = compiled.native.emit_assembly(again)
    again.close()
    compiled.module.close()
    _dispose(compiled.context)
    return written


def load_object(code: ObjectCode, machine: Machine) -> Loaded:
    """Load object code. Raises TargetError for a function that it calls and that is found nowhere."""
    return load_objects([code], machine)


def load_objects(objects: Sequence[ObjectCode], machine: Machine) -> Loaded:
    """Load object code whose parts call each other; names are this program's own, whatever else the process has.

    Raises TargetError for a function that is called and found nowhere, and for one that two parts have.
    """
    _initialise()
    defined = Counter(name for part in objects for name in part.defined)
    twice = [name for name, count in defined.items() if count > 1]
    if twice:
        raise TargetError(f"two parts of a program have a function '{twice[0]}'")
    _resolve({name for part in objects for name in part.declared} - defined.keys())
    engine = llvm.create_mcjit_compiler(llvm.parse_assembly(""), _native(machine, 0))
    for part in objects:
        engine.add_object_file(llvm.ObjectFileRef.from_data(part.code))
    return Loaded(engine, machine)


@dataclass(frozen=True)
class _Compiled:
    """An optimised module, whose functions are all found, the target machine for its code, and its LLVM context."""

    module: llvm.ModuleRef
    native: llvm.TargetMachine
    context: llvm.ContextRef


def _compiled(text: str, machine: Machine, opt_level: int, elsewhere: Collection[str] = ()) -> _Compiled:
    _initialise()
    context = _new_context()
    try:
        module = llvm.parse_assembly(text, context)
        module.verify()
    except RuntimeError as error:
        raise TargetError(f"LLVM refuses the module: {error}") from error
    _resolve(_declared(module) - set(elsewhere))
    native = _native(machine, opt_level)
    module.triple = llvm.Target.from_default_triple().triple
    module.data_layout = str(native.target_data)
    _optimise(module, native, opt_level)
    return _Compiled(_repaired(module, context), native, context)


def _new_context() -> llvm.ContextRef:
    """An LLVM context of a module's own: the global one keeps the types and constants of all modules for ever.

    It is freed by `_dispose` only: the garbage collector would not know that its module goes first.
    """
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


def _declared(module: llvm.ModuleRef) -> set[str]:
    """The functions that a module calls and that are not LLVM's own."""
    names = {function.name for function in module.functions if function.is_declaration}
    return {name for name in names if not name.startswith("llvm.")}


def _native(machine: Machine, opt_level: int) -> llvm.TargetMachine:
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
    """Free a pass manager: llvmlite's own `close` finds the base class's, which does nothing, and 120 KiB stay."""
    llvm.ffi.lib.LLVMPY_DisposeNewModulePassManger(passes)
    passes.detach()


def _repaired(module: llvm.ModuleRef, context: llvm.ContextRef) -> llvm.ModuleRef:
    """The module without what LLVM's backend gets wrong."""
    if not any(function.name.startswith("llvm.masked.store") for function in module.functions):
        return module
    text = str(module)
    better = with_scalar_stores(text)
    return module if better == text else llvm.parse_assembly(better, context)


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
    """A library by its name in Linux; without it, what the process has. To ask for its path starts other programs."""
    try:
        return ctypes.CDLL(_SONAMES[name])
    except OSError:
        return ctypes.CDLL(None)


_SONAMES = {"m": "libm.so.6", "gcc_s": "libgcc_s.so.1"}


def _resolve(declared: Iterable[str]) -> None:
    """LLVM ends the process for an unknown function: refuse it before."""
    if set(declared) & set(openmp.SYMBOLS):
        openmp.define_symbols()
    for name in sorted(declared):
        if not _find(name):
            raise TargetError(f"the module calls '{name}', which is in no library here")
