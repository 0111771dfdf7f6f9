// RUN: strata-opt %s -p apply-schedule --split-input-file --verify-diagnostics

// A block has as many loops as there are results.
// PAYLOAD: double_12 D()
  // expected-error@below {{get_loops: block 'D': it has 1 loops, not 2}}
  %o, %n = sched.get_loops %d : !sched.loop, !sched.loop

// -----

// The loop of a handle has gone with its block.
// PAYLOAD: producer_consumer_12 T(i)
  sched.inline %t
  // expected-error@below {{unroll: loop 'i': it has been consumed by 'inline'}}
  sched.unroll %i

// -----

// Another handle on the loop has been consumed.
// PAYLOAD: double_12 D(i)
  %same = sched.get_loops %d : !sched.loop
  %o, %n = sched.split %i by [-1, 4] : !sched.loop, !sched.loop
  // expected-error@below {{parallel: loop 'i': it has been consumed by 'split'}}
  sched.parallel %same
