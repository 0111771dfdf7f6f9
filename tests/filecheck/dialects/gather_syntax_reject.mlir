// RUN: strata-opt %s --split-input-file --verify-diagnostics

func.func @f(%T: tensor<9xf32>, %I: tensor<4xi32>) -> tensor<4xf32> {
  // expected-error@+1 {{expected 2 tensor or memref types: of the table, then of each index}}
  %Y = te.gather "Y" [i = 4] %T[%I[i]] else 0.0 : tensor<9xf32> -> tensor<4xf32>
  func.return %Y : tensor<4xf32>
}
// -----
func.func @f(%T: tensor<9xi32>, %I: tensor<4xi32>) -> tensor<4xi32> {
  // expected-error@+1 {{0.5 is not a value of type i32}}
  %Y = te.gather "Y" [i = 4] %T[%I[i]] else 0.5 : tensor<9xi32>, tensor<4xi32> -> tensor<4xi32>
  func.return %Y : tensor<4xi32>
}
// -----
func.func @f(%T: tensor<9xindex>, %I: tensor<4xi32>) -> tensor<4xindex> {
  // expected-error@+1 {{a table of index cannot be gathered from}}
  %Y = te.gather "Y" [i = 4] %T[%I[i]] else 0 : tensor<9xindex>, tensor<4xi32> -> tensor<4xindex>
  func.return %Y : tensor<4xindex>
}
