"""`strata tune`, `strata space` and what they show, with an executor that needs no hardware; and wrong input."""

from __future__ import annotations

import io
import json
import re
import shlex
import signal
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any
from zlib import crc32

import pytest
from rich.console import Console

from compiler import te
from compiler.autotune.display import listing
from compiler.autotune.display.facts import RunFacts, ceiling_share
from compiler.autotune.display.progress import Progress
from compiler.autotune.display.views import Lines, RunView, Screen, view
from compiler.autotune.measure import measurer
from compiler.autotune.measure.builder import Built
from compiler.autotune.options import TuningOptions
from compiler.autotune.search import replay as replay_search
from compiler.autotune.task import MODES, SearchTask
from compiler.autotune.tasks import in_place
from compiler.database import Database
from compiler.database.fields import key_fields
from compiler.database.lines import from_line
from compiler.database.outcome import MEASURED, Outcome
from compiler.driver.parts.groups import OWN
from compiler.driver.reference.subject import Subject
from compiler.graph.user_names import script_with_user_names
from compiler.pipeline.loops import lower
from compiler.pipeline.source import parse
from compiler.schedule import Schedule, replay
from compiler.space import gpu_features
from compiler.space.cpu_features import REASONS
from compiler.support.errors import InputError
from compiler.support.text import duration
from compiler.targets.cpu.presence import Disturbance
from tests.programs import applied, matmul
from tests.said import Strata
from tests.unit.autotune.test_tuner import halved

NAME = "matmul:96x128x80"
Judge = Callable[[str], Outcome]


def measured(seconds: float) -> Outcome:
    return Outcome(MEASURED, (seconds, seconds, 2 * seconds), (1e11, 1e11, 1e11))


def ordinary(script: str) -> Outcome:
    """The program as written is slow, every other one is wrong, and the others differ."""
    number = crc32(script.encode())
    if "sched.split" not in script:
        return measured(0.02)
    return Outcome("wrong", reason="C[0] is 1\nand not 2") if number % 2 == 0 else measured(1e-3 + number % 97 * 1e-6)


def hopeless(script: str) -> Outcome:
    return Outcome("crash", reason="it ended with SIGSEGV")


def contrary(script: str) -> Outcome:
    """Nothing is faster than the program as written."""
    return measured(1e-3 if "sched.split" not in script else 2e-3)


class Fake:
    """An executor whose outcomes are those of a judge; `end` is the trial at which a person presses Ctrl-C."""

    def __init__(self, judge: Judge, end: int | None = None) -> None:
        self.judge, self.end, self.count, self.closed = judge, end, 0, False

    def build(self, scripts: Sequence[str]) -> Iterator[tuple[int, Built | Outcome]]:
        return ((n, Built(script, 0.1)) for n, script in enumerate(scripts))  # type: ignore[arg-type]

    def run(self, candidates: Sequence[Built]) -> Iterator[tuple[int, Outcome]]:
        for number, built in enumerate(candidates):
            if self.count == self.end:
                raise KeyboardInterrupt
            self.count += 1
            yield number, self.judge(str(built.artefact))

    def compare(self, candidates: Sequence[Built], rounds: int) -> list[Outcome]:
        return [self.judge(str(built.artefact)) for built in candidates]

    def switch_subject(self, subject: Subject) -> None:
        return

    def calibrate(self, built: Built, cost: float) -> None:
        return

    def close(self) -> None:
        self.closed = True


Judged = Callable[..., list[Fake]]


@pytest.fixture
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """An empty folder that is the current one."""
    monkeypatch.chdir(tmp_path)
    return tmp_path


@pytest.fixture
def judged(here: Path, monkeypatch: pytest.MonkeyPatch) -> Judged:
    """What makes every run of a test measure by a judge, in an empty folder."""

    def use(judge: Judge = ordinary, end: int | None = None) -> list[Fake]:
        made: list[Fake] = []

        def executor(*given: object) -> Fake:
            made.append(Fake(judge, end))
            return made[-1]

        monkeypatch.setattr(measurer, "LocalExecutor", executor)
        monkeypatch.setattr(in_place, "run_in_turns", halved)
        return made

    return use


def tuned(strata: Strata, *arguments: str, status: int = 0, count: int = 12) -> str:
    return strata("tune", NAME, "--threads", "1", "--trials", str(count), *arguments, status=status)


# --- strata tune ----------------------------------------------------------------------------------------------------


