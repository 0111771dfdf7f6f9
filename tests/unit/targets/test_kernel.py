"""Kernels: what they accept and refuse, in which words; outputs, workspaces, threads, timing, machine facts."""

from __future__ import annotations

import copy
import dataclasses
import pickle
import sys
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from xdsl.context import Context
from xdsl.parser import Parser

import compiler
from compiler import te, universe
from compiler.autotune import SearchTask
from compiler.passes.plan_buffers import PlanBuffersPass
from compiler.support.errors import InputError, TargetError
from compiler.targets.address import HEADER, address, address_reader, numpy_address
from compiler.targets.arena import arena
from compiler.targets.arguments import Argument, are_disjoint, check_input
from compiler.targets.cpu import Kernel, calls
from compiler.targets.cpu.binding import Binder
from compiler.targets.cpu.calls import DECLINED, NativeFunction, compile_fast_call
from compiler.targets.cpu.kinds import NUMPY
from compiler.targets.cpu.load import load
from compiler.targets.cpu.presence import Disturbance, Sample
from compiler.types.machines import _cpu, host
from tests.low import with_constants
from tests.programs import applied
from tests.unit.targets.calls import at_once, said

MATMUL = with_constants("""
func.func @matmul(%A: memref<3x4xf32>, %B: memref<4x5xf32>, %C: memref<3x5xf32>) attributes {outputs = 1 : i64} {
  %z = arith.constant 0.0 : f32
  scf.for %i = %c0 to %c3 step %c1 {
    scf.for %j = %c0 to %c5 step %c1 {
      %s = scf.for %p = %c0 to %c4 step %c1 iter_args(%x = %z) -> (f32) {
        %a = memref.load %A[%i, %p] : memref<3x4xf32>
        %b = memref.load %B[%p, %j] : memref<4x5xf32>
        %e = arith.mulf %a, %b fastmath<contract> : f32
        %y = arith.addf %x, %e fastmath<contract> : f32
        scf.yield %y : f32
      }
      memref.store %s, %C[%i, %j] : memref<3x5xf32>
    }
  }
  func.return
}""")
# Both outputs come through a temporary, many times over, so that threads that share one would be seen.
STAGED = with_constants("""
func.func @staged(%x: memref<4096xf64>, %y: memref<4096xf64>, %z: memref<4096xf64>) attributes {outputs = 2 : i64} {
  %t = memref.alloc() : memref<4096xf64>
  scf.for %r = %c0 to %c50 step %c1 {
    scf.for %i = %c0 to %c4096 step %c1 {
      %a = memref.load %x[%i] : memref<4096xf64>
      memref.store %a, %t[%i] : memref<4096xf64>
    }
    scf.for %i = %c0 to %c4096 step %c1 {
      %a = memref.load %t[%i] : memref<4096xf64>
      %b = arith.addf %a, %a : f64
      %c = arith.mulf %a, %a : f64
      memref.store %b, %y[%i] : memref<4096xf64>
      memref.store %c, %z[%i] : memref<4096xf64>
    }
  }
  func.return
}""")
IN_PLACE = with_constants("""
func.func @scale(%x: memref<8xf32>, %s: memref<f32>) {
  %f = memref.load %s[] : memref<f32>
  scf.for %i = %c0 to %c8 step %c1 {
    %a = memref.load %x[%i] : memref<8xf32>
    %b = arith.mulf %a, %f : f32
    memref.store %b, %x[%i] : memref<8xf32>
  }
  func.return
}""")


def build(text: str, **options: Any) -> Kernel:
    module = Parser(universe.context(), text).parse_module()
    PlanBuffersPass().apply(Context(), module)
    return load(module, host(), **options)


@pytest.fixture(scope="module")
def matmul() -> Kernel:
    return build(MATMUL, texts={"low": "the low text", "te": lambda: "the te text"}, policy="strict")


@pytest.fixture(scope="module")
def staged() -> Kernel:
    return build(STAGED)


@pytest.fixture(scope="module")
def scale() -> Kernel:
    return build(IN_PLACE)


def arrays(number: int = 0) -> tuple[Any, Any]:
    rng = np.random.default_rng(number)
    return rng.random((3, 4), np.float32), rng.random((4, 5), np.float32)


