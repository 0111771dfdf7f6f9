"""Programs of upstream dialects are read and printed: mlir-opt prints the same for the text and for strata-opt's."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from xdsl.dialects.builtin import DenseIntOrFPElementsAttr

from tests.upstream import MLIR_OPT, needs_mlir_opt
from tools import round_trip
from tools.round_trip import Outcome, outcome, strata_opt

VECTOR = """
func.func @f(%a: vector<4x2xf32>, %b: vector<2xf32>, %c: vector<4xf32>, %m: memref<?xf32>, %k: vector<2xi1>, %i: index,
             %l: vector<4xi1>, %s: vector<[4]xf32>, %x: f32, %z: vector<4x4xf32>) {
  %0 = vector.transpose %a, [1, 0] : vector<4x2xf32> to vector<2x4xf32>
  %1 = vector.shape_cast %a : vector<4x2xf32> to vector<8xf32>
  %2 = vector.step : vector<4xindex>
  %3 = vector.constant_mask [2, 1] : vector<4x2xi1>
  %4 = vector.extract_strided_slice %c {offsets = [0], sizes = [2], strides = [1]} : vector<4xf32> to vector<2xf32>
  %5 = vector.insert_strided_slice %b, %a {offsets = [0, 0], strides = [1]} : vector<2xf32> into vector<4x2xf32>
  %6 = vector.interleave %b, %b : vector<2xf32> -> vector<4xf32>
  %7, %8 = vector.deinterleave %6 : vector<4xf32> -> vector<2xf32>
  %9 = vector.multi_reduction <add>, %a, %b [0] : vector<4x2xf32> to vector<2xf32>
  %10:2 = vector.scan <add>, %a, %b {inclusive = false, reduction_dim = 0 : i64} : vector<4x2xf32>, vector<2xf32>
  %11 = vector.expandload %m[%i], %k, %b : memref<?xf32>, vector<2xi1>, vector<2xf32> into vector<2xf32>
  vector.compressstore %m[%i], %k, %b : memref<?xf32>, vector<2xi1>, vector<2xf32>
  %12 = vector.vscale
  %13 = vector.scalable.extract %s[0] : vector<4xf32> from vector<[4]xf32>
  %14 = vector.scalable.insert %13, %s[0] : vector<4xf32> into vector<[4]xf32>
  %15 = vector.outerproduct %c, %b, %a {kind = #vector.kind<add>} : vector<4xf32>, vector<2xf32>
  %16 = vector.outerproduct %c, %x : vector<4xf32>, f32
  %17:4 = vector.to_elements %c : vector<4xf32>
  %18 = vector.from_elements %x, %17#1 : vector<2xf32>
  %19 = vector.mask %l { vector.reduction <add>, %c : vector<4xf32> into f32 } : vector<4xi1> -> f32
  vector.mask %l { vector.transfer_write %c, %m[%i] : vector<4xf32>, memref<?xf32> } : vector<4xi1>
  %20 = vector.contract {indexing_maps = [affine_map<(m, n, k) -> (m, k)>, affine_map<(m, n, k) -> (n, k)>,
    affine_map<(m, n, k) -> (m, n)>], iterator_types = ["parallel", "parallel", "reduction"]} %a, %a, %z
    : vector<4x2xf32>, vector<4x2xf32> into vector<4x4xf32>
  return
}
"""
MEMREF = """
func.func @f(%a: memref<4 x 2 x f32>, %u: memref<*xf32>, %d: memref<?xf32>, %i: index, %x: f32, %s: memref<1xindex>) {
  %0 = memref.cast %a : memref<4x2xf32> to memref<*xf32>
  %1 = memref.memory_space_cast %a : memref<4x2xf32> to memref<4x2xf32, 3>
  %2 = memref.rank %u : memref<*xf32>
  %3 = memref.extract_aligned_pointer_as_index %a : memref<4x2xf32> -> index
  %4 = memref.atomic_rmw addf %x, %d[%i] : (f32, memref<?xf32>) -> f32
  %5 = memref.realloc %d(%i) : memref<?xf32> to memref<?xf32>
  %6 = memref.realloc %d {alignment = 8} : memref<?xf32> to memref<124xf32>
  %7 = memref.reshape %u(%s) : (memref<*xf32>, memref<1xindex>) -> memref<?xf32>
  %8 = memref.transpose %a (i, j) -> (j, i) : memref<4x2xf32> to memref<2x4xf32, strided<[1, 2]>>
  %9 = memref.generic_atomic_rmw %d[%i] : memref<?xf32> {
  ^bb0(%c: f32):
    %10 = arith.addf %c, %x : f32
    memref.atomic_yield %10 : f32
  }
  memref.alloca_scope {
    vector.print %x : f32
  }
  %11 = memref.alloca_scope -> (f32) {
    memref.alloca_scope.return %x : f32
  }
  return
}
"""
TENSOR = """
func.func @f(%t: tensor<4x2xf32>, %p: tensor<1x2x1xindex>, %i: index, %x: f32) {
  %0 = tensor.bitcast %t : tensor<4x2xf32> to tensor<4x2xi32>
  %1 = tensor.rank %t : tensor<4x2xf32>
  %2 = tensor.generate %i {
  ^bb0(%q: index):
    tensor.yield %x : f32
  } : tensor<?xf32>
  %3 = tensor.gather %t[%p] gather_dims([0]) unique : (tensor<4x2xf32>, tensor<1x2x1xindex>) -> tensor<1x2x1x2xf32>
  %4 = tensor.scatter %3 into %t[%p] scatter_dims([0]) unique
    : (tensor<1x2x1x2xf32>, tensor<4x2xf32>, tensor<1x2x1xindex>) -> tensor<4x2xf32>
  return
}
"""
SCF = """
func.func @f(%n: index, %t: tensor<8xf32>, %s: tensor<4xf32>, %c: i1) -> index {
  %0 = scf.forall (%i) in (%n) shared_outs(%o = %t) -> (tensor<8xf32>) {
    scf.forall.in_parallel {
      tensor.parallel_insert_slice %s into %o[%i] [4] [1] : tensor<4xf32> into tensor<8xf32>
    }
  } {mapping = [#gpu.thread<x>]}
  scf.forall (%i, %j) = (0, %n) to (8, %n) step (2, 1) {
    "test.use"(%i, %j) : (index, index) -> ()
  }
  %1 = scf.if %c -> index { scf.yield %n : index } else { scf.yield %n : index }
  %2 = scf.for %k = %n to %n step %n iter_args(%z = %n) -> index { scf.yield %z : index }
  return %1 : index
}
"""
ARITH = """
func.func @f(%k: i64, %x: f8E8M0FNU, %h: f4E2M1FN, %g: f32) {
  %0 = arith.divui %k, %k exact : i64
  %1 = arith.shrsi %k, %k exact : i64
  %2 = arith.divsi %k, %k : i64
  %3 = arith.scaling_extf %h, %x : f4E2M1FN, f8E8M0FNU to f32
  %4 = arith.scaling_truncf %g, %x : f32, f8E8M0FNU to f4E2M1FN
  %5 = arith.index_castui %k : i64 to index
  %6 = arith.extf %x : f8E8M0FNU to f32
  %7 = arith.constant dense<-7> : tensor<100x100xi8>
  %8 = arith.constant dense<0x7FC00000> : vector<4xf32>
  return
}
"""
AFFINE = """
#m = affine_map<(d0)[s0, s1] -> (d0 * s0 + s1 floordiv s0, (d0 + 1) mod s1, d0 ceildiv s0, s0 * d0, s0 * s1)>
func.func @f(%i: index) {
  %0:3 = affine.delinearize_index %i into (4, %i, 5) : index, index, index
  %1 = affine.linearize_index [%0#0, %0#1, %0#2] by (4, %i, 5) : index
  %2 = affine.linearize_index disjoint [%0#0, %0#1, %0#2] by (%i, 5) : index
  %3 = affine.apply affine_map<(d0)[s0] -> (d0 * s0)>(%i)[%i]
  "test.map"() {m = #m} : () -> ()
  return
}
"""
LINALG = """
#t = {indexing_maps = [affine_map<(i) -> (i)>], iterator_types = ["parallel"]}
func.func @f(%a: tensor<4xf32>) -> tensor<4xf32> {
  %0 = linalg.generic #t outs(%a : tensor<4xf32>) {
  ^bb0(%x: f32):
    linalg.yield %x : f32
  } -> tensor<4xf32>
  return %0 : tensor<4xf32>
}
"""
TEXTS = {
    "vector": VECTOR,
    "memref": MEMREF,
    "tensor": TENSOR,
    "scf": SCF,
    "arith": ARITH,
    "affine": AFFINE,
    "linalg": LINALG,
    "floats": '"test.x"() {a = 2.5 : f8E5M2, b = 1.5 : f80, c = 0.5 : f8E4M3FN, d = -0.1 : f128} : () -> ()',
}


@needs_mlir_opt
@pytest.mark.parametrize("dialect", TEXTS)
def test_mlir_opt_prints_the_same(dialect: str) -> None:
    assert outcome(str(MLIR_OPT), TEXTS[dialect]) == Outcome("equal")


def test_a_splat_is_not_a_list_of_all_its_elements(monkeypatch: pytest.MonkeyPatch) -> None:
    lengths: list[int] = []
    listed = DenseIntOrFPElementsAttr.from_list

    def counted(type: Any, data: Any) -> Any:
        lengths.append(len(data))
        return listed(type, data)

    monkeypatch.setattr(DenseIntOrFPElementsAttr, "from_list", counted)
    printed, error = strata_opt('"test.x"() {v = dense<0> : tensor<64x1024xi32>} : () -> ()')
    assert "dense<0> : tensor<64x1024xi32>" in printed, error
    assert lengths == [1]


@pytest.mark.parametrize(
    ("text", "sentence"),
    [
        ('"a.b"() {m = affine_map<(d0, d1) -> (d0 * d1)>} : () -> ()', "one side of * is a constant or an expression"),
        ("func.func @f(%d: memref<4xf32>, %x: f32, %i: index) {\n  memref.atomic_rmw plus %x, %d[%i]", "not 'plus'"),
        (
            "func.func @f(%d: memref<4xf32>) {\n  %0 = memref.load %d[] : memref<4xf32>\n  func.return\n}",
            "xpected an index for each dimension",
        ),
        ("func.func @f(%a: vector<4xf32>) {\n  %0 = vector.outerproduct %a : f32", "at most one accumulator"),
        ("func.func @f(%a: f32) {\n  %0 = vector.to_elements %a : f32", "a vector type is expected"),
    ],
)
def test_refusals_name_the_place(text: str, sentence: str) -> None:
    printed, error = strata_opt(text)
    assert not printed and sentence in error and ".mlir:" in error


@needs_mlir_opt
def test_the_tool_counts_pieces(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "a.mlir").write_text('"a.b"() : () -> ()\n// -----\nnonsense\n// -----\n%0 = ub.nothing : i1\n')
    assert round_trip.main([str(tmp_path), "--mlir-opt", str(MLIR_OPT), "--each"]) == 0
    row = capsys.readouterr().out.splitlines()[-1]
    assert row.split() == ["all", "1", "0", "0", "0", "2"]
