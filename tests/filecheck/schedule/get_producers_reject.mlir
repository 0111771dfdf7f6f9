// RUN: strata-opt %s -p apply-schedule --split-input-file --verify-diagnostics

// A block has as many producers as there are results.
// PAYLOAD: producer_consumer_12 D()
  // expected-error@below {{get_producers: block 'D': it has 1 producers, not 2}}
  %x, %y = sched.get_producers %d : !sched.block, !sched.block
