"""The forms of groups inside the whole program: which are chosen, that a choice lasts, that builds honour it."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Mapping
from dataclasses import replace
from functools import cache
from io import StringIO
from math import inf
from pathlib import Path

import numpy as np
import pytest

import compiler
from compiler import te
from compiler.alternatives import Conditions
from compiler.autotune.display.forms import sentences
from compiler.autotune.display.progress import Progress
from compiler.autotune.display.views import Lines
from compiler.autotune.measure.network import random_weights
from compiler.autotune.measure.turns import Turns
from compiler.autotune.options import TuningOptions
from compiler.autotune.task import SearchTask
from compiler.autotune.tasks import forms as forms_module
from compiler.autotune.tasks.chosen_forms import ChosenForms
from compiler.autotune.tasks.forms import FormComparison, FormedProgram
from compiler.database import Database, Record
from compiler.database.lines import from_line, to_line
from compiler.database.outcome import MEASURED, Outcome
from compiler.database.replay import replay
from compiler.driver.parts.partition import Alternatives, alternatives
from compiler.support.errors import InputError, ScheduleError
from compiler.targets.arguments import Argument
from compiler.types.machines import host
from tests.unit.autotune.test_finalists_in_network import Timed
from tests.unit.autotune.test_tuner import Pretend, path, workers

__all__ = ["path", "workers"]
F2, F4, WRITTEN = "winograd-2x2", "winograd-4x4", "written"
LOOSE = 3e-5
"""An error that permits F4, which the estimate then prefers to F2."""
WEIGHTS = ("W0", "W1")
Times = Mapping[str, Mapping[str, float]]


@cache
def net() -> te.Function:
    """Two convolutions, of 16 and of 32 filters."""
    x = te.placeholder((1, 16, 8, 8), name="X")
    first, second = (te.placeholder((n, 16, 3, 3), name=name) for n, name in zip((16, 32), WEIGHTS, strict=True))
    y = te.nn.relu(te.nn.conv2d(x, first, padding=1))
    return te.function("net", [x, first, second], te.nn.relu(te.nn.conv2d(y, second, padding=1)))


@cache
def offers(error: float | None = None, policy: str = "contract") -> Alternatives:
    return alternatives(net(), WEIGHTS, conditions=Conditions(host(), policy, error=error))


def task(error: float | None = None) -> SearchTask:
    return SearchTask(net(), threads=1, constants=WEIGHTS, error=error)


def contest(database: Database, times: Times, error: float | None = None, **stated: float) -> FormComparison:
    """The contest of a program whose groups take these seconds by their forms, of which a guard takes 0.1 and the call
    that it skips 0.01; `together` is what each takes more whose groups are neither all preferred nor all others."""
    built = list[dict[str, str]]()
    choices = offers(error).choices(1, "contract")
    preferred = {name: choice.forms.preferred for name, choice in choices.items()}

    def program(forms: Mapping[str, str]) -> FormedProgram:
        built.append(dict(forms))
        calls = [(name, s) for name, form in forms.items() for s in seconds(times[name][form], form)]
        is_mixed = forms != preferred and any(forms[name] == preferred[name] for name in forms)
        extra = stated.get("together", 0.0) if is_mixed else 0.0
        return FormedProgram(Timed("", [s for _, s in calls], extra=extra), [name for name, _ in calls])

    made = FormComparison("net", choices, program, database, "run", lambda words: None, stated.get("seconds", inf))
    vars(made)["all_built"] = built
    return made


def seconds(together: float, form: str) -> list[float]:
    return [together] if form == WRITTEN else [0.1, together - 0.11, 0.01]


def held(path: Path, times: Times, error: float | None = None, **stated: float) -> list[dict[str, str]]:
    """The programs that a contest builds."""
    with Database(path) as database:
        made = contest(database, times, error, **stated)
        assert made.measure()
    built: list[dict[str, str]] = vars(made)["all_built"]
    return built


def chosen(path: Path, error: float | None = None, policy: str = "contract") -> list[str]:
    with Database(path) as database:
        return list(offers(error, policy).chosen(database, 1, policy).values())


def timed(first: Mapping[str, float], second: Mapping[str, float]) -> Times:
    return {"group_0": first, "group_1": second}


ONLY_F2 = timed({F2: 1.0, WRITTEN: 2.0}, {F2: 1.0, WRITTEN: 2.0})
ONLY_WRITTEN = timed({F2: 1.0, WRITTEN: 0.5}, {F2: 1.0, WRITTEN: 0.5})


# --- choices --------------------------------------------------------------------------------------------------------


def test_the_forms_are_those_that_are_permitted_and_plausible() -> None:
    def names(error: float | None = None, policy: str = "contract") -> list[tuple[str, ...]]:
        forms = offers(error, policy).offered
        return [] if forms is None else [group.names for group in forms.groups]

    assert names() == [(F2, WRITTEN)] * 2 and names(LOOSE) == [(F4, WRITTEN, F2)] * 2
    assert names(0.0) == names(None, "strict") == [] and offers(0.0).chosen(Database(":memory:"), 1, "contract") == {}


def test_what_is_faster_inside_is_chosen(path: Path) -> None:
    """All three calls of a form count; a gain of less than 3% is none."""
    built = held(path, timed({F2: 1.0, WRITTEN: 0.96}, {F2: 1.0, WRITTEN: 0.98}))
    assert built == [
        {"group_0": F2, "group_1": F2},
        {"group_0": WRITTEN, "group_1": WRITTEN},
        {"group_0": WRITTEN, "group_1": F2},
    ]
    assert chosen(path) == [WRITTEN, F2]
    with Database(path) as database:
        records = database.records()
        assert database.keys() == [] and database.prune(keep=1) == []
    assert [(r.name, r.form, r.default, r.run) for r in records] == [
        ("net.group_0", F2, True, "run"),
        ("net.group_0", WRITTEN, False, "run"),
        ("net.group_1", WRITTEN, False, "run"),
        ("net.group_1", F2, True, "run"),
    ]
    assert [r.outcome.cost for r in records] == pytest.approx([1.0, 0.96, 0.98, 1.0])


def test_a_form_whose_guard_fails_on_random_operands_is_not_compared(path: Path) -> None:
    with Database(path) as database:
        made = contest(database, ONLY_WRITTEN)
        plain = made.built
        guarded = replace(made, built=lambda forms: replace(plain(forms), guarded=(0,)))
        assert guarded.measure()
        assert [choice.is_undecided(database) for choice in guarded.choices.values()] == [True, False]
    assert chosen(path) == [F2, WRITTEN]


def test_a_network_has_weights_by_which_values_stay_of_one_size() -> None:
    weights = random_weights([Argument("w", (64, 32, 3, 3), np.dtype(np.float32)), Argument("b", (9,), np.dtype(int))])
    assert weights["w"].std() == pytest.approx((32 * 9) ** -0.5, rel=0.1)
    assert weights["b"].dtype == int


def test_a_choice_is_made_once(path: Path) -> None:
    held(path, ONLY_WRITTEN)
    assert held(path, ONLY_F2) == [] and chosen(path) == [WRITTEN, WRITTEN]


def test_without_times_the_estimate_chooses(path: Path) -> None:
    assert chosen(path) == [F2, F2] and chosen(path, LOOSE) == [F4, F4]
    held(path, ONLY_WRITTEN)
    assert chosen(path, LOOSE) == [F4, F4], "it was not timed yet"
    assert chosen(path) == [WRITTEN, WRITTEN]


def test_only_permitted_forms_are_chosen(path: Path) -> None:
    """The second best counts where the best one errs too much for a call."""
    held(path, timed({F4: 1.0, WRITTEN: 3.0, F2: 2.0}, {F4: 1.0, WRITTEN: 1.2, F2: 2.0}), LOOSE)
    assert chosen(path, LOOSE) == [F4, F4] and chosen(path) == [F2, WRITTEN]
    assert chosen(path, 0.0) == chosen(path, None, "strict") == []
    with Database(path) as database:
        assert not any(choice.is_undecided(database) for choice in offers().choices(1, "contract").values())


def test_each_form_has_its_turns(path: Path) -> None:
    built = held(path, timed({F4: 1.0, WRITTEN: 3.0, F2: 0.8}, {F4: 1.0, WRITTEN: 0.7, F2: 0.8}), LOOSE)
    assert [list(forms.values()) for forms in built] == [[F4, F4], [WRITTEN, WRITTEN], [F2, F2], [F2, WRITTEN]]
    assert chosen(path, LOOSE) == [F2, WRITTEN]


def test_groups_that_were_compared_keep_their_forms(path: Path) -> None:
    held(path, ONLY_WRITTEN)
    with Database(path) as database:
        gone = next(iter(offers().choices(1, "contract").values())).key
        database._connection.execute("DELETE FROM records WHERE program = ?", (gone.program,))
        database._connection.commit()
    built = held(path, ONLY_F2)
    assert [list(forms.values()) for forms in built] == [[F2, WRITTEN], [WRITTEN, WRITTEN]]
    assert chosen(path) == [F2, WRITTEN]
    with Database(path) as database:
        assert [record.name for record in database.records()] == ["net.group_1"] * 2 + ["net.group_0"] * 2


def test_the_preferred_forms_stay_where_the_chosen_together_are_not_faster(path: Path) -> None:
    held(path, timed({F2: 1.0, WRITTEN: 0.5}, {F2: 1.0, WRITTEN: 1.5}), together=2.0)
    assert chosen(path) == [F2, F2]


def test_another_program_makes_its_own_choice(path: Path) -> None:
    """The same groups called otherwise, and other threads."""
    held(path, ONLY_WRITTEN)
    x, w = te.placeholder((1, 16, 8, 8), name="X"), te.placeholder((16, 16, 3, 3), name="W0")
    other = te.function("other", [x, w], te.nn.relu(te.nn.conv2d(x, w, padding=1)))
    first = alternatives(other, ["W0"], conditions=Conditions(host(), "contract"))
    ours, theirs = (next(iter(made.choices(1, "contract").values())).key for made in (offers(), first))
    assert ours.program == theirs.program and ours.whole != theirs.whole
    with Database(path) as database:
        assert list(first.chosen(database, 1, "contract").values()) == [F2]
        assert list(offers().chosen(database, 2, "contract").values()) == [F2, F2]


# --- runs that end early --------------------------------------------------------------------------------------------


def test_a_contest_whose_time_is_over_chooses_nothing(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def endless(*given: object) -> Turns:
        while True:
            pass

    monkeypatch.setattr(forms_module, "run_in_turns", endless)
    with Database(path) as database:
        assert not contest(database, ONLY_F2, seconds=0.1).measure() and database.records() == []


def test_a_choice_is_kept_before_the_whole_is_timed(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    calls, in_turns = list[object](), forms_module.run_in_turns

    def interrupted(*given: object) -> Turns:
        calls.append(given)
        if len(calls) > 1:
            raise KeyboardInterrupt
        return in_turns(*given)  # type: ignore[arg-type]

    monkeypatch.setattr(forms_module, "run_in_turns", interrupted)
    with Database(path) as database, pytest.raises(KeyboardInterrupt):
        contest(database, ONLY_WRITTEN).measure()
    assert chosen(path) == [WRITTEN, WRITTEN]


# --- records --------------------------------------------------------------------------------------------------------


def test_a_record_names_its_form_and_has_no_script(path: Path) -> None:
    held(path, ONLY_F2)
    with Database(path) as database:
        record = database.records()[0]
    assert from_line(to_line(record)) == record and f'"form": "{WRITTEN}"' in to_line(record)
    with pytest.raises(ScheduleError, match="the time of the form written, and has no script"):
        replay(record)
    for wrong in ({"script": "// one"}, {"key": replace(record.key, whole="")}):
        with pytest.raises(InputError, match="the record of the form 'written' has a script, or"):
            replace(record, **wrong)  # type: ignore[arg-type]
    assert '"form"' not in to_line(replace(record, form="")), "older versions know such lines"


# --- tasks and builds -----------------------------------------------------------------------------------------------


def test_a_form_with_a_guard_has_three_calls() -> None:
    formed = task()._chosen.groups_in({"group_0": F2, "group_1": WRITTEN})
    assert list(formed.calls) == ["group_0"] * 3 + ["group_1"] and formed.calls_of("group_0") == [0, 1, 2]
    run = formed.program.run()
    assert run.calls.shape == (4,) and (run.calls[[0, 1, 3]] > 0).all()


def test_tune_times_forms_and_tunes_what_is_chosen(
    workers: Callable[..., Pretend], path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The table follows; builds and tasks find what was chosen."""
    workers()

    def formed(self: ChosenForms, forms: Mapping[str, str]) -> FormedProgram:
        calls = [(name, s) for name, form in forms.items() for s in seconds(ONLY_WRITTEN[name][form], form)]
        return FormedProgram(Timed("", [s for _, s in calls]), [name for name, _ in calls])

    monkeypatch.setattr(ChosenForms, "groups_in", formed)
    what, shown, seen = task(), StringIO(), list[Progress]()
    names = [group.name for group in what.groups]
    view = Lines(what, shown)
    what.tune(TuningOptions(trials=2, database=path, callbacks=[view, lambda p: seen.append(replace(p))]))
    assert names == [f"net.group_{n}{part}" for n in (0, 1) for part in ("_guard", "_winograd_2x2")]
    assert [group.name for group in what.groups] == ["net.group_0", "net.group_1"] == sorted(view.runs)
    assert "] net: timing forms of groups inside the program\n" in shown.getvalue() and seen[0].name == "net"
    line = "forms of 2 groups, timed inside the program: net.group_0 written (winograd-2x2 2.00), "
    assert any(said.startswith(line) for said in view.conclusion()), view.conclusion()
    again = task()
    given = {name: np.ones(t.shape, np.float32) for name, t in zip(WEIGHTS, net().inputs[1:], strict=True)}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        kernels = [again.apply_best(path, given), compiler.build(net(), threads=1, constants=given, schedule=path)]
    assert [[g.law for g in kernel.groups] for kernel in kernels] == [["", ""]] * 2
    assert [form.form for form in again.forms] == [WRITTEN, WRITTEN]


