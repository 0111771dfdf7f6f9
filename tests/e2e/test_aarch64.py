"""Code for AArch64: results under qemu's user mode, and the innermost loops of products."""

from __future__ import annotations

import subprocess
from collections.abc import Callable, Sequence
from pathlib import Path

import numpy as np
import pytest

import strata
from compiler import recipes
from compiler.explain.builds import builds
from compiler.explain.explanation import explain
from compiler.targets.compilers import run_compiler
from compiler.types.machines import MACHINES
from compiler.types.selection import compiling_for
from strata import te
from tests import qemu_calls, under_qemu
from tests.e2e.test_operator_texts import case, dtypes, wrong_results
from tests.operators import OPERATORS
from tests.operators.catalogue import numpy_dtype
from tests.sample import pairs, some
from tests.unit.schedule.test_tensorize import NEON, kind_of, matmul, scheduled
from tools.innermost import PROGRAMS as PRINTED
from tools.innermost import busiest, innermost

N = 24


def _tensor(name: str, *shape: int, dtype: str = "f32") -> te.Tensor:
    return te.placeholder(shape, dtype, name=name)


def _product(dtype: str, m: int = N, n: int = N, k: int = N) -> te.Function:
    a, b = _tensor("A", m, k, dtype=dtype), _tensor("B", k, n, dtype=dtype)
    return te.function("f", [a, b], te.nn.matmul(a, b, name="C"))


def _unary(operator: Callable[[te.Tensor], te.Tensor], *shape: int, dtype: str = "f32") -> te.Function:
    x = _tensor("X", *(shape or (N, 40)), dtype=dtype)
    return te.function("f", [x], operator(x))


def _convolution(**options: int) -> te.Function:
    x, w = _tensor("X", 1, 8, 14, 14), _tensor("W", 16, 8, 3, 3)
    return te.function("f", [x, w], te.nn.relu(te.nn.conv2d(x, w, **options), name="Y"))


def _attention() -> te.Function:
    q, k, v = (_tensor(name, 2, N, 16) for name in "QKV")
    return te.function("f", [q, k, v], te.nn.attention(q, k, v, causal=True))


def _network() -> te.Function:
    x, w = _tensor("X", N, N), _tensor("W", N, N)
    hidden = te.nn.softmax(te.nn.matmul(x, w, name="h"), name="s")
    return te.function("f", [x, w], te.nn.softmax(te.nn.matmul(hidden, w, name="y"), name="z"))


PROGRAMS: dict[str, Callable[[], te.Function]] = {
    "product f32": lambda: _product("f32"),
    "product f64": lambda: _product("f64", 17, 23, 31),
    "product f16": lambda: _product("f16"),
    "product bf16": lambda: _product("bf16"),
    "product i8": lambda: _product("i8"),
    "product i32, ragged": lambda: _product("i32", 13, 7, 5),
    "convolution": lambda: _convolution(padding=1),
    "convolution, stride 2": lambda: _convolution(stride=2),
    "softmax": lambda: _unary(te.nn.softmax),
    "exp": lambda: _unary(te.nn.exp),
    "log": lambda: _unary(lambda x: te.nn.log(te.nn.add(te.nn.abs(x), 1.0))),
    "tanh": lambda: _unary(te.nn.tanh),
    "gelu": lambda: _unary(te.nn.gelu),
    "sum of rows": lambda: _unary(lambda x: te.nn.sum(x, axis=1)),
    "max of columns": lambda: _unary(lambda x: te.nn.max(x, axis=0)),
    "transpose": lambda: _unary(lambda x: te.nn.transpose(x, (1, 0))),
    "max pool": lambda: _unary(lambda x: te.nn.max_pool2d(x, 2, 2), 1, 4, 12, 12),
    "argmax": lambda: _unary(lambda x: te.nn.argmax(x, axis=1)),
    "attention": _attention,
    "network": _network,
}


def _drawn(tensor: te.Tensor, seed: int) -> np.ndarray:
    dtype = strata.build(te.function("g", [tensor], te.nn.add(tensor, tensor)), threads=1).arguments[0].dtype
    numbers = np.random.default_rng(seed).standard_normal(tuple(tensor.shape))
    return (numbers * (4 if dtype.kind == "i" else 1)).astype(dtype)


@pytest.mark.sampled
@pytest.mark.skipif(under_qemu.is_missing(), reason=under_qemu.REASON)
@pytest.mark.parametrize(("name", "machine"), pairs(list(PROGRAMS), ["neoverse-n1", "neoverse-v1"]))
def test_results_under_qemu(name: str, machine: str) -> None:
    """By NEON, and by SVE of 256 bits."""
    function = PROGRAMS[name]()
    arrays = [_drawn(tensor, seed) for seed, tensor in enumerate(function.inputs)]
    expected = strata.build(function, threads=1)(*arrays)
    with compiling_for(MACHINES[machine]), qemu_calls.installed():
        outputs = strata.build(function, threads=1, schedule="auto")(*arrays)
    for actual, wanted in zip(*((r if isinstance(r, tuple) else (r,)) for r in (outputs, expected)), strict=True):
        tolerance = 2e-2 if wanted.dtype.itemsize < 4 and wanted.dtype.kind != "i" else 1e-5
        np.testing.assert_allclose(
            actual.astype(np.float64), wanted.astype(np.float64), rtol=tolerance, atol=tolerance * 10
        )


