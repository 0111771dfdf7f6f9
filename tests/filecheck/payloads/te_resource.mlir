func.func @f() -> tensor<4xi8> {
  %W = te.constant dense_resource<W> : tensor<4xi8>
  func.return %W : tensor<4xi8>
}
