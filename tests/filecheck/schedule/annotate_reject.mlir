// RUN: strata-opt %s -p apply-schedule --split-input-file --verify-diagnostics

// A loop that has been split is gone.
// PAYLOAD: double D(i)
  %d2 = sched.get_block %f "D"
  %j = sched.get_loops %d2 : !sched.loop
  %o, %n = sched.split %i by [2, 5] : !sched.loop, !sched.loop
  // expected-error@below {{annotate: loop 'i': it has been consumed by 'split'}}
  sched.annotate %j "hint" = 4 : i64
