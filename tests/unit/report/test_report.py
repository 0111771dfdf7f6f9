"""The page of a database: that its numbers agree, that it is well-formed and stands alone, and where its points are."""

from __future__ import annotations

import re
from dataclasses import replace
from html.parser import HTMLParser
from itertools import pairwise
from pathlib import Path
from random import Random

import pytest

from compiler.__main__ import main
from compiler.bench.workloads import find
from compiler.database import Database, Key, Record, WholeProgram, program_of
from compiler.database.outcome import MEASURED, NETWORK, Outcome
from compiler.database.record import hash_of
from compiler.driver.parts.groups import GroupedProgram, grouped_program_of
from compiler.driver.reference.subject import share
from compiler.pipeline.loops import lower
from compiler.report.importance import choices_of, importance
from compiler.report.layers import layers
from compiler.report.memory import memory_of
from compiler.report.page import page
from compiler.report.pictures import busy, curve, predicted, roofline
from compiler.report.programs import TuningReport, gather
from compiler.report.svg import HEIGHT, WIDTH, Drawing, PlotAxis
from compiler.report.tasks import TaskFacts
from compiler.schedule import Schedule
from compiler.space.derivation import as_written
from compiler.support.text import duration
from compiler.targets.cpu.presence import Disturbance
from compiler.types.machines import host
from tests.whole import CONSTANTS, whole

KEY = Key(hash_of("a program"), "lab <1>", 1, "contract")
SMALL = find("matmul:32x32x32").function()
WRITTEN = str(as_written(Schedule(lower(SMALL)), host()).script)
"""Of a program whose loops `build` reorders."""
VOID = ("meta", "!doctype")


def made(script: str, cost: float | str, predicted: float | None = None) -> Record:
    outcome = Outcome(cost, reason="a < b") if isinstance(cost, str) else Outcome(MEASURED, (cost / 100,), (100.0,))
    return Record(KEY, "task & co", "a program", script, outcome, predicted=predicted)


RECORDS = [
    made("// first <script>", 4.0),
    made("// second", "wrong"),
    made("// third", 2.0, 3.0),
    made("// fourth", 8.0, 6.0),
    made("// third", 3.0),
]


class Checked(HTMLParser):
    """Whether each tag that begins ends, in order; the text of cells by row, and what the page would load."""

    def __init__(self) -> None:
        super().__init__()
        self.open: list[str] = []
        self.rows: list[list[str]] = []
        self.tags: list[tuple[str, dict[str, str | None]]] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append((tag, dict(attrs)))
        if tag not in VOID:
            self.open.append(tag)
        if tag == "tr":
            self.rows.append([])
        if tag == "td":
            self.rows[-1].append("")

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag

    def handle_data(self, content: str) -> None:
        if "td" in self.open:
            self.rows[-1][-1] += content.strip()


def checked(text: str) -> Checked:
    """A page that is well-formed, stands alone, and runs nothing."""
    actual = Checked()
    actual.feed(text)
    actual.close()
    assert not actual.open
    names = [name for name, _ in actual.tags]
    assert not {"script", "link", "img", "iframe", "object", "base"} & set(names)
    for name, attributes in actual.tags:
        assert not {"src", "srcset", "action"} & attributes.keys()
        assert not any(attribute.startswith("on") for attribute in attributes)
        assert attributes.get("href", "#").startswith("#")  # type: ignore[union-attr]
        assert name != "svg" or attributes["viewbox"] == f"0 0 {WIDTH} {HEIGHT}"
    assert "url(" not in text and "@import" not in text and 'name="viewport"' in text
    return actual


def text_of(*records: Record, codes: int = 0) -> str:
    with Database(":memory:") as database:
        for record in records:
            database.add(record)
        return "\n".join(page(gather(database, database.keys()), codes))


