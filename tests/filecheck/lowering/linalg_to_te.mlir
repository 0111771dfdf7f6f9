// RUN: strata-opt %s -p convert-linalg-to-te --split-input-file | filecheck %s

#map = affine_map<(d0, d1) -> (d0, d1)>

// CHECK-LABEL: func.func @product
// A fill with the neutral element leaves nothing, and a constant from outside is one of the body.
func.func @product(%A: tensor<4x8xf32>, %B: tensor<8x2xf32>) -> tensor<4x2xf32> {
  %zero = arith.constant 0.0 : f32
  %e = tensor.empty() : tensor<4x2xf32>
  %z = linalg.fill ins(%zero : f32) outs(%e : tensor<4x2xf32>) -> tensor<4x2xf32>
  // CHECK-NEXT: %C = te.compute "C" [m = 4, n = 2, reduce k = 8] combine [add]
  // CHECK-NEXT:   (%a = %A[m, k] : tensor<4x8xf32>, %b = %B[k, n] : tensor<8x2xf32>) -> tensor<4x2xf32> {
  // CHECK-NEXT:   %0 = arith.mulf %a, %b : f32
  // CHECK-NEXT:   te.yield %0 : f32
  %C = linalg.matmul ins(%A, %B : tensor<4x8xf32>, tensor<8x2xf32>) outs(%z : tensor<4x2xf32>) -> tensor<4x2xf32>
  // CHECK:      %D = te.compute "D" [d0 = 4, d1 = 2]
  // CHECK-NEXT:   (%c = %C[d0, d1] : tensor<4x2xf32>) -> tensor<4x2xf32> {
  // CHECK-NEXT:   %0 = arith.constant 0.000000e+00 : f32
  // CHECK-NEXT:   %1 = arith.maximumf %c, %0 : f32
  %D = linalg.generic {indexing_maps = [#map, #map], iterator_types = ["parallel", "parallel"]}
      ins(%C : tensor<4x2xf32>) outs(%e : tensor<4x2xf32>) {
  ^bb0(%c: f32, %out: f32):
    %r = arith.maximumf %c, %zero : f32
    linalg.yield %r : f32
  } -> tensor<4x2xf32>
  return %D : tensor<4x2xf32>
}

// -----

// CHECK-LABEL: func.func @initial_value
// Any other initial value is combined with the reduction's result.
func.func @initial_value(%A: tensor<4x8xf32>, %B: tensor<8x2xf32>, %I: tensor<4x2xf32>) -> tensor<4x2xf32> {
  // CHECK:      %C.partial = te.compute "C.partial" [m = 4, n = 2, reduce k = 8] combine [add]
  // CHECK:      %C = te.compute "C" [m = 4, n = 2]
  // CHECK-NEXT:   (%i = %I[m, n] : tensor<4x2xf32>, %c.partial = %C.partial[m, n] : tensor<4x2xf32>)
  // CHECK-NEXT:   %0 = arith.addf %i, %c.partial : f32
  %C = linalg.matmul ins(%A, %B : tensor<4x8xf32>, tensor<8x2xf32>) outs(%I : tensor<4x2xf32>) -> tensor<4x2xf32>
  return %C : tensor<4x2xf32>
}

// -----

// CHECK-LABEL: func.func @window
func.func @window(%X: tensor<1x9x9x3xf32>, %W: tensor<3x3x3x4xf32>) -> tensor<1x4x7x4xf32> {
  %z = arith.constant dense<0.0> : tensor<1x4x7x4xf32>
  // CHECK-NEXT: te.compute "Y" [n = 1, h = 4, w = 7, f = 4, reduce kh = 3, reduce kw = 3, reduce c = 3] combine [add]
  // CHECK-NEXT:   (%x = %X[n, h * 2 + kh, w + kw, c] : tensor<1x9x9x3xf32>, %w = %W[kh, kw, c, f]
  %Y = linalg.conv_2d_nhwc_hwcf {strides = dense<[2, 1]> : tensor<2xi64>, dilations = dense<1> : tensor<2xi64>}
      ins(%X, %W : tensor<1x9x9x3xf32>, tensor<3x3x3x4xf32>) outs(%z : tensor<1x4x7x4xf32>) -> tensor<1x4x7x4xf32>
  return %Y : tensor<1x4x7x4xf32>
}

// -----

// CHECK-LABEL: func.func @regions
// The bodies of a pooling by unsigned maximum, and of reductions by bits, become regions.
func.func @regions(%A: tensor<4x8xi32>) -> tensor<4xi32> {
  %ones = arith.constant dense<-1> : tensor<4xi32>
  // CHECK-NEXT: te.compute "B" [d0 = 4, reduce d1 = 8]
  // CHECK-NEXT:   combine (%[[B:.*]] = -1 : i32) with (%[[A:.*]]) {
  // CHECK-NEXT:   arith.andi %[[B]], %[[A]] : i32
  %B = linalg.reduce { arith.andi } ins(%A : tensor<4x8xi32>) outs(%ones : tensor<4xi32>) dimensions = [1]
  // CHECK-NOT: te.compute
  return %B : tensor<4xi32>
}

// -----

// CHECK-LABEL: func.func @kept_dimension
// An output of size 1 along a reduced dimension is written at 0; outputs with two maps are two computes.
func.func @kept_dimension(%A: tensor<4x8xf32>) -> (tensor<4x1xf32>, tensor<4xf32>) {
  %z = arith.constant dense<0.0> : tensor<4x1xf32>
  %y = arith.constant dense<1.0> : tensor<4xf32>
  // CHECK-NEXT: te.compute "B" [d0 = 4, u1 = 1, reduce d1 = 8] combine [add]
  // CHECK:      te.compute "B_1" [d0 = 4, reduce d1 = 8] combine [mul]
  %B:2 = linalg.generic {indexing_maps = [affine_map<(d0, d1) -> (d0, d1)>, affine_map<(d0, d1) -> (d0, 0)>,
      affine_map<(d0, d1) -> (d0)>], iterator_types = ["parallel", "reduction"]}
      ins(%A : tensor<4x8xf32>) outs(%z, %y : tensor<4x1xf32>, tensor<4xf32>) {
  ^bb0(%a: f32, %sum: f32, %product: f32):
    %s = arith.subf %sum, %a : f32
    %p = arith.mulf %a, %product : f32
    linalg.yield %s, %p : f32, f32
  } -> (tensor<4x1xf32>, tensor<4xf32>)
  return %B#0, %B#1 : tensor<4x1xf32>, tensor<4xf32>
}

// -----

// CHECK-LABEL: func.func @slices
func.func @slices(%A: tensor<4x8xf32>, %B: tensor<2x4xf32>) -> (tensor<4xf32>, tensor<4x8xf32>, tensor<6x8xf32>) {
  %c = arith.constant 1.0 : f32
  // CHECK-NEXT: te.compute "row" [i0 = 4]
  // CHECK-NEXT:   (%a = %A[1, i0 * 2] : tensor<4x8xf32>)
  %row = tensor.extract_slice %A[1, 0] [1, 4] [1, 2] : tensor<4x8xf32> to tensor<4xf32>
  // CHECK:      te.compute "all" [i0 = 4, i1 = 8]
  // CHECK-NEXT:   (%b = %B[i0 - 1, i1 floordiv 2] where (i0 - 1 >= 0, -i0 + 2 >= 0, i1 mod 2 == 0) else 0.0
  %all = tensor.insert_slice %B into %A[1, 0] [2, 4] [1, 2] : tensor<2x4xf32> into tensor<4x8xf32>
  // CHECK:      te.compute "padded" [i0 = 6, i1 = 8]
  // CHECK-NEXT:   (%a = %A[i0 - 2, i1] where (i0 - 2 >= 0) else 1.0
  %padded = tensor.pad %A low[2, 0] high[0, 0] {
  ^bb0(%i: index, %j: index):
    tensor.yield %c : f32
  } : tensor<4x8xf32> to tensor<6x8xf32>
  return %row, %all, %padded : tensor<4xf32>, tensor<4x8xf32>, tensor<6x8xf32>
}

// -----

// CHECK-LABEL: func.func @mixed
// Ops of arith and math compute whole tensors; the fastmath flags are those of the build's policy; te ops stay.
func.func @mixed(%A: tensor<4xf32>, %B: tensor<4xf32>) -> tensor<4xf32> {
  // CHECK-NEXT: te.compute "C" [i0 = 4]
  // CHECK:      arith.addf %a, %b : f32
  %C = arith.addf %A, %B fastmath<fast> : tensor<4xf32>
  // CHECK:      te.compute "D" [i = 4]
  %D = te.compute "D" [i = 4] (%c = %C[i] : tensor<4xf32>) -> tensor<4xf32> {
    te.yield %c : f32
  }
  return %D : tensor<4xf32>
}

// -----

// CHECK-LABEL: func.func @extracts
// A tensor that a body reads at an affine index is an operand; a select that guards it states its condition.
func.func @extracts(%A: tensor<4xf32>) -> tensor<4xf32> {
  %e = tensor.empty() : tensor<4xf32>
  // CHECK-NEXT: te.compute "B" [d0 = 4]
  // CHECK-NEXT:   (%a = %A[-d0 + 3] : tensor<4xf32>, %a_1 = %A[d0 - 1] where (d0 - 1 >= 0) else 2.0 : tensor<4xf32>)
  // CHECK-NEXT:   %0 = arith.addf %a, %a_1 : f32
  %B = linalg.generic {indexing_maps = [affine_map<(d0) -> (d0)>], iterator_types = ["parallel"]} outs(%e : tensor<4xf32>) {
  ^bb0(%out: f32):
    %i = linalg.index 0 : index
    %three = arith.constant 3 : index
    %one = arith.constant 1 : index
    %zero = arith.constant 0 : index
    %two = arith.constant 2.0 : f32
    %j = arith.subi %three, %i : index
    %a = tensor.extract %A[%j] : tensor<4xf32>
    %k = affine.apply affine_map<(d0) -> (d0 - 1)>(%i)
    %inside = arith.cmpi sge, %k, %zero : index
    %safe = arith.select %inside, %k, %zero : index
    %b = tensor.extract %A[%safe] : tensor<4xf32>
    %c = arith.select %inside, %b, %two : f32
    %s = arith.addf %a, %c : f32
    linalg.yield %s : f32
  } -> tensor<4xf32>
  return %B : tensor<4xf32>
}

// -----

// CHECK-LABEL: func.func @gathers
// Where data decide the index it is a gather; of an index that is computed, or used beside, the tensor is computed before.
func.func @gathers(%T: tensor<9x4xf32>, %I: tensor<5xi32>) -> (tensor<5x4xf32>, tensor<5x4xf32>) {
  // CHECK-NEXT: %A.gather = te.gather "A.gather" [d0 = 5, d1 = 4]
  // CHECK-NEXT:   %T[%I[d0], d1] else 0.0 : tensor<9x4xf32>, tensor<5xi32> -> tensor<5x4xf32>
  %e = tensor.empty() : tensor<5x4xf32>
  %A = linalg.generic {indexing_maps = [affine_map<(d0, d1) -> (d0)>, affine_map<(d0, d1) -> (d0, d1)>],
      iterator_types = ["parallel", "parallel"]} ins(%I : tensor<5xi32>) outs(%e : tensor<5x4xf32>) {
  ^bb0(%i: i32, %out: f32):
    %j = arith.index_cast %i : i32 to index
    %k = linalg.index 1 : index
    %t = tensor.extract %T[%j, %k] : tensor<9x4xf32>
    linalg.yield %t : f32
  } -> tensor<5x4xf32>
  // CHECK-NEXT: te.compute "B.index" [d0 = 5, d1 = 4]
  // CHECK:        arith.addi %i, %i : i32
  // CHECK:      te.gather "B.gather" [d0 = 5, d1 = 4]
  // CHECK-NEXT:   %T[%B.index[d0, d1], d1] else 0.0
  // CHECK:      te.compute "B" [d0 = 5, d1 = 4]
  // CHECK-NEXT:   (%i = %I[d0] : tensor<5xi32>, %b.gather = %B.gather[d0, d1] : tensor<5x4xf32>)
  %B = linalg.generic {indexing_maps = [affine_map<(d0, d1) -> (d0)>, affine_map<(d0, d1) -> (d0, d1)>],
      iterator_types = ["parallel", "parallel"]} ins(%I : tensor<5xi32>) outs(%e : tensor<5x4xf32>) {
  ^bb0(%i: i32, %out: f32):
    %s = arith.addi %i, %i : i32
    %j = arith.index_cast %s : i32 to index
    %k = linalg.index 1 : index
    %f = arith.sitofp %i : i32 to f32
    %t = tensor.extract %T[%j, %k] : tensor<9x4xf32>
    %r = arith.addf %f, %t : f32
    linalg.yield %r : f32
  } -> tensor<5x4xf32>
  return %A, %B : tensor<5x4xf32>, tensor<5x4xf32>
}
