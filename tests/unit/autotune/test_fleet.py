"""A fleet without a network: whom the tuner believes, what it asks again, what it says of a worker."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine, Sequence
from concurrent.futures import Future
from dataclasses import dataclass, field, replace
from threading import Event, Thread
from types import SimpleNamespace
from typing import Any

import pytest

from compiler.autotune.fleet import facts, host_lock, jobs
from compiler.autotune.fleet.cluster import BUILD, STRIKES, TIME, FleetJob, JobLost, Member
from compiler.autotune.fleet.judge import Judge, WorkerClaim, implausibility
from compiler.autotune.fleet.measurer import LOSSES, Fleet
from compiler.autotune.measure.builder import Built
from compiler.database.outcome import MEASURED, Outcome
from compiler.driver.reference.subject import Subject
from compiler.pipeline.loops import lower
from compiler.support.errors import InputError, TargetError
from compiler.types.machines import host, machine_facts
from tests.programs import matmul


def subject() -> Subject:
    return Subject(str(lower(matmul(name="f", output="matmul"))))


SUBJECT = subject()
OURS = facts.read_facts(facts.own_facts())
assert OURS is not None


def measured(cost: float) -> Outcome:
    return Outcome(MEASURED, (cost,), (1.0,))


WRONG, CRASH = Outcome("wrong", reason="out[0] is 2, expected 1"), Outcome("crash", reason="it ended")


def said(*outcomes: Outcome) -> list[WorkerClaim]:
    return [WorkerClaim(f"w{n}", f"w{n}", outcome) for n, outcome in enumerate(outcomes)]


# --- the judge ------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("outcome", [measured(1.0), WRONG, CRASH])
def test_a_first_best_and_a_failure_are_confirmed_where_they_can_be(outcome: Outcome) -> None:
    assert Judge().verdict(SUBJECT, said(outcome), can_ask=True) is None
    verdict = Judge().verdict(SUBJECT, said(outcome), can_ask=False)
    assert verdict is not None and verdict.outcome == outcome


def test_what_is_slower_than_the_best_counts_at_once() -> None:
    judge = Judge()
    judge.record_cost(SUBJECT, 1.0)
    assert judge.verdict(SUBJECT, said(measured(1.1)), can_ask=True) is not None
    assert judge.verdict(SUBJECT, said(measured(0.9)), can_ask=True) is None


def test_two_that_agree_count_together() -> None:
    verdict = Judge().verdict(SUBJECT, said(measured(1.0), measured(1.5)), can_ask=True)
    assert verdict is not None and sorted(verdict.outcome.seconds) == [1.0, 1.5] and not verdict.accused


@pytest.mark.parametrize(("failure", "is_lie"), [(WRONG, True), (CRASH, False)])
def test_a_failure_that_another_worker_refutes_is_the_workers(failure: Outcome, is_lie: bool) -> None:
    for pair, blamed in (((failure, measured(1.0)), "w0"), ((measured(1.0), failure), "w1")):
        verdict = Judge().verdict(SUBJECT, said(*pair), can_ask=True)
        assert verdict is not None and verdict.outcome == measured(1.0)
        assert list(verdict.liars if is_lie else verdict.accused) == [blamed]


def test_a_failure_that_two_have_seen_is_the_candidates() -> None:
    verdict = Judge().verdict(SUBJECT, said(WRONG, WRONG), can_ask=True)
    assert verdict is not None and verdict.outcome == WRONG and not verdict.liars


def test_of_two_times_the_longer_counts_and_a_third_decides() -> None:
    judge = Judge()
    assert judge.verdict(SUBJECT, said(measured(1.0), measured(0.1)), can_ask=True) is None
    two = judge.verdict(SUBJECT, said(measured(1.0), measured(0.1)), can_ask=False)
    assert two is not None and two.outcome == measured(1.0) and list(two.accused) == ["w1"]
    three = judge.verdict(SUBJECT, said(measured(1.0), measured(0.1), measured(1.1)), can_ask=True)
    assert three is not None and three.outcome.cost == pytest.approx(1.05) and list(three.accused) == ["w1"]


@pytest.mark.parametrize(
    ("outcome", "words"),
    [
        (Outcome(MEASURED, (1e-9,), (1e9,)), "no such machine does it"),
        (Outcome(MEASURED, (-1.0,), (1e9,)), "a call took -1 s"),
        (Outcome(MEASURED, (float("nan"),), (1e9,)), "a call took nan s"),
        (Outcome(MEASURED, (1e-3, 1e-3), (1e9, 0.0)), "a call took"),
        (Outcome(MEASURED), "nothing of the time"),
    ],
)
def test_what_no_machine_can_have_measured(outcome: Outcome, words: str) -> None:
    why = implausibility(outcome, SUBJECT, host())
    assert why is not None and words in why


def test_what_a_machine_can_have_measured() -> None:
    assert implausibility(Outcome(MEASURED, (1e-5,), (1e11,)), SUBJECT, host()) is None
    assert implausibility(WRONG, SUBJECT, host()) is None


# --- facts ----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"versions": {**OURS.versions, "strata": "0.0.1"}}, "it has strata 0.0.1, this is"),
        ({"versions": {**OURS.versions, "llvmlite": "0.1"}}, "it has llvmlite 0.1, this is"),
        ({"versions": {**OURS.versions, "python": "2.7.1"}}, "it has Python 2.7.1, this is"),
        ({"sources": "other"}, "its files of the package differ"),
    ],
)
def test_workers_of_another_version_are_refused(change: dict[str, Any], words: str) -> None:
    assert OURS is not None
    ours = replace(OURS, sources="ours")
    why = facts.difference(replace(ours, **change), ours)
    assert why is not None and words in why
    assert facts.difference(ours, ours) is None


@pytest.mark.parametrize("data", [None, "facts", {}, {"host": "a"}, {**facts.own_facts(), "machine": 1}])
def test_what_is_no_facts(data: object) -> None:
    assert facts.read_facts(data) is None


# --- the lock of a host ---------------------------------------------------------------------------------------------


def test_builds_share_a_host_and_what_is_timed_has_it_alone() -> None:
    timed = Event()

    def time() -> None:
        with host_lock.timing():
            timed.set()

    with host_lock.building(), host_lock.building():
        timing = Thread(target=time)
        timing.start()
        assert not timed.wait(0.2)
    timing.join(30)
    assert timed.is_set()


# --- trials ---------------------------------------------------------------------------------------------------------

Answer = Callable[[str], Outcome | None]


@dataclass
class Paper:
    """A cluster on paper: workers answer by functions of scripts; None is no answer, and the job is lost."""

    answers: dict[str, Answer]
    address: str = "tcp://paper"
    patience: float = 0.0
    is_connected: bool = True
    notes: list[str] = field(default_factory=list)
    asked: list[tuple[str, str]] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.members = {name: Member(name, {BUILD: 2.0, TIME: 1.0}, facts=OURS, refusal=None) for name in self.answers}

    @property
    def trusted(self) -> list[Member]:
        return [member for member in self.members.values() if member.refusal is None]

    def begin(self, work: Coroutine[Any, Any, Any]) -> Future[Any]:
        future: Future[Any] = Future()
        try:
            future.set_result(asyncio.run(work))
        except Exception as error:
            future.set_exception(error)
        return future

    def strike(self, member: Member, why: str, ends: bool = False) -> None:
        member.strikes += STRIKES if ends else 1
        self.notes.append(f"{member.address}: {why}")
        if member.strikes >= STRIKES:
            member.refusal = why

    def submit(self, kind: str, able: Sequence[Member], function: object, *given: Any, after: object = ()) -> FleetJob:
        """The first of the able does it; a job's future is its worker, and what it was given."""
        return FleetJob(SimpleNamespace(worker=able[0].address, function=function, given=given), {})

    async def result(self, job: FleetJob, more: float = 0.0) -> jobs.Answer:
        worker, (first, *_) = job.future.worker, job.future.given
        if job.future.function is jobs.compare:
            outcomes = [self.answers[worker](built.given[1]) for built in first]
            value: Any = outcomes if all(outcomes) else None
        else:
            script = first.given[1]
            self.asked.append((worker, script))
            value = self.answers[worker](script)
        if value is None:
            raise JobLost("its worker has left")
        return jobs.Answer(worker, value, getattr(first, "worker", worker))

    def close(self) -> None:
        return


