// RUN: strata-opt %s -p apply-schedule --split-input-file --verify-diagnostics

// The loop is serial.
// PAYLOAD: double D(i) s/%i = 10/%i = 10 vectorized/
  // expected-error@below {{unroll: loop 'i': it is vectorized already}}
  sched.unroll %i
