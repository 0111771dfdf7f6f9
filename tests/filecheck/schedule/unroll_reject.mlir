// RUN: strata-opt %s -p apply-schedule --split-input-file --verify-diagnostics

// The loop is serial.
func.func @f(%A: memref<10xf32>, %D: memref<10xf32>) attributes {outputs = 1 : i64} {
  loop.for "i" %i = 10 vectorized {
    loop.block "D" [i = 10 at %i]
        (%x = %A[i] : memref<10xf32>) -> (%D[i] : memref<10xf32>) origin "D"[i] {
      %0 = arith.addf %x, %x : f32
      loop.yield %0 : f32
    }
  }
  func.return
}

transform.named_sequence @schedule(%f: !transform.any_op {transform.readonly}) {
  %d = sched.get_block %f "D"
  %i = sched.get_loops %d : !sched.loop
  // expected-error@below {{unroll: loop 'i': it is vectorized already}}
  sched.unroll %i
  transform.yield
}
