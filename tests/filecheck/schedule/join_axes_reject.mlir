// RUN: strata-opt %s -p apply-schedule --split-input-file --verify-diagnostics

// Each loop binds one axis.
func.func @f(%A: memref<6x4xf32>, %B: memref<4x8xf32>, %C: memref<6x8xf32>) attributes {outputs = 1 : i64} {
  loop.for "m" %m = 6 {
    loop.for "n" %n = 8 {
      loop.for "k" %k = 4 {
        loop.block "C" [m = 6 at %m, n = 8 at %n, reduce k = 4 at %k] combine [add]
            (%x = %A[m, k] : memref<6x4xf32>, %y = %B[k, n] : memref<4x8xf32>) -> (%C[m, n] : memref<6x8xf32>) origin "C"[m, n, k] {
          %0 = arith.mulf %x, %y : f32
          loop.yield %0 : f32
        }
      }
    }
  }
  func.return
}

transform.named_sequence @schedule(%f: !transform.any_op {transform.readonly}) {
  %c = sched.get_block %f "C"
  %m, %n, %k = sched.get_loops %c : !sched.loop, !sched.loop, !sched.loop
  // expected-error@below {{join_axes: block 'C': no loop runs over several of its axes together}}
  sched.join_axes %c
  transform.yield
}

// -----

// The axes are of one kind.
func.func @f(%A: memref<6x4xf32>, %B: memref<4x8xf32>, %C: memref<6x8xf32>) attributes {outputs = 1 : i64} {
  loop.for "m" %m = 6 {
    loop.for "n" %n = 8 {
      loop.for "k" %k = 4 {
        loop.block "C" [m = 6 at %m, n = 8 at %n, reduce k = 4 at %k] combine [add]
            (%x = %A[m, k] : memref<6x4xf32>, %y = %B[k, n] : memref<4x8xf32>) -> (%C[m, n] : memref<6x8xf32>) origin "C"[m, n, k] {
          %0 = arith.mulf %x, %y : f32
          loop.yield %0 : f32
        }
      }
    }
  }
  func.return
}

transform.named_sequence @schedule(%f: !transform.any_op {transform.readonly}) {
  %c = sched.get_block %f "C"
  %m, %n, %k = sched.get_loops %c : !sched.loop, !sched.loop, !sched.loop
  %x = sched.fuse %n, %k
  // expected-error@below {{join_axes: block 'C': no loop runs over several of its axes together}}
  sched.join_axes %c
  transform.yield
}

// -----

// Nothing else is bound by the loop's parts.
func.func @f(%A: memref<6x4xf32>, %B: memref<4x8xf32>, %C: memref<6x8xf32>) attributes {outputs = 1 : i64} {
  loop.for "m" %m = 6 {
    loop.for "n" %n = 8 {
      loop.for "k" %k = 4 {
        loop.block "C" [m = 6 at %m, n = 8 at %n, reduce k = 4 at %k] combine [add]
            (%x = %A[m, k] : memref<6x4xf32>, %y = %B[k, n] : memref<4x8xf32>) -> (%C[m, n] : memref<6x8xf32>) origin "C"[m, n, k] {
          %0 = arith.mulf %x, %y : f32
          loop.yield %0 : f32
        }
      }
    }
  }
  func.return
}

transform.named_sequence @schedule(%f: !transform.any_op {transform.readonly}) {
  %c = sched.get_block %f "C"
  %m, %n, %k = sched.get_loops %c : !sched.loop, !sched.loop, !sched.loop
  %x = sched.fuse %m, %n
  %y, %z = sched.split %x by [-1, 16] : !sched.loop, !sched.loop
  // expected-error@below {{join_axes: block 'C': no loop runs over several of its axes together}}
  sched.join_axes %c
  transform.yield
}

// -----

// The loop runs over all of them.
func.func @f(%A: memref<6x4xf32>, %B: memref<4x8xf32>, %C: memref<6x8xf32>) attributes {outputs = 1 : i64} {
  loop.for "m" %m = 6 {
    loop.for "n" %n = 8 {
      loop.for "k" %k = 4 {
        loop.block "C" [m = 6 at %m, n = 8 at %n, reduce k = 4 at %k] combine [add]
            (%x = %A[m, k] : memref<6x4xf32>, %y = %B[k, n] : memref<4x8xf32>) -> (%C[m, n] : memref<6x8xf32>) origin "C"[m, n, k] {
          %0 = arith.mulf %x, %y : f32
          loop.yield %0 : f32
        }
      }
    }
  }
  func.return
}

transform.named_sequence @schedule(%f: !transform.any_op {transform.readonly}) {
  %c = sched.get_block %f "C"
  %m, %n, %k = sched.get_loops %c : !sched.loop, !sched.loop, !sched.loop
  %x = sched.fuse %m, %n
  %y, %z = sched.partition %x at 40
  // expected-error@below {{join_axes: block 'C': no loop runs over several of its axes together}}
  sched.join_axes %c
  transform.yield
}
