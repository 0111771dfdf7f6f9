"""The tuner's loop with workers that only pretend: budgets, what a database tells it, turns, its log, how it ends."""

from __future__ import annotations

import json
import os
import signal
import time
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from functools import cache
from hashlib import sha256
from math import inf
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from compiler import te
from compiler.autotune import budget, leaders, tuner
from compiler.autotune import workers as worker_processes
from compiler.autotune.deadline import TimeIsUp, until
from compiler.autotune.display.facts import RunFacts
from compiler.autotune.display.progress import Progress
from compiler.autotune.measure.turns import Runnable, RunTimes, Turns
from compiler.autotune.options import TuningOptions
from compiler.autotune.search import replay
from compiler.autotune.search.warm_start import warm_starts
from compiler.autotune.task import SearchTask
from compiler.autotune.tasks import in_place
from compiler.database import Database, Record
from compiler.database.outcome import ESTIMATED, MEASURED, Outcome
from compiler.driver.reference.subject import Subject
from compiler.pipeline.loops import lower
from compiler.space.space import SketchSpace
from compiler.support.errors import InputError, TargetError
from tests.programs import matmul as product
from tests.sample import pairs

PATIENCE = 60.0
"""Seconds of what never ends by itself."""


@cache
def task(m: int = 64, n: int = 64, k: int = 64) -> SearchTask:
    """Of loops: how lucky a script is depends on its text, names included. A task keeps no more than what rules and
    features say of its program, which all tests share."""
    return SearchTask(lower(product(m, n, k)), threads=1)


def luck(script: str) -> float:
    """A cost between 1 and 2 that a script always has."""
    return 1 + int(sha256(script.encode()).hexdigest()[:6], 16) / 2**24


@dataclass
class Pretend:
    """Workers that measure by a formula, whose costs are milliseconds.

    `tried` says how often each script was measured, `batches` how many were measured together, `turns` who took turns,
    `rounds` how many, `closed` how often they were ended, `subjects` what they turned to, `places` how many a cluster
    has. What is measured by itself may cost what `first` says; `fails` says of a script and how often it was measured
    which failure that is.
    """

    cost: Callable[[str], float] = luck
    fails: Callable[[str, int], str | None] = lambda script, time: None
    first: Callable[[str], float] | None = None
    seconds: float = 0.0
    kind: str = MEASURED
    clock: list[float] = field(default_factory=lambda: [0.0])
    tried: Counter[str] = field(default_factory=Counter)
    turns: list[tuple[str, ...]] = field(default_factory=list)
    rounds: list[int] = field(default_factory=list)
    batches: list[int] = field(default_factory=list)
    closed: int = 0
    calibrated: list[tuple[str, float]] = field(default_factory=list)
    subjects: list[Subject] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)
    places: int = 0

    def __call__(self, subject: Subject, builders: int | None = None) -> Pretend:
        return self

    def close(self) -> None:
        self.closed += 1

    def switch_subject(self, subject: Subject) -> None:
        self.subjects.append(subject)

    def calibrate(self, script: str, cost: float) -> None:
        self.calibrated.append((script, cost))

    def outcome(self, script: str, samples: int, cost: Callable[[str], float]) -> Outcome:
        kind = self.fails(script, self.tried[script])
        self.tried[script] += 1
        self.clock[0] += self.seconds
        if kind is not None:
            return Outcome(kind, reason="planted")
        return Outcome(self.kind, (cost(script) / 1000,) * samples, (1000.0,) * samples)

    def measure(self, scripts: Sequence[str], say: Callable[[str], object]) -> Iterator[tuple[int, Outcome]]:
        self.batches.append(len(scripts))
        for position, script in reversed(list(enumerate(scripts))):
            yield position, self.outcome(script, 3, self.first or self.cost)

    def compare(self, scripts: Sequence[str], rounds: int) -> list[Outcome]:
        self.turns.append(tuple(scripts))
        self.rounds.append(rounds)
        return [self.outcome(script, rounds, self.cost) for script in scripts]


