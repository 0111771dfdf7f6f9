"""The finalists of groups inside the whole program: which are chosen, that a choice lasts, that builds honour it."""

from __future__ import annotations

import time
import warnings
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from math import inf
from pathlib import Path

import numpy as np
import pytest

import compiler
from compiler.autotune.deadline import TimeIsUp
from compiler.autotune.display.in_place import GroupInPlace, InPlace
from compiler.autotune.display.progress import Progress
from compiler.autotune.measure.turns import LEAST, MOST, ProfiledProgram, RunTimes, Turns, run_in_turns
from compiler.autotune.options import TuningOptions
from compiler.autotune.task import SearchTask
from compiler.autotune.tasks import in_place
from compiler.autotune.tasks.in_place import ComparisonSetup, InPlaceComparison, comparison_seconds
from compiler.autotune.tuner import TuningProblem
from compiler.database import Database, Record
from compiler.database.outcome import MEASURED, Outcome
from compiler.driver.building import STAYS
from compiler.driver.parts.partition import Partition
from compiler.driver.units.unit import Scheduled
from compiler.pipeline.source import parse
from tests.unit.autotune.test_tuner import Pretend, luck, path, workers
from tests.unit.autotune.test_whole_program import NAMES, task, tuned
from tests.whole import CONSTANTS, M, N, whole

__all__ = ["path", "workers"]
CALLS = (NAMES[0], NAMES[0], NAMES[1], NAMES[2])


@dataclass
class Timed:
    """A program whose calls take these seconds; `runs` notes whose turn it was."""

    name: str
    calls: Sequence[float]
    runs: list[str] = field(default_factory=list)
    busy: Sequence[int] = ()
    extra: float = 0.0

    def run(self) -> RunTimes:
        self.runs.append(self.name)
        return RunTimes(sum(self.calls) + self.extra, np.array(self.calls), self.runs.count(self.name) not in self.busy)


# --- turns ----------------------------------------------------------------------------------------------------------


def test_programs_take_turns() -> None:
    runs = list[str]()
    first, second = Timed("a", (2.0, 1.0), runs), Timed("b", (1.0, 3.0), runs)
    turns = run_in_turns(first, second, 0.0)
    assert runs[:8] == ["a", "b", "a", "b", "b", "a", "a", "b"] and len(turns.default) == len(turns.tuned) == LEAST
    assert turns.whole.ratio == 4 / 3 and turns.of([0]).ratio == 0.5 and turns.of([0, 1]).seconds == (3.0, 4.0)
    assert len(run_in_turns(first, second, inf).default) == MOST


def test_rounds_are_compared_one_by_one() -> None:
    """Medians of each would say that the second, which takes twice as long in a round, is faster."""
    first, second = ([RunTimes(s, np.array([s])) for s in seconds] for seconds in ((1.0, 9.0, 9.0), (2.0, 2.0, 18.0)))
    assert Turns(first, second).whole.ratio == 2.0


def test_disturbed_rounds_do_not_count_where_there_are_others() -> None:
    for seconds, count in ((inf, MOST - 2), (0.0, LEAST)):
        first, second = Timed("a", (1.0,)), Timed("b", (1.0,), busy=(3, 4))
        assert len(run_in_turns(first, second, seconds).default) == count, "all where there are too few others"


def test_a_call_that_the_clock_does_not_see_has_a_time() -> None:
    turns = run_in_turns(Timed("a", (0.0, 1.0)), Timed("b", (0.0, 1.0)), 0.0)
    assert turns.of([0]).ratio == pytest.approx(1.0) and all(second > 0 for second in turns.of([0]).default)


def test_a_program_is_timed_call_by_call() -> None:
    finals = task()._finals(task()._whole)  # type: ignore[arg-type]
    assert tuple(finals.calls) == CALLS and finals.calls_of(NAMES[0]) == [0, 1]
    program = finals.built({name: finals.source(name, None) for name in NAMES})
    assert isinstance(program, ProfiledProgram)
    for _ in range(2):
        begun = time.perf_counter()
        run = program.run()
        assert run.calls.shape == (4,) and (run.calls > 0).all() and run.whole > 0
        assert run.calls.sum() < time.perf_counter() - begun
        assert list(program._profile[:, 1]) == [0, 1, 1, 1, 1]


# --- choices --------------------------------------------------------------------------------------------------------