@pytest.mark.skipif(under_qemu.is_missing(), reason=under_qemu.REASON)
@pytest.mark.parametrize("name", some(NEON[::-1], 3))
def test_dot_products_under_qemu(name: str) -> None:
    """Bytes are exact, bf16 within the bound of sums in f32; the innermost loop has 24 products, none spilled."""
    kind = kind_of(name)
    s = scheduled(
        matmul(kind, 24, 64, 48), lambda s: recipes.quantised_gebp(s, s.get_block("C"), name, 24, 64, 48, 6, 4)
    )
    rng = np.random.default_rng(0)
    a, b = (
        rng.standard_normal(t.shape).astype(numpy_dtype(t.dtype))
        if t.dtype == "bf16"
        else rng.integers(*((0, 256) if t.dtype == "u8" else (-128, 128)), t.shape).astype(numpy_dtype(t.dtype))
        for t in matmul(kind, 24, 64, 48).inputs
    )
    with compiling_for(MACHINES["neoverse-v2"]), qemu_calls.installed():
        tile = busiest(explain(builds(s)).codes).census
        actual = strata.build(s, threads=1)(a, b)
    exact = a.astype(np.float64) @ b.astype(np.float64)
    bound = 65 * 2.0**-23 * (np.abs(a.astype(np.float64)) @ np.abs(b.astype(np.float64))) if kind == "f32" else 0
    assert (np.abs(actual - exact) <= bound).all()
    assert (tile.fma % 24, tile.stack_loads, tile.stack_stores) == (0, 0, 0) and tile.fma > 0


@pytest.mark.skipif(under_qemu.is_missing(), reason=under_qemu.REASON)
def test_constants_are_prepared_under_qemu() -> None:
    function, w = _network(), np.random.default_rng(3).random((N, N), np.float32)
    x = np.random.default_rng(4).random((N, N), np.float32)
    expected = strata.build(function, threads=1, constants={"W": w})(x)
    (actual,) = under_qemu.run(function, [x], [expected], schedule="auto", constants={"W": w})
    np.testing.assert_allclose(actual, expected, rtol=1e-5, atol=1e-6)


@pytest.mark.skipif(under_qemu.is_missing(), reason=under_qemu.REASON)
def test_a_library_runs_sve_only_at_its_width(tmp_path: Path) -> None:
    function = _unary(te.nn.exp)
    strata.export(function, tmp_path / "net.a", cpus=("neoverse-v1", "neoverse-n1"), threads=1, schedule="auto")
    text = '#include <stdio.h>\n#include "net.h"\nint main(void) { puts(net_version()); return 0; }\n'
    (tmp_path / "main.c").write_text(text)
    run_compiler(["-o", "main", "main.c", "net.a", "-lm"], tmp_path, under_qemu.ARCHITECTURE)
    models = {"max,sve-max-vq=2": "neoverse-v1", "max,sve-max-vq=1": "neoverse-n1", "cortex-a72": ""}
    words = [str(under_qemu.QEMU), "-L", str(under_qemu.ROOT), "-cpu"]
    picked = {m: subprocess.check_output([*words, m, tmp_path / "main"], text=True).strip() for m in models}
    assert picked == models


@pytest.mark.parametrize(
    ("name", "fma"), [("product f32 256", 0.6), ("convolution 1x1 64@28", 0.75), ("convolution 3x3 64@28", 0.7)]
)
def test_innermost_loops_leave_the_stack_alone_and_fill_the_units(name: str, fma: float) -> None:
    with compiling_for(MACHINES["neoverse-n1"]):
        codes = innermost(PRINTED[name]())
    assert [(code.label, code.census.stack_loads, code.census.stack_stores) for code in codes] == [
        (code.label, 0, 0) for code in codes
    ]
    tile = busiest(codes)
    assert tile.census.fma / tile.census.instructions > fma and tile.percent == 100


@pytest.mark.skipif(under_qemu.is_missing(), reason=under_qemu.REASON)
@pytest.mark.parametrize("name", some(OPERATORS, 40))
def test_operators_under_qemu(name: str) -> None:
    cases = [case(OPERATORS[name], dtype) for dtype in dtypes(OPERATORS[name])]
    with compiling_for(MACHINES["neoverse-n1"]), qemu_calls.installed():
        kernels = [strata.build(each.function, threads=1, schedule="auto") for each in cases]

        def run(number: int, inputs: Sequence[np.ndarray]) -> Sequence[np.ndarray]:
            outputs = kernels[number](*inputs)
            return outputs if isinstance(outputs, tuple) else (outputs,)

        assert not (wrong := list(wrong_results(cases, run))), "\n".join(wrong)
