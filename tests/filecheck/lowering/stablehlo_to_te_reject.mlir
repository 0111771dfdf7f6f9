// RUN: strata-opt %s -p convert-stablehlo-to-te --split-input-file --verify-diagnostics

// expected-error@below {{convert-stablehlo-to-te: 'func.func' has a value of type tensor<?x4xf32>: shapes of te are static}}
func.func @dynamic(%x: tensor<?x4xf32>) -> tensor<?x4xf32> {
  %0 = stablehlo.sine %x : tensor<?x4xf32>
  return %0 : tensor<?x4xf32>
}

// -----

func.func @complex(%x: tensor<4xf32>) -> tensor<4xf32> {
  // expected-error@below {{'stablehlo.convert' has a value of type tensor<4xcomplex<f32>>: te has no elements of complex<f32>}}
  %0 = stablehlo.convert %x : (tensor<4xf32>) -> tensor<4xcomplex<f32>>
  %1 = stablehlo.convert %0 : (tensor<4xcomplex<f32>>) -> tensor<4xf32>
  return %1 : tensor<4xf32>
}

// -----

func.func @stated_type(%x: tensor<4x8xf32>) -> tensor<8x5xf32> {
  // expected-error@below {{'stablehlo.transpose' states a result of type f32[8, 5], and its operands and attributes give f32[8, 4]}}
  %0 = stablehlo.transpose %x, dims = [1, 0] : (tensor<4x8xf32>) -> tensor<8x5xf32>
  return %0 : tensor<8x5xf32>
}

// -----

func.func @dimensions(%x: tensor<4x8xf32>) -> tensor<8x4xf32> {
  // expected-error@below {{'stablehlo.transpose' has the permutation [1, 1], which are not dimensions below 2, each once}}
  %0 = stablehlo.transpose %x, dims = [1, 1] : (tensor<4x8xf32>) -> tensor<8x4xf32>
  return %0 : tensor<8x4xf32>
}

// -----

func.func @loop_of_data(%x: tensor<i32>) -> tensor<i32> {
  // expected-error@below {{'stablehlo.while' runs as often as data decide: loops of a known number of iterations are unrolled}}
  %r = stablehlo.while(%i = %x) : tensor<i32>
  cond {
    %nine = stablehlo.constant dense<9> : tensor<i32>
    %c = stablehlo.compare LT, %i, %nine, SIGNED : (tensor<i32>, tensor<i32>) -> tensor<i1>
    stablehlo.return %c : tensor<i1>
  } do {
    %j = stablehlo.add %i, %i : tensor<i32>
    stablehlo.return %j : tensor<i32>
  }
  return %r : tensor<i32>
}

// -----

func.func @endless(%x: tensor<4xf32>) -> tensor<4xf32> {
  %true = stablehlo.constant dense<true> : tensor<i1>
  // expected-error@below {{'stablehlo.while' runs more than 1024 times: unrolled, it would be too large}}
  %r = stablehlo.while(%a = %x) : tensor<4xf32>
  cond {
    stablehlo.return %true : tensor<i1>
  } do {
    stablehlo.return %a : tensor<4xf32>
  }
  return %r : tensor<4xf32>
}

// -----

func.func public @main(%x: tensor<4xf32>) -> tensor<4xf32> {
  // expected-error@below {{'stablehlo.composite' calls @missing, which the module does not define}}
  %0 = stablehlo.composite "chlo.f" %x {decomposition = @missing} : (tensor<4xf32>) -> tensor<4xf32>
  return %0 : tensor<4xf32>
}

// -----

func.func public @main(%x: tensor<4xf32>) -> tensor<4xf32> {
  %0 = call @again(%x) : (tensor<4xf32>) -> tensor<4xf32>
  return %0 : tensor<4xf32>
}
func.func private @again(%x: tensor<4xf32>) -> tensor<4xf32> {
  // expected-error@below {{'stablehlo.composite' calls @again, which calls itself}}
  %1 = stablehlo.composite "chlo.f" %x {decomposition = @again} : (tensor<4xf32>) -> tensor<4xf32>
  return %1 : tensor<4xf32>
}

