// RUN: strata-opt %s --split-input-file --verify-diagnostics

func.func @f(%T: tensor<9x5xf32>) -> tensor<9x5xf32> {
  // expected-error@+1 {{no dimension is data-dependent: read the table in a te.compute}}
  %Y = te.gather "Y" [i = 9, d = 5] %T[i, d] else 0.0 : tensor<9x5xf32> -> tensor<9x5xf32>
  func.return %Y : tensor<9x5xf32>
}
// -----
func.func @f(%T: tensor<9x5xf32>, %I: tensor<4xf32>) -> tensor<4x5xf32> {
  // expected-error@+1 {{the index 'I' holds f32; the values of an index are integers}}
  %Y = te.gather "Y" [i = 4, d = 5] %T[%I[i], d] else 0.0 : tensor<9x5xf32>, tensor<4xf32> -> tensor<4x5xf32>
  func.return %Y : tensor<4x5xf32>
}
// -----
func.func @f(%T: tensor<9x5xf32>, %I: tensor<4xi1>) -> tensor<4x5xf32> {
  // expected-error@+1 {{the index 'I' holds i1; the values of an index are integers}}
  %Y = te.gather "Y" [i = 4, d = 5] %T[%I[i], d] else 0.0 : tensor<9x5xf32>, tensor<4xi1> -> tensor<4x5xf32>
  func.return %Y : tensor<4x5xf32>
}
// -----
func.func @f(%T: tensor<9x5xf32>, %I: tensor<4xi32>) -> tensor<5x5xf32> {
  // expected-error@+1 {{the index 'I' is out of bounds in dimension 0: index i is 4 at i=4, d=0, the size is 4}}
  %Y = te.gather "Y" [i = 5, d = 5] %T[%I[i], d] else 0.0 : tensor<9x5xf32>, tensor<4xi32> -> tensor<5x5xf32>
  func.return %Y : tensor<5x5xf32>
}
// -----
func.func @f(%T: tensor<9x5xf32>, %I: tensor<4xi32>) -> tensor<4x6xf32> {
  // expected-error@+1 {{the read of table 'T' is out of bounds in dimension 1: index d is 5 at i=0, d=5, the size is 5}}
  %Y = te.gather "Y" [i = 4, d = 6] %T[%I[i], d] else 0.0 : tensor<9x5xf32>, tensor<4xi32> -> tensor<4x6xf32>
  func.return %Y : tensor<4x6xf32>
}
// -----
func.func @f(%T: tensor<9x5xf32>, %I: tensor<4xi32>) -> tensor<4xf32> {
  // expected-error@+1 {{the read of table 'T' has 2 dimensions but 1 indices}}
  %Y = te.gather "Y" [i = 4] %T[%I[i]] else 0.0 : tensor<9x5xf32>, tensor<4xi32> -> tensor<4xf32>
  func.return %Y : tensor<4xf32>
}
// -----
func.func @f(%T: tensor<9xf32>, %I: tensor<4xi32>) -> tensor<5xf32> {
  // expected-error@+1 {{the result of 'Y' must be tensor<4xf32> after its axes and its table, not tensor<5xf32>}}
  %Y = te.gather "Y" [i = 4] %T[%I[i]] else 0.0 : tensor<9xf32>, tensor<4xi32> -> tensor<5xf32>
  func.return %Y : tensor<5xf32>
}
// -----
func.func @f(%T: tensor<9xf32>, %I: tensor<4xi32>) -> tensor<f32> {
  // expected-error@+1 {{a gather has spatial axes only; reduce what it gives}}
  %Y = te.gather "Y" [reduce i = 4] %T[%I[i]] else 0.0 : tensor<9xf32>, tensor<4xi32> -> tensor<f32>
  func.return %Y : tensor<f32>
}
// -----
func.func @f(%T: memref<9xf32>, %I: memref<4xi32>, %Y: memref<4xf64>) attributes {outputs = 1 : i64} {
  loop.for "i" %i = 4 {
    // expected-error@+1 {{a gather writes one target, of the table's element type}}
    loop.gather "Y" [i = 4 at %i] %T[%I[i]] else 0.0 : memref<9xf32>, memref<4xi32> -> (%Y[i] : memref<4xf64>)
  }
  func.return
}
// -----
func.func @f(%T: memref<9xf32>, %I: memref<4xi32>, %Y: memref<4xf32>) attributes {outputs = 1 : i64} {
  loop.for "i" %i = 5 {
    // expected-error@+1 {{axis 'i' of block 'Y' is bound to %i, which is 4 at %i=4, outside its extent 4}}
    loop.gather "Y" [i = 4 at %i] %T[%I[i]] else 0.0 : memref<9xf32>, memref<4xi32> -> (%Y[i] : memref<4xf32>)
  }
  func.return
}
