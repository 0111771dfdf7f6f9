// RUN: strata-opt %s -p apply-schedule --split-input-file --verify-diagnostics

// The block reads the buffer.
// PAYLOAD: matmul C()
  // expected-error@below {{pack: block 'C': it does not read 'C'}}
  %p = sched.pack %c "C" tiles [1, 3]

// -----

// And does not write it.
// PAYLOAD: wavefront D()
  // expected-error@below {{pack: block 'D': it writes 'D' as well}}
  %p = sched.pack %d "D" tiles [1, 2]

// -----

// There is a tile size for each dimension.
// PAYLOAD: matmul C()
  // expected-error@below {{pack: block 'C': 1 tiles do not fit the 2 dimensions of 'B'}}
  %p = sched.pack %c "B" tiles [3]

// -----

// The order permutes the dimensions of blocks and those inside.
// PAYLOAD: matmul C()
  // expected-error@below {{pack: block 'C': the order [1, 0] is no permutation of 3 dimensions}}
  %p = sched.pack %c "B" tiles [1, 3] order [1, 0]

// -----

// Each once.
// PAYLOAD: matmul C()
  // expected-error@below {{pack: block 'C': the order [1, 0, 0] is no permutation of 3 dimensions}}
  %p = sched.pack %c "B" tiles [1, 3] order [1, 0, 0]
