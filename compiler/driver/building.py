"""`build`: compile a program at any level to a callable kernel, te programs under good schedules."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from functools import cache, partial
from hashlib import sha256
from pathlib import Path
from reprlib import repr as short
from time import perf_counter
from typing import Any, Literal, NamedTuple, overload

from xdsl.dialects.builtin import ModuleOp
from xdsl.dialects.transform import NamedSequenceOp

from compiler.alternatives import Conditions
from compiler.database.record import Record
from compiler.database.replay import replay
from compiler.database.store import Database
from compiler.dialects.calls import callees, is_main
from compiler.dialects.functions import find_function
from compiler.driver import kernels
from compiler.driver.build_origin import BuildOrigin, held, labels_of
from compiler.driver.caching import BuildRequest, CompiledProgram
from compiler.driver.choice.mode import WRITTEN, ScheduleMode, schedule_mode
from compiler.driver.choice.preferred import preferred_schedule
from compiler.driver.choice.verdict import judged_verdict, proved
from compiler.driver.devices.function import usable_kernel
from compiler.driver.devices.program import build_joined, streamed_loops
from compiler.driver.inputs import checked_mapping, stating_constants
from compiler.driver.on_demand import OnDemand
from compiler.driver.parts.groups import GroupedProgram, grouped_program
from compiler.driver.parts.partition import Alternatives, Partition, Schedulable, Unscheduled, alternatives
from compiler.driver.parts.single import single_group
from compiler.driver.plan import BuildPlan
from compiler.driver.units.pool import Team
from compiler.driver.units.unit import WRITTEN as AS_WRITTEN
from compiler.driver.units.unit import BuildSettings, Scheduled
from compiler.frontends.model import Imported
from compiler.graph.grouping import with_casts
from compiler.pipeline.loops import lower
from compiler.pipeline.models import program_and_constants
from compiler.pipeline.source import check_words, level_of, module_of, verified_module
from compiler.schedule import Schedule
from compiler.support.errors import InputError, LoweringError, ScheduleError, TargetError
from compiler.support.gc import paused
from compiler.support.text import counted
from compiler.targets.cpu import Kernel, thread_count
from compiler.targets.cpu.openmp import usable_threads
from compiler.targets.groups import RUN_AS_FALLBACK, RUN_ONCE, GroupFacts
from compiler.targets.registry import target_named
from compiler.targets.target import AnyKernel, Target
from compiler.types.machines import host

UNUSED = "its record is not used"
"""The clause, in the verdict of a group, that its record was refused; the reason follows."""
STAYS = "its record is not faster inside the program"
"""The last clause of the verdict of a tuned group that keeps its default schedule."""


@overload
def build(
    x: object,
    target: Literal["cpu"] = ...,
    threads: int | None = ...,
    policy: str = ...,
    name: str | None = ...,
    constants: Mapping[str, object] | None = ...,
    *,
    schedule: object = ...,
    error: float | None = ...,
) -> Kernel: ...


@overload
def build(
    x: object,
    target: str,
    threads: int | None = ...,
    policy: str = ...,
    name: str | None = ...,
    constants: Mapping[str, object] | None = ...,
    arch: str = ...,
    schedule: object = ...,
    error: float | None = ...,
) -> Any: ...  # a kernel of the target


@paused()
def build(
    x: object,
    target: str = "cpu",
    threads: int | None = None,
    policy: str = "contract",
    name: str | None = None,
    constants: Mapping[str, object] | None = None,
    arch: str = "sm_80",
    schedule: object = None,
    error: float | None = None,
) -> Any:
    """Compile a te function, a Schedule, a module, MLIR text or the path of a file, at any level, to a kernel; or a
    model: the result of a front end, or the path of an ONNX file, whose weights are constants.

    `schedule` selects the schedule of a te program. `auto`, the default: each group as the tuner's rules prefer,
    without a trial, if that is proved or, with an undecided proof, agrees with the written program in one run; else as
    written. The path of a database: each group in the form and under the record that were fastest inside this program;
    as under `auto` without a record, or if that was faster. `written`: the loops as written. A script, as text, IR, the
    path of its file or a Schedule: the whole program under it, see `Schedule.apply`; its names are the program's, as
    `print_best` prints them. None: the value of the environment variable STRATA_SCHEDULE, else `auto`. A Schedule and
    programs at lower levels stay unchanged. `Kernel.groups` has the origins and the verdicts.

    `policy` is the freedom of floating-point code: strict, contract or fast (docs/policies.md). `name` picks one of
    several functions. `threads` is the number of threads of parallel loops, unless a call states one: None is the value
    of OMP_NUM_THREADS, else the cores that the process may use. `error`, max|y - exact| / max|y|, limits the rounding
    error of other forms by laws (docs/alternatives.md): None permits the probable error of the written form, 0 none.

    `constants` are arrays of constant inputs, such as weights, by name. The kernel takes the other inputs only. Nests
    at the top of the program that depend on constants alone, such as packing of weights, run here, once; see the pass
    split-constants, and `Kernel.fixed`. Other constants are copied. Programs below the loop level have no constants.

    `target` is cpu, which TVM calls llvm, c for the text of C, or a GPU's. On a GPU loops bound to blocks and threads
    become kernels, and other loops run on one thread. `arch` is the architecture to compile for if this machine has no
    GPU; launches beyond its limits are refused. A database is for the CPU only, `constants` also for CUDA, `threads`
    also for C.

    Raises TargetError or InputError, also for constants that are no inputs, that are written, or that do not fit;
    ScheduleError for a script that is malformed or does not apply, LoweringError for loops that the target cannot run;
    and xDSL's ParseError and VerifyException for text that is not a valid program.

    >>> A = te.placeholder((2,), name="A")
    >>> build(te.function("f", [A], 2.0 * A), threads=1)(np.ones(2, np.float32))
    array([2., 2.], dtype=float32)
    """
    check_words(target, policy, name, arch)
    chosen = target_named(target)
    if chosen.in_units:
        kernel = compile_program(x, threads, policy, name, constants, schedule, error).load()
        kernel.origin = _origin(x, threads, policy, name, constants, schedule, error)
        return kernel
    checked_error(error)
    x, name, way, arrays = _stated(x, policy, name, constants, schedule)
    if way == WRITTEN or level_of(module := module_of(x)) != "te":
        if arrays and chosen.program_kind is not None:
            x, arrays = stating_constants(x, verified_module(x, policy, name), arrays, name), None
        return kernels.build_as_written(x, target, threads, policy, name, arrays, arch)
    if isinstance(way, Path) and not chosen.takes_databases:
        sentence = f"the database '{way}' is the CPU's, not {chosen.name}'s: apply_best of a task has a GPU's records"
        raise TargetError(sentence)
    return _by_rules(x, verified_module(module, policy, name), chosen, threads, policy, arrays, arch)


def _origin(
    x: object,
    threads: int | None,
    policy: str,
    name: str | None,
    constants: Mapping[str, object] | None,
    schedule: object,
    error: float | None,
) -> BuildOrigin:
    """The arguments of a build, without the arrays of constants."""
    names = tuple(constants or ())
    if isinstance(x, Imported):
        return BuildOrigin(held(x.function), (*x.constants, *names), threads, policy, name, schedule, error)
    return BuildOrigin(held(x), names, threads, policy, name, schedule, error)


@paused()
def compile_program(
    x: object,
    threads: int | None = None,
    policy: str = "contract",
    name: str | None = None,
    constants: Mapping[str, object] | None = None,
    schedule: object = None,
    error: float | None = None,
) -> CompiledProgram:
    """Compile a program for the CPU to code that is not loaded; the arguments are those of `build`. Raises the errors
    of `build`."""
    check_words("cpu", policy, name, "sm_80")
    error = checked_error(error)
    x, name, way, arrays = _stated(x, policy, name, constants, schedule)
    if way == WRITTEN or level_of(module := module_of(x)) != "te":
        return kernels.compile_as_written(x, threads, policy, name, arrays)
    if name is None and hasattr(x, "inputs"):
        return _for_cpu(x, threads, policy, arrays, way, error)
    return _for_cpu(verified_module(module, policy, name), threads, policy, arrays, way, error)


class _Stated(NamedTuple):
    """The arguments of a build: the program, with its script applied if one is stated; the name of its function; `way`,
    the mode of its schedule; and the arrays of its constants."""

    program: object
    name: str | None
    way: ScheduleMode
    constants: dict[str, object] | None


def _stated(
    x: object, policy: str, name: str | None, constants: Mapping[str, object] | None, schedule: object
) -> _Stated:
    way = schedule_mode(schedule)
    x, constants = program_and_constants(x, constants)
    arrays = None if constants is None else dict(checked_mapping(constants))
    if isinstance(way, NamedSequenceOp):
        return _Stated(_scripted(verified_module(x, policy, name), way), None, WRITTEN, arrays)
    return _Stated(x, name, way, arrays)


def checked_error(error: object) -> float | None:
    """Return a caller's rounding error as a float, None for None. Raises InputError unless it is a number in [0, 1)."""
    if error is not None and not (isinstance(error, float | int) and 0 <= error < 1 and error is not False):
        raise InputError(f"error is {short(error)}, expected a number from 0 to 1: max|y - exact| / max|y|")
    return None if error is None else float(error)


