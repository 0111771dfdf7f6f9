func.func @f(%A: tensor<30x20xf32>, %B: tensor<20x40xf32>, %x: tensor<40xf32>) -> tensor<30xf32> {
  %P = te.compute "P" [m = 30, n = 40, reduce k = 20] combine [add]
      (%a = %A[m, k] : tensor<30x20xf32>, %b = %B[k, n] : tensor<20x40xf32>) -> tensor<30x40xf32> {
    %0 = arith.mulf %a, %b : f32
    te.yield %0 : f32
  }
  %Q = te.compute "Q" [m = 30, reduce n = 40] combine [add]
      (%p = %P[m, n] : tensor<30x40xf32>, %v = %x[n] : tensor<40xf32>) -> tensor<30xf32> {
    %0 = arith.mulf %p, %v : f32
    te.yield %0 : f32
  }
  func.return %Q : tensor<30xf32>
}
