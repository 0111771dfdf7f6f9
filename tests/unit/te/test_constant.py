"""`te.constant`: elements are kept bit by bit, through text too; what is no constant is refused in words."""

from __future__ import annotations

import shutil
import subprocess
from typing import Any

import numpy as np
import pytest
from ml_dtypes import bfloat16
from xdsl.utils.exceptions import VerifyException

from compiler import te
from compiler.dialects.dense import DenseAttr
from compiler.dialects.dense_elements import Dense
from compiler.dialects.numbers import Array
from compiler.dialects.te import ConstantOp
from compiler.interpret.te import evaluate
from compiler.pipeline.source import parse
from compiler.support.errors import TeError
from compiler.te.constant import Elements
from compiler.types.dtypes import DTYPES


def copied(elements: Elements, dtype: str | None = None) -> te.Function:
    """A function that returns a copy of a constant."""
    c = te.constant(elements, dtype, "w")
    return te.function("f", [], te.compute(c.shape, lambda *i: c[i] if i else c[()], name="x", axes=axes(c.rank)))


def axes(rank: int) -> list[str]:
    return [f"i{n}" for n in range(rank)]


def random(dtype: str, size: int) -> Array:
    """Elements of random bits: NaN of all payloads among them."""
    row, random = DTYPES[dtype], np.random.default_rng(size)
    if row.kind == "b":
        return random.random(size) < 0.5
    return random.integers(0, 256, size * row.bits // 8, dtype=np.uint8).view(row.array)


def bits(array: Array) -> bytes:
    return array.tobytes()


@pytest.mark.parametrize("size", [1, 7, 64, 65])
@pytest.mark.parametrize("dtype", list(DTYPES))
def test_every_bit_goes_through_text(dtype: str, size: int) -> None:
    array = random(dtype, size)
    f = copied(array)
    again = parse(str(f))
    assert str(again) == str(f)
    assert bits(evaluate(f.module, [])[0]) == bits(array)
    assert bits(evaluate(again, [])[0]) == bits(array)


@pytest.mark.parametrize("dtype", [np.float16, np.float32, np.float64, bfloat16])
def test_special_floats(dtype: Any) -> None:
    special = np.array([0.0, -0.0, np.inf, -np.inf, 1 / 3, 65504.0, 6e-8, 5e-324, 3.4e38], np.float64)
    with np.errstate(over="ignore"):
        finite, every = special.astype(dtype), np.append(special, [np.nan, -np.nan]).astype(dtype)
    for array in (finite, every):
        assert bits(evaluate(parse(str(copied(array))), [])[0]) == bits(array)
    signalling = np.array([1], f"u{np.dtype(dtype).itemsize}")
    signalling[0] = np.array(np.inf, dtype).view(signalling.dtype) + 1  # a signalling NaN of payload 1
    for array in (signalling.view(dtype), np.repeat(signalling, 99).view(dtype)):
        assert "dense<" in str(copied(array))
        assert bits(evaluate(parse(str(copied(array))), [])[0]) == bits(array)


@pytest.mark.skipif(shutil.which("mlir-opt-22") is None, reason="needs mlir-opt-22")
def test_upstream_keeps_the_bits() -> None:
    from io import StringIO

    from xdsl.printer import Printer

    from compiler.dialects.dense import constants_in, trailer

    for dtype in DTYPES:
        for size in (5, 65):
            array = random(dtype, size)
            module = parse(f"func.func @f() {{\n {_constant(array)}\n func.return }}{_trailer(array)}")
            stream = StringIO()
            Printer(stream, print_generic_format=True).print_op(module)
            text = stream.getvalue() + trailer(constants_in(module))
            command = ["mlir-opt-22", "--allow-unregistered-dialect"]
            said = subprocess.run(command, input=text, capture_output=True, text=True, check=True).stdout
            (held,) = constants_in(parse(said))
            assert held.data.tobytes() == bits(array), (dtype, size)


def _constant(array: Array) -> str:
    return next(line for line in str(copied(array)).splitlines() if "te.constant" in line)


def _trailer(array: Array) -> str:
    _, mark, text = str(copied(array)).partition("{-#")
    return mark + text


def test_the_array_is_copied() -> None:
    array = np.arange(6, dtype=np.float32).reshape(2, 3)
    f = copied(array)
    array[:] = 0
    np.testing.assert_array_equal(evaluate(f.module, [])[0], np.arange(6).reshape(2, 3))


def test_results_of_the_evaluator_are_the_callers() -> None:
    c = te.constant([1.0, 2.0])
    f = te.function("f", [], c)
    evaluate(f.module, [])[0][:] = 0
    np.testing.assert_array_equal(evaluate(f.module, [])[0], [1.0, 2.0])


@pytest.mark.parametrize(
    ("elements", "dtype", "want"),
    [
        (1.5, None, "f32"),
        ([1, 2], None, "i64"),
        ([[True], [False]], None, "i1"),
        ([1, 2], "f16", "f16"),
        ([0, 1], "i1", "i1"),
        ([255], "u8", "u8"),
        (np.float64(2), None, "f64"),
        (np.arange(3, dtype=">i4"), None, "i32"),
        (np.arange(12, dtype=np.int16).reshape(3, 4).T[::2], None, "i16"),
        (np.array([1.1]), "bf16", "bf16"),
        ([1e300], "f32", "f32"),
    ],
)
def test_dtypes(elements: Elements, dtype: str | None, want: str) -> None:
    c = te.constant(elements, dtype)
    assert c.dtype == want and c.shape == np.shape(elements)  # type: ignore[arg-type]
    with np.errstate(over="ignore"):
        expected = np.asarray(elements).astype(DTYPES[want].array)
    assert bits(evaluate(copied(elements, dtype).module, [])[0]) == bits(expected)


@pytest.mark.parametrize(
    ("elements", "dtype", "said"),
    [
        ([256], "u8", "256 is no u8"),
        ([-1], "u8", "-1 is no u8"),
        ([3, -129, 4], "i8", "-129 is no i8"),
        ([2], "i1", "2 is no i1"),
        ([1.5], "i32", "a constant of i32 is made of integers, not of float64"),
        (np.array([np.nan]), "i32", "made of integers"),
        ([1], "i7", "unknown dtype 'i7'"),
        (np.array([1j]), None, "a constant has no dtype complex128"),
        (np.array(["a"]), None, "a constant has no dtype <U1"),
        (np.array([None]), None, "a constant has no dtype object"),
        ("text", None, "not a str"),
        ([[1], [2, 3]], None, "nested lists"),
        ([None], None, "lists with something else"),
        (np.ma.array([1.0], mask=[True]), None, "not a MaskedArray"),
        (np.zeros((2, 0)), None, "dimension 1 of constant 'c'"),
        ([], None, "dimension 0 of constant 'c'"),
    ],
)
def test_refused(elements: Any, dtype: str | None, said: str) -> None:
    with pytest.raises(TeError, match=said.replace("(", r"\(")):
        te.constant(elements, dtype)


def test_a_constant_is_no_input() -> None:
    c = te.constant([1.0], name="w")
    with pytest.raises(TeError, match="the input 'w' of function 'f' is a constant, not a placeholder"):
        te.function("f", [c], te.compute((1,), lambda i: c[i]))


def test_one_tensor_is_one_op_and_operators_take_it() -> None:
    x, w = te.placeholder((4, 8), name="X"), te.constant(np.ones((8, 3), np.float32), name="W")
    y = te.nn.matmul(x, w)
    z = te.compute((8, 3), lambda i, j: w[i, j] * 2.0, name="Z")
    f = te.function("f", [x], [y, z])
    assert str(f).count("te.constant") == 1
    given = np.random.default_rng(0).random((4, 8), np.float32)
    np.testing.assert_allclose(evaluate(f.module, [given])[0], given @ np.ones((8, 3)), rtol=1e-6)


def test_float64_evaluates_constants_too() -> None:
    f = copied([0.1])
    assert evaluate(f.module, [], np.float64)[0].dtype == np.float64
    assert evaluate(f.module, [], np.float64)[0][0] == np.float32(0.1)


def test_equality_is_of_type_and_bits() -> None:
    def held(array: Array, name: str = "c") -> Dense:
        op = te.function("f", [], te.constant(array, name=name)).module
        return next(o.value.data for o in op.walk() if o.name == "te.constant")  # type: ignore[attr-defined]

    zeros = np.zeros(4, np.float32)
    assert held(zeros) == held(zeros, "d") and hash(held(zeros)) == hash(held(zeros, "d"))
    assert held(zeros) != held(-zeros)
    assert held(zeros) != held(zeros.reshape(2, 2))
    assert held(zeros) != held(zeros.view(np.int32))
    assert DenseAttr(held(zeros)) == DenseAttr(held(zeros)) != DenseAttr(held(-zeros))
    assert hash(DenseAttr(held(zeros))) == hash(DenseAttr(held(zeros)))
    assert len({DenseAttr(held(zeros)), DenseAttr(held(zeros)), DenseAttr(held(-zeros))}) == 2


def test_comparing_one_object_takes_no_digest() -> None:
    c = te.constant(np.arange(100, dtype=np.float32))
    f = te.function("f", [], te.compute((100,), lambda i: c[i], name="x"))
    attribute = next(o for o in f.module.walk() if o.name == "te.constant").properties["value"]
    assert isinstance(attribute, DenseAttr)
    assert attribute == next(o for o in f.module.clone().walk() if o.name == "te.constant").properties["value"]
    assert "digest" not in vars(attribute.data)


def test_wrong_bytes_are_no_constant() -> None:
    held = te.constant([1.0, 2.0]).source.value  # type: ignore[union-attr]
    with pytest.raises(VerifyException, match=r"a constant of type tensor<2xf32> has 8 bytes, not 4"):
        DenseAttr(Dense(held.type, held.data[:4]))


def test_attributes_of_different_elements_are_different() -> None:
    def attribute(*elements: float) -> DenseAttr:
        module = te.function("f", [], te.nn.exp(te.constant(elements, "f32"))).module
        (actual,) = [op.value for op in module.walk() if isinstance(op, ConstantOp)]
        return actual

    assert attribute(1.0, 2.0) != attribute(1.0, 3.0)
    assert attribute(1.0, 2.0) == attribute(1.0, 2.0)
