"""Origins of a model's parts: through laws, groups, schedules and levels, and the time of a program by them."""

from __future__ import annotations

import gc
import json
import pickle
from collections.abc import Callable
from functools import cache, partial
from pathlib import Path

import numpy as np
import pytest
from xdsl.dialects.builtin import UNKNOWN_LOC, FileLineColLoc, IntAttr, LocationAttr, ModuleOp, StringAttr, UnknownLoc

import strata
from compiler import te, universe
from compiler.autotune.measure.turns import RunTimes
from compiler.bench import workloads
from compiler.driver.parts.groups import grouped_program
from compiler.explain.advice import answer, prepared_blocks, scheduled_program
from compiler.explain.builds import builds
from compiler.explain.data import as_data
from compiler.explain.explanation import explain
from compiler.explain.source_text import answer_lines, source_data, source_heading, source_rows
from compiler.explain.sources import Rates, SourceTable, WorkBound, bound_of, source_table, usual_seconds
from compiler.explain.text import code_table, details
from compiler.explain.trial import tried
from compiler.graph.canonical import canonical_hash
from compiler.graph.grouped_module import group_program
from compiler.opt import main as strata_opt
from compiler.pipeline.parser import parse_passes
from compiler.pipeline.passes import run
from compiler.pipeline.source import parse
from compiler.schedule import Schedule
from compiler.support import spans
from compiler.support.errors import InputError, TargetError
from compiler.support.origins import SourceOrigin, fused, inherit_locations, location_of, origins
from compiler.te.function import Function
from tests.said import Strata
from tests.sample import all_asked

LEVELS = "te-canonicalize,te-group,cpu"


def at(line: int, file: str = "m.py") -> LocationAttr:
    return FileLineColLoc(StringAttr(file), IntAttr(line), IntAttr(1))


def placed(line: int, tensor: Callable[[], te.Tensor], name: str = "") -> te.Tensor:
    with spans.called_at(spans.Span("m.py", line, 1), name):
        return tensor()


def layers(slow: bool = False) -> Function:
    """Two products on lines 1 and 3 of m.py and, on line 2, a product that reads both operands against their layout."""
    n, odd = 96, 61
    x, v, w = te.placeholder((n, n), name="X"), te.placeholder((odd, n), name="V"), te.placeholder((odd, n), name="W")
    first = placed(1, lambda: te.nn.relu(te.nn.matmul(x, te.nn.transpose(x))), "first")
    k = te.reduce_axis(n, "k")

    def product(i: te.Expr, j: te.Expr) -> te.Expr:
        return te.sum(te.sqrt(te.exp(first[k, i])) / (te.exp(v[j, k]) + 1.0), axis=k)

    second = placed(2, lambda: te.compute((n, odd), product if slow else lambda i, j: first[i, j] + v[j, i], "second"))
    return te.function("net", [x, v, w], placed(3, lambda: te.nn.matmul(second, w), "third"))


@cache
def slow_table() -> SourceTable:
    return source_table(layers(slow=True), threads=1, schedule="written", runs=3)


# --- Locations ------------------------------------------------------------------------------------------------------


def test_origins_of_locations() -> None:
    torch_module = location_of("encoder.0.q", "", at(12))
    node = location_of("/conv", "Conv", UNKNOWN_LOC)
    assert str(torch_module) == 'loc("encoder.0.q"("m.py":12:1))' and str(node) == 'loc("/conv"("onnx.Conv"))'
    assert origins(torch_module) == (SourceOrigin("encoder.0.q", "", "m.py", 12),)
    assert origins(node) == (SourceOrigin("/conv", "Conv"),)
    assert list(map(str, origins(fused([torch_module, node])))) == ["encoder.0.q (m.py:12)", "/conv (Conv)"]
    assert origins(UNKNOWN_LOC) == () and location_of("", "", UNKNOWN_LOC) is UNKNOWN_LOC
    assert str(SourceOrigin()) == "unknown"


def test_fused_locations_are_flat_and_distinct() -> None:
    a, b, c = at(1), at(2), at(3)
    assert fused([]) == fused([UNKNOWN_LOC]) == UNKNOWN_LOC
    assert fused([a, UNKNOWN_LOC, a]) is a
    assert fused([fused([a, b]), c, b]) == fused([a, b, c])
    assert str(fused([a, b])) == 'loc(fused["m.py":1:1, "m.py":2:1])'