def test_tune_says_how_far_it_is_and_how_to_see_the_script(here: Path, judged: Judged, strata: Strata) -> None:
    made = judged()
    out = tuned(strata)
    assert len(made) == 1 and made[0].closed
    phases = [line.split("] ")[1] for line in out.splitlines() if line.startswith("[")]
    assert phases[0] == "deriving sketches" and phases[1] == "learning from earlier tasks"
    assert any(line.startswith("building and measuring: 8 trials, ranking: ") for line in phases)
    assert any(line.startswith("trial ") and "ms" in line and "of the ceiling (" in line for line in phases)
    *_, output, wrong, command = out.splitlines()
    assert re.fullmatch(
        r"matmul_96x128x80: 1(\.\d+)? ms, \d% of the ceiling, in 12 trials: "
        r"\d+(\.\d)? times as fast as the program as written \(20 ms\)",
        output,
    )
    assert wrong.endswith(" wrong, the first: C[0] is 1 and not 2")
    assert command == f"the script: strata db best strata.db --names {NAME}"
    assert replay(parse(strata(*shlex.split(command)[3:])), lower(program())).verify()
    script = strata("db", "best", "strata.db")
    assert replay(parse(script), parse(Database("strata.db").records()[0].program)).verify()
    tuned(strata, "--quiet", "--database", "other.db")
    assert {path.name for path in here.iterdir()} >= {"strata.db", "other.db"}


def test_tune_quietly_and_without_a_database(here: Path, judged: Judged, strata: Strata) -> None:
    judged()
    output, wrong, *script = tuned(strata, "--quiet", "--no-database").splitlines()
    assert output.startswith("matmul_96x128x80: ") and " wrong, " in wrong
    assert replay(parse("\n".join(script)), lower(program())).verify(), "the script has the names of the program"
    assert list(here.iterdir()) == []


def program() -> te.Function:
    return matmul(96, 80, 128, name="matmul_96x128x80", output="matmul")


def document(strata: Strata, *arguments: str, status: int = 0, count: int = 12) -> Any:
    return json.loads(tuned(strata, "--json", *arguments, status=status, count=count))


def test_tune_as_json(judged: Judged, strata: Strata) -> None:
    judged()
    actual = document(strata, "--policy", "strict", "--log", "search.log")
    task = SearchTask(program(), threads=1, policy="strict")
    assert actual["key"] == key_fields(task.key) and actual["name"] == "matmul_96x128x80"
    with Database("strata.db", create=False) as database:
        records = database.records()
        record = database.record(actual["record"])
    assert record.script == actual["script"] and record.name == actual["name"]
    costs = {r.script: r.outcome.cost for r in records if r.outcome.ok}
    assert costs[actual["script"]] == min(costs.values()) and actual["best_seconds"] == record.outcome.seconds[0]
    assert actual["baseline_seconds"] == 0.02 and actual["gain"] == pytest.approx(0.02 / actual["best_seconds"])
    work = 2 * 96 * 128 * 80
    assert actual["ceiling_share"] == pytest.approx(work / (actual["best_seconds"] * 1e11))
    wrong = sum(r.outcome.kind == "wrong" for r in records)
    assert actual["failures"] == {"wrong": {"count": wrong, "reason": "C[0] is 1\nand not 2"}} and wrong
    assert actual["trials"] == 12 == len({r.script for r in records}) and actual["earlier_trials"] == 0
    assert actual["curve"][-1][1] == min(costs.values()) and actual["quality"].startswith("ranking: ")
    assert set(actual["infeasible"]) <= set(REASONS) and not actual["interrupted"] and actual["seconds"] > 0
    assert replay_search(task.space, Path("search.log").read_text()).best is not None


def test_a_run_repeats_with_its_seed(judged: Judged, strata: Strata) -> None:
    judged()
    runs = [document(strata, "--no-database", "--seed", seed) for seed in ("3", "3", "4")]
    for run in runs:
        del run["seconds"]
    assert runs[0] == runs[1] != runs[2]