def test_an_interruption_while_forms_are_timed_ends_the_run(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def interrupted(self: ChosenForms, forms: Mapping[str, str]) -> FormedProgram:
        raise KeyboardInterrupt

    monkeypatch.setattr(ChosenForms, "groups_in", interrupted)
    seen = list[str]()
    options = TuningOptions(trials=2, database=path, callbacks=[lambda progress: seen.append(progress.phase)])
    assert task().tune(options) == {} and seen[-1] == "interrupted"


def test_the_sentence_names_each_form() -> None:
    made = task()
    assert list(sentences(made.forms)) == []
    with Database(":memory:") as database:
        for part in offers().choices(1, "contract").values():
            records = [
                Record(part.key, "net.g", part.program, "", Outcome(MEASURED, (cost,), (1.0,)), form=form, run=run)
                for form, cost, run in ((F4, 9.0, "earlier"), (WRITTEN, 1.5, "run"), (F2, 1.0, "run"))
            ]
            database.choose(records)
        made._chosen.read_database(database)
    assert list(sentences(made.forms)) == [
        "forms of 2 groups, timed inside the program: net.group_0 winograd-2x2 (written 1.50), "
        "net.group_1 winograd-2x2 (written 1.50)"
    ]
    assert made.forms[0].data() == {"name": "net.group_0", "form": F2, "others": {WRITTEN: 1.5}}
