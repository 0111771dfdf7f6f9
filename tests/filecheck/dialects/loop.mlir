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
func.func @argmax(%A: memref<4x8xf32>, %V: memref<4xf32>, %I: memref<4xi64>) attributes {outputs = 2 : i64} {
  loop.for "m" %m = 4 {
    loop.for "k" %k = 8 {
      loop.block "M" [m = 4 at %m, reduce k = 8 at %k]
    combine (%v = -inf : f32, %i = 9223372036854775807 : i64) with (%w, %j) {
      %gt = arith.cmpf ogt, %w, %v : f32
      %eq = arith.cmpf oeq, %w, %v : f32
      %lt = arith.cmpi slt, %j, %i : i64
      %first = arith.andi %eq, %lt : i1
      %take = arith.ori %gt, %first : i1
      %x = arith.select %take, %w, %v : f32
      %y = arith.select %take, %j, %i : i64
      loop.yield %x, %y : f32, i64
    } (%a = %A[m, k] : memref<4x8xf32>) -> (%V[m] : memref<4xf32>, %I[m] : memref<4xi64>) origin "M"[m, k] {
        %0 = loop.index "k" : index
        %1 = arith.index_cast %0 : index to i64
        loop.yield %a, %1 : f32, i64
      }
    }
  }
  func.return
}
