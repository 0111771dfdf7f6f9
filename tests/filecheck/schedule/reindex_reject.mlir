// RUN: strata-opt %s -p apply-schedule --split-input-file --verify-diagnostics

// The block reads the buffer.
// PAYLOAD: shifted S()
  // expected-error@below {{reindex: block 'S': it does not read 'S'}}
  %x = sched.reindex %s "S"

// -----

// Once.
// PAYLOAD: stencil S()
  // expected-error@below {{reindex: block 'S': it reads 'T' 3 times}}
  %x = sched.reindex %s "T"

// -----

// At an index that varies.
// PAYLOAD: shifted S() s/i - 1] where (i - 1 >= 0) else 0.0/0]/
  // expected-error@below {{reindex: block 'S': it reads one element of 'A'}}
  %x = sched.reindex %s "A"

// -----

// Inside the buffer for all values of the axes, also those that the loops do not reach.
func.func @diagonal(%A: memref<1xf32>, %S: memref<8x8xf32>) attributes {outputs = 1 : i64} {
  loop.for "i" %i = 8 {
    loop.block "S" [i = 8 at %i, j = 8 at %i]
        (%a = %A[i - j] : memref<1xf32>) -> (%S[i, j] : memref<8x8xf32>) origin "S"[i, j] {
      loop.yield %a : f32
    }
  }
  func.return
}
// PAYLOAD: script S()
  // expected-error@below {{reindex: block 'S': the copy would read 'A' outside its shape, at i=}}
  %x = sched.reindex %s "A"
