"""The time of a program by the parts of the user's model: modules, nodes and lines of source."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from math import prod
from pathlib import Path
from statistics import median

import numpy as np
from xdsl.dialects.builtin import f32, f64

from compiler.alternatives import Conditions
from compiler.analysis.cost import total_flops
from compiler.autotune.measure.network import random_weights
from compiler.autotune.measure.turns import ProfiledProgram, RunTimes
from compiler.driver.building import Selection, build_scheduled, checked_error, chosen_partition
from compiler.driver.choice.mode import schedule_mode
from compiler.driver.choice.preferred import scheduled_seconds
from compiler.driver.parts.groups import Group, GroupedProgram, te_module
from compiler.driver.parts.partition import Alternatives, Partition, alternatives
from compiler.driver.units.pool import Team
from compiler.driver.units.unit import Scheduled
from compiler.pipeline.models import program_and_constants
from compiler.program.tree import Program
from compiler.support.errors import InputError
from compiler.support.origins import SourceOrigin, origins
from compiler.support.text import unknown
from compiler.support.validation import integer
from compiler.targets.arguments import Argument
from compiler.targets.cpu.ceilings import MAX_SECONDS, Arithmetic, Bandwidth
from compiler.targets.cpu.openmp import thread_count, usable_threads
from compiler.types.elements import element_bytes
from compiler.types.machines import host

RUNS = 15
"""The number of runs of a program, see `usual_seconds`."""


@dataclass(frozen=True)
class Rates:
    """The measured ceilings of the machine, of all threads together: operations per second of f32 FMA in registers, and
    bytes per second of a triad in memory."""

    flops: float
    bytes: float


@dataclass(frozen=True)
class WorkBound:
    """The least seconds of a call by a ceiling: its arguments, each moved once, at the rate of memory, or its
    operations at the rate of arithmetic, whichever takes longer. resource: `memory` or `arithmetic`."""

    seconds: float
    resource: str


@dataclass(frozen=True)
class TimedCall:
    """A call of a group in a run. origins: what it computes, that with the most operations first. seconds: those of
    `usual_seconds`; an approximation from its work if nothing was run. bound: None if nothing was run, for a call of no
    group, and without bytes of arguments; 0 s for a call under a guard, which may be skipped."""

    group: str
    origins: tuple[SourceOrigin, ...]
    seconds: float
    bound: WorkBound | None

    @property
    def factor(self) -> float | None:
        """The seconds over those of the bound; below 1 if operands were in caches. None without a bound."""
        return None if self.bound is None or not self.bound.seconds else self.seconds / self.bound.seconds

    @property
    def excess(self) -> float:
        """The seconds above the bound, which a better schedule could win at most; all seconds without a bound."""
        return max(0.0, self.seconds - (0.0 if self.bound is None else self.bound.seconds))


@dataclass(frozen=True)
class SourceTime:
    """The calls whose most operations come from one part of the model, `origin`.

    also: the other parts that these calls compute in the same loops. calls: in the order of a run.
    """

    origin: SourceOrigin
    also: tuple[SourceOrigin, ...]
    calls: tuple[TimedCall, ...]

    @property
    def groups(self) -> tuple[str, ...]:
        """The names of the groups that are called, each once."""
        return tuple(dict.fromkeys(call.group for call in self.calls))

    @cached_property
    def slowest(self) -> TimedCall:
        """The call with most seconds above its bound."""
        return max(self.calls, key=lambda call: (call.excess, call.seconds))

    @cached_property
    def seconds(self) -> float:
        """The seconds of all calls in a run."""
        return sum(call.seconds for call in self.calls)

    @cached_property
    def bound(self) -> WorkBound | None:
        """The bounds of all calls together, with the resource of the longest; None if one is unknown."""
        bounds = [call.bound for call in self.calls if call.bound is not None]
        if len(bounds) < len(self.calls):
            return None
        longest = max(bounds, key=lambda bound: bound.seconds)
        return WorkBound(sum(bound.seconds for bound in bounds), longest.resource)

    @property
    def factor(self) -> float | None:
        """The seconds over those of the bound; below 1 if operands were in caches. None without a bound above 0."""
        return None if self.bound is None or not self.bound.seconds else self.seconds / self.bound.seconds

    @property
    def excess(self) -> float:
        """The seconds of the calls above their bounds, which better schedules could win at most."""
        return sum(call.excess for call in self.calls)


@dataclass(frozen=True)
class SourceTable:
    """The parts of a model by the seconds that they could win, most first.

    program: the groups. scheduled: their schedules by name; none if nothing was run, except as written. calls: in the
    order of a run. seconds: of a run of the whole; None if nothing was run, and then the times of calls are
    approximations. rates: None likewise. build: builds the program under other schedules of its groups, ready to time.
    """

    program: GroupedProgram
    scheduled: Mapping[str, Scheduled]
    policy: str
    threads: int
    calls: tuple[TimedCall, ...]
    seconds: float | None
    rates: Rates | None
    build: Callable[[Mapping[str, Scheduled]], ProfiledProgram]

    @cached_property
    def rows(self) -> tuple[SourceTime, ...]:
        """The parts of the model."""
        return _rows(self.calls)

    def group(self, name: str) -> Group:
        """The group of a name. Raises InputError for an unknown one."""
        return self.program.group(name)

    def of_line(self, line: str) -> tuple[SourceTime, ...]:
        """The rows with a part on a line of source, `model.py:12`, the file by its name or the end of its path. Raises
        InputError for text that is no line, and for a line without such parts."""
        file, _, number = line.rpartition(":")
        if not file or not number.isdecimal():
            raise InputError(f"'{line}' is no line of source, such as model.py:12")
        rows = tuple(row for row in self.rows if any(_is_at(o, file, int(number)) for o in _parts(row)))
        if not rows:
            places = {(o.file, o.line): o.place for row in self.rows for o in _parts(row) if o.place}
            lines = [places[place] for place in sorted(places)]
            raise InputError(f"{unknown('line', line, lines)} ({_listed('lines', lines)})")
        return rows

    def of_name(self, name: str) -> tuple[SourceTime, ...]:
        """The rows with a module or node of a name, or below a module of the name. Raises InputError for others."""
        rows = tuple(row for row in self.rows if name and any(f"{o.name}.".startswith(f"{name}.") for o in _parts(row)))
        if not rows:
            names = sorted({o.name for row in self.rows for o in _parts(row) if o.name})
            raise InputError(f"{unknown('module or node', name, names)} ({_listed('names', names)})")
        return rows


def _parts(row: SourceTime) -> tuple[SourceOrigin, ...]:
    return (row.origin, *row.also)


def _listed(what: str, names: Sequence[str], most: int = 8) -> str:
    """Return the first `most` of names in a phrase, or a sentence that there are none."""
    if not names:
        return f"no part of the program has {what}"
    rest = f" and {len(names) - most} others" if len(names) > most else ""
    return f"there are {', '.join(names[:most])}{rest}"


def _is_at(origin: SourceOrigin, file: str, line: int) -> bool:
    path = Path(origin.file)
    return bool(origin.file) and origin.line == line and path.parts[-len(Path(file).parts) :] == Path(file).parts


def source_table(
    x: object,
    threads: int | None = None,
    policy: str = "contract",
    schedule: object = None,
    error: float | None = None,
    runs: int = RUNS,
    constants: Sequence[str] = (),
) -> SourceTable:
    """Build a te program or a model as `build` does with these arguments, run it `runs` times on random inputs, and
    return the time of its calls by the parts of the model. With `runs` 0 nothing is built or run, and times are
    approximations. constants: the names of constant inputs, beside those of a model, whose elements are random. Raises
    InputError for a program below te, for a script and for a wrong `runs`, and the errors of `build`."""
    runs = integer("runs", runs, 0)
    function, known = program_and_constants(x, None)
    known = dict(known or {})
    if te_module(function) is None:
        raise InputError("a program below te has no parts of a model: explain its loops")
    way, count = schedule_mode(schedule), usable_threads(thread_count(threads))
    if not (way in ("auto", "written") or isinstance(way, Path)):
        raise InputError("the parts of a model are explained under schedules by group: auto, written or a database")
    offers = alternatives(
        function,
        tuple({**known, **dict.fromkeys(constants)}),
        conditions=Conditions(host(), policy, error=checked_error(error)),
    )
    database = way if isinstance(way, Path) else None
    chosen = offers.preferred if database is None else chosen_partition(offers, database, count, policy)
    program = _in_groups(chosen, offers)
    parts = {part.name: part for part in Partition(program).parts(count, policy)}
    with Team() as team:
        selection = Selection(Partition(program), parts, database)
        scheduled = selection.as_written("") if way == "written" else dict(selection.sources(team)) if runs else {}
    arrays = {**random_weights(_unknown_constants(program, known)), **known}

    def build(sources: Mapping[str, Scheduled]) -> ProfiledProgram:
        kernel = build_scheduled(Partition(program), function, sources, count, policy, arrays or None, profiled=True)
        return ProfiledProgram(kernel, len(program.constant_split.main.calls))

    table = SourceTable(program, scheduled, policy, count, (), None, None, build)
    if not runs:
        return replace(table, calls=_calls(table, [], None))
    profiled = build(scheduled)
    times = [profiled.run() for _ in range(runs + 1)][1:]
    rates = _measured_rates(count)
    whole = median(run.whole for run in times)
    return replace(table, calls=_calls(table, times, rates), seconds=whole, rates=rates)


def _in_groups(chosen: Partition, offers: Alternatives) -> GroupedProgram:
    """The groups of a partition; of a program of a single group that group, called by a main. Raises InputError for a
    program without computes."""
    program = chosen.grouped or offers.program
    if program is None:
        raise InputError("the program has no computes")
    return program


def _unknown_constants(program: GroupedProgram, known: Mapping[str, object]) -> list[Argument]:
    """The constant inputs of a program without an array in `known`."""
    constants = [program.arguments[n] for n in program.constants]
    return [argument for argument in constants if argument.name not in known]


def _calls(table: SourceTable, times: Sequence[RunTimes], rates: Rates | None) -> tuple[TimedCall, ...]:
    """The calls of a run in order, with the `usual_seconds` of `times`, or approximate seconds without any."""
    groups = {group.name: group.tree for group in table.program.groups}
    usual = usual_seconds(times)
    calls: list[TimedCall] = []
    for number, call in enumerate(table.program.constant_split.main.calls):
        tree = groups.get(call.callee)
        approximate = 0.0 if tree is None else scheduled_seconds(tree)
        seconds = usual[number] if times else approximate
        bound = None if tree is None or rates is None else bound_of(tree, rates)
        if call.guarded is not None and rates is not None:
            bound = WorkBound(0.0, "memory")  # skipped while its other form may be used
        calls.append(TimedCall(call.callee, origins(call.location) or (SourceOrigin(),), seconds, bound))
    return tuple(calls)


def usual_seconds(times: Sequence[RunTimes]) -> list[float]:
    """The seconds of each call: the lower quartile over the runs, since others lengthen calls and nothing shortens
    them. On a busy machine most runs are preempted: the seconds are then scaled to add up to the time that the thread
    was present in a run. Empty without runs."""
    if not times:
        return []
    calls = np.quantile([run.calls for run in times], 0.25, axis=0)
    total, present = float(calls.sum()), median(run.whole for run in times)
    return [float(seconds) * min(1.0, present / total if total else 1.0) for seconds in calls]


def bound_of(program: Program, rates: Rates) -> WorkBound | None:
    """The bound of a call by the rates of the machine; None if its arguments have no bytes. Operations count if all
    arguments are f32, or f64 at half the rate of f32: the rates of other elements are not measured."""
    moved = sum(prod(buffer.shape) * element_bytes(buffer.element) for buffer in program.arguments)
    elements = {buffer.element for buffer in program.arguments}
    slower = 1 if elements == {f32} else 2 if elements == {f64} else None
    seconds = {"memory": moved / rates.bytes}
    if slower is not None:
        seconds["arithmetic"] = slower * total_flops(program, program.body) / rates.flops
    resource = max(seconds, key=lambda name: seconds[name])
    return WorkBound(seconds[resource], resource) if moved else None


def _rows(calls: Sequence[TimedCall]) -> tuple[SourceTime, ...]:
    """Group calls by their first origin; the parts with the most seconds above their bounds come first."""
    by_origin: dict[SourceOrigin, list[TimedCall]] = {}
    for call in calls:
        by_origin.setdefault(call.origins[0], []).append(call)
    rows = [
        SourceTime(origin, tuple(dict.fromkeys(o for c in called for o in c.origins if o != origin)), tuple(called))
        for origin, called in by_origin.items()
    ]
    return tuple(sorted(rows, key=lambda row: -row.excess))


def _measured_rates(threads: int) -> Rates:
    probes = (Arithmetic(threads), Bandwidth(threads))
    readings = [max(probe.probe(MAX_SECONDS).rate for _ in range(2)) for probe in probes]
    return Rates(*readings)
