// RUN: strata-opt %s | strata-opt - | filecheck %s
// RUN: strata-opt %s --print-op-generic | strata-opt - | filecheck %s
// RUN: strata-opt %s -canonicalize -cse | filecheck %s
// RUN: strata-opt %s -p fold-constants | filecheck %s

// CHECK-LABEL: @rows
// CHECK-SAME: %X: tensor<512x8xf32> {te.dims = #te.dims<[S, 8]>}
// CHECK-SAME: attributes {te.sizes = #te.sizes<S = 1 to 512>}
func.func @rows(%X: tensor<512x8xf32> {te.dims = #te.dims<[S, 8]>}, %W: tensor<8x4xf32>) -> tensor<512x4xf32>
    attributes {te.sizes = #te.sizes<S = 1 to 512>} {
  // CHECK: te.compute "C" [m = 512 below S, n = 4, reduce k = 8] combine [add]
  %C = te.compute "C" [m = 512 below S, n = 4, reduce k = 8] combine [add]
      (%a = %X[m, k] : tensor<512x8xf32>, %b = %W[k, n] : tensor<8x4xf32>) -> tensor<512x4xf32> {
    %0 = arith.mulf %a, %b : f32
    te.yield %0 : f32
  }
  // CHECK: %C[m + 1, n] where (S - m - 2 >= 0) else 0.0
  // CHECK: te.index "S" : index
  %D = te.compute "D" [m = 512 below S, n = 4]
      (%a = %C[m + 1, n] where (S - m - 2 >= 0) else 0.0 : tensor<512x4xf32>) -> tensor<512x4xf32> {
    %0 = te.index "S" : index
    %1 = arith.index_cast %0 : index to i64
    %2 = arith.sitofp %1 : i64 to f32
    %3 = arith.divf %a, %2 : f32
    te.yield %3 : f32
  }
  func.return %D : tensor<512x4xf32>
}

// CHECK-LABEL: @window
// CHECK-SAME: attributes {te.sizes = #te.sizes<T = 1 to 8, pos = 0 to 60 where (-pos - T + 64 >= 0)>}
func.func @window(%K: tensor<64xf32>, %I: tensor<8xi64> {te.dims = #te.dims<[T]>}) -> (tensor<8xf32>, tensor<8xf32>)
    attributes {te.sizes = #te.sizes<T = 1 to 8, pos = 0 to 60 where (-pos - T + 64 >= 0)>} {
  // CHECK: te.compute "Y" [t = 8 below T]
  // CHECK-NEXT: (%k = %K[pos + t] : tensor<64xf32>)
  %Y = te.compute "Y" [t = 8 below T] (%k = %K[pos + t] : tensor<64xf32>) -> tensor<8xf32> {
    te.yield %k : f32
  }
  // CHECK: te.gather "G" [t = 8 below T]
  %G = te.gather "G" [t = 8 below T] %K[%I[t]] else 0.0 : tensor<64xf32>, tensor<8xi64> -> tensor<8xf32>
  func.return %Y, %G : tensor<8xf32>, tensor<8xf32>
}

// A function behind one with sizes has none.
// CHECK-LABEL: @static
func.func @static(%A: tensor<4xf32>) -> tensor<4xf32> {
  // CHECK: te.compute "B" [S = 4]
  %B = te.compute "B" [S = 4] (%a = %A[S] : tensor<4xf32>) -> tensor<4xf32> {
    te.yield %a : f32
  }
  func.return %B : tensor<4xf32>
}

// A copy of S elements is no copy of 8, and a constant's S elements are no constant.
// CHECK-LABEL: @prefixes
func.func @prefixes(%X: tensor<8xf32>) -> (tensor<8xf32>, tensor<4xf32>) attributes {te.sizes = #te.sizes<S = 1 to 4>} {
  // CHECK: %D = te.compute "D" [m = 8]
  %D = te.compute "D" [m = 8] (%x = %X[m] : tensor<8xf32>) -> tensor<8xf32> {
    %0 = math.exp %x : f32
    te.yield %0 : f32
  }
  // CHECK: %C = te.compute "C" [m = 8 below S * 2]
  %C = te.compute "C" [m = 8 below S * 2] (%d = %D[m] : tensor<8xf32>) -> tensor<8xf32> {
    te.yield %d : f32
  }
  %W = te.constant dense<[1.0, -1.0, 0.5, 0.0]> : tensor<4xf32>
  // CHECK: %V = te.compute "V" [m = 4 below S]
  %V = te.compute "V" [m = 4 below S] (%w = %W[m] : tensor<4xf32>) -> tensor<4xf32> {
    te.yield %w : f32
  }
  // CHECK: return %C, %V
  func.return %C, %V : tensor<8xf32>, tensor<4xf32>
}