def problems() -> dict[str, TuningProblem]:
    return {group.name: group._problem(TuningOptions()) for group in task().groups}


def script(name: str) -> str:
    """A script of a group's space that is not its default."""
    group = task().group(name)
    if name == NAMES[0]:
        return group.space.script(group.space.defaults[0])
    return group._problem(TuningOptions()).written()


def known(path: Path, names: Sequence[str] = NAMES) -> None:
    """A database with a record of each group."""
    with Database(path) as database:
        for group in (task().group(name) for name in names):
            outcome = Outcome(MEASURED, (1e-3,), (1.0,))
            database.add(Record(group.key, group.name, group.program, script(group.name), outcome))


def finals(times: Mapping[str, float], together: float = 0.0) -> tuple[ComparisonSetup, list[list[str]]]:
    """A set-up in which a call takes 1 by default and `times` by a record, and each build with fewer records than there
    are `together` more; and which groups each build has records of."""
    built = list[list[str]]()

    def source(name: str, record: Record | None) -> Scheduled:
        default = Scheduled(f"// the default\n{script(name)}", "model")
        return default if record is None else Scheduled(record.script, "record")

    def program(sources: Mapping[str, Scheduled]) -> Timed:
        built.append([name for name, scheduled in sources.items() if scheduled.origin == "record"])
        calls = [times.get(name, 1.0) if name in built[-1] else 1.0 for name in CALLS]
        return Timed("", calls, extra=together if 0 < len(built[-1]) < len(times) else 0.0)

    return ComparisonSetup("net", CALLS, inside(), source, program), built


def inside() -> str:
    return task()._parts.program_key(task()._selection.parts)


def held(path: Path, stated: ComparisonSetup) -> InPlace | None:
    with Database(path) as database:
        *_, last = (
            None,
            *InPlaceComparison(stated, problems(), database, "run", lambda: 0.0, lambda words: None).measure(),
        )
    return last


def choices(path: Path) -> dict[str, bool | None]:
    """By group whether its record was chosen; None where nothing was."""
    with Database(path) as database:
        chosen = {name: database.chosen(task().group(name).key, inside()) for name in NAMES}
    return {name: None if r is None or not r.key.whole else not r.default for name, r in chosen.items()}


def test_what_is_faster_inside_is_chosen(path: Path) -> None:
    """A gain of less than 3% is none."""
    known(path)
    stated, built = finals({NAMES[0]: 0.5, NAMES[1]: 0.98, NAMES[2]: 1.2})
    actual = held(path, stated)
    assert built == [[], NAMES, NAMES[:1]] and choices(path) == dict(zip(NAMES, (True, False, False), strict=True))
    assert actual is not None and (actual.default, actual.tuned, actual.chosen) == (4.0, pytest.approx(3.18), 3.0)
    assert list(actual.sentences()) == [
        "net as a whole: default 4 s, tuned 3.18 s, chosen 3 s",
        "2 of 3 groups stay with the default, since their records do not take 3% less time inside: "
        "net.group_1 (0.98), net.group_2 (1.20)",
    ]
    assert actual.data()["chosen_seconds"] == 3.0 and [g.is_tuned for g in actual.groups] == [True, False, False]


def test_all_or_none_may_be_chosen(path: Path) -> None:
    known(path)
    stated, built = finals(dict.fromkeys(NAMES, 0.5))
    actual = held(path, stated)
    assert actual is not None and actual.chosen == actual.tuned == 2.0 and built == [[], NAMES], "it is not built again"
    assert list(actual.sentences()) == ["net as a whole: default 4 s, tuned 2 s, chosen 2 s"]
    assert choices(path) == dict.fromkeys(NAMES, True)
    stated, built = finals(dict.fromkeys(NAMES, 1.5))
    actual = held(path, stated)
    assert actual is not None and actual.chosen == actual.default == 4.0 and actual.is_faster and built == [[], NAMES]
    assert choices(path) == dict.fromkeys(NAMES, False), "the last choice counts"


def test_the_default_stays_where_the_chosen_together_are_not_faster(path: Path) -> None:
    known(path)
    stated, _ = finals({NAMES[0]: 0.5, NAMES[1]: 0.5, NAMES[2]: 1.5}, together=2.0)
    actual = held(path, stated)
    assert actual is not None and actual.chosen == actual.default and not actual.is_faster
    assert not any(group.is_tuned for group in actual.groups)
    assert [*actual.sentences()][1].startswith("all groups stay with the default: ")
    assert choices(path) == dict.fromkeys(NAMES, False)


