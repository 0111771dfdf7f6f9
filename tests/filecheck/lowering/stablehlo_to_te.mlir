// RUN: strata-opt %s -p convert-stablehlo-to-te --split-input-file | filecheck %s

// CHECK-LABEL: func.func @layer
// Numbers are literals of bodies, and an initial value that is neutral leaves nothing.
func.func public @layer(%x: tensor<4x8xf32>, %w: tensor<8x2xf32>) -> (tensor<4x2xf32> {jax.result_info = "result"}) {
  // CHECK-NEXT: %y = te.compute "y" [i0 = 4, i1 = 2, reduce k0 = 8] combine [add]
  // CHECK-NEXT:   (%x_1 = %x[i0, k0] : tensor<4x8xf32>, %w_1 = %w[k0, i1] : tensor<8x2xf32>) -> tensor<4x2xf32> {
  // CHECK-NEXT:   %0 = arith.mulf %x_1, %w_1 : f32
  // CHECK-NEXT:   te.yield %0 : f32
  %y = stablehlo.dot_general %x, %w, contracting_dims = [1] x [0], precision = [DEFAULT, DEFAULT] : (tensor<4x8xf32>, tensor<8x2xf32>) -> tensor<4x2xf32>
  %cst = stablehlo.constant dense<0.000000e+00> : tensor<f32>
  %zeros = stablehlo.broadcast_in_dim %cst, dims = [] : (tensor<f32>) -> tensor<4x2xf32>
  // CHECK:      %z = te.compute "z" [i0 = 4, i1 = 2]
  // CHECK-NEXT:   (%y_1 = %y[i0, i1] : tensor<4x2xf32>) -> tensor<4x2xf32> {
  // CHECK-NEXT:   %0 = arith.constant 0.000000e+00 : f32
  // CHECK-NEXT:   %1 = arith.maximumf %y_1, %0 : f32
  %z = stablehlo.maximum %y, %zeros : tensor<4x2xf32>
  // CHECK:      %s = te.compute "s" [i0 = 4, reduce k0 = 2] combine [add]
  // CHECK-NEXT:   (%z_1 = %z[i0, k0] : tensor<4x2xf32>) -> tensor<4xf32> {
  // CHECK-NEXT:   te.yield %z_1 : f32
  %s = stablehlo.reduce(%z init: %cst) applies stablehlo.add across dimensions = [1] : (tensor<4x2xf32>, tensor<f32>) -> tensor<4xf32>
  %b = stablehlo.broadcast_in_dim %s, dims = [0] : (tensor<4xf32>) -> tensor<4x2xf32>
  // CHECK:      te.compute "b"
  // CHECK:      te.compute "q"
  %q = stablehlo.divide %z, %b : tensor<4x2xf32>
  return %q : tensor<4x2xf32>
}

// -----

// CHECK-LABEL: func.func @main
// CHECK-NOT: func.func private
// A private function is inlined at each call.
module @jit_f attributes {mhlo.num_partitions = 1 : i32, mhlo.num_replicas = 1 : i32} {
  func.func public @main(%x: tensor<4xf32>) -> tensor<4xf32> {
    // CHECK: te.compute "a"
    // CHECK: math.sin
    // CHECK: te.compute "a_1"
    // CHECK: math.sin
    %0 = call @twice(%x) : (tensor<4xf32>) -> tensor<4xf32>
    %1 = func.call @twice(%0) : (tensor<4xf32>) -> tensor<4xf32>
    return %1 : tensor<4xf32>
  }
  func.func private @twice(%y: tensor<4xf32>) -> tensor<4xf32> {
    %a = stablehlo.sine %y : tensor<4xf32>
    return %a : tensor<4xf32>
  }
}

// -----

// CHECK-LABEL: func.func @loop
// A loop whose condition is known is unrolled; its counter is a number.
func.func @loop(%x: tensor<4xf32>) -> tensor<4xf32> {
  %zero = stablehlo.constant dense<0> : tensor<i32>
  %one = stablehlo.constant dense<1> : tensor<i32>
  %two = stablehlo.constant dense<2> : tensor<i32>
  // CHECK-NEXT: te.compute "y"
  // CHECK:      arith.mulf
  // CHECK:      te.compute "y_1"
  // CHECK:      arith.mulf
  // CHECK:      func.return %y_1
  %r:2 = stablehlo.while(%i = %zero, %a = %x) : tensor<i32>, tensor<4xf32>
  cond {
    %c = stablehlo.compare LT, %i, %two, SIGNED : (tensor<i32>, tensor<i32>) -> tensor<i1>
    stablehlo.return %c : tensor<i1>
  } do {
    %j = stablehlo.add %i, %one : tensor<i32>
    %y = stablehlo.multiply %a, %a : tensor<4xf32>
    stablehlo.return %j, %y : tensor<i32>, tensor<4xf32>
  }
  return %r#1 : tensor<4xf32>
}