def test_new_ops_get_the_location_of_their_users_or_of_the_op_around() -> None:
    module = parse(
        "func.func @f(%a: f32) -> f32 {\n  %b = arith.addf %a, %a : f32\n  func.return %b : f32\n}", "t.mlir"
    )
    function = next(iter(module.ops))
    add, end = function.regions[0].block.ops
    add.location = UNKNOWN_LOC
    inherit_locations(module)
    assert add.location == end.location != function.location
    add.location = end.location = UNKNOWN_LOC
    inherit_locations(module)
    assert add.location == end.location == function.location


def lines_of(call: object) -> list[int]:
    return [origin.line for origin in origins(call.location)]  # type: ignore[attr-defined]


def calls(f: Function) -> list[list[int]]:
    program = grouped_program(f, (), single=True)
    assert program is not None
    return [lines_of(call) for call in program.constant_split.main.calls]


def test_laws_fuse_the_locations_of_what_they_merge() -> None:
    x, w = te.placeholder((8, 8), name="X"), te.placeholder((8, 8), name="W")
    first = placed(1, lambda: te.nn.matmul(x, w))
    view = placed(2, lambda: te.nn.transpose(first))
    again = placed(3, lambda: te.nn.matmul(x, w))
    dead = placed(9, lambda: te.nn.exp(x))
    both = placed(4, lambda: te.compute((8, 8), lambda i, j: view[i, j] * again[i, j] + 0.0 * 1.0, "both"))
    assert dead is not None and calls(te.function("f", [x, w], both)) == [[1, 3, 4, 2]]


def test_equal_groups_are_one_function_whose_calls_have_their_own_lines() -> None:
    x = te.placeholder((8, 16), name="X")
    weights = [te.placeholder((16, 16), name=f"W{line}") for line in (1, 2, 3)]
    outputs = [placed(n, partial(te.nn.matmul, x, w), f"layers.{n}") for n, w in enumerate(weights, 1)]
    f = te.function("f", [x, *weights], outputs)
    program = grouped_program(f, (), single=True)
    assert program is not None and len(program.groups) == 1 and calls(f) == [[1], [2], [3]]
    assert [origins(call.location)[0].name for call in program.constant_split.main.calls] == [
        "layers.1", "layers.2", "layers.3",
    ]  # fmt: skip


def test_texts_and_hashes_do_not_depend_on_locations() -> None:
    located, other = layers(), layers()
    for op in other.module.walk():
        op.location = UNKNOWN_LOC
    assert str(located.module) == str(other.module)
    assert canonical_hash(located.module) == canonical_hash(other.module)
    here, there = (group_program(f, single=True) for f in (located, other))
    assert str(here.module) == str(there.module) and here.hashes == there.hashes


def test_inlined_blocks_have_both_lines() -> None:
    a = te.placeholder((16,), name="A")
    b = placed(1, lambda: te.nn.exp(a, name="B"))
    s = Schedule(te.function("f", [a], placed(2, lambda: te.nn.relu(b, name="C"))))
    s.inline(s.get_block("B"))
    assert [o.line for o in origins(s.program.blocks["C"].location)] == [2, 1]
    loops = [op for op in s.module.walk() if op.name == "loop.for"]
    assert [[o.line for o in origins(op.location)] for op in loops] == [[2, 1]]


@pytest.mark.parametrize("name", ["matmul_512", "softmax", "attention", "conv:8x16x16x8"])
def test_after_each_pass_ops_have_lines_of_the_source(name: str) -> None:
    """Of the ops of the low level 100% have a location, all of them a line of this compiler's workload."""
    module = workloads.find(name, workloads.Fraction(1, 16)).function().module

    def check(done: object, module: ModuleOp) -> None:
        ops = [op for op in module.walk() if op is not module]
        unknown = [op.name for op in ops if isinstance(op.location, UnknownLoc)]
        assert len(unknown) <= 0.05 * len(ops), (done, unknown)
        assert not [op.name for op in ops if not origins(op.location)]

    run(universe.context(), module, parse_passes(LEVELS.replace("te-group,", "")), after=check)


