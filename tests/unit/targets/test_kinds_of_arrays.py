"""Calls: arrays of other packages and of mixed kinds, outputs of the caller's kind, names, Python threads."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from importlib.util import find_spec
from types import SimpleNamespace
from typing import Any

import ml_dtypes
import numpy as np
import pytest

import compiler
from compiler import te
from compiler.targets.arguments import Argument
from compiler.targets.cpu import Kernel
from compiler.targets.cpu.binding import Binder
from tests import pretended_torch, programs
from tests.sample import some
from tests.unit.targets.calls import at_once, said

A = np.arange(12, dtype=np.float32).reshape(3, 4)
B = np.arange(20, dtype=np.float32).reshape(4, 5) - 7
C = A @ B


@pytest.fixture(scope="module")
def matmul() -> Kernel:
    return compiler.build(product("f32"))


def product(dtype: str) -> te.Function:
    return programs.matmul(3, 5, 4, dtype, "matmul")


@pytest.fixture(params=["pretended", "installed"])
def torch(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> Any:
    """torch, pretended or installed."""
    if request.param == "pretended":
        monkeypatch.setitem(sys.modules, "torch", pretended_torch.MODULE)  # type: ignore[arg-type]
        return pretended_torch.MODULE
    if find_spec("torch") is None:
        pytest.skip("torch is not installed")
    import torch

    return torch


class Exported:
    """An array that says no more of itself than DLPack asks."""

    def __init__(self, array: Any, device: int = 1) -> None:
        self.array, self.device = array, device

    def __dlpack__(self, **options: Any) -> object:
        if self.device != 1:
            raise BufferError("this memory is exported to its own device only")
        return self.array.__dlpack__(max_version=options.get("max_version"))

    def __dlpack_device__(self) -> tuple[int, int]:
        return self.device, 0


class Old(Exported):
    """One of a package from before DLPack 1.0, which does not say whether it may be written to."""

    def __dlpack__(self, stream: object = None) -> object:
        return self.array.__dlpack__()


class Standard(Exported):
    """One of the array API standard."""

    def __array_namespace__(self) -> object:
        return SimpleNamespace(from_dlpack=Standard)


def test_arguments_by_name(matmul: Kernel) -> None:
    for output in (matmul(A=A, B=B), matmul(B=B, A=A), matmul(A, B=B)):
        np.testing.assert_array_equal(output, C)
    out = np.empty_like(C)
    assert matmul(B=B, A=A, out=out, threads=1) is out
    matmul.bound(B=B, A=A, out=np.empty_like(C))()
    assert matmul.time(A, B, repeats=1).repeats == 1
    said(lambda: matmul(A, b=B), "matmul: there is no argument 'b'; did you mean 'B'?")
    said(lambda: matmul(A, other=B), "there is no argument 'other' (there are A, B)")
    said(lambda: matmul(A, A=A), "argument 'A' is given by position and by name")
    said(lambda: matmul(A, B, B=B), "argument 'B' is given by position and by name")
    said(lambda: matmul(B=B), "argument 'A' is missing")
    said(lambda: matmul(A=A), "argument 'B' is missing")
    said(lambda: matmul(A, B, C=C), "'C' is a result: give the array for it in out=")
    said(lambda: matmul(A, B, C, B=B), "takes 2 arrays, got 4")
    said(lambda: matmul.bound(A, b=B), "did you mean 'B'?")
    said(lambda: matmul(), "takes 2 arrays, got 0")
    said(lambda: matmul(A, B, C), "takes 2 arrays, got 3")


def test_arguments_with_the_names_of_options() -> None:
    x, y = (te.placeholder((4,), name=name) for name in ("out", "threads"))
    kernel = compiler.build(te.function("f", [x, y], [te.compute((4,), lambda i: x[i] - y[i], name="self")]))
    a, b = np.arange(4, dtype=np.float32), np.ones(4, np.float32)
    np.testing.assert_array_equal(kernel(a, b), a - b)
    said(lambda: kernel(a, out=b), "takes 2 arrays, got 1")


def test_a_name_of_two_arguments() -> None:
    x = Argument("x", (), np.dtype(np.int8))
    said(lambda: Binder("f", [x, x], 0, {}).in_order((A,), {"x": B}), "f: 2 arguments have the name 'x': give them in")
    y = Argument("y", (), np.dtype(np.int8))
    assert Binder("f", [x, x, y], 0, {}).in_order((A, B), {"y": C}) == [A, B, C]


def test_a_constant_has_no_name_in_calls() -> None:
    kernel = compiler.build(product("f32"), constants={"B": B})
    np.testing.assert_array_equal(kernel(A=A), C)
    said(lambda: kernel(A=A, B=B), "there is no argument 'B'")


def test_tensors(matmul: Kernel, torch: Any) -> None:
    a, b = torch.from_numpy(A), torch.from_numpy(B)
    out = torch.from_numpy(np.empty_like(C))
    for given in (a, torch.from_numpy(np.asfortranarray(A)), torch.from_numpy(A.repeat(2, 1)[:, ::2])):
        output = matmul(given, b)
        assert type(output) is torch.Tensor
        np.testing.assert_array_equal(output.numpy(), C)
        assert matmul(given, b, out=out) is out and matmul(A=given, B=b, out=(out,)) is out
        np.testing.assert_array_equal(out.numpy(), C)
    matmul.bound(a, b, out=out)()
    constant = compiler.build(product("f32"), constants={"B": b})
    np.testing.assert_array_equal(constant(a).numpy(), C)


def test_mixed_kinds_give_the_kind_of_the_first(matmul: Kernel, torch: Any) -> None:
    a, b, out = torch.from_numpy(A), torch.from_numpy(B), np.empty_like(C)
    assert type(matmul(a, B)) is torch.Tensor and type(matmul(A, b)) is np.ndarray
    assert type(matmul(Exported(A), b)) is np.ndarray and type(matmul(B=B, A=a)) is torch.Tensor
    assert type(matmul(Standard(A), B)) is Standard
    assert matmul(a, b, out=out) is out
    np.testing.assert_array_equal(out, C)
    np.testing.assert_array_equal(matmul(a, Exported(B)).numpy(), C)
    said(lambda: matmul(a, b, out=a), "'C' has shape (3, 4)")


def test_bf16_tensors(torch: Any) -> None:
    kernel = compiler.build(product("bf16"))
    a, b = (torch.from_numpy(x.astype(ml_dtypes.bfloat16).view(np.int16)).view(torch.bfloat16) for x in (A, B))
    output = kernel(a, b)
    assert output.dtype == torch.bfloat16
    want = kernel(A.astype(ml_dtypes.bfloat16), B.astype(ml_dtypes.bfloat16)).view(np.int16)
    for actual in (output, kernel(a, b, out=output), kernel(a, B.astype(ml_dtypes.bfloat16))):
        np.testing.assert_array_equal(actual.view(torch.int16).numpy(), want)


def test_torch_is_told_what_is_written(matmul: Kernel, torch: Any) -> None:
    def version(tensor: Any) -> int:
        return int(getattr(tensor, "_version", getattr(tensor, "version", -1)))

    a, b, out = (torch.from_numpy(x.copy()) for x in (A, B, C))
    before = version(out)
    for count, given in enumerate(((a, b), (A, b), (Exported(A), B)), 1):
        matmul(*given, out=out)
        assert version(out) == before + count
    matmul.bound(A, B, out=out)
    assert version(out) == before + 4 and version(a) == version(b) == version(torch.from_numpy(A))


def test_tensors_that_are_refused(matmul: Kernel, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "torch", pretended_torch.MODULE)  # type: ignore[arg-type]

    def tensor(**pretended: object) -> pretended_torch.Tensor:
        made = pretended_torch.Tensor(A.copy())
        for name, value in pretended.items():
            setattr(made, name, value)
        return made

    b, out = pretended_torch.Tensor(B), pretended_torch.Tensor(C.copy())
    for given, words in (
        (tensor(requires_grad=True), "argument 'A' requires a gradient, which a kernel does not compute: give it with"),
        (tensor(is_cpu=False, device="cuda:0"), "argument 'A' is on the device cuda:0, expected the CPU"),
        (tensor(layout="sparse_coo"), "argument 'A' has no elements in memory that numpy sees: can't convert sparse"),
        (tensor(is_neg=lambda: True), "argument 'A' has no elements in memory that numpy sees: Can't call numpy()"),
        (pretended_torch.Other(A), "argument 'A' is a Other: only its elements would be seen, give a torch.Tensor"),
        (pretended_torch.Tensor(A.astype(np.float64)), "argument 'A' has dtype float64, expected float32"),
        (pretended_torch.Tensor(A.T), "argument 'A' has shape (4, 3), expected (3, 4)"),
    ):
        for run in (lambda x=given: matmul(x, b), lambda x=given: matmul(x, B), lambda x=given: matmul(x, b, out=out)):
            said(run, f"matmul: {words}")
    gradient = pretended_torch.Tensor(C.copy())
    gradient.requires_grad = True
    said(lambda: matmul(tensor(), b, out=gradient), "argument 'C' requires a gradient")
    said(lambda: matmul(tensor(), b, out=pretended_torch.Tensor(C.T.copy().T)), "'C' is written, but is not contiguous")
    memory = np.zeros(64, np.float32)
    a, c = (pretended_torch.Tensor(memory[start:][: x.size].reshape(x.shape)) for start, x in ((0, A), (8, C)))
    said(lambda: matmul(a, b, out=c), "'C' is written, but shares memory with 'A'")
    assert (out.version, c.version, gradient.version) == (0, 0, 0)
    np.testing.assert_array_equal(matmul(pretended_torch.Parameter(A), b).numpy(), C)


def test_exported_arrays(matmul: Kernel) -> None:
    out = np.empty_like(C)
    for a in (A, np.asfortranarray(A), A.repeat(2, 1)[:, ::2], np.ascontiguousarray(A[::-1])[::-1]):
        for b in (B, Exported(B), Old(B)):
            assert type(matmul(Exported(a), b)) is np.ndarray
            np.testing.assert_array_equal(matmul(Exported(a), b), C)
            given = Exported(out)
            out[:] = np.nan
            assert matmul(Old(a), b, out=given) is given
            np.testing.assert_array_equal(out, C)
    frozen = C.copy()
    frozen.flags.writeable = False
    said(lambda: matmul(A, B, out=Exported(frozen)), "'C' is written, but is read-only")
    said(lambda: matmul(A, B, out=Old(C.copy())), "'C' is written, but is read-only")
    said(lambda: matmul(Exported(A, 2), B), "matmul: argument 'A' is on a device (CUDA), expected the CPU")
    said(lambda: matmul(A, Exported(B, 99)), "argument 'B' is on a device (DLPack's number 99), expected the CPU")
    said(lambda: matmul(Exported(A.astype(">f4")), B), "argument 'A' cannot be taken through __dlpack__: DLPack only")
    said(lambda: matmul(Exported(A.tolist()), B), "argument 'A' cannot be taken through __dlpack__")
    said(lambda: matmul(Exported(A.astype(np.int32)), B), "argument 'A' has dtype int32, expected float32")
    said(lambda: matmul(Exported(A), B, out=Exported(A)), "'C' has shape (3, 4), expected (3, 5)")
    memory = np.zeros(64, np.float32)
    said(
        lambda: matmul(Exported(memory[:12].reshape(3, 4)), B, out=memory[8:23].reshape(3, 5)), "shares memory with 'A'"
    )


def test_an_array_is_not_copied(matmul: Kernel, torch: Any) -> None:
    """What is bound is read where it lies."""
    for wrap in (Exported, torch.from_numpy, lambda array: array):
        a, out = A.copy(), np.empty_like(C)
        call = matmul.bound(wrap(a), B, out=wrap(out))
        a[:] *= 2
        call()
        np.testing.assert_array_equal(out, 2 * C)


def layouts(rng: np.random.Generator, array: Any) -> Any:
    """The elements of an array, anywhere and in any order in memory."""
    match rng.integers(7):
        case 0:
            return np.asfortranarray(array)
        case 1:
            return array.repeat(3, 1)[:, ::3]
        case 2:
            return np.ascontiguousarray(array[::-1, ::-1])[::-1, ::-1]
        case 3:
            return array.astype(">f4")
        case 4:
            frozen = array.copy()
            frozen.flags.writeable = False
            return frozen
        case 5:
            raw = bytearray(array.nbytes + 8)
            odd = np.frombuffer(raw, np.float32, array.size, int(rng.integers(1, 8))).reshape(array.shape)
            odd[...] = array
            return odd
    return array.copy()


def kinds(rng: np.random.Generator, array: Any) -> Any:
    """An array of any kind that can have this layout."""
    wraps: list[Any] = [lambda x: x, Exported, Standard]
    if not array.flags.writeable or not array.dtype.isnative:
        return array
    if min(array.strides) >= 0 and array.flags.aligned:
        wraps.append(pretended_torch.Tensor)
    return wraps[rng.integers(len(wraps))](array)


@pytest.mark.parametrize("seed", some(range(20)))
def test_any_arrays_give_the_same(matmul: Kernel, seed: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "torch", pretended_torch.MODULE)  # type: ignore[arg-type]
    rng = np.random.default_rng(seed)
    returned = {Exported: np.ndarray}
    for _ in range(30):
        a, b = (kinds(rng, layouts(rng, x)) for x in (A, B))
        own = np.full_like(C, np.nan)
        out = kinds(rng, own) if rng.random() < 0.5 else None
        given: tuple[tuple[Any, ...], dict[str, Any]] = ((a, b), {}) if rng.random() < 0.5 else ((a,), {"B": b})
        output = matmul(*given[0], **given[1], out=out)
        if out is None:
            assert type(output) is returned.get(type(a), type(a))
        else:
            assert output is out
        elements = getattr(output, "array", output)
        np.testing.assert_array_equal(np.from_dlpack(elements) if out is None else own, C)


def test_python_threads_call_one_kernel(matmul: Kernel) -> None:
    wrong: list[object] = []

    def work(number: int) -> None:
        scaled, out = A * number, np.empty_like(C)
        forms: Iterator[Any] = iter([scaled, np.asfortranarray(scaled), Exported(scaled), scaled.astype(">f4")] * 100)
        for given in forms:
            for output in (matmul(given, B), matmul(given, B, out=out), matmul(B=B, A=given)):
                if not np.array_equal(output, number * C):
                    wrong.append(number)

    at_once(work, range(1, 5))
    assert wrong == []
