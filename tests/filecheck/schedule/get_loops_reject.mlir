// RUN: strata-opt %s -p apply-schedule --split-input-file --verify-diagnostics

// A block has as many loops as there are results.
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
  // expected-error@below {{get_loops: block 'D': it has 1 loops, not 2}}
  %o, %n = sched.get_loops %d : !sched.loop, !sched.loop
  transform.yield
}

// -----

// The loop of a handle has gone with its block.
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
  %t = sched.get_block %f "T"
  %i = sched.get_loops %t : !sched.loop
  sched.inline %t
  // expected-error@below {{unroll: loop 'i': it has been consumed by 'inline'}}
  sched.unroll %i
  transform.yield
}

// -----

// Another handle on the loop has been consumed.
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
  %same = sched.get_loops %d : !sched.loop
  %o, %n = sched.split %i by [-1, 4] : !sched.loop, !sched.loop
  // expected-error@below {{parallel: loop 'i': it has been consumed by 'split'}}
  sched.parallel %same
  transform.yield
}
