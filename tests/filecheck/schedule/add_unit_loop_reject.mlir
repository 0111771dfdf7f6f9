// RUN: strata-opt %s -p apply-schedule --split-input-file --verify-diagnostics

// The loop has no kind yet.
// PAYLOAD: double_12

transform.named_sequence @schedule(%f: !transform.any_op {transform.readonly}) {
  %d = sched.get_block %f "D"
  %i = sched.get_loops %d : !sched.loop
  sched.unroll %i
  // expected-error@below {{add_unit_loop: loop 'i': it is unrolled already, not serial}}
  %unit = sched.add_unit_loop %i
  transform.yield
}
