// RUN: strata-opt %s -p promote-buffers --split-input-file --verify-diagnostics
// RUN: not strata-opt %s -p extend-floats --split-input-file 2>&1 | filecheck %s

// CHECK: 7:3: error: extend-floats takes the low level, which 'loop.for' here is above
func.func @loops(%A: memref<4xf32>) {
  // expected-error@below {{promote-buffers takes the low level, which 'loop.for' here is above}}
  loop.for "i" %i = 4 { }
  func.return
}

// -----

// CHECK: 15:1: error: extend-floats takes the low level, which 'func.func' here is above
// expected-error@below {{promote-buffers takes the low level, which 'func.func' here is above}}
func.func @tensors(%A: tensor<4xf32>) -> tensor<4xf32> {
  func.return %A : tensor<4xf32>
}
