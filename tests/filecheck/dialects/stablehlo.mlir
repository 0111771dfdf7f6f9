// RUN: strata-opt %s --split-input-file | strata-opt --split-input-file | filecheck %s

// CHECK-LABEL: func.func @plain
func.func @plain(%x: tensor<4x8xf32>, %p: tensor<4x8xi1>) -> tensor<4x8xf32> {
  // CHECK-NEXT: "stablehlo.add"(%x, %x) : (tensor<4x8xf32>, tensor<4x8xf32>) -> tensor<4x8xf32>
  %0 = stablehlo.add %x, %x : tensor<4x8xf32>
  // CHECK-NEXT: "stablehlo.select"(%p, %0, %x) : (tensor<4x8xi1>, tensor<4x8xf32>, tensor<4x8xf32>)
  %1 = stablehlo.select %p, %0, %x : tensor<4x8xi1>, tensor<4x8xf32>
  // CHECK-NEXT: "stablehlo.compare"(%0, %1) <{comparison_direction = "LT", compare_type = "FLOAT"}>
  %2 = stablehlo.compare LT, %0, %1, FLOAT : (tensor<4x8xf32>, tensor<4x8xf32>) -> tensor<4x8xi1>
  // CHECK-NEXT: "stablehlo.compare"(%0, %1) <{comparison_direction = #stablehlo<comparison_direction GT>}>
  %3 = "stablehlo.compare"(%0, %1) <{comparison_direction = #stablehlo<comparison_direction GT>}> : (tensor<4x8xf32>, tensor<4x8xf32>) -> tensor<4x8xi1>
  // CHECK-NEXT: "stablehlo.slice"(%0) <{start_indices = array<i64: 0, 1>, limit_indices = array<i64: 4, 8>, strides = array<i64: 1, 2>}>
  %4 = stablehlo.slice %0 [0:4, 1:8:2] : (tensor<4x8xf32>) -> tensor<4x4xf32>
  // CHECK-NEXT: "stablehlo.constant"() <{value = dense<0xff800000> : tensor<f32>}>
  %5 = stablehlo.constant dense<0xFF800000> : tensor<f32>
  // CHECK-NEXT: "stablehlo.reduce_precision"(%0) <{format = "e8m7"}>
  %6 = stablehlo.reduce_precision %0, format = e8m7 : tensor<4x8xf32>
  return %6 : tensor<4x8xf32>
}

// -----

// CHECK-LABEL: func.func @structured
func.func @structured(%x: tensor<2x8x8x3xf32>, %w: tensor<3x3x3x4xf32>) -> tensor<2x4x8x4xf32> {
  // CHECK-NEXT: "stablehlo.convolution"(%x, %w)
  // CHECK-SAME: dimension_numbers = #stablehlo.conv<[b, 0, 1, f]x[0, 1, i, o]->[b, 0, 1, f]>
  %0 = stablehlo.convolution(%x, %w) dim_numbers = [b, 0, 1, f]x[0, 1, i, o]->[b, 0, 1, f], window = {stride = [2, 1], pad = [[0, 1], [1, 1]], reverse = [false, false]} {batch_group_count = 1 : i64, feature_group_count = 1 : i64, precision_config = [#stablehlo<precision DEFAULT>, #stablehlo<precision DEFAULT>]} : (tensor<2x8x8x3xf32>, tensor<3x3x3x4xf32>) -> tensor<2x4x8x4xf32>
  %zero = stablehlo.constant dense<0.0> : tensor<f32>
  %one = stablehlo.constant dense<1> : tensor<i32>
  // CHECK:      "stablehlo.reduce"(%x, %zero) <{dimensions = array<i64: 1, 2>}> ({
  // CHECK:      "stablehlo.maximum"
  %1 = stablehlo.reduce(%x init: %zero) applies stablehlo.maximum across dimensions = [1, 2] : (tensor<2x8x8x3xf32>, tensor<f32>) -> tensor<2x3xf32>
  // The arguments of a reducer are pairs in the pretty syntax, those of one side behind those of the other in the region.
  // CHECK:      "stablehlo.reduce"(%1, %1, %zero, %zero)
  // CHECK-NEXT: ^{{.*}}(%a: tensor<f32>, %c: tensor<f32>, %b: tensor<f32>, %d: tensor<f32>)
  %2:2 = stablehlo.reduce(%1 init: %zero), (%1 init: %zero) across dimensions = [1] : (tensor<2x3xf32>, tensor<2x3xf32>, tensor<f32>, tensor<f32>) -> (tensor<2xf32>, tensor<2xf32>)
   reducer(%a: tensor<f32>, %b: tensor<f32>) (%c: tensor<f32>, %d: tensor<f32>)  {
    %s = stablehlo.add %a, %b : tensor<f32>
    %t = stablehlo.add %c, %d : tensor<f32>
    stablehlo.return %s, %t : tensor<f32>, tensor<f32>
  }
  // CHECK:      "stablehlo.dot_general"(%1, %1) <{
  // CHECK-SAME: dot_dimension_numbers = #stablehlo.dot<lhs_batching_dimensions = [0], rhs_batching_dimensions = [0], lhs_contracting_dimensions = [1], rhs_contracting_dimensions = [1]>
  %3 = stablehlo.dot_general %1, %1, batching_dims = [0] x [0], contracting_dims = [1] x [1], precision = [HIGHEST, DEFAULT], algorithm = <lhs_precision_type = tf32, rhs_precision_type = tf32> : (tensor<2x3xf32>, tensor<2x3xf32>) -> tensor<2xf32>
  // CHECK:      "stablehlo.composite"(%{{[0-9]+}}) <{name = "chlo.f", composite_attributes = {k = 3 : i64}, decomposition = @f, version = 1 : i32}>
  %4 = stablehlo.composite "chlo.f" %3 {composite_attributes = {k = 3 : i64}, decomposition = @f, version = 1 : i32} : (tensor<2xf32>) -> tensor<2xf32>
  // CHECK:      "chlo.top_k"(%{{[0-9]+}}) <{k = 1 : i64}>
  %5:2 = chlo.top_k(%3, k = 1) : tensor<2xf32> -> (tensor<1xf32>, tensor<1xi32>)
  return %0 : tensor<2x4x8x4xf32>
}

// -----

// Locations, and aliases of them behind their uses, are skipped.
#loc1 = loc("x")
module @jit_f attributes {mhlo.num_partitions = 1 : i32} {
  // CHECK-LABEL: func.func public @main
  func.func public @main(%arg0: tensor<4xf32> loc("x")) -> (tensor<4xf32> {jax.result_info = "result"}) {
    // CHECK-NEXT: "stablehlo.sine"(%arg0)
    %0 = stablehlo.sine %arg0 : tensor<4xf32> loc(#loc4)
    return %0 : tensor<4xf32> loc(#loc)
  } loc(#loc)
} loc(#loc)
#loc = loc(unknown)
#loc2 = loc("f.py":11:51 to :61)
#loc3 = loc(callsite(#loc2 at #loc1))
#loc4 = loc("jit(f)/sin"(#loc3))

// -----

// CHECK: "sdy.mesh"() <{sym_name = "mesh", mesh = #sdy.sharding<["x"=2], device_ids=[1, 0]>}>
sdy.mesh @mesh = <["x"=2], device_ids=[1, 0]>
// CHECK: sdy.sharding = #sdy.sharding<@mesh, [{"x"}]>
func.func @sharded(%x: tensor<8xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"x"}]>}) -> tensor<8xf32> {
  // CHECK: sdy.sharding = #sdy.sharding_per_value<[<@mesh, [{}]>]>
  %0 = stablehlo.sine %x {sdy.sharding = #sdy.sharding_per_value<[<@mesh, [{}]>]>} : tensor<8xf32>
  return %0 : tensor<8xf32>
}
