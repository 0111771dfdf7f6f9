// RUN: strata-opt %s -p apply-schedule | filecheck %s

// The copy has an element for each value of the axes, and reads as the block did.

// CHECK-LABEL: func.func @edges
// CHECK:         %A.axes = loop.alloc "A.axes" : memref<8x3xf32>
// CHECK-NEXT:    loop.for "ax0" %ax0 = 8 {
// CHECK-NEXT:      loop.for "ax1" %ax1 = 3 {
// CHECK-NEXT:        loop.block "A.axes" [ax0 = 8 at %ax0, ax1 = 3 at %ax1]
// CHECK-NEXT:            (%a = %A[ax0 + ax1 - 1] where (ax0 + ax1 - 1 >= 0, -ax0 - ax1 + 8 >= 0) else 0.0 : memref<8xf32>) -> (%A.axes[ax0, ax1] : memref<8x3xf32>) {
// CHECK:         loop.for "i" %i = 8 {
// CHECK-NEXT:      loop.for "r" %r = 3 {
// CHECK-NEXT:        loop.block "S" [i = 8 at %i, reduce r = 3 at %r] combine [add]
// CHECK-NEXT:            (%a.axes = %A.axes[i, r] : memref<8x3xf32>) -> (%S[i] : memref<8xf32>)
func.func @edges(%A: memref<8xf32>, %S: memref<8xf32>) attributes {outputs = 1 : i64} {
  loop.for "i" %i = 8 {
    loop.for "r" %r = 3 {
      loop.block "S" [i = 8 at %i, reduce r = 3 at %r] combine [add]
          (%a = %A[i + r - 1] where (i + r - 1 >= 0, -i - r + 8 >= 0) else 0.0 : memref<8xf32>) -> (%S[i] : memref<8xf32>) origin "S"[i, r] {
        loop.yield %a : f32
      }
    }
  }
  func.return
}

// PAYLOAD: script S()
  %p = sched.reindex %s "A"
