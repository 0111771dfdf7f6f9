"""`build`: from any level to a callable kernel, te programs under good schedules."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from functools import cache, partial
from hashlib import sha256
from pathlib import Path
from reprlib import repr as short
from typing import Any, Literal, overload

from xdsl.dialects.builtin import ModuleOp
from xdsl.dialects.transform import NamedSequenceOp

from compiler import pipeline
from compiler.alternatives import Conditions
from compiler.analysis.verify.prove import verify_schedule
from compiler.database.record import Record
from compiler.database.replay import replay
from compiler.database.store import Database
from compiler.dialects.functions import find_function, is_main
from compiler.driver import kernels
from compiler.driver.choice.mode import WRITTEN, Way, way_of
from compiler.driver.choice.preferred import preferred_schedule
from compiler.driver.choice.verdict import judged, proved
from compiler.driver.inputs import named
from compiler.driver.parts.partition import Alternatives, Partition, Schedulable, Unscheduled, alternatives
from compiler.driver.parts.single import single_of
from compiler.driver.plan import BuildPlan
from compiler.driver.units.pool import Team
from compiler.driver.units.unit import WRITTEN as AS_WRITTEN
from compiler.driver.units.unit import Scheduled
from compiler.recipes.rules import RULES_OF
from compiler.schedule import Schedule
from compiler.space.derivation import in_default_order, preferred
from compiler.support.deferral import OnDemand
from compiler.support.errors import InputError, LoweringError, ScheduleError, TargetError
from compiler.support.gc import paused
from compiler.support.text import counted
from compiler.targets.cpu import Kernel, thread_count
from compiler.targets.cpu.facts import RUN_ONCE, RUN_SELDOM
from compiler.targets.cpu.openmp import usable
from compiler.targets.registry import target_named
from compiler.targets.target import AnyKernel, Target
from compiler.types.machines import host

UNUSED = "its record is not used"
"""The beginning of the verdict of a group whose record was refused; the reason follows."""
STAYS = "its record is not faster inside the program"
"""The end of the verdict of a group that was tuned and stays as it is without a database."""


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
) -> Any: ...  # what a target makes


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
    """Compile a te function, a Schedule, a module, MLIR text, or the path of a file, at whatever level it is; or a
    model: what a front end has imported, or the path of an ONNX file, whose weights are constants.

    `schedule` says how a te program's loops are scheduled. `auto`, the default: each group as the rules of the tuner
    prefer it, without a trial, where that is proved, or, where the proof is undecided, agrees with the written program
    in one run. The path of a database: each group in the form that the tuner found to be the fastest inside this
    program, and by its best record there; those without one as under `auto`, as those that the tuner found to be faster
    so inside it.
    `written`: as it is written. A script, as text, IR, the path of its file or a Schedule that has it: the whole
    program under that script, as `Schedule.apply` takes it; its names are the program's, such as `print_best` prints.
    None is what the environment variable STRATA_SCHEDULE says, else `auto`. A Schedule and programs at lower levels
    stay as they are. `Kernel.groups` says which it was, and the verdict.

    `policy` says which liberties floating-point operations have: strict, contract or fast (docs/policies.md). `name`
    picks one of several functions. `threads` is how many threads parallel loops run on where a call does not say: None
    is what OMP_NUM_THREADS says, or the cores that the process may use. `error`, max|y - exact| / max|y|, is that up to
    which laws give groups other forms (docs/alternatives.md): None permits the written form's probable one, 0 none.

    `constants` are inputs that never change, such as weights: arrays by the names of the inputs. The kernel takes the
    other inputs only. Nests at the top of the program that depend on constants alone, such as those that pack weights,
    run here, once; see the pass split-constants, and `Kernel.fixed`. Constants that the rest still reads are copied, so
    that what happens to the arrays later changes nothing. Other levels than te and loop have no constants.

    `target` is cpu, which TVM calls llvm, c for the text of C, or a GPU's (see `compiler.targets.registry`). For a GPU
    loops bound to blocks and threads become kernels; what is not bound runs on one thread. `arch` is what they are
    compiled for where no GPU says another; launches that it does not take are refused. `constants` and a database are
    the CPU's; `threads` are C's, too: how many its loops are cut for.

    Raises TargetError or InputError, also for constants that are no inputs, are written, or do not fit; and xDSL's
    ParseError and VerifyException for text that is not a valid program.
    """
    pipeline.check_words(target, policy, name, arch)
    chosen = target_named(target)
    way, error = way_of(schedule), accepted(error)
    x, constants = pipeline.apart(x, constants)
    given = None if constants is None else dict(named(constants))
    if isinstance(way, NamedSequenceOp):
        x, name, way = _scripted(pipeline.verified(x, policy, name), way), None, WRITTEN
    if way == WRITTEN or pipeline.level_of(module := pipeline.module_of(x)) != "te":
        return kernels.build_as_written(x, target, threads, policy, name, given, arch)
    if chosen.in_units and name is None and hasattr(x, "inputs"):
        return _for_cpu(x, threads, policy, given, way, error)
    verified = pipeline.verified(module, policy, name)
    if chosen.in_units:
        return _for_cpu(verified, threads, policy, given, way, error)
    if isinstance(way, Path) and not chosen.takes_databases:
        said = f"the database '{way}' is the CPU's, not {chosen.name}'s: apply_best of a task has a GPU's records"
        raise TargetError(said)
    return _by_rules(verified, chosen, threads, policy, given, arch)


def accepted(error: object) -> float | None:
    """A rounding error that a caller accepts, checked. Raises InputError."""
    if error is not None and not (isinstance(error, float | int) and 0 <= error < 1 and error is not False):
        raise InputError(f"error is {short(error)}, expected a number from 0 to 1: max|y - exact| / max|y|")
    return None if error is None else float(error)


def _scripted(module: ModuleOp, script: NamedSequenceOp) -> ModuleOp | Schedule:
    """The loops of a program under a script: as they are written, or where that does not apply, of its canonical form
    under the names of the program, which is what a task prints scripts of. Raises ScheduleError."""
    loops = pipeline.lower(module)
    try:
        return Schedule(loops).apply(script)
    except ScheduleError:
        single = single_of(module)
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
    way: Way,
    error: float | None,
) -> Kernel:
    count, conditions = usable(thread_count(threads)), Conditions(host(), policy, error=error)
    database = way if isinstance(way, Path) else None

    @cache
    def selection() -> Selection:
        offers = alternatives(x, list(constants or ()), conditions=conditions)
        program = offers.preferred if database is None else chosen_partition(offers, database, count, policy)
        return Selection(program, {part.name: part for part in program.parts(count, policy)})

    if database is not None:
        return by_records(x, selection, database, (error,), count, policy, constants)
    return _planned(x, selection, (way, error), count, policy, constants)


@dataclass(frozen=True, eq=False)
class Selection:
    """The parts of a program by their names, for each of which a schedule is selected: that of its best record in a
    database, if there is one that can be used, else the one that rules prefer."""

    program: Partition
    parts: Mapping[str, Schedulable]
    database: Path | None = None

    def sources(self, team: Team) -> Mapping[str, Scheduled]:
        """The schedules by the names of the parts, found by a team of processes; where it has none, and those of tasks,
        which do not pickle, when they are first looked up."""
        records = {} if self.database is None else records_of(self.parts, self.database, self.program)
        parts = [part for part in self.parts.values() if isinstance(part, Unscheduled)]
        if team.alone or len(parts) < len(self.parts):
            return OnDemand(self.parts, lambda name: source_of(self.parts[name], records.get(name)))
        calls = [partial(source_of, replace(part), records.get(part.name)) for part in parts]
        return dict(zip(self.parts, team.map(calls, [part.size for part in parts]), strict=True))

    def refused(self, reason: str) -> dict[str, Scheduled]:
        """All parts as they are written, for a reason."""
        return dict.fromkeys(self.parts, replace(AS_WRITTEN, verdict=reason))


def chosen_partition(offers: Alternatives, database: Path, threads: int, policy: str) -> Partition:
    """The partition of a program in the forms, its own and its groups', that a database says to be the fastest inside
    it, of those that are permitted."""
    with Database(database, create=False) as opened:
        offers = offers.chosen_program(opened, threads, policy)
        return offers.under(offers.chosen(opened, threads, policy))


def records_of(parts: Mapping[str, Schedulable], database: Path, program: Partition | None = None) -> dict[str, Record]:
    """The best records of parts in a database, by the names of the parts; what was chosen inside a program counts
    before them."""
    whole = "" if program is None else program.inside(parts)
    with Database(database, create=False) as opened:
        best = {name: opened.chosen(part.key, whole) for name, part in parts.items()}
    return {name: record for name, record in best.items() if record is not None}


def by_records(
    x: object,
    selection: Callable[[], Selection],
    database: Path,
    words: Sequence[object],
    threads: int,
    policy: str,
    constants: Mapping[str, object] | None,
) -> Kernel:
    """The kernel of a program by the records of its parts in a database; a part without one, or whose record is
    refused, is built as without a database, which a warning says."""
    words = ("records", _digest(database), *words)
    kernel = _planned(x, lambda: replace(selection(), database=database), words, threads, policy, constants)
    if (said := untuned(kernel)) is not None:
        warnings.warn(f"{kernel.name}: {said} ({database})", stacklevel=2)
    return kernel


def _planned(
    x: object,
    selection: Callable[[], Selection],
    words: Sequence[object],
    threads: int,
    policy: str,
    constants: Mapping[str, object] | None,
) -> Kernel:
    """The kernel of a program by selected schedules; as written where that is not compiled."""

    def plan(module: ModuleOp, team: Team) -> BuildPlan:
        selected = selection()
        return selected.program.plan(selected.sources(team), module)

    try:
        return kernels.build_by_team(x, plan, words, threads, policy, constants=constants)
    except (LoweringError, ScheduleError) as error:
        reason = f"not compiled: {error}"
    selected = selection()
    return built(selected.program, x, selected.refused(reason), threads, policy, constants)


def built(
    program: Partition,
    x: object,
    sources: Mapping[str, Scheduled],
    threads: int,
    policy: str,
    constants: Mapping[str, object] | None = None,
    profiled: bool = False,
) -> Kernel:
    """The kernel of a program under the schedules that `sources` have by the names of its parts; as written where they
    have none. Raises ScheduleError for a script that does not apply."""
    words, plan = ("sources", program.laws, sorted(sources.items())), partial(program.plan, sources)
    return kernels.build_planned(x, plan, words, threads, policy, constants=constants, profiled=profiled)


def untuned(kernel: Kernel) -> str | None:
    """A sentence about the groups of a kernel that are not built by a record; None if all are."""
    groups = [group for group in kernel.groups if group.verdict not in (RUN_ONCE, RUN_SELDOM)]
    others = [group for group in groups if group.source != "record" and STAYS not in group.verdict]
    refused = sum(UNUSED in group.verdict for group in others)
    counts = {"without a record": len(others) - refused, "with a record that is refused": refused}
    said = " and ".join(f"{count} of {counted(len(groups), 'group')} {what}" for what, count in counts.items() if count)
    return f"{said}, built as without a database" if said else None


def _digest(database: Path) -> str:
    """A digest of a database, with what SQLite has not moved into its file yet."""
    log = database.with_name(f"{database.name}-wal")
    return sha256(database.read_bytes() + (log.read_bytes() if log.exists() else b"")).hexdigest()


def source_of(task: Schedulable, record: Record | None = None) -> Scheduled:
    """The schedule of one program: of its record, if there is one that can be used, else the preferred one that can,
    else as written. The verdict says why a record is not used."""
    refusal = STAYS if record is not None and record.default else ""
    if record is not None and not record.default:
        try:
            source = _judged(task, "record", partial(replay, record))
        except ScheduleError as error:  # of an older version
            source = Scheduled(verdict=str(error))
        if source.script is not None:
            return source
        refusal = f"{UNUSED}: {source.verdict}"
    source = _judged(task, "model", partial(preferred_schedule, task))
    return replace(source, verdict="; ".join(filter(None, (source.verdict, refusal))))


def _judged(task: Schedulable, origin: str, make: Callable[[bool], Schedule | None]) -> Scheduled:
    """A schedule that may be used, else the program as written; with the verdict. `make` gives it with or without its
    steps judged, which they are only where it is not proved as a whole. Raises ScheduleError as `make` does."""
    schedule, proof = make(False), None
    if schedule is not None:
        proof = proved(schedule, task.schedule)
        schedule = schedule if proof else make(True)
    if schedule is None:
        return AS_WRITTEN
    usable, verdict = judged(schedule, task.schedule, task.policy, task.threads, proof)
    if not usable:
        return replace(AS_WRITTEN, verdict=verdict)
    return Scheduled(str(schedule.script), origin, f"{verdict}{_changes(schedule)}", schedule.program)


def _changes(schedule: Schedule) -> str:
    """A sentence about recipes that have changed since a script was written."""
    names = sorted({inclusion.recipe for inclusion in schedule.inclusions if inclusion.changed})
    return f"; changed since it was measured: {', '.join(names)}" if names else ""


def _by_rules(
    module: ModuleOp, target: Target, threads: int | None, policy: str, constants: object, arch: str
) -> AnyKernel:
    """The kernel of the schedule that a target's rules prefer; of one that is not proved, that of the default order."""
    target.check(threads, constants)
    here = target.at_hand()
    if is_main(find_function(module)):
        return kernels.build_as_written(module, target.name, policy=policy, arch=arch)  # which refuses it
    original = Schedule(pipeline.lower(module))
    machine = target.machine(here.arch if here else arch)
    schedule = preferred(original, RULES_OF[target.family], machine, target.threads(threads)).draft.schedule
    if not verify_schedule(schedule.program, original.program):
        schedule = in_default_order(original, machine)
    return kernels.build_as_written(schedule, target.name, policy=policy, arch=arch)
