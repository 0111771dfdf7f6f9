# ruff: noqa: E402
"""from_jax: functions of jax.numpy, jax.lax and jax.nn, models, arguments and results, and what is refused."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

jax = pytest.importorskip("jax")
pytestmark = pytest.mark.doors

import jax.numpy as jnp
from jax import lax, nn
from jax.export import export, symbolic_shape

import strata
from compiler.frontends.jax.lines import source_line
from compiler.interpret.te import evaluate
from compiler.support.errors import InputError
from tests.jax_cases import REFUSED, arrays, cases
from tests.sample import some

CASES = cases()
KEY = np.random.default_rng(7)


def weights(*shape: int) -> Any:
    return (KEY.standard_normal(shape) / np.sqrt(shape[0])).astype(np.float32)


@pytest.mark.parametrize("name", [*some(CASES, 6), *(name for name in REFUSED if name not in some(CASES, 6))])
def test_functions(name: str) -> None:
    function, kinds = CASES[name]
    inputs = arrays(kinds)
    if name in REFUSED:
        with pytest.raises(InputError, match=REFUSED[name]):
            strata.from_jax(function, inputs)
        return
    imported = strata.from_jax(function, inputs)
    values = evaluate(imported.function.module, [*inputs, *imported.constants.values()])
    expected = jax.tree_util.tree_leaves(jax.jit(function)(*inputs))
    tolerance = 2e-2 if name == "bfloat16" else 2e-5
    for value, array in zip(values, expected, strict=True):
        assert value.dtype == array.dtype
        np.testing.assert_allclose(value, np.asarray(array), rtol=tolerance, atol=tolerance)


def agrees(function: Any, *inputs: Any, tolerance: float = 2e-4) -> strata.frontends.Imported:
    """Whether a kernel of a function has JAX's results."""
    imported = strata.from_jax(function, inputs)
    kernel = strata.build(imported, threads=1)
    returned = kernel(*jax.tree_util.tree_leaves(inputs))
    values = returned if isinstance(returned, tuple | list) else [returned]
    expected = jax.tree_util.tree_leaves(function(*inputs))
    for value, array in zip(values, expected, strict=True):
        np.testing.assert_allclose(np.asarray(value), np.asarray(array), rtol=tolerance, atol=tolerance)
    return imported


def test_mlp() -> None:
    params = {"w": [weights(16, 32), weights(32, 4)], "b": [weights(32), weights(4)]}

    def mlp(params: Any, x: Any) -> Any:
        hidden = nn.relu(x @ params["w"][0] + params["b"][0])
        return nn.softmax(hidden @ params["w"][1] + params["b"][1])

    imported = agrees(mlp, params, weights(5, 16))
    names = [tensor.name for tensor in imported.function.inputs]
    assert names == ["params_b_0", "params_b_1", "params_w_0", "params_w_1", "x"]


def test_convolutional_network() -> None:
    kernels = [weights(3, 3, 3, 8), weights(3, 3, 8, 8), weights(3, 3, 1, 8)]
    scale, shift, mean = (jnp.asarray(weights(8)) for _ in range(3))
    variance = jnp.abs(jnp.asarray(weights(8))) + 0.5
    dense = weights(8, 4)

    def conv(x: Any, w: Any, stride: int, groups: int = 1) -> Any:
        numbers = ("NHWC", "HWIO", "NHWC")
        return lax.conv_general_dilated(
            x, w, (stride, stride), "SAME", dimension_numbers=numbers, feature_group_count=groups
        )

    def network(x: Any) -> Any:
        x = nn.relu((conv(x, kernels[0], 2) - mean) * lax.rsqrt(variance + 1e-5) * scale + shift)
        x = lax.reduce_window(x, -jnp.inf, lax.max, (1, 3, 3, 1), (1, 2, 2, 1), "SAME")
        x = x + nn.relu(conv(x, kernels[1], 1))
        x = conv(x, kernels[2], 1, groups=8)
        x = lax.reduce_window(x, 0.0, lax.add, (1, 2, 2, 1), (1, 2, 2, 1), "VALID") / 4
        return nn.log_softmax(x.mean((1, 2)) @ dense)

    agrees(network, weights(2, 17, 16, 3))


