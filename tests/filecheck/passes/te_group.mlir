// RUN: strata-opt %s -p te-group | filecheck %s
// RUN: strata-opt %s -p te-group,te-group | filecheck %s

// A product takes its bias and its activation along; the softmax of its rows is a group, and so is a second product.
// Groups that differ by names only are one function.
// CHECK-LABEL: func.func @layers
// CHECK-SAME: (%X: tensor<8x4xf32>, %W: tensor<4x4xf32>, %b: tensor<4xf32>, %V: tensor<4x4xf32>, %c: tensor<4xf32>)
// CHECK-NEXT: [[R:%.+]] = func.call @group_0(%X, %W, %b) :
// CHECK-NEXT: [[M:%.+]], [[S:%.+]] = func.call @group_1([[R]]) : (tensor<8x4xf32>) -> (tensor<8xf32>, tensor<8x4xf32>)
// CHECK-NEXT: [[T:%.+]] = func.call @group_0([[S]], %V, %c) :
// CHECK-NEXT: func.return [[T]], [[M]] : tensor<8x4xf32>, tensor<8xf32>
// CHECK-NEXT: }
// CHECK-NEXT: func.func private @group_0({{.*}}) -> tensor<8x4xf32> attributes {te.group} {
// CHECK: te.compute "P"
// CHECK: te.compute "R"
// CHECK: func.return %R
// CHECK: func.func private @group_1({{.*}}) -> (tensor<8xf32>, tensor<8x4xf32>) attributes {te.group} {
// CHECK: te.compute "M"
// CHECK: te.compute "E"
// CHECK: te.compute "D"
// CHECK: te.compute "S"
// CHECK: func.return %M, %S
// CHECK-NOT: func.func
func.func @layers(%X: tensor<8x4xf32>, %W: tensor<4x4xf32>, %b: tensor<4xf32>, %V: tensor<4x4xf32>, %c: tensor<4xf32>) -> (tensor<8x4xf32>, tensor<8xf32>) {
  %P = te.compute "P" [m = 8, n = 4, reduce k = 4] combine [add]
      (%x = %X[m, k] : tensor<8x4xf32>, %w = %W[k, n] : tensor<4x4xf32>) -> tensor<8x4xf32> {
    %0 = arith.mulf %x, %w : f32
    te.yield %0 : f32
  }
  %R = te.compute "R" [m = 8, n = 4] (%p = %P[m, n] : tensor<8x4xf32>, %v = %b[n] : tensor<4xf32>) -> tensor<8x4xf32> {
    %0 = arith.addf %p, %v : f32
    te.yield %0 : f32
  }
  %M = te.compute "M" [m = 8, reduce n = 4] combine [max] (%r = %R[m, n] : tensor<8x4xf32>) -> tensor<8xf32> {
    te.yield %r : f32
  }
  %E = te.compute "E" [m = 8, n = 4] (%r = %R[m, n] : tensor<8x4xf32>, %v = %M[m] : tensor<8xf32>) -> tensor<8x4xf32> {
    %0 = arith.subf %r, %v : f32
    %1 = math.exp %0 : f32
    te.yield %1 : f32
  }
  %D = te.compute "D" [m = 8, reduce n = 4] combine [add] (%e = %E[m, n] : tensor<8x4xf32>) -> tensor<8xf32> {
    te.yield %e : f32
  }
  %S = te.compute "S" [m = 8, n = 4] (%e = %E[m, n] : tensor<8x4xf32>, %d = %D[m] : tensor<8xf32>) -> tensor<8x4xf32> {
    %0 = arith.divf %e, %d : f32
    te.yield %0 : f32
  }
  %Q = te.compute "Q" [i = 8, j = 4, reduce l = 4] combine [add]
      (%s = %S[i, l] : tensor<8x4xf32>, %w = %V[l, j] : tensor<4x4xf32>) -> tensor<8x4xf32> {
    %0 = arith.mulf %s, %w : f32
    te.yield %0 : f32
  }
  %T = te.compute "T" [i = 8, j = 4] (%q = %Q[i, j] : tensor<8x4xf32>, %v = %c[j] : tensor<4xf32>) -> tensor<8x4xf32> {
    %0 = arith.addf %q, %v : f32
    te.yield %0 : f32
  }
  func.return %T, %M : tensor<8x4xf32>, tensor<8xf32>
}
