"""Units compiled in several processes: the same as in one, whatever happens to the others."""

from __future__ import annotations

import os
import signal
from dataclasses import replace

import pytest

import compiler
from compiler import te
from compiler.dialects.functions import find_function
from compiler.driver.units import compile as unit_compile
from compiler.driver.units import llvm, pool
from compiler.driver.units.compile import CompileJob, LoweredUnit, compile_unit, key_text, lower_unit
from compiler.driver.units.unit import Unit, UnitKey
from compiler.schedule import Schedule
from compiler.support import processes
from compiler.support.errors import ScheduleError, TargetError
from compiler.support.worker_pool import MAX_FAILED_STARTS


def jobs(count: int = 4) -> list[CompileJob]:
    collected = []
    for n in range(count):
        a = te.placeholder((8, 8 + n), name="A")
        text = key_text(find_function(te.function("f", [a], te.nn.softmax(a)).module))
        collected.append(CompileJob(UnitKey(text, None, (), (), "contract", 1, "here"), f"group_{n}"))
    return collected


def compiled(jobs: list[CompileJob], most: int, seconds: float = 0.0) -> list[Unit]:
    with pool.Team(most) as team:
        team.expect(seconds)
        return pool.compiled(jobs, team)


def same(found: list[Unit], expected: list[Unit]) -> bool:
    return [replace(u, seconds=0.0) for u in found] == [replace(u, seconds=0.0) for u in expected]


@pytest.fixture(scope="module")
def alone() -> list[Unit]:
    return [compile_unit(job) for job in jobs()]


@pytest.fixture
def started(monkeypatch: pytest.MonkeyPatch) -> list[processes.StartedProcess]:
    """The processes that a pool starts, which it does at once."""
    collected: list[processes.StartedProcess] = []
    start = processes.start

    def noted(*args: object, **kwargs: object) -> processes.StartedProcess:
        collected.append(start(*args, **kwargs))  # type: ignore[arg-type]
        return collected[-1]

    monkeypatch.setattr(processes, "start", noted)
    monkeypatch.setattr(pool, "PAYS", 0.0)
    return collected


def of_a_team_of_two(jobs: list[CompileJob]) -> list[Unit]:
    """Units of which another process does LLVM's part; lowering waits until it can."""
    with pool.Team(2) as team:
        team.expect(2 * pool.LLVM_PAYS)
        assert team.llvm is not None
        while team.llvm.is_starting:
            team.llvm.exchange(1.0)
        return pool.compiled(jobs, team)


