// RUN: strata-opt %s -p te-to-loop,reorder-contiguous | filecheck %s

// CHECK-LABEL: @matmul
func.func @matmul(%A: tensor<4x8xf32>, %B: tensor<8x6xf32>) -> tensor<4x6xf32> {
  // CHECK: loop.for "m"
  // CHECK-NEXT: loop.for "k"
  // CHECK-NEXT: loop.for "l"
  %C = te.compute "C" [m = 4, l = 6, reduce k = 8] combine [add]
      (%a = %A[m, k] : tensor<4x8xf32>, %b = %B[k, l] : tensor<8x6xf32>) -> tensor<4x6xf32> {
    %0 = arith.mulf %a, %b : f32
    te.yield %0 : f32
  }
  func.return %C : tensor<4x6xf32>
}
