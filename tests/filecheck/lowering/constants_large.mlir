// RUN: strata-opt %s -p lift-constants{bytes=8},te-to-loop | filecheck %s

// CHECK-LABEL: @f(%A: memref<4xf32>, %W: memref<4xf32>, %B: memref<4xf32>)
// CHECK-SAME: constants = array<i64: 1>, constant_values = [dense<[1.0, 2.0, 3.0, 4.0]> : tensor<4xf32>]
// CHECK-NEXT: %S = loop.constant "S" dense<2.0> : tensor<2xf32>
func.func @f(%A: tensor<4xf32>) -> tensor<4xf32> {
  %W = te.constant dense<[1.0, 2.0, 3.0, 4.0]> : tensor<4xf32>
  %S = te.constant dense<2.0> : tensor<2xf32>
  %B = te.compute "B" [i = 4]
      (%a = %A[i] : tensor<4xf32>, %w = %W[i] : tensor<4xf32>, %s = %S[0] : tensor<2xf32>) -> tensor<4xf32> {
    %0 = arith.mulf %a, %w : f32
    %1 = arith.addf %0, %s : f32
    te.yield %1 : f32
  }
  func.return %B : tensor<4xf32>
}
