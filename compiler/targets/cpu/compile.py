"""Compile LLVM IR text to machine code in this process, by llvmlite's new pass manager, and load it by ORC."""

from __future__ import annotations

import ctypes
from collections import Counter
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cache, cached_property
from itertools import chain, count
from time import perf_counter
from weakref import finalize

import llvmlite.binding as llvm
from llvmlite.binding.orcjit import LLJIT, JITLibraryBuilder, create_lljit_compiler

from compiler.support.errors import TargetError
from compiler.support.unpicklable import Unpicklable
from compiler.targets.cpu import openmp, perf
from compiler.targets.cpu.single_lanes import with_scalar_stores
from compiler.types.machines import Machine, architecture, detect_machine, missing_features


class LoadedCode(Unpicklable):
    """Loaded machine code; it must outlive all uses of its addresses."""

    _refusal = "loaded machine code cannot be pickled or copied: a unit of strata.driver.build_unit can be"

    def __init__(self, objects: Sequence[ObjectCode], machine: Machine) -> None:
        """Load object code, made for `machine`, whose functions call each other, those of this process and those of
        `runtime_symbols`. JITLink keeps the sections of a file together, as the small code model requires."""
        self._machine = machine
        self._engine, number = _engines.next()
        builder = JITLibraryBuilder().add_current_process()
        for file in objects:
            builder.add_object_img(file.code)
        self._defined = frozenset(name for file in objects for name in file.defined)
        for name in self._defined:
            builder.export_symbol(name)
        for name, symbol_address in runtime_symbols().items():
            if name not in self._defined:
                builder.import_symbol(name, symbol_address)
        self._code = builder.link(self._engine, str(number))
        perf.record([file.code for file in objects], lambda name: self._code[name] if name in self._defined else None)
        finalize(self, self._code.close).atexit = False

    def address(self, name: str) -> int:
        """Return the address of a function. Raises TargetError for an unknown name, and for code with instructions that
        this processor lacks: running them would end the process."""
        missing = missing_features(self._machine)
        if missing:
            raise TargetError(
                f"code for '{self._machine.name}' cannot run here: this processor lacks {', '.join(missing)}"
            )
        if name not in self._defined:
            raise TargetError(f"the compiled module has no function '{name}'")
        address: int = self._code[name]
        return address


class _Engines:
    """Engines of ORC, each for LIBRARIES libraries: one takes 2 ms to create, and searches libraries one by one."""

    LIBRARIES = 256

    def __init__(self) -> None:
        self._counts = count()
        self._current: LLJIT | None = None

    def next(self) -> tuple[LLJIT, int]:
        """Return the engine for the next library, a new one after each LIBRARIES, and the library's number in this
        process."""
        number = next(self._counts)
        if self._current is None or number % self.LIBRARIES == 0:
            _initialise()
            self._current = create_lljit_compiler(
                _target_machine(detect_machine(), 0), use_jit_link=True, suppress_errors=True
            )
        return self._current, number


_engines = _Engines()


class Library(LoadedCode):
    """Machine code that was compiled in this process, with its LLVM IR and assembly."""

    def __init__(self, compiled: _CompiledModule, machine: Machine, opt_level: int) -> None:
        self.llvm = str(compiled.module)
        """The optimised LLVM IR."""
        self._opt_level = opt_level
        super().__init__([_object_of(compiled)], machine)

    def asm(self, name: str | None = None) -> str:
        """Return the assembly of the optimised module, or of one function, `name` its symbol. Raises TargetError for an
        unknown name."""
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
        native, context = _target_machine(self._machine, self._opt_level), _new_context()
        native.set_asm_verbosity(comments)
        module = llvm.parse_assembly(self.llvm, context)
        text: str = native.emit_assembly(module)
        module.close()
        _dispose(context)
        return text


@dataclass(frozen=True)
class ObjectCode:
    """Relocatable machine code, loadable by other processes on machines of the same kind. declared: the external
    functions that it calls. defined: the functions and variables that it exports."""

    code: bytes
    declared: tuple[str, ...]
    defined: tuple[str, ...] = ()


def compile_llvm(text: str, machine: Machine, opt_level: int = 3) -> Library:
    """Parse and verify LLVM IR, optimise it at `opt_level`, from 0 to 3, for a machine, and load the code; code for
    another machine loads, and its addresses are refused. Raises TargetError for text that LLVM refuses, and for an
    external function that no library defines."""
    return Library(_compile_module(text, machine, opt_level), machine, opt_level)


def object_code(text: str, machine: Machine, opt_level: int = 3, elsewhere: Collection[str] = ()) -> ObjectCode:
    """Compile LLVM IR to object code without loading it, by LLVM's optimisations of the level `opt_level`, 0 to 3. The
    functions `elsewhere` may be declared in the text: other object code that is loaded with this one defines them.
    Raises TargetError for text that LLVM refuses, and for any other external function that no library defines."""
    return _object_of(_compile_module(text, machine, opt_level, elsewhere))


