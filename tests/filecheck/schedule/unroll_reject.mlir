// RUN: strata-opt %s -p apply-schedule --split-input-file --verify-diagnostics

// The loop is serial.
// PAYLOAD: double s/%i = 10/%i = 10 vectorized/

transform.named_sequence @schedule(%f: !transform.any_op {transform.readonly}) {
  %d = sched.get_block %f "D"
  %i = sched.get_loops %d : !sched.loop
  // expected-error@below {{unroll: loop 'i': it is vectorized already}}
  sched.unroll %i
  transform.yield
}
