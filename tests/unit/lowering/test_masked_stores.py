"""Masked stores of truncated integers write what the mask says and nothing behind it, whatever LLVM makes of them."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

import compiler
from compiler import recipes, te
from compiler.pipeline.source import parse
from compiler.schedule import Schedule
from compiler.targets.cpu.load import load
from compiler.targets.cpu.single_lanes import with_scalar_stores
from compiler.types.machines import host
from tests.guard_pages import guarded
from tests.operators.catalogue import numpy_dtype


@pytest.mark.parametrize("size", [1, 5, 9, 17])
@pytest.mark.parametrize("lanes", [4, 8, 16])
@pytest.mark.parametrize(("source", "dtype"), [("i32", "i8"), ("i32", "i16"), ("i64", "i32"), ("f32", "bf16")])
def test_one_lane_is_one_element(source: str, dtype: str, lanes: int, size: int) -> None:
    """Results stand in the middle of a buffer whose other bytes are looked at as well."""
    a = te.placeholder((size,), source, name="A")
    f = te.function("f", [a], [te.compute((size,), lambda i: te.cast(a[i] * 3, dtype), name="C")])
    s = Schedule(compiler.lower(f))
    s.vectorize(s.split(s.get_loops(s.get_block("C"))[0], [None, lanes])[1])
    memory = np.full(size + 16, 77).astype(numpy_dtype(dtype))
    x = np.arange(size).astype(numpy_dtype(source))
    compiler.build(s)(x, out=memory[8 : 8 + size])
    np.testing.assert_array_equal(memory[8 : 8 + size], (x * 3).astype(memory.dtype))
    assert (memory[:8] == 77).all()
    assert (memory[8 + size :] == 77).all()


def test_only_single_lanes_are_replaced() -> None:
    def store(mask: str, about: str = "nonnull align 2 ", call: str = "call") -> str:
        bits = ", ".join(f"i1 {'true' if bit == '1' else 'false'}" for bit in mask)
        name = f"@llvm.masked.store.v{len(mask)}i16.p0"
        return f"  {call} void {name}(<{len(mask)} x i16> %x.1, ptr {about}%p, <{len(mask)} x i1> <{bits}>), !tbaa !3\n"

    assert with_scalar_stores(store("0110")) == store("0110")
    assert with_scalar_stores(store("0000")) == store("0000")
    splat = store("1000").replace("%x.1", "splat (i16 3)")
    assert with_scalar_stores(splat) == splat
    first = with_scalar_stores(store("1000") + store("0010", "", "tail call"))
    assert first.split("\n") == [
        "  %single.lane.0 = extractelement <4 x i16> %x.1, i64 0",
        "  %single.lane.0.at = getelementptr i16, ptr %p, i64 0",
        "  store i16 %single.lane.0, ptr %single.lane.0.at, align 2",
        "  %single.lane.1 = extractelement <4 x i16> %x.1, i64 2",
        "  %single.lane.1.at = getelementptr i16, ptr %p, i64 2",
        "  store i16 %single.lane.1, ptr %single.lane.1.at, align 1",
        "",
    ]


def test_gebp_of_bf16_stays_inside_its_rows() -> None:
    a, b = te.placeholder((5, 4), "bf16", name="A"), te.placeholder((4, 1), "bf16", name="B")
    r = te.reduce_axis(4, "k")
    c = te.compute((5, 1), lambda i, j: te.max(a[i, r] * b[r, j], axis=r), name="C")
    s = Schedule(compiler.lower(te.function("mm", [a, b], [c])))
    recipes.gebp(s, s.get_block("C"), 10, 4, 16, 10, 16, 16, "a")
    memory = np.full(40, 77).astype(numpy_dtype("bf16"))
    x, y = np.ones((5, 4)).astype(memory.dtype), np.ones((4, 1)).astype(memory.dtype)
    compiler.build(s)(x, y, out=memory[8:13].reshape(5, 1))
    assert (memory[8:13] == 1).all()
    assert (memory[13:] == 77).all()


@pytest.mark.parametrize("count", [1, 5, 6, 8, 15, 19])
@pytest.mark.parametrize("step", [2, 3, 4, 5])
def test_what_steps_by_few_elements_is_picked_from_whole_vectors(step: int, count: int) -> None:
    """Reads end where a forbidden page begins, and stores of a known number of lanes write nothing behind them."""
    a = te.placeholder((count * step - step + 1,), name="A")
    f = te.function("f", [a], [te.compute((count,), lambda i: a[i * step] * 2.0, name="C")])
    s = Schedule(compiler.lower(f))
    outer, vector = s.split(s.get_loops(s.get_block("C"))[0], [None, 8])
    s.unroll(outer)
    s.vectorize(vector)
    x = guarded(np.arange(count * step - step + 1).astype(np.float32), at_end=True)
    kernel = compiler.build(s)
    memory = np.full(count + 16, 77, np.float32)
    kernel(x, out=memory[8 : 8 + count])
    np.testing.assert_array_equal(memory[8 : 8 + count], x[::step] * 2)
    assert (memory[:8] == 77).all()
    assert (memory[8 + count :] == 77).all()
    assert ("masked.gather" in kernel.text("llvm")) == (step == 5)


MASKS = {
    "one condition": ("vector.broadcast %some : i1 to vector<8xi1>", lambda some, n: 8 * some),
    "a number": ("vector.create_mask %n : vector<8xi1>", lambda some, n: n),
    "both": ("arith.andi %all, %first : vector<8xi1>", lambda some, n: n * some),
    "a condition and known lanes": ("arith.andi %all, %five : vector<8xi1>", lambda some, n: 5 * some),
}
"""Masks, and how many lanes they have."""


@pytest.mark.parametrize("name", MASKS)
def test_masks_of_all_lanes_are_branches(name: str) -> None:
    """Without AVX-512: a plain store where the mask has all lanes, nothing where a condition fails."""
    mask, lanes = MASKS[name]
    module = parse(f"""
    func.func @f(%A: memref<8xf32>, %flag: memref<1xi32>, %count: memref<1xindex>, %C: memref<8xf32>)
        attributes {{outputs = 1 : i64}} {{
      %zero = arith.constant 0 : index
      %no = arith.constant 0 : i32
      %held = memref.load %flag[%zero] : memref<1xi32>
      %some = arith.cmpi ne, %held, %no : i32
      %n = memref.load %count[%zero] : memref<1xindex>
      %lanes = arith.constant 5 : index
      %all = vector.broadcast %some : i1 to vector<8xi1>
      %first = vector.create_mask %n : vector<8xi1>
      %five = vector.create_mask %lanes : vector<8xi1>
      %mask = {mask}
      %a = vector.load %A[%zero] : memref<8xf32>, vector<8xf32>
      vector.maskedstore %C[%zero], %mask, %a : memref<8xf32>, vector<8xi1>, vector<8xf32>
      func.return
    }}""")
    kernel = load(module, replace(host(), vector_bits=256))
    assert ("masked.store" in kernel.text("llvm")) == ("%n" in mask or "%first" in mask)
    a = np.arange(8, dtype=np.float32)
    for some in (False, True):
        for n in (0, 3, 8):
            output = np.full(8, 77, np.float32)
            kernel(a, np.array([some], np.int32), np.array([n], np.int64), out=output)
            count = int(lanes(some, n))
            np.testing.assert_array_equal(output, [*a[:count], *[77] * (8 - count)])
