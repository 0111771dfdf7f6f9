// RUN: strata-opt %s -p te-to-loop --split-input-file --verify-diagnostics

// expected-error@below {{te-to-loop takes the te level: argument 0 of @scalar is of type f32, expected a tensor}}
func.func @scalar(%a: f32, %A: tensor<4xf32>) -> tensor<4xf32> {
  func.return %A : tensor<4xf32>
}

// -----

func.func @mixed(%A: tensor<4xf32>) -> tensor<4xf32> {
  // expected-error@below {{'loop.for' is not an op of the te level, which te-to-loop takes}}
  loop.for "i" %i = 4 { }
  func.return %A : tensor<4xf32>
}
