// RUN: strata-opt %s -p apply-schedule --split-input-file --verify-diagnostics

// The position is inside the extent: at its end the rest would be empty.
func.func @f(%A: memref<10xf32>, %D: memref<10xf32>) attributes {outputs = 1 : i64} {
  loop.for "i" %i = 10 {
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
  // expected-error@below {{partition: loop 'i': position 10 is not inside its extent 10}}
  %h, %r = sched.partition %i at 10
  transform.yield
}

// -----

// At zero the head would be empty.
func.func @f(%A: memref<10xf32>, %D: memref<10xf32>) attributes {outputs = 1 : i64} {
  loop.for "i" %i = 10 {
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
  // expected-error@below {{partition: loop 'i': position 0 is not inside its extent 10}}
  %h, %r = sched.partition %i at 0
  transform.yield
}

// -----

// Only a serial loop is cut.
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
  // expected-error@below {{partition: loop 'i': it is vectorized already, not serial}}
  %h, %r = sched.partition %i at 5
  transform.yield
}

// -----

// A loop that binds spatial and reduce axes alike leaves the init in doubt.
func.func @f(%A: memref<4x10xf32>, %S: memref<4xf32>) attributes {outputs = 1 : i64} {
  loop.for "i" %i = 4 {
    loop.for "k" %k = 10 {
      loop.block "S" [i = 4 at %i, reduce k = 10 at %k] combine [add]
          (%x = %A[i, k] : memref<4x10xf32>) -> (%S[i] : memref<4xf32>) origin "S"[i, k] {
        loop.yield %x : f32
      }
    }
  }
  func.return
}

transform.named_sequence @schedule(%f: !transform.any_op {transform.readonly}) {
  %s = sched.get_block %f "S"
  %i, %k = sched.get_loops %s : !sched.loop, !sched.loop
  %x = sched.fuse %i, %k
  // expected-error@below {{partition: loop 'i_k': it binds spatial and reduce axes of block 'S' alike; decompose_reduction first}}
  %h, %r = sched.partition %x at 5
  transform.yield
}
