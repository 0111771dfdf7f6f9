// RUN: strata-opt %s -p apply-schedule --split-input-file --verify-diagnostics

// A block has as many consumers as there are results.
// PAYLOAD: producer_consumer_12 T()
  // expected-error@below {{get_consumers: block 'T': it has 1 consumers, not 2}}
  %x, %y = sched.get_consumers %t : !sched.block, !sched.block