def test_printed_locations_round_trip(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file, printed = tmp_path / "f.mlir", tmp_path / "g.mlir"
    file.write_text(
        "func.func @f(%A: tensor<4xf32>) -> tensor<4xf32> {\n"
        '  %C = te.compute "C" [m = 4] (%a = %A[m] : tensor<4xf32>) -> tensor<4xf32> {\n    te.yield %a : f32\n'
        '  } loc(fused["layers.0"("m.py":7:5), "/conv"("onnx.Conv")])\n  func.return %C : tensor<4xf32>\n}\n'
    )
    assert strata_opt([str(file), "-p", "te-to-loop", "--print-debuginfo"]) == 0
    once = capsys.readouterr().out
    printed.write_text(once)
    assert strata_opt([str(printed), "--print-debuginfo"]) == 0
    again = capsys.readouterr().out
    assert again.rpartition("loc(")[0] == once.rpartition("loc(")[0]  # the module itself has none in `once`
    assert 'loc(fused["layers.0"("m.py":7:5), "/conv"("onnx.Conv")])' in once


# --- The table ------------------------------------------------------------------------------------------------------


def test_the_slow_line_is_named_first() -> None:
    table = slow_table()
    assert table.rows[0].origin.line == 2
    assert {line for row in table.rows for line in (row.origin.line, *(o.line for o in row.also))} == {1, 2, 3}
    assert table.seconds is not None and sum(row.seconds for row in table.rows) <= 1.5 * table.seconds
    first = table.rows[0]
    assert first.factor is not None and first.factor > 3 and first.excess == max(row.excess for row in table.rows)
    assert first.slowest.group in first.groups and table.of_line("m.py:2") == (first,)


def test_the_answer_names_primitives_with_figures() -> None:
    table = slow_table()
    answered = answer(table, table.rows[0], calls=1)
    text = "\n".join(answer_lines(table.rows[0], answered))
    assert "a schedule: its loops run as written" in text and answered.advice
    assert all(item.primitive and item.reason for item in answered.advice)
    data = source_data(table.rows[0], answered)
    assert data["source"]["line"] == 2 and json.dumps(data)
    assert "bounds by" in source_heading(table, "net") and source_rows(table, table.rows).row_count == len(table.rows)


@pytest.mark.skipif(not all_asked(), reason="it tunes")
def test_a_trial_is_timed_inside_the_program() -> None:
    table = slow_table()
    best = tried(table, table.rows[0].slowest.group, 2)
    assert best is not None and 0 < best.ratio < 2 and best.script


def test_nothing_is_run_for_an_approximation() -> None:
    table = source_table(layers(), threads=1, runs=0)
    assert table.seconds is None and all(row.bound is None and row.seconds > 0 for row in table.rows)
    assert "nothing was run" in source_heading(table, "net")


def test_bounds_are_the_slower_of_memory_and_arithmetic() -> None:
    program = Schedule(te.function("f", [a := te.placeholder((64, 64), name="A")], te.nn.matmul(a, a))).program
    assert bound_of(program, Rates(1e9, 1e12)) == WorkBound(2 * 64**3 / 1e9, "arithmetic")
    assert bound_of(program, Rates(1e15, 1e9)) == WorkBound(2 * 4 * 64**2 / 1e9, "memory")
    half = te.placeholder((64, 64), "f16", name="A")
    program = Schedule(te.function("f", [half], te.nn.matmul(half, half))).program
    assert bound_of(program, Rates(1.0, 1e9)) == WorkBound(2 * 2 * 64**2 / 1e9, "memory")


def test_blocks_of_constants_run_once() -> None:
    f = te.function("f", [x := te.placeholder((4, 4), name="X"), w := te.placeholder((4, 4), name="W")],
                    te.nn.matmul(x, te.nn.exp(w, name="E"), name="C"))  # fmt: skip
    program = grouped_program(f, ["W"], single=True)
    assert program is not None
    blocks = [prepared_blocks(scheduled_program(group, None)) for group in program.groups]
    assert set().union(*blocks) <= {"E"}


def test_unknown_lines_and_names_are_refused_with_the_known_ones() -> None:
    table = slow_table()
    for line in ("m.py", "m.py:x", ":3", "2"):
        with pytest.raises(InputError, match=r"is no line of source, such as model\.py:12"):
            table.of_line(line)
    with pytest.raises(InputError, match=r"there is no line 'm\.py:7'.*m\.py:1, .*m\.py:2, .*m\.py:3"):
        table.of_line("m.py:7")
    with pytest.raises(InputError, match="there is no module or node 'thrid'; did you mean 'third'"):
        table.of_name("thrid")
    assert [row.origin.line for row in table.of_name("third")] == [3]
    with pytest.raises(InputError, match="below te has no parts of a model"):
        source_table("func.func @f() {\n  func.return\n}")
    with pytest.raises(InputError, match="auto, written or a database"):
        source_table(layers(), schedule="transform.named_sequence @s(%f: !transform.any_op) { transform.yield }\n")


def test_the_command_narrows_to_a_line(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, strata: Strata) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "net.mlir").write_text(str(layers().module))
    rows = json.loads(strata("explain", "net.mlir", "--source", "--static", "--json"))
    line = next(row["source"]["line"] for row in rows)
    assert all(row["source"]["file"] == "net.mlir" and row["bound"] is None for row in rows)
    narrowed = strata("explain", "net.mlir", "--line", f"net.mlir:{line}", "--static")
    assert narrowed.splitlines()[2].startswith(f"net.mlir:{line}") and len(narrowed.splitlines()) == 3
    for wrong, sentence in {
        ("--line", "net.mlir:999"): "there is no line 'net.mlir:999'",
        ("--line", "7"): "'7' is no line of source, such as model.py:12",
        ("--module", "first"): "there is no module or node 'first' (no part of the program has names)",
        ("--module", ""): "there is no module or node ''",
        ("--line", ""): "'' is no line of source",
        ("--try", "2", "--static"): "--try runs schedules, and --static runs nothing",
        ("--source", "--group", "group_0"): "--group selects loops, and --source",
        ("--source", "--loop", "1"): "--loop selects loops, and --source",
    }.items():
        assert sentence in strata("explain", "net.mlir", *wrong, status=1)