def _object_of(compiled: _CompiledModule) -> ObjectCode:
    """Emit the object code of an optimised module, and free the module."""
    definitions = chain(compiled.module.functions, compiled.module.global_variables)
    hidden = (llvm.Linkage.internal, llvm.Linkage.private)
    symbols = [value.name for value in definitions if not value.is_declaration and value.linkage not in hidden]
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
    """Compile several texts, each to separate object code, in order. Raises TargetError for text that LLVM refuses, and
    for an external function that no library defines."""
    start = perf_counter()
    objects = tuple(object_code(text, machine) for text in texts)
    return ObjectCodes(objects, perf_counter() - start)


def assembly(text: str, machine: Machine, opt_level: int = 3, elsewhere: Collection[str] = ()) -> str:
    """Compile LLVM IR to the assembly of the whole module, by LLVM's optimisations of the level `opt_level`, 0 to 3.
    The functions `elsewhere` may be declared in the text without a library that defines them. Raises TargetError for
    text that LLVM refuses, and for any other external function that no library defines."""
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
    return LoadedCode(objects, machine)


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
    module.triple = _target(machine).triple
    module.data_layout = str(native.target_data)
    _optimise(module, native, opt_level)
    return _CompiledModule(_with_fixed_stores(module, context), native, context)


def _new_context() -> llvm.ContextRef:
    """Create an LLVM context for one module: the global one never frees the types and constants of a module. It has to
    be freed explicitly: the garbage collector might free it before its module."""
    context = llvm.create_context()
    context._owned = True
    return context


def _dispose(context: llvm.ContextRef) -> None:
    context._owned = False
    context.close()


def _external_functions(module: llvm.ModuleRef) -> set[str]:
    """Return the declared functions of a module, without LLVM's intrinsics."""
    names = {function.name for function in module.functions if function.is_declaration}
    return {name for name in names if not name.startswith("llvm.")}


def _target_machine(machine: Machine, opt_level: int) -> llvm.TargetMachine:
    """Return LLVM's target machine for position-independent code of the small code model, as shared libraries have.
    opt_level: 0 to 3."""
    return _target(machine).create_target_machine(
        cpu=machine.cpu, features=machine.features, opt=opt_level, reloc="pic", codemodel="default"
    )


def _target(machine: Machine) -> llvm.Target:
    """Return LLVM's target for the architecture of a machine: this computer's, or Linux on another."""
    if machine.architecture == architecture():
        return llvm.Target.from_default_triple()
    _initialise_all()
    return llvm.Target.from_triple(f"{machine.architecture}-unknown-linux-gnu")


@cache
def _initialise_all() -> None:
    llvm.initialize_all_targets()
    llvm.initialize_all_asmprinters()


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
    """Return the module with masked stores of one lane, which LLVM's backend miscompiles, as scalar stores; the module
    itself if it has none."""
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
        _find_symbol(name, "gcc_s")
    for name in _MATHEMATICS:
        for full in (name, f"{name}f"):
            _find_symbol(full)


_MATHEMATICS = (
    *("exp", "exp2", "exp10", "expm1", "log", "log2", "log10", "log1p", "pow", "cbrt", "sqrt", "erf", "erfc"),
    *("sin", "cos", "tan", "asin", "acos", "atan", "atan2", "sincos", "sinh", "cosh", "tanh"),
    *("asinh", "acosh", "atanh", "fma", "fmod", "floor", "ceil", "trunc", "round", "roundeven", "rint"),
    *("fmin", "fmax", "fminimum", "fmaximum", "ldexp"),
)
"""Functions of libm that LLVM may call although the text does not declare them."""


_HALF_CONVERSIONS = ("__extendhfsf2", "__truncsfhf2", "__truncdfhf2")
"""Functions of libgcc that LLVM calls for f16 on processors without its conversions."""


_symbols: dict[str, int] = {}


def runtime_symbols() -> Mapping[str, int]:
    """Return the addresses of functions that code may call besides those that the process exports, by name: functions
    of libraries, and those of `define_symbol`. It is the live table, not a copy."""
    return _symbols


def define_symbol(name: str, symbol_address: int) -> None:
    """Make `symbol_address` callable under a name by code that is loaded later, in place of an earlier address."""
    _symbols[name] = symbol_address


def _find_symbol(name: str, library: str = "m") -> bool:
    """Register the function `name` of a library, `m` or `gcc_s`, unless it is registered or the process exports it;
    return whether it exists."""
    if name in _symbols or hasattr(ctypes.CDLL(None), name):
        return True
    function = getattr(_open_library(library), name, None)
    if function is None:
        return False
    define_symbol(name, ctypes.cast(function, ctypes.c_void_p).value or 0)
    return True


@cache
def _open_library(name: str) -> ctypes.CDLL:
    """Open a library, `m` or `gcc_s`, by its soname; where there is none, the process itself."""
    try:
        return ctypes.CDLL(_SONAMES[name])
    except OSError:
        return ctypes.CDLL(None)


_SONAMES = {"m": "libm.so.6", "gcc_s": "libgcc_s.so.1"}


def _resolve(declared: Iterable[str]) -> None:
    """Register the functions `declared` of libraries, those of OpenMP together if one of them is declared. Raises
    TargetError for a function that no library and not this process defines."""
    if set(declared) & set(openmp.SYMBOLS):
        _symbols.update(openmp.symbols())
    for name in sorted(declared):
        if not _find_symbol(name):
            raise TargetError(f"the module calls '{name}', which is in no library here")
