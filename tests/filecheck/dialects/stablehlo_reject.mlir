// RUN: strata-opt %s --split-input-file --verify-diagnostics

func.func @other_code(%x: tensor<4x4xf32>) -> tensor<4x4xf32> {
  // expected-error@below {{stablehlo.custom_call is not read: it calls @lapack_spotrf_ffi, which is code outside of the text}}
  %0 = stablehlo.custom_call @lapack_spotrf_ffi(%x) {backend_config = "x"} : (tensor<4x4xf32>) -> tensor<4x4xf32>
  return %0 : tensor<4x4xf32>
}

// -----

func.func @random(%s: tensor<2xui64>) -> tensor<4xui32> {
  // expected-error@below {{stablehlo.rng_bit_generator is not read: te has no random numbers}}
  %0, %1 = stablehlo.rng_bit_generator %s, algorithm = DEFAULT : (tensor<2xui64>) -> (tensor<2xui64>, tensor<4xui32>)
  return %1 : tensor<4xui32>
}

// -----

func.func @shape(%x: tensor<?xf32>) -> tensor<i32> {
  // expected-error@below {{stablehlo.get_dimension_size is not read: shapes of te are static: export for shapes of numbers}}
  %0 = stablehlo.get_dimension_size %x, dim = 0 : (tensor<?xf32>) -> tensor<i32>
  return %0 : tensor<i32>
}

// -----

func.func @unknown(%x: tensor<4xf32>) -> tensor<4xf32> {
  // expected-error@below {{stablehlo.frobnicate}}
  %0 = stablehlo.frobnicate %x : tensor<4xf32>
  return %0 : tensor<4xf32>
}

// -----

func.func @word(%x: tensor<4x8xf32>) -> tensor<8x4xf32> {
  // expected-error@below {{this op has no 'perm'}}
  %0 = stablehlo.transpose %x, perm = [1, 0] : (tensor<4x8xf32>) -> tensor<8x4xf32>
  return %0 : tensor<8x4xf32>
}

// -----

func.func @types(%x: tensor<4xf32>) -> tensor<4xf32> {
  // expected-error@below {{2 operands have 1 types}}
  %0 = stablehlo.add %x, %x : (tensor<4xf32>) -> tensor<4xf32>
  return %0 : tensor<4xf32>
}

// -----

func.func @cut(%x: tensor<4xf32>) -> tensor<4xf32> {
  // expected-error@below {{an operand is expected}}
  %0 = stablehlo.add %x, : tensor<4xf32>
  return %0 : tensor<4xf32>
}

// -----

func.func @quantised(%x: tensor<4xf32>) -> tensor<4xf32> {
  // expected-error@below {{quant.uniform}}
  %0 = stablehlo.convert %x : (tensor<4xf32>) -> tensor<4x!quant.uniform<i8:f32, 0.1>>
  return %x : tensor<4xf32>
}

// -----

sdy.mesh @mesh = <["x"=2], device_ids=[1, 0]> {stablehlo.mesh = {axes = []}}
func.func @sharded(%x: tensor<8x4xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"x"}, {}]>}) -> tensor<8x4xf32> {
  // expected-error@below {{stablehlo.all_reduce is not read: a te function runs on one device}}
  %0 = stablehlo.all_reduce %x : tensor<8x4xf32>
  return %0 : tensor<8x4xf32>
}

// -----

func.func @count(%x: tensor<4xf32>) -> tensor<4xf32> {
  // expected-error@below {{stablehlo.add has 2 operands, not 1}}
  %0 = stablehlo.add %x : tensor<4xf32>
  return %0 : tensor<4xf32>
}