def test_another_process_does_what_llvm_does_here(
    started: list[processes.StartedProcess], alone: list[Unit], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(unit_compile, "object_codes", lambda *_: pytest.fail("done here"))
    assert same(of_a_team_of_two(jobs()[: llvm.AHEAD]), alone[: llvm.AHEAD])
    assert len(started) == 1 and started[0].process.poll() is not None


def test_what_waits_when_all_is_lowered_is_shared(
    started: list[processes.StartedProcess], alone: list[Unit], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(llvm, "AHEAD", 1)
    assert same(of_a_team_of_two([*jobs(), *jobs()]), [*alone, *alone])


def test_small_programs_start_no_process_for_llvm(alone: list[Unit], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(processes, "start", None)
    assert same(compiled(jobs(), 2, pool.LLVM_PAYS / 2), alone)
    assert same(compiled(jobs(), 1, 2 * pool.LLVM_PAYS), alone)


def test_what_llvm_refuses_is_refused_here(
    started: list[processes.StartedProcess], monkeypatch: pytest.MonkeyPatch
) -> None:
    def wrong(job: CompileJob) -> LoweredUnit:
        lowered = lower_unit(job)
        codes = [replace(code, text=f"wrong {code.text}") for code in lowered.codes]
        return replace(lowered, codes=codes) if job.name == "group_1" else lowered

    monkeypatch.setattr(pool, "lower_unit", wrong)
    with pytest.raises(TargetError) as here:
        wrong(jobs()[1]).compiled()
    with pytest.raises(TargetError) as beside:
        of_a_team_of_two(jobs())
    assert str(beside.value) == str(here.value)
    assert len(started) == 1 and started[0].process.poll() is not None


@pytest.mark.parametrize("sent", [signal.SIGKILL, signal.SIGSTOP])
def test_what_a_dead_or_stopped_process_had_llvm_does_here(
    sent: signal.Signals, started: list[processes.StartedProcess], alone: list[Unit], monkeypatch: pytest.MonkeyPatch
) -> None:
    def ending(job: CompileJob) -> LoweredUnit:
        if job.name == "group_2":
            os.kill(started[0].process.pid, sent)
        return lower_unit(job)

    monkeypatch.setattr(pool, "lower_unit", ending)
    assert same(of_a_team_of_two(jobs()), alone)
    assert started[0].process.poll() is not None


def test_an_interruption_ends_the_process_for_llvm(
    started: list[processes.StartedProcess], monkeypatch: pytest.MonkeyPatch
) -> None:
    def interrupted(job: CompileJob) -> LoweredUnit:
        if job.name == "group_2":
            raise KeyboardInterrupt
        return lower_unit(job)

    monkeypatch.setattr(pool, "lower_unit", interrupted)
    with pytest.raises(KeyboardInterrupt):
        of_a_team_of_two(jobs())
    assert started[0].process.poll() is not None


def test_several_processes_compile_what_one_does(started: list[processes.StartedProcess], alone: list[Unit]) -> None:
    assert same(compiled(jobs(), 3), alone)
    assert len(started) == 2 and all(s.process.poll() is not None for s in started)


def test_a_difference_is_seen(alone: list[Unit]) -> None:
    second = replace(alone[0], call=alone[1].call)
    assert not same([second, *alone[1:]], alone)


@pytest.mark.parametrize(("seconds", "pays"), [(0.2, False), (2.0, True)])
def test_small_programs_start_no_process(
    seconds: float, pays: bool, monkeypatch: pytest.MonkeyPatch, alone: list[Unit]
) -> None:
    units, now = {job.name: unit for job, unit in zip(jobs(), alone, strict=True)}, [0.0]

    def taking(job: CompileJob) -> Unit:
        now[0] += seconds
        return units[job.name]

    monkeypatch.setattr(pool, "compile_unit", taking)
    monkeypatch.setattr(pool, "perf_counter", lambda: now[0])
    monkeypatch.setattr(processes, "start", None)
    if pays:
        with pytest.raises(TypeError):
            compiled(jobs(), 3)
    else:
        assert same(compiled(jobs(), 3), alone)


def test_many_units_start_a_process_before_any_is_timed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(pool, "compile_unit", lambda _: pytest.fail("compiled first"))
    monkeypatch.setattr(processes, "start", None)
    with pytest.raises(TypeError):
        compiled(jobs() * round(1 + pool.PAYS / pool.LEAST / 4), 3)


def test_one_process_is_this_one(monkeypatch: pytest.MonkeyPatch, alone: list[Unit]) -> None:
    monkeypatch.setattr(processes, "start", None)
    monkeypatch.setattr(pool, "PAYS", 0.0)
    assert same(compiled(jobs(), 1), alone)


def test_what_a_dead_process_had_is_compiled_here(
    started: list[processes.StartedProcess], alone: list[Unit], monkeypatch: pytest.MonkeyPatch
) -> None:
    start = processes.start

    def killed(*args: object, **kwargs: object) -> processes.StartedProcess:
        actual = start(*args, **kwargs)  # type: ignore[arg-type]
        os.kill(actual.process.pid, signal.SIGKILL)
        return actual

    monkeypatch.setattr(processes, "start", killed)
    assert same(compiled(jobs(), 3), alone)
    assert 2 <= len(started) <= 2 * MAX_FAILED_STARTS


def test_an_interruption_leaves_no_process(
    started: list[processes.StartedProcess], monkeypatch: pytest.MonkeyPatch
) -> None:
    def interrupted(job: CompileJob) -> Unit:
        raise KeyboardInterrupt

    monkeypatch.setattr(pool, "compile_unit", interrupted)
    with pytest.raises(KeyboardInterrupt):
        compiled(jobs(), 3)
    assert len(started) == 2 and all(s.process.poll() is not None for s in started)


def test_a_refusal_is_raised_here(started: list[processes.StartedProcess]) -> None:
    a = te.placeholder((8, 8), name="A")
    second = Schedule(compiler.lower(te.function("f", [a], te.nn.exp(a, name="another"))))
    second.vectorize(second.get_loops(second.get_block("another"))[1])
    wrong = [replace(job, key=replace(job.key, script=str(second.script))) for job in jobs(2)]
    with pytest.raises(ScheduleError, match="another"):
        compiled([*jobs(3), *wrong], 3)
    assert all(s.process.poll() is not None for s in started)
