func.func @f(%A: tensor<4x5x6xf32>) -> tensor<4xf32> {
  %S = te.compute "S" [i = 4, j = 5, reduce k = 6] combine [add] (%a = %A[i, j, k] : tensor<4x5x6xf32>) -> tensor<4x5xf32> {
    te.yield %a : f32
  }
  %T = te.compute "T" [i = 4, reduce j = 5] combine [add] (%s = %S[i, j] : tensor<4x5xf32>) -> tensor<4xf32> {
    te.yield %s : f32
  }
  func.return %T : tensor<4xf32>
}
