"""The forms of a program by laws of whole programs: which is chosen, that a choice lasts, that builds honour it."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Collection, Mapping
from functools import cache
from io import StringIO
from pathlib import Path

import numpy as np
import pytest

import compiler
from compiler import te
from compiler.__main__ import main
from compiler.alternatives import PROGRAM_LAWS, Conditions
from compiler.autotune.display.views import Lines
from compiler.autotune.measure.turns import Turns
from compiler.autotune.options import TuningOptions
from compiler.autotune.task import SearchTask
from compiler.autotune.tasks import forms as forms_module
from compiler.autotune.tasks.chosen_forms import ChosenForms
from compiler.autotune.tasks.forms import SHARE, FormComparison, FormedProgram
from compiler.database import Database
from compiler.driver.building import build_scheduled, chosen_partition
from compiler.driver.parts.partition import PROGRAM, Alternatives, ProgramForms, alternatives
from compiler.types.machines import host
from tests.unit.autotune.test_finalists_in_network import Timed
from tests.unit.autotune.test_tuner import Pretend, path, workers

__all__ = ["path", "workers"]
LAST, WRITTEN = "channels-last", "written"
WEIGHTS = ("W0", "W1")


@cache
def net(name: str = "net", image: str = "X") -> te.Function:
    """Two convolutions of 49 pixels, whose images are better channels last."""
    x = te.placeholder((1, 64, 7, 7), name=image)
    first, second = (te.placeholder((32, n, 1, 1), name=name) for n, name in zip((64, 32), WEIGHTS, strict=True))
    return te.function(name, [x, first, second], te.nn.relu(te.nn.conv2d(te.nn.relu(te.nn.conv2d(x, first)), second)))


@cache
def offers(name: str = "net", image: str = "X", constants: Collection[str] = WEIGHTS) -> Alternatives:
    return alternatives(net(name, image), tuple(constants), conditions=Conditions(host(), "contract"))


def contest(database: Database, written: float, whole: float | None = None) -> FormComparison:
    """The contest of a program that takes 1.0 s channels last, and so long as written; `whole`: alone, once chosen."""
    built = list[str]()

    def program(forms: Mapping[str, str]) -> FormedProgram:
        form = forms[PROGRAM]
        extra = 0.0 if whole is None or form == LAST or form not in built else whole - written
        built.append(form)
        return FormedProgram(Timed("", [1.0 if form == LAST else written], extra=extra), [PROGRAM])

    choices = offers().program_choices(1, "contract")
    return FormComparison("net", choices, program, database, "run", lambda words: None)


def chosen(path: Path) -> tuple[str, ...]:
    return chosen_partition(offers(), path, 1, "contract").laws


# --- names and keys -------------------------------------------------------------------------------------------------


def test_each_law_is_left_out_in_turn() -> None:
    asked = list[list[str]]()

    def by(laws: Collection[str]) -> Alternatives:
        asked.append([name for name in ("chain", "flattened", LAST) if name in laws])
        return offers().of_program(WRITTEN)

    names = ProgramForms(("flattened", "chain", LAST), by, str)
    assert names.preferred == "chain + channels-last + flattened" and names.names == (names.preferred, WRITTEN)
    assert asked == [["chain", "flattened"], ["flattened", LAST]]
    programs = offers().programs
    assert programs is not None and programs.names == (LAST, WRITTEN)
    assert offers().of_program(LAST).laws == (LAST,) and offers().of_program(WRITTEN).laws == ()
    assert LAST in [law.name for law in PROGRAM_LAWS]


def test_a_program_is_known_by_what_it_computes_before_laws() -> None:
    def key(offered: Alternatives, threads: int = 1) -> object:
        return offered.program_choices(threads, "contract")[PROGRAM].key

    assert key(offers()) == key(offers("other", "image"))
    assert len({key(offers()), key(offers(constants=WEIGHTS[:1])), key(offers(), 2)}) == 3
    assert offers().of_program(WRITTEN).program_choices(1, "contract") == {}


# --- choices --------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("written", "laws"), [(0.9, ()), (0.98, (LAST,)), (1.2, (LAST,))])
def test_what_is_faster_as_a_whole_is_chosen(path: Path, written: float, laws: tuple[str, ...]) -> None:
    """A gain of less than 3% is none."""
    Database(path).close()
    assert chosen(path) == (LAST,), "without times the estimate chooses"
    with Database(path) as database:
        assert contest(database, written).measure()
        records = database.records()
        assert database.keys() == []
    assert chosen(path) == laws
    assert {(r.name, r.form, r.default) for r in records} == {("net", LAST, True), ("net", WRITTEN, False)}
    with Database(path) as database:
        assert contest(database, 2.0).measure() and len(database.records()) == 2, "a choice is made once"


def test_the_preferred_form_stays_where_the_chosen_one_is_not_faster_in_the_end(path: Path) -> None:
    with Database(path) as database:
        assert contest(database, 0.9, whole=1.1).measure()
    assert chosen(path) == (LAST,)


def test_a_choice_is_kept_before_the_whole_is_timed_again(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    calls, in_turns = list[object](), forms_module.run_in_turns

    def killed(*given: object) -> Turns:
        calls.append(given)
        if len(calls) > 1:
            raise KeyboardInterrupt
        return in_turns(*given)  # type: ignore[arg-type]

    monkeypatch.setattr(forms_module, "run_in_turns", killed)
    with Database(path) as database, pytest.raises(KeyboardInterrupt):
        contest(database, 0.5).measure()
    assert chosen(path) == ()


# --- tasks and builds -----------------------------------------------------------------------------------------------


def test_forms_are_built_apart_though_their_groups_have_the_same_schedules() -> None:
    """The cache knows them by their laws; each call counts for the program."""
    given = {name: np.ones(t.shape, np.float32) for name, t in zip(WEIGHTS, net().inputs[1:], strict=True)}
    kernels = [
        build_scheduled(offers().of_program(form).preferred, net(), {}, 1, "contract", given)
        for form in (LAST, WRITTEN)
    ]
    assert len({tuple(group.hash for group in kernel.groups) for kernel in kernels}) == 2
    formed = SearchTask(net(), threads=1, constants=WEIGHTS)._chosen.program_in({PROGRAM: WRITTEN})
    assert formed.calls == [PROGRAM] * 2 and (formed.program.run().calls > 0).all()


def test_tune_times_the_program_and_tunes_what_is_chosen(
    workers: Callable[..., Pretend], path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """Its groups are tuned, builds and tasks find them, and `db best` tells."""
    workers()
    limits = list[float]()

    def formed(self: ChosenForms, forms: Mapping[str, str]) -> FormedProgram:
        return FormedProgram(Timed("", [2.0 if forms[PROGRAM] == LAST else 1.0]), [PROGRAM])

    def held(self: FormComparison) -> bool:
        limits.append(self.seconds)
        return hold(self)

    hold = FormComparison.measure
    monkeypatch.setattr(FormComparison, "measure", held)
    monkeypatch.setattr(ChosenForms, "program_in", formed)
    task, shown = SearchTask(net(), threads=1, constants=WEIGHTS), StringIO()
    names = [group.program for group in task.groups]
    view = Lines(task, shown)
    task.tune(TuningOptions(trials=2, seconds=1000, database=path, callbacks=[view]))
    assert [group.program for group in task.groups] != names and 0 < limits[0] <= SHARE * 500
    assert "] net: timing forms of the program\n" in shown.getvalue()
    line = "form of the program, timed as a whole: net written (channels-last 2.00)"
    assert line in view.conclusion()
    assert main(["db", "best", str(path), "--task", "net"]) == 0 and line in capsys.readouterr().out
    again = SearchTask(net(), threads=1, constants=WEIGHTS)
    given = {name: np.ones(t.shape, np.float32) for name, t in zip(WEIGHTS, net().inputs[1:], strict=True)}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        kernel = compiler.build(net(), threads=1, constants=given, schedule=path)
    expected = [group.hash for group in offers().of_program(WRITTEN).program.groups]  # type: ignore[union-attr]
    assert [group.hash for group in kernel.groups] == expected
    assert again.records(path).keys() == {group.name for group in task.groups} and again.forms == task.forms


def test_an_interruption_while_the_program_is_timed_ends_the_run(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def interrupted(self: ChosenForms, forms: Mapping[str, str]) -> FormedProgram:
        raise KeyboardInterrupt

    monkeypatch.setattr(ChosenForms, "program_in", interrupted)
    seen = list[str]()
    options = TuningOptions(trials=2, database=path, callbacks=[lambda progress: seen.append(progress.phase)])
    assert SearchTask(net(), threads=1, constants=WEIGHTS).tune(options) == {} and seen[-1] == "interrupted"
