"""Scalars that lie side by side are lanes of one vector on machines that multiply by a lane, and scalars elsewhere."""

from __future__ import annotations

import re
from functools import partial

import numpy as np
import pytest
from xdsl.dialects import arith
from xdsl.dialects.builtin import ModuleOp, f32
from xdsl.rewriter import Rewriter

from compiler.dialects.upstream import casts
from compiler.lowering.low_to_llvm import HANDLERS, emit
from compiler.lowering.low_to_llvm.lane_loads import lane_loads
from compiler.targets.cpu.load import load
from compiler.types.machines import MACHINES, Machine, host
from tests.unit.lowering.test_low_to_llvm import parse

NEON = MACHINES["neoverse-n1"]
HEAD = "func.func @f(%A: memref<12xf32>, %S: memref<12x{t}>, %out: memref<12x4xf32>) attributes {{outputs = 1 : i64}}"


def body(offsets: list[int], type: str = "f32", between: dict[int, str] | None = None) -> str:
    """Broadcast S[o] for each offset, times A[0:4], to row o; `between` has ops before the load of an offset."""
    lines = ["%a = vector.load %A[%c0] : memref<12xf32>, vector<4xf32>"]
    for n, o in enumerate(offsets):
        lines += [(between or {}).get(o, ""), f"%s{n} = memref.load %S[%c{o}] : memref<12x{type}>"]
        if type != "f32":
            lines.append(f"%x{n} = arith.extf %s{n} : {type} to f32")
        lines += [
            f"%b{n} = vector.broadcast %{'s' if type == 'f32' else 'x'}{n} : f32 to vector<4xf32>",
            f"%y{n} = arith.mulf %a, %b{n} : vector<4xf32>",
            f"vector.store %y{n}, %out[%c{o}, %c0] : memref<12x4xf32>, vector<4xf32>",
        ]
    return "\n".join([HEAD.format(t=type) + " {", *lines, "func.return", "}"])


def loads(text: str, machine: Machine = NEON) -> list[str]:
    """The types of the loads from S, in order."""
    llvm = emit(parse(text), machine)
    return re.findall(r"load ([^,]+), ptr", llvm)[1:]


RUNS = {
    "a whole vector": ([0, 1, 2, 3], ["<4 x float>"]),
    "in any order, and twice": ([2, 1, 3, 0, 1], ["<4 x float>"]),
    "a vector and a half": ([0, 1, 2, 3, 4, 5], ["<4 x float>", "<2 x float>"]),
    "one is left": ([4, 5, 6], ["<2 x float>", "float"]),
    "apart": ([0, 2, 4], ["float"] * 3),
}


@pytest.mark.parametrize("case", RUNS)
def test_runs_of_scalars_are_loaded_as_vectors(case: str) -> None:
    offsets, expected = RUNS[case]
    assert loads(body(offsets)) == expected
    assert loads(body(offsets), MACHINES["avx2"]) == ["float"] * len(offsets)


def test_extended_scalars_are_extended_as_a_vector() -> None:
    assert loads(body([0, 1, 2, 3], "f16")) == ["<4 x half>"]
    assert emit(parse(body([0, 1, 2, 3], "f16")), NEON).count("fpext") == 1
    assert loads(body([0, 1, 2, 3], "bf16")) == ["i16"] * 4
    module = parse(body([0, 1, 3], "f16"))
    for op in [op for op in module.walk() if isinstance(op, casts.ExtFOp)]:
        Rewriter.replace_op(op, arith.ExtFOp(op.input, f32))  # the class of ops that passes make
    assert emit(module, NEON).count("fpext") == 2


def test_a_store_to_the_buffer_and_other_uses_end_a_run() -> None:
    write = "%v = arith.constant 1.0 : f32\nmemref.store %v, %S[%c3] : memref<12xf32>"
    assert loads(body([0, 1, 2, 3], between={2: write})) == ["<2 x float>"] * 2
    assert loads(body([0, 1, 2, 3], between={2: write.replace("%S", "%A")})) == ["<4 x float>"]
    use = "%u = arith.addf %s0, %s0 : f32\nmemref.store %u, %A[%c0] : memref<12xf32>"
    assert loads(body([0, 1], between={1: use})) == ["float", "float"]


def test_words_that_dot_products_share_are_lanes() -> None:
    kind = "dot.i32.i8i8x4.neon"
    lines = [
        f"""%g{n} = vector.load %S[%c{4 * n}] : memref<16xi8>, vector<4xi8>
        %y{n} = unit.dot "{kind}" %a, %g{n}, %b : vector<4xi32>, vector<4xi8>, vector<16xi8> -> vector<4xi32>
        vector.store %y{n}, %out[%c{n}, %c0] : memref<2x4xi32>, vector<4xi32>"""
        for n in (0, 1)
    ]
    head = "func.func @f(%A: memref<4xi32>, %S: memref<16xi8>, %out: memref<2x4xi32>) attributes {outputs = 1 : i64} {"
    first = "%a = vector.load %A[%c0] : memref<4xi32>, vector<4xi32>\n"
    first += "%b = vector.load %S[%c0] : memref<16xi8>, vector<16xi8>"
    llvm = emit(parse("\n".join([head, first, *lines, "func.return", "}"])), NEON)
    assert re.findall(r"load ([^,]+), ptr", llvm) == ["<4 x i32>", "<16 x i8>", "<2 x i32>"]
    assert re.findall(r"poison, <4 x i32> <(i32 \d)", llvm) == ["i32 0", "i32 1"]


def test_scalars_that_an_inner_region_broadcasts_stay_scalars() -> None:
    """The body of a parallel loop is another function, which takes the scalars."""
    text = (
        HEAD.format(t="f32")
        + """ {
      %s0 = memref.load %S[%c0] : memref<12xf32>
      %s1 = memref.load %S[%c1] : memref<12xf32>
      scf.parallel (%i) = (%c0) to (%c12) step (%c1) {
        %b0 = vector.broadcast %s0 : f32 to vector<4xf32>
        %b1 = vector.broadcast %s1 : f32 to vector<4xf32>
        %y = arith.addf %b0, %b1 : vector<4xf32>
        vector.store %y, %out[%i, %c0] : memref<12x4xf32>, vector<4xf32>
        scf.reduce
      }
      func.return
    }"""
    )
    assert emit(parse(text), NEON).count("load <2 x float>") == 0


@pytest.mark.parametrize("type", ["f32", "f16"])
def test_results_are_those_of_scalars(type: str) -> None:
    """The code of a machine with lanes, compiled for this one."""

    def with_lanes(module: ModuleOp, machine: Machine) -> str:
        return emit(module, machine, {**HANDLERS, **lane_loads(NEON, HANDLERS)})

    module = parse(body([0, 1, 2, 3, 4, 5, 7, 8], type))
    a, s = np.arange(12, dtype=np.float32), np.arange(12).astype(np.float16 if type == "f16" else np.float32)
    run = partial(load(module, host(), "f", emission=with_lanes), a, s)
    rows = [0, 1, 2, 3, 4, 5, 7, 8]
    np.testing.assert_array_equal(run()[rows], np.outer(s, a[:4]).astype(np.float32)[rows])
    assert "shufflevector" in with_lanes(module, host())