def test_an_interrupted_run_keeps_what_it_has_and_is_gone_on_with(judged: Judged, strata: Strata) -> None:
    made = judged(end=7)
    out = tuned(strata, "--quiet", status=130)
    assert ", in 7 trials (interrupted): " in out and "the script: strata db best strata.db" in out
    assert made[0].closed and len(Database("strata.db").records()) == 7
    assert document(strata, "--no-database", status=130)["interrupted"]
    judged()
    actual = document(strata)
    assert (actual["trials"], actual["earlier_trials"], actual["interrupted"]) == (12, 7, False)
    assert ", in 12 trials, 12 of them from before: " in tuned(strata, "--quiet")
    assert "12 trials, 12 of them from before" in tuned(strata)
    judged(end=0)
    assert tuned(strata, "--quiet", "--no-database", status=130).startswith("matmul_96x128x80: nothing was measured")


def test_a_signal_ends_a_run_as_a_key_does(judged: Judged, strata: Strata) -> None:
    def judge(script: str) -> Outcome:
        if "sched.split" not in script:
            signal.raise_signal(signal.SIGINT)
        return ordinary(script)

    judged(judge)
    assert "(interrupted)" in tuned(strata, "--quiet", status=130)


def test_no_gain_is_said_plainly(judged: Judged, strata: Strata) -> None:
    judged(contrary)
    out = tuned(strata, "--quiet")
    assert out.splitlines()[0].endswith("in 12 trials: no gain: the program as written (1 ms) is the answer")
    actual = document(strata)
    assert actual["sketch"] == "as written" and actual["gain"] == 1.0 and "sched.split" not in actual["script"]


def test_nothing_measured_is_said_with_the_reason(judged: Judged, strata: Strata) -> None:
    judged(hopeless)
    out = tuned(strata, "--quiet", status=1)
    assert out == ("matmul_96x128x80: nothing was measured in 12 trials\n12 crash, the first: it ended with SIGSEGV\n")
    actual = document(strata, status=1)
    assert actual["script"] is None and actual["best_seconds"] is None and actual["failures"]["crash"]["count"] == 12


def test_a_program_that_cannot_be_run_as_written_has_no_gain(judged: Judged, strata: Strata) -> None:
    judged(lambda script: Outcome("timeout", reason="slow") if "sched.split" not in script else measured(1e-3))
    assert ": the program as written was not measured\n1 timeout, the first: slow\n" in tuned(strata, "--quiet")


def test_the_command_names_the_record_where_a_file_has_several_tasks(judged: Judged, strata: Strata) -> None:
    judged()
    tuned(strata, "--policy", "fast")
    command = tuned(strata, "--quiet").splitlines()[-1].removeprefix("the script: strata ")
    assert " --record " in command
    script = document(strata)["script"]
    words = shlex.split(command)
    assert words[-2:] == ["--names", NAME] and strata(*words[:-2]).strip() == script
    assert strata(*words) != strata(*words[:-2])


# --- what is shown --------------------------------------------------------------------------------------------------

TASK = SearchTask(program(), threads=1)
SOME = Progress(
    name="x",
    budget=64,
    limit=None,
    trials=23,
    earlier=8,
    seconds=30.0,
    best=measured(2e-3),
    sketch="matmul: gebp ab",
    baseline=measured(8e-3),
    failed=Counter(wrong=2),
    infeasible=Counter(later=99, cache=7, registers=12),
    reasons={"wrong": "C is not right"},
    quality="ranking: 80% of 9 pairs right",
    phase="building and measuring",
    sketches=5,
    candidates=171,
    curve=[(3, 2e8)],
)


def test_the_rows_of_the_table() -> None:
    share = 2 * 96 * 128 * 80 / (2e-3 * 1e11)
    assert list(RunFacts(TASK, SOME).rows()) == [
        ("space", "5 sketches, 171 candidates"),
        ("best", f"2 ms, {share:.0%} of the ceiling"),
        ("gain", "about 4 times as fast as the program as written"),
        ("sketch", "matmul: gebp ab"),
        ("trials", "23 trials, 8 of them from before, 64 in all"),
        ("time", "30 s, about 82 s left"),
        ("phase", "building and measuring"),
        ("failed", "2 wrong, the first: C is not right"),
        ("infeasible", "registers 12, cache 7"),
        ("model", "ranking: 80% of 9 pairs right"),
    ]
    first = [heading for heading, _ in RunFacts(TASK, Progress("x", None, 60.0)).rows()]
    assert first == ["trials", "time", "phase"]


