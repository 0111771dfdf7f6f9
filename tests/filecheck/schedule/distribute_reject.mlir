// RUN: strata-opt %s -p apply-schedule --split-input-file --verify-diagnostics

// A dependence would be reversed: the last use of a value that is overwritten.
// PAYLOAD: shared_element T(i)
  // expected-error@below {{distribute: T[1] overwrites T[0] before D[0] has read it}}
  %x, %y = sched.distribute %i after %t

// -----

// No buffer that lives in one iteration is used by both parts.
func.func @f(%A: memref<10xf32>, %D: memref<10xf32>) attributes {outputs = 1 : i64} {
  loop.for "i" %i = 10 {
    %T = loop.alloc "T" : memref<1xf32>
    loop.block "T" [i = 10 at %i]
        (%x = %A[i] : memref<10xf32>) -> (%T[0] : memref<1xf32>) origin "T"[i] {
      %0 = arith.addf %x, %x : f32
      loop.yield %0 : f32
    }
    loop.block "D" [i = 10 at %i]
        (%x = %T[0] : memref<1xf32>) -> (%D[i] : memref<10xf32>) origin "D"[i] {
      %0 = arith.addf %x, %x : f32
      loop.yield %0 : f32
    }
  }
  func.return
}

// PAYLOAD: script T(i)
  // expected-error@below {{distribute: loop 'i': buffer 'T' lives in one iteration and is used by both parts; lift_alloc first}}
  %x, %y = sched.distribute %i after %t

// -----

// Something stands after the block.
// PAYLOAD: producer_consumer_fused D(i)
  // expected-error@below {{distribute: loop 'i': nothing stands after block 'D'}}
  %x, %y = sched.distribute %i after %d

// -----

// The loop is around the block.
// PAYLOAD: producer_consumer_10 T(i) D(j)
  // expected-error@below {{distribute: loop 'i': it is not around block 'D'}}
  %x, %y = sched.distribute %i after %d

// -----

// The loop is serial.
// PAYLOAD: producer_consumer_fused T(i) s/%i = 10/%i = 10 parallel/
  // expected-error@below {{distribute: loop 'i': it is parallel already, not serial}}
  %x, %y = sched.distribute %i after %t
