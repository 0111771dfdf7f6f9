// RUN: strata-opt %s -p loop-to-low --split-input-file --verify-diagnostics

// expected-error@below {{loop-to-low takes the loop level: argument 0 of @tensors is of type tensor<4xf32>, expected a memref}}
func.func @tensors(%A: tensor<4xf32>) -> tensor<4xf32> {
  func.return %A : tensor<4xf32>
}

// -----

// expected-error@below {{argument 0 of @scalar is of type f32, expected a memref}}
func.func @scalar(%a: f32, %A: memref<4xf32>) {
  loop.for "i" %i = 4 { }
  func.return
}

// -----

// expected-error@below {{a result of @returns is of type memref<4xf32>, expected none: its results are its last arguments}}
func.func @returns(%A: memref<4xf32>) -> memref<4xf32> {
  func.return %A : memref<4xf32>
}

// -----

// A function that is lowered already beside one that is not.
func.func @loops(%A: memref<4xf32>) {
  loop.for "i" %i = 4 { }
  func.return
}
func.func @low(%A: memref<4xf32>) {
  // expected-error@below {{'arith.constant' is not an op of the loop level, which loop-to-low takes}}
  %c = arith.constant 0 : index
  func.return
}

// -----

// expected-error@below {{loop-to-low takes functions with one block: @declared has 0}}
func.func private @declared(memref<4xf32>)