def test_a_page_tells_the_search() -> None:
    text = text_of(*RECORDS)
    rows = checked(text).rows
    assert "<title>task &amp; co: tuning</title>" in text and "lab &lt;1&gt;, 1 thread, policy contract" in text
    assert "4 scripts tried, 3 measured. The best is trial 3: 25 ms, 1.6 times as fast as the first, trial 1." in text
    assert "Of 1 pairs, 100% were in order." in text
    assert ["wrong", "its results differ from the reference", "1", "trial 2", "a < b"] in rows
    ranking = [row for row in rows if len(row) == 5 and row[2].count(".") == 1]
    assert ranking == [
        ["3", "25 ms", "1.000", "2", ""],  # the median of both measurements
        ["1", "40 ms", "1.600", "1", ""],
        ["4", "80 ms", "3.200", "1", ""],
    ]
    assert "The machine was busy" not in text, "nobody has looked"
    assert "<pre>// third</pre>" in text and "<pre>// first &lt;script&gt;</pre>" in text


def test_the_program_as_written_is_the_baseline() -> None:
    text = text_of(made("// first", 4.0), made(WRITTEN, 8.0), made("// best", 2.0))
    assert "20 ms, 4 times as fast as the program as written." in text and "<h3>As written: 80 ms</h3>" in text


def test_times_rank_as_costs_do() -> None:
    """The machine was four times as slow when the best was measured, and busy when the other was."""
    best, second = made("// best", 1.0), made("// other", 1.0)
    slow = replace(best, outcome=Outcome(MEASURED, (0.04,), (25.0,)))
    quick = replace(second, outcome=Outcome(MEASURED, (0.02,), (100.0,), disturbance=Disturbance(1.0, 0.25, 3, 1)))
    text = text_of(quick, slow)
    rows = checked(text).rows
    assert ["2", "40 ms", "1.000", "1", ""] in rows and ["1", "80 ms", "2.000", "1", "25%"] in rows
    said = "The machine was busy: off the processor for 25% of the measured time, 3 samples repeated, 1 used although"
    assert f"<p>{said} disturbed.</p>" in text and "measurements 1 to 1: 25.0% of the time" in text


@pytest.mark.parametrize("records", [RECORDS[1:2], RECORDS[:1], [made("// a", 1.0), made("// b", 1.0)]])
def test_few_records_make_a_page(records: list[Record]) -> None:
    text = text_of(*records)
    checked(text)
    assert "Nothing is known with so few trials" in text


@pytest.mark.parametrize("hostile", ["</title><script>x</script>", "\x1b[2J\u202e", "'\" onload='x", "&lt;"])
def test_what_a_record_says_is_only_shown(hostile: str) -> None:
    name = "".join(char for char in hostile if char.isprintable())
    key = replace(KEY, machine=name)
    failed = Outcome("wrong", reason=hostile)
    records = [replace(made(f"{hostile} {n}", 1.0 + n), name=name, key=key) for n in range(2)]
    text = text_of(*records, replace(records[0], script="c", outcome=failed, uuid=made("c", 1.0).uuid))
    checked(text)
    assert "\x1b" not in text and "\u202e" not in text


@pytest.mark.parametrize("predicted", [None, 5e-324, 1.0, 1.7e308, -1.0])
@pytest.mark.parametrize("cost", [5e-324, 1e-300, 1.0, 1e300])
def test_costs_of_any_size_are_drawn(cost: float, predicted: float | None) -> None:
    """A file may say what no machine measures."""
    text = text_of(made("a", cost, predicted), made("b", 1.7e308), made("c", 0.0))
    checked(text)
    assert all("nan" not in svg and "inf" not in svg for svg in re.findall("<svg.*?</svg>", text))


# --- pictures -------------------------------------------------------------------------------------------------------


def points(drawing: Drawing | None) -> list[tuple[float, float]]:
    assert drawing is not None
    collected = [(float(x), float(y)) for x, y in re.findall(r'cx="(\S+)" cy="(\S+)"', drawing.svg())]
    assert all(0 <= x <= WIDTH and 0 <= y <= HEIGHT for x, y in collected)
    return collected


