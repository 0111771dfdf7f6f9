builtin.module {
  func.func @f(%A: tensor<8x6xf32>, %B: tensor<6x4xf32>) -> tensor<8x4xf32> {
    %T = te.compute "T" [m = 8, n = 4, reduce k = 6] combine [add]
        (%a = %A[m, k] : tensor<8x6xf32>, %b = %B[k, n] : tensor<6x4xf32>) -> tensor<8x4xf32> {
      %0 = arith.mulf %a, %b : f32
      te.yield %0 : f32
    }
    %C = te.compute "C" [m = 8, n = 4]
        (%t = %T[m, n] : tensor<8x4xf32>) -> tensor<8x4xf32> {
      %0 = arith.constant 5.000000e-01 : f32
      %1 = arith.cmpf ogt, %t, %0 : f32
      %2 = math.exp %t : f32
      %3 = arith.constant 2.500000e-01 : f32
      %4 = arith.mulf %t, %3 : f32
      %5 = arith.select %1, %2, %4 : f32
      te.yield %5 : f32
    }
    func.return %C : tensor<8x4xf32>
  }
}