// -----

func.func @elided() -> tensor<64x64xf32> {
  // expected-error@below {{'stablehlo.constant' has no elements: the text has the name '__elided__' in place of them}}
  %0 = stablehlo.constant dense_resource<__elided__> : tensor<64x64xf32>
  return %0 : tensor<64x64xf32>
}

// -----

func.func @no_elements(%x: tensor<4xf32>) -> tensor<4xf32> {
  %e = stablehlo.slice %x [2:2] : (tensor<4xf32>) -> tensor<0xf32>
  %s = stablehlo.sine %e : tensor<0xf32>
  // expected-error@below {{'stablehlo.add' has an operand of shape (0,), which has no elements}}
  %0 = stablehlo.add %s, %x : (tensor<0xf32>, tensor<4xf32>) -> tensor<4xf32>
  return %0 : tensor<4xf32>
}

// -----

func.func @bits(%x: tensor<4xf32>) -> tensor<4xi32> {
  // expected-error@below {{'stablehlo.bitcast_convert' reads the bits of values that are computed: te has no form of that}}
  %0 = stablehlo.bitcast_convert %x : (tensor<4xf32>) -> tensor<4xi32>
  return %0 : tensor<4xi32>
}

// -----

func.func @region(%x: tensor<4xf32>, %y: tensor<f32>) -> tensor<f32> {
  %zero = stablehlo.constant dense<0.0> : tensor<f32>
  // expected-error@below {{'stablehlo.reduce' has a region that reads a computed value from around it}}
  %0 = stablehlo.reduce(%x init: %zero) across dimensions = [0] : (tensor<4xf32>, tensor<f32>) -> tensor<f32>
   reducer(%a: tensor<f32>, %b: tensor<f32>) {
    %1 = stablehlo.add %a, %b : tensor<f32>
    %2 = stablehlo.multiply %1, %y : tensor<f32>
    stablehlo.return %2 : tensor<f32>
  }
  return %0 : tensor<f32>
}

// -----

func.func @writes(%x: tensor<900xf32>, %i: tensor<300x1xi32>, %u: tensor<300xf32>) -> tensor<900xf32> {
  // expected-error@below {{'stablehlo.scatter' makes 300 writes; up to 256 are compared for each element}}
  %0 = "stablehlo.scatter"(%x, %i, %u) <{scatter_dimension_numbers = #stablehlo.scatter<inserted_window_dims = [0], scatter_dims_to_operand_dims = [0], index_vector_dim = 1>}> ({
  ^bb0(%a: tensor<f32>, %b: tensor<f32>):
    stablehlo.return %b : tensor<f32>
  }) : (tensor<900xf32>, tensor<300x1xi32>, tensor<300xf32>) -> tensor<900xf32>
  return %0 : tensor<900xf32>
}

// -----

func.func @without_form(%x: tensor<4xf32>) -> tensor<4xf32> {
  // expected-error@below {{'chlo.lgamma' has no te form}}
  %0 = chlo.lgamma %x : tensor<4xf32> -> tensor<4xf32>
  return %0 : tensor<4xf32>
}

// -----

func.func @stride(%x: tensor<1x8x8x3xf32>, %w: tensor<3x3x3x4xf32>) -> tensor<1x4x8x4xf32> {
  // expected-error@below {{'stablehlo.convolution' has the window_strides [2, 0], expected integers of at least 1}}
  %y = stablehlo.convolution(%x, %w) dim_numbers = [b, 0, 1, f]x[0, 1, i, o]->[b, 0, 1, f], window = {stride = [2, 0], pad = [[0, 1], [1, 1]]} {batch_group_count = 1 : i64, feature_group_count = 1 : i64} : (tensor<1x8x8x3xf32>, tensor<3x3x3x4xf32>) -> tensor<1x4x8x4xf32>
  return %y : tensor<1x4x8x4xf32>
}
