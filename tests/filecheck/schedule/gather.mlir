// RUN: strata-opt %s -p apply-schedule | filecheck %s

// The gather's own loops, the place of the gather, copies of the index and of the whole table.
// CHECK-LABEL: @f
func.func @f(%T: memref<9x8xf32>, %I: memref<6xi32>, %Z: memref<6x8xf32>) attributes {outputs = 1 : i64} {
  // CHECK: %T.shared = loop.alloc "T.shared" shared : memref<9x8xf32>
  // CHECK: loop.for "i" %i = 6 parallel {
  // CHECK-NEXT: %Y = loop.alloc "Y" : memref<1x8xf32>
  // CHECK-NEXT: loop.for "Y.d.0" %Y.d.0 = 2 {
  // CHECK-NEXT: loop.for "Y.d.1" %Y.d.1 = 4 vectorized {
  // CHECK-NEXT: loop.gather "Y" [i = 6 at %i, d = 8 at %Y.d.0 * 4 + %Y.d.1]
  // CHECK-NEXT: %T.shared[%I[i], d] else 0.0
  %Y = loop.alloc "Y" : memref<6x8xf32>
  loop.for "i" %i = 6 {
    loop.for "d" %d = 8 {
      loop.gather "Y" [i = 6 at %i, d = 8 at %d] %T[%I[i], d] else 0.0 : memref<9x8xf32>, memref<6xi32>
          -> (%Y[i, d] : memref<6x8xf32>) origin "Y"[i, d]
    }
  }
  loop.for "i" %i = 6 {
    loop.for "d" %d = 8 {
      loop.block "Z" [i = 6 at %i, d = 8 at %d] (%y = %Y[i, d] : memref<6x8xf32>) -> (%Z[i, d] : memref<6x8xf32>) origin "Z"[i, d] {
        %0 = arith.negf %y : f32
        loop.yield %0 : f32
      }
    }
  }
  func.return
}

// PAYLOAD: script Y() Z()
  %copy = sched.cache_read %y "T" in "shared"
  %i, %d = sched.get_loops %z : !sched.loop, !sched.loop
  sched.compute_at %y at %i
  sched.parallel %i
  %yi, %yd = sched.get_loops %y : !sched.loop, !sched.loop
  %outer, %inner = sched.split %yd by [-1, 4] : !sched.loop, !sched.loop
  sched.vectorize %inner
