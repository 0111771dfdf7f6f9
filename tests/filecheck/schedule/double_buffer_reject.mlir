// RUN: strata-opt %s -p apply-schedule --split-input-file --verify-diagnostics

// The buffer is a temporary.
// PAYLOAD: producer_consumer D()
  // expected-error@below {{double_buffer: block 'D': 'D' is an argument, not a temporary}}
  sched.double_buffer %d

// -----

// Two copies are the fewest.
// PAYLOAD: producer_consumer T()
  // expected-error@below {{1 copies of a buffer are not at least 2}}
  sched.double_buffer %t copies 1

// -----

// It lives in one iteration.
// PAYLOAD: producer_consumer T()
  // expected-error@below {{double_buffer: block 'T': 'T' lives outside all loops, not in one iteration}}
  sched.double_buffer %t