// -----

// CHECK-LABEL: func.func @image
// Padding is a conditional read.
func.func @image(%x: tensor<1x8x8x3xf32>, %w: tensor<3x3x3x4xf32>) -> tensor<1x4x8x4xf32> {
  // CHECK-NEXT: te.compute "y" [i0 = 1, i1 = 4, i2 = 8, i3 = 4, reduce c = 3, reduce r0 = 3, reduce r1 = 3] combine [add]
  // CHECK-NEXT:   %x[i0, i1 * 2 + r0, i2 + r1 - 1, c] where (
  // CHECK-SAME:   %w[r0, r1, c, i3]
  %y = stablehlo.convolution(%x, %w) dim_numbers = [b, 0, 1, f]x[0, 1, i, o]->[b, 0, 1, f], window = {stride = [2, 1], pad = [[0, 1], [1, 1]]} {batch_group_count = 1 : i64, feature_group_count = 1 : i64} : (tensor<1x8x8x3xf32>, tensor<3x3x3x4xf32>) -> tensor<1x4x8x4xf32>
  return %y : tensor<1x4x8x4xf32>
}

// -----

// CHECK-LABEL: func.func @rows
// An index that data decide is a te.gather, of starts inside the table.
func.func @rows(%t: tensor<9x8xf32>, %i: tensor<5x1xi32>) -> tensor<5x8xf32> {
  // CHECK:      arith.maxsi
  // CHECK:      arith.minsi
  // CHECK:      te.gather "y" [i0 = 5, i1 = 8]
  %y = "stablehlo.gather"(%t, %i) <{dimension_numbers = #stablehlo.gather<offset_dims = [1], collapsed_slice_dims = [0], start_index_map = [0], index_vector_dim = 1>, slice_sizes = array<i64: 1, 8>}> : (tensor<9x8xf32>, tensor<5x1xi32>) -> tensor<5x8xf32>
  return %y : tensor<5x8xf32>
}

// -----

// A mesh of devices, and shardings of arguments, are dropped.
// CHECK-NOT:   sdy.mesh
// CHECK-LABEL: func.func @sharded
sdy.mesh @mesh = <["x"=1], device_ids=[0]> {stablehlo.mesh = {axes = []}}
func.func @sharded(%x: tensor<8x4xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"x"}, {}]>}) -> tensor<8x4xf32> {
  // CHECK-NEXT: te.compute "y"
  %y = stablehlo.sine %x : tensor<8x4xf32>
  return %y : tensor<8x4xf32>
}

// -----

// CHECK-LABEL: func.func @attention
// A product of columns and rows, as an einsum states it, behind which there is a transpose, is one of rows and columns.
func.func @attention(%p: tensor<2x3x4x5xf32>, %v: tensor<2x5x3x6xf32>) -> tensor<2x4x3x6xf32> {
  // CHECK-NEXT: te.compute "o" [i0 = 2, i1 = 3, i2 = 4, i3 = 6, reduce k0 = 5] combine [add]
  // CHECK-NEXT:   %p[i0, i1, i2, k0]
  // CHECK-SAME:   %v[i0, k0, i1, i3]
  %o = stablehlo.dot_general %v, %p, batching_dims = [0, 2] x [0, 1], contracting_dims = [1] x [3] : (tensor<2x5x3x6xf32>, tensor<2x3x4x5xf32>) -> tensor<2x3x6x4xf32>
  // CHECK:      te.compute "t"
  // CHECK-NEXT:   %o[i0, i2, i1, i3]
  %t = stablehlo.transpose %o, dims = [0, 3, 1, 2] : (tensor<2x3x6x4xf32>) -> tensor<2x4x3x6xf32>
  return %t : tensor<2x4x3x6xf32>
}