def test_the_curve_is_to_scale() -> None:
    drawing = curve(TaskFacts.of("task", KEY, RECORDS))
    first, third, fourth = points(drawing)
    assert drawing is not None
    assert third[0] - first[0] == pytest.approx(2 * (fourth[0] - third[0]), abs=0.2)
    assert fourth[1] < first[1] < third[1], "upwards is slower"
    steps = re.search(r'class="line" d="M(.*?)"', drawing.svg())
    assert steps is not None
    line = [tuple(map(float, p.split())) for p in steps[1].split(" L")]
    assert line[-1] == (fourth[0], third[1]), "the best so far"
    assert "trial 3: 25 ms" in drawing.svg()


def test_predictions_are_beside_measurements() -> None:
    drawing = predicted(TaskFacts.of("task", KEY, RECORDS))
    assert len(points(drawing)) == 2 and drawing is not None
    assert "trial 3: predicted 30 ms, took 25 ms" in drawing.svg()
    assert predicted(TaskFacts.of("task", KEY, RECORDS[:2])) is None


def test_a_long_search_is_thinned_and_keeps_what_was_best() -> None:
    records = [made(f"// {n}", 100.0 if n == 1501 else 200.0 + n) for n in range(2000)]
    drawing = curve(TaskFacts.of("task", KEY, records))
    assert drawing is not None and len(points(drawing)) < 400
    assert "trial 1502: 1 s" in drawing.svg() and len(drawing.svg()) < 50_000


def test_how_busy_the_machine_was_is_drawn_in_bins() -> None:
    assert busy([]) is None
    drawing = busy([Disturbance(1.0, n % 2 / 2, n, 0) for n in range(120)])
    assert drawing is not None and drawing.svg().count("<rect") == 60
    assert "measurements 1 to 2: 25.0% of the time off the processor, 1 sample repeated" in drawing.svg()
    endless = busy([Disturbance(1.7e308, 1.7e308, 2**63 - 1, 1)] * 61)
    assert endless is not None and "nan" not in endless.svg() and "100.0% of the time" in endless.svg()


@pytest.mark.parametrize(
    ("axis", "ticks"),
    [
        (PlotAxis.over([1.0, 8.0]), [2.0, 4.0, 6.0, 8.0]),
        (PlotAxis.over([3.0]), [3.0]),
        (PlotAxis.over([0.3, 0.4], True), [0.3, 0.35, 0.4]),
        (PlotAxis.over([0.9, 120.0], True), [1.0, 10.0, 100.0]),
        (PlotAxis.over([], True), [0.95, 1.0, 1.05, 1.1]),
    ],
)
def test_numbers_at_axes_are_round(axis: PlotAxis, ticks: list[float]) -> None:
    actual = axis.ticks()
    assert actual == pytest.approx(ticks) and all(0 <= axis.share(tick) <= 1 for tick in actual)


# --- importance -----------------------------------------------------------------------------------------------------


def chosen(tile: int, width: int, cost: float) -> Record:
    return made(
        f"%rows = sched.sample_categorical [2, 4, 8] decision {tile}\n"
        f"%a, %b = sched.sample_perfect_tile %l innermost 8 decision [{width}, 4] : !sched.param, !sched.param\n",
        cost,
    )


def test_the_choice_that_decides_the_time_is_the_most_important() -> None:
    costs = {0: 4.0, 1: 1.0, 2: 2.0}
    records = [chosen(tile, width, costs[tile] * (1 + width / 100)) for tile in costs for width in range(6)]
    actual = choices_of(TaskFacts.of("task", KEY, records))
    rows, width = actual.choices
    assert (rows.name, width.name, actual.trials) == ("rows", "a", 18)
    assert rows.share > 0.99 and width.share < 0.05
    assert [option.name for option in rows.options] == ["4", "8", "2"]
    assert width.options[0].name == "0 x 4" and width.options[0].trials == 3
    assert actual.sketches is None, "there is one"


def test_nothing_is_said_of_few_trials() -> None:
    assert choices_of(TaskFacts.of("task", KEY, [chosen(n, 1, 1.0 + n) for n in range(3)])).choices == ()
    assert importance("x", list("abcdefghijklm"), [1.0 + n for n in range(13)]) is None, "an option for each trial"
    assert importance("x", ["a"] * 20, [1.0 + n for n in range(20)]) is None
    random = Random(0)
    chance = importance("x", list("abcdefghij") * 3, [random.uniform(1, 2) for _ in range(30)])
    assert chance is not None and chance.share < 0.1, "ten options would explain a third by chance"
    same = importance("x", ["a", "b"] * 10, [1.0] * 20)
    assert same is not None and same.share == 0.0


