"""The command line on a whole program: its groups by their names."""

from __future__ import annotations

import io
import json
import re
from dataclasses import replace
from pathlib import Path
from uuid import uuid4

import pytest

from compiler import te
from compiler.autotune.deadline import TimeIsUp
from compiler.autotune.options import TuningOptions
from compiler.autotune.task import SearchTask
from compiler.autotune.tasks import in_place
from compiler.database import Database, Record
from compiler.database.outcome import MEASURED, Outcome
from compiler.support import command
from tests.said import Strata
from tests.unit.autotune.test_tuner import halved
from tests.unit.cli.test_tune import Judged, judged, measured
from tests.whole import CONSTANTS, whole

__all__ = ["judged"]
NAMES = ["net.group_0", "net.group_1", "net.group_2"]
TUNE = ["tune", "net.mlir", "--threads", "1", "--constants", ",".join(CONSTANTS), "--trials", "6"]


@pytest.fixture(autouse=True)
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder with the program, which is the current one."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "net.mlir").write_text(whole())
    return tmp_path


def alike(script: str) -> object:
    """Every script takes a millisecond."""
    return measured(1e-3)


# --- strata tune ----------------------------------------------------------------------------------------------------


def test_tune_says_how_far_each_group_is_and_what_they_take_together(judged: Judged, strata: Strata) -> None:
    judged(alike)
    out = strata(*TUNE)
    for name, calls in zip(NAMES, ("2 calls", "1 call", "1 call"), strict=True):
        assert f"s] {name}, {calls}: 1 ms, " in out
    table = out[out.index("net: 3 tasks, 4 ms, 6 trials in ", out.rindex("done |") + 10) :].splitlines()
    assert table[1].split("  ")[0].strip() == "task" and "bound" in table[1]
    rows = [re.split("  +", row.strip()) for row in table[2:5]]
    assert [row[:5] for row in rows] == [
        [NAMES[0], "product 8 to 6x8", "2", "50.0%", "1 ms"],
        [NAMES[1], "elementwise 6x8", "1", "25.0%", "1 ms"],
        [NAMES[2], "elementwise 6x8", "1", "25.0%", "1 ms"],
    ]
    assert re.fullmatch("net as a whole: default 1 s, tuned 500 ms, chosen (1 s|500 ms)", table[5])
    assert table[-1] == "the scripts: strata db best strata.db --task net --names net.mlir"
    with Database("strata.db", create=False) as database:
        assert {record.name for record in database.records()} == set(NAMES)


def test_tune_of_groups_as_json(judged: Judged, strata: Strata, here: Path) -> None:
    judged(alike)
    document = json.loads(strata(*TUNE, "--json", "--log", "log"))
    assert document["name"] == "net" and not document["interrupted"]
    assert [group["name"] for group in document["groups"]] == NAMES
    assert (document["whole"]["default_seconds"], document["whole"]["tuned_seconds"]) == (1.0, 0.5)
    assert [group["name"] for group in document["whole"]["groups"]] == NAMES
    assert [task["name"] for task in document["tasks"]] == NAMES and document["tasks"][0]["share"] == 0.5
    assert sorted(path.name for path in here.glob("log*")) == ["log.group_0", "log.group_1", "log.group_2", "log.turns"]
    assert "3 tasks" in strata(*TUNE, "--json=found.json")
    assert json.loads((here / "found.json").read_text())["tasks"][0]["name"] == NAMES[0]


def test_an_interruption_says_what_there_is(judged: Judged, strata: Strata) -> None:
    judged(alike, end=1)
    out = strata(*TUNE, "--quiet", status=130)
    heading, _, first, second, third, scripts = out.splitlines()
    assert heading.startswith("net: 3 tasks, 2 ms so far, 1 trials in ") and "1 ms" in first
    assert second.split()[-1] == third.split()[-1] == "0" and scripts.startswith("the scripts: ")


def test_the_comparison_inside_the_whole_is_cut_short_and_what_was_measured_is_said(
    judged: Judged, strata: Strata, monkeypatch: pytest.MonkeyPatch
) -> None:
    """By Ctrl-C, or by the end of the seconds; a second run makes up for it, a third has nothing left."""
    judged(alike)
    monkeypatch.setattr(command, "_STARTS", [0.0])  # of the machine; later commands of a process begin when called

    def cut(by: type[BaseException]) -> None:
        def turns(*given: object) -> object:
            raise by

        monkeypatch.setattr(in_place, "run_in_turns", turns)

    cut(KeyboardInterrupt)
    out = strata(*TUNE, "--quiet", status=130)
    assert "net: 3 tasks, 4 ms, 6 trials in " in out and "the scripts: " in out and "as a whole" not in out
    monkeypatch.setattr(in_place, "run_in_turns", halved)
    assert "net as a whole: default 1 s, tuned 500 ms, chosen " in strata(*TUNE, "--quiet")
    again = strata(*TUNE, "--quiet").splitlines()
    assert "nothing new was measured: what was chosen inside the whole stays" in again
    cut(TimeIsUp)
    out = strata(*TUNE, "--quiet", "--database", "other.db")
    assert "the groups were not compared inside the whole: the time was spent before\n" in out


