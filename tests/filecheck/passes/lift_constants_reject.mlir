// RUN: strata-opt %s -p lift-constants --split-input-file --verify-diagnostics

// expected-error@unknown {{the attribute 'constant_values' of @f has not one value for each of its constants}}
func.func @f(%A: tensor<4xf32>) -> tensor<4xf32> attributes {constants = array<i64: 0>, constant_values = []} {
  func.return %A : tensor<4xf32>
}
// -----
// expected-error@unknown {{the attribute 'constant_values' of @f has dense<1.0> : tensor<5xf32> for argument 0 of type tensor<4xf32>}}
func.func @f(%A: tensor<4xf32>) -> tensor<4xf32>
    attributes {constants = array<i64: 0>, constant_values = [dense<1.0> : tensor<5xf32>]} {
  func.return %A : tensor<4xf32>
}
