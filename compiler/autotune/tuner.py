"""The tuner: proposals to outcomes to records, until the budget is spent; the leaders again, in turns, half-way and at
the end."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Generator, Iterator, Sequence
from contextlib import closing
from dataclasses import dataclass
from functools import partial
from math import exp
from statistics import median
from time import perf_counter
from typing import TYPE_CHECKING, TypeVar, cast
from uuid import uuid4

from compiler.autotune.budget import DESCENT, HALF, Budget
from compiler.autotune.deadline import TimeIsUp, until
from compiler.autotune.measure.measurer import Measurer
from compiler.autotune.options import TuningOptions
from compiler.autotune.search import Proposal, Search
from compiler.autotune.search.log import LogFile
from compiler.autotune.search.trials import Trials
from compiler.autotune.search.warm_start import SECONDS, warm_starts
from compiler.autotune.tell.facts import WRITTEN
from compiler.autotune.tell.progress import Progress
from compiler.database import Database, Key, Record
from compiler.database.outcome import Outcome, together
from compiler.database.schema import MEMORY
from compiler.driver.reference.subject import Subject
from compiler.space.candidates import Candidate, belongs, total
from compiler.space.sketch import Sketch
from compiler.space.space import SketchSpace
from compiler.support.errors import InputError, TargetError
from compiler.types.machines import Gpu, Machine
from compiler.types.processors import processors

if TYPE_CHECKING:
    from compiler.autotune.fleet.measurer import Fleet

LEADERS = 4
"""How many of the best are measured again, in turns."""
ROUNDS = 7
"""How often each of them takes its turn, at most, and twice as often where the machine is busy; once says nothing."""
NEAR = 1.5
"""Candidates slower than so many times the best are not measured again: noise cannot explain the gap."""
TELLS = 8
"""The fewest trials after which turns half-way tell something."""

Given = TypeVar("Given")


@dataclass(frozen=True)
class TuningProblem:
    """What a run tunes: a subject for the workers, the sketches of its space on a machine, and what its records say:
    the name of the task, its key and the text of its program; `written` is the script of the program as it is written,
    `notes` are sentences about its rules. `estimated` says that nothing can be measured."""

    name: str
    key: Key
    program: str
    machine: Machine | Gpu
    estimated: bool
    subject: Subject
    sketches: Callable[[], Sequence[Sketch]]
    written: Callable[[], str] = str
    notes: Callable[[], Sequence[str]] = tuple


def tune(task: TuningProblem, options: TuningOptions) -> Record | None:
    """Search until the budget is spent, and give the best record; see `SearchTask.tune`."""
    with Database(options.path or MEMORY) as database:
        search(task, options, database)
        return database.best(task.key)


def search(task: TuningProblem, options: TuningOptions, database: Database) -> bool:
    """Search until the budget is spent, and say whether nobody has interrupted it; what is measured is in the
    database."""
    budget = Budget(options)
    with Workers(options, task.machine) as workers, Run(task, options, database, budget, workers) as run:
        try:
            with until(lambda: budget.is_over):
                run.go()
        except KeyboardInterrupt:
            run.say("interrupted")
            return False
        except TimeIsUp:
            run.say("done" if run.progress.measured else run.why_nothing())
    return True


@dataclass(frozen=True)
class _Flight:
    """A turn that was begun: candidates, their scripts, the outcomes as they come, and when that was."""

    chosen: Sequence[Proposal]
    scripts: Sequence[str]
    outcomes: Generator[tuple[int, Outcome]]
    begun: float


class Workers:
    """The workers of a run, which turn from task to task; a context manager that ends them. They start when they are
    needed: where they cannot, TargetError. With a scheduler they are those of its cluster."""

    def __init__(self, options: TuningOptions, machine: Machine | Gpu) -> None:
        if options.scheduler is not None and not machine.in_clusters:
            raise InputError("a cluster measures for CPUs, not for GPUs")
        self._options, self._machine = options, machine
        self._measurer: Measurer | Fleet | None = None
        self._subject: Subject | None = None
        self._met: set[Subject] = set()

    def __enter__(self) -> Workers:
        return self

    def __exit__(self, *error: object) -> None:
        if self._measurer is not None:
            self._measurer.close()

    @property
    def batches(self) -> int:
        """How many batches may be in flight: one here; on a cluster one that ends, and those that keep its workers busy
        meanwhile."""
        places = 0 if self._measurer is None else self._measurer.places
        return 1 + -(-2 * places // self._options.batch)

    @property
    def notes(self) -> list[str]:
        """What is to be said of the workers."""
        return [] if self._measurer is None else self._measurer.notes

    def on(self, subject: Subject, meet: Callable[[Measurer | Fleet], None]) -> Measurer | Fleet:
        """What measures candidates of a subject; `meet` is called with it when the subject is new to the workers."""
        if self._measurer is None:
            self._measurer = _asked(partial(self._begun, subject))
        if self._subject is not None and self._subject != subject:
            _asked(partial(self._measurer.turn_to, subject))
        self._subject = subject
        if subject not in self._met:
            self._met.add(subject)
            _asked(partial(meet, self._measurer))
        return self._measurer

    def _begun(self, subject: Subject) -> Measurer | Fleet:
        if self._options.scheduler is None:
            return Measurer(subject, builders=self._options.builders)
        from compiler.autotune.fleet.measurer import Fleet

        machine = cast("Machine", self._machine)
        fleet = Fleet(self._options.scheduler, machine, self._options.patience)
        fleet.turn_to(subject)
        return fleet


class Run:
    """The tuning of one task, batch by batch.

    Several runs may share a budget and workers: then each begins with `prepare`, begins and ends turns as long as
    `choose` finds something, with whatever others do between them, and comes to an end with `conclude`.
    """

    def __init__(
        self, task: TuningProblem, options: TuningOptions, database: Database, budget: Budget, workers: Workers
    ) -> None:
        self.task, self.options, self.database = task, options, database
        self.budget, self.workers = budget, workers
        self.id = str(uuid4())
        self.progress = Progress(task.name, options.trials, options.seconds)
        self.trials: Trials[str] = Trials()
        self.proposals: list[Proposal] = []
        self.flights: deque[_Flight] = deque()
        self.log = LogFile(options.log)
        self.compared: str | None = None
        self.candidates: dict[str, Candidate] = {}

    def __enter__(self) -> Run:
        self.log.__enter__()
        return self

    def __exit__(self, *error: object) -> None:
        self.log.__exit__(*error)

    def say(self, phase: str | None = None) -> None:
        """Show how far the run is."""
        if phase is not None:
            self.progress.phase, self.progress.step = phase, ""
        self.progress.seconds = self.budget.seconds
        self.progress.notes = self.workers.notes
        for callback in self.options.callbacks:
            callback(self.progress)

    def go(self) -> None:
        """The run alone: what is known, then trials as long as there are some, then turns."""
        self.prepare()
        halfway = self.budget.spent < HALF
        while self.fly():
            self.end_turn()
            if halfway and self.budget.spent >= HALF and len(self.trials) >= TELLS:
                halfway = False
                self.take_turns()
        self.conclude()

    def conclude(self, share: float = 1.0) -> None:
        """The leaders' turns at the end, in a share of the time that is left for such."""
        if not self.progress.measured:
            self.say(self.why_nothing())
            return
        self.take_turns(share)
        self.compare_as_written(share)
        self.say("done")

    @property
    def promise(self) -> float | None:
        """How far the logarithm of the best time is expected to fall with what was chosen; None while nothing tells."""
        improvements = [proposal.improvement for proposal in self.proposals if proposal.improvement is not None]
        return max(improvements, default=None)

    # --- what is known ----------------------------------------------------------------------------------------------

    def prepare(self) -> None:
        """Derive the space, and learn what the database knows of the task and of similar ones.

        The space is the run's own: what it answers depends on what it was asked before, and so would the log. Where
        nothing can be measured any more, only the database is read.
        """
        self.budget.has(self.task.name, len({record.script for record in self.database.records(self.task.key)}))
        if not self.budget.wanted and self.options.log is None:
            self.recall()
            return
        self.say("deriving sketches")
        task = self.task
        self.space = SketchSpace(task.sketches(), task.machine, task.estimated, threads=task.key.threads)
        self.progress.rules = list(task.notes())
        self.written: Candidate = (len(self.space.sketches) - 1, ())
        self.progress.sketches = len(self.space.sketches)
        self.progress.candidates = total(self.space.sizes)
        self.candidates[self.space.script(self.written)] = self.written
        self.seen, self.descending = 0, not self.options.search.descent
        self.say("learning from earlier tasks")
        seconds = SECONDS if self.options.seconds is None else min(SECONDS, self.options.seconds / 20)
        past_tasks = warm_starts(self.database, task.key, task.program, task.machine, seconds)
        self.search = Search(self.space, self.options.seed, self.options.search, past_tasks)
        self.absorb()
        self.progress.earlier = len(self.trials)

    def recall(self) -> None:
        """Learn what the database knows, without a space."""
        self.say("reading the database")
        records = self.database.records(self.task.key)
        written = self.task.written() if records else ""
        for record in records:
            self.learn(None, record.script, record.outcome)
        if written in self.trials and self.trials.ranks(written):
            self.progress.baseline = self.trials.outcome(written)
        self.look_at_best()
        if self.trials.best(1) == [written]:
            self.progress.sketch = WRITTEN
        self.progress.earlier = len(self.trials)

    def absorb(self) -> None:
        """Learn what is new in the database and not of this run: what earlier runs left, and what others add."""
        for record in self.database.records(self.task.key, after=self.seen):
            self.seen = record.id
            if record.run != self.id:
                candidate = self.place(record)
                script = record.script if candidate is None else self.space.script(candidate)
                self.learn(candidate, script, record.outcome)
        self.look()

    def place(self, record: Record) -> Candidate | None:
        """Where in this space a record is, if its script is there now: rules may have changed since."""
        candidate = self.candidates.get(record.script)
        if candidate is not None or record.candidate is None or not belongs(self.space.sizes, record.candidate):
            return candidate
        scripts = self.space.short_script(record.candidate), self.space.script(record.candidate)
        return record.candidate if record.script in scripts else None

    def learn(self, candidate: Candidate | None, script: str, outcome: Outcome) -> None:
        """Take in an outcome of a script."""
        before = self.trials.outcome(script) if script in self.trials else None
        after = self.trials.add(script, outcome)
        self.budget.has(self.task.name, len(self.trials))
        self.progress.record(before, after)
        if candidate is not None:
            if before is not None and script not in self.candidates:
                self.search.update(candidate, before)
            self.candidates[script] = candidate
            self.search.update(candidate, outcome)
            if candidate == self.written and after.ranks:
                self.progress.baseline = after

    def look(self) -> None:
        """Take over what is known into what is shown and logged."""
        progress, search = self.progress, self.search
        self.look_at_best()
        progress.infeasible = search.infeasible
        progress.heard = search.heard
        progress.quality = search.quality.line()
        progress.accuracy = search.quality.pairs.accuracy
        self.log.write(search.log_lines(self.log.written))

    def look_at_best(self) -> None:
        """Show the best that is known."""
        progress = self.progress
        for script in self.trials.best(1):
            outcome = self.trials.outcome(script)
            if progress.best is None or outcome.cost < progress.best.cost:
                progress.curve.append((progress.trials, outcome.cost))
            progress.best = outcome
            if script != self.compared:
                progress.compared = None
            candidate = self.candidates.get(script)
            progress.sketch = "" if candidate is None else self.space.sketches[candidate[0]].name

    def why_nothing(self) -> str:
        """Why nothing was measured."""
        if self.options.trials is not None and self.budget.trials >= self.options.trials:
            return f"nothing to measure: the database has {self.budget.trials} of {self.options.trials} trials"
        if not self.budget.searching:
            return "nothing was measured: the time was spent before"
        return f"nothing to measure: all that is feasible has been tried, {len(self.trials)} trials"

    # --- trials -----------------------------------------------------------------------------------------------------

    def choose(self, most: int | None = None) -> list[Proposal]:
        """Choose what to measure next, at most so many; nothing when the budget is spent or nothing is left."""
        self.proposals = []
        while not self.proposals and (count := min(self.budget.wanted, most or self.options.batch)):
            self.say("choosing candidates")
            if not self.descending and self.budget.spent >= DESCENT:
                self.descending = True
                self.search.descend()
            proposals = self.search.propose(count)
            self.absorb()
            self.proposals = [proposal for proposal in proposals if not self.is_known(proposal)]
            if not proposals:
                break
        return self.proposals

    def is_known(self, proposal: Proposal) -> bool:
        """Whether others have tried it meanwhile, or in another space; then the search is told."""
        script, short = self.space.script(proposal.candidate), self.space.short_script(proposal.candidate)
        if script not in self.trials:
            return short in self.trials
        if proposal.candidate in self.search.pending:
            self.search.update(proposal.candidate, self.trials.outcome(script))
            self.candidates[script] = proposal.candidate
        return True

    def fly(self) -> bool:
        """Begin turns until as many are under way as may be; whether there is one."""
        while len(self.flights) < self.workers.batches and self.choose():
            self.begin_turn()
        return bool(self.flights)

    def measurer(self) -> Measurer | Fleet:
        """What measures; its workers start for the first task. Raises TargetError where they cannot."""
        return self.workers.on(self.task.subject, self.calibrate)

    def calibrate(self, measurer: Measurer | Fleet) -> None:
        """Let what is measured be timed beside the best that is known from before."""
        best, outcome = self.search.best, self.search.best_outcome
        if best is not None and outcome is not None:
            measurer.calibrate(self.space.script(best), outcome.cost)

    def begin_turn(self) -> None:
        """Give what was chosen to the workers. Those of a cluster begin at once, those here when the turn ends."""
        self.say("starting workers")
        measurer, chosen = self.measurer(), self.proposals[: self.budget.wanted]
        self.say("building and measuring")
        scripts = [self.space.script(proposal.candidate) for proposal in chosen]
        outcomes = _asked(partial(measurer.measure, scripts, self.step))
        self.flights.append(_Flight(chosen, scripts, outcomes, perf_counter()))
        self.budget.flying += len(chosen)
        self.proposals = []

    def step(self, words: str) -> None:
        """Show how far the batch is."""
        self.progress.step = words
        self.say()

    def end_turn(self) -> None:
        """Take the outcomes of the turn that was begun first; each is on disk before it is told."""
        flight, count = self.flights.popleft(), 0
        with closing(flight.outcomes), closing(_outcomes(flight.outcomes)) as arriving:
            for position, outcome in arriving:
                proposal, script = flight.chosen[position], flight.scripts[position]
                self.budget.flying -= 1
                self.keep(proposal.candidate, script, outcome, None if proposal.cost is None else exp(proposal.cost))
                self.progress.measured += 1
                self.say()
                count += 1
                if not self.budget.searching:
                    break
        self.budget.flying -= len(flight.chosen) - count
        self.budget.measured(count, perf_counter() - flight.begun)
        if not self.flights:
            self.search.release()
        self.absorb()

    def keep(self, candidate: Candidate, script: str, outcome: Outcome, predicted: float | None) -> None:
        """Record an outcome, then learn it."""
        task, seed, short = self.task, self.options.seed, self.space.short_script(candidate)
        record = Record(task.key, task.name, task.program, short, outcome, candidate, predicted, seed, self.id)
        self.database.add(record)
        self.progress.disturbance = together((self.progress.disturbance, outcome.disturbance))
        self.learn(candidate, script, outcome)
        self.look()

    # --- turns ------------------------------------------------------------------------------------------------------

    def take_turns(self, share: float | None = None) -> None:
        """Measure the leaders again, in turns with each other and with the program as it is written where that is near:
        once half-way; at the end, in a share of the time that is left, until none was measured too seldom."""
        while contenders := self.contenders():
            begun = perf_counter()
            seconds = self.budget.half_way_turns if share is None else self.budget.last_turns(share)
            rounds = self.rounds(contenders, seconds)
            if rounds < 2:
                return
            self.say("measuring the leaders again")
            self.compare(contenders, rounds)
            self.budget.turned += perf_counter() - begun
            if share is None:
                return

    def compare_as_written(self, share: float) -> None:
        """Let the best take turns with the program as written, however slow that is, unless it has or there is no time:
        a gain is known by turns alone."""
        best, standing = self.search.best, self.progress.standing
        if best is None or standing is None or standing.is_exact or self.costs(self.written) == float("inf"):
            return
        pair = list(dict.fromkeys([best, self.written]))
        rounds = self.rounds(pair, self.budget.last_turns(share))
        if rounds:
            self.say("measuring the program as written again")
            self.compare(pair, rounds)

    def contenders(self) -> list[Candidate]:
        """The leaders that were measured too seldom, with the best and the program as it is written."""
        best, outcome = self.search.best, self.search.best_outcome
        if best is None or outcome is None or len(self.search) < 2:
            return []
        leaders = [c for c in self.search.leaders(LEADERS) if self.costs(c) <= NEAR * outcome.cost]
        if not leaders:
            return []
        rivals = [best, self.written] if self.costs(self.written) <= NEAR * outcome.cost else [best]
        return list(dict.fromkeys([*leaders, *rivals]))

    def costs(self, candidate: Candidate) -> float:
        """The cost of a candidate; infinite where it was not measured."""
        script = self.space.script(candidate)
        outcome = self.trials.outcome(script) if script in self.trials else None
        return outcome.cost if outcome is not None and outcome.ranks else float("inf")

    def rounds(self, contenders: Sequence[Candidate], seconds: float) -> int:
        """How many rounds fit into some seconds: all are built and checked, then each round times each once."""
        outcomes = [self.trials.outcome(self.space.script(candidate)) for candidate in contenders]
        builders = self.options.builders or processors()
        before = sum(outcome.build_seconds / builders + 3 * median(outcome.seconds) for outcome in outcomes)
        each = sum(2 * max(median(outcome.seconds), 0.01) for outcome in outcomes)  # as long again for the ceiling
        disturbance = self.progress.disturbance
        most = 2 * ROUNDS if disturbance is not None and disturbance.matters else ROUNDS
        return max(0, min(most, int((seconds - before) / each)))

    def compare(self, contenders: Sequence[Candidate], rounds: int) -> None:
        """Measure candidates in turns."""
        measurer = self.measurer()
        scripts = [self.space.script(candidate) for candidate in contenders]
        outcomes = _asked(lambda: measurer.compare(scripts, rounds))
        for candidate, script, outcome in zip(contenders, scripts, outcomes, strict=True):
            self.keep(candidate, script, outcome, None)
        turns = dict(zip(scripts, outcomes, strict=True))
        (leader,) = self.trials.best(1) or [""]
        baseline, best = turns.get(self.space.script(self.written)), turns.get(leader)
        if baseline is not None and best is not None and baseline.ranks and best.ranks:
            self.compared = leader
            self.progress.compared = baseline, best
        self.say()


def _outcomes(arriving: Iterator[tuple[int, Outcome]]) -> Generator[tuple[int, Outcome]]:
    """The outcomes of scripts as they come; closed early, the workers that are busy end."""
    while (arrived := _asked(lambda: next(arriving, None))) is not None:
        yield arrived


def _asked(call: Callable[[], Given]) -> Given:
    """What the workers give. Raises TargetError for what the system refuses them: processes, files, memory."""
    try:
        return call()
    except OSError as error:
        raise TargetError(f"the processes that measure cannot work: {error.strerror or error}") from error
