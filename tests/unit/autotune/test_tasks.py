"""Tasks that share one budget: who has the next turn, what a log says of it, and how the tasks are shown."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import replace
from math import exp
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from benchmarks.allocation import Point, read_turns, replay
from compiler import te
from compiler.autotune.display.operator import operator
from compiler.autotune.display.progress import Progress
from compiler.autotune.display.task_table import HEADINGS, TaskTable
from compiler.autotune.options import TuningOptions
from compiler.autotune.task import SearchTask
from compiler.autotune.tasks.allocation import ALLOCATIONS, FAILING, HABIT, by_gain, expected_saving, round_robin
from compiler.autotune.tasks.task_state import USUAL, TaskState, Turn
from compiler.database import Database
from compiler.database.outcome import MEASURED, Outcome
from compiler.dialects.functions import find_function
from compiler.pipeline.loops import lower
from compiler.program.read import read
from compiler.support.errors import InputError
from tests.unit.autotune.test_tuner import Pretend, clock, path, workers
from tests.whole import CONSTANTS, whole

__all__ = ["clock", "path", "workers"]


def turn(task: str = "a", promise: float | None = 0.1, before: float | None = 1.0, after: float | None = 0.9) -> Turn:
    return Turn(task, 2, promise, before, after, 8, 4.0)


# --- who has the next turn ------------------------------------------------------------------------------------------


def test_what_is_unknown_comes_first_and_the_largest_of_it() -> None:
    accounts = {
        "known": TaskState(9, seconds=1.0, promise=1.0),
        "small": TaskState(1, estimate=1.0),
        "large": TaskState(1, 9.0),
    }
    assert by_gain(accounts, accounts) == "large"
    accounts["large"].turns = 1
    assert by_gain(accounts, accounts) == "small", "one that failed waits for those that were not tried"
    accounts["small"].turns = accounts["large"].turns = FAILING
    assert by_gain(accounts, accounts) == "known", "and is given up"


def test_a_turn_goes_where_it_saves_most_for_its_price() -> None:
    often = TaskState(10, seconds=1e-3, promise=0.1, count=8, took=8.0, turns=1)
    accounts = {"often": often, "slow": replace(often, weight=1, seconds=5e-3, promise=0.1)}
    assert by_gain(accounts, accounts) == "often"
    accounts["often"] = replace(often, took=80.0)
    assert by_gain(accounts, accounts) == "often"
    assert by_gain(accounts, accounts, timed=True) == "slow", "its trials are ten times as cheap"
    accounts["often"] = replace(often, promise=None)
    assert expected_saving(accounts["often"], accounts) > expected_saving(accounts["slow"], accounts), (
        "where no model says, hope"
    )


def test_who_breaks_promises_is_trusted_less() -> None:
    honest = TaskState(1, seconds=1.0, promise=0.1, promised=1.0, gained=1.0)
    broken = replace(honest, gained=0.0)
    every = {"honest": honest, "broken": broken}
    assert expected_saving(honest, every) - usual(honest) > 3 * (expected_saving(broken, every) - usual(broken)) > 0
    assert expected_saving(honest, every) - usual(honest) <= 0.1, "more than is promised is not expected"


def usual(account: TaskState) -> float:
    """What a turn of a task saves by what its turns usually gain."""
    return HABIT * account.habit * account.total_seconds


def test_who_gained_of_late_has_the_next_turn() -> None:
    accounts = {"gained": TaskState(1), "idle": TaskState(1)}
    for _ in range(3):
        for name, after in (("gained", 0.9), ("idle", 1.0)):
            accounts[name].add(Turn(name, 1, 0.01, 1.0, after, 8, 1.0))
    for account in accounts.values():
        account.seconds = 1.0
    assert accounts["gained"].habit > USUAL > accounts["idle"].habit > 0
    assert by_gain(accounts, accounts) == "gained"


def test_little_promise_ends_the_run() -> None:
    idle = TaskState(1, seconds=1.0, promise=1e-6, turns=2, habit=1e-5)
    done = {"a": idle, "b": replace(idle, promise=0.0)}
    assert by_gain(done, done) is None and round_robin(done, done) == "a"
    assert by_gain({}, done) is None and round_robin({}, done) is None


def test_in_turns_the_fewest_turns_come_first() -> None:
    accounts = {"a": TaskState(1, turns=2), "b": TaskState(1, turns=1), "c": TaskState(1, turns=1)}
    assert round_robin(accounts, accounts) == "b"


# --- the log and its replay -----------------------------------------------------------------------------------------


def test_a_turn_is_a_line() -> None:
    turns = [turn(), turn("b", None, None, None)]
    assert list(read_turns(turn.line() for turn in turns)) == turns
    assert turns[0].gained == pytest.approx(0.1053605) and turns[1].gained == 0.0
    assert turn(before=0.9, after=1.0).gained == 0.0, "measured again, the best was slower than thought"
    for line in ("{}", "7", "nothing", '{"task": 1}', turn(before=1.0, after=0.0).line(), turn().line()[:-2]):
        with pytest.raises(InputError, match=r"log\.turns:2: this is no turn of a task"):
            list(read_turns([turn().line(), line], "log.turns"))


def test_a_log_judges_every_rule() -> None:
    """Task `a` gains nothing, `b` a third a turn, as its model promises: it is better to go on with `b`."""
    turns = [Turn(name, 1, None, None, 1.0, 4, 1.0) for name in "ab"]
    for number in range(4):
        best = exp(-0.4 * number)
        turns += [Turn("a", 1, 0.001, 1.0, 1.0, 8, 1.0), Turn("b", 1, 0.4, best, best * exp(-0.4), 8, 1.0)]
    gain, each = (list(replay(turns, ALLOCATIONS[name])) for name in ("gain", "turns"))
    assert gain[0] == Point(4, 1.0, None) and gain[1] == Point(8, 2.0, 2.0)
    assert [point.seconds for point in gain[2:5]] == pytest.approx([1 + exp(-0.4 * n) for n in (1, 2, 3)])
    assert len(each) == len(turns) and each[-1].seconds == gain[-1].seconds
    assert gain[3].seconds is not None and each[3].seconds is not None and gain[3].seconds < each[3].seconds


# --- runs -----------------------------------------------------------------------------------------------------------


def tuned(path: Path, **stated: Any) -> None:
    SearchTask(whole(), threads=1, constants=CONSTANTS).tune(TuningOptions(database=path, **stated))


def test_turns_go_to_the_group_that_takes_the_time(workers: Callable[..., Pretend], path: Path, tmp_path: Path) -> None:
    """One product is called twice, and the other groups have two candidates each."""
    workers()
    tuned(path, trials=14, log=tmp_path / "log")
    turns = list(read_turns((tmp_path / "log.turns").read_text().splitlines()))
    assert sorted(turn.task for turn in turns[:3]) == ["net.group_0", "net.group_1", "net.group_2"]
    assert [turn.count for turn in turns[:3]] == [2, 2, 2] and turns[0].weight == 2 and turns[0].before is None
    assert {turn.task for turn in turns[3:]} == {"net.group_0"} and sum(turn.count for turn in turns) == 14
    assert [turn.before for turn in turns[4:]] == [turn.after for turn in turns[3:-1]]


def test_groups_may_take_turns(workers: Callable[..., Pretend], path: Path, tmp_path: Path) -> None:
    workers()
    two = te.placeholder((8, 8), name="A"), te.placeholder((8, 9), name="B")
    first = te.nn.tanh(te.nn.matmul(*two))
    what = SearchTask(te.function("two", [*two], [te.nn.relu(te.nn.matmul(two[0], first))]), threads=1)
    what.tune(TuningOptions(trials=24, database=path, allocation="turns", log=tmp_path / "log", batch=4))
    turns = [turn.task for turn in read_turns((tmp_path / "log.turns").read_text().splitlines())]
    assert len(what.groups) == 2 and turns == turns[:2] * 3
    with pytest.raises(InputError, match="the tuning option allocation is 'fair', expected gain or turns"):
        TuningOptions(allocation="fair")


def test_a_short_first_turn_loses_no_default(workers: Callable[..., Pretend], path: Path, tmp_path: Path) -> None:
    """What a short turn does not measure is not chosen in it: all that is chosen is measured."""
    workers()
    tuned(path, trials=14, log=tmp_path / "log")
    calls = [json.loads(line) for line in (tmp_path / "log.group_0").read_text().splitlines()]
    chosen = [(sketch, tuple(values)) for call in calls for sketch, values, *_ in call.get("gave", [])]
    measured = {(call["update"][0], tuple(call["update"][1])) for call in calls if "update" in call}
    assert len(chosen) == 10 and set(chosen) == measured


def test_what_fails_is_tried_again_and_given_up(workers: Callable[..., Pretend], path: Path) -> None:
    workers(fails=lambda script, time: "crash" if "matmul" in script or '"mm"' in script else None)
    tuned(path, trials=200)
    with Database(path, create=False) as database:
        failed = [record for record in database.records() if record.name == "net.group_0"]
    assert 8 < len(failed) < 8 * (FAILING + 1), "not two hundred of what always fails"


def test_where_the_time_ends_the_turns_end(workers: Callable[..., Pretend], path: Path, clock: list[float]) -> None:
    pretend = workers(seconds=1.0, clock=clock)
    tuned(path, trials=None, seconds=20.0)
    assert clock[0] <= 22.0 and 12 <= len(pretend.tried) <= 20


# --- what is shown --------------------------------------------------------------------------------------------------


def progress(name: str, seconds: float | None = None, trials: int = 0, promise: float | None = None) -> Progress:
    best = None if seconds is None else Outcome(MEASURED, (seconds,), (1e9,))
    return Progress(f"net.{name}", 64, None, trials=trials, seconds=9.0, best=best, promise=promise)


def test_the_board_has_what_takes_most_first() -> None:
    task = SearchTask(whole(), threads=1, constants=CONSTANTS)
    runs = [progress("group_0", 1e-3, 12, 1e-5), progress("group_1", 6e-3, 4)]
    board = TaskTable(task, {run.name: run for run in runs})
    first, second, third = (row.cells() for row in board.rows())
    assert first == ("net.group_1", "elementwise 6x8", "1", "75.0%", "6 ms", "0%", "4", "")
    assert second[:5] == ("net.group_0", "product 8 to 6x8", "2", "25.0%", "1 ms") and second[6:] == ("12", "10 us")
    assert third == ("net.group_2", "elementwise 6x8", "1", "", "", "", "0", "")
    assert board.heading() == "net: 3 tasks, 8 ms so far, 16 trials in 9 s"
    assert [row["name"] for row in board.data()] == ["net.group_1", "net.group_0", "net.group_2"]
    assert board.table().row_count == 3 and len(board.table().columns) == len(HEADINGS)
    (cut,) = (list(column.cells) for column in board.table(2).columns[:1])
    assert cut == ["net.group_1", "2 more"]


def test_what_a_group_computes_is_said_in_a_few_words() -> None:
    image, weights = te.placeholder((1, 4, 8, 8), name="X"), te.placeholder((6, 4, 3, 3), name="W")
    deep, rows = te.placeholder((4, 1, 3, 3), name="D"), te.placeholder((6, 8), name="R")
    heads = te.placeholder((2, 6, 8), name="H")
    programs = {
        "convolution 3x3, 4 to 1x6x8x8": ([image, weights], te.nn.conv2d(image, weights, padding=1)),
        "depthwise convolution 3x3, 1x4x8x8": ([image, deep], te.nn.conv2d(image, deep, padding=1, groups=4)),
        "pooling 2x2, 1x4x4x4": ([image], te.nn.max_pool2d(image, 2)),
        "reduction 8 to 6": ([rows], te.nn.sum(rows, 1)),
        "reduction 6x8 to a scalar": ([rows], te.nn.sum(rows)),
        "elementwise 6x8": ([rows], te.nn.relu(rows)),
        "product 8 to 2x6x6": ([heads], te.nn.batch_matmul(heads, heads, transpose_b=True)),
    }
    for words, (inputs, output) in programs.items():
        module = lower(te.function("f", inputs, [output]))
        assert operator(read(find_function(module))) == words


def test_nothing_is_computed() -> None:
    assert operator(SimpleNamespace(body=())) == "nothing"  # type: ignore[arg-type]
