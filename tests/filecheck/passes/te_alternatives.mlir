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
// PAYLOAD: te_sum_of_sums @sums
// -----
// A maximum has one order as good as another, under strict too.
// CHECK-LABEL: @maxima
// CHECK-NEXT: te.compute "max0" [i0 = 4, reduce r0 = 6, reduce r1 = 5] combine [max]
// STRICT-LABEL: @maxima
// STRICT-NEXT: te.compute "max0" [i0 = 4, reduce r0 = 6, reduce r1 = 5] combine [max]
// PAYLOAD: te_sum_of_sums @maxima s/[add]/[max]/g
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
// PAYLOAD: te_matmul_vector @chain
// -----
// Integers wrap in every order alike.
// CHECK-LABEL: @wrapping
// CHECK-NEXT: te.compute "product0" [i0 = 20, reduce r0 = 40] combine [add]
// STRICT-LABEL: @wrapping
// STRICT-NEXT: te.compute "product0" [i0 = 20, reduce r0 = 40] combine [add]
// PAYLOAD: te_matmul_vector @wrapping s/f32/i32/g s/mulf/muli/g
// -----
// A product that is a result too stays.
// FAST-LABEL: @shown
// FAST-NEXT: te.compute "product0" [i0 = 30, i1 = 40, reduce r0 = 20]
// PAYLOAD: te_matmul_vector @shown s/-> tensor<30xf32> {/-> (tensor<30x40xf32>, tensor<30xf32>) {/ \
//   s/return %Q : /return %P, %Q : tensor<30x40xf32>, /
