"""What would take for ever or end the process is refused in a sentence, and what grows takes linear time."""

from __future__ import annotations

from pathlib import Path

import pytest
from xdsl.dialects.builtin import ModuleOp
from xdsl.utils.exceptions import ParseError

import compiler
from compiler import te
from compiler.analysis.overlap import Overlaps
from compiler.lowering.loop_to_low.context import MAX_LANES, MAX_STATEMENTS
from compiler.opt import main as strata_opt
from compiler.pipeline.passes import run
from compiler.pipeline.source import level_of, parse
from compiler.pipeline.to_llvm import passes_from
from compiler.schedule import Schedule
from compiler.support.errors import LoweringError, StrataError
from compiler.universe import context


def lowered(module: ModuleOp) -> ModuleOp:
    """A module as native code is emitted from it."""
    module = module.clone()
    run(context(), module, passes_from(level_of(module), "contract"))
    return module


def unrolled(extent: int) -> Schedule:
    """A chain of two computes in one unrolled loop, with the buffer between them inside."""
    a = te.placeholder((extent,), name="A")
    t = te.compute((extent,), lambda i: a[i] * 2.0, name="T")
    u = te.compute((extent,), lambda i: t[i] + 1.0, name="U")
    schedule = Schedule(compiler.lower(te.function("f", [a], [u])))
    (loop,) = schedule.get_loops(schedule.get_block("U"))
    schedule.compute_at(schedule.get_block("T"), loop)
    schedule.unroll(loop)
    return schedule


def vectorized(extent: int) -> Schedule:
    """A copy in one vectorized loop."""
    a = te.placeholder((extent,), name="A")
    b = te.compute((extent,), lambda i: a[i], name="B")
    schedule = Schedule(compiler.lower(te.function("f", [a], [b])))
    schedule.vectorize(schedule.get_loops(schedule.get_block("B"))[0])
    return schedule


def test_unrolled_buffers_are_compared_with_few(monkeypatch: pytest.MonkeyPatch) -> None:
    compared: dict[int, int] = {}
    near = Overlaps._near

    def counting(self: Overlaps, access: object) -> object:
        for actual in near(self, access):  # type: ignore[arg-type]
            compared[extent] = compared.get(extent, 0) + 1
            yield actual

    monkeypatch.setattr(Overlaps, "_near", counting)
    for extent in (20, 200):
        compared[extent] = 0
        lowered(unrolled(extent).module)
    assert compared[200] <= 10 * max(compared[20], 20)


def test_unrolled_buffers_are_forwarded() -> None:
    text = str(lowered(unrolled(12).module))
    assert "memref.alloc" not in text
    assert text.count("memref.load") == text.count("memref.store") == 12


def test_unrolled_code_is_bounded() -> None:
    assert str(lowered(unrolled(64).module)).count("memref.store") == 64
    said = f"loop 'i': the unrolled code of its nest has {2 * MAX_STATEMENTS} statements, of {MAX_STATEMENTS} at most"
    with pytest.raises(LoweringError, match=said):
        lowered(unrolled(MAX_STATEMENTS).module)


def test_nested_unrolled_loops_multiply() -> None:
    a = te.placeholder((2**20, 2**20), name="A")
    b = te.compute((2**20, 2**20), lambda i, j: a[i, j], name="B")
    schedule = Schedule(compiler.lower(te.function("f", [a], [b])))
    for loop in schedule.get_loops(schedule.get_block("B")):
        schedule.unroll(loop)
    with pytest.raises(LoweringError, match=rf"loop 'i': .* has {2**40} statements"):
        lowered(schedule.module)


def test_lanes_are_bounded() -> None:
    assert "vector<128xf32>" in str(lowered(vectorized(MAX_LANES).module))
    with pytest.raises(LoweringError, match="loop 'i' is vectorized with 129 lanes, of 128 at most"):
        lowered(vectorized(MAX_LANES + 1).module)


def test_lanes_done_one_by_one_count_as_unrolled_code() -> None:
    rows, lanes = MAX_STATEMENTS // MAX_LANES + 1, MAX_LANES
    a = te.placeholder((rows * lanes,), name="A")
    b = te.compute((rows, lanes), lambda i, j: a[(i + j * 7) % lanes], name="B")
    schedule = Schedule(compiler.lower(te.function("f", [a], [b])))
    i, j = schedule.get_loops(schedule.get_block("B"))
    schedule.unroll(i)
    schedule.vectorize(j)
    with pytest.raises(LoweringError, match="block 'B': the unrolled code of its nest has"):
        lowered(schedule.module)


def nest(depth: int) -> str:
    """Low-level loops, each inside the other."""
    loops = "".join(f"scf.for %i{n} = %c0 to %n step %c1 {{\n" for n in range(depth))
    constants = "%c0 = arith.constant 0 : index\n%c1 = arith.constant 1 : index\n"
    return f"func.func @f(%A: memref<4xf32>, %n: index) {{\n{constants}{loops}{'}' * depth}\nfunc.return\n}}\n"


def test_loops_nest_to_a_depth() -> None:
    with pytest.raises(LoweringError, match="loops are nested 65 deep, of 64 at most"):
        compiler.build(nest(65))


def test_what_is_nested_too_deeply_is_said() -> None:
    for error, text in ((ParseError, nest(2000)), (StrataError, sums(3000))):
        with pytest.raises(error, match="the program is nested too deeply"):
            compiler.build(text)


def sums(count: int) -> str:
    """An index that is doubled again and again."""
    steps = "".join(f"%v{n + 1} = arith.addi %v{n}, %v{n} : index\n" for n in range(count))
    load = f"%x = memref.load %A[%v{count}] : memref<4xf32>\nmemref.store %x, %A[%v0] : memref<4xf32>\n"
    return f"func.func @f(%A: memref<4xf32>) {{\n%v0 = arith.constant 1 : index\n{steps}{load}func.return\n}}\n"


def test_indices_that_wrap_around_are_not_judged() -> None:
    run(context(), parse(sums(70)), passes_from("low", "contract")[:1])


@pytest.mark.parametrize(
    "line",
    [
        "//x" * 50_000,
        "// expected-error" + " " * 100_000,
        "// " + "expected-error " * 10_000,
        "// expected-error-re {{" + "{{a" * 50_000 + "}}",
    ],
    ids=["slashes", "spaces", "words", "braces"],
)
def test_long_lines_of_diagnostics(line: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "long.mlir"
    path.write_text(f"func.func @f() {{\n  func.return\n}}\n{line}\n", encoding="utf-8")
    strata_opt([str(path), "--verify-diagnostics"])
    assert "Traceback" not in capsys.readouterr().err


def test_many_comments_about_one_line(tmp_path: Path) -> None:
    path = tmp_path / "many.mlir"
    path.write_text("// expected-error@below {{one}}\n" * 20_000 + "func.func @f() {\n", encoding="utf-8")
    assert strata_opt([str(path), "--verify-diagnostics"]) == 1
