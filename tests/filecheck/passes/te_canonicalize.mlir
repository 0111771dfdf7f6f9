// RUN: strata-opt %s -p te-canonicalize --split-input-file | filecheck %s

// A split of a dimension and a permutation are absorbed into the read of a product.
// CHECK-LABEL: @views
// CHECK-NEXT: te.compute "product0" [i0 = 2, i1 = 5, reduce r0 = 4, reduce r1 = 3] combine [add]
// CHECK-NEXT: %a0[r0, i0 * 3 + r1]
// CHECK-SAME: %a1[r0, i1, r1]
func.func @views(%A: tensor<4x6xf32>, %B: tensor<4x5x3xf32>) -> tensor<2x5xf32> {
  %R = te.compute "R" [x = 4, h = 2, d = 3] (%a = %A[(x * 6 + h * 3 + d) floordiv 6, (x * 6 + h * 3 + d) mod 6] : tensor<4x6xf32>) -> tensor<4x2x3xf32> {
    te.yield %a : f32
  }
  %T = te.compute "T" [h = 2, x = 4, d = 3] (%r = %R[x, h, d] : tensor<4x2x3xf32>) -> tensor<2x4x3xf32> {
    te.yield %r : f32
  }
  %C = te.compute "C" [m = 2, n = 5, reduce x = 4, reduce d = 3] combine [add]
      (%t = %T[m, x, d] : tensor<2x4x3xf32>, %b = %B[x, n, d] : tensor<4x5x3xf32>) -> tensor<2x5xf32> {
    %0 = arith.mulf %t, %b : f32
    te.yield %0 : f32
  }
  func.return %C : tensor<2x5xf32>
}
// -----
// A product does not get a quotient that it did not have; another reduction gets two axes instead.
// CHECK-LABEL: @merged
// CHECK: te.compute "view0"
// CHECK-NEXT: %a0[i1 floordiv 3, i0, i1 mod 3]
// CHECK: te.compute "product0"
// CHECK-NEXT: %view0[i0, r0]
// CHECK: te.compute "sum0" [i0 = 4, reduce r0 = 3, reduce r1 = 2]
// CHECK-NEXT: %a0[r1, i0, r0]
func.func @merged(%A: tensor<2x4x3xf32>, %W: tensor<6x5xf32>) -> (tensor<4x5xf32>, tensor<4xf32>) {
  %R = te.compute "R" [x = 4, c = 6] (%a = %A[c floordiv 3, x, c mod 3] : tensor<2x4x3xf32>) -> tensor<4x6xf32> {
    te.yield %a : f32
  }
  %P = te.compute "P" [m = 4, n = 5, reduce c = 6] combine [add] (%r = %R[m, c] : tensor<4x6xf32>, %w = %W[c, n] : tensor<6x5xf32>) -> tensor<4x5xf32> {
    %0 = arith.mulf %r, %w : f32
    te.yield %0 : f32
  }
  %S = te.compute "S" [m = 4, reduce c = 6] combine [add] (%r = %R[m, c] : tensor<4x6xf32>) -> tensor<4xf32> {
    te.yield %r : f32
  }
  func.return %P, %S : tensor<4x5xf32>, tensor<4xf32>
}
// -----
// Padding is absorbed by a window, not by a product.
// CHECK-LABEL: @windows
// CHECK-NEXT: te.compute "product0" [i0 = 4, i1 = 2, reduce r0 = 3] combine [add]
// CHECK-NEXT: %a0[i0 + r0 - 1] where
// CHECK: te.compute "view0" [i0 = 6]
// CHECK: te.compute "product1" [i0 = 2, reduce r0 = 6] combine [add]
// CHECK-NEXT: %a2[r0, i0]
// CHECK-SAME: %view0[r0] :
func.func @windows(%A: tensor<4xf32>, %W: tensor<3x2xf32>, %V: tensor<6x2xf32>) -> (tensor<4x2xf32>, tensor<2xf32>) {
  %P = te.compute "P" [i = 6] (%a = %A[i - 1] where (i - 1 >= 0, -i + 4 >= 0) else 0.0 : tensor<4xf32>) -> tensor<6xf32> {
    te.yield %a : f32
  }
  %S = te.compute "S" [i = 4, n = 2, reduce k = 3] combine [add]
      (%p = %P[i + k] : tensor<6xf32>, %w = %W[k, n] : tensor<3x2xf32>) -> tensor<4x2xf32> {
    %0 = arith.mulf %p, %w : f32
    te.yield %0 : f32
  }
  %T = te.compute "T" [n = 2, reduce k = 6] combine [add]
      (%p = %P[k] : tensor<6xf32>, %v = %V[k, n] : tensor<6x2xf32>) -> tensor<2xf32> {
    %0 = arith.mulf %p, %v : f32
    te.yield %0 : f32
  }
  func.return %S, %T : tensor<4x2xf32>, tensor<2xf32>
}
// -----
// Conditions compose where the other value is the same.
// CHECK-LABEL: @padded
// CHECK: te.compute "map0"
// CHECK-NEXT: %a0[i0 + 2] where (-i0 + 1 >= 0) else 0.0
// CHECK: te.compute "view0"
// CHECK: te.compute "map1"
// CHECK-NEXT: %view0[i0 + 3] where (-i0 + 2 >= 0) else 1.0
func.func @padded(%A: tensor<4xf32>) -> (tensor<4xf32>, tensor<4xf32>) {
  %P = te.compute "P" [i = 6] (%a = %A[i - 1] where (i - 1 >= 0, -i + 4 >= 0) else 0.0 : tensor<4xf32>) -> tensor<6xf32> {
    te.yield %a : f32
  }
  %S = te.compute "S" [i = 4] (%p = %P[i + 3] where (-i + 2 >= 0) else 0.0 : tensor<6xf32>) -> tensor<4xf32> {
    %0 = arith.addf %p, %p : f32
    te.yield %0 : f32
  }
  %T = te.compute "T" [i = 4] (%p = %P[i + 3] where (-i + 2 >= 0) else 1.0 : tensor<6xf32>) -> tensor<4xf32> {
    %0 = arith.addf %p, %p : f32
    te.yield %0 : f32
  }
  func.return %S, %T : tensor<4xf32>, tensor<4xf32>
}
// -----
// A part of a concatenation is read where it comes from.
// CHECK-LABEL: @parts
// CHECK-NEXT: te.compute "map0" [i0 = 4]
// CHECK-NEXT: %[[B:.*]] = %a1[i0] : tensor<4xf32>, %[[A:.*]] = %a0[-i0 + 3] : tensor<4xf32>)
// CHECK-NEXT: arith.subf %[[B]], %[[A]]
func.func @parts(%A: tensor<4xf32>, %B: tensor<4xf32>) -> tensor<4xf32> {
  %J = te.compute "J" [i = 8] (%a = %A[i] where (-i + 3 >= 0) else 0.0 : tensor<4xf32>, %b = %B[i - 4] where (i - 4 >= 0) else 0.0 : tensor<4xf32>) -> tensor<8xf32> {
    %0 = arith.constant 4 : index
    %1 = te.index "i" : index
    %2 = arith.cmpi slt, %1, %0 : index
    %3 = arith.select %2, %a, %b : f32
    te.yield %3 : f32
  }
  %S = te.compute "S" [i = 4] (%p = %J[i + 4] : tensor<8xf32>, %q = %J[-i + 3] : tensor<8xf32>) -> tensor<4xf32> {
    %0 = arith.subf %p, %q : f32
    te.yield %0 : f32
  }
  func.return %S : tensor<4xf32>
}
// -----
// Axes of extent 1 go, but for those of arguments and results; a sum of one float is no less than 0.0.
// CHECK-LABEL: @units
// CHECK-NEXT: te.compute "map0" [i0 = 4]
// CHECK-NEXT: %a0[i0, 0]
// CHECK-NEXT: arith.constant 0.000000e+00
// CHECK-NEXT: arith.addf
// CHECK: te.compute "map1" [i0 = 1, i1 = 4]
// CHECK-NEXT: %map0[i1] : tensor<4xf32>
func.func @units(%A: tensor<4x1xf32>) -> tensor<1x4xf32> {
  %S = te.compute "S" [i = 4, j = 1, reduce k = 1] combine [add] (%a = %A[i, k] : tensor<4x1xf32>) -> tensor<4x1xf32> {
    te.yield %a : f32
  }
  %T = te.compute "T" [j = 1, i = 4] (%s = %S[i, j] : tensor<4x1xf32>) -> tensor<1x4xf32> {
    %0 = arith.negf %s : f32
    te.yield %0 : f32
  }
  func.return %T : tensor<1x4xf32>
}
// -----
// A copy is its original, equal values are one, and what nothing reads goes.
// CHECK-LABEL: @twice
// CHECK-NEXT: te.compute "map0"
// CHECK-NEXT: %a0[i0] : tensor<4xf32>, {{.*}} = %a1[i0]
// CHECK-NEXT: arith.mulf
// CHECK: te.compute "map1"
// CHECK-NEXT: (%[[M:.*]] = %map0[i0]
// CHECK-NEXT: arith.subf %[[M]], %[[M]]
// CHECK: func.return %map0, %map1
func.func @twice(%A: tensor<4xf32>, %B: tensor<4xf32>) -> (tensor<4xf32>, tensor<4xf32>) {
  %C = te.compute "C" [i = 4] (%a = %A[i] : tensor<4xf32>) -> tensor<4xf32> {
    te.yield %a : f32
  }
  %D = te.compute "D" [i = 4] (%a = %A[i] : tensor<4xf32>, %b = %B[i] : tensor<4xf32>) -> tensor<4xf32> {
    %0 = arith.mulf %a, %b : f32
    te.yield %0 : f32
  }
  %E = te.compute "E" [j = 4] (%b = %B[j] : tensor<4xf32>, %c = %C[j] : tensor<4xf32>) -> tensor<4xf32> {
    %0 = arith.mulf %b, %c : f32
    te.yield %0 : f32
  }
  %F = te.compute "F" [i = 4] (%d = %D[i] : tensor<4xf32>, %e = %E[i] : tensor<4xf32>) -> tensor<4xf32> {
    %0 = arith.subf %d, %e : f32
    te.yield %0 : f32
  }
  %G = te.compute "G" [i = 4] (%f = %F[i] : tensor<4xf32>) -> tensor<4xf32> {
    %0 = math.exp %f : f32
    te.yield %0 : f32
  }
  func.return %E, %F : tensor<4xf32>, tensor<4xf32>
}
// -----
// The arguments of a private function stand in an order by their use, and calls follow.
// CHECK-LABEL: @main
// CHECK-NEXT: %call0 = func.call @group(%a0, %a1)
// CHECK-NEXT: %call1 = func.call @turned(%call0, %a0)
// CHECK-LABEL: func.func private @group
// CHECK-NEXT: te.compute "map0"
// CHECK-NEXT: (%[[A:.*]] = %a0[i0] : tensor<4xf32>, %[[B:.*]] = %a1[i0] : tensor<4xf32>)
// CHECK-NEXT: arith.subf %[[A]], %[[B]]
// CHECK-LABEL: func.func private @turned
// CHECK-NEXT: te.compute "map0"
// CHECK-NEXT: (%[[A:.*]] = %a0[i0] : tensor<4xf32>, %[[B:.*]] = %a1[i0] : tensor<4xf32>)
// CHECK-NEXT: arith.subf %[[A]], %[[B]]
func.func @main(%X: tensor<4xf32>, %Y: tensor<4xf32>) -> tensor<4xf32> {
  %0 = func.call @group(%X, %Y) : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32>
  %1 = func.call @turned(%X, %0) : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32>
  func.return %1 : tensor<4xf32>
}
func.func private @group(%a: tensor<4xf32>, %b: tensor<4xf32>) -> tensor<4xf32> attributes {te.group} {
  %S = te.compute "S" [i = 4] (%x = %a[i] : tensor<4xf32>, %y = %b[i] : tensor<4xf32>) -> tensor<4xf32> {
    %0 = arith.subf %x, %y : f32
    te.yield %0 : f32
  }
  func.return %S : tensor<4xf32>
}
func.func private @turned(%a: tensor<4xf32>, %b: tensor<4xf32>) -> tensor<4xf32> attributes {te.group} {
  %T = te.compute "T" [j = 4] (%x = %b[j] : tensor<4xf32>, %y = %a[j] : tensor<4xf32>) -> tensor<4xf32> {
    %0 = arith.subf %x, %y : f32
    te.yield %0 : f32
  }
  func.return %T : tensor<4xf32>
}
