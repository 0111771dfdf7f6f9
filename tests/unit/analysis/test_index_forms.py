"""The ranges of index values: by integer types, loop bounds, arithmetic and selections."""

from __future__ import annotations

from math import inf

import pytest

from compiler.analysis.index_forms import Range, Ranges
from compiler.pipeline.source import parse

TEXT = """
func.func @f(%narrow: memref<4xi8>, %other: memref<4xf32>, %out: memref<64xf32>) attributes {outputs = 1 : i64} {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c9 = arith.constant 9 : index
  %zero = arith.constant 0.0 : f32
  scf.for %i = %c0 to %c9 step %c1 {
    %signed = memref.load %narrow[%c0] : memref<4xi8>
    %wide = arith.extui %signed : i8 to i32
    %of_signed = arith.index_cast %signed : i8 to index
    %of_unsigned = arith.index_cast %wide : i32 to index
    %sum = arith.addi %i, %of_unsigned : index
    %below = arith.cmpi ult, %of_signed, %c9 : index
    %kept = arith.select %below, %of_signed, %c0 : index
    memref.store %zero, %out[%i] : memref<64xf32>
  }
  func.return
}
"""


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("signed", (-inf, inf)),
        ("of_signed", (-128, 127)),
        ("of_unsigned", (0, 255)),
        ("sum", (0, 8 + 255)),
        ("kept", (0, 8)),
    ],
)
def test_ranges(name: str, expected: Range) -> None:
    (value,) = (result for op in parse(TEXT).walk() for result in op.results if result.name_hint == name)
    assert Ranges().of(value) == expected
