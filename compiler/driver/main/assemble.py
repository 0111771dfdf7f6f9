"""`assembled`: compile main and its units to data; `build_program`: the kernel of such data."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence, Set
from dataclasses import dataclass, replace
from types import MappingProxyType

from xdsl.dialects.builtin import DenseArrayBase, IntegerAttr, ModuleOp, StringAttr, UnitAttr, i64
from xdsl.dialects.func import FuncOp

from compiler import universe
from compiler.certificate.text import digest_of
from compiler.dialects.calls import callees, is_main
from compiler.dialects.dominance import verify_module
from compiler.dialects.functions import find_function
from compiler.dialects.levels import require
from compiler.dialects.numbers import Array, array_of
from compiler.driver.evidence import group_certificate, version_text
from compiler.driver.main.constants import CallRewriter, with_steps
from compiler.driver.main.occurrences import ConstantSplit, Pairs, Units, coalesced, replaceable, split_constant_calls
from compiler.driver.main.slices import joins, sliced
from compiler.driver.main.texts import empty_function, lazy_text_by_digests, program_texts, te_text
from compiler.driver.units.compile import CompileJob
from compiler.driver.units.pool import Team, compiled
from compiler.driver.units.unit import WRITTEN, BuildSettings, NativeCode, Scheduled, Unit
from compiler.graph.canonical import canonical_hash
from compiler.graph.grouping.outline import LAW
from compiler.graph.main import BufferCall, Main, read_tensors, size, write_low
from compiler.lowering.low_to_llvm import emit
from compiler.lowering.low_to_llvm.marks import emit_profiled
from compiler.passes.plan_buffers import PlanBuffersPass
from compiler.program.write import memref_type
from compiler.support.errors import InputError
from compiler.targets.cpu.compile import object_code
from compiler.targets.cpu.kernel import Kernel, LevelText
from compiler.targets.cpu.linked import ConstantBlock, Linked, Preparation
from compiler.targets.cpu.load import interface
from compiler.targets.cpu.programs import load_linked
from compiler.targets.groups import RUN_AS_FALLBACK, RUN_ONCE, GroupFacts
from compiler.types.machines import host

MAIN_LEVEL = 1
"""LLVM's optimization level for main, which is only calls: higher levels gain nothing and take twice as long."""


@dataclass(frozen=True)
class Planned:
    """A program ready to link.

    main: with its calls, copies and constants as compiled. compiled: the unit of each job of `units`. rewriter: has the
    preparations, which fill the constants. temporaries_bytes: before they share memory. runs_once: the numbers of the
    units that run only as preparations. skipped: the numbers of the units that a guard may skip.
    """

    main: Main
    units: Units
    compiled: Sequence[Unit]
    rewriter: CallRewriter[NativeCode]
    temporaries_bytes: int
    runs_once: Set[int]
    skipped: Set[int]

    @property
    def codes(self) -> list[NativeCode]:
        """All native functions of the units, preparations included."""
        return [code for unit in self.compiled for code in unit.codes]


@dataclass(frozen=True)
class Assembled:
    """A linked program as data, and its texts by level, most of which are computed when they are requested."""

    linked: Linked
    texts: Mapping[str, LevelText]


def build_program(
    module: ModuleOp,
    sources: Mapping[str, Scheduled],
    settings: BuildSettings,
    constants: Mapping[str, Array] = MappingProxyType({}),
    name: str | None = None,
    hashes: Mapping[str, str] = MappingProxyType({}),
) -> Kernel:
    """Compile a te module whose function calls groups, and load its kernel. `constants` are contiguous arrays of the
    constant inputs, of the inputs' types, by name; the other arguments are those of `assembled`. Raises InputError if a
    called function calls others itself, ScheduleError for a script that does not apply, LoweringError or TargetError
    for code that cannot be compiled or loaded."""
    elements = read_tensors(find_function(module, name)).elements
    with Team() as team:
        assembled_program = assembled(module, sources, settings, team, tuple(constants), name, hashes)
    arrays = {name: array_of(dense) for name, dense in elements.items()} | dict(constants)
    return load_linked(assembled_program.linked, arrays, assembled_program.texts, settings.start)


