// RUN: strata-opt %s | strata-opt - | filecheck %s
// RUN: strata-opt %s --print-op-generic | strata-opt - | filecheck %s

// CHECK-LABEL: @rows
func.func @rows(%T: tensor<100x16xf32>, %I: tensor<5xi64>) -> tensor<5x16xf32> {
  // CHECK: %Y = te.gather "Y" [i = 5, d = 16]
  // CHECK-NEXT: %T[%I[i], d] else 0.0 : tensor<100x16xf32>, tensor<5xi64> -> tensor<5x16xf32>
  %Y = te.gather "Y" [i = 5, d = 16] %T[%I[i], d] else 0.0 : tensor<100x16xf32>, tensor<5xi64> -> tensor<5x16xf32>
  func.return %Y : tensor<5x16xf32>
}

// Two index tensors, one twice, a quasi-affine dimension, another value outside.
// CHECK-LABEL: @several
func.func @several(%T: tensor<4x9x7xi32>, %I: tensor<6xi8>, %J: tensor<6x3xi32>) -> tensor<6x6xi32> {
  // CHECK: %T[%I[a], a + b floordiv 2, %J[a, b floordiv 2]] else -1 : tensor<4x9x7xi32>, tensor<6xi8>, tensor<6x3xi32> -> tensor<6x6xi32>
  %Y = te.gather "Y" [a = 6, b = 6] %T[%I[a], a + b floordiv 2, %J[a, b floordiv 2]] else -1
      : tensor<4x9x7xi32>, tensor<6xi8>, tensor<6x3xi32> -> tensor<6x6xi32>
  func.return %Y : tensor<6x6xi32>
}

// CHECK-LABEL: @blocks
func.func @blocks(%T: memref<9x5xf32>, %I: memref<6xi32>, %Y: memref<6x5xf32>) attributes {outputs = 1 : i64} {
  // CHECK: loop.gather "Y" [i = 6 at %i.0 * 4 + %i.1, d = 5 at %d] where (%i.0 * -4 - %i.1 + 5 >= 0)
  // CHECK-NEXT: %T[%I[i], -d + 4] else nan : memref<9x5xf32>, memref<6xi32> -> (%Y[i, d] : memref<6x5xf32>) origin "Y"[i, d] attributes {hint = 1 : i64}
  loop.for "i.0" %i.0 = 2 {
    loop.for "i.1" %i.1 = 4 {
      loop.for "d" %d = 5 {
        loop.gather "Y" [i = 6 at %i.0 * 4 + %i.1, d = 5 at %d] where (%i.0 * -4 - %i.1 + 5 >= 0)
            %T[%I[i], 4 - d] else nan : memref<9x5xf32>, memref<6xi32>
            -> (%Y[i, d] : memref<6x5xf32>) origin "Y"[i, d] attributes {hint = 1 : i64}
      }
    }
  }
  func.return
}
