"""Explanations: loops of the low level and of the program, what is measured, temporaries, and the command."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import replace
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import compiler
from compiler import recipes, te
from compiler.__main__ import main
from compiler.bench.schedules import SCRIPTS
from compiler.explain import text
from compiler.explain.builds import Builds, builds
from compiler.explain.code import group_copies, machine_code
from compiler.explain.data import as_data
from compiler.explain.explanation import Explanation, explain
from compiler.explain.nests import LoopNest, nests, paths, preorder
from compiler.explain.profile import choose_loops
from compiler.explain.temporaries import temporaries
from compiler.pipeline.source import parse
from compiler.schedule import Schedule
from compiler.support.errors import TargetError
from compiler.targets.cpu.assembly import parse_assembly
from compiler.types.machines import MACHINES, host
from compiler.types.selection import compiling_for
from tests.low import with_constants
from tests.programs import applied, matmul
from tests.said import Strata, refusal
from tests.unit.targets.test_kernel import MATMUL
from tools.innermost import PROGRAMS, busiest, innermost

ROOT = Path(__file__).resolve().parents[3]
EXAMPLE = str(ROOT / "examples" / "mm_exp_mm.mlir")
SCRIPT = str(ROOT / "examples" / "walk_schedule.mlir")


def schedule(n: int) -> tuple[Schedule, Any]:
    s = Schedule(compiler.lower(matmul(n, n, n, name="matmul", output="matmul")))
    return s, s.get_block("matmul")


@cache
def gebp(n: int = 64) -> Builds:
    s, block = schedule(n)
    recipes.gebp(s, block, mc=32, kc=n // 2, nc=64, mr=4, nr=16)
    return builds(s)


def found(b: Builds) -> tuple[LoopNest, ...]:
    return nests(b.module, b.function, b.program)


def draw(kernel: Any) -> list[np.ndarray[Any, Any]]:
    random = np.random.default_rng(0)
    inputs = kernel.arguments[: len(kernel.arguments) - kernel.outputs]
    return [random.uniform(-1, 1, a.shape).astype(a.dtype) for a in inputs]


def test_the_loops_of_a_packed_matmul() -> None:
    loops = found(gebp())
    shown = {" ".join(n.name for n in path): path[-1] for path in paths(loops).values()}
    tile = shown["n.0 k.0 m.0 n.1 m.1 k.1"]
    assert (tile.blocks, tile.trips, tile.exact, tile.inner) == (("matmul",), 32, True, ())
    assert tile.flops == 2 * 64**3
    assert tile.bytes == 4 * (32 * 4 + 32 * 16 + 4 * 16)
    assert shown["n.0 k.0 ax0"].blocks == ("B.pack",) and shown["n.0 k.0 ax0"].flops == 0
    assert shown["n.0 k.0 m.0 n.1 m.1"].blocks == ("matmul.init", "matmul")
    assert [n.number for n in preorder(loops)] == list(range(1, len(shown) + 1))


def test_loops_in_an_unrolled_loop_share_its_work() -> None:
    s, block = schedule(12)
    m, n, k = s.get_loops(block)
    s.unroll(s.split(m, [None, 4])[1])
    loops = found(builds(s))
    reducing = [nest for nest in preorder(loops) if nest.name == "k"]
    assert len(reducing) == 4 * 1 and {nest.flops for nest in reducing} == {2 * 12**3 // 4}
    assert s.label(n) == "n" and s.label(k) == "k"


def test_a_ragged_loop_runs_at_most_so_often() -> None:
    s, block = schedule(10)
    s.split(s.get_loops(block)[0], [None, 4])
    inner = next(nest for nest in preorder(found(builds(s))) if nest.name == "m.1" and "matmul" in nest.blocks)
    assert (inner.trips, inner.exact) == (4, False)
    assert inner.flops == 2 * 10**3


def test_a_file_below_the_loops_names_the_buffers_written() -> None:
    b = builds(MATMUL)
    assert b.program is None
    (i,) = found(b)
    assert (i.name, i.blocks, i.trips, i.flops, i.bytes) == ("i", ("C",), 3, None, None)
    (p,) = i.inner[0].inner
    assert (p.name, p.blocks, p.trips) == ("p", (), 4)


def test_a_nest_that_one_op_holds() -> None:
    text = with_constants("""