def test_sketches_are_a_choice() -> None:
    records = [chosen(n % 3, n % 2, 1.0 + n / 100) for n in range(10)]
    records += [made(f"// {n}\n", 3.0) for n in range(1)] + [made("%x = sched.sample_categorical [1] decision 0", 9.0)]
    others = [made(f"%y = sched.sample_categorical [1, 2, 3, 4] decision {n}", 5.0 + n / 100) for n in range(4)]
    actual = choices_of(TaskFacts.of("task", KEY, [*records, *others]))
    assert actual.sketches is not None and actual.sketches.share > 0.9


# --- whole programs -------------------------------------------------------------------------------------------------

KEPT = WholeProgram("net", whole(), tuple(range(1, 1 + len(CONSTANTS))))
MILLISECONDS = {"group_0": 2.0, "group_1": 3.0, "group_2": 0.5}


def network(path: Path, **milliseconds: float) -> Path:
    """A database of groups with these times, the ceiling such that each reaches half of it."""
    with Database(path) as database:
        database.keep(KEPT)
        for group in grouped_program_of(KEPT).groups:
            if group.name not in milliseconds:
                continue
            text, seconds = program_of(group.loops), milliseconds[group.name] / 1e3
            key = Key(hash_of(text), host().name, 1, "contract", NETWORK)
            program = TaskFacts.of("", key, [Record(key, "x", text, "", Outcome("wrong"))]).program
            assert program is not None
            work = share(program, host(), 1.0)
            assert work is not None
            for script, times in ((WRITTEN, 2.0), ("// best", 1.0)):
                outcome = Outcome(MEASURED, (times * seconds,), (2 * work / seconds,))
                database.add(Record(key, f"net.{group.name}", text, script, outcome))
    return path


def report(path: Path) -> TuningReport:
    with Database(path) as database:
        return gather(database, database.keys())


def test_the_numbers_of_a_whole_program_agree(tmp_path: Path) -> None:
    actual = report(network(tmp_path / "net.db", **MILLISECONDS))
    (program,) = actual.programs
    assert [(program.short(task), task.calls) for task in program.tasks] == [
        ("group_0", 2),
        ("group_1", 1),
        ("group_2", 1),
    ]
    assert program.seconds == pytest.approx(7.5e-3) and program.bound_seconds == pytest.approx(3.75e-3)
    assert sum(program.share(task) or 0.0 for task in program.tasks) == pytest.approx(1.0)
    assert [task.bound for task in program.tasks] == pytest.approx([0.5] * 3)
    text = "\n".join(page(actual, codes=0))
    rows = [row for row in checked(text).rows if len(row) == 11]
    assert [row[10] for row in rows] == ["W", "", "", ""]
    assert [row[:8] for row in rows] == [
        ["group_0", "4 ms", "53.3%", "2", "2 ms", "50%", "2.00 x", "2"],
        ["group_1", "3 ms", "40.0%", "1", "3 ms", "50%", "2.00 x", "2"],
        ["group_2", "500 us", "6.7%", "1", "500 us", "50%", "2.00 x", "2"],
        ["sum", "7.5 ms", "100.0%", "4", "", "50%", "", "6"],
    ]
    links = [a["href"] for tag, a in checked(text).tags if tag == "a"]
    assert all(f'id="{str(link)[1:]}"' in text for link in links) and len(links) == 3
    for task in program.tasks:
        assert task.curve[-1].best == task.seconds
        assert f"trial 2: {duration(task.seconds or 0)}" in text and f"{task.name}: {task.operator}" in text
    assert "net: 7.5 ms a run" in text and "the program reaches 50% of the bound" in text
    assert "Most time above the bound: group_0 (2 ms), group_1 (1.5 ms), group_2 (250 us)." in text


