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
