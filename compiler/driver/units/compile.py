"""One unit: te, loops, its schedule, the part that is prepared, low, LLVM, object code."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from hashlib import sha256
from time import perf_counter

from xdsl.dialects.builtin import ModuleOp, StringAttr
from xdsl.dialects.func import FuncOp

from compiler import universe
from compiler.analysis.in_place import overwriting
from compiler.dialects.functions import find_function
from compiler.dialects.parser import Parser
from compiler.driver.units.unit import NativeCode, Unit, UnitKey
from compiler.lowering.low_to_llvm import emit
from compiler.lowering.te_to_loop.nests import program_of
from compiler.passes.reorder_contiguous import reorder_contiguous
from compiler.passes.split_constants import SplitProgram, split_program
from compiler.pipeline.to_llvm import to_code
from compiler.program.tree import Buffer, Program
from compiler.schedule import Schedule
from compiler.support.gc import paused
from compiler.targets.cpu.compile import ObjectCode, ObjectCodes, object_code, object_codes
from compiler.targets.cpu.kernel import Interface
from compiler.targets.cpu.load import check_outputs, interface
from compiler.targets.cpu.tiles import uses_tiles
from compiler.types.machines import host

UNIT = "unit"
"""The common name of functions in the text of a key, and the prefix of the symbols of their machine code."""


@dataclass(frozen=True)
class CompileJob:
    """A unit to compile: its key, the name of its function in the program, and its scheduled loops `tree`; None applies
    the key's script to the key's text."""

    key: UnitKey
    name: str
    tree: Program | None = field(default=None, compare=False, repr=False)

    @property
    def symbol(self) -> str:
        """The symbol of its function, from the key alone: programs that name it differently share the machine code."""
        return f"{UNIT}.{sha256(repr(self.key).encode()).hexdigest()[:32]}"


def key_text(function: FuncOp) -> str:
    """The text of a te function under the common name UNIT."""
    alone = function.clone()
    alone.properties["sym_name"] = StringAttr(UNIT)
    alone.properties.pop("sym_visibility", None)
    return str(ModuleOp([alone]))


@dataclass(frozen=True)
class LoweredCode:
    """One native function as LLVM IR text, with the other fields of its `NativeCode`."""

    name: str
    interface: Interface
    text: str
    policy: str
    tiles: bool

    def with_object(self, code: ObjectCode) -> NativeCode:
        """The function with its machine code."""
        return NativeCode(self.name, self.interface, code, self.policy, self.tiles)


@dataclass(frozen=True)
class LoweredUnit:
    """A unit as LLVM IR. codes: the preparation, if there is one, and the function of each call. seconds: of lowering.
    takes, prepares, prepared, shared: as in `Unit`."""

    codes: Sequence[LoweredCode]
    takes: tuple[int, ...]
    prepares: tuple[int, ...]
    prepared: tuple[Buffer, ...]
    shared: tuple[tuple[int, int], ...]
    seconds: float

    @property
    def texts(self) -> tuple[str, ...]:
        """The LLVM IR of each function, in the order of `codes`."""
        return tuple(code.text for code in self.codes)

    def compiled(self) -> Unit:
        """Compile the texts to a unit, for the host. Raises TargetError if LLVM refuses a text."""
        return self.with_objects(object_codes(self.texts, host()))

    def with_objects(self, codes: ObjectCodes) -> Unit:
        """The unit with the machine code `codes` of `texts`, in their order; its seconds are those of both."""
        *before, call = [
            code.with_object(machine_code) for code, machine_code in zip(self.codes, codes.objects, strict=True)
        ]
        prepare, seconds = before[0] if before else None, self.seconds + codes.seconds
        return Unit(call, self.takes, prepare, self.prepares, self.prepared, self.shared, seconds)


def compile_unit(job: CompileJob) -> Unit:
    """Compile a unit of a program of groups to machine code. Raises ScheduleError for a script that does not apply,
    LoweringError for an op without a native form, and TargetError if LLVM refuses the code."""
    return lower_unit(job).compiled()


def lower_unit(job: CompileJob) -> LoweredUnit:
    """Lower a unit of a program of groups to LLVM IR. Raises ScheduleError for a script that does not apply, and
    LoweringError for an op without a native form."""
    start = perf_counter()
    with paused():
        parts, names = _parts(job)
        main, shared = overwriting(parts.main, names, job.key.shared)
        parts = replace(parts, main=main)
        return _lowered_unit(parts, names, job.key.policy, job.key.threads, job.symbol, shared, start)


def functions_of(job: CompileJob) -> list[FuncOp]:
    """The scheduled loops of a unit, ready to compile: the preparation, and the function of each call."""
    parts, names = _parts(job)
    return replace(parts, main=overwriting(parts.main, names, job.key.shared)[0]).functions()


def loops_of(job: CompileJob) -> Program:
    """The scheduled loops of a unit, of its function under the unit's name."""
    return replace(job.tree or _replayed(job), name=job.name, constants=(), values=())


