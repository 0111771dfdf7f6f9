// RUN: strata-opt %s --split-input-file --verify-diagnostics

func.func @f() {
  %c4 = arith.constant 4 : index
  scf.for %i = %c4 to %c4 step %c4 {
    // expected-error@+1 {{the constant 'W' does not stand outside all loops}}
    %W = loop.constant "W" dense<1.0> : tensor<4xf32>
  }
  func.return
}
// -----
func.func @f() {
  // expected-error@+1 {{the buffer of a constant of type tensor<4xf32> is no memref<5xf32>}}
  %W = "loop.constant"() <{label = "W", value = dense<1.0> : tensor<4xf32>}> : () -> memref<5xf32>
  func.return
}
// -----
func.func @f() {
  %W = loop.constant "W" dense<1.0> : tensor<4xf32>
  loop.for "i" %i = 4 {
    // expected-error@+1 {{the constant 'W' is written}}
    loop.block "W" [i = 4 at %i] () -> (%W[i] : memref<4xf32>) {
      %0 = arith.constant 1.0 : f32
      loop.yield %0 : f32
    }
  }
  func.return
}
// -----
func.func @f() {
  // expected-error@+1 {{expected a memref type, got tensor<4xf32>}}
  memref.global "private" constant @W : tensor<4xf32> = dense<1.0>
  func.return
}
// -----
func.func @f() {
  // expected-error@+2 {{Shape mismatch in dense literal. Expected [4] shape from the type, but got [2] shape.}}
  memref.global "private" constant @W : memref<4xf32> = dense<[1.0, 2.0]>
  func.return
}
// -----
// expected-error@+1 {{the initial value of a memref<4xf32> is no tensor<5xf32>}}
"memref.global"() <{sym_name = "W", type = memref<4xf32>, initial_value = dense<1.0> : tensor<5xf32>}> : () -> ()