def test_nothing_measured_is_said_of_each_group(judged: Judged, strata: Strata) -> None:
    from compiler.database.outcome import Outcome

    judged(lambda script: Outcome("wrong", reason="planted"))
    out = strata(*TUNE, "--quiet", status=1)
    assert [line for line in out.splitlines() if "planted" in line] == [
        "4 wrong, the first: planted",
        "1 wrong, the first: planted",
        "1 wrong, the first: planted",
    ]


def test_one_group_is_tuned_alone(judged: Judged, strata: Strata) -> None:
    judged(alike)
    assert strata(*TUNE, "--group", "group_1", "--quiet").startswith("net.group_1: 1 ms, ")
    assert "there is no group 'grop_1'; did you mean 'group_1'?" in strata(*TUNE, "--group", "grop_1", status=1)
    with Database("strata.db", create=False) as database:
        assert {record.name for record in database.records()} == {"net.group_1"}


def test_a_terminal_shows_a_whole_program_from_python(judged: Judged, monkeypatch: pytest.MonkeyPatch) -> None:
    judged(alike)
    monkeypatch.setenv("TERM", "xterm")
    monkeypatch.setattr("sys.stderr", screen := io.StringIO())
    monkeypatch.setattr(screen, "isatty", lambda: True)
    task = SearchTask(layer(), threads=1)
    for trials in (2, 3):
        task.tune(TuningOptions(trials, batch=1, database="strata.db"))
    drawn = screen.getvalue()
    assert "one call" in drawn and "layer.group_0" in drawn
    assert re.search(r"layer: \d tasks, .*3 trials, 2 of them from before, in \d+ s\n", drawn)


def layer() -> te.Function:
    """Two products, each with its own elementwise consumer, and what is left."""
    x, w, v = te.placeholder((6, 8), name="X"), te.placeholder((8, 8), name="W"), te.placeholder((8, 97), name="V")
    first = te.nn.relu(te.nn.matmul(x, w, name="first"), name="act")
    return te.function("layer", [x, w, v], [te.nn.relu(te.nn.matmul(te.nn.softmax(first), v, name="second"))])


def test_groups_that_strata_made_are_shown_in_the_names_of_the_program(
    judged: Judged, strata: Strata, here: Path
) -> None:
    judged(alike)
    (here / "layer.mlir").write_text(str(layer()))
    strata("tune", "layer.mlir", "--threads", "1", "--trials", "1", "--group", "group_0", "--quiet")
    canonical = strata("db", "best", "strata.db")
    named = strata("db", "best", "strata.db", "--names", "layer.mlir")
    assert '"product0"' in canonical and '"first"' in named and "product0" not in named
    explained = strata("explain", "layer.mlir", "--group", "group_0", "--static")
    assert explained.startswith("@group_0(X: float32[6, 8], W: float32[8, 8], act: float32[6, 8])")
    space = strata("space", "layer.mlir", "--group", "group_0", "--threads", "1")
    assert "first: gebp" in space and "product0" not in space


# --- strata db, space, explain, replay ------------------------------------------------------------------------------


@pytest.fixture
def tuned(judged: Judged, strata: Strata) -> None:
    judged(lambda script: measured(1e-3) if '"relu"' not in script else measured(2e-3))
    strata(*TUNE, "--quiet", "--log", "log")


@pytest.mark.usefixtures("tuned")
def test_the_best_of_a_whole_are_those_of_its_groups(strata: Strata) -> None:
    out = strata("db", "best", "strata.db", "--task", "net")
    assert re.findall("^// .*", out, re.MULTILINE) == [
        "// net.group_0: 1 ms",
        "// net.group_1: 1 ms",
        "// net.group_2: 2 ms",
    ]
    best = strata("db", "best", "strata.db", "--task", "net.group_1")
    assert best in out and "//" not in best
    assert strata("db", "best", "strata.db", "--task", "net", "--mode", "python").startswith("# net.group_0: 1 ms")
    assert len(strata("db", "best", "strata.db", "--task", "net", "--mode", "json").splitlines()) == 3
    assert "network" in strata("db", "list", "strata.db")
    wrong = strata("db", "best", "strata.db", "--task", "net.grup_1", status=1)
    assert "no task 'net.grup_1' in strata.db; did you mean 'net.group_1'? (it has net.group_0, " in wrong
    assert "there are several tasks (net.group_0 (" in strata("db", "best", "strata.db", status=1)
    none = strata("db", "best", "strata.db", "--task", "net", "--timing", "warm", status=1)
    assert "no such task with timing warm in strata.db (it has network)" in none


