// RUN: strata-opt %s -p cpu -t llvm --split-input-file --verify-diagnostics

func.func @mixed(%A: tensor<4xf32>) -> tensor<4xf32> {
  %B = func.call @group(%A) : (tensor<4xf32>) -> tensor<4xf32>
  // expected-error@below {{@mixed calls functions, so it has only calls and te.constant beside, not 'te.compute'}}
  %C = te.compute "C" [i = 4] (%b = %B[i] : tensor<4xf32>) -> tensor<4xf32> {
    te.yield %b : f32
  }
  func.return %C : tensor<4xf32>
}
func.func private @group(%A: tensor<4xf32>) -> tensor<4xf32> {
  func.return %A : tensor<4xf32>
}

// -----

// expected-error@below {{@even calls itself, at once or through others}}
func.func @even(%A: tensor<4xf32>) -> tensor<4xf32> {
  %B = func.call @odd(%A) : (tensor<4xf32>) -> tensor<4xf32>
  func.return %B : tensor<4xf32>
}
func.func private @odd(%A: tensor<4xf32>) -> tensor<4xf32> {
  %B = func.call @even(%A) : (tensor<4xf32>) -> tensor<4xf32>
  func.return %B : tensor<4xf32>
}

// -----

func.func @loops(%A: memref<4xf32>) attributes {outputs = 1 : i64} {
  func.call @group(%A) : (memref<4xf32>) -> ()
  // expected-error@below {{@loops calls functions, so it has only calls, loop.alloc, memref.copy, views, and guards beside, not 'loop.for'}}
  loop.for "i" %i = 4 { }
  func.return
}
func.func private @group(%A: memref<4xf32>) attributes {outputs = 1 : i64} {
  func.return
}

// -----

func.func @f(%A: memref<4xf32>) {
  // expected-error@below {{'@nowhere' could not be found in symbol table}}
  func.call @nowhere(%A) : (memref<4xf32>) -> ()
  func.return
}
