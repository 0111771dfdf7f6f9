// RUN: strata-opt %s --split-input-file --verify-diagnostics

func.func @f(%T: tensor<9x5xf32>) -> tensor<9x5xf32> {
  // expected-error@+1 {{no dimension is data-dependent: read the table in a te.compute}}
  %Y = te.gather "Y" [i = 9, d = 5] %T[i, d] else 0.0 : tensor<9x5xf32> -> tensor<9x5xf32>
  func.return %Y : tensor<9x5xf32>
}
// -----
// expected-error@+2 {{the index 'I' holds f32; the values of an index are integers}}
// PAYLOAD: te_gather s/4xi32/4xf32/g
// -----
// expected-error@+2 {{the index 'I' holds i1; the values of an index are integers}}
// PAYLOAD: te_gather s/4xi32/4xi1/g
// -----
// expected-error@+2 {{the index 'I' is out of bounds in dimension 0: index i is 4 at i=4, d=0, the size is 4}}
// PAYLOAD: te_gather s/i = 4/i = 5/ s/4x5/5x5/g
// -----
// expected-error@+2 {{the read of table 'T' is out of bounds in dimension 1: index d is 5 at i=0, d=5, the size is 5}}
// PAYLOAD: te_gather s/d = 5/d = 6/ s/4x5/4x6/g
// -----
// expected-error@+2 {{the read of table 'T' has 2 dimensions but 1 indices}}
// PAYLOAD: te_gather s/, d = 5// s/, d]/]/ s/4x5xf32/4xf32/g
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
