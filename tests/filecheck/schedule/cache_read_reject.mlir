// RUN: strata-opt %s -p apply-schedule --split-input-file --verify-diagnostics

// The block reads the buffer.
// PAYLOAD: matmul C()
  // expected-error@below {{cache_read: block 'C': it does not read 'C'}}
  %copy = sched.cache_read %c "C" in "shared"

// -----

// And does not write it.
// PAYLOAD: wavefront D()
  // expected-error@below {{cache_read: block 'D': it writes 'D' as well}}
  %copy = sched.cache_read %d "D" in "shared"
