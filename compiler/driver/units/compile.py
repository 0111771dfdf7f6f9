"""One unit: te, loops, its schedule, the part that is prepared, low, LLVM, object code."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from hashlib import sha256
from time import perf_counter

from xdsl.dialects.builtin import ModuleOp, StringAttr
from xdsl.dialects.func import FuncOp

from compiler import universe
from compiler.analysis.in_place import in_place, may_overwrite
from compiler.dialects.functions import find_function
from compiler.dialects.parser import Parser
from compiler.driver.units.unit import Code, Unit, UnitKey
from compiler.lowering.low_to_llvm import emit
from compiler.lowering.te_to_loop import program_of
from compiler.passes.reorder_contiguous import reordered
from compiler.passes.split_constants import SplitProgram, split_program
from compiler.pipeline.passes import to_code
from compiler.program.tree import Buffer, Program
from compiler.schedule import Schedule
from compiler.support.gc import paused
from compiler.targets.cpu.compile import ObjectCode, ObjectCodes, object_code, object_codes
from compiler.targets.cpu.kernel import Interface
from compiler.targets.cpu.load import check_outputs, interface
from compiler.targets.cpu.tiles import uses_tiles
from compiler.types.machines import host

UNIT = "unit"
"""The name that all functions have in the text of a key, and what the symbols of their machine code begin with."""


@dataclass(frozen=True)
class CompileJob:
    """A unit to be compiled, the name of its function in the program, and its loops, where they are at hand: else those
    that its script makes of the text of the key."""

    key: UnitKey
    name: str
    tree: Program | None = field(default=None, compare=False, repr=False)

    @property
    def symbol(self) -> str:
        """The symbol of its function, whatever its name: programs that call it by other names have the same machine
        code."""
        return f"{UNIT}.{sha256(repr(self.key).encode()).hexdigest()[:32]}"


def key_text(function: FuncOp) -> str:
    """The text of a te function under the name that all share."""
    alone = function.clone()
    alone.properties["sym_name"] = StringAttr(UNIT)
    alone.properties.pop("sym_visibility", None)
    return str(ModuleOp([alone]))


@dataclass(frozen=True)
class LoweredCode:
    """One native function as LLVM IR text, and what else its `Code` has."""

    name: str
    interface: Interface
    text: str
    policy: str
    tiles: bool

    def with_object(self, code: ObjectCode) -> Code:
        """The function with its machine code."""
        return Code(self.name, self.interface, code, self.policy, self.tiles)


@dataclass(frozen=True)
class LoweredUnit:
    """A unit as LLVM IR: the preparation, if there is one, and the function of each call; the rest is as in `Unit`."""

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
        """The unit with its machine code. Raises TargetError for what LLVM refuses."""
        return self.with_objects(object_codes(self.texts, host()))

    def with_objects(self, codes: ObjectCodes) -> Unit:
        """The unit with the machine code of its texts."""
        *before, call = [code.with_object(part) for code, part in zip(self.codes, codes.objects, strict=True)]
        prepare, seconds = before[0] if before else None, self.seconds + codes.seconds
        return Unit(call, self.takes, prepare, self.prepares, self.prepared, self.shared, seconds)


def compile_unit(job: CompileJob) -> Unit:
    """Compile a unit of a program of groups. Raises what `lower_unit` does."""
    return lower_unit(job).compiled()


def lower_unit(job: CompileJob) -> LoweredUnit:
    """Lower a unit of a program of groups to LLVM IR. Raises what the lowerings do, and ScheduleError for a script that
    does not apply."""
    start = perf_counter()
    with paused():
        parts, names = _parts(job)
        parts, shared = _sharing(parts, names, job.key.shared)
        return _lowered_unit(parts, names, job.key.policy, job.key.threads, job.symbol, shared, start)


def functions_of(job: CompileJob) -> list[FuncOp]:
    """The scheduled loops of a unit, ready to compile: the preparation, and the function of each call."""
    parts, names = _parts(job)
    return _sharing(parts, names, job.key.shared)[0].written()


def _parts(job: CompileJob) -> tuple[SplitProgram, list[str]]:
    """What a unit prepares and what each call of it runs, and the names of its arguments as the function is written."""
    program = replace(job.tree or _replayed(job), name=job.name, constants=(), values=())
    names = [buffer.name for buffer in program.arguments]
    return split_program(program, [names[position] for position in job.key.constants]), names


def compiled(parts: SplitProgram, names: Sequence[str], policy: str, threads: int) -> Unit:
    """Compile the scheduled loops of a function whose arguments have these names, what is prepared apart. Raises what
    the lowerings do."""
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
    """Lower the scheduled loops of a function whose arguments have these names.

    `symbol` is that of its machine code, where that has another name; `shared` are the inputs and outputs that are one
    array; `start` is when that began, on the clock perf_counter.
    """
    codes = [_code(function, parts.main.name, policy, threads, symbol) for function in parts.written()]
    takes = _positions(parts.main.arguments[: len(parts.main.arguments) - parts.main.outputs], names)
    if parts.prepare is None:
        return LoweredUnit(codes[-1:], takes, (), (), shared, perf_counter() - start)
    arguments, count = parts.prepare.arguments, len(parts.prepared)
    prepares = _positions(arguments[:-count], names)
    return LoweredUnit(codes, takes, prepares, arguments[-count:], shared, perf_counter() - start)


def _positions(buffers: Sequence[Buffer], names: Sequence[str]) -> tuple[int, ...]:
    """Where the inputs among some buffers stand in the function as it was written."""
    return tuple(names.index(buffer.name) for buffer in buffers if buffer.name in names)


def _sharing(
    parts: SplitProgram, names: Sequence[str], wished: Sequence[tuple[int, int]]
) -> tuple[SplitProgram, tuple[tuple[int, int], ...]]:
    """The parts whose function of each call writes outputs where inputs stand, where its loops allow it; which these
    are."""
    program, shared = parts.main, list[tuple[int, int]]()
    first = len(names) - program.outputs
    for source, target in wished:
        free = all(source != i and target != j for i, j in shared)
        if free and may_overwrite(program, names[source], names[first + target]):
            program = in_place(program, names[source], names[first + target])
            shared.append((source, target))
    return replace(parts, main=program), tuple(shared)


def _replayed(job: CompileJob) -> Program:
    """The loops of a unit whose tree is not at hand, under its script, else in the default order. Raises ScheduleError
    for a script that does not apply."""
    module = Parser(universe.context(), job.key.text, f"@{job.name}").parse_module()
    if job.key.script is None:
        return reordered(program_of(find_function(module)))
    script = Parser(universe.context(), job.key.script, f"the script of @{job.name}").parse_module()
    return Schedule(program_of(find_function(module))).apply(script).program


def lowered(function: FuncOp, policy: str) -> ModuleOp:
    """A loop function at the low level, its buffers planned."""
    module = ModuleOp([function])
    to_code(module, "loop", policy)
    return module


def _code(function: FuncOp, unit: str, policy: str, threads: int, symbol: str | None) -> LoweredCode:
    """The native function of a loop function of a unit; `symbol` stands for the name of the unit."""
    module = lowered(function, policy)
    low = find_function(module)
    name = low.sym_name.data
    if symbol is None:
        return _checked(module, None, policy, threads)
    low.properties["sym_name"] = StringAttr(symbol + name.removeprefix(unit))
    return replace(_native(module, None, policy, threads), name=name)


def code_of(module: ModuleOp, name: str | None, policy: str, threads: int) -> Code:
    """The function of a low-level module, its buffers planned, for callers that give arrays. Raises LoweringError for
    what has no native form, TargetError for arguments that numpy lacks, and for inputs that are written."""
    code = _checked(module, name, policy, threads)
    return code.with_object(object_code(code.text, host()))


def _checked(module: ModuleOp, name: str | None, policy: str, threads: int) -> LoweredCode:
    code = _native(module, name, policy, threads)
    check_outputs(find_function(module, name), code.interface)
    return code


def _native(module: ModuleOp, name: str | None, policy: str, threads: int) -> LoweredCode:
    text = emit(module, host())
    face = interface(module, name, threads)
    return LoweredCode(face.name, face, text, policy, uses_tiles(module))