def test_the_command_says_what_would_change_the_slow_line(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, strata: Strata
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "net.mlir").write_text(str(layers().module))
    out = strata("explain", "net.mlir", "--source", "--calls", "1")
    assert "net.mlir by source: a run takes " in out and "What would change it" in out


def test_a_kernel_explains_itself() -> None:
    f = layers()
    kernel = strata.build(f, threads=1, constants={"W": np.ones((61, 96), np.float32)})
    report = kernel.explain(runs=2)
    lines = {o.line for row in report.rows for o in (row.origin, *row.also)}
    assert lines == {1, 2, 3} and str(report).startswith("net by source: a run takes ")
    with pytest.raises(InputError, match="runs is -1"):
        kernel.explain(runs=-1)
    with pytest.raises(TargetError, match="only a kernel that build has made in this process"):
        pickle.loads(pickle.dumps(kernel)).explain()


def test_a_program_with_large_constants_is_not_kept_in_memory() -> None:
    x = te.placeholder((256, 256), name="X")
    f = te.function("f", [x], te.nn.matmul(x, te.constant(np.random.rand(256, 256).astype("f4"), name="W")))
    kernel = strata.build(f, threads=1)
    assert kernel.explain(runs=1).rows
    del f
    gc.collect()
    with pytest.raises(InputError, match="the program of f has large constants, and is no longer in memory"):
        kernel.explain()


def test_machine_loops_have_the_sources_of_their_blocks() -> None:
    a = te.placeholder((64, 64), name="A")
    first = placed(1, lambda: te.nn.exp(a, name="first"))
    f = te.function("f", [a], placed(2, lambda: te.nn.sum(first, axis=1, name="second")))
    built = builds(f)
    shown = explain(built)
    assert {nest.sources for nest in shown.nests} == {("m.py:1",), ("m.py:2",)}
    assert "source" in [column.header for column in code_table(shown).columns]
    assert any("computes m.py:1" in line for code in shown.codes for line in details(code))
    assert {tuple(nest["sources"]) for nest in as_data(shown)["nests"]} == {("m.py:1",), ("m.py:2",)}


def test_seconds_of_preempted_calls_add_up_to_the_time_present() -> None:
    quiet = [RunTimes(3e-3, np.array([1e-3, 2e-3])), RunTimes(3e-3, np.array([1e-3, 2e-3]))]
    busy = [RunTimes(3e-3, np.array([1e-3, 5e-3])), RunTimes(3e-3, np.array([1e-3, 5e-3]))]
    assert usual_seconds(quiet) == pytest.approx([1e-3, 2e-3])
    assert usual_seconds(busy) == pytest.approx([0.5e-3, 2.5e-3]) and usual_seconds([]) == []
    assert usual_seconds([*quiet, *quiet, *quiet, busy[0]]) == pytest.approx([1e-3, 2e-3])


def test_locations_are_in_no_key_of_the_cache() -> None:
    here, there = layers(), layers()
    for op in there.module.walk():
        op.location = at(99, "other.py")
    kernels = [strata.build(f, threads=1, schedule="auto") for f in (here, there)]
    assert not kernels[0].facts.cached and kernels[1].facts.cached
    rows = [{row.origin.file for row in kernel.explain(runs=1).rows} for kernel in kernels]
    assert rows == [{"m.py"}, {"other.py"}]
