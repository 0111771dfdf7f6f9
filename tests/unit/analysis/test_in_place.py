"""Outputs in the memory of inputs: allowed where each element is read before it is written, in every order."""

from __future__ import annotations

import random
from collections.abc import Callable

import numpy as np
import pytest
from xdsl.dialects.builtin import ModuleOp

import compiler
from compiler import te
from compiler.analysis.in_place import in_place, may_overwrite
from compiler.dialects.functions import find_function
from compiler.dialects.numbers import Array
from compiler.fuzz import programs as random_programs
from compiler.fuzz import scripts as random_scripts
from compiler.interpret import loop
from compiler.program.read import read
from compiler.program.tree import Program
from compiler.program.write import write
from compiler.schedule import Handle, Schedule
from tests.sample import some

N = 8


def square(name: str) -> te.Tensor:
    return te.placeholder((N, N), name=name)


A, B = square("A"), square("B")


def computed(rule: Callable[..., te.Expr]) -> te.Function:
    return te.function("f", [A, B], te.compute((N, N), rule, name="C"))


def crossed() -> te.Function:
    first = te.compute((N, N), lambda i, j: -B[i, j], name="C")
    return te.function("f", [A, B], [first, te.compute((N, N), lambda i, j: -A[i, j], name="D")])


def allowed(program: Program, source: str = "A", target: str = "C") -> bool:
    return may_overwrite(program, source, target)


def scheduled(f: te.Function, rewrite: Callable[[Schedule, list[Handle]], object] | None = None) -> Program:
    s = Schedule(compiler.lower(f))
    if rewrite is not None:
        rewrite(s, s.get_loops(s.get_block("C")))
    return s.program


def next_row(i: te.Expr, j: te.Expr) -> te.Expr:
    return te.select(i < N - 1, A[i + 1, j], 0.0)


@pytest.mark.parametrize(
    ("rule", "expected"),
    [
        (lambda i, j: te.exp(A[i, j]), True),
        (lambda i, j: A[i, j] * B[j, i], True),
        (lambda i, j: A[j, i], False),
        (lambda i, j: A[i, 0] + B[i, j], False),
        (lambda i, j: A[0, j], False),
        (lambda i, j: A[N - 1 - i, j], False),
        (lambda i, j: A[i, j] + A[i, 0], False),
    ],
)
def test_computes(rule: Callable[..., te.Expr], expected: bool) -> None:
    assert allowed(scheduled(computed(rule))) is expected


def test_a_reduction_sets_its_output_before_it_reads() -> None:
    assert not allowed(scheduled(te.function("f", [A, B], te.nn.matmul(A, B, name="C"))))


def test_rows_that_are_read_whole_before_they_are_written() -> None:
    x = te.placeholder((N, N), name="X")
    program = read(find_function(compiler.lower(te.function("f", [x], te.nn.softmax(x, name="C")))))
    assert may_overwrite(program, "X", program.arguments[-1].name)


def test_iterations_in_another_order() -> None:
    f = computed(next_row)
    assert allowed(scheduled(f))
    assert not allowed(scheduled(f, lambda s, loops: s.reverse(loops[0])))
    assert allowed(scheduled(f, lambda s, loops: s.reverse(loops[1])))
    assert not allowed(scheduled(f, lambda s, loops: s.parallel(loops[0])))
    assert not allowed(scheduled(f, lambda s, loops: s.vectorize(loops[0])))
    assert allowed(scheduled(f, lambda s, loops: s.vectorize(loops[1])))
    assert allowed(scheduled(f, lambda s, loops: s.unroll(loops[0])))


def test_swapped_outputs() -> None:
    program = scheduled(crossed())
    assert [may_overwrite(program, x, y) for x in "AB" for y in "CD"] == [False, True, True, True]


def test_others_than_alike_arguments() -> None:
    x = te.placeholder((N,), name="x")
    broadcast = te.function("f", [x], te.compute((N, N), lambda i, j: x[j], name="C"))
    assert not may_overwrite(scheduled(broadcast), "x", "C")
    h = te.placeholder((N, N), "i32", name="h")
    cast = te.function("f", [h], te.compute((N, N), lambda i, j: te.cast(h[i, j], "f32"), name="C"))
    assert not may_overwrite(scheduled(cast), "h", "C")


def test_gathers() -> None:
    index = te.placeholder((N,), "i64", name="index")
    f = te.function("f", [A, index], te.nn.gather(A, index, axis=0))
    program = read(find_function(compiler.lower(f)))
    assert not may_overwrite(program, "A", program.arguments[-1].name)


def results(program: Program, inputs: list[Array], shared: tuple[str, str] | None = None) -> list[Array]:
    """What a program gives; with a pair its output begins as the input, which nothing reads."""
    names = [b.name for b in program.arguments]
    outputs = program.arguments[len(program.arguments) - program.outputs :]
    arrays = [*(a.copy() for a in inputs), *(np.zeros_like(inputs[0], shape=b.shape) for b in outputs)]
    if shared is not None:
        source, target = (names.index(name) for name in shared)
        arrays[target][...] = arrays[source]
        arrays[source][...] = np.nan
    loop.run(ModuleOp([write(program)]), arrays)
    return arrays[len(inputs) :]


def pairs(program: Program) -> list[tuple[str, str]]:
    count = len(program.arguments) - program.outputs
    inputs, outputs = program.arguments[:count], program.arguments[count:]
    return [(a.name, b.name) for a in inputs for b in outputs if may_overwrite(program, a.name, b.name)]


@pytest.mark.parametrize("seed", some(range(40)))
def test_random_programs_in_place_give_the_same(seed: int) -> None:
    rng = random.Random(seed)
    f = random_programs.program(rng, dtype="f32")
    walker = random_scripts.Walker(Schedule(compiler.lower(f)), rng)
    for _ in range(6):
        walker.step()
    program = walker.s.program
    inputs = random_programs.arrays_for(f, seed)
    if any(array.dtype != np.float32 for array in inputs):
        return
    expected = results(program, inputs)
    for pair in pairs(program):
        actual = results(in_place(program, *pair), inputs, pair)
        assert all(np.array_equal(a, b, equal_nan=True) for a, b in zip(actual, expected, strict=True)), pair
