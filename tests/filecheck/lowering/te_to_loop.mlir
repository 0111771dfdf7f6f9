// RUN: strata-opt %s -p te-to-loop | filecheck %s

// CHECK-LABEL: @chain(%A: memref<4x8xf32>, %S: memref<4xf32>) attributes {outputs = 1 : i64}
func.func @chain(%A: tensor<4x8xf32>) -> tensor<4xf32> {
  // CHECK-NEXT: %E = loop.alloc "E" : memref<4x8xf32>
  // CHECK-NEXT: loop.for "i" %i = 4 {
  // CHECK-NEXT: loop.for "j" %j = 8 {
  // CHECK-NEXT: loop.block "E" [i = 4 at %i, j = 8 at %j]
  // CHECK-NEXT: (%a = %A[i, j] : memref<4x8xf32>) -> (%E[i, j] : memref<4x8xf32>) origin "E"[i, j] {
  %E = te.compute "E" [i = 4, j = 8] (%a = %A[i, j] : tensor<4x8xf32>) -> tensor<4x8xf32> {
    %0 = math.exp %a : f32
    te.yield %0 : f32
  }
  // CHECK: loop.block "S" [i = 4 at %{{.*}}, reduce k = 8 at %k] combine [add]
  // CHECK-NEXT: (%e = %E[i, k] : memref<4x8xf32>) -> (%S[i] : memref<4xf32>) origin "S"[i, k] {
  %S = te.compute "S" [i = 4, reduce k = 8] combine [add] (%e = %E[i, k] : tensor<4x8xf32>) -> tensor<4xf32> {
    te.yield %e : f32
  }
  // CHECK-NOT: te.
  func.return %S : tensor<4xf32>
}

// An argument that is returned, and a result returned twice, are copied.
// CHECK-LABEL: @copies
func.func @copies(%A: tensor<4xf32>) -> (tensor<4xf32>, tensor<4xf32>, tensor<4xf32>) {
  // CHECK: loop.block "N"
  // CHECK: loop.block "copy_A"
  // CHECK: loop.block "copy_N"
  %N = te.compute "N" [i = 4] (%a = %A[i] : tensor<4xf32>) -> tensor<4xf32> {
    %0 = arith.negf %a : f32
    te.yield %0 : f32
  }
  func.return %N, %A, %N : tensor<4xf32>, tensor<4xf32>, tensor<4xf32>
}
