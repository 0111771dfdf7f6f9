"""What records, files and workloads say reaches terminals and pages as text: no escapes, no markup, no other order."""

from __future__ import annotations

import json
import re
import unicodedata
from html.parser import HTMLParser
from io import StringIO
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from rich.console import Console

import compiler
from compiler.__main__ import main
from compiler.autotune.display.facts import RunFacts
from compiler.autotune.display.progress import Progress
from compiler.autotune.display.views import Lines, Screen
from compiler.autotune.task import SearchTask
from compiler.cli.tune import _print
from compiler.database.outcome import Outcome
from compiler.opt import main as opt
from compiler.schedule import Schedule
from compiler.schedule.primitives import PRIMITIVES
from compiler.support.text import printable, similar_names
from tests.unit.database.test_database import PROGRAM, SCRIPT, filled, made, product

HOSTILE = "\x1b[2J\x1b]0;owned\x07\x9b31m\u202egnp\u2066.exe\x7f\r\x00[red]bold[/red]<script>alert(1)</script>\u2028"


def harmless(text: str) -> bool:
    """Whether a terminal shows a text as it is."""
    return all(char.isprintable() or char in "\n\t" for char in text)


def shown() -> dict[str, Any]:
    """Objects that a session shows, with names that are markup and escapes where they may have such."""
    function = product()
    schedule = Schedule(function)
    block = schedule.get_block("C")
    loops = schedule.get_loops(block)
    kernel = compiler.build(function, schedule="written")
    a, b = np.ones((8, 6), np.float32), np.ones((6, 4), np.float32)
    task = SearchTask(function, threads=1, name="<script>alert(1)</script>")
    timing = kernel.time(a, b, repeats=2)
    kernel.name = schedule.name = "<script>alert(1)</script>\n\x1b[2J"
    return {
        "<Function product(A: f32[8, 6], B: f32[6, 4]) -> C: f32[8, 4]>": function,
        "<Tensor C: f32[8, 4]>": function.outputs[0],
        "<block %C, of sched.get_block>": block,
        "<loop %m, of sched.get_loops>": loops[0],
        "<Schedule of *, 2 steps>": schedule,
        "<Kernel *C: float32[8, 4]), 1 output>": kernel,
        "<Timing *: the median of 2 repeats, * to *>": timing,
        "<SearchTask <script>alert(1)</script> for *, 1 thread>": task,
        "<Record of task: measured: 1 ms on lab, 1 thread, *>": made(1e-3),
        "<CudaKernel product(*), 1 output, sm_80>": compiler.build(function, target="cuda"),
    }


def test_what_a_session_shows_is_one_line_and_a_notebook_gets_text() -> None:
    pages = 0
    for expected, value in shown().items():
        pattern = re.escape(expected).replace(r"\*", ".*")
        assert re.fullmatch(pattern, repr(value)), repr(value)
        assert repr(value).isprintable() and len(repr(value)) < 200
        if hasattr(type(value), "_repr_html_"):
            html = value._repr_html_()
            pages += "alert(1)" in html
            assert "<script>" not in html and "\x1b" not in html and harmless(html)
    assert pages == 3


NEAR = [
    ("tlie", "tile"), ("fues", "fuse"), ("splt", "split"), ("paralel", "parallel"), ("vectorise", "vectorize"),
    ("get_blok", "get_block"), ("reverse_compute", "reverse_compute_at"), ("cache", "cache_read"), ("b", "B"),
    ("pipeline", "software_pipeline"), ("rnu", "run"), ("--treads", "--threads"), ("parallel", "parallelize"),
    ("re_order", "reorder"), ("mm_exp_m", "mm_exp_mm"), ("Split", "split"),
]  # fmt: skip
FAR = [
    ("undo", "unroll"), ("remove", "reverse"), ("reset", "reverse"), ("build", "bind"), ("save", "stage"),
    ("unbind", "bind"), ("print", "partition"), ("delete", "tensorize"), ("a", "b"), ("x1", "x2"), ("sum", "sub"),
    ("run", "unroll"), ("copy", "compute_at"), ("merged_nest", "prefetch"), ("", "split"), ("foo", "fuse"),
]  # fmt: skip


@pytest.mark.parametrize(("name", "meant"), NEAR)
def test_a_name_that_is_nearly_right_finds_the_right_one(name: str, meant: str) -> None:
    assert similar_names(name, ["stage_window", meant, "annotated"]) == [meant]


