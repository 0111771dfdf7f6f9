"""Marks: the code stays the same, each instruction knows its loop, and the clock counts what it should."""

from __future__ import annotations

import ctypes
import re
from collections.abc import Callable
from functools import partial

import numpy as np
import pytest
from xdsl.dialects.builtin import ModuleOp

import compiler
from compiler import recipes, te
from compiler.explain.builds import Builds, builds
from compiler.lowering.low_to_llvm import body
from compiler.lowering.low_to_llvm.marks import CLOCK, PROFILE, emit_marked, loops_of
from compiler.pipeline.source import parse
from compiler.schedule import Schedule
from compiler.targets.cpu.load import load
from compiler.types.machines import host
from tests.programs import applied, matmul
from tests.unit.lowering.test_long_bodies import norms
from tests.unit.targets.test_kernel import MATMUL


def gebp() -> Schedule:
    s = Schedule(compiler.lower(matmul(name="matmul", output="matmul")))
    recipes.gebp(s, s.get_block("matmul"), mc=32, kc=32, nc=64, mr=4, nr=16)
    return s


softmax = partial(applied, te.nn.softmax, (37, 53), name="softmax")


def conv() -> te.Function:
    return applied(lambda x, w: te.nn.conv2d(x, w, padding=1), (1, 8, 7, 7), (8, 8, 3, 3), name="conv", inputs="XW")


def code(assembly: str) -> list[str]:
    """The lines of assembly that are code or data: without what debug locations add."""
    lines = [line.partition("#")[0].strip() for line in assembly.partition(".section\t.debug")[0].splitlines()]
    said = r"\.(loc|file|cfi_\w+|section|size|text|ident|addrsig)\b|\.(Ltmp\d+|Lfunc_\w+|Lline\w+):|$"
    return [line for line in lines if not re.match(said, line)]


def test_marks_do_not_change_the_code_of_a_body_in_parts(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(body, "MOST_LOOPS", 8)
    b = builds(norms(2))
    assert "norms.body.part1" in b.kernel.text("llvm")
    check_code(b)


@pytest.mark.parametrize("make", [gebp, softmax, conv, lambda: MATMUL])
def test_marks_do_not_change_the_code(make: Callable[[], object]) -> None:
    check_code(builds(make()))


def check_code(b: Builds) -> None:
    """The marked code is the plain one."""
    plain, marked = code(b.kernel.text("asm")), code(b.marked.text("asm"))
    assert ".loc" in b.marked.text("asm") and ".loc" not in b.kernel.text("asm")
    assert len(plain) > 20 and plain == marked


def module() -> ModuleOp:
    return parse(MATMUL)


def test_each_instruction_has_the_number_of_its_innermost_loop() -> None:
    text = emit_marked(module(), host())
    assert len(loops_of(module())) == 3
    lines = dict(re.findall(r"^(!\d+) = !DILocation\(line: (\d+)", text, re.MULTILINE))
    collected = [
        (line, int(lines[line.rpartition("!dbg ")[2]])) for line in text.splitlines() if re.search(r"!dbg !\d+$", line)
    ]
    depths = {number for line, number in collected if "load float" in line}
    assert depths == {3}
    assert {number for line, number in collected if "store float" in line} == {2}
    assert {number for line, number in collected if line.startswith("  ret")} == {0}
    inside = text.partition("define internal")[2].partition("\n}")[0]
    assert all("!dbg" in line for line in inside.splitlines()[1:] if line.startswith("  "))


def test_the_clock_counts_runs_and_ticks() -> None:
    kernel = load(module(), host(), emission=lambda m, machine: emit_marked(m, machine, {1, 2}))
    a, b = np.ones((3, 4), np.float32), np.ones((4, 5), np.float32)
    address = ctypes.CFUNCTYPE(ctypes.c_void_p)(kernel.library.address(PROFILE))()
    profile = np.ctypeslib.as_array((ctypes.c_int64 * 8).from_address(address)).reshape(4, 2)
    clock = ctypes.CFUNCTYPE(ctypes.c_int64)(kernel.library.address(CLOCK))
    began = clock()
    for call in (1, 2):
        np.testing.assert_array_equal(kernel(a, b), a @ b)
        assert list(profile[:, 1]) == [0, call, 3 * call, 0]
    took = clock() - began
    assert 0 < profile[2, 0] <= profile[1, 0] <= took
    assert profile[3, 0] == 0


def test_nothing_is_timed_unless_it_is_asked_for() -> None:
    assert "readcyclecounter" not in emit_marked(module(), host())
    assert emit_marked(module(), host(), {1}).count("call i64 @llvm.readcyclecounter()") == 3