def test_a_bound_call_writes_to_the_same_arrays(matmul: Kernel) -> None:
    a, b, out = np.ones((3, 4), np.float32), np.ones((4, 5), np.float32), np.zeros((3, 5), np.float32)
    call = matmul.bound(a, b, out=out)
    assert not out.any()
    call()
    np.testing.assert_array_equal(out, a @ b)
    a *= 2
    call()
    np.testing.assert_array_equal(out, a @ b)
    with pytest.raises(TargetError, match="takes 2 arrays"):
        matmul.bound(a)


def test_a_bound_call_returns_what_a_call_does(matmul: Kernel, staged: Kernel, scale: Kernel) -> None:
    a, b = arrays()
    call = matmul.bound(a, b)
    np.testing.assert_allclose(call(), a @ b, rtol=1e-6)
    first = call()
    a *= 2
    assert call() is first, "the same array each time"
    np.testing.assert_allclose(first, a @ b, rtol=1e-6)
    out = np.empty((3, 5), np.float32)
    assert matmul.bound(a, b, out=out)() is out
    y, z = staged.bound(np.full(4096, 3.0))()
    assert (y == 6).all() and (z == 9).all()
    assert scale.bound(np.ones(8, np.float32), np.ones((), np.float32))() is None
    assert repr(call) == f"<BoundCall of {matmul!r}>"


class Copied:
    """An array whose package copies what it takes."""

    def __init__(self, array: Any) -> None:
        self.array = np.from_dlpack(array).copy()

    def __dlpack__(self, **options: Any) -> object:
        return self.array.__dlpack__()

    def __dlpack_device__(self) -> tuple[int, int]:
        return 1, 0

    def __array_namespace__(self) -> object:
        return SimpleNamespace(from_dlpack=Copied)


def test_a_bound_call_returns_new_elements_where_a_package_copies(matmul: Kernel) -> None:
    a, b = arrays()
    call = matmul.bound(Copied(a), b)
    assert isinstance(call(), Copied)
    np.testing.assert_allclose(call().array, a @ b, rtol=1e-6)


@pytest.mark.parametrize("copied", [pickle.dumps, copy.copy, copy.deepcopy])
def test_what_holds_machine_code_is_not_pickled_or_copied(matmul: Kernel, copied: Callable[[object], object]) -> None:
    a, b = arrays()
    task = SearchTask(applied(lambda x: te.nn.exp(x), (4,), inputs="x"), threads=1)
    for held, words in (
        (matmul, "the code of this kernel was not kept"),
        (matmul.bound(a, b), "`bound` of its kernel makes another"),
        (matmul.library, "a unit of strata.driver.build_unit can be"),
        (task, "make it again with SearchTask"),
    ):
        with pytest.raises(TypeError, match="cannot be pickled or copied") as refused:
            copied(held)
        assert words in str(refused.value)


def test_matmul_with_and_without_out(matmul: Kernel) -> None:
    a, b = arrays()
    np.testing.assert_allclose(matmul(a, b), a @ b, rtol=1e-6)
    c = np.full((3, 5), np.nan, np.float32)
    assert matmul(a, b, out=c) is c
    np.testing.assert_allclose(c, a @ b, rtol=1e-6)
    assert matmul(a, b, out=(c,)) is c


def test_what_a_kernel_says_of_itself(matmul: Kernel) -> None:
    assert [(v.name, v.shape) for v in matmul.arguments] == [("A", (3, 4)), ("B", (4, 5)), ("C", (3, 5))]
    assert all(v.dtype == np.float32 for v in matmul.arguments)
    assert (matmul.name, matmul.outputs, matmul.policy) == ("matmul", 1, "strict")
    assert repr(matmul) == "<Kernel matmul(A: float32[3, 4], B: float32[4, 5], C: float32[3, 5]), 1 output>"


def test_what_a_build_says_of_its_kernel() -> None:
    f = applied(lambda A, b: te.nn.add(te.nn.softmax(A), b), (8, 4), (4,), inputs="Ab")
    kernel = compiler.build(f)
    assert kernel.groups == () and kernel.arena_bytes > 0 and kernel.constant_bytes == 0
    assert 0 < kernel.build_seconds < 60
    assert compiler.build(f, constants={"b": np.ones(4, np.float32)}).constant_bytes == 64


