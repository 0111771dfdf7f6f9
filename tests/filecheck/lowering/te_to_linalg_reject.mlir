// RUN: strata-opt %s -p convert-te-to-linalg --split-input-file --verify-diagnostics

func.func @mixed(%A: tensor<4xf32>) -> tensor<4xf32> {
  // expected-error@below {{'math.exp' is not an op of the te level, which convert-te-to-linalg takes}}
  %B = math.exp %A : tensor<4xf32>
  func.return %B : tensor<4xf32>
}

// -----

// expected-error@below {{convert-te-to-linalg takes the te level: argument 1 of @scalar is of type f32, expected a tensor}}
func.func @scalar(%A: tensor<4xf32>, %a: f32) -> tensor<4xf32> {
  func.return %A : tensor<4xf32>
}