def halved(default: Runnable, tuned: Runnable, seconds: float) -> Turns:
    """Turns in which every call of the second program takes half the time."""
    calls = np.ones_like(default.run().calls)
    return Turns([RunTimes(1.0, calls)], [RunTimes(0.5, calls / 2)])


@pytest.fixture
def workers(monkeypatch: pytest.MonkeyPatch) -> Callable[..., Pretend]:
    """Put pretending workers in the place of processes."""

    def install(**stated: Any) -> Pretend:
        made = Pretend(**stated)
        monkeypatch.setattr(worker_processes, "Measurer", made)
        monkeypatch.setattr(in_place, "run_in_turns", halved)
        return made

    return install


@pytest.fixture(autouse=True)
def unhurried(monkeypatch: pytest.MonkeyPatch) -> None:
    """What earlier tasks tell does not depend on how fast they are read."""
    monkeypatch.setattr(tuner, "SECONDS", inf)


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "tuning.db"


@dataclass
class Shown:
    """A callback that keeps what it was shown."""

    phases: list[str] = field(default_factory=list)
    trials: list[int] = field(default_factory=list)
    last: Progress | None = None

    def __call__(self, progress: Progress) -> None:
        if not self.phases or self.phases[-1] != progress.phase:
            self.phases.append(progress.phase)
        self.trials.append(progress.trials)
        self.last = progress


def records(path: Path) -> list[Record]:
    with Database(path) as database:
        return database.records()


def scripts(path: Path) -> set[str]:
    return {record.script for record in records(path)}


def tuned(what: SearchTask, shown: Callable[[Progress], None] | None = None, **stated: Any) -> Record | None:
    return what.tune(TuningOptions(**{"trials": 12, **stated, "callbacks": [shown] if shown else []}))


# --- budgets and resumption -----------------------------------------------------------------------------------------


def test_trials_are_those_in_the_database(workers: Callable[..., Pretend], path: Path) -> None:
    pretend, what = workers(), task()
    first = tuned(what, trials=10, database=path)
    assert len(scripts(path)) == 10 and first is not None
    before, shown = len(records(path)), Shown()
    again = tuned(what, shown, trials=10, database=path)
    assert len(records(path)) == before and again == first
    assert shown.phases[-1] == "nothing to measure: the database has 10 of 10 trials"
    assert shown.last is not None and shown.last.earlier == shown.last.trials == 10 and pretend.closed == 1
    tuned(task(), shown, trials=14, database=path)
    assert len(scripts(path)) == 14 and shown.last.earlier == 10 and shown.last.trials == 14
    steps = {what.space.script(record.candidate) for record in records(path)}
    assert all(pretend.tried[script] == 1 or any(script in turn for turn in pretend.turns) for script in steps)
    assert shown.trials == sorted(shown.trials[: shown.trials.index(10)]) + shown.trials[shown.trials.index(10) :]


def test_a_run_that_goes_on_is_timed_beside_the_best_so_far(workers: Callable[..., Pretend], path: Path) -> None:
    pretend = workers()
    tuned(task(), trials=8, database=path)
    assert pretend.calibrated == []
    with Database(path) as database:
        best = database.best(task().key)
    tuned(task(), trials=12, database=path)
    assert best is not None and best.candidate is not None
    assert pretend.calibrated == [(task().space.script(best.candidate), best.outcome.cost)]