def test_texts(matmul: Kernel) -> None:
    assert (matmul.text("low"), matmul.text("te")) == ("the low text", "the te text")
    assert 'define void @"matmul"' in matmul.text("llvm")
    assert "matmul.body" in matmul.text("asm")
    said(lambda: matmul.text("ptx"), "'ptx'", "low, te, llvm, asm")


def test_wrong_inputs(matmul: Kernel) -> None:
    a, b = arrays()
    said(lambda: matmul(a), "matmul: takes 2 arrays, got 1")
    said(lambda: matmul(b, b), "matmul: argument 'A' has shape (4, 5), expected (3, 4)")
    said(lambda: matmul(a, b.astype(np.float64)), "matmul: argument 'B' has dtype float64, expected float32")
    said(lambda: matmul(a.tolist(), b), "matmul: argument 'A' is a list, expected a numpy array")
    said(lambda: matmul(a, None), "argument 'B' is a NoneType")


class Quantity(np.ndarray[Any, Any]):
    """Elements of a unit."""


@pytest.mark.parametrize(
    ("given", "kind"),
    [
        (lambda a: np.ma.masked_array(a, a > 0), "MaskedArray"),
        (lambda a: np.ma.masked_array(a), "MaskedArray"),
        (lambda a: np.asmatrix(a), "matrix"),
        (lambda a: a.view(np.recarray), "recarray"),
        (lambda a: a.view(Quantity), "Quantity"),
    ],
)
def test_an_array_that_means_more_than_its_elements(matmul: Kernel, given: Callable[[Any], Any], kind: str) -> None:
    a, b = arrays()
    words = f"is a {kind}: only its elements would be seen, give an ndarray"
    said(lambda: matmul(given(a), b), f"matmul: argument 'A' {words}")
    said(lambda: matmul(a, given(b)), f"matmul: argument 'B' {words}")
    said(lambda: matmul(a, b, out=given(np.empty((3, 5), np.float32))), words)
    function = applied(lambda x: te.nn.exp(x), (3, 4))
    said(lambda: compiler.build(function, constants={"X": given(a)}), f"f: argument 'X' {words}")


def test_a_file_of_elements_is_an_array(matmul: Kernel, tmp_path: Path) -> None:
    a, b = arrays()
    a.tofile(tmp_path / "a")
    mapped = np.memmap(tmp_path / "a", np.float32, "r", shape=a.shape)
    np.testing.assert_array_equal(matmul(mapped, b), matmul(a, b))


def test_inputs_of_any_layout(matmul: Kernel) -> None:
    a, b = arrays()
    expected = matmul(a, b)
    swapped = a.astype(">f4")
    backwards = np.ascontiguousarray(b[::-1, ::-1])[::-1, ::-1]
    frozen = b.copy()
    frozen.flags.writeable = False
    for left in (a, np.asfortranarray(a), np.repeat(a, 2, 1)[:, ::2], swapped):
        for right in (b, np.asfortranarray(b), backwards, frozen):
            np.testing.assert_array_equal(matmul(left, right), expected)


@pytest.mark.parametrize("offset", [0, 1, 2, 3, 4, 8, 12, 60])
def test_inputs_at_any_address(matmul: Kernel, offset: int) -> None:
    a, b = arrays()
    raw = np.zeros(a.nbytes + 64, np.uint8)
    raw[offset : offset + a.nbytes] = np.frombuffer(a.tobytes(), np.uint8)
    odd = np.frombuffer(raw.data, np.float32, a.size, offset).reshape(a.shape)
    np.testing.assert_array_equal(matmul(odd, b), matmul(a, b))
    passed = check_input("matmul", matmul.arguments[0], odd)
    assert passed.flags.aligned and np.shares_memory(passed, odd) == (offset % 4 == 0)


