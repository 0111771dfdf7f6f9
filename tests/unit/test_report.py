"""The page of a database: what it says, that it is well-formed, and where its points are."""

from __future__ import annotations

import re
from dataclasses import replace
from html.parser import HTMLParser
from pathlib import Path

import pytest

from compiler.__main__ import main
from compiler.autotune.database import Database, Key, Record
from compiler.autotune.database.record import hash_of
from compiler.autotune.outcome import MEASURED, Outcome
from compiler.autotune.tell.report import HEIGHT, WIDTH, page
from compiler.targets.cpu.presence import Disturbance

KEY = Key(hash_of("a program"), "lab <1>", 1, "contract")


def made(script: str, cost: float | str, predicted: float | None = None) -> Record:
    outcome = Outcome(cost, reason="a < b") if isinstance(cost, str) else Outcome(MEASURED, (cost / 100,), (100.0,))
    return Record(KEY, "task & co", "a program", script, outcome, predicted=predicted)


ROW = r"<tr><td>(\d)</td><td>(\S+)</td><td>(\S+)</td><td>(\d)</td><td>(\S+)</td></tr>"
RECORDS = [
    made("// first <script>", 4.0),
    made("// second", "wrong"),
    made("// third", 2.0, 3.0),
    made("// fourth", 8.0, 6.0),
    made("// third", 3.0),
]


class Checked(HTMLParser):
    """Whether each tag that begins ends, in order."""

    def __init__(self) -> None:
        super().__init__()
        self.open: list[str] = []

    def handle_starttag(self, tag: str, attrs: object) -> None:
        if tag not in ("meta", "!doctype"):
            self.open.append(tag)

    def handle_startendtag(self, tag: str, attrs: object) -> None:
        return

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag


def test_a_page_tells_the_search() -> None:
    text = "\n".join(page([("task & co", KEY, RECORDS)]))
    checked = Checked()
    checked.feed(text)
    checked.close()
    assert not checked.open
    assert "<h1>task &amp; co</h1>" in text and "lab &lt;1&gt;, 1 thread, policy contract" in text
    assert "4 scripts tried, 3 measured. Of 1 pairs, 100% were foreseen in order." in text
    assert "<td>wrong</td><td>1</td><td>2</td><td>a &lt; b</td>" in text
    assert re.findall(ROW, text) == [
        ("3", "25", "1.000", "2", "-"),  # the median of both measurements
        ("1", "40", "1.600", "1", "-"),
        ("4", "80", "3.200", "1", "-"),
    ]
    assert "busy" not in text, "nobody has looked"
    assert "<pre>// third</pre>" in text


def test_times_rank_as_costs_do() -> None:
    """The machine was four times as slow when the best was measured, and busy when the other was."""
    best, other = made("// best", 1.0), made("// other", 1.0)
    slow = replace(best, outcome=Outcome(MEASURED, (0.04,), (25.0,)))
    quick = replace(other, outcome=Outcome(MEASURED, (0.02,), (100.0,), disturbance=Disturbance(1.0, 0.25, 3, 1)))
    text = "\n".join(page([("task", KEY, [quick, slow])]))
    assert re.findall(ROW, text) == [("2", "40", "1.000", "1", "-"), ("1", "80", "2.000", "1", "25%")]
    said = "the machine was busy: off the processor for 25% of the measured time, 3 samples repeated, 1 used although"
    assert f"<p>{said} disturbed.</p>" in text


def test_the_drawings_are_to_scale() -> None:
    text = "\n".join(page([("task", KEY, RECORDS)]))
    drawings = re.findall(r"<svg.*?</svg>", text)
    assert [len(re.findall("<circle", drawing)) for drawing in drawings] == [3, 2]
    points = [tuple(map(float, p)) for p in re.findall(r'cx="(\S+)" cy="(\S+)"', drawings[0])]
    assert all(0 <= x <= WIDTH and 0 <= y <= HEIGHT for x, y in points)
    (first, third, fourth) = points
    assert first[0] < third[0] < fourth[0] and (third[0] - first[0]) == pytest.approx(
        2 * (fourth[0] - third[0]), abs=0.2
    )
    assert fourth[1] < first[1] < third[1]  # upwards is slower
    steps = re.search(r'class="line" d="M(.*?)"', drawings[0])
    assert steps is not None
    line = [tuple(map(float, p.split())) for p in steps[1].split(" L")]
    assert line == [first, third, (fourth[0], third[1])]  # the best so far


@pytest.mark.parametrize("records", [[], RECORDS[1:2], RECORDS[:1], [made("// a", 1.0), made("// b", 1.0)]])
def test_few_records_make_a_page(records: list[Record]) -> None:
    assert "</html>" in "\n".join(page([("task", KEY, records)]))


def test_the_command_writes_it(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file, out = tmp_path / "some.db", tmp_path / "some.html"
    with Database(file) as database:
        for record in RECORDS:
            database.add(record)
    assert main(["db", "report", str(file), str(out)]) == 0
    assert capsys.readouterr().out == f"1 task written to {out}\n"
    assert main(["db", "report", str(file), "-"]) == 0
    assert capsys.readouterr().out == out.read_text()
    for arguments in ([str(tmp_path / "none.db"), str(out)], [str(file), str(tmp_path)], [str(file), "a\0b"]):
        assert main(["db", "report", *arguments]) == 1
        assert "Traceback" not in capsys.readouterr().err


@pytest.mark.parametrize("predicted", [None, 5e-324, 1.0, 1.7e308, -1.0])
@pytest.mark.parametrize("cost", [5e-324, 1e-300, 1.0, 1e300])
def test_costs_of_any_size_are_drawn(cost: float, predicted: float | None) -> None:
    """A file may say what no machine measures."""
    records = [made("a", cost, predicted), made("b", 1.7e308), made("c", 0.0)]
    assert all("nan" not in line and "inf" not in line for line in page([("task", KEY, records)]) if "<svg" in line)