def test_records_of_other_rules_count_but_are_no_candidates(workers: Callable[..., Pretend], path: Path) -> None:
    """Scripts that this space does not have: one without a candidate, one with another's, one with one out of range."""
    workers()
    what = task()
    text = what.space.script(what.space.defaults[0])
    fast = Outcome(MEASURED, (0.5,), (1.0,))
    second = Record(what.key, "old", what.program, "// old\n" + text, fast, None)
    with Database(path) as database:
        for number, candidate in enumerate((None, what.space.defaults[0], (99, (1, 2)))):
            script = f"// {number}\n{text}"
            database.add(
                replace(
                    second,
                    script=script,
                    candidate=candidate,
                    uuid=Record.__dataclass_fields__["uuid"].default_factory(),
                )
            )  # type: ignore[misc]
    shown = Shown()
    best = tuned(what, shown, trials=9, database=path)
    assert len(scripts(path)) == 9 and shown.last is not None and shown.last.earlier == 3
    assert best is not None and best.script == f"// 0\n{text}", "and may be the best"
    assert shown.last.best is not None and shown.last.best.cost == 0.5 and shown.last.sketch == ""


def test_what_is_known_without_its_candidate_is_not_measured_again(workers: Callable[..., Pretend], path: Path) -> None:
    pretend, what = workers(), task(64, 32, 32)
    known, steps = what.space.defaults[:2]
    with Database(path) as database:
        for script in (what.space.script_with_includes(known), what.space.script(steps)):
            database.add(Record(what.key, "by hand", what.program, script, Outcome(MEASURED, (9.0,), (1.0,))))
    tuned(what, trials=1000, database=path)
    assert pretend.tried[what.space.script(known)] == pretend.tried[what.space.script(steps)] == 0
    assert len(scripts(path)) > 40, "and the run ends when all has been tried"


def test_what_is_known_to_be_wrong_without_its_candidate_stays_wrong(
    workers: Callable[..., Pretend], path: Path, tmp_path: Path
) -> None:
    workers(cost=lambda script: 5 + luck(script))
    what, log = task(), tmp_path / "log"
    known = what.space.script(what.space.defaults[0])
    wrong = Record(what.key, "by hand", what.program, known, Outcome("wrong"))
    with Database(path) as database:
        database.add(wrong)
        good = Outcome(MEASURED, (1e-3,), (1.0,))
        database.add(Record(what.key, "old", what.program, known, good, what.space.defaults[0]))
    best = tuned(what, trials=10, database=path, log=log)
    assert best is not None and best.script not in (known, what.space.script_with_includes(what.space.defaults[0]))
    kinds = [json.loads(line)["outcome"]["kind"] for line in log.read_text().splitlines() if '"update"' in line]
    assert kinds[:2] == ["wrong", MEASURED], "the search is told as well"


def test_a_space_that_is_tried_ends_in_words(workers: Callable[..., Pretend], path: Path) -> None:
    pretend = workers()
    tuned(task(8, 8, 8), trials=1000, database=path)
    shown = Shown()
    tuned(task(8, 8, 8), shown, trials=1000, database=path)
    assert pretend.closed == 1 and shown.phases[-1].startswith(
        "nothing to measure: all that is feasible has been tried"
    )


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> list[float]:
    """A clock that only workers move."""
    now = [0.0]
    for module in (budget, leaders, tuner):
        monkeypatch.setattr(module, "perf_counter", lambda: now[0])
    return now


def test_seconds_alone_end_in_a_descent_and_in_turns(
    workers: Callable[..., Pretend], path: Path, tmp_path: Path, clock: list[float]
) -> None:
    log = tmp_path / "log"
    pretend = workers(
        cost=lambda script: luck(script) if "sched.pack" in script else 9.0, seconds=0.5, clock=clock
    )  # the program as written has no neighbours, and tiles have few
    tuned(task(512, 512, 512), trials=None, seconds=40.0, database=path, log=log)
    calls = [json.loads(line) for line in log.read_text().splitlines()]
    (number,) = [n for n, call in enumerate(calls) if call.get("call") == "descend"]
    whys = [gave[3] for call in calls[number:] for gave in call.get("gave", [])]
    assert whys[:4] == ["neighbour"] * 4
    tried = sum("update" in call for call in calls[:number])
    assert 40 <= tried <= 70, "after about 70 per cent"
    assert clock[0] <= 40.0 + 4 and len(pretend.turns) >= 2, "half-way and at the end"
    assert sum(pretend.tried.values()) >= 70


