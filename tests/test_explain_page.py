"""docs/explain.md is executed: its commands print what has the shape that it shows, its Python prints the same."""

from __future__ import annotations

import json

import pytest

from compiler import recipes
from compiler.explain import profile
from compiler.explain.profile import choose_loops
from tests.sample import all_asked
from tests.unit.explain.test_explain import needs_fma, schedule
from tools import document
from tools.explain_page import PAGE, ROOT, blocks, run, shape

TEXT = PAGE.read_text()
GEBP = "explain matmul_512 --script examples/gebp_schedule.mlir"


RUNS = 1000
"""How many runs of loops are timed, whatever the machine's speed: as many as where the page was written."""


@pytest.fixture
def any_speed(monkeypatch: pytest.MonkeyPatch) -> None:
    """Loops are timed as on the machine where the page was written: a fast one times fewer, a slow one more."""
    monkeypatch.setattr(profile, "choose_loops", lambda actual, budget: choose_loops(actual, RUNS))


@pytest.mark.usefixtures("any_speed")
@pytest.mark.parametrize(("command", "shown"), blocks(TEXT), ids=lambda text: text.partition("\n")[0])
def test_commands_print_what_the_page_shows(command: str, shown: str) -> None:
    if ".onnx" in command:
        pytest.importorskip("onnx")
        if not all_asked():
            pytest.skip("a network is built")
    if "--loop" not in command:
        printed = run(command.replace("--calls 15", "--calls 1"))
        assert shape(printed) == shape(shown), "run python -m tools.explain_page"


@needs_fma
def test_the_loop_that_the_page_shows() -> None:
    (shown,) = (shown for command, shown in blocks(TEXT) if "--loop" in command)
    loops = json.loads(run(f"{GEBP} --static --json"))["loops"]
    number = next(loop["number"] for loop in loops if loop["census"]["fma"])
    printed = run(f"{GEBP} --loop {number} --asm")
    for fixed in ("repeats n.0 / k.0 / m.0 / n.1 / m.1 / k.1 (matmul: k.1)", " stores for each fma", "    j"):
        assert fixed in printed and fixed in shown


def test_python_prints_what_the_page_shows() -> None:
    assert document.refreshed(TEXT) == TEXT


def test_a_shape_has_the_loops_and_the_temporaries() -> None:
    extents = shape(blocks(TEXT)[0][1])
    assert "k.1 = 256 matmul" in extents and "@matmul_512" in extents
    assert "B.pack  16x256x32xf32  524288  +0" in extents
    assert "Temporaries" in extents and "Time by loop" in extents
    assert not any("ms" in line or "%" in line for line in extents)


def test_the_example_script_is_what_the_library_does() -> None:
    s, block = schedule(512)
    recipes.gebp(s, block, mc=64, kc=256, nc=512, mr=8, nr=32)
    text = (ROOT / "examples" / "gebp_schedule.mlir").read_text()
    steps = [line.strip() for line in text.splitlines() if "sched." in line and not line.startswith("//")]
    assert steps == [line.strip() for line in str(s.script).splitlines() if "sched." in line]