def test_the_seconds_that_are_left() -> None:
    assert RunFacts(TASK, SOME).seconds_left == pytest.approx((64 - 23) * 30 / 15)
    assert RunFacts(TASK, replace(SOME, limit=40.0)).seconds_left == pytest.approx(10.0)
    assert RunFacts(TASK, replace(SOME, limit=20.0)).seconds_left == 0.0
    assert RunFacts(TASK, replace(SOME, trials=10)).seconds_left is None, "two trials tell nothing"
    assert RunFacts(TASK, replace(SOME, trials=70)).seconds_left == 0.0


def test_the_table_is_drawn_at_each_trial_and_lines_where_something_changed() -> None:
    terminal, plain = io.StringIO(), io.StringIO()
    screen = Screen(TASK, Console(file=terminal, force_terminal=True, width=100, markup=False))
    lines = Lines(TASK, plain)
    with screen, lines:
        for shown in (screen, lines):
            assert isinstance(shown, Screen | Lines)
            shown(replace(SOME, best=None, curve=[], trials=0, phase="starting workers"))
            shown(SOME)
            shown(replace(SOME, trials=24))
            assert shown.last is not None and shown.last.trials == 24
    drawn = terminal.getvalue()
    assert "matmul_96x128x80" in drawn and "registers 12" in drawn and "starting workers" in drawn
    assert drawn.endswith("\x1b[?25h"), "the cursor is back"
    assert plain.getvalue().splitlines() == [
        "[  30.0 s] starting workers",
        "[  30.0 s] trial 23: 2 ms, 1% of the ceiling (matmul: gebp ab)",
        "[  30.0 s] building and measuring: 23 trials, 8 of them from before, ranking: 80% of 9 pairs right",
    ]


def test_what_is_shown_does_not_change_with_what_is_counted_on() -> None:
    silent, progress = RunView(TASK), replace(SOME, failed=Counter(), curve=[])
    silent(progress)
    progress.failed["wrong"] += 1
    progress.curve.append((1, 1.0))
    assert silent.last is not None and not silent.last.failed and not silent.last.curve


def test_a_terminal_gets_the_table(monkeypatch: pytest.MonkeyPatch) -> None:
    stream = io.StringIO()
    assert isinstance(view(TASK, stream), Lines)
    monkeypatch.setattr(stream, "isatty", lambda: True)
    assert isinstance(view(TASK, stream), Screen)


