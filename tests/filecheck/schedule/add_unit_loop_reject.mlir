// RUN: strata-opt %s -p apply-schedule --split-input-file --verify-diagnostics

// The loop has no kind yet.
func.func @f(%A: memref<12xf32>, %D: memref<12xf32>) attributes {outputs = 1 : i64} {
  loop.for "i" %i = 12 {
    loop.block "D" [i = 12 at %i]
        (%x = %A[i] : memref<12xf32>) -> (%D[i] : memref<12xf32>) origin "D"[i] {
      %0 = arith.addf %x, %x : f32
      loop.yield %0 : f32
    }
  }
  func.return
}

transform.named_sequence @schedule(%f: !transform.any_op {transform.readonly}) {
  %d = sched.get_block %f "D"
  %i = sched.get_loops %d : !sched.loop
  sched.unroll %i
  // expected-error@below {{add_unit_loop: loop 'i': it is unrolled already, not serial}}
  %unit = sched.add_unit_loop %i
  transform.yield
}
