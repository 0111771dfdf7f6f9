// RUN: env STRATA_MACHINE=avx2 strata-opt %s -p te-alternatives --split-input-file | filecheck %s
// RUN: env STRATA_MACHINE=avx2 strata-opt %s -p 'te-alternatives{policy=fast}' --split-input-file | filecheck %s --check-prefix=FAST
// RUN: env STRATA_MACHINE=avx2 strata-opt %s -p 'te-alternatives{policy=strict}' --split-input-file | filecheck %s --check-prefix=STRICT
// RUN: env STRATA_MACHINE=avx2 strata-opt %s -p 'te-alternatives{policy=fast error=0.000000001}' --split-input-file | filecheck %s --check-prefix=ERROR

// A sum of sums of neighbours in memory is one sum, but for floats under strict.
// CHECK-LABEL: @sums
// CHECK-NEXT: te.compute "sum0" [i0 = 4, reduce r0 = 6, reduce r1 = 5] combine [add]
// CHECK-NEXT: %a0[i0, r1, r0]
// CHECK-NOT: te.compute
// STRICT-LABEL: @sums
// STRICT: te.compute "sum0" [i0 = 4, i1 = 5, reduce r0 = 6] combine [add]
// STRICT: te.compute "sum1" [i0 = 4, reduce r0 = 5] combine [add]
func.func @sums(%A: tensor<4x5x6xf32>) -> tensor<4xf32> {
  %S = te.compute "S" [i = 4, j = 5, reduce k = 6] combine [add] (%a = %A[i, j, k] : tensor<4x5x6xf32>) -> tensor<4x5xf32> {
    te.yield %a : f32
  }
  %T = te.compute "T" [i = 4, reduce j = 5] combine [add] (%s = %S[i, j] : tensor<4x5xf32>) -> tensor<4xf32> {
    te.yield %s : f32
  }
  func.return %T : tensor<4xf32>
}
// -----
// A maximum has one order as good as another, under strict too.
// CHECK-LABEL: @maxima
// CHECK-NEXT: te.compute "max0" [i0 = 4, reduce r0 = 6, reduce r1 = 5] combine [max]
// STRICT-LABEL: @maxima
// STRICT-NEXT: te.compute "max0" [i0 = 4, reduce r0 = 6, reduce r1 = 5] combine [max]
func.func @maxima(%A: tensor<4x5x6xf32>) -> tensor<4xf32> {
  %S = te.compute "S" [i = 4, j = 5, reduce k = 6] combine [max] (%a = %A[i, j, k] : tensor<4x5x6xf32>) -> tensor<4x5xf32> {
    te.yield %a : f32
  }
  %T = te.compute "T" [i = 4, reduce j = 5] combine [max] (%s = %S[i, j] : tensor<4x5xf32>) -> tensor<4xf32> {
    te.yield %s : f32
  }
  func.return %T : tensor<4xf32>
}
// -----
// A sum of products stays behind them: products have panels along one axis.
// CHECK-LABEL: @products
// CHECK-NEXT: te.compute "product0" [i0 = 8, i1 = 4, i2 = 4, reduce r0 = 6] combine [add]
// CHECK: te.compute "sum0" [i0 = 4, i1 = 4, reduce r0 = 8] combine [add]
func.func @products(%A: tensor<8x4x6xf32>, %B: tensor<8x6x4xf32>) -> tensor<4x4xf32> {
  %P = te.compute "P" [b = 8, m = 4, n = 4, reduce k = 6] combine [add]
      (%x = %A[b, m, k] : tensor<8x4x6xf32>, %y = %B[b, k, n] : tensor<8x6x4xf32>) -> tensor<8x4x4xf32> {
    %0 = arith.mulf %x, %y : f32
    te.yield %0 : f32
  }
  %T = te.compute "T" [m = 4, n = 4, reduce b = 8] combine [add] (%p = %P[b, m, n] : tensor<8x4x4xf32>) -> tensor<4x4xf32> {
    te.yield %p : f32
  }
  func.return %T : tensor<4x4xf32>
}
// -----
// A product of matrices times a vector: the second matrix times the vector first. No order errs by less than 1e-9.
// CHECK-LABEL: @chain
// CHECK-NEXT: te.compute "product0" [i0 = 30, i1 = 40, reduce r0 = 20]
// FAST-LABEL: @chain
// FAST-NEXT: te.compute "product0" [i0 = 20, reduce r0 = 40] combine [add]
// FAST-NEXT: %a1[i0, r0]
// FAST-SAME: %a2[r0]
// FAST: te.compute "product1" [i0 = 30, reduce r0 = 20] combine [add]
// FAST-NEXT: %a0[i0, r0]
// FAST-SAME: %product0[r0]
// FAST: func.return %product1
// ERROR-LABEL: @chain
// ERROR-NEXT: te.compute "product0" [i0 = 30, i1 = 40, reduce r0 = 20]
func.func @chain(%A: tensor<30x20xf32>, %B: tensor<20x40xf32>, %x: tensor<40xf32>) -> tensor<30xf32> {
  %P = te.compute "P" [m = 30, n = 40, reduce k = 20] combine [add]
      (%a = %A[m, k] : tensor<30x20xf32>, %b = %B[k, n] : tensor<20x40xf32>) -> tensor<30x40xf32> {
    %0 = arith.mulf %a, %b : f32
    te.yield %0 : f32
  }
  %Q = te.compute "Q" [m = 30, reduce n = 40] combine [add]
      (%p = %P[m, n] : tensor<30x40xf32>, %v = %x[n] : tensor<40xf32>) -> tensor<30xf32> {
    %0 = arith.mulf %p, %v : f32
    te.yield %0 : f32
  }
  func.return %Q : tensor<30xf32>
}
// -----
// Integers wrap in every order alike.
// CHECK-LABEL: @wrapping
// CHECK-NEXT: te.compute "product0" [i0 = 20, reduce r0 = 40] combine [add]
// STRICT-LABEL: @wrapping
// STRICT-NEXT: te.compute "product0" [i0 = 20, reduce r0 = 40] combine [add]
func.func @wrapping(%A: tensor<30x20xi32>, %B: tensor<20x40xi32>, %x: tensor<40xi32>) -> tensor<30xi32> {
  %P = te.compute "P" [m = 30, n = 40, reduce k = 20] combine [add]
      (%a = %A[m, k] : tensor<30x20xi32>, %b = %B[k, n] : tensor<20x40xi32>) -> tensor<30x40xi32> {
    %0 = arith.muli %a, %b : i32
    te.yield %0 : i32
  }
  %Q = te.compute "Q" [m = 30, reduce n = 40] combine [add]
      (%p = %P[m, n] : tensor<30x40xi32>, %v = %x[n] : tensor<40xi32>) -> tensor<30xi32> {
    %0 = arith.muli %p, %v : i32
    te.yield %0 : i32
  }
  func.return %Q : tensor<30xi32>
}
// -----
// A product that is a result too stays.
// FAST-LABEL: @shown
// FAST-NEXT: te.compute "product0" [i0 = 30, i1 = 40, reduce r0 = 20]
func.func @shown(%A: tensor<30x20xf32>, %B: tensor<20x40xf32>, %x: tensor<40xf32>) -> (tensor<30x40xf32>, tensor<30xf32>) {
  %P = te.compute "P" [m = 30, n = 40, reduce k = 20] combine [add]
      (%a = %A[m, k] : tensor<30x20xf32>, %b = %B[k, n] : tensor<20x40xf32>) -> tensor<30x40xf32> {
    %0 = arith.mulf %a, %b : f32
    te.yield %0 : f32
  }
  %Q = te.compute "Q" [m = 30, reduce n = 40] combine [add]
      (%p = %P[m, n] : tensor<30x40xf32>, %v = %x[n] : tensor<40xf32>) -> tensor<30xf32> {
    %0 = arith.mulf %p, %v : f32
    te.yield %0 : f32
  }
  func.return %P, %Q : tensor<30x40xf32>, tensor<30xf32>
}