def _scripted(module: ModuleOp, script: NamedSequenceOp) -> ModuleOp | Schedule:
    """Return the Schedule of a script on the loops of a program as written or, if that fails, on its canonical form
    under the program's names, to which the scripts that a task prints apply. Raises the first ScheduleError if both
    fail."""
    loops = lower(module)
    try:
        return Schedule(loops).apply(script)
    except ScheduleError:
        single = single_group(module)
        if single is None:
            raise
        with suppress(ScheduleError):
            return Schedule(single.unscheduled).apply(script)
        raise


def _for_cpu(
    x: object,
    threads: int | None,
    policy: str,
    constants: Mapping[str, object] | None,
    way: ScheduleMode,
    error: float | None,
) -> CompiledProgram:
    count, conditions = usable_threads(thread_count(threads)), Conditions(host(), policy, error=error)
    database = way if isinstance(way, Path) else None

    @cache
    def selection() -> Selection:
        offers = alternatives(x, list(constants or ()), conditions=conditions)
        program = offers.preferred if database is None else chosen_partition(offers, database, count, policy)
        return Selection(program, {part.name: part for part in program.parts(count, policy)})

    if database is not None:
        return compile_by_records(x, selection, database, (error,), count, policy, constants)
    return _planned(x, selection, (way, error), count, policy, constants)