func.func @f(%A: memref<4x6xf32>) {
  %z = arith.constant 0.0 : f32
  "scf.parallel"(%c0, %c0, %c4, %c6, %c1, %c1) <{operandSegmentSizes = array<i32: 2, 2, 2, 0>}> ({
  ^bb0(%i: index, %j: index):
    scf.for %k = %c0 to %c6 step %c1 {
      memref.store %z, %A[%i, %j] : memref<4x6xf32>
    } {loops = array<i64: 2>}
    scf.reduce
  }) {loops = array<i64: 0, 1>} : (index, index, index, index, index, index) -> ()
  func.return
}""")
    x, k = te.placeholder((4, 6), name="X"), te.reduce_axis(6, "k")
    total = te.compute((4, 6), lambda i, j: te.sum(x[i, k], axis=k), name="A")
    program = Schedule(compiler.lower(te.function("f", [x], total))).program
    module = parse(text)
    (nest,) = nests(module, next(iter(module.ops)), program)  # type: ignore[arg-type]
    assert (nest.name, nest.trips, nest.blocks, nest.flops) == ("i", 24, ("A",), 144)
    assert [(inner.name, inner.flops) for inner in nest.inner] == [("k", 144)]


def test_a_loop_that_is_named_with_a_number() -> None:
    x = te.placeholder((40, 6), name="X")
    doubled = te.compute((40, 6), lambda i_1, j_1: x[i_1, j_1] + x[i_1, j_1], name="Y")
    assert [nest.name for nest in preorder(found(builds(te.function("f", [x], doubled))))] == ["i_1", "j_1"]


def loop(number: int, trips: int | None, *inner: LoopNest) -> LoopNest:
    return LoopNest(number, f"l{number}", (), trips, True, None, None, inner)


@pytest.mark.parametrize(
    ("budget", "chosen"), [(0, {1, 2}), (2, {1, 2}), (12, {1, 2, 3}), (62, {1, 2, 3, 4}), (600, {1, 2, 3, 4, 5})]
)
def test_the_loops_that_are_measured(budget: int, chosen: set[int]) -> None:
    tree = (loop(1, 10, loop(3, 50, loop(5, 7))), loop(2, 50, loop(4, None, loop(6, 2))))
    assert choose_loops(tree, budget) == chosen


def test_temporaries_share_and_are_named() -> None:
    t = temporaries(builds(applied(lambda x: te.nn.softmax(x), (8, 16), name="softmax")))
    assert all(b.bytes and b.offset is not None for b in t.buffers)
    assert {b.name: (b.type, b.bytes) for b in t.buffers}["softmax.exp"] == ("8x16xf32", 512)
    assert t.arena >= max(b.bytes + (b.offset or 0) for b in t.buffers)
    assert temporaries(builds(MATMUL)).arena == 0


needs_fma = pytest.mark.skipif("fma" not in host().present, reason="the machine has no fused multiply-add")


@needs_fma
def test_machine_loops_know_their_loop_and_blocks() -> None:
    b = gebp(256)
    loops = machine_code(b, found(b)).loops
    tiles = [loop for loop in loops if loop.census.fma]
    assert tiles and all(tile.path[-1].name == "k.1" for tile in tiles)
    tile = tiles[0]
    assert tile.path[-1].blocks == ("matmul",) and tile.census.flops % (2 * 4 * 16) == 0
    assert tile.census.stack_loads == tile.census.stack_stores == 0
    assert (tile.percent or 0) > 10 and tile.function == "matmul.body"
    assert [loop.number for group in group_copies(loops) for loop in group] == list(range(1, len(loops) + 1))


def test_what_is_outside_the_innermost_loops() -> None:
    e = explain(gebp())
    of = {path[-1].number: " ".join(n.name for n in path) for path in paths(e.nests).values()}
    count = {of[part.nest.number]: part.instructions for part in e.outside if part.nest is not None}
    assert count["n.0 k.0 m.0 n.1 m.1"] > 4  # loads and stores of the register tile
    assert sum(part.instructions for part in e.outside) == sum(part["instructions"] for part in as_data(e)["outside"])
    functions = parse_assembly(gebp().marked.text("asm"))
    total = sum(len(block.instructions) for function in functions for block in function.blocks)
    assert sum(count.instructions for count in e.outside) + sum(c.census.instructions for c in e.codes) == total
    assert text.outside(e).startswith("outside of them: ") and " of " in text.outside(e)


def test_code_of_an_architecture_without_a_parser() -> None:
    with compiling_for(replace(MACHINES["neoverse-n1"], architecture="riscv64")), pytest.raises(TargetError) as raised:
        machine_code(gebp(), ())
    assert str(raised.value) == "the assembly of riscv64 cannot be explained: only x86_64 and aarch64"


def test_loops_of_another_architecture() -> None:
    with compiling_for(MACHINES["neoverse-n1"]):
        codes = innermost(PROGRAMS["product f32 256"]())
    tile = busiest(codes)
    assert tile.path[-1].name.startswith("k") and tile.path[-1].blocks == ("C",) and tile.census.width == "q"
    assert tile.census.flops == 8 * tile.census.fma and tile.estimate.limit == "fma" and tile.percent == 100


def test_the_profile_adds_up() -> None:
    b = gebp()
    e = explain(b, draw, calls=3)
    assert e.profile is not None and e.profile.plain > 0
    (top,) = e.nests
    spent = e.profile.loops
    assert spent[top.number].runs == 1
    for nest in preorder(e.nests):
        inside = [spent[inner.number] for inner in nest.inner if inner.number in spent]
        if inside:
            assert sum(inner.seconds for inner in inside) <= 1.01 * spent[nest.number].seconds
            assert inside[0].runs == spent[nest.number].runs * (nest.trips or 0)
    shown = as_data(e)
    assert shown["nests"][0]["seconds"] == spent[top.number].seconds
    assert json.loads(json.dumps(shown))["loops"][0]["path"][0]["name"] == "n.0"


def test_tables_have_a_row_for_each_loop() -> None:
    e: Explanation = explain(gebp(), draw, calls=1)
    (_, loops), (_, times), (_, memory) = text.sections(e)
    assert loops.row_count == len(group_copies(e.codes)) and times.row_count == len(list(preorder(e.nests)))
    assert memory.row_count == len(e.temporaries.buffers) == 2
    assert len(list(text.sections(explain(gebp())))) == 2


def test_a_workload(strata: Strata) -> None:
    out = strata("explain", "softmax", "--scale", "1/64", "--calls", "1", "--seed", "3")
    assert out.startswith("@softmax_64x16(X: float32[64, 16]")
    assert "Time by loop: a call takes" in out and "Temporaries: an arena of" in out
    assert "softmax.exp: i" in out
    assert all(line == line.rstrip() for line in out.splitlines()) and "\x1b" not in out


def test_a_file_under_a_script(strata: Strata) -> None:
    plain = strata("explain", EXAMPLE, "--static")
    scheduled = strata("explain", EXAMPLE, "--script", SCRIPT, "--static")
    assert "Time by loop" not in plain and "C: l.1" in scheduled and "l.1" not in plain
    other_choice = strata("explain", EXAMPLE, "--script", SCRIPT, "--static", "--seed", "2")
    assert other_choice != scheduled


def test_a_workload_under_its_own_script(strata: Strata) -> None:
    arguments = ["swish", "--scale", "1/16"]
    loops = [
        json.loads(strata("explain", *arguments, *more, "--json", "--calls", "1"))["nests"]
        for more in ([], ["--scheduled"])
    ]
    assert "j.0" in str(loops[1]) and "j.0" not in str(loops[0])


def test_a_workload_without_a_script(monkeypatch: pytest.MonkeyPatch, strata: Strata) -> None:
    monkeypatch.delitem(SCRIPTS, "swish")
    assert "compiler/bench/schedules.py has no script for swish" in strata("explain", "swish", "--scheduled", status=1)


def test_files_above_and_below_the_loops(tmp_path: Path, strata: Strata) -> None:
    for level in ("te", "low"):
        file = tmp_path / f"{level}.mlir"
        assert main(["build", EXAMPLE, "--emit", level, "-o", str(file)]) == 0
        out = strata("explain", str(file), "--calls", "1")
        assert "T" in out and "runs" in out
    file.write_text("func.func @f(%A: memref<4xf32>) {\n  func.return\n}")
    assert out.count("none") == 0 and strata("explain", str(file)).count("none") == 2


def test_one_loop_in_detail_and_its_assembly(strata: Strata) -> None:
    out = strata("explain", EXAMPLE, "--loop", "1", "--asm")
    assert "loop 1: .LBB" in out and "repeats m / " in out and "cycles needed: " in out and "\n    jn" in out
    assert "Temporaries" not in out and "loop 2:" not in out
    every_loop = strata("explain", EXAMPLE, "--static", "--asm")
    assert "loop 2:" in every_loop and "    v" in every_loop


def test_json(strata: Strata) -> None:
    document = json.loads(strata("explain", EXAMPLE, "--json", "--calls", "1"))
    assert document["function"] == "mm_exp_mm" and document["time"]["plain"] > 0
    assert document["nests"][0]["runs"] == 1 and document["temporaries"]["buffers"]
    second_loop = json.loads(strata("explain", EXAMPLE, "--json", "--loop", "2"))
    assert second_loop == {**document["loops"][1]} and second_loop["census"]["instructions"] > 3
    assert json.loads(strata("explain", EXAMPLE, "--json", "--static"))["time"] is None


WRONG: dict[str, tuple[list[str], str]] = {
    "no_such_workload": (["matmull"], "there is no workload 'matmull'; did you mean 'matmul'?"),
    "no_extents": (["matmul"], "needs its extents"),
    "no_such_file": (["nowhere.mlir"], "nowhere.mlir cannot be read"),
    "a_folder": ([str(ROOT)], "cannot be read"),
    "a_scaled_file": ([EXAMPLE, "--scale", "1/2"], "--scale is for the workloads"),
    "a_file_that_is_scheduled": ([EXAMPLE, "--scheduled"], "--scheduled is for the workloads"),
    "no_such_loop": ([EXAMPLE, "--loop", "99"], "there is no loop 99"),
    "no_such_script": ([EXAMPLE, "--script", "nowhere.mlir"], "nowhere.mlir"),
    "a_script_for_another": (["softmax", "--scale", "1/64", "--script", SCRIPT], "get_block"),
    "a_script_that_is_none": ([EXAMPLE, "--script", EXAMPLE], "a script is one transform.named_sequence"),
    "no_such_function": ([EXAMPLE, "--function", "other"], "other"),
    "not_mlir": (["{garbage}"], "{garbage}:1:1: error: Operation hello"),
    "a_low_file_under_a_script": (["{low}", "--script", SCRIPT], "there is none (there are C)"),
}


@pytest.mark.parametrize("name", WRONG)
def test_wrong_input_ends_in_a_sentence(name: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    files = {"garbage": "hello", "low": MATMUL}
    for stem, content in files.items():
        (tmp_path / f"{stem}.mlir").write_text(content)
    filled: Callable[[str], str] = lambda word: word.format(**{stem: tmp_path / f"{stem}.mlir" for stem in files})  # noqa: E731
    arguments, expected = WRONG[name]
    assert main(["explain", *map(filled, arguments)]) == 1
    captured = capsys.readouterr()
    assert filled(expected) in refusal(captured.err) and captured.out == ""


def test_constants_are_passed_to_the_build_that_measures() -> None:
    x, w = te.placeholder((32, 64), name="X"), te.constant(np.ones((64, 64), np.float32).cumsum(0), name="W")
    doubled = te.compute((64, 64), lambda i, j: w[j, i] * 2.0, name="P")
    e = explain(builds(te.function("f", [x], te.nn.matmul(x, doubled, name="Y"))), draw, calls=1)
    assert e.profile is not None and e.profile.loops and len(e.kernel.fixed.arrays) == 1