def assembled(
    module: ModuleOp,
    sources: Mapping[str, Scheduled],
    settings: BuildSettings,
    team: Team,
    constants: Sequence[str] = (),
    name: str | None = None,
    hashes: Mapping[str, str] = MappingProxyType({}),
    laws: Sequence[str] = (),
    source: ModuleOp | None = None,
) -> Assembled:
    """Compile a te module whose function calls others, each different call once, by a team of processes.

    sources: the schedules of functions by name; missing ones are as written. constants: the names of the constant
    inputs. hashes: the known canonical hashes of functions by name. laws: those of the whole program. source: the
    program as given, by default `module`. Raises InputError if a called function calls others itself,
    ScheduleError for a script that does not apply, LoweringError or TargetError for code that cannot be compiled.
    """
    require(module, "te", "build")
    function = find_function(module, name)
    called_main = read_tensors(function)
    inner = [*called_main.elements, *constants]
    planned = _planned(called_main, callees(function), sources, settings, team, inner)
    main, machine, rewriter = planned.main, host(), planned.rewriter
    preparations = tuple(
        Preparation(before.code.interface, before.inputs, before.outputs) for before in rewriter.preparations
    )
    low = _module(main, planned.codes)
    text = emit_profiled(low, machine) if settings.profiled else emit(low, machine)
    main_code = object_code(text, machine, MAIN_LEVEL, [code.interface.name for code in planned.codes])
    hashes = {callee.sym_name.data: _hash(callee, hashes) for callee in callees(function)}
    linked = Linked(
        interface(low, main.name, settings.threads),
        machine,
        (main_code, *(code.object for code in planned.codes)),
        settings.policy,
        settings.threads,
        any(code.tiles for code in planned.codes),
        ((len(main.inputs), 0),) if main.constants else (),
        ConstantBlock(main.constants, main.constant_bytes, preparations, rewriter.prepared_buffers),
        tuple(_groups(planned, sources, hashes, {f.sym_name.data: _law(f) for f in callees(function)})),
        {job.name: unit.call.interface for job, unit in zip(planned.units.jobs, planned.compiled, strict=True)},
        planned.temporaries_bytes,
    )
    te, program = te_text(module), lazy_text_by_digests(module)
    given = program if source is None else lazy_text_by_digests(source)

    def certificate() -> str:
        rows = zip(planned.units.jobs, planned.compiled, planned.units.callees, linked.groups, strict=True)
        groups = [group_certificate(job, unit, sources.get(name, WRITTEN), facts) for job, unit, name, facts in rows]
        main_fields = {"main": str(low), "main_object": digest_of(main_code.code), "program": program()}
        return version_text(given(), groups, settings.policy, settings.threads, main_fields, laws)

    return Assembled(linked, program_texts(te, main, planned.units.jobs) | {"certificate": certificate})