@dataclass(frozen=True, eq=False)
class Selection:
    """A partition of a program, and its parts by name. Each part is scheduled by its record in `database` if that is
    usable, else by the rules; without a database, by the rules."""

    program: Partition
    parts: Mapping[str, Schedulable]
    database: Path | None = None

    def sources(self, team: Team) -> Mapping[str, Scheduled]:
        """The schedules by the names of the parts. A team of several processes computes them in parallel. Without such
        a team, or if a part is a SearchTask, which does not pickle, each is computed on its first look-up. Raises
        InputError for a database that cannot be opened."""
        records = {} if self.database is None else records_of(self.parts, self.database, self.program)
        parts = [part for part in self.parts.values() if isinstance(part, Unscheduled)]
        if team.is_single or len(parts) < len(self.parts):
            return OnDemand(self.parts, lambda name: source_of(self.parts[name], records.get(name)))
        calls = [partial(source_of, replace(part), records.get(part.name)) for part in parts]
        return dict(zip(self.parts, team.map(calls, [part.size for part in parts]), strict=True))

    def as_written(self, reason: str) -> dict[str, Scheduled]:
        """The schedules of all parts as written, by name, with a reason as the verdict."""
        return dict.fromkeys(self.parts, replace(AS_WRITTEN, verdict=reason))


def chosen_partition(offers: Alternatives, database: Path, threads: int, policy: str) -> Partition:
    """The partition of a program in the forms, of the whole and of groups, that a database has chosen of `offers` for
    the threads and policy; else in the preferred forms. Raises InputError for a database that cannot be opened."""
    with Database(database, create=False) as opened:
        offers = offers.chosen_program(opened, threads, policy)
        return offers.in_forms(offers.chosen(opened, threads, policy))


