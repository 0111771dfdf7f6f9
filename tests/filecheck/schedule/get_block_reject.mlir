// RUN: strata-opt %s -p apply-schedule --split-input-file --verify-diagnostics

// There is such a block.
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
  // expected-error@below {{get_block: block 'X': there is none (there are D)}}
  %x = sched.get_block %f "X"
  transform.yield
}
