"""Groups whose results stand where inputs end: what main may share, and faults that it must not make."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pytest
from xdsl.dialects.builtin import ModuleOp

import compiler
from compiler import te
from compiler.analysis import in_place as analysis_in_place
from compiler.dialects.numbers import Array
from compiler.driver.main.assemble import build_program
from compiler.driver.units.unit import BuildSettings, Scheduled
from compiler.interpret.te import evaluate
from compiler.pipeline.source import parse
from compiler.schedule import Schedule
from compiler.support.errors import TargetError
from compiler.targets.cpu import Kernel
from tests.groups import program

N = 16
SHAPES = {"x": (N, N), "y": (N, N)}


def square(name: str) -> te.Tensor:
    return te.placeholder((N, N), name=name)


A, B = square("A"), square("B")
GROUPS = {
    "exp": te.function("f", [A], te.nn.exp(A)),
    "add": te.function("f", [A, B], te.nn.add(A, B)),
    "shares": te.function("f", [A], te.nn.softmax(A)),
    "transposed": te.function("f", [A], te.compute((N, N), lambda i, j: -A[j, i], name="T")),
    "first": te.function("f", [A, B], te.compute((N, N), lambda i, j: A[i, j] + B[i, 0], name="R")),
    "crossed": te.function(
        "f",
        [A, B],
        [
            te.compute((N, N), lambda i, j: -B[i, j], name="C"),
            te.compute((N, N), lambda i, j: te.exp(A[i, j]), name="D"),
        ],
    ),
}


def module(calls: Sequence[str], outputs: Sequence[str]) -> ModuleOp:
    return program(GROUPS, SHAPES, calls, outputs)


def build(whole: ModuleOp, in_place: bool = True, sources: dict[str, Scheduled] | None = None) -> Kernel:
    return build_program(whole, sources or {}, BuildSettings("contract", 1, 0.0, in_place))


def memory(kernel: Kernel) -> int:
    """The bytes of the arena between groups."""
    low = kernel.text("low")
    line = next((line for line in low.splitlines() if "memref.alloc" in line and "memory" not in line), "")
    return int(line.rpartition("memref<")[2].removesuffix("xi8>"))


@pytest.fixture
def arrays() -> list[Array]:
    return [np.random.default_rng(n).random((N, N), np.float32) for n in range(2)]


def check(whole: ModuleOp, arrays: Sequence[Array]) -> Kernel:
    """The kernel, which gives the bits of the one without sharing, and what the evaluator does."""
    kernel = build(whole)
    actual, apart = kernel(*arrays), build(whole, in_place=False)(*arrays)
    several = [actual, apart] if isinstance(actual, tuple) else [(actual,), (apart,)]
    for left, two, exact in zip(*several, evaluate(whole, list(arrays)), strict=True):
        np.testing.assert_array_equal(left, two)
        np.testing.assert_allclose(left, exact, rtol=1e-4, atol=1e-6)
    return kernel


CHAIN = ["a = transposed(x)", "b = exp(a)", "c = shares(b)", "d = exp(c)", "e = transposed(d)"]


def test_a_chain_stays_in_one_buffer(arrays: list[Array]) -> None:
    kernel = check(program(GROUPS, {"x": (N, N)}, CHAIN, ["e"]), arrays[:1])
    assert memory(kernel) == 4 * N * N
    assert kernel.temporaries_bytes == 4 * 4 * N * N
    assert memory(build(program(GROUPS, {"x": (N, N)}, CHAIN, ["e"]), in_place=False)) == 2 * 4 * N * N


def test_both_inputs_may_be_replaced(arrays: list[Array]) -> None:
    program = module(["a = exp(x)", "b = exp(y)", "c = add(a, b)", "d = transposed(c)"], ["d"])
    assert memory(check(program, arrays)) == 2 * 4 * N * N


def test_a_tensor_that_is_read_again_stays(arrays: list[Array]) -> None:
    program = module(["a = exp(x)", "b = exp(a)", "c = add(b, y)", "d = add(c, a)", "e = exp(d)"], ["e"])
    check(program, arrays)


def test_arguments_are_never_written(arrays: list[Array]) -> None:
    program = module(["a = add(x, y)", "b = exp(a)"], ["b", "x"])
    copies = [array.copy() for array in arrays]
    kernel = check(program, arrays)
    kernel(*arrays)
    assert all(np.array_equal(array, copy) for array, copy in zip(arrays, copies, strict=True))


def test_one_array_may_be_passed_twice(arrays: list[Array]) -> None:
    kernel = check(module(["a = exp(x)", "b = add(a, y)", "c = exp(b)"], ["c"]), arrays)
    x = arrays[0]
    np.testing.assert_array_equal(kernel(x, x), kernel(x, x.copy()))
    with pytest.raises(TargetError, match="shares memory"):
        kernel(x, x, out=x)


def test_a_tensor_that_a_call_reads_twice_stays(arrays: list[Array]) -> None:
    check(module(["a = exp(x)", "b = add(a, a)", "c = exp(b)", "d = add(c, y)"], ["d"]), arrays)


FAULTS = {
    "swapped outputs": ["a = exp(x)", "b = exp(y)", "c, d = crossed(a, b)", "e = transposed(c)", "g = transposed(d)"],
    "transposed": ["a = exp(x)", "b = transposed(a)", "e = exp(b)", "g = exp(y)"],
    "broadcast": ["a = exp(x)", "c = first(y, a)", "e = transposed(c)", "g = exp(y)"],
}


@pytest.mark.parametrize("calls", FAULTS.values(), ids=FAULTS)
def test_what_would_be_overwritten_too_early(calls: list[str], arrays: list[Array]) -> None:
    check(module(calls, ["e", "g"]), arrays)


@pytest.mark.parametrize("calls", FAULTS.values(), ids=FAULTS)
def test_without_the_proof_the_fault_shows(
    calls: list[str], arrays: list[Array], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(analysis_in_place, "may_overwrite", lambda *_: True)
    with pytest.raises(AssertionError):
        check(module(calls, ["e", "g"]), arrays)


def test_a_tensor_that_lives_on_shows_where_nobody_looks(arrays: list[Array], monkeypatch: pytest.MonkeyPatch) -> None:
    from compiler.driver.main import assemble

    program = module(["a = shares(x)", "b = exp(a)", "c = add(b, y)", "d = add(c, a)", "e = shares(d)"], ["e"])
    check(program, arrays)
    monkeypatch.setattr(assemble, "replaceable", lambda main: {"exp": ((0, 0),)})
    with pytest.raises(AssertionError):
        check(program, arrays)


def test_the_order_of_the_schedule_decides(arrays: list[Array]) -> None:
    shifted = te.compute((N, N), lambda i, j: te.select(i < N - 1, A[i + 1, j], 0.0), name="shifted")
    f = te.function("f", [A], shifted)
    chain = program(GROUPS | {"shift": f}, SHAPES, ["a = add(x, y)", "b = shift(a)", "c = transposed(b)"], ["c"])
    s = Schedule(compiler.lower(f))
    s.parallel(s.get_loops(s.get_block("shifted"))[0])
    kernels = [build(chain), build(chain, sources={"shift": Scheduled(str(s.script), "record", "proved")})]
    assert [memory(kernel) for kernel in kernels] == [4 * N * N, 2 * 4 * N * N]
    np.testing.assert_array_equal(kernels[0](*arrays), kernels[1](*arrays))


def test_texts_say_who_stands_where(arrays: list[Array]) -> None:
    kernel = build(program(GROUPS, {"x": (N, N)}, CHAIN, ["e"]))
    for level in ("loop", "low"):
        again = compiler.build(parse(kernel.text(level)), name="program")
        np.testing.assert_array_equal(again(arrays[0]), kernel(arrays[0]))