def test_usual_calls_need_no_other_checks(matmul: Kernel, scale: Kernel, monkeypatch: pytest.MonkeyPatch) -> None:
    """Of the arrays that the usual call refuses, the other checks accept some; what it accepts they would."""
    monkeypatch.delattr(Binder, "bind")
    (a, b), c = arrays(), np.empty((3, 5), np.float32)
    frozen, swapped, subclass = a.copy(), a.astype(">f4"), a.view(np.recarray)
    frozen.flags.writeable = False
    np.testing.assert_array_equal(matmul(a, b), matmul(a, b, out=c))
    assert matmul(frozen, b, out=c) is c
    x, s = np.ones(8, np.float32), np.array(2, np.float32)
    assert scale(x, s) is None
    odd = np.frombuffer(bytearray(64), np.float32, 12, 1).reshape(3, 4)
    for copied in (odd, np.asfortranarray(a), swapped, swapped[::-1]):
        np.testing.assert_array_equal(matmul(copied, b), matmul(copied.astype(np.float32, "C"), b))
        with pytest.raises(AttributeError, match="bind"):
            matmul(copied, b, out=c)
    for unusual in (subclass, a.astype(np.int32), a.astype(">i4"), swapped[:2], a[:2], a.tolist(), None):
        with pytest.raises((AttributeError, TargetError), match=r"bind|is a (recarray|list|NoneType)"):
            matmul(unusual, b)
    frozen = c.copy()
    frozen.flags.writeable = False
    overlapping = b[:3]
    for out in (c[::-1], overlapping, frozen, (c, c), (), [None]):
        with pytest.raises(AttributeError, match="bind"):
            matmul(a, b, out=out)
    for given in ((x, x[:1].reshape(())), (x[::-1], s), (x, np.float32(2))):
        with pytest.raises(AttributeError, match="bind"):
            scale(*given)


