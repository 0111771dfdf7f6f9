// RUN: strata-opt %s -p fold-constants --split-input-file | filecheck %s

// CHECK-LABEL: @chain
// CHECK-NEXT: %U = te.constant dense<{{\[\[}}2.0, 1.0], [0.0, 1.0]]> : tensor<2x2xf32>
// CHECK-NEXT: %S = te.constant dense<[3.0, 1.0]> : tensor<2xf32>
// CHECK-NEXT: %Y = te.compute "Y"
// CHECK-NOT: te.constant
func.func @chain(%X: tensor<2xf32>) -> tensor<2xf32> {
  %T = te.constant dense<[[1.0, 0.0], [0.5, 0.5]]> : tensor<2x2xf32>
  %U = te.compute "U" [i = 2, j = 2] (%t = %T[j, i] : tensor<2x2xf32>) -> tensor<2x2xf32> {
    %0 = arith.addf %t, %t : f32
    te.yield %0 : f32
  }
  %S = te.compute "S" [i = 2, reduce k = 2] combine [add] (%u = %U[i, k] : tensor<2x2xf32>) -> tensor<2xf32> {
    te.yield %u : f32
  }
  %Y = te.compute "Y" [i = 2]
      (%x = %X[i] : tensor<2xf32>, %s = %S[i] : tensor<2xf32>, %u = %U[i, 0] : tensor<2x2xf32>) -> tensor<2xf32> {
    %0 = arith.mulf %x, %s : f32
    %1 = arith.addf %0, %u : f32
    te.yield %1 : f32
  }
  func.return %Y : tensor<2xf32>
}

// What is large is not computed here.
// CHECK-LABEL: @large
// CHECK: te.compute "M" [i = 64, j = 64]
func.func @large() -> tensor<64x64xf32> {
  %T = te.constant dense<1.0> : tensor<64xf32>
  %M = te.compute "M" [i = 64, j = 64] (%a = %T[i] : tensor<64xf32>, %b = %T[j] : tensor<64xf32>) -> tensor<64x64xf32> {
    %0 = arith.mulf %a, %b : f32
    te.yield %0 : f32
  }
  func.return %M : tensor<64x64xf32>
}

// CHECK-LABEL: @gathered
// CHECK-NEXT: te.constant dense<[7, 5, 0]> : tensor<3xui8>
// CHECK-NEXT: func.return
func.func @gathered() -> tensor<3xui8> {
  %T = te.constant dense<[5, 7]> : tensor<2xui8>
  %I = te.constant dense<[1, 0, -1]> : tensor<3xi64>
  %Y = te.gather "Y" [i = 3] %T[%I[i]] else 0 : tensor<2xui8>, tensor<3xi64> -> tensor<3xui8>
  func.return %Y : tensor<3xui8>
}
