"""plan-buffers: which buffers share a slot, what is refused, and that the result runs and is upstream MLIR."""

from __future__ import annotations

import re
from itertools import pairwise

import numpy as np
import pytest
from xdsl.context import Context
from xdsl.dialects import memref
from xdsl.dialects.builtin import ModuleOp
from xdsl.parser import Parser

from compiler import universe
from compiler.dialects.dominance import verify_module
from compiler.passes.plan_buffers import PlanBuffersPass
from compiler.support.errors import LoweringError
from compiler.targets.cpu.load import load
from compiler.types.machines import host
from tests.low import with_constants
from tests.upstream import assert_accepted, needs_mlir_opt


def parse(text: str) -> ModuleOp:
    module = Parser(universe.context(), with_constants(text)).parse_module()
    verify_module(module)
    return module


def planned(text: str) -> ModuleOp:
    module = parse(text)
    PlanBuffersPass().apply(Context(), module)
    verify_module(module)
    return module


def slots(module: ModuleOp) -> list[int]:
    """The sizes of the slots, in bytes."""
    return [op.memref.type.get_shape()[0] for op in module.walk() if isinstance(op, memref.AllocOp)]


def function(body: str) -> str:
    return f"""
    func.func @f(%x: memref<16xf32>, %r: memref<16xf32>) attributes {{outputs = 1 : i64}} {{
      %one = arith.constant 1.0 : f32
      {body}
      func.return
    }}"""


def copy(source: str, target: str) -> str:
    """A loop that writes source + 1 to target."""
    return f"""
      scf.for %i = %c0 to %c16 step %c1 {{
        %e = memref.load {source}[%i] : memref<16xf32>
        %f = arith.addf %e, %one : f32
        memref.store %f, {target}[%i] : memref<16xf32>
      }}"""


def allocs(*names: str) -> str:
    return "\n".join(f"%{name} = memref.alloc() : memref<16xf32>" for name in names)


def stages(*names: str) -> str:
    buffers = ["%x", *(f"%{name}" for name in names), "%r"]
    return "".join(copy(a, b) for a, b in pairwise(buffers))


CHAIN = function(allocs("a", "b", "c", "d") + stages("a", "b", "c", "d"))
HELD = function(allocs("a", "b", "c") + copy("%x", "%a") + copy("%a", "%b") + copy("%b", "%c") + copy("%a", "%r"))
NESTED = function(f"""
  scf.for %k = %c0 to %c16 step %c1 {{
    {allocs("a", "b")}
    {copy("%x", "%a")}
    {copy("%a", "%b")}
    {copy("%b", "%r")}
    memref.dealloc %a : memref<16xf32>
  }}
  {allocs("c")}
  {copy("%r", "%c")}
  {copy("%c", "%r")}""")
SIZES = function(f"""
  %t = memref.alloc() : memref<3xi1>
  %yes = arith.constant true
  memref.store %yes, %t[%c0] : memref<3xi1>
  %n = memref.alloc() : memref<index>
  memref.store %c1, %n[] : memref<index>
  {copy("%x", "%r")}""")
VIEWED = function(f"""
  %a = memref.alloc() : memref<64xi8>
  %v = memref.view %a[%c0][] : memref<64xi8> to memref<16xf32>
  {copy("%x", "%v")}
  {allocs("b")}
  {copy("%x", "%b")}
  {copy("%v", "%r")}""")


def test_a_chain_needs_two_slots() -> None:
    assert slots(planned(CHAIN)) == [64, 64]


def test_buffers_that_live_together_are_apart() -> None:
    assert slots(planned(HELD)) == [64, 64, 64]


def test_allocs_in_loops_are_hoisted_and_live_for_the_whole_loop() -> None:
    module = planned(NESTED)
    assert slots(module) == [64, 64]
    body = next(iter(module.walk())).regions[0].block.first_op
    assert body is not None
    assert all(op.parent_op() is body for op in module.walk() if isinstance(op, memref.AllocOp | memref.ViewOp))
    assert "dealloc" not in str(module)


def test_sizes_are_bytes_and_slots_grow_to_the_largest() -> None:
    assert slots(planned(SIZES)) == [8]


def test_unused_buffers_go() -> None:
    module = planned(function(allocs("a") + "memref.dealloc %a : memref<16xf32>"))
    assert not any(isinstance(op, memref.AllocOp | memref.DeallocOp | memref.ViewOp) for op in module.walk())


def test_views_extend_a_lifetime() -> None:
    assert len(slots(planned(VIEWED))) == 2


def test_a_buffer_that_is_passed_on_lives_to_the_end() -> None:
    carried = function(f"""
      {allocs("a", "b")}
      %yes = arith.constant true
      %p = scf.if %yes -> (memref<16xf32>) {{ scf.yield %a : memref<16xf32> }}
      else {{ scf.yield %x : memref<16xf32> }}
      {copy("%x", "%b")}
      {copy("%p", "%r")}""")
    assert len(slots(planned(carried))) == 2


def test_names_stay_and_slots_are_aligned() -> None:
    text = str(planned(CHAIN))
    assert re.search(r"%a = memref\.view %slot\w*\[%\w+\]\[\] : memref<64xi8> to memref<16xf32>", text)
    assert text.count("{alignment = 64 : i64}") == 2


@pytest.mark.parametrize("text", [CHAIN, HELD, NESTED, VIEWED])
def test_planning_twice_changes_nothing(text: str) -> None:
    module = planned(text)
    before = str(module)
    PlanBuffersPass().apply(Context(), module)
    assert str(module) == before


@pytest.mark.parametrize(("text", "added"), [(CHAIN, 5), (HELD, 2), (NESTED, 5), (VIEWED, 2)])
def test_planned_functions_compute_the_same(text: str, added: int) -> None:
    x = np.random.default_rng(0).random(16, np.float32)
    expected = x
    for _ in range(added):
        expected = expected + np.float32(1)
    np.testing.assert_array_equal(load(planned(text), host())(x), expected)


@pytest.mark.parametrize(
    ("alloc", "said"),
    [
        ("memref.alloc() {alignment = 128 : i64} : memref<4xf32>", "128 bytes"),
        ("memref.alloc(%c16) : memref<?xf32>", "not static"),
        ("memref.alloc() : memref<4x4xf32, strided<[1, 4]>>", "row-major"),
        ("memref.alloc() : memref<4xf32, 3 : i32>", "memory space"),
    ],
)
def test_refusals(alloc: str, said: str) -> None:
    with pytest.raises(LoweringError, match=said):
        planned(function(f"%a = {alloc}"))


@needs_mlir_opt
@pytest.mark.parametrize("text", [CHAIN, HELD, NESTED, SIZES, VIEWED])
def test_upstream_accepts_the_result(text: str) -> None:
    assert_accepted(str(planned(text)))