def test_what_was_chosen_inside_the_program_is_said(tmp_path: Path) -> None:
    path = network(tmp_path / "net.db", **MILLISECONDS)
    with Database(path) as database:
        for n, summary in enumerate(database.keys()):
            key, best = replace(summary.key, whole="net"), database.best(summary.key)
            assert best is not None
            script = "// the default" if n else best.script
            for fields in ({"script": script, "default": n == 1}, {"script": "", "form": "winograd-2x2"}):
                outcome = Outcome(MEASURED, (1.0,), (1.0,))
                database.choose([Record(key, f"net.group_{n}", best.program, outcome=outcome, **fields)])  # type: ignore[arg-type]
    actual = report(path)
    (program,) = actual.programs
    assert program.seconds == pytest.approx(7.5e-3), "the best by trials, as in the pictures"
    text = "\n".join(page(actual, codes=0))
    assert "Forms of 3 groups, timed inside the program: net.group_0 winograd-2x2 (), " in text
    said = re.findall("Inside the program (.*) was faster, and is chosen", text)
    assert said == ["the default", "an earlier script"]


def test_tasks_stand_below_the_roof_as_their_shares_say(tmp_path: Path) -> None:
    """All are bound by bytes here, so that the roof is one slope: each is half below it."""
    (program,) = report(network(tmp_path / "net.db", **MILLISECONDS)).programs
    drawing = roofline(program)
    assert drawing is not None and len(points(drawing)) == len([t for t in program.tasks if t.work and t.work.flops])
    assert "50% of the bound" in drawing.svg()


def test_words_that_would_cover_each_other_are_left_out() -> None:
    drawing = Drawing("", "", "", PlotAxis(0, 100), PlotAxis(0, 100))
    for at, word in (((10, 10), "one"), ((12, 11), "over it"), ((90, 10), "apart")):
        drawing.word(at, word, False)
    assert re.findall('class="name".*?>(.*?)<', drawing.svg()) == ["one", "apart"]


def test_groups_without_records_are_named(tmp_path: Path) -> None:
    (program,) = report(network(tmp_path / "net.db", group_1=1.0)).programs
    assert program.unmeasured == ("net.group_0", "net.group_2")
    text = "\n".join(page(TuningReport((program,))))
    assert "Nothing was measured of net.group_0, net.group_2." in text and "net: 1 ms a run so far" in text
    (task,) = program.tasks
    foreign = replace(program, tasks=(replace(task, key=replace(task.key, machine="abacus")),))
    assert "The bound is not known of group_1." in "\n".join(page(TuningReport((foreign,)), codes=0))


def test_a_group_that_is_asked_for_is_no_program(tmp_path: Path) -> None:
    with Database(network(tmp_path / "net.db", **MILLISECONDS)) as database:
        (program,) = gather(database, database.keys()[:1]).programs
    assert not program.is_whole and program.seconds is None and [task.calls for task in program.tasks] == [None]


def test_a_program_that_cannot_be_read_leaves_its_tasks(tmp_path: Path) -> None:
    path = tmp_path / "net.db"
    with Database(path) as database:
        database.keep(WholeProgram("<b>", "nonsense"))
        for record in RECORDS:
            database.add(record)
    actual = report(path)
    assert len(actual.warnings) == 1 and "what calls the groups of <b> cannot be read" in actual.warnings[0]
    text = "\n".join(page(actual))
    checked(text)
    assert "&lt;b&gt;" in text and "These tasks are not all of one known program" in text


def test_records_of_another_machine_have_no_bound(tmp_path: Path) -> None:
    with Database(network(tmp_path / "net.db", **MILLISECONDS)) as database:
        records = database.records()
    text = text_of(*(replace(record, key=replace(record.key, machine="abacus")) for record in records), codes=3)
    checked(text)
    assert "The bound is not known of" not in text, "they are of no program"
    assert "of the bound" not in text.replace(">of the bound<", "")
    assert "the records are of abacus, and machine code is made for the machine at hand" in text