@pytest.mark.parametrize(("name", "other"), FAR)
def test_what_is_far_is_not_proposed(name: str, other: str) -> None:
    assert similar_names(name, [other]) == []


def test_no_primitive_is_proposed_for_another_verb() -> None:
    for name, _ in FAR:
        with pytest.raises(AttributeError) as refused:
            getattr(Schedule(product()), name or "step_back")
        assert not any(f" {primitive}" in str(refused.value).partition("'; ")[2] for primitive in PRIMITIVES), name


def test_what_is_visible_stays() -> None:
    assert printable("größe 😀\n\tline") == "größe 😀\n\tline"
    assert printable("\x1b[31m\x9b\u202e\ud800\r") == "\\x1b[31m\\x9b\\u202e\\ud800\\r"
    for code in range(0x110000):
        char = chr(code)
        if unicodedata.category(char) in ("Cc", "Cf", "Cs", "Zl", "Zp") and char not in "\n\t":
            assert printable(char).isascii() and printable(char).isprintable(), hex(code)


@pytest.fixture
def path(tmp_path: Path) -> Path:
    """Records whose texts are hostile wherever a record may have any text."""
    script = SCRIPT.replace("builtin.module {", f"builtin.module {{ // {HOSTILE.replace(chr(0x2028), '')}", 1)
    wrong = made("wrong", program=PROGRAM, outcome=Outcome("wrong", reason=HOSTILE), run=HOSTILE)
    best = made(1.0, program=PROGRAM, script=script, versions={HOSTILE: HOSTILE}, name="[red]x[/red]<b>")
    return filled(tmp_path / "tuning.db", wrong, best)


@pytest.mark.sampled
@pytest.mark.parametrize(
    "arguments",
    [
        ["list", "{path}"],
        ["list", "{path}", "--json"],
        ["best", "{path}"],
        ["best", "{path}", "--mode", "json"],
        ["best", "{path}", "--mode", "python"],
        ["best", "{path}", "--mode", "asm"],
        ["best", "{path}", "--record", "1", "--mode", "json"],
        ["best", "{path}", "--record", "99"],
        ["best", "{path}", "--task", HOSTILE],
        ["export", "{path}"],
        ["replay", "{path}"],
        ["report", "{path}", "-"],
        ["prune", "{path}", "--failed"],
        ["list", HOSTILE.replace("\0", "")],
    ],
)
def test_records_are_printed_harmlessly(arguments: list[str], path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    main(["db", *(argument.replace("{path}", str(path)) for argument in arguments)])
    said = capsys.readouterr()
    assert (said.out or said.err) and harmless(said.out) and harmless(said.err)
    if arguments == ["list", "{path}"]:
        assert "[red]x[/red]<b>" in said.out, "text is no markup"
    if "json" in arguments:
        assert json.loads(said.out)["uuid"]


class Tags(HTMLParser):
    def __init__(self) -> None:
        super().__init__()
        self.found: set[str] = set()

    def handle_starttag(self, tag: str, attributes: object) -> None:
        self.found.add(tag)


def test_a_page_has_our_tags_only(path: Path, tmp_path: Path) -> None:
    assert main(["db", "report", str(path), str(tmp_path / "page.html")]) == 0
    text = (tmp_path / "page.html").read_text()
    tags = Tags()
    tags.feed(text)
    assert harmless(text) and "&lt;script&gt;" in text and not tags.found & {"script", "b"}


def test_a_run_is_shown_harmlessly(path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    task = SearchTask(product, threads=1)
    task.name = HOSTILE  # which it would refuse
    progress = Progress(HOSTILE, 1, None, phase=HOSTILE, reasons={"wrong": HOSTILE}, sketch=HOSTILE)
    progress.failed["wrong"] += 1
    for view in (Lines(task, lines := StringIO()), Screen(task, Console(file=lines, markup=False, width=1000))):
        view(progress)
        if isinstance(view, Screen):
            Console(file=lines, markup=False, width=1000).print(view.table())
    assert harmless(lines.getvalue()) and "[red]bold[/red]" in lines.getvalue()
    record = made(1.0, script=HOSTILE)
    _print(RunFacts(task, progress, record), None, [])
    assert harmless(capsys.readouterr().out)


def test_files_are_quoted_harmlessly(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file = tmp_path / "a.mlir"
    file.write_text(f'"{HOSTILE.replace(chr(0), "")}"() : () -> ()\n')
    for command in (opt, lambda arguments: main(["build", *arguments, "--emit", "low"])):
        assert command([str(file)]) == 1
        assert harmless(capsys.readouterr().err)
