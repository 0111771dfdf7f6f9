// RUN: strata-opt %s -p apply-schedule --split-input-file --verify-diagnostics

// A block has as many consumers as there are results.
func.func @f(%A: memref<12xf32>, %D: memref<12xf32>) attributes {outputs = 1 : i64} {
  %T = loop.alloc "T" : memref<12xf32>
  loop.for "i" %i = 12 {
    loop.block "T" [i = 12 at %i]
        (%x = %A[i] : memref<12xf32>) -> (%T[i] : memref<12xf32>) origin "T"[i] {
      %0 = arith.addf %x, %x : f32
      loop.yield %0 : f32
    }
  }
  loop.for "j" %j = 12 {
    loop.block "D" [i = 12 at %j]
        (%x = %T[i] : memref<12xf32>) -> (%D[i] : memref<12xf32>) origin "D"[i] {
      %0 = arith.addf %x, %x : f32
      loop.yield %0 : f32
    }
  }
  func.return
}

transform.named_sequence @schedule(%f: !transform.any_op {transform.readonly}) {
  %b = sched.get_block %f "T"
  // expected-error@below {{get_consumers: block 'T': it has 1 consumers, not 2}}
  %x, %y = sched.get_consumers %b : !sched.block, !sched.block
  transform.yield
}