def _planned(
    called_main: Main,
    called: Sequence[FuncOp],
    sources: Mapping[str, Scheduled],
    settings: BuildSettings,
    team: Team,
    constants: Collection[str],
) -> Planned:
    for callee in called:
        if is_main(callee):
            raise InputError(f"@{callee.sym_name.data} is called and calls others: calls are one level deep")
    parts = split_constant_calls(called_main, constants)
    if settings.slices:
        parts = replace(parts, main=sliced(parts.main, joins(called), called_main.buffers))
    units = Units(called_main.name, called, sources, settings)
    shared = replaceable(parts.main) if settings.in_place else {}
    calls: list[tuple[str, tuple[int, ...], Pairs]] = [(call.callee, (), ()) for call in parts.constant_calls]
    calls += [(call.callee, _constant(call, parts), shared.get(call.callee, ())) for call in parts.main.calls]
    numbers = list[int]()

    def jobs() -> Iterator[CompileJob]:
        for callee, constant, pairs in calls:
            first = len(units.jobs)
            numbers.append(units.number(callee, constant, pairs))
            yield from units.jobs[first:]

    units_done = compiled(jobs(), team)
    before, after = numbers[: len(parts.constant_calls)], numbers[len(parts.constant_calls) :]
    pairs = ((call, units_done[number].shared) for call, number in zip(parts.main.calls, after, strict=True))
    fixed = {*parts.main.bases, *(buffer.name for buffer in parts.main.results)}
    rewriter = CallRewriter[NativeCode](called_main, parts.main, coalesced(pairs, fixed))
    for call, number in zip(parts.constant_calls, before, strict=True):
        rewriter.run_before(call, units_done[number])
    unit_numbers = iter(after)
    steps = [
        rewriter.step(step, units_done[next(unit_numbers)]) if isinstance(step, BufferCall) else rewriter.copy(step)
        for step in parts.main.steps
    ]
    constant_buffers = {name: called_main.buffers[name] for name in constants}
    main = with_steps(parts.main, steps, constant_buffers | rewriter.prepared_buffers)
    temporaries_bytes = sum(map(size, parts.main.temporaries))
    skipped = {number for number, step in zip(after, parts.main.calls, strict=True) if step.guarded}
    return Planned(main, units, units_done, rewriter, temporaries_bytes, set(before) - set(after), skipped)


def _hash(callee: FuncOp, hashes: Mapping[str, str]) -> str:
    """The canonical hash of a function, computed if it is not among `hashes`."""
    return hashes.get(callee.sym_name.data) or canonical_hash(ModuleOp([callee.clone()]))


def _constant(call: BufferCall, parts: ConstantSplit) -> tuple[int, ...]:
    """The positions of the inputs of a call that are constant."""
    return tuple(n for n, name in enumerate(call.inputs) if name in parts.constants)


def _module(main: Main, codes: Sequence[NativeCode]) -> ModuleOp:
    """Lower main, with its temporaries planned, to a module with declarations of its callees by their symbols."""
    function, by_name = empty_function(main.name), {code.name: code for code in codes}
    called = {call.callee: call for call in main.calls}
    declarations = [_declaration(main, call, by_name[name]) for name, call in called.items()]
    steps = (
        replace(s, callee=by_name[s.callee].interface.name) if isinstance(s, BufferCall) else s for s in main.steps
    )
    write_low(function, replace(main, steps=tuple(steps)))
    module = ModuleOp([function, *declarations])
    PlanBuffersPass().apply(universe.context(), module)
    verify_module(module)
    return module


def _declaration(main: Main, call: BufferCall, code: NativeCode) -> FuncOp:
    """The declaration of a compiled function, with the types of one of its calls."""
    buffers = [main.buffers[name] for name in (*call.inputs, *call.outputs)]
    types = [memref_type(buffer.scalar, buffer.shape) for buffer in buffers]
    function, interface = FuncOp.external(code.interface.name, types, []), code.interface
    workspace = (interface.workspace.shared, interface.workspace.private)
    function.attributes["outputs"] = IntegerAttr(len(call.outputs), i64)
    function.attributes["workspace"] = DenseArrayBase.from_list(i64, workspace)
    if interface.threads is not None:
        function.attributes["parallel"] = UnitAttr()
    return function


def _law(function: FuncOp) -> str:
    """The name of the law that gave a function its form; empty for none."""
    law = function.attributes.get(LAW)
    return law.data if isinstance(law, StringAttr) else ""


def _groups(
    planned: Planned, sources: Mapping[str, Scheduled], hashes: Mapping[str, str], laws: Mapping[str, str]
) -> Iterator[GroupFacts]:
    units = planned.units
    rows = zip(units.jobs, units.callees, units.occurrences, planned.compiled, strict=True)
    for number, (job, callee, occurrences, unit) in enumerate(rows):
        source = sources.get(callee, WRITTEN)
        runs = RUN_ONCE if number in planned.runs_once else RUN_AS_FALLBACK if number in planned.skipped else ""
        verdict = source.verdict or runs
        law = laws[callee]
        yield GroupFacts(job.name, hashes[callee], occurrences, source.origin, verdict, unit.seconds, law)