def test_a_record_of_the_default_is_no_other_schedule(path: Path) -> None:
    known(path)
    stated, built = finals({NAMES[0]: 0.5, NAMES[1]: 0.5, NAMES[2]: 0.5})
    same = Scheduled(script(NAMES[0]), "model")
    source = stated.source
    stated = replace(stated, source=lambda n, r: same if n == NAMES[0] and r is None else source(n, r))
    actual = held(path, stated)
    assert built == [[], NAMES[1:]] and actual is not None and len([*actual.sentences()]) == 1
    assert choices(path) == dict(zip(NAMES, (False, True, True), strict=True))


def test_groups_without_a_usable_record_are_not_compared(path: Path) -> None:
    known(path, NAMES[:2])
    stated, built = finals(dict.fromkeys(NAMES, 0.5))
    assert held(path, stated) is not None and built == [[], NAMES[:2]]
    assert choices(path) == dict(zip(NAMES, (True, True, None), strict=True))
    refused = replace(stated, source=lambda name, record: Scheduled(None, "model"))
    assert held(path, refused) is None


def test_a_choice_is_of_its_program(path: Path) -> None:
    """The same groups in another order are another program; the same under other names is not."""
    known(path)
    held(path, finals(dict.fromkeys(NAMES, 1.5))[0])
    second = SearchTask(whole("other"), threads=1, constants=CONSTANTS)
    assert second._parts.program_key(second._selection.parts) == inside()
    x = f"tensor<{M}x{N}xf32>"
    first, last = f"func.call @group_1(%X, %2) : ({x}, {x})", f"func.call @group_2(%3) : ({x})"
    text = whole().replace(first, "FIRST").replace(last, first.replace("%2", "%3"))
    third = SearchTask(text.replace("FIRST", last.replace("%3", "%2")), threads=1, constants=CONSTANTS)
    assert {group.key for group in third.groups} == {group.key for group in task().groups}
    assert third._parts.program_key(third._selection.parts) != inside()
    with Database(path) as database:
        chosen = database.chosen(task().group(NAMES[1]).key, "another")
        assert chosen is not None and not chosen.key.whole and chosen == database.best(task().group(NAMES[1]).key)


# --- builds ---------------------------------------------------------------------------------------------------------


def test_builds_honour_what_was_chosen(path: Path) -> None:
    known(path)
    held(path, finals({NAMES[0]: 0.5, NAMES[1]: 1.5, NAMES[2]: 1.5})[0])
    random = np.random.default_rng(0)
    x, w, b, g = (random.uniform(-1, 1, s).astype(np.float32) for s in ((M, N), (N, N), (N,), (N,)))
    given = {"W": w, "b": b, "g": g}
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        kernels = [task().apply_best(path, given), compiler.build(whole(), threads=1, constants=given, schedule=path)]
    default = {g.name: (g.source, g.verdict) for g in compiler.build(whole(), threads=1, constants=given).groups}
    for kernel in kernels:
        groups = {group.name: group for group in kernel.groups}
        assert groups["group_0"].source == "record"
        for name in ("group_1", "group_2"):
            source, verdict = default[name]
            assert groups[name].source == source
            assert groups[name].verdict == "; ".join(filter(None, (verdict, STAYS)))
        np.testing.assert_allclose(kernel(x), np.maximum(x + (x @ w + np.exp(g)) @ w + b, 0), rtol=1e-4, atol=1e-5)


def test_a_chosen_script_that_fails_later_is_not_used(path: Path) -> None:
    known(path)
    held(path, finals(dict.fromkeys(NAMES, 0.5))[0])
    group = task().group(NAMES[1])
    with Database(path) as database:
        database.add(Record(group.key, group.name, group.program, script(NAMES[1]), Outcome("wrong", reason="late")))
        assert database.chosen(group.key, inside()) is None and database.best(group.key) is None


# --- runs -----------------------------------------------------------------------------------------------------------


