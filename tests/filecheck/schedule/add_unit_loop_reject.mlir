// RUN: strata-opt %s -p apply-schedule --split-input-file --verify-diagnostics

// The loop has no kind yet.
// PAYLOAD: double_12 D(i)
  sched.unroll %i
  // expected-error@below {{add_unit_loop: loop 'i': it is unrolled already, not serial}}
  %unit = sched.add_unit_loop %i
