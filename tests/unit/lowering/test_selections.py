"""A selection of the lesser of a value and a constant is a minimum on machines whose minimum keeps NaN."""

from __future__ import annotations

import numpy as np
import pytest
from xdsl.dialects.builtin import ModuleOp

from compiler.lowering.low_to_llvm import HANDLERS, emit
from compiler.lowering.low_to_llvm.arithmetic import selections
from compiler.targets.cpu.load import load
from compiler.types.machines import MACHINES, Machine, host
from tests.unit.lowering.test_low_to_llvm import parse

NEON = MACHINES["neoverse-n1"]


def clamped(predicate: str = "ogt", limit: str = "1.5", lanes: int = 4, order: str = "%limit, %x") -> str:
    type = f"vector<{lanes}xf32>" if lanes > 1 else "f32"
    read, write = ("vector.load", "vector.store") if lanes > 1 else ("memref.load", "memref.store")
    tail = f", {type}" if lanes > 1 else ""
    constant = f"dense<{limit}>" if lanes > 1 else limit
    truth = f"vector<{lanes}xi1>, " if lanes > 1 else ""
    return f"""
    func.func @f(%A: memref<{lanes}xf32>, %out: memref<{lanes}xf32>) attributes {{outputs = 1 : i64}} {{
      %x = {read} %A[%c0] : memref<{lanes}xf32>{tail}
      %limit = arith.constant {constant} : {type}
      %test = arith.cmpf {predicate}, %x, %limit : {type}
      %y = arith.select %test, {order} : {truth}{type}
      {write} %y, %out[%c0] : memref<{lanes}xf32>{tail}
      func.return
    }}"""


@pytest.mark.parametrize("lanes", [1, 4])
@pytest.mark.parametrize(("predicate", "name"), [("ogt", "minimum"), ("olt", "maximum")])
def test_a_clamp_is_a_minimum_or_maximum(predicate: str, name: str, lanes: int) -> None:
    text = clamped(predicate, lanes=lanes)
    assert f"@llvm.{name}." in emit(parse(text), NEON) and "select" not in emit(parse(text), NEON)
    assert "select" in emit(parse(text), MACHINES["avx2"])

    def for_neon(module: ModuleOp, machine: Machine) -> str:
        return emit(module, machine, {**HANDLERS, **selections(NEON)})

    for x in np.array([[0.5, 1.5, 2.5, -1.0], [np.nan, np.inf, -np.inf, 0.0]], np.float32):
        expected = np.minimum(x, np.float32(1.5)) if name == "minimum" else np.maximum(x, np.float32(1.5))
        actual = load(parse(text), host(), "f", emission=for_neon)(x[:lanes])
        np.testing.assert_array_equal(actual, expected[:lanes])


@pytest.mark.parametrize(
    "text",
    [clamped(limit="0.0"), clamped(limit="0x7FC00000", lanes=1), clamped(order="%x, %limit"), clamped("uge")],
    ids=["zeros of two signs", "no limit", "the other value", "another test"],
)
def test_other_selections_stay(text: str) -> None:
    assert "select" in emit(parse(text), NEON)
