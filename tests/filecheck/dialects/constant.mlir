// RUN: strata-opt %s | strata-opt - | filecheck %s
// RUN: strata-opt %s --print-op-generic | strata-opt - | filecheck %s

// CHECK-LABEL: @numbers
func.func @numbers() -> tensor<4xf32> {
  // CHECK-NEXT: te.constant dense<[1.0, -0.0, 0x7F800000, 0.1]> : tensor<4xf32>
  %W = te.constant dense<[1.0, -0.0, 0x7F800000, 0.1]> : tensor<4xf32>
  func.return %W : tensor<4xf32>
}

// CHECK-LABEL: @nan
func.func @nan() -> tensor<2xf32> {
  // CHECK-NEXT: te.constant dense<"0x0000803F0100A07F"> : tensor<2xf32>
  %W = te.constant dense<"0x0000803F0100A07F"> : tensor<2xf32>
  func.return %W : tensor<2xf32>
}

// CHECK-LABEL: @splat
func.func @splat() -> tensor<50x100xbf16> {
  // CHECK-NEXT: te.constant dense<0.5> : tensor<50x100xbf16>
  %W = te.constant dense<0.5> : tensor<50x100xbf16>
  func.return %W : tensor<50x100xbf16>
}

// CHECK-LABEL: @integers
func.func @integers() -> (tensor<2x2xi8>, tensor<2xui8>, tensor<2xi1>, tensor<i64>) {
  // CHECK-NEXT: te.constant dense<{{\[\[}}-128, 1], [2, 127]]> : tensor<2x2xi8>
  // CHECK-NEXT: te.constant dense<[0, 255]> : tensor<2xui8>
  // CHECK-NEXT: te.constant dense<[true, false]> : tensor<2xi1>
  // CHECK-NEXT: te.constant dense<-9223372036854775808> : tensor<i64>
  %A = te.constant dense<[[-128, 1], [2, 127]]> : tensor<2x2xi8>
  %B = te.constant dense<[0, 255]> : tensor<2xui8>
  %C = te.constant dense<[true, false]> : tensor<2xi1>
  %D = te.constant dense<-9223372036854775808> : tensor<i64>
  func.return %A, %B, %C, %D : tensor<2x2xi8>, tensor<2xui8>, tensor<2xi1>, tensor<i64>
}

// CHECK-LABEL: @resource
func.func @resource() -> (tensor<66xi8>, tensor<66xi8>) {
  // CHECK-NEXT: %W = te.constant dense_resource<[[NAME:W_[0-9a-f]+]]> : tensor<66xi8>
  // CHECK-NEXT: te.constant dense_resource<[[NAME]]> : tensor<66xi8>
  %W = te.constant dense_resource<W> : tensor<66xi8>
  %V = te.constant dense_resource<W> : tensor<66xi8>
  func.return %W, %V : tensor<66xi8>, tensor<66xi8>
}

// CHECK-LABEL: @names
func.func @names() -> (tensor<66xi8>, tensor<66xi8>) {
  // CHECK-NEXT: te.constant dense_resource<torch.W_[[DIGITS:[0-9a-f]+]]> : tensor<66xi8>
  // CHECK-NEXT: te.constant dense_resource<c_[[DIGITS]]> : tensor<66xi8>
  %W = te.constant dense_resource<torch.W> : tensor<66xi8>
  %V = te.constant dense_resource<"layer 1"> : tensor<66xi8>
  func.return %W, %V : tensor<66xi8>, tensor<66xi8>
}

// CHECK: dialect_resources: {
// CHECK-NEXT: builtin: {
// CHECK-NEXT: [[NAME]]: "0x01000000000102{{[0-9A-F]+}}"
// CHECK: }
{-#
  dialect_resources: {
    builtin: {
      W: "0x01000000000102030405060708090A0B0C0D0E0F101112131415161718191A1B1C1D1E1F202122232425262728292A2B2C2D2E2F303132333435363738393A3B3C3D3E3FFFFE",
      torch.W: "0x01000000000102030405060708090A0B0C0D0E0F101112131415161718191A1B1C1D1E1F202122232425262728292A2B2C2D2E2F303132333435363738393A3B3C3D3E3FFFFE",
      "layer 1": "0x01000000000102030405060708090A0B0C0D0E0F101112131415161718191A1B1C1D1E1F202122232425262728292A2B2C2D2E2F303132333435363738393A3B3C3D3E3FFFFE"
    }
  }
#-}
