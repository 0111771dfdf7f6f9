// RUN: strata-opt %s -p apply-schedule --split-input-file --verify-diagnostics

// The loop is serial.
// PAYLOAD: double s/%i = 10/%i = 10 vectorized/
// PAYLOAD: loops_D_i
  // expected-error@below {{unroll: loop 'i': it is vectorized already}}
  sched.unroll %i
