// RUN: strata-opt %s -p 'split-constants{names=W}' --split-input-file --verify-diagnostics

// expected-error@unknown {{@unknown has no input 'W' (it has X, V)}}
func.func @unknown(%X: memref<4xf32>, %V: memref<4xf32>, %Y: memref<4xf32>) attributes {outputs = 1 : i64} {
  loop.block "Y" [] () -> (%Y[0] : memref<4xf32>) {
    %0 = arith.constant 1.0 : f32
    loop.yield %0 : f32
  }
  func.return
}

// -----

// expected-error@unknown {{'W' cannot be constant: it is an output of @output}}
func.func @output(%X: memref<4xf32>, %W: memref<4xf32>) attributes {outputs = 1 : i64} {
  loop.block "W" [] (%x = %X[0] : memref<4xf32>) -> (%W[0] : memref<4xf32>) {
    loop.yield %x : f32
  }
  func.return
}

// -----

// expected-error@unknown {{'W' cannot be constant: @written writes it}}
func.func @written(%X: memref<4xf32>, %W: memref<4xf32>) {
  loop.block "W" [] (%x = %X[0] : memref<4xf32>) -> (%W[0] : memref<4xf32>) {
    loop.yield %x : f32
  }
  func.return
}

// -----

// expected-error@unknown {{@low is not at the loop level; lower it with te-to-loop}}
func.func @low(%W: memref<4xf32>) {
  func.return
}