@pytest.mark.usefixtures("tuned")
def test_what_was_chosen_inside_is_the_best(strata: Strata) -> None:
    """The default, or a script that a better one followed; and the forms of groups."""
    with Database("strata.db") as database:
        groups = {summary.names[-1]: summary.key for summary in iter(database.keys())}
        for name, script, default in (("group_0", "// plain", True), ("group_1", "// earlier", False)):
            best = database.best(groups[f"net.{name}"])
            assert best is not None
            key, program = replace(best.key, whole="net"), best.program
            chosen = Record(key, best.name, program, script, Outcome(MEASURED, (1.0,), (1.0,)), default=default)
            database.choose([chosen])
            forms = (("winograd-2x2", 2.0), ("written", 1.0)) if default else ()
            database.choose(
                [Record(key, best.name, program, "", Outcome(MEASURED, (s,), (1.0,)), form=f) for f, s in forms]
            )
    out = strata("db", "best", "strata.db", "--task", "net")
    assert re.sub(r"record \d+", "record N", "\n".join(re.findall("^// .*", out, re.MULTILINE))).splitlines() == [
        "// forms of 1 group, timed inside the program: net.group_0 written (winograd-2x2 2.00)",
        "// net.group_0: the default, which was faster inside the program than record N",
        "// plain",
        "// net.group_1: chosen inside the program, before record N was found",
        "// earlier",
        "// net.group_2: 2 ms",
    ]
    alone = strata("db", "best", "strata.db", "--task", "net.group_0")
    assert alone.startswith("// the default, which was faster inside") and alone.endswith("// plain\n")
    lines = strata("db", "best", "strata.db", "--task", "net", "--mode", "json").splitlines()
    assert [json.loads(line).get("default") for line in lines] == [True, None, None]
    with Database("strata.db") as database:
        number = database.forms()[0].id
    none = strata("db", "best", "strata.db", "--record", str(number), status=1)
    assert "is the time of the form winograd-2x2, and has no script" in none
    with Database("strata.db") as database:
        database.add(
            replace(database.choices(best.key)[best.name], key=best.key, uuid=str(uuid4()), outcome=Outcome("wrong"))
        )
    assert "// earlier" not in strata("db", "best", "strata.db", "--task", "net"), "it failed since"


@pytest.mark.usefixtures("tuned")
def test_a_log_is_replayed_group_by_group(strata: Strata) -> None:
    arguments = ["replay", "net.mlir", "--threads", "1", "--constants", ",".join(CONSTANTS)]
    actual = strata(*arguments, "--group", "group_1", "log.group_1")
    assert actual.startswith("// net.group_1: the search repeats; 1 candidates were tried.")
    wrong = strata(*arguments, "log.group_1", status=1)
    assert "net has groups, each with a log of its own: --group says which (net.group_0, net.group_1, " in wrong


def test_space_lists_the_groups_or_shows_one(strata: Strata) -> None:
    arguments = ["space", "net.mlir", "--threads", "1", "--constants", ",".join(CONSTANTS)]
    heading, *rows = strata(*arguments).splitlines()
    assert heading == "net on 1 thread" and len(rows) == 3
    assert re.fullmatch(r"net\.group_0, 2 calls: \d+ sketches, \d+ candidates", rows[0])
    assert strata(*arguments, "--group", "net.group_1").startswith("net.group_1 on 1 thread\n2 sketches, ")
    for option in (["--show", "0"], ["--sample", "2"], ["--filter", "x"], ["--dropped"]):
        wrong = strata(*arguments, *option, status=1)
        assert "net has groups, each with a space of its own: --group says which (net.group_0" in wrong


def test_explain_lists_the_groups_or_explains_one(
    capsys: pytest.CaptureFixture[str], strata: Strata, here: Path
) -> None:
    sources, heading, out = strata("explain", "net.mlir", "--static").partition("net.mlir has 4 groups; ")
    assert sources.startswith("net.mlir by source, for 1 thread of ") and "net.mlir:" in sources and heading
    assert [row.split()[:3] for row in out.splitlines()[2:]] == [
        ["group_3", "1", "1"],
        ["group_0", "2", "2"],
        ["group_1", "1", "1"],
        ["group_2", "1", "1"],
    ]
    content = json.loads(strata("explain", "net.mlir", "--json"))
    product = {"name": "group_0", "calls": 2, "computes": 2, "operations": 816, "bytes": 4 * (48 + 64 + 8 + 48)}
    assert content[1] == product
    assert strata("explain", "net.mlir", "--group", "group_2", "--static").startswith("@group_2(Z: float32[6, 8]")
    (here / "empty.mlir").write_text("transform.named_sequence @s(%f: !transform.any_op) { transform.yield }\n")
    scripted = strata("explain", "net.mlir", "--group", "group_2", "--static", "--script", "empty.mlir")
    assert scripted.startswith("@group_2(")
    for option in (["--loop", "1"], ["--asm"]):
        wrong = strata("explain", "net.mlir", *option, status=1)
        assert "each group has loops of its own: --group picks one" in wrong
    assert "no group 'group_9'; did you mean" in strata("explain", "net.mlir", "--group", "group_9", status=1)
