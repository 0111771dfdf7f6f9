// RUN: strata-opt %s -canonicalize --split-input-file | filecheck %s

// CHECK-LABEL: @conditions
// CHECK: te.compute "Y" [i = 4]
// CHECK-NEXT: (%a = %A[i] : tensor<4xf32>)
func.func @conditions(%A: tensor<4xf32>) -> tensor<4xf32> {
  %Y = te.compute "Y" [i = 4] (%a = %A[i mod 4] where (i + 1 >= 0) else 0.0 : tensor<4xf32>) -> tensor<4xf32> {
    %0 = arith.negf %a : f32
    te.yield %0 : f32
  }
  func.return %Y : tensor<4xf32>
}

// A read whose condition never holds is its other value.
// CHECK-LABEL: @never
// CHECK: te.compute "Y" [i = 4]
// CHECK-NEXT: (%b = %B[i] : tensor<4xf32>)
// CHECK-NEXT: %{{.*}} = arith.constant 3.0
func.func @never(%A: tensor<4xf32>, %B: tensor<4xf32>) -> tensor<4xf32> {
  %Y = te.compute "Y" [i = 4]
      (%a = %A[i + 4] where (-i - 1 >= 0) else 3.0 : tensor<4xf32>, %b = %B[i] : tensor<4xf32>) -> tensor<4xf32> {
    %0 = arith.mulf %a, %b : f32
    te.yield %0 : f32
  }
  func.return %Y : tensor<4xf32>
}

// CHECK-LABEL: @equal_reads
// CHECK: te.compute "Y" [i = 4]
// CHECK-NEXT: (%a = %A[i] : tensor<4xf32>) ->
// CHECK-NEXT: arith.addf %a, %a : f32
func.func @equal_reads(%A: tensor<4xf32>, %B: tensor<4xf32>) -> tensor<4xf32> {
  %Y = te.compute "Y" [i = 4]
      (%a = %A[i] : tensor<4xf32>, %b = %A[i] : tensor<4xf32>, %c = %B[i] : tensor<4xf32>) -> tensor<4xf32> {
    %0 = arith.addf %a, %b : f32
    te.yield %0 : f32
  }
  func.return %Y : tensor<4xf32>
}

// CHECK-LABEL: @copies
// CHECK-NOT: "C"
// CHECK: te.compute "Y" [i = 4]
// CHECK-NEXT: (%c = %A[i] : tensor<4xf32>)
func.func @copies(%A: tensor<4xf32>) -> tensor<4xf32> {
  %C = te.compute "C" [i = 4] (%a = %A[i] : tensor<4xf32>) -> tensor<4xf32> {
    te.yield %a : f32
  }
  %Y = te.compute "Y" [i = 4] (%c = %C[i] : tensor<4xf32>) -> tensor<4xf32> {
    %0 = arith.negf %c : f32
    te.yield %0 : f32
  }
  func.return %Y : tensor<4xf32>
}

// A copy that the function returns stays, and so does one of other elements.
// CHECK-LABEL: @copies_that_stay
// CHECK: te.compute "C"
// CHECK: te.compute "T"
// CHECK: te.compute "U"
func.func @copies_that_stay(%A: tensor<4x4xf32>, %B: tensor<4xi8>) -> (tensor<4x4xf32>, tensor<4x4xf32>, tensor<4xui8>) {
  %C = te.compute "C" [i = 4, j = 4] (%a = %A[i, j] : tensor<4x4xf32>) -> tensor<4x4xf32> {
    te.yield %a : f32
  }
  %T = te.compute "T" [i = 4, j = 4] (%a = %A[j, i] : tensor<4x4xf32>) -> tensor<4x4xf32> {
    te.yield %a : f32
  }
  %U = te.compute "U" [i = 4] (%b = %B[i] : tensor<4xi8>) -> tensor<4xui8> {
    te.yield %b : i8
  }
  func.return %C, %T, %U : tensor<4x4xf32>, tensor<4x4xf32>, tensor<4xui8>
}

// CHECK-LABEL: @unused
// CHECK-NOT: "D"
// CHECK: te.compute "Y" [i = 4, reduce k = 4] combine [max]
// CHECK-NEXT: (%a = %A[i, k] : tensor<4x4xf32>) -> tensor<4xf32> {
// CHECK-NEXT: te.yield %a : f32
func.func @unused(%A: tensor<4x4xf32>) -> tensor<4xf32> {
  %D = te.compute "D" [i = 4, j = 4] (%a = %A[i, j] : tensor<4x4xf32>) -> tensor<4x4xf32> {
    %0 = arith.negf %a : f32
    te.yield %0 : f32
  }
  %S, %Y = te.compute "Y" [i = 4, reduce k = 4] combine [add, max]
      (%a = %A[i, k] : tensor<4x4xf32>) -> tensor<4xf32>, tensor<4xf32> {
    %0 = arith.mulf %a, %a : f32
    te.yield %0, %a : f32, f32
  }
  func.return %Y : tensor<4xf32>
}

// Elements that every evaluator computes alike are evaluated; the order of a sum of floats is free, and exp is rounded
// in more ways than one.
// CHECK-LABEL: @constants
// CHECK: %Y = te.constant dense<[2.0, -4.0]> : tensor<2xf32>
// CHECK: te.compute "S"
// CHECK: te.compute "E"
func.func @constants() -> (tensor<2xf32>, tensor<f32>, tensor<2xf32>) {
  %W = te.constant dense<[1.0, -2.0]> : tensor<2xf32>
  %Y = te.compute "Y" [i = 2] (%w = %W[i] : tensor<2xf32>) -> tensor<2xf32> {
    %0 = arith.addf %w, %w : f32
    te.yield %0 : f32
  }
  %S = te.compute "S" [reduce k = 2] combine [add] (%w = %W[k] : tensor<2xf32>) -> tensor<f32> {
    te.yield %w : f32
  }
  %E = te.compute "E" [i = 2] (%w = %W[i] : tensor<2xf32>) -> tensor<2xf32> {
    %0 = math.exp %w : f32
    te.yield %0 : f32
  }
  func.return %Y, %S, %E : tensor<2xf32>, tensor<f32>, tensor<2xf32>
}

// CHECK-LABEL: @unit_axis
// CHECK: %[[C:.*]] = arith.constant 0 : index
// CHECK-NEXT: te.yield %[[C]] : index
func.func @unit_axis() -> tensor<1xindex> {
  %I = te.compute "I" [i = 1] () -> tensor<1xindex> {
    %0 = te.index "i" : index
    te.yield %0 : index
  }
  func.return %I : tensor<1xindex>
}

// -----

// A call that nothing reads is dropped: functions of te have no effects.
// CHECK-LABEL: @main
// CHECK-NEXT: %[[Y:.*]] = func.call @group
// CHECK-NEXT: func.return %[[Y]]
func.func private @group(%A: tensor<4xf32>) -> tensor<4xf32> {
  %Y = te.compute "Y" [i = 4] (%a = %A[i] : tensor<4xf32>) -> tensor<4xf32> {
    %0 = arith.negf %a : f32
    te.yield %0 : f32
  }
  func.return %Y : tensor<4xf32>
}
func.func @main(%A: tensor<4xf32>) -> tensor<4xf32> {
  %0 = func.call @group(%A) : (tensor<4xf32>) -> tensor<4xf32>
  %1 = func.call @group(%0) : (tensor<4xf32>) -> tensor<4xf32>
  func.return %0 : tensor<4xf32>
}