def fleet(**answers: Answer) -> tuple[Fleet, Paper]:
    paper = Paper(answers)
    tuner = Fleet(paper.address, host(), paper.patience, paper)  # type: ignore[arg-type]
    tuner.switch_subject(SUBJECT)
    return tuner, paper


def honest(script: str) -> Outcome:
    return measured(float(script))


def test_every_script_has_its_outcome() -> None:
    tuner, _ = fleet(a=honest, b=honest)
    found = dict(tuner.measure(["3", "1", "2"]))
    assert {position: outcome.cost for position, outcome in found.items()} == {0: 3.0, 1: 1.0, 2: 2.0}


def test_a_worker_that_computes_wrongly_is_named_and_asked_no_more() -> None:
    tuner, paper = fleet(a=honest, b=lambda script: WRONG)
    found = dict(tuner.measure([str(n) for n in range(1, 9)]))
    assert all(outcome.ok for outcome in found.values()) and len(found) == 8
    assert paper.members["b"].refusal is not None and any("b: it said 'wrong'" in note for note in paper.notes)
    assert paper.members["a"].refusal is None


def test_a_worker_with_impossible_times_is_named_and_asked_no_more() -> None:
    tuner, paper = fleet(a=honest, b=lambda script: measured(1e-12))
    assert sorted(outcome.cost for _, outcome in tuner.measure(["1", "2", "3"])) == [1.0, 2.0, 3.0]
    assert paper.members["b"].refusal is not None and "no such machine" in paper.notes[0]