def test_a_run_compares_at_its_end(
    workers: Callable[..., Pretend], path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Once: a run that measures nothing has nothing to compare, unless nothing was chosen for this program."""
    defaults = {group.space.script(group.space.defaults[0]) for group in task().groups}
    workers(cost=lambda script: 3.0 if script in defaults else luck(script))
    seen = list[InPlace | None]()

    def note(progress: Progress) -> None:
        seen.append(progress.in_place)

    tuned(task(), note, trials=4, database=path)
    assert seen[-1] is not None and seen[-1].name == "net" and [g.name for g in seen[-1].groups] == NAMES
    assert choices(path) == dict.fromkeys(NAMES, True), "the turns of tests say so"
    with Database(path) as database:
        summaries = database.keys()
        assert not any(summary.key.whole for summary in summaries)
        count = len(database.records())
    tuned(task(), note, trials=4, database=path)
    with Database(path) as database:
        assert seen[-1] is None and len(database.records()) == count
    workers(cost=lambda script: 1e3)
    best = tuned(task(), note, trials=6, database=path)
    assert seen[-1] is not None and best == task().best(path), "what was measured is compared, however slow"
    group = task().group(NAMES[1])
    with Database(path) as database:
        better = Record(group.key, group.name, group.program, "// better", Outcome(MEASURED, (1e-9,), (1.0,)))
        database.add(better)
    tuned(task(), note, trials=6, database=path)
    assert seen[-1] is not None and [g.name for g in seen[-1].groups] == [NAMES[0], NAMES[2]], "it does not apply"
    monkeypatch.setattr(Partition, "program_key", lambda self, parts: "another")
    tuned(task(), note, trials=4, database=path)
    assert seen[-1] is not None


def test_a_run_whose_time_is_over_chooses_nothing(
    workers: Callable[..., Pretend], path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    workers()

    def late(*given: object) -> object:
        raise TimeIsUp

    monkeypatch.setattr(in_place, "run_in_turns", late)
    seen = list[Progress]()
    assert list(tuned(task(), seen.append, trials=4, database=path)) == NAMES
    assert seen[-1].in_place is None and seen[-1].phase == "done" and choices(path) == dict.fromkeys(NAMES)


def test_a_choice_is_kept_before_the_whole_is_timed(path: Path) -> None:
    """A run that ends then has chosen, group by group."""
    known(path)
    stated, built = finals({NAMES[0]: 0.5, NAMES[1]: 1.5, NAMES[2]: 1.5})
    with Database(path) as database:
        first = next(InPlaceComparison(stated, problems(), database, "run", lambda: 0.0, lambda words: None).measure())
    assert next(first.sentences()).endswith("tuned 4 s, what was chosen was not timed") and len(built) == 2
    assert choices(path) == dict(zip(NAMES, (True, False, False), strict=True))


def test_what_is_kept_of_the_seconds() -> None:
    """A tenth, or what builds take, but no more than a quarter."""
    assert (
        comparison_seconds(300.0, 4.0) == 30.0
        and comparison_seconds(100.0, 5.0) == 15.0
        and comparison_seconds(20.0, 9.0) == 5.0
    )


def test_the_sentences_name_groups() -> None:
    group = GroupInPlace("net.a", 1.0, 1.1, 1.1, is_tuned=False)
    assert [*InPlace("net", 1.0, 1.1, 1.0, (group,)).sentences()][1].startswith("1 of 1 group stay with the default")
    assert len([*InPlace("net", 1.0, 1.0, 1.0, (replace(group, differs=False),)).sentences()]) == 1


def test_the_default_is_kept_as_a_script(path: Path) -> None:
    """Records replay by themselves, those of a default that is the program as it is written among them."""
    known(path, NAMES[:1])
    stated, source = finals({NAMES[0]: 0.5})[0], finals({})[0].source
    held(path, replace(stated, source=lambda n, r: source(n, r) if r is not None else Scheduled()))
    with Database(path) as database:
        records = [record for record in database.records() if record.key.whole]
    assert [record.default for record in records] == [True, False]
    assert records[0].script == problems()[NAMES[0]].written()
    for record in records:
        parse(record.script, "the script")
        assert record.outcome.cost == (1.0 if record.default else 0.5) and record.run == "run"


def test_a_default_is_recorded_by_its_recipes() -> None:
    group = task().group(NAMES[0])
    problem, steps = group._problem(TuningOptions()), group.space.script(group.space.defaults[0])
    recorded = in_place._with_recipes(problem, steps)
    assert recorded == group.space.script_with_includes(group.space.defaults[0])
    assert ("sched.include" in recorded) == bool(group.space.sketches[0].inclusions)
    assert in_place._with_recipes(problem, f"// by hand\n{steps}") == f"// by hand\n{steps}"
