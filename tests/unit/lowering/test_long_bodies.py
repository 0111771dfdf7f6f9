"""Bodies of many loops are cut into parts: the same results, bounded functions, nothing torn apart."""

from __future__ import annotations

import re
from functools import cache

import numpy as np
import pytest

import compiler
from compiler import te
from compiler.lowering.low_to_llvm import body, emit
from compiler.pipeline.source import parse
from compiler.schedule import Schedule
from compiler.targets.cpu.kernel import Kernel
from compiler.types.machines import host
from tests.low import with_constants

EDGE = 64


def norms(count: int) -> te.Function:
    """Layer norms with residual additions, one behind the other."""
    x = first = te.placeholder((EDGE, EDGE), name="X")
    scale, shift = te.placeholder((EDGE,), name="scale"), te.placeholder((EDGE,), name="shift")
    for _ in range(count):
        x = te.nn.add(x, te.nn.layer_norm(x, scale, shift))
    return te.function("norms", [first, scale, shift], [x])


def parallel_norms(count: int) -> Schedule:
    """The same, each outer loop parallel, and one temporary in a parallel loop."""
    s = Schedule(compiler.lower(norms(count)))
    s.compute_at(s.get_block("layer_norm.variance"), s.get_loops(s.get_block("layer_norm"))[0])
    for label in s.program.blocks:
        if label != "layer_norm.variance":
            s.parallel(s.get_loops(s.get_block(label))[0])
    return s


def arrays(f: te.Function) -> list[np.ndarray]:
    rng = np.random.default_rng(0)
    return [rng.uniform(-1, 1, t.shape).astype(np.float32) for t in f.inputs]


def loops_of_functions(llvm: str) -> dict[str, int]:
    """How many loops each function of LLVM text has."""
    parts = re.split(r"^define ", llvm, flags=re.MULTILINE)[1:]
    return {re.search(r'@"(.*?)"', part)[1]: len(re.findall(r"^head\d+:", part, re.MULTILINE)) for part in parts}  # type: ignore[index]


def test_a_short_body_is_one_function() -> None:
    assert set(loops_of_functions(compiler.build(norms(3)).text("llvm"))) == {"norms", "norms.body"}


@cache
def built() -> Kernel:
    return compiler.build(norms(7))


def test_a_long_body_is_cut_and_computes_the_same(monkeypatch: pytest.MonkeyPatch) -> None:
    f, cut = norms(7), built()
    loops = loops_of_functions(cut.text("llvm"))
    assert loops["norms.body"] == 0 and max(loops.values()) < body.MOST_LOOPS
    assert sum(name.startswith("norms.body.part") for name in loops) > 2
    monkeypatch.setattr(body, "MOST_LOOPS", 10_000)
    uncut = compiler.build(f)
    assert max(loops_of_functions(uncut.text("llvm")).values()) == sum(loops.values())
    np.testing.assert_array_equal(cut(*arrays(f)), uncut(*arrays(f)))


def test_parallel_loops_stand_in_parts() -> None:
    f, kernel = norms(7), compiler.build(parallel_norms(7), threads=2)
    names = loops_of_functions(kernel.text("llvm"))
    assert any(".part" in name for name in names) and sum(name.endswith(".share") for name in names) > 40
    expected = built()(*arrays(f))
    np.testing.assert_array_equal(kernel(*arrays(f), threads=1), kernel(*arrays(f), threads=2))
    np.testing.assert_allclose(kernel(*arrays(f)), expected, rtol=1e-5, atol=1e-5)


def test_a_part_reads_what_it_does_not_write() -> None:
    llvm = built().text("llvm")
    assert isinstance(llvm, str)
    heads = re.findall(r'^define internal void @"norms.body.part\d+"\((.*)\)', llvm, re.MULTILINE)
    parameters = [parameter for head in heads for parameter in head.split(", ")]
    assert all(" noalias nonnull align " in parameter for parameter in parameters)
    assert {" readonly " in parameter for parameter in parameters} == {True, False}


NEST = """
      scf.for %i{0} = %c0 to %c8 step %c1 {{
        %a{0} = memref.load %y[%i{0}] : memref<8xf32>
        %b{0} = arith.addf %a{0}, {1} : f32
        memref.store %b{0}, %y[%i{0}] : memref<8xf32>
      }}"""


def low(nests: int, used_by: tuple[int, ...]) -> str:
    """A low-level function of many nests; some use a value that a nest before them has computed."""
    text = [NEST.format(n, "%sum" if n in used_by else "%one") for n in range(nests)]
    return with_constants(f"""
    func.func @f(%x: memref<8xf32>, %y: memref<8xf32>) attributes {{outputs = 1 : i64}} {{
      %one = arith.constant 1.0 : f32
      scf.for %i = %c0 to %c8 step %c1 {{
        memref.store %one, %y[%i] : memref<8xf32>
      }}
      %sum = scf.for %i = %c0 to %c8 step %c1 iter_args(%s = %one) -> (f32) {{
        %v = memref.load %x[%i] : memref<8xf32>
        %t = arith.addf %s, %v : f32
        scf.yield %t : f32
      }}
      %last = arith.addi %c8, %c1 : index
      {"".join(text)}
      func.return
    }}""")


@pytest.mark.parametrize("used_by", [(), (0,), (50, 90)])
def test_what_a_part_computes_no_other_part_uses(used_by: tuple[int, ...]) -> None:
    """The value of a reduction before the nests that use it keeps all of them together."""
    text = low(100, used_by)
    loops = loops_of_functions(emit(parse(text), host()))
    assert loops["f.body.part0"] == max(body.PART_LOOPS, *(n + 3 for n in used_by)) if used_by else body.PART_LOOPS
    x = np.arange(8, dtype=np.float32)
    np.testing.assert_array_equal(compiler.build(text)(x), 1 + 100 + len(used_by) * x.sum() + 0 * x)