def test_transformer_block() -> None:
    width, heads, words = 32, 4, 6
    table, positions = weights(50, width), weights(words, width)
    qkv, out = weights(width, 3 * width), weights(width, width)
    up, down = weights(width, 4 * width), weights(4 * width, width)

    def norm(x: Any) -> Any:
        return (x - x.mean(-1, keepdims=True)) / jnp.sqrt(x.var(-1, keepdims=True) + 1e-5)

    def attention(x: Any) -> Any:
        q, k, v = jnp.split((x @ qkv).reshape(*x.shape[:2], heads, -1), 3, axis=-1)
        scores = jnp.einsum("bqhd,bkhd->bhqk", q, k) / np.sqrt(width // heads)
        mask = jnp.tril(jnp.ones((words, words), bool))
        probabilities = nn.softmax(jnp.where(mask, scores, -1e9))
        return jnp.einsum("bhqk,bkhd->bqhd", probabilities, v).reshape(x.shape) @ out

    def block(tokens: Any) -> Any:
        x = jnp.asarray(table)[tokens] + positions
        x = x + attention(norm(x))
        return x + nn.gelu(norm(x) @ up, approximate=False) @ down

    imported = agrees(block, np.arange(12, dtype=np.int32).reshape(2, 6))
    assert sorted(array.shape for array in imported.constants.values()) == [
        (32, 32), (32, 96), (32, 128), (50, 32), (128, 32),
    ]  # fmt: skip


def test_large_arrays_are_weights_once() -> None:
    w = jnp.asarray(weights(64, 64))
    narrow = jnp.asarray(w, jnp.bfloat16)

    def f(x: Any) -> Any:
        return jax.jit(lambda y: y @ w + y @ narrow.astype(jnp.float32))(x) @ w

    imported = agrees(f, weights(2, 64), tolerance=2e-3)
    assert {array.dtype.name for array in imported.constants.values()} == {"float32", "bfloat16"}
    assert len(imported.constants) == 2


def test_shapes_without_arrays() -> None:
    imported = strata.from_jax(lambda x: {"b": x + 1, "a": x * 2}, [jax.ShapeDtypeStruct((3,), jnp.float32)])
    first, second = strata.build(imported, threads=1)(np.arange(3, dtype=np.float32))
    np.testing.assert_array_equal(first, [0, 2, 4])
    np.testing.assert_array_equal(second, [1, 2, 3])


def test_arrays_of_jax_in_and_out() -> None:
    x = jnp.arange(4, dtype=jnp.float32)
    sines = strata.build(strata.from_jax(jnp.sin, x), threads=1)(x)
    assert isinstance(sines, jax.Array)
    np.testing.assert_allclose(sines, jnp.sin(x), rtol=1e-6)


def test_exported_text_is_read() -> None:
    def f(x: Any, i: Any) -> Any:
        return jnp.argmax(nn.gelu(x, approximate=False), axis=1) + jnp.sum(jnp.take(x, i, axis=0), axis=1)[:, None]

    x, i = weights(4, 5), np.array([3, 1, 9, -1], np.int32)
    text = export(jax.jit(f), platforms=["cpu"])(x, i).mlir_module()
    (value,) = evaluate(strata.passes.parse(text), [x, i])
    np.testing.assert_allclose(value, f(x, i), rtol=1e-5, atol=1e-5)


X = np.ones((4, 4), np.float32)
WRONG: dict[str, tuple[Any, Any, str]] = {
    "no function": ("model", [X], "takes a function of JAX, not a str"),
    "no arguments": (jnp.sin, None, "are a list of arrays, not a NoneType"),
    "too few arguments": (jnp.add, [X], "JAX refuses add: .*missing"),
    "an argument that is no array": (jnp.sin, ["text"], "JAX refuses sin: "),
    "an error in the function": (lambda x: x.nope, [X], "JAX refuses f: .*nope"),
    "a branch on values": (lambda x: x if x.sum() > 0 else -x, [X], "JAX refuses f: "),
    "dynamic shapes": (
        jnp.sin, [jax.ShapeDtypeStruct(symbolic_shape("n, 4"), jnp.float32)], "shapes of te are static"),
    "no elements": (jnp.sin, [np.ones((0, 4), np.float32)], "the argument x of .*, which has no elements"),
    "complex numbers": (jnp.sin, [X + 1j], "te has no complex numbers"),
    "other code": (
        lambda x: jnp.linalg.cholesky(x), [X], r"custom_call .*@lapack_spotrf_ffi.* \(at .*test_jax.py:\d+\)"),
    "no results": (lambda x: (), [X], "no results"),
    "a result of an argument": (lambda x: jnp.linalg.qr(x), [X], "custom_call"),
}  # fmt: skip


@pytest.mark.parametrize("name", WRONG)
def test_what_is_refused(name: str) -> None:
    function, inputs, message = WRONG[name]
    with pytest.raises(InputError, match=message) as raised:
        strata.from_jax(function, inputs)
    assert "\n" not in str(raised.value)


def test_the_line_of_a_refused_op_in_a_nested_function() -> None:
    def inner(x: Any) -> Any:
        return lax.while_loop(lambda a: jnp.sum(a) < 9, lambda a: a + 1, x)  # this line

    line = inner.__code__.co_firstlineno + 1
    with pytest.raises(InputError, match=rf"stablehlo.while.*test_jax.py:{line}\)"):
        strata.from_jax(lambda x: jax.jit(inner)(x) * 2, [X])


def test_a_text_without_locations_has_no_line() -> None:
    module = strata.passes.parse(
        "func.func @f(%x: tensor<4xf32>) -> tensor<4xf32> {\n  func.return %x : tensor<4xf32>\n}"
    )
    assert [source_line(op) for op in module.walk()] == [None] * 3