@pytest.mark.parametrize("most_pairs", [32, 0])
def test_the_usual_call_as_a_function(most_pairs: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """What is passed at which position: constants, a workspace, threads; what is aligned and apart."""
    monkeypatch.setattr(calls, "MAX_PAIRS", most_pairs)
    passed: list[Any] = []
    memory = arena(256)
    x, y, z, off = (memory[start : start + 16].view(np.float32) for start in (0, 64, 128, 208))
    arguments = [Argument(name, (4,), np.dtype(np.float32), alignment=64) for name in "xyz"]
    function = NativeFunction(lambda *given: passed.extend(given), arguments, 2, {1: 77, 4: 99}, True)
    call = compile_fast_call("kernel", function, NUMPY)
    assert call((x,), (y, z), 5, 2) == (y, z)
    assert passed == [x.ctypes.data, 77, y.ctypes.data, z.ctypes.data, 99, 5, 2]
    new = call((x,), None, 0, 1)
    assert isinstance(new, tuple) and [array.ctypes.data % 64 for array in new] == [0, 0]
    for out in ((y, y), (x, z), (y, memory[136:152].view(np.float32)), (y, off), [y, z], (y,), y):
        assert call((x,), out, 0, 1) is DECLINED
    assert call((off,), (y, z), 0, 1) is DECLINED
    passed.clear()
    call((off,), None, 0, 1)
    assert passed[0] != off.ctypes.data and passed[0] % 64 == 0


def test_addresses_of_any_array() -> None:
    frozen = np.arange(6.0)
    frozen.flags.writeable = False
    for array in (np.arange(6.0), frozen, np.empty(0), np.arange(6.0)[::-1], np.array(3, ">f4"), np.array(2.0)):
        assert address(array) == array.ctypes.data


@pytest.mark.parametrize("offset", [HEADER + 8, HEADER - 8, 1 << 20])
def test_an_address_in_another_place_of_the_object_is_not_read(offset: int) -> None:
    assert address_reader() is not numpy_address
    assert address_reader(offset) is numpy_address


def test_stretches_of_memory_apart() -> None:
    rng = np.random.default_rng(0)
    seen = set()
    for _ in range(4000):
        count = int(rng.integers(1, 6))
        starts, sizes = rng.integers(0, 12, count).tolist(), rng.integers(0, 5, count).tolist()
        written = (rng.random(count) < 0.5).tolist()
        places = [set(range(start, start + size)) for start, size in zip(starts, sizes, strict=True)]
        overlap = any(places[i] & places[j] and (written[i] or written[j]) for i in range(count) for j in range(i))
        assert not (overlap and are_disjoint(starts, sizes, written))
        assert overlap or 0 in sizes or are_disjoint(starts, sizes, written)
        seen.add(overlap)
    assert seen == {True, False}


def test_wrong_outs(matmul: Kernel) -> None:
    a, b = arrays()
    good = np.empty((3, 5), np.float32)
    frozen = good.copy()
    frozen.flags.writeable = False
    odd = np.frombuffer(bytearray(64), np.float32, 15, 1).reshape(3, 5)
    for out, words in (
        (np.empty((5, 3), np.float32), ("'C' has shape (5, 3), expected (3, 5)",)),
        (np.empty((3, 5)), ("'C' has dtype float64",)),
        (np.empty((5, 3), np.float32).T, ("'C'", "not contiguous")),
        (good.astype(">f4"), ("'C'", "byte order")),
        (frozen, ("'C'", "read-only")),
        (odd, ("'C'", "not aligned")),
        ((good, good), ("gives 1 array, out= has 2",)),
        ((), ("out= has 0",)),
        (good.tolist(), ("out= has 3",)),
        (np.float32(0), ("out= holds a float32",)),
    ):
        said(lambda out=out: matmul(a, b, out=out), *words)
    assert matmul(a, b, out=np.frombuffer(bytearray(64), np.float32, 15, 4).reshape(3, 5)).shape == (3, 5)


def test_outs_that_overlap(matmul: Kernel, staged: Kernel) -> None:
    pool = np.zeros(64, np.float32)
    a, b = pool[:12].reshape(3, 4), pool[12:32].reshape(4, 5)
    said(lambda: matmul(a, b, out=pool[31:46].reshape(3, 5)), "'C' is written, but shares memory with 'B'")
    assert matmul(a, b, out=pool[32:47].reshape(3, 5)).shape == (3, 5)
    wide = pool[:12].reshape(4, 3).T
    said(lambda: matmul(wide, b, out=pool[:15].reshape(3, 5)), "'C' is written, but shares memory with 'A'")
    x, y = np.zeros((2, 4096))
    said(lambda: staged(x, out=(y, y)), "'y' is written, but shares memory with 'z'")
    assert matmul(a, np.lib.stride_tricks.as_strided(pool, (4, 5), (0, 4))).shape == (3, 5)


def test_inputs_may_overlap(matmul: Kernel) -> None:
    pool = np.arange(64, dtype=np.float32)
    a, b, c = pool[:12].reshape(3, 4), pool[4:24].reshape(4, 5), pool[24:39].reshape(3, 5)
    np.testing.assert_array_equal(matmul(a, b, out=c), matmul(a.copy(), b.copy()))


def test_several_outputs(staged: Kernel) -> None:
    x = np.random.default_rng(0).random(4096)
    y, z = staged(x)
    np.testing.assert_array_equal(y, x + x)
    np.testing.assert_array_equal(z, x * x)
    outs = (np.empty(4096), np.empty(4096))
    given = staged(x, out=outs)
    assert given[0] is outs[0] and given[1] is outs[1]


def test_in_place(scale: Kernel) -> None:
    x, s = np.arange(8, dtype=np.float32), np.array(3, np.float32)
    assert scale(x, s) is None
    np.testing.assert_array_equal(x, 3 * np.arange(8))
    said(lambda: scale(x[::-1], s), "'x' is written, but is not contiguous")
    said(lambda: scale(x, np.float32(3)), "'s' is written, but of type float32")
    said(lambda: scale(x, x[:1].reshape(())), "shares memory")
    said(lambda: scale(x, s, out=x), "gives 0 arrays, out= has 1")


def test_scalars_of_rank_zero() -> None:
    text = """
    func.func @twice(%s: memref<i64>, %r: memref<i64>) attributes {outputs = 1 : i64} {
      %a = memref.load %s[] : memref<i64>
      %b = arith.addi %a, %a : i64
      memref.store %b, %r[] : memref<i64>
      func.return
    }"""
    kernel = build(text)
    for given in (np.int64(21), np.array(21)):
        output = kernel(given)
        assert output.shape == () and output == 42
    said(lambda: kernel(21), "argument 's' is a int")


def test_threads_have_workspaces_of_their_own(staged: Kernel) -> None:
    wrong: list[int] = []

    def work(number: int) -> None:
        x = np.full(4096, float(number))
        for _ in range(40):
            y, z = staged(x)
            if (y != 2 * number).any() or (z != number**2).any():
                wrong.append(number)

    at_once(work)
    assert wrong == []


def test_the_workspace_is_allocated_once_and_aligned(staged: Kernel) -> None:
    staged(np.zeros(4096))
    first = staged._scratch(1)
    staged(np.zeros(4096))
    assert first is not None and staged._scratch(1) is first and first.ctypes.data % 64 == 0


def test_timing(matmul: Kernel, scale: Kernel) -> None:
    timing = matmul.time(*arrays(), repeats=5, min_seconds=1e-4)
    assert timing.repeats == 5 and 0 < timing.minimum <= timing.median <= timing.maximum
    with pytest.raises(dataclasses.FrozenInstanceError):
        timing.repeats = 1  # type: ignore[misc]
    assert scale.time(np.zeros(8, np.float32), np.array(1, np.float32)).repeats == 9


def test_a_disturbed_repeat_is_made_again(matmul: Kernel, monkeypatch: pytest.MonkeyPatch) -> None:
    """Of three calls the second is disturbed once, the third each time."""
    taken = iter([Sample(9e-3), Sample(1e-3), Sample(4e-3, 2e-3), Sample(2e-3), *[Sample(6e-3, 3e-3)] * 4])
    monkeypatch.setattr("compiler.targets.cpu.kernel.time_calls", lambda *given: next(taken))
    timing = matmul.time(*arrays(), repeats=3)
    assert (timing.minimum, timing.median, timing.maximum) == (1e-3, 2e-3, 6e-3)
    assert timing.disturbance == Disturbance(pytest.approx(31e-3), pytest.approx(14e-3), 4, 1)
    assert timing.disturbance.matters


def test_timing_refuses(matmul: Kernel) -> None:
    said(lambda: matmul.time(*arrays(), repeats=0), "repeats")
    said(lambda: matmul.time(arrays()[0]), "takes 2 arrays, got 1")


def test_names_and_functions() -> None:
    both = MATMUL + IN_PLACE.replace("%x", "%0").replace("%s", "%1")
    kernel = build(both, name="scale")
    assert [argument.name for argument in kernel.arguments] == ["arg0", "arg1"]
    with pytest.raises(InputError, match="name the one"):
        build(both)
    with pytest.raises(InputError, match="no function"):
        build(both, name="other")


def test_types_without_a_numpy_form(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "ml_dtypes", None)
    with pytest.raises(InputError, match=r"arrays of bf16 need the package ml_dtypes: install strata-compiler\[bf16\]"):
        build("func.func @f(%a: memref<4xbf16>) { func.return }")
    monkeypatch.undo()
    said(lambda: build("func.func @f(%a: bf16) { func.return }"), "'a' is of type bf16")
    text = "func.func @f(%a: f32) attributes {outputs = 1 : i64} { func.return }"
    said(lambda: build(text), "the output 'a' is a scalar")
    said(lambda: build("func.func @f(%a: f16) { func.return }"), "'a' is of type f16")


def test_inputs_are_not_written() -> None:
    text = IN_PLACE.replace("%s: memref<f32>)", "%s: memref<f32>) attributes {outputs = 1 : i64}")
    said(lambda: build(text), "scale: 'x' is written, but is not among the last 1 arguments")


def test_the_host() -> None:
    machine = host()
    assert machine is host() and machine.cores >= 1 and machine.vector_bits in (128, 256, 512)
    assert machine.registers in (16, 32) and machine.l1_bytes < machine.l2_bytes <= machine.l3_bytes
    assert _cpu("rocketlake", {"amx-tile"}) == "sapphirerapids"
    assert _cpu("rocketlake", {"avx512f", "avx512fp16"}) == "sapphirerapids"
    assert _cpu("rocketlake", {"avx512f"}) == "rocketlake"
    assert _cpu("graniterapids", {"amx-tile"}) == "graniterapids"