def records_of(parts: Mapping[str, Schedulable], database: Path, program: Partition | None = None) -> dict[str, Record]:
    """Map the name of each part with records to the one that a database chose inside `program`, else to the best;
    `program` None takes the best. Raises InputError for a database that cannot be opened."""
    program_key = "" if program is None else program.program_key(parts)
    with Database(database, create=False) as opened:
        best = {name: opened.chosen(part.key, program_key) for name, part in parts.items()}
    return {name: record for name, record in best.items() if record is not None}


def compile_by_records(
    x: object,
    selection: Callable[[], Selection],
    database: Path,
    words: Sequence[object],
    threads: int,
    policy: str,
    constants: Mapping[str, object] | None,
) -> CompiledProgram:
    """Compile a program for the CPU, its groups by their records in `database`; `x`, `threads`, `policy` and
    `constants` as in `build`. `selection` returns the groups, and is called only if the cache lacks the program. words:
    further parts of the cache's key. A group without a record, or whose record is refused, is built as without a
    database, and a warning counts such groups. A program that does not compile so is built as written."""
    words = ("records", _digest(database), *words)
    program = _planned(x, lambda: replace(selection(), database=database), words, threads, policy, constants)
    if (sentence := untuned_groups(program.linked.groups)) is not None:
        warnings.warn(f"{program.linked.interface.name}: {sentence} ({database})", stacklevel=2)
    return program


def _planned(
    x: object,
    selection: Callable[[], Selection],
    words: Sequence[object],
    threads: int,
    policy: str,
    constants: Mapping[str, object] | None,
) -> CompiledProgram:
    """Compile a program under selected schedules; if that fails with a LoweringError or ScheduleError, as written, with
    the reason as verdict. `selection` is called only if the cache lacks the program, and again after a failure. words:
    the part of the cache's key that tells selections apart. The other arguments are those of `build`."""

    def plan(module: ModuleOp, team: Team) -> BuildPlan:
        selected = selection()
        return selected.program.plan(selected.sources(team), module)

    try:
        program = kernels.compile_by_team(x, plan, words, threads, policy, constants=constants)
        return replace(program, labels=lambda: labels_of(selection().program.module))
    except (LoweringError, ScheduleError) as error:
        reason = f"not compiled: {error}"
    selected = selection()
    return _under(selected.program, x, selected.as_written(reason), threads, policy, constants)


def build_scheduled(
    program: Partition,
    x: object,
    sources: Mapping[str, Scheduled],
    threads: int,
    policy: str,
    constants: Mapping[str, object] | None = None,
    profiled: bool = False,
) -> Kernel:
    """Compile the program `x`, which `program` partitions, under the schedules `sources` by the names of its parts;
    missing ones are as written. constants: the arrays of constant inputs by name, as in `build`. `profiled` counts the
    ticks of each call. Raises ScheduleError for a script that does not apply, InputError for constants that are no
    inputs, TargetError for those that do not fit, LoweringError or TargetError for code that cannot be compiled or
    loaded."""
    return _under(program, x, sources, threads, policy, constants, profiled).load()


def _under(
    program: Partition,
    x: object,
    sources: Mapping[str, Scheduled],
    threads: int,
    policy: str,
    constants: Mapping[str, object] | None,
    profiled: bool = False,
) -> CompiledProgram:
    def plan(module: ModuleOp, team: Team) -> BuildPlan:
        return program.plan(sources, module)

    words = ("sources", program.laws, sorted(sources.items()))
    return kernels.compile_by_team(x, plan, words, threads, policy, constants=constants, profiled=profiled)


def untuned_groups(groups: Sequence[GroupFacts]) -> str | None:
    """A sentence that counts the groups of a program that lack a usable record; None if none does."""
    groups = [group for group in groups if group.verdict not in (RUN_ONCE, RUN_AS_FALLBACK)]
    default_groups = [group for group in groups if group.source != "record" and STAYS not in group.verdict]
    refused = sum(UNUSED in group.verdict for group in default_groups)
    counts = {"without a record": len(default_groups) - refused, "with a record that is refused": refused}
    text = " and ".join(f"{count} of {counted(len(groups), 'group')} {what}" for what, count in counts.items() if count)
    return f"{text}, built as without a database" if text else None


