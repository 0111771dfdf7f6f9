// RUN: strata-opt %s -p apply-schedule --split-input-file --verify-diagnostics

// A consumer would read what has not been written.
// PAYLOAD: stencil T(h) S(i)
  // expected-error@below {{merge: S[0] reads T[2] before T[2] has been written}}
  %x = sched.merge %h, %i shift 1

// -----

// The consumer does not come first.
// PAYLOAD: producer_consumer_10 T(i) D(j)
  // expected-error@below {{merge: loop 'i': it does not come after loop 'j'}}
  %x = sched.merge %j, %i

// -----

// A shift is not negative.
// PAYLOAD: producer_consumer_10 T(i) D(j)
  // expected-error@below {{merge: loop 'j': the shift -1 is negative}}
  %x = sched.merge %i, %j shift -1

// -----

// The loops stand beside each other.
// PAYLOAD: producer_consumer T(m, n) D(p, q)
  // expected-error@below {{merge: loop 'n': it does not stand beside loop 'm'}}
  %x = sched.merge %m, %q

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

// PAYLOAD: script D(i) G(l)
  // expected-error@below {{merge: loop 'l': loop 'j' stands between it and loop 'i'}}
  %x = sched.merge %i, %l

// -----

// Both are serial.
// PAYLOAD: producer_consumer_10 T(i) D(j) s/%j = 10/%j = 10 parallel/
  // expected-error@below {{merge: loop 'j': it is parallel already, not serial}}
  %x = sched.merge %i, %j