def test_a_batch_is_cut_where_the_time_ends(workers: Callable[..., Pretend], path: Path, clock: list[float]) -> None:
    pretend = workers(seconds=3.0, clock=clock)
    tuned(task(), trials=None, seconds=10.0, database=path, batch=8)
    assert len(pretend.tried) == 3, "the fourth would begin when its time is over"
    short = workers(seconds=0.5, clock=clock)
    tuned(task(80, 64, 64), trials=None, seconds=6.0, batch=6)
    assert short.batches == [6, 4], "5.28 seconds are for trials, and what they take is known from the first batch"


def test_seconds_count_from_where_the_options_say(workers: Callable[..., Pretend], clock: list[float]) -> None:
    """A command's imports and its model are part of what a person waits for."""
    workers(seconds=1.0, clock=clock)
    clock[0] = 100.0
    shown = Shown()
    assert tuned(task(), shown, trials=None, seconds=10.0, began=85.0) is None
    assert shown.phases == ["reading the database", "nothing was measured: the time was spent before"]
    assert tuned(task(), trials=None, seconds=10.0, began=95.0) is not None


def test_seconds_end_whatever_is_done(workers: Callable[..., Pretend], path: Path, clock: list[float]) -> None:
    """Also what does not look at the clock; what was measured is kept, and that is the end of a run like others."""
    what = task()
    first = what.space.script(what.space.defaults[0])

    def stuck(script: str) -> float:
        if script == first:
            clock[0] = 11.0
            time.sleep(PATIENCE)
        return luck(script)

    pretend, shown = workers(cost=stuck, seconds=0.1, clock=clock), Shown()
    assert tuned(what, shown, trials=None, seconds=10.0, database=path) is not None
    assert shown.phases[-1] == "done" and pretend.closed == 1 and first not in scripts(path)
    assert signal.getitimer(signal.ITIMER_REAL) == (0.0, 0.0)


def test_what_uses_the_timer_keeps_it() -> None:
    signal.setitimer(signal.ITIMER_REAL, PATIENCE)
    try:
        with until(lambda: True):
            assert signal.getitimer(signal.ITIMER_REAL)[0] > 0 == signal.getitimer(signal.ITIMER_REAL)[1]
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0.0)
    with pytest.raises(TimeIsUp), until(lambda: True):
        time.sleep(PATIENCE)


