"""Cost: operations counted by hand and by enumeration, footprints against what interpretation touches."""

from __future__ import annotations

import math
from itertools import product
from math import prod

import pytest

import compiler
from compiler import recipes, te
from compiler.affine import linear as lin
from compiler.analysis.cost import flops, footprint, instances, total_flops
from compiler.program.tree import Block, Program
from compiler.schedule import Schedule
from tests import programs


def matmul(m: int, k: int, n: int, dtype: str = "f32") -> Schedule:
    return Schedule(compiler.lower(programs.matmul(m, n, k, dtype, "matmul", output="matmul")))


def program_of(output: te.Tensor, *inputs: te.Tensor) -> Program:
    return Schedule(compiler.lower(te.function("f", list(inputs), [output]))).program


def enumerated(program: Program, block: Block) -> int:
    """The instances of a block, by trying every point of the loops around it."""
    loops = program.enclosing(block.label)
    points = product(*(range(loop.extent) for loop in loops))
    numbers = [loop.number for loop in loops]

    def holds(point: tuple[int, ...]) -> bool:
        values = dict(zip(numbers, point, strict=True))
        collected = [(lin.evaluate(c.form, values), c.equal) for c in block.guard]
        return all(value == 0 if equal else value >= 0 for value, equal in collected)

    return sum(map(holds, points))


def test_a_matmul() -> None:
    program = matmul(5, 6, 7).program
    (block,) = program.blocks.values()
    assert flops(block) == 2
    assert instances(program, block) == 5 * 6 * 7
    assert total_flops(program, program.body) == 2 * 5 * 6 * 7
    assert footprint(program, program.body) == {"A": 4 * 30, "B": 4 * 42, "matmul": 4 * 35}


def test_integers_and_copies_have_no_flops() -> None:
    program = matmul(5, 6, 7, "i32").program
    assert total_flops(program, program.body) == 0
    x = te.placeholder((4, 5), name="X")
    copied = program_of(te.nn.transpose(x, (1, 0)), x)
    assert total_flops(copied, copied.body) == 0
    assert sum(footprint(copied, copied.body).values()) == 2 * 4 * 20


@pytest.mark.parametrize(
    ("build", "each"),
    [
        (lambda x: te.nn.exp(x), 1),
        (lambda x: te.compute((4, 5), lambda i, j: x[i, j] * x[i, j] + x[i, j], name="y"), 2),
        (lambda x: te.compute((4, 5), lambda i, j: te.select(x[i, j] > 0, x[i, j], -x[i, j]), name="y"), 1),
    ],
)
def test_elementwise(build: object, each: int) -> None:
    x = te.placeholder((4, 5), name="X")
    program = program_of(build(x), x)  # type: ignore[operator]
    assert total_flops(program, program.body) == 20 * each


def test_a_combiner_of_ones_own() -> None:
    def both(held: te.Expr, added: te.Expr) -> tuple[te.Expr, te.Expr]:
        return held[0] + added[0], te.maximum(held[1], added[1])

    x, k = te.placeholder((4, 5), name="X"), te.reduce_axis(5)
    pick = te.combiner(both, identity=(0.0, -math.inf))
    total, most = te.compute((4,), lambda i: te.reduce(pick, (x[i, k], x[i, k]), axis=k), name="S")
    program = Schedule(compiler.lower(te.function("f", [x], [total, most]))).program
    assert total_flops(program, program.body) == 2 * 20


def test_guards_are_counted_exactly() -> None:
    s = matmul(13, 6, 11)
    block = s.get_block("matmul")
    m, n, _ = s.get_loops(block)
    s.split(m, [None, 4])
    s.split(n, [None, 8])
    s.fuse(*s.get_loops(block)[:2])
    (actual,) = s.program.blocks.values()
    assert actual.guard
    assert instances(s.program, actual) == enumerated(s.program, actual) == 13 * 6 * 11
    assert prod(loop.extent for loop in s.program.enclosing("matmul")) > 13 * 6 * 11


def test_beyond_what_is_tried_every_point_counts(monkeypatch: pytest.MonkeyPatch) -> None:
    s = matmul(13, 6, 11)
    s.split(s.get_loops(s.get_block("matmul"))[0], [None, 4])
    monkeypatch.setattr("compiler.analysis.cost.EXACT", 15)
    assert instances(s.program, s.program.blocks["matmul"]) == 16 * 6 * 11


def test_footprints_of_tiles_and_packed_panels() -> None:
    s = matmul(32, 32, 32)
    g = recipes.gebp(s, s.get_block("matmul"), mc=16, kc=16, nc=32, mr=4, nr=8)
    program = s.program
    loop = next(loop for loop in program.loops.values() if loop.label == s.label(g.k))
    actual = footprint(program, [loop])
    assert actual == {"A.pack": 4 * 16 * 4, "B.pack": 4 * 16 * 8, "matmul": 4 * 4 * 8}


def test_a_padded_read_and_a_table_stay_inside_their_buffers() -> None:
    x, w = te.placeholder((1, 2, 5, 5), name="X"), te.placeholder((3, 2, 3, 3), name="W")
    program = program_of(te.nn.conv2d(x, w, padding=1), x, w)
    assert footprint(program, program.body)["X"] == 4 * 50
    table, index = te.placeholder((100, 16), name="T"), te.placeholder((7,), "i32", name="I")
    rows = te.gather((7, 16), lambda i, d: table.at(index[i], d), name="rows", otherwise=0)
    assert footprint(program_of(rows, table, index), ()) == {}
    gathering = program_of(rows, table, index)
    assert footprint(gathering, gathering.body) == {"I": 4 * 7, "T": 4 * 1600, "rows": 4 * 112}