def test_a_worker_that_flatters_never_makes_the_best() -> None:
    tuner, paper = fleet(a=honest, b=lambda script: measured(float(script) / 10), c=honest)
    assert sorted(outcome.cost for _, outcome in tuner.measure([str(n) for n in range(9, 0, -1)]))[0] == 1.0
    assert any(note.startswith("b: it said 0.1 times the cost") for note in paper.notes)


def test_what_a_lost_worker_had_is_asked_again() -> None:
    lost = iter([None] * 3)
    tuner, _ = fleet(a=lambda script: next(lost, measured(1.0)))
    assert [outcome.cost for _, outcome in tuner.measure(["1"])] == [1.0]


def test_leaders_take_turns_on_a_worker_and_on_another_one_where_it_is_lost() -> None:
    lost = iter([None])
    tuner, _ = fleet(a=lambda script: next(lost, measured(float(script))))
    assert [outcome.cost for outcome in tuner.compare(["2", "1"], 3)] == [2.0, 1.0]
    tuner, _ = fleet(a=lambda script: None)
    with pytest.raises(TargetError, match="no worker of tcp://paper has compared"):
        tuner.compare(["1"], 3)


def test_a_candidate_that_is_always_lost_is_to_blame() -> None:
    tuner, paper = fleet(a=lambda script: None)
    ((_, outcome),) = tuner.measure(["1"])
    assert outcome.kind == "crash" and f"lost {LOSSES} times" in outcome.reason and len(paper.asked) == LOSSES + 1


def test_without_a_worker_it_ends_in_a_sentence() -> None:
    tuner, paper = fleet(a=honest)
    paper.members["a"].refusal = "it has strata 0.0.1, this is 0.2"
    with pytest.raises(TargetError, match=r"no worker of tcp://paper measures for .*: a on .*: it has strata 0.0.1"):
        list(tuner.measure(["1"]))


def test_a_worker_of_another_model_builds_and_does_not_time() -> None:
    tuner, paper = fleet(a=honest, b=honest)
    assert OURS is not None
    paper.members["b"].facts = replace(OURS, machine=replace(OURS.machine, name="other"))
    assert [outcome.cost for _, outcome in tuner.measure(["1", "2"])]
    assert {worker for worker, _ in paper.asked} == {"a"}


def test_a_program_that_every_worker_refuses_is_refused() -> None:
    tuner, _ = fleet(a=lambda script: jobs.Refused("the program has no outputs"))  # type: ignore[arg-type,return-value]
    with pytest.raises(InputError, match="the program has no outputs"):
        list(tuner.measure(["1"]))


def test_a_station_builds_for_another_machine_and_times_for_this_one() -> None:
    other = replace(host(), name="other", features="+sse4.2", cpu="x86-64-v2", vector_bits=128, registers=16)
    station = jobs.worker_processes()
    try:
        script = str(_written())
        built = station.build(SUBJECT, script, machine_facts(other))
        again = station.build(SUBJECT, script, machine_facts(host()))
        assert isinstance(built, Built) and isinstance(again, Built)
        assert built.artefact.call.object != again.artefact.call.object and station.time(SUBJECT, again).ok
        assert [outcome.ok for outcome in station.compare(SUBJECT, [again], 2)] == [True]
    finally:
        station.close()
        jobs.worker_processes.cache_clear()


def _written() -> object:
    from compiler.schedule import Schedule

    return Schedule(SUBJECT.module).script