def _digest(database: Path) -> str:
    """A digest of a database file and of its write-ahead log."""
    log = database.with_name(f"{database.name}-wal")
    return sha256(database.read_bytes() + (log.read_bytes() if log.exists() else b"")).hexdigest()


def source_of(task: Schedulable, record: Record | None = None) -> Scheduled:
    """The schedule of one part: by its record if that may be used, else the rules' preferred one if that may be used,
    else as written. The verdict includes why a record is not used."""
    refusal = STAYS if record is not None and record.default else ""
    if record is not None and not record.default:
        try:
            source = _judged(task, "record", partial(replay, record))
        except ScheduleError as error:  # a record of an older version may not replay
            source = Scheduled(verdict=str(error))
        if source.script is not None:
            return source
        refusal = f"{UNUSED}: {source.verdict}"
    source = _judged(task, "model", partial(preferred_schedule, task))
    return replace(source, verdict="; ".join(filter(None, (source.verdict, refusal))))


def _judged(task: Schedulable, origin: str, make: Callable[[bool], Schedule | None]) -> Scheduled:
    """Judge the schedule that `make` returns, from the source `origin` (`record` or `model`). Return it with its
    verdict if it may be used, else the loops as written with the verdict. `make(False)` skips the legality checks of
    steps; if its schedule is not proved, `make(True)` repeats it with them. `make` returns None for the loops as
    written."""
    schedule, proof = make(False), None
    if schedule is not None:
        proof = proved(schedule, task.schedule)
        schedule = schedule if proof else make(True)
    if schedule is None:
        return AS_WRITTEN
    usable_threads, verdict = judged_verdict(schedule, task.schedule, task.policy, task.threads, proof)
    if not usable_threads:
        return replace(AS_WRITTEN, verdict=verdict)
    return Scheduled(str(schedule.script), origin, f"{verdict}{_changes(schedule)}", schedule.program)


def _changes(schedule: Schedule) -> str:
    """A clause that names the recipes changed since the schedule's script was recorded; empty without any."""
    names = sorted({inclusion.recipe for inclusion in schedule.inclusions if inclusion.changed})
    return f"; changed since it was measured: {', '.join(names)}" if names else ""


def _in_groups(module: ModuleOp, target: Target, policy: str, single: bool) -> GroupedProgram | None:
    """A program in groups for a target that joins kernels; None for one group, unless `single` or if the group has
    another form under the policy."""
    rules = with_casts()
    grouped = grouped_program(module, (), single=single, rules=rules)
    alone = grouped_program(module, (), single=True, rules=rules) if grouped is None else None
    if alone is None:
        return grouped
    has_form = any(streamed_loops(group, target.name, policy) is not None for group in callees(alone.function))
    return alone if has_form else None


def _by_rules(
    x: object,
    module: ModuleOp,
    target: Target,
    threads: int | None,
    policy: str,
    constants: Mapping[str, object] | None,
    arch: str,
) -> AnyKernel:
    """Compile the verified module of `x` under the schedules that a target's rules prefer, a program of groups group by
    group; see `usable_kernel`. `arch` is replaced by that of a device in this machine. Raises InputError for loops that
    the target cannot have, TargetError for threads or constants that it does not take, LoweringError and TargetError
    for a program that it cannot run."""
    target.check(threads, None if target.program_kind else constants)
    here = target.local_device()
    arch = here.arch if here else arch
    if target.program_kind is not None:
        grouped = _in_groups(module, target, policy, bool(constants))
        if grouped is not None:
            request = BuildRequest(x, module, None, constants, BuildSettings(policy, 1, perf_counter()))
            return build_joined(request, grouped, target, arch)
    if is_main(find_function(module)):
        return kernels.build_as_written(module, target.name, policy=policy, arch=arch)  # raises: calls are for CPUs

    def kernel(schedule: Schedule) -> AnyKernel:
        return kernels.build_as_written(schedule, target.name, policy=policy, arch=arch)

    machine = target.machine(arch)
    return usable_kernel(Schedule(lower(module)), target, machine, target.threads(threads), kernel).kernel
