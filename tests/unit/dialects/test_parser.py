"""Hexadecimal floats in dense attributes are bits, as upstream has it."""

from __future__ import annotations

import math

import numpy as np
import pytest
from xdsl.dialects import arith
from xdsl.dialects.builtin import DenseIntOrFPElementsAttr
from xdsl.utils.exceptions import ParseError

import compiler
from compiler import te
from compiler.pipeline.source import parse
from compiler.schedule import Schedule


def values(literal: str, type: str) -> list[float]:
    """The elements of a dense constant as it is read."""
    module = parse(f"func.func @f() {{\n  %a = arith.constant dense<{literal}> : {type}\n  func.return\n}}")
    (op,) = [op for op in module.walk() if isinstance(op, arith.ConstantOp)]
    assert isinstance(op.value, DenseIntOrFPElementsAttr)
    return list(op.value.get_values())


@pytest.mark.parametrize(
    ("literal", "type", "want"),
    [
        ("0x7F800000", "vector<2xf32>", [math.inf] * 2),
        ("[0xff800000, 1.0]", "vector<2xf32>", [-math.inf, 1.0]),
        ("0x4B000000", "vector<1xf32>", [8388608.0]),
        ("0xFF80", "vector<1xbf16>", [-math.inf]),
        ("0x3C00", "vector<1xf16>", [1.0]),
        ("0x3FF0000000000000", "vector<1xf64>", [1.0]),
        ("0x10", "vector<1xi32>", [16]),
    ],
)
def test_bits(literal: str, type: str, want: list[float]) -> None:
    assert values(literal, type) == want


def test_too_many_bits() -> None:
    with pytest.raises(ParseError, match="0x1FFFFFFFF has more bits than f32"):
        values("0x1FFFFFFFF", "vector<1xf32>")


def test_the_low_level_of_a_vectorized_max_is_read_as_it_was() -> None:
    x, k = te.placeholder((8, 5), name="X"), te.reduce_axis(5, "k")
    function = te.function("most", [x], [te.compute((8,), lambda i: te.max(x[i, k], axis=k), name="M")])
    s = Schedule(compiler.lower(function))
    s.vectorize(s.get_loops(s.get_block("M"))[0])
    kernel, content = compiler.build(s), np.full((8, 5), -1, np.float32)
    again = compiler.build(kernel.text("low"))
    np.testing.assert_array_equal(again(content), kernel(content))
