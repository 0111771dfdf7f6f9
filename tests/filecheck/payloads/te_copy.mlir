func.func @f(%A: tensor<8xf32>) -> tensor<8xf32> {
  %B = te.compute "B" [h = 8] (%a = %A[h] : tensor<8xf32>) -> tensor<8xf32> {
    te.yield %a : f32
  }
  func.return %B : tensor<8xf32>
}
