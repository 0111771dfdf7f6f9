// RUN: strata-opt %s | strata-opt - | filecheck %s
// RUN: strata-opt %s --print-op-generic | strata-opt - | filecheck %s

// CHECK-LABEL: @table
func.func @table(%A: memref<4xf32>) attributes {outputs = 1 : i64} {
  // CHECK-NEXT: %W = loop.constant "W" dense<[1.0, -1.0, 0.5, 0.0]> : tensor<4xf32>
  %W = loop.constant "W" dense<[1.0, -1.0, 0.5, 0.0]> : tensor<4xf32>
  loop.for "i" %i = 4 {
    // CHECK: (%w = %W[i] : memref<4xf32>)
    loop.block "A" [i = 4 at %i] (%w = %W[i] : memref<4xf32>) -> (%A[i] : memref<4xf32>) {
      loop.yield %w : f32
    }
  }
  func.return
}

// CHECK-LABEL: @argument
// CHECK-SAME: constants = array<i64: 0>, constant_values = [dense_resource<[[NAME:W_[0-9a-f]+]]> : tensor<66xi8>]
func.func @argument(%W: memref<66xi8>, %A: memref<66xi8>)
    attributes {constants = array<i64: 0>, constant_values = [dense_resource<W> : tensor<66xi8>], outputs = 1 : i64} {
  func.return
}

// CHECK: memref.global "private" constant @T : memref<2x2xf32> = dense<{{\[\[}}1.0, 2.0], [3.0, 0x7F800000]]>
memref.global "private" constant @T : memref<2x2xf32> = dense<[[1.0, 2.0], [3.0, 0x7F800000]]>
// CHECK-NEXT: memref.global "private" constant @R : memref<66xi8> = dense_resource<[[NAME]]>
memref.global "private" constant @R : memref<66xi8> = dense_resource<W>
// CHECK-NEXT: memref.global @U : memref<4xf32> = uninitialized {alignment = 64 : i64}
memref.global @U : memref<4xf32> = uninitialized {alignment = 64 : i64}

// CHECK: [[NAME]]: "0x01000000000102{{[0-9A-F]+}}"
{-#
  dialect_resources: {
    builtin: {
      W: "0x01000000000102030405060708090A0B0C0D0E0F101112131415161718191A1B1C1D1E1F202122232425262728292A2B2C2D2E2F303132333435363738393A3B3C3D3E3FFFFE"
    }
  }
#-}