@pytest.mark.parametrize(
    ("terminal", "stated", "drawn", "printed"),
    [
        (True, {}, True, ""),
        (True, {"show": False}, False, ""),
        (True, {"callbacks": [lambda progress: None]}, False, ""),
        (True, {"callbacks": [lambda progress: None], "show": True}, True, ""),
        (False, {}, False, ""),
        (False, {"show": True}, False, "[   0.0 s] deriving sketches\n"),
    ],
)
def test_python_shows_how_far_a_run_is(
    terminal: bool,
    stated: dict[str, Any],
    drawn: bool,
    printed: str,
    judged: Judged,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    judged()
    monkeypatch.setenv("TERM", "xterm")
    monkeypatch.setattr("sys.stderr", screen := io.StringIO())
    monkeypatch.setattr(screen, "isatty", lambda: terminal)
    for trials in (2, 3):
        TASK.tune(TuningOptions(trials, database="strata.db", **stated))
    shown, out = screen.getvalue(), capsys.readouterr().out
    assert ("\x1b[?25h" in shown) == drawn and bool(shown) == drawn
    assert out.startswith(printed) and bool(out) == bool(printed)
    assert ("in 3 trials, 2 of them from before: " in shown + out) == (drawn or bool(printed))


def test_durations_and_counts() -> None:
    assert [duration(s) for s in (2.5, 1.0, 0.0125, 1e-3, 4.13e-6)] == ["2.5 s", "1 s", "12.5 ms", "1 ms", "4.13 us"]
    assert RunFacts(TASK, Progress("x", 1, None, trials=1)).trials == "1 trial"


def test_there_is_one_gain_and_one_time() -> None:
    """The machine was twice as fast when the program as written was measured; in turns it took 3.3 times as long."""
    fast = Outcome(MEASURED, (4e-3,), (2e11,))
    turns = Outcome(MEASURED, (3.3e-3,), (1e11,)), Outcome(MEASURED, (1e-3,), (1e11,))
    progress = replace(SOME, baseline=fast, compared=turns)
    actual = RunFacts(TASK, progress, None)
    (_, best), (_, gain) = (row for row in RunFacts(TASK, progress).rows() if row[0] in ("best", "gain"))
    assert best.startswith("2 ms, ") and gain == "3.3 times as fast as the program as written"
    assert progress.gain == actual.gain == actual.data()["gain"] == pytest.approx(3.3)
    assert actual.data()["best_seconds"] == 2e-3 and actual.data()["baseline_seconds"] == pytest.approx(6.6e-3)
    assert "3.3 times as fast as the program as written (6.6 ms)" in next(actual.sentences())
    later = replace(progress, compared=None)
    assert later.best_times is not None and later.best_times.baseline_seconds == pytest.approx(8e-3)


def test_a_share_above_the_ceiling_is_not_shown() -> None:
    above = replace(SOME, best=Outcome(MEASURED, (1e-6,), (1e11,)))
    actual = RunFacts(TASK, above, None)
    assert dict(RunFacts(TASK, above).rows())["best"] == "1 us, the ceiling could not be measured"
    assert "%" not in next(actual.sentences()) and actual.data()["ceiling_share"] is None


def test_a_busy_machine_is_said() -> None:
    busy = replace(SOME, disturbance=Disturbance(10.0, 2.3, 7, 0))
    said = "the machine was busy: off the processor for 23% of the measured time, 7 samples repeated"
    assert ("busy", said) in list(RunFacts(TASK, busy).rows()) and said in list(RunFacts(TASK, busy, None).sentences())
    assert RunFacts(TASK, busy, None).data()["disturbance"]["repeated"] == 7
    quiet = replace(SOME, disturbance=Disturbance(10.0, 0.01, 1, 0))
    assert "busy" not in dict(RunFacts(TASK, quiet).rows()) and "busy" not in " ".join(
        RunFacts(TASK, quiet, None).sentences()
    )


def test_a_gain_within_the_noise_is_none() -> None:
    near = replace(SOME, baseline=measured(2e-3 * 1.005))
    assert not RunFacts(TASK, near, None).is_gain and RunFacts(TASK, SOME, None).is_gain


def test_the_share_is_of_a_ceiling_of_the_same_kind() -> None:
    a, b = te.placeholder((512, 512), "f64", name="A"), te.placeholder((512, 512), "f64", name="B")
    doubles = SearchTask(te.function("f", [a, b], te.nn.matmul(a, b)), threads=1)
    moved = SearchTask(applied(lambda x: te.nn.exp(x), (64, 64)), threads=1)
    assert ceiling_share(doubles, measured(1e-3)) is None
    assert ceiling_share(moved, measured(1e-3)) == pytest.approx(2 * 4 * 64 * 64 / 1e8)


# --- what was found -------------------------------------------------------------------------------------------------


def test_the_best_in_every_mode(judged: Judged, capsys: pytest.CaptureFixture[str], strata: Strata) -> None:
    judged()
    script = document(strata)["script"]
    words = {
        "script": script,
        "steps": "transform.named_sequence",
        "python": "def schedule(s):\n    ",
        "llvm": "define",
        "asm": ".globl",
    }
    for mode in MODES:
        shown = strata("db", "best", "strata.db", "--mode", mode)
        assert words[mode] in shown and shown.endswith("\n")
        text = TASK.print_best("strata.db", mode)
        printed = capsys.readouterr().out
        assert printed == f"{text}\n"
        own = "matmul" if mode in ("script", "steps") else words[mode]
        assert own in printed and "product0" not in printed and printed.endswith("\n")
    names: dict[str, Any] = {}
    TASK.print_best("strata.db", "python")
    exec(capsys.readouterr().out, names)
    schedule = Schedule(lower(program()))
    names["schedule"](schedule)
    TASK.print_best("strata.db")
    assert str(schedule.module) == str(replay(parse(capsys.readouterr().out), lower(program())).module)
    with pytest.raises(InputError, match=r"unknown mode 'xml' \(there are script, steps, python, llvm, asm\)"):
        TASK.print_best("strata.db", "xml")


def test_a_record_by_its_number(judged: Judged, strata: Strata) -> None:
    judged()
    tuned(strata)
    for record in Database("strata.db").records()[:3]:
        assert strata("db", "best", "strata.db", "--record", str(record.id)) == f"{record.script}\n"
        line = strata("db", "best", "strata.db", "--record", str(record.id), "--mode", "json")
        assert from_line(line) == record
    shown = strata("db", "best", "strata.db", "--names", NAME, "--mode", "python")
    assert "get_block('matmul')" in shown and "product0" not in shown
    for arguments, sentence in (
        (["--names", "softmax:8x8"], "of matmul_96x128x80, is of another program: no part of this one is the same"),
        (["--record", "99"], "there is no record 99"),
        (["--record", "1", "--threads", "1"], "--threads is for the best of a task"),
    ):
        assert sentence in strata("db", "best", "strata.db", *arguments, status=1)


# --- strata space ---------------------------------------------------------------------------------------------------


def space(strata: Strata, *arguments: str, status: int = 0) -> str:
    return strata("space", NAME, "--threads", "1", *arguments, status=status)


def test_space_lists_every_sketch_with_its_choices(strata: Strata) -> None:
    out = space(strata)
    assert out.startswith("matmul_96x128x80 on 1 thread\n")
    for number, sketch in enumerate(TASK.space.sketches):
        assert f"\nsketch {number} (" in out and f"): {sketch.name}\n" in out
    assert out.count("  choice ") == sum(len(sizes) for sizes in TASK.space.sizes)
    assert "split matmul.m" in out and "unused" not in out
    assert out == space(strata), "it says the same each time"


def test_scripts_of_space_are_those_of_the_task(strata: Strata) -> None:
    last = tuple(size - 1 for size in TASK.space.sizes[0])
    chosen = ",".join(map(str, last))

    def own(script: str) -> str:
        assert TASK.provenance != OWN and "product0" in script
        return str(script_with_user_names(parse(script), TASK.provenance)) + "\n"

    assert space(strata, "--show", "0") == own(str(TASK.space.sketches[0].script))
    decided = own(TASK.space.script((0, last)))
    assert space(strata, "--show", "0", "--decide", chosen) == space(strata, "--script", f"0:{chosen}") == decided
    assert space(strata, "--script", "0") == own(TASK.space.script(TASK.space.defaults[0]))
    written = len(TASK.space.sketches) - 1
    plain = {space(strata, "--script", f"{written}{colon}") for colon in ("", ":")}
    assert plain == {own(TASK.space.script((written, ())))}
    assert space(strata, "--show", str(written)) == plain.pop(), "there is nothing to decide"


def test_samples_are_candidates_and_say_whether_they_are_feasible(strata: Strata) -> None:
    out = space(strata, "--sample", "40", "--seed", "1")
    assert len(out.splitlines()) == 40 and out == space(strata, "--sample", "40", "--seed", "1")
    assert out != space(strata, "--sample", "40")
    for line in out.splitlines():
        place, remaining = line.split(" (", 1)
        number, _, positions = place.partition(":")
        decisions = tuple(map(int, positions.split(","))) if positions else ()
        candidate = listing.candidate(TASK.space, int(number), decisions)
        assert remaining.startswith(TASK.space.sketches[candidate[0]].name) and remaining.endswith(
            listing.feasibility(TASK.space, candidate)
        )
    assert "; feasible" in out and "; infeasible, registers: its register tile spills" in out
    only = space(strata, "--sample", "5", "--filter", "tiles")
    assert all("tiles" in line for line in only.splitlines())


def test_every_reason_has_words() -> None:
    assert set(listing.WHY) == {*REASONS, *gpu_features.REASONS} - {""}


def test_refused_alternatives_are_listed(strata: Strata, monkeypatch: pytest.MonkeyPatch) -> None:
    assert space(strata, "--dropped") == "no alternative was refused\n"
    derived = replace(TASK.derived, dropped=("gebp: split: no", "tiles: no"))
    monkeypatch.setattr(SearchTask, "derived", derived)
    assert space(strata, "--dropped") == "gebp: split: no\ntiles: no\n"


# --- wrong input ----------------------------------------------------------------------------------------------------

TWO = """
func.func @f(%A: tensor<4xf32>) -> tensor<4xf32> {
  func.return %A : tensor<4xf32>
}
func.func @g(%A: tensor<4xf32>) -> tensor<4xf32> {
  func.return %A : tensor<4xf32>
}
"""
FILES = {
    "text.db": "hello\n",
    "low.mlir": "func.func @f(%A: memref<4xf32>) {\n  func.return\n}\n",
    "two.mlir": TWO,
    "garbage.mlir": "func.func @f() {\n  nonsense\n}\n",
    "unverified.mlir": TWO.replace("-> tensor<4xf32>", "-> tensor<4xi32>"),
    "empty.mlir": "",
}
BEYOND = ",".join(["99", *["0"] * (len(TASK.space.sketches[0].choices) - 1)])
"""Decisions of the first sketch, whose first choice has no such position."""
WRONG = {
    "no such file": (["space", "nowhere.mlir"], "nowhere.mlir cannot be read"),
    "no such workload": (["tune", "nothing"], "there is no workload 'nothing'"),
    "extents": (["tune", "matmul:8x8"], "needs its extents as matmul:MxKxN"),
    "low level": (["tune", "low.mlir"], "the program is at the low level"),
    "low level, space": (["space", "low.mlir"], "the program is at the low level"),
    "several functions": (["space", "two.mlir"], "several functions (f, g)"),
    "no such function": (["space", "two.mlir", "--function", "h"], "no function @h"),
    "garbage": (["tune", "garbage.mlir"], "garbage.mlir:2:3: "),
    "unverified": (["tune", "unverified.mlir"], "unverified.mlir:3:3: error: Expected"),
    "empty": (["tune", "empty.mlir"], "empty.mlir:1:1: "),
    "scale of a file": (["tune", "two.mlir", "--scale", "1/2"], "two.mlir is a file"),
    "folder": (["space", "."], ". cannot be read"),
    "database is text": (["tune", NAME, "--database", "text.db"], "text.db is not a database of tuning records"),
    "database in no folder": (["tune", NAME, "--database", "no/x.db"], "there is no folder no"),
    "database is a folder": (["tune", NAME, "--database", "."], ". is a folder"),
    "log in no folder": (["tune", NAME, "--log", "no/x"], "no/x cannot be written"),
    "target": (
        ["tune", NAME, "--target", "moon"],
        "unknown target 'moon' (there are cpu, which TVM calls llvm, cuda and c)",
    ),
    "architecture": (
        ["space", NAME, "--target", "cuda", "--arch", "sm_1"],
        "no GPU of the architecture 'sm_1' is described",
    ),
    "threads of a GPU": (["tune", NAME, "--target", "cuda", "--threads", "2"], "threads are the CPU's"),
    "threads": (["tune", NAME, "--threads", "100000"], "threads=100000"),
    "sketch": (["space", NAME, "--show", "99"], "there is no sketch 99 (there are 0 to "),
    "sketch to compare": (["space", NAME, "--diff", "0", "99"], "there is no sketch 99"),
    "too few positions": (["space", NAME, "--script", "0:1"], "sketch 0 has "),
    "position": (["space", NAME, "--show", "0", "--decide", BEYOND], "of sketch 0 has the positions 0 to "),
    "decide what": (["space", NAME, "--decide", "1"], "--decide is for --show"),
    "filter what": (["space", NAME, "--filter", "x", "--dropped"], "--filter is for the list"),
    "filter": (["space", NAME, "--filter", "zz"], "no sketch has 'zz' in its name"),
}


@pytest.mark.parametrize("case", WRONG)
def test_wrong_input_ends_in_a_sentence(case: str, here: Path, strata: Strata) -> None:
    for name, text in FILES.items():
        (here / name).write_text(text)
    arguments, sentence = WRONG[case]
    assert sentence in strata(*arguments, status=1)
    assert (here / "text.db").read_text() == FILES["text.db"]


@pytest.mark.parametrize(
    "arguments",
    [
        ["tune"],
        ["tune", NAME, "--trials", "0"],
        ["tune", NAME, "--trials", "-3"],
        ["tune", NAME, "--seconds", "0"],
        ["tune", NAME, "--seconds", "nan"],
        ["tune", NAME, "--seconds", "inf"],
        ["tune", NAME, "--seed", "-1"],
        ["tune", NAME, "--policy", "loose"],
        ["tune", NAME, "--quiet", "--json"],
        ["tune", NAME, "--no-database", "--database", "x"],
        ["space"],
        ["space", NAME, "--show", "-1"],
        ["space", NAME, "--show", "0", "--dropped"],
        ["space", NAME, "--script", "0:1,-2"],
        ["space", NAME, "--script", "0:a"],
        ["space", NAME, "--script", "x"],
        ["space", NAME, "--diff", "0"],
        ["space", NAME, "--sample", "0"],
    ],
)
def test_wrong_options_end_in_a_sentence(arguments: list[str], strata: Strata) -> None:
    assert strata(*arguments, status=1).endswith(" --help says more)")
