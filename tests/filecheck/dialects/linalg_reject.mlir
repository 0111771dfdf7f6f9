// RUN: strata-opt %s --split-input-file --verify-diagnostics

func.func @packed(%A: tensor<4x8xf32>, %B: tensor<2x2x2x4xf32>) {
  // expected-error@below {{linalg.pack has 2 tiles for dimensions [0, 0] in the order [0, 1]}}
  %0 = linalg.pack %A inner_dims_pos = [0, 0] inner_tiles = [2, 4] into %B : tensor<4x8xf32> -> tensor<2x2x2x4xf32>
  return
}

// -----

func.func @unpacked(%A: tensor<4x8xf32>, %B: tensor<2x2x2x4xf32>) {
  // expected-error@below {{linalg.unpack has 2 tiles and makes a rank of 4 of 2}}
  %0 = linalg.unpack %A inner_dims_pos = [0, 1] inner_tiles = [2, 4] into %B : tensor<4x8xf32> -> tensor<2x2x2x4xf32>
  return
}

// -----

func.func @random(%A: tensor<4x8xf32>, %a: f64, %s: i32) {
  // expected-error@below {{linalg.fill_rng_2d is not read: te has no random numbers}}
  %0 = linalg.fill_rng_2d ins(%a, %a, %s : f64, f64, i32) outs(%A : tensor<4x8xf32>) -> tensor<4x8xf32>
  return
}

// -----

func.func @generic_syntax(%A: tensor<4x8xf32>, %B: tensor<2x2x2x4xf32>) {
  // expected-error@below {{linalg.winograd_filter_transform is not read: give the convolution itself}}
  %0 = "linalg.winograd_filter_transform"(%A, %B) : (tensor<4x8xf32>, tensor<2x2x2x4xf32>) -> tensor<2x2x2x4xf32>
  return
}

// -----

func.func @inputs(%A: tensor<4x8xf32>) {
  // expected-error@below {{linalg.matmul has 2 inputs, not 1}}
  %0 = linalg.matmul ins(%A : tensor<4x8xf32>) outs(%A : tensor<4x8xf32>) -> tensor<4x8xf32>
  return
}

// -----

func.func @outputs(%A: tensor<4x8xf32>) {
  // expected-error@below {{linalg.exp has one output}}
  %0 = linalg.exp ins(%A : tensor<4x8xf32>) outs(%A, %A : tensor<4x8xf32>, tensor<4x8xf32>) -> tensor<4x8xf32>
  return
}

// -----

func.func @kindless(%A: tensor<4x8xf32>) {
  // expected-error@below {{linalg.elementwise has a kind, such as kind = #linalg.elementwise_kind<add>}}
  %0 = linalg.elementwise ins(%A : tensor<4x8xf32>) outs(%A : tensor<4x8xf32>) -> tensor<4x8xf32>
  return
}

// -----

func.func @kind(%A: tensor<4x8xf32>) {
  // expected-error@below {{'sine' is none of exp, log}}
  %0 = linalg.elementwise kind = #linalg.elementwise_kind<sine> ins(%A : tensor<4x8xf32>) outs(%A : tensor<4x8xf32>)
  return
}

// -----

func.func @elements(%A: tensor<4x8xi32>) {
  // expected-error@below {{exp is not for elements of type i32}}
  %0 = linalg.exp ins(%A : tensor<4x8xi32>) outs(%A : tensor<4x8xi32>) -> tensor<4x8xi32>
  return
}

// -----

func.func @converts(%A: tensor<4x8xf16>, %B: tensor<4x8xf32>) {
  // expected-error@below {{its operands are of type f16, f16, f32: it converts none}}
  %0 = linalg.add ins(%A, %A : tensor<4x8xf16>, tensor<4x8xf16>) outs(%B : tensor<4x8xf32>) -> tensor<4x8xf32>
  return
}

// -----

func.func @truth(%A: tensor<4x8xi1>) {
  // expected-error@below {{sub is not for elements of type i1}}
  %0 = linalg.sub ins(%A, %A : tensor<4x8xi1>, tensor<4x8xi1>) outs(%A : tensor<4x8xi1>) -> tensor<4x8xi1>
  return
}

// -----

