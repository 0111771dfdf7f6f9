func.func @f(%T: tensor<9x5xf32>, %I: tensor<4xi32>) -> tensor<4x5xf32> {
  %Y = te.gather "Y" [i = 4, d = 5] %T[%I[i], d] else 0.0 : tensor<9x5xf32>, tensor<4xi32> -> tensor<4x5xf32>
  func.return %Y : tensor<4x5xf32>
}
