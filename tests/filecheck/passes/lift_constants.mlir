// RUN: strata-opt %s -p lift-constants{bytes=8} | filecheck %s

// CHECK-LABEL: @f(%A: tensor<4xf32>, %W: tensor<4xf32>) -> tensor<4xf32>
// CHECK-SAME: constants = array<i64: 1>, constant_values = [dense<[1.0, 2.0, 3.0, 4.0]> : tensor<4xf32>]
// CHECK-NEXT: te.constant dense<2.0> : tensor<2xf32>
// CHECK-NEXT: te.compute "B"
// CHECK-SAME: [i = 4]
// CHECK-NEXT: (%a = %A[i] : tensor<4xf32>, %w = %W[i] : tensor<4xf32>, %v = %W[-i + 3] : tensor<4xf32>, %s = %S[0] : tensor<2xf32>)

func.func @f(%A: tensor<4xf32>) -> tensor<4xf32> {
  %W = te.constant dense<[1.0, 2.0, 3.0, 4.0]> : tensor<4xf32>
  %V = te.constant dense<[1.0, 2.0, 3.0, 4.0]> : tensor<4xf32>
  %S = te.constant dense<2.0> : tensor<2xf32>
  %B = te.compute "B" [i = 4]
      (%a = %A[i] : tensor<4xf32>, %w = %W[i] : tensor<4xf32>, %v = %V[3 - i] : tensor<4xf32>, %s = %S[0] : tensor<2xf32>)
      -> tensor<4xf32> {
    %0 = arith.mulf %a, %w : f32
    %1 = arith.addf %0, %v : f32
    %2 = arith.addf %1, %s : f32
    te.yield %2 : f32
  }
  func.return %B : tensor<4xf32>
}

// What a program of groups holds stays where it is.
// CHECK-LABEL: @main(%A: tensor<4xf32>) -> tensor<4xf32>
// CHECK-NEXT: te.constant dense<[1.0, 2.0, 3.0, 4.0]> : tensor<4xf32>
func.func @main(%A: tensor<4xf32>) -> tensor<4xf32> {
  %W = te.constant dense<[1.0, 2.0, 3.0, 4.0]> : tensor<4xf32>
  %B = func.call @group_0(%A, %W) : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32>
  func.return %B : tensor<4xf32>
}

// CHECK-LABEL: @group_0(%A: tensor<4xf32>, %W: tensor<4xf32>) -> tensor<4xf32>
// CHECK-NEXT: te.constant dense<[4.0, 3.0, 2.0, 1.0]> : tensor<4xf32>
func.func private @group_0(%A: tensor<4xf32>, %W: tensor<4xf32>) -> tensor<4xf32> attributes {te.group} {
  %T = te.constant dense<[4.0, 3.0, 2.0, 1.0]> : tensor<4xf32>
  %B = te.compute "B" [i = 4]
      (%a = %A[i] : tensor<4xf32>, %w = %W[i] : tensor<4xf32>, %t = %T[i] : tensor<4xf32>) -> tensor<4xf32> {
    %0 = arith.mulf %a, %w : f32
    %1 = arith.mulf %0, %t : f32
    te.yield %1 : f32
  }
  func.return %B : tensor<4xf32>
}