func.func @complex(%A: tensor<4x8xcomplex<f32>>) {
  // expected-error@below {{its elements are of type complex<f32>, complex<f32>, not numbers}}
  %0 = linalg.exp ins(%A : tensor<4x8xcomplex<f32>>) outs(%A : tensor<4x8xcomplex<f32>>) -> tensor<4x8xcomplex<f32>>
  return
}

// -----

func.func @strides(%X: tensor<9x9xf32>, %W: tensor<3x3xf32>, %Y: tensor<7x7xf32>) {
  // expected-error@below {{linalg.conv_2d has 2 strides and dilations}}
  %0 = linalg.conv_2d {strides = dense<1> : tensor<3xi64>} ins(%X, %W : tensor<9x9xf32>, tensor<3x3xf32>) outs(%Y : tensor<7x7xf32>) -> tensor<7x7xf32>
  return
}

// -----

func.func @mapless(%A: tensor<4x8xf32>) {
  // expected-error@below {{linalg.contract has indexing_maps}}
  %0 = linalg.contract ins(%A, %A : tensor<4x8xf32>, tensor<4x8xf32>) outs(%A : tensor<4x8xf32>) -> tensor<4x8xf32>
  return
}

// -----

func.func @generic(%A: tensor<4x8xf32>) {
  // expected-error@below {{linalg.generic has indexing_maps and iterator_types}}
  %0 = linalg.generic ins(%A : tensor<4x8xf32>) outs(%A : tensor<4x8xf32>) {
  ^bb0(%a: f32, %b: f32):
    linalg.yield %a : f32
  } -> tensor<4x8xf32>
  return
}

// -----

func.func @iterators(%A: tensor<4x8xf32>) {
  // expected-error@below {{'serial' is not a valid IteratorType of iterators}}
  %0 = linalg.generic {indexing_maps = [], iterator_types = ["serial"]} ins(%A : tensor<4x8xf32>) outs(%A : tensor<4x8xf32>) {
  ^bb0(%a: f32, %b: f32):
    linalg.yield %a : f32
  } -> tensor<4x8xf32>
  return
}

// -----

func.func @permutation(%A: tensor<4x8xf32>, %B: tensor<8x4xf32>) {
  // expected-error@below {{[1, 1] are not dimensions of tensor<8x4xf32>, each once}}
  %0 = linalg.transpose ins(%A : tensor<4x8xf32>) outs(%B : tensor<8x4xf32>) permutation = [1, 1]
  return
}

// -----

func.func @wordless(%A: tensor<4x8xf32>, %B: tensor<8x4xf32>) {
  // expected-error@+2 {{linalg.transpose has an input, an output and permutation}}
  %0 = linalg.transpose ins(%A : tensor<4x8xf32>) outs(%B : tensor<8x4xf32>)
  return
}

// -----

func.func @all(%A: tensor<4x8xf32>, %B: tensor<4xf32>) {
  // expected-error@+2 {{linalg.reduce has inputs, outputs and dimensions}}
  %0 = linalg.reduce { arith.addf } ins(%A : tensor<4x8xf32>) outs(%B : tensor<4xf32>)
  return
}

// -----

func.func @unknown(%A: tensor<4x8xf32>, %B: tensor<4xf32>) {
  // expected-error@+2 {{'arith.plus' is not an op}}
  %0 = linalg.reduce { arith.plus } ins(%A : tensor<4x8xf32>) outs(%B : tensor<4xf32>) dimensions = [1]
  return
}

// -----

func.func @word(%A: tensor<4x8xf32>, %B: tensor<4xf32>) {
  // expected-error@below {{expected the name of an op, such as arith.addf}}
  %0 = linalg.reduce { addf } ins(%A : tensor<4x8xf32>) outs(%B : tensor<4xf32>) dimensions = [1]
  return
}

// -----

func.func @two(%A: tensor<4x8xf32>) {
  // expected-error@+2 {{linalg.map has one output}}
  %0:2 = linalg.map { math.exp } ins(%A : tensor<4x8xf32>) outs(%A, %A : tensor<4x8xf32>, tensor<4x8xf32>)
  return
}

// -----

func.func @normalised(%A: tensor<4x8xf32>) {
  // expected-error@+2 {{linalg.softmax has an input and an output}}
  %0 = linalg.softmax dimension(0) ins(%A, %A : tensor<4x8xf32>, tensor<4x8xf32>) outs(%A : tensor<4x8xf32>)
  return
}
