// RUN: strata-opt %s -p apply-schedule --split-input-file --verify-diagnostics

// It is for templates of a search.
// PAYLOAD: matmul

transform.named_sequence @schedule(%f: !transform.any_op {transform.readonly}) {
  %c = sched.get_block %f "C"
  %m, %n, %k = sched.get_loops %c : !sched.loop, !sched.loop, !sched.loop
  // expected-error@below {{auto: block 'C': it stands for choices that a search derives; tune the script as a template}}
  sched.auto %c
  transform.yield
}
