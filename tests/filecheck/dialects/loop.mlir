// RUN: strata-opt %s | strata-opt - | filecheck %s

// CHECK-LABEL: @guarded
func.func @guarded(%A: memref<10xf32>, %S: memref<f32>) attributes {outputs = 1 : i64} {
  // CHECK: loop.for "k.0" %k.0 = 3 {
  // CHECK-NEXT: loop.for "k.1" %k.1 = 4 unrolled {
  // CHECK-NEXT: loop.block "S" [reduce k = 10 at %k.0 * 4 + %k.1] where (%k.0 * -4 - %k.1 + 9 >= 0) combine [add] accumulate
  // CHECK-NEXT: (%a = %A[k] : memref<10xf32>) -> (%S[] : memref<f32>) origin "S"[k] {
  loop.for "k.0" %k.0 = 3 {
    loop.for "k.1" %k.1 = 4 unrolled {
      loop.block "S" [reduce k = 10 at %k.0 * 4 + %k.1] where (%k.0 * -4 - %k.1 + 9 >= 0) combine [add] accumulate
          (%a = %A[k] : memref<10xf32>) -> (%S[] : memref<f32>) origin "S"[k] {
        loop.yield %a : f32
      }
    }
  }
  func.return
}

// CHECK-LABEL: @scopes
func.func @scopes() {
  // CHECK: loop.alloc "T" shared : memref<4x6xf32>
  %T = loop.alloc "T" shared : memref<4x6xf32>
  // CHECK: loop.for "i" %i = 2 thread_x {
  loop.for "i" %i = 2 thread_x {
    // CHECK-NEXT: loop.alloc "U" : memref<2xi32>
    %U = loop.alloc "U" : memref<2xi32>
  }
  func.return
}

// CHECK-LABEL: @argmax
// CHECK: loop.block "M" [m = 4 at %m, reduce k = 8 at %k]
// CHECK-NEXT: combine (%v = -inf : f32, %i = 9223372036854775807 : i64) with (%w, %j) {
// CHECK: loop.yield %x, %y : f32, i64
// PAYLOAD: argmax @argmax
