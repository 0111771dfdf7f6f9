// RUN: strata-opt %s -p apply-schedule --split-input-file --verify-diagnostics

// A consumer would read what has not been written.
// PAYLOAD: stencil

transform.named_sequence @schedule(%f: !transform.any_op {transform.readonly}) {
  %t = sched.get_block %f "T"
  %h = sched.get_loops %t : !sched.loop
  %s = sched.get_block %f "S"
  %i = sched.get_loops %s : !sched.loop
  // expected-error@below {{merge: S[0] reads T[2] before T[2] has been written}}
  %x = sched.merge %h, %i shift 1
  transform.yield
}

// -----

// The consumer does not come first.
// PAYLOAD: producer_consumer_10

transform.named_sequence @schedule(%f: !transform.any_op {transform.readonly}) {
  %t = sched.get_block %f "T"
  %i = sched.get_loops %t : !sched.loop
  %d = sched.get_block %f "D"
  %j = sched.get_loops %d : !sched.loop
  // expected-error@below {{merge: loop 'i': it does not come after loop 'j'}}
  %x = sched.merge %j, %i
  transform.yield
}

// -----

// A shift is not negative.
// PAYLOAD: producer_consumer_10

transform.named_sequence @schedule(%f: !transform.any_op {transform.readonly}) {
  %t = sched.get_block %f "T"
  %i = sched.get_loops %t : !sched.loop
  %d = sched.get_block %f "D"
  %j = sched.get_loops %d : !sched.loop
  // expected-error@below {{merge: loop 'j': the shift -1 is negative}}
  %x = sched.merge %i, %j shift -1
  transform.yield
}

// -----

// The loops stand beside each other.
// PAYLOAD: producer_consumer

transform.named_sequence @schedule(%f: !transform.any_op {transform.readonly}) {
  %t = sched.get_block %f "T"
  %m, %n = sched.get_loops %t : !sched.loop, !sched.loop
  %d = sched.get_block %f "D"
  %p, %q = sched.get_loops %d : !sched.loop, !sched.loop
  // expected-error@below {{merge: loop 'n': it does not stand beside loop 'm'}}
  %x = sched.merge %m, %q
  transform.yield
}

// -----

// Nothing stands between them.
func.func @f(%A: memref<4xf32>, %D: memref<4xf32>, %E: memref<4xf32>, %G: memref<4xf32>) attributes {outputs = 3 : i64} {
  loop.for "i" %i = 4 {
    loop.block "D" [i = 4 at %i]
        (%x = %A[i] : memref<4xf32>) -> (%D[i] : memref<4xf32>) origin "D"[i] {
      %0 = arith.addf %x, %x : f32
      loop.yield %0 : f32
    }
  }
  loop.for "j" %j = 4 {
    loop.block "E" [i = 4 at %j]
        (%x = %A[i] : memref<4xf32>) -> (%E[i] : memref<4xf32>) origin "E"[i] {
      %0 = arith.addf %x, %x : f32
      loop.yield %0 : f32
    }
  }
  loop.for "l" %l = 4 {
    loop.block "G" [i = 4 at %l]
        (%x = %A[i] : memref<4xf32>) -> (%G[i] : memref<4xf32>) origin "G"[i] {
      %0 = arith.addf %x, %x : f32
      loop.yield %0 : f32
    }
  }
  func.return
}

transform.named_sequence @schedule(%f: !transform.any_op {transform.readonly}) {
  %d = sched.get_block %f "D"
  %i = sched.get_loops %d : !sched.loop
  %g = sched.get_block %f "G"
  %l = sched.get_loops %g : !sched.loop
  // expected-error@below {{merge: loop 'l': loop 'j' stands between it and loop 'i'}}
  %x = sched.merge %i, %l
  transform.yield
}

// -----

// Both are serial.
// PAYLOAD: producer_consumer_10 s/%j = 10/%j = 10 parallel/

transform.named_sequence @schedule(%f: !transform.any_op {transform.readonly}) {
  %t = sched.get_block %f "T"
  %i = sched.get_loops %t : !sched.loop
  %d = sched.get_block %f "D"
  %j = sched.get_loops %d : !sched.loop
  // expected-error@below {{merge: loop 'j': it is parallel already, not serial}}
  %x = sched.merge %i, %j
  transform.yield
}