def _parts(job: CompileJob) -> tuple[SplitProgram, list[str]]:
    """The scheduled loops of a unit, split into preparation and call, and the names of its arguments as written."""
    program = loops_of(job)
    names = [buffer.name for buffer in program.arguments]
    return split_program(program, [names[position] for position in job.key.constants]), names


def compiled(parts: SplitProgram, names: Sequence[str], policy: str, threads: int) -> Unit:
    """Compile the scheduled loops of a function, split into preparation and call; `names` are those of its arguments as
    written. Raises LoweringError for an op without a native form, and TargetError if LLVM refuses the code."""
    return _lowered_unit(parts, names, policy, threads, None, (), perf_counter()).compiled()


def _lowered_unit(
    parts: SplitProgram,
    names: Sequence[str],
    policy: str,
    threads: int,
    symbol: str | None,
    shared: tuple[tuple[int, int], ...],
    start: float,
) -> LoweredUnit:
    """Lower the scheduled loops of a function to LLVM IR. names: of its arguments as written. symbol: of its machine
    code; None for the function's name. shared: pairs of positions of an input and an output that are one array. start:
    of its compilation, on perf_counter."""
    codes = [_code(function, parts.main.name, policy, threads, symbol) for function in parts.functions()]
    takes = _positions(parts.main.arguments[: len(parts.main.arguments) - parts.main.outputs], names)
    if parts.prepare is None:
        return LoweredUnit(codes[-1:], takes, (), (), shared, perf_counter() - start)
    arguments, count = parts.prepare.arguments, len(parts.prepared)
    prepares = _positions(arguments[:-count], names)
    return LoweredUnit(codes, takes, prepares, arguments[-count:], shared, perf_counter() - start)


def _positions(buffers: Sequence[Buffer], names: Sequence[str]) -> tuple[int, ...]:
    """The positions of buffers among the arguments as written, which have `names`; other buffers are skipped."""
    return tuple(names.index(buffer.name) for buffer in buffers if buffer.name in names)


def _replayed(job: CompileJob) -> Program:
    """The loops of a unit from its key: its text under its script, in the default order without one. Raises
    ScheduleError for a script that does not apply."""
    module = Parser(universe.context(), job.key.text, f"@{job.name}").parse_module()
    if job.key.script is None:
        return reorder_contiguous(program_of(find_function(module)))
    script = Parser(universe.context(), job.key.script, f"the script of @{job.name}").parse_module()
    return Schedule(program_of(find_function(module))).apply(script).program


def lowered(function: FuncOp, policy: str) -> ModuleOp:
    """Lower a detached loop function to the low level, with its buffers planned; return the new module that owns it."""
    module = ModuleOp([function])
    to_code(module, "loop", policy)
    return module


def _code(function: FuncOp, unit: str, policy: str, threads: int, symbol: str | None) -> LoweredCode:
    """Lower a detached loop function of a unit to LLVM IR; `symbol` replaces the name of the unit in the function's
    symbol. None keeps the name, and checks that callers with numpy arrays can pass the arguments."""
    module = lowered(function, policy)
    low = find_function(module)
    name = low.sym_name.data
    if symbol is None:
        return _checked(module, None, policy, threads)
    low.properties["sym_name"] = StringAttr(symbol + name.removeprefix(unit))
    return replace(_native(module, None, policy, threads), name=name)


def code_of(module: ModuleOp, name: str | None, policy: str, threads: int) -> NativeCode:
    """Compile the function `name` (None: the only public one) of a low-level module with planned buffers, and check
    that callers with numpy arrays can pass its arguments. Raises LoweringError for ops without a native form,
    TargetError for argument types that numpy lacks and written inputs."""
    code = _checked(module, name, policy, threads)
    return code.with_object(object_code(code.text, host()))


def _checked(module: ModuleOp, name: str | None, policy: str, threads: int) -> LoweredCode:
    code = _native(module, name, policy, threads)
    check_outputs(find_function(module, name), code.interface)
    return code


def _native(module: ModuleOp, name: str | None, policy: str, threads: int) -> LoweredCode:
    text = emit(module, host())
    signature = interface(module, name, threads)
    return LoweredCode(signature.name, signature, text, policy, uses_tiles(module))