def test_buffers_lie_apart_while_they_live() -> None:
    actual = memory_of(GroupedProgram(grouped_program_of(KEPT).module, KEPT.constants).constant_split.main)
    assert actual.steps == ("group_0", "group_0", "group_1", "group_2")
    assert actual.sum == 3 * 6 * 8 * 4 and max(actual.live) <= actual.size < actual.sum
    for left, right in pairwise(sorted(actual.buffers, key=lambda buffer: buffer.first)):
        meet = left.first <= right.last and right.first <= left.last
        apart = left.offset + left.size <= right.offset or right.offset + right.size <= left.offset
        assert apart or not meet
    assert all(buffer.size == 6 * 8 * 4 for buffer in actual.buffers)


def test_machine_code_stands_beside_the_script(tmp_path: Path) -> None:
    text = program_of(SMALL)
    key = Key(hash_of(text), host().name, 1, "contract")
    path = tmp_path / "one.db"
    with Database(path) as database:
        database.add(Record(key, "scale", text, WRITTEN, Outcome(MEASURED, (1e-3,), (1e9,))))
        database.add(Record(key, "scale", text, "no script", Outcome(MEASURED, (1e-4,), (1e9,))))
    page_text = "\n".join(page(report(path), codes=1))
    checked(page_text)
    assert "Assembly of " in page_text and "there is no machine code: its script cannot be read" in page_text


def test_failures_of_all_tasks_stand_together() -> None:
    records = [made("// y", "crash"), made("// z", "wrong")]
    key = replace(KEY, program=hash_of("another"))
    second = replace(made("// x", "wrong"), key=key, program="another", name="other")
    rows = checked(text_of(RECORDS[1], *records, second)).rows
    assert ["wrong", "its results differ from the reference", "3", "task & co", "a < b"] in rows
    assert ["crash", "it ended the process that ran it", "1", "task & co", "a < b"] in rows
    assert ["wrong", "its results differ from the reference", "1", "trial 1", "a < b"] in rows


# --- the command ----------------------------------------------------------------------------------------------------


def test_the_command_writes_it(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file, out = tmp_path / "some.db", tmp_path / "some.html"
    with Database(file) as database:
        for record in RECORDS:
            database.add(record)
    assert main(["db", "report", str(file), str(out)]) == 0
    assert capsys.readouterr().out == f"1 task written to {out}\n"
    assert main(["db", "report", str(file), "-", "--code", "0"]) == 0
    assert "</html>" in capsys.readouterr().out
    none = str(tmp_path / "none.db")
    for arguments in (
        [none, str(out)],
        [str(file), str(tmp_path)],
        [str(file), "a\0b"],
        [str(file), "x", "--task", "y"],
    ):
        assert main(["db", "report", *arguments]) == 1
        assert "Traceback" not in capsys.readouterr().err


def test_the_layers_of_a_network_are_named_by_their_weights(tmp_path: Path) -> None:
    """A tensor that is computed of constants is of their layer; a call without constants is of none."""
    main_text, start, groups = KEPT.text.partition("func.func private")
    for name, given in {"%W": "%encoder.0.dense.weight", "%b": "%encoder.0.dense.bias", "%g": "%norm.gamma"}.items():
        main_text = re.sub(rf"{name}\b", given, main_text)
    text = f"{main_text}{start}{groups}"
    kept = replace(KEPT, text=text)
    assert layers(grouped_program_of(kept)) == {"group_0": ("encoder.0.dense",), "group_1": (), "group_2": ()}
    with Database(network(tmp_path / "net.db", **MILLISECONDS)) as database:
        (program,) = gather(database, database.keys()).programs
    task = replace(program.tasks[0], layers=("a.<b>", "a.c", "a.d"))
    html = "\n".join(page(TuningReport((replace(program, tasks=(task, *program.tasks[1:])),)), codes=0))
    assert '<td class="words">a.&lt;b&gt;, a.c and 1 more</td>' in html
    assert "Its calls are of the layers a.&lt;b&gt;, a.c, a.d." in html
    checked = Checked()
    checked.feed(html)
    table = [row for row in checked.rows if len(row) == len(checked.rows[1])]
    assert len(table) >= 4, "each row has the column"