def test_a_run_with_nothing_left_to_do_derives_nothing(
    workers: Callable[..., Pretend], path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    pretend, what, shown = workers(), SearchTask(lower(product()), threads=1), Shown()
    best = tuned(what, trials=10, database=path)
    again = SearchTask(lower(product()), threads=1)
    monkeypatch.setattr(SearchTask, "derived", property(lambda task: pytest.fail("sketches are derived")))
    assert tuned(again, shown, trials=10, database=path) == best and pretend.closed == 1
    assert shown.last is not None and shown.last.gain is not None and shown.last.earlier == 10
    assert shown.last.best is not None and best is not None and shown.last.best.cost == best.outcome.cost


def test_half_way_is_after_half_of_the_trials(workers: Callable[..., Pretend], path: Path) -> None:
    pretend, counts = workers(), []
    tuned(task(), lambda p: counts.append((len(pretend.turns), p.trials)), trials=32, database=path)
    assert next(trials for turns, trials in counts if turns) == 16


# --- turns ----------------------------------------------------------------------------------------------------------


def test_no_luck_lasts(workers: Callable[..., Pretend], path: Path) -> None:
    """One is lucky, and only when it is measured by itself."""
    what = task()
    lucky = what.space.script(what.space.defaults[2])
    pretend = workers(first=lambda script: 0.9 if script == lucky else luck(script))
    best = tuned(what, trials=24, database=path)
    assert best is not None and what.space.script(best.candidate) != lucky
    measured = {script: luck(script) for script in (what.space.script(r.candidate) for r in records(path))}
    assert what.space.script(best.candidate) == min(measured, key=lambda script: measured[script])
    ranked = sorted(measured, key=lambda script: measured[script])[: leaders.LEADERS]
    assert all(pretend.tried[script] >= 3 for script in ranked), "none of the leaders was measured too seldom"
    written = what.space.script((len(what.space.sketches) - 1, ()))  # it takes turns where it was near the best then
    behind = [
        script for script in measured if luck(script) > 1.5 * best.outcome.cost and script not in (written, lucky)
    ]
    assert not any(pretend.tried[script] > 1 for script in behind)


def test_what_is_far_behind_takes_no_turns(workers: Callable[..., Pretend], path: Path) -> None:
    what = task()
    first = what.space.script(what.space.defaults[0])
    pretend = workers(cost=lambda script: 1.0 if script == first else 1.6)
    tuned(what, trials=6, database=path)
    written = what.space.script((len(what.space.sketches) - 1, ()))
    assert pretend.turns[:2] == [(first,)] * 2, "only the best, until it was measured three times"
    assert pretend.turns[2:] == [(first, written)], "the program as written tells the gain, however slow it is"


def test_the_result_is_never_worse_than_the_program_as_written(workers: Callable[..., Pretend], path: Path) -> None:
    what, shown = task(), Shown()
    written = what.space.script((len(what.space.sketches) - 1, ()))
    pretend = workers(
        cost=lambda script: 1.0 if script == written else 1.1 + luck(script) / 10, first=lambda s: luck(s) ** 0.4
    )
    best = tuned(what, shown, trials=20, database=path)
    assert best is not None and best.script == written
    assert shown.last is not None and shown.last.gain == 1.0 and shown.last.sketch == "as written"
    assert any(written in turn for turn in pretend.turns)
    alone = workers()
    assert tuned(what, trials=2) is not None and alone.tried[written], "it is among the first two"


def test_a_gain_is_that_of_one_comparison(workers: Callable[..., Pretend], path: Path) -> None:
    what, shown = task(), Shown()
    written = what.space.script((len(what.space.sketches) - 1, ()))
    pretend = workers(cost=lambda s: 1.2 if s == written else 1 + luck(s) / 100, first=lambda s: 9 * luck(s) / luck(s))
    tuned(what, shown, trials=8, database=path)
    assert shown.last is not None and shown.last.compared is not None and written in pretend.turns[-1]
    assert shown.last.gain == pytest.approx(1.2, rel=0.02)
    far = workers(cost=lambda script: 9.0 if script == written else luck(script))
    tuned(what, shown, trials=8)
    assert far.turns[-1][1:] == (written,) and shown.last.best_times is not None and shown.last.best_times.is_exact
    assert shown.last.gain == pytest.approx(9.0 / luck(far.turns[-1][0]))


def test_a_gain_of_different_moments_is_not_said_as_exact(workers: Callable[..., Pretend], clock: list[float]) -> None:
    """The program as written takes too long for turns; the machine was twice as fast when it was measured."""
    what, shown = task(), Shown()
    written = what.space.script((len(what.space.sketches) - 1, ()))
    workers(cost=lambda script: 6e6 if script == written else 1 + luck(script) / 100, clock=clock)
    tuned(what, shown, trials=8)
    assert shown.last is not None and shown.last.best_times is not None
    assert shown.last.compared is None and not shown.last.best_times.is_exact
    assert RunFacts(what, shown.last).gained.startswith("about ")


def test_estimates_take_no_turns_with_the_program_as_written(workers: Callable[..., Pretend]) -> None:
    what, shown = task(), Shown()
    written = what.space.script((len(what.space.sketches) - 1, ()))
    pretend = workers(cost=lambda script: 9.0 if script == written else luck(script), kind=ESTIMATED)
    tuned(what, shown, trials=8)
    assert shown.last is not None and shown.last.best_times is not None and shown.last.best_times.is_exact
    assert not any(written in turn for turn in pretend.turns)


def test_a_better_one_takes_turns_with_the_program_as_written_before_a_gain_is_said(
    workers: Callable[..., Pretend], path: Path
) -> None:
    """A gain of turns that the best of now did not take is none."""
    what, shown = task(), list[Progress]()
    written = what.space.script((len(what.space.sketches) - 1, ()))
    pretend = workers(cost=lambda script: 1.3 if script == written else luck(script) ** 0.3)
    tuned(what, lambda p: shown.append(replace(p)), trials=40, database=path)
    turned = [p for p in shown if p.compared is not None]
    assert turned and all(p.best is not None and p.compared is not None for p in turned)
    assert all(set(p.compared[1].seconds) <= set(p.best.seconds) for p in turned if p.compared and p.best)
    assert turned[-1] is shown[-1] and written in pretend.turns[-1]


def test_a_leader_that_is_found_wrong_in_its_turn_is_not_the_best(workers: Callable[..., Pretend], path: Path) -> None:
    what, shown = task(), Shown()
    bad = what.space.script(what.space.defaults[0])
    workers(
        cost=lambda script: 0.5 if script == bad else luck(script),
        fails=lambda script, time: "wrong" if script == bad and time == 1 else None,
    )
    best = tuned(what, shown, trials=10, database=path)
    assert best is not None and best.script != (short := what.space.script_with_includes(what.space.defaults[0]))
    assert shown.last is not None and shown.last.failed == {"wrong": 1} and shown.last.reasons == {"wrong": "planted"}
    assert shown.last.trials == 10 and shown.last.best is not None and shown.last.best.cost > 0.5
    again = tuned(task(), trials=12, database=path)
    assert again is not None and again.script != short


@pytest.mark.parametrize(("cost", "rounds"), [(1.0, [7, 7]), (300.0, [5, 5]), (1500.0, [1]), (30000.0, [])])
def test_turns_end_with_their_time(
    cost: float, rounds: list[int], workers: Callable[..., Pretend], path: Path, clock: list[float]
) -> None:
    """Without a limit 20 seconds: each of five is called three times before, and twice a round with the ceiling. Where
    five do not fit two may, the best and the program as written, which is none of the leaders."""
    what = task()
    written = what.space.script((len(what.space.sketches) - 1, ()))
    pretend = workers(cost=lambda s: cost * (1.03 if s == written else 1 + luck(s) / 100), clock=clock)
    tuned(what, trials=7, database=path)
    assert pretend.rounds == rounds


# --- the log --------------------------------------------------------------------------------------------------------


def test_a_log_replays_the_search_byte_for_byte(workers: Callable[..., Pretend], path: Path, tmp_path: Path) -> None:
    """Also of a run that goes on with a database, also in a process where the task was tuned before."""
    workers(fails=lambda script, time: "crash" if luck(script) > 1.9 else None)
    what = task()
    for number, trials in enumerate((20, 30, 40)):
        log = tmp_path / f"{number}"
        tuned(what, trials=trials, database=path, log=log, seed=number)
        fresh = task.__wrapped__()
        again = replay(SketchSpace(fresh.derived.sketches, fresh.machine), log.read_text())
        assert again.log() == log.read_text()
        with Database(path) as database:
            best = database.best(what.key)
        assert best is not None and again.best == best.candidate and again.best_outcome == best.outcome


def test_the_same_seed_is_the_same_run(workers: Callable[..., Pretend], tmp_path: Path) -> None:
    workers()
    logs = [tmp_path / name for name in "ab"]
    for log in logs:
        tuned(task(), trials=24, database=log.with_suffix(".db"), log=log, seed=5)
    assert logs[0].read_text() == logs[1].read_text()
    tuned(task(), trials=24, log=logs[1], seed=6)
    assert logs[0].read_text() != logs[1].read_text()


@pytest.mark.parametrize("name", ["no/such/folder", ".", "\0"])
def test_a_log_that_cannot_be_written_is_said_before_anything_is_done(name: str, tmp_path: Path) -> None:
    shown = Shown()
    with pytest.raises(InputError, match=r"cannot be written|is not the name"):
        tuned(task(), shown, log=os.path.join(tmp_path, name))
    assert shown.phases == []


# --- earlier tasks --------------------------------------------------------------------------------------------------


def test_a_second_shape_begins_with_predictions(workers: Callable[..., Pretend], path: Path, tmp_path: Path) -> None:
    log, shown = tmp_path / "log", Shown()
    workers()
    tuned(task(64, 64, 64), trials=24, database=path)
    tuned(task(96, 64, 128), shown, trials=4, database=path, log=log, batch=4)
    lines = [json.loads(line) for line in log.read_text().splitlines()]
    assert [next(iter(line)) for line in lines[:2]] == ["search", "propose"] and len(lines[0]["search"]["past"]) == 1
    assert lines[1]["gave"] and all(predicted is not None for _, _, predicted, _ in lines[1]["gave"])
    assert shown.last is not None and shown.last.prior_tasks == 1 and "nothing predicted" in shown.last.quality
    new = [record for record in records(path) if record.key == task(96, 64, 128).key]
    assert new and all(record.predicted is None for record in new), "what is only relative is no cost"


def test_earlier_tasks_are_those_of_the_same_machine_threads_and_policy(
    workers: Callable[..., Pretend], path: Path
) -> None:
    workers()
    first, second = task(), task(80, 64, 64)
    tuned(first, trials=24, database=path)
    with Database(path) as database:
        (past,) = warm_starts(database, second.key, second.program, second.machine, inf)
        assert past.values.shape[0] == len(past.costs) == len(scripts(path)) and past.values[:, 0].std() >= 0
        assert (
            past.values.tolist()
            == warm_starts(database, second.key, second.program, second.machine, inf)[0].values.tolist()
        )
        assert not warm_starts(database, first.key, first.program, first.machine), "a task is no earlier one of itself"
        for change in ({"threads": 2}, {"policy": "fast"}, {"machine": "moon"}):
            assert not warm_starts(database, replace(second.key, **change), second.program, second.machine)
        assert not warm_starts(database, second.key, second.program, second.machine, seconds=-1.0)


def test_the_most_similar_of_the_earlier_tasks_comes_last(workers: Callable[..., Pretend], path: Path) -> None:
    workers()
    second = te.placeholder((64, 64), name="A")
    unlike = SearchTask(te.function("f", [second], te.nn.relu(te.nn.matmul(second, second))), threads=1)
    tuned(task(), trials=20, database=path)
    tuned(unlike, trials=20, database=path)
    with Database(path) as database:
        new = task(80, 64, 64)
        costs = [past.costs.min() for past in warm_starts(database, new.key, new.program, new.machine, inf)]
        assert len(costs) == 2 and costs[1] == min(r.outcome.cost for r in database.records(task().key))


def test_scripts_that_no_longer_apply_say_nothing(workers: Callable[..., Pretend], path: Path) -> None:
    workers()
    what = task()
    tuned(what, trials=9, database=path)
    with Database(path) as database:
        for number in range(9):
            outcome = Outcome(MEASURED, (0.1 + number,), (1.0,))
            database.add(Record(what.key, "old", what.program, f"nonsense {number}", outcome, (0, (number,))))
        (past,) = warm_starts(database, task(80, 64, 64).key, what.program, what.machine)
        assert len(past.costs) == 9


# --- two tuners on one file -----------------------------------------------------------------------------------------


@pytest.mark.parametrize(("phase", "twice"), [("building and measuring", 4), ("choosing candidates", 0)])
def test_a_run_learns_what_another_adds(
    phase: str, twice: int, workers: Callable[..., Pretend], path: Path, tmp_path: Path
) -> None:
    """The other one runs whole in a callback of the first, with the same seed: in the midst of a batch of eight, of
    which four are known by then, or between batches, where what the first one chooses has been tried meanwhile."""
    pretend, log, inner = workers(), tmp_path / "log", Shown()

    def other(progress: Progress) -> None:
        if progress.phase == phase and progress.trials >= 4 and not inner.phases:
            tuned(task(), inner, trials=20, database=path)

    tuned(task(), other, trials=24, database=path, log=log)
    assert len(scripts(path)) == 24 and len({r.run for r in records(path)}) == 2
    assert inner.last is not None and inner.last.earlier in (4, 8)
    learned = [json.loads(line) for line in log.read_text().splitlines() if '"update"' in line]
    assert len(learned) == len(records(path)), "each learns all"
    alone = [s for s in scripts(path) if not any(s in turn for turn in pretend.turns)]
    assert sum(pretend.tried[s] > 1 for s in alone) <= twice, "only what was under way is measured by both"
    fresh = task()
    assert replay(SketchSpace(fresh.derived.sketches, fresh.machine), log.read_text()).log() == log.read_text()


# --- ends -----------------------------------------------------------------------------------------------------------


class Planted(Exception):
    pass


PHASES = ["deriving sketches", "choosing candidates", "building and measuring", "measuring the leaders again", "done"]


@pytest.mark.parametrize(("phase", "error"), pairs(PHASES, [KeyboardInterrupt, Planted, OSError]))
def test_what_a_callback_raises_ends_the_run(
    phase: str, error: type[BaseException], workers: Callable[..., Pretend], path: Path, tmp_path: Path
) -> None:
    """And nothing else: workers are ended, what was measured is kept, and the next run goes on."""
    pretend, log = workers(), tmp_path / "log"
    reported: list[int] = []

    def raises(progress: Progress) -> None:
        reported.append(progress.trials)
        if progress.phase == phase and progress.trials >= (3 if phase == "building and measuring" else 0):
            raise error(5, "planted")

    if error is KeyboardInterrupt:
        shown = Shown()
        task().tune(TuningOptions(trials=12, database=path, log=log, callbacks=[raises, shown]))
        assert shown.phases[-1] == "interrupted"
    else:
        with pytest.raises(error, match="planted"):
            tuned(task(), raises, database=path, log=log)
    assert pretend.closed == (phase not in ("deriving sketches", "choosing candidates"))
    assert len(scripts(path)) >= reported[-1]
    if log.read_text():
        fresh = task()
        text = replay(SketchSpace(fresh.derived.sketches, fresh.machine), log.read_text()).log()
        assert text == log.read_text()
    tuned(task(), database=path)
    assert len(scripts(path)) == 12


def test_workers_that_cannot_start_are_said(monkeypatch: pytest.MonkeyPatch, path: Path) -> None:
    def refuses(*stated: object, **more: object) -> None:
        raise BlockingIOError(11, "Resource temporarily unavailable")

    monkeypatch.setattr(worker_processes, "Measurer", refuses)
    with pytest.raises(TargetError, match="the processes that measure cannot work: Resource temporarily unavailable"):
        tuned(task(), database=path)


def test_workers_that_cannot_be_replaced_are_said(workers: Callable[..., Pretend], path: Path) -> None:
    def full(script: str, time: int) -> str | None:
        raise OSError(24, "Too many open files")

    pretend = workers(fails=full)
    with pytest.raises(TargetError, match="cannot work: Too many open files"):
        tuned(task(), database=path)
    assert pretend.closed == 1
